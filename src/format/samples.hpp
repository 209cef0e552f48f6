// Values for the tests of format/: fixed ones (the golden files are made of them; never change one, add another) and
// random valid ones.
#pragma once

#include <algorithm>
#include <random>

#include "base/checksum.hpp"
#include "format/image.hpp"
#include "format/lineage.hpp"
#include "format/manifest.hpp"
#include "format/message.hpp"
#include "format/part.hpp"
#include "format/roster.hpp"
#include "model/checksum_units.hpp"

namespace cairn::samples {

inline const Id128 incarnation{0x0102030405060708, 0x090A0B0C0D0E0F10};
inline const Id128 attempt_id{incarnation.high, 0xB1B2B3B4B5B6B7B8};
inline const VersionKey key{"melt", 7, incarnation};
inline const Parent parent{{0x1111, 0x2222}, 6};
inline constexpr std::uint64_t block_bytes = 4096;

// ---- fixed ----

inline ImageInfo image(Rank rank) {
    if (rank == 0)
        return {0,
                5000,
                {{"x", RegionKind::memory, DataType::f64, {5, 100}, 0, 4000},
                 {"step", RegionKind::memory, DataType::i64, {}, 4000, 8},
                 {"rng", RegionKind::callback, DataType::bytes, {992}, 4008, 992}}};
    if (rank == 1) return {1, 40, {{"out/restart.1", RegionKind::file, DataType::bytes, {40}, 0, 40}}};
    return {rank, 0, {}};
}

inline Bytes image_bytes(Rank rank) {
    Bytes bytes(image(rank).bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256 + rank);
    return bytes;
}

inline std::vector<std::uint64_t> block_checksums(ByteView bytes) {
    std::vector<std::uint64_t> sums;
    for (std::size_t at = 0; at < bytes.size(); at += block_bytes)
        sums.push_back(checksum(bytes.subspan(at, std::min<std::size_t>(block_bytes, bytes.size() - at))));
    return sums;
}

// Three ranks; the one of rank 2 is empty, and rank 1 came first.
inline Footer footer() {
    Footer f;
    f.key = key;
    f.attempt = 2;
    f.attempt_id = attempt_id;
    f.part = 0;
    f.parts = 1;
    f.ranks = 3;
    f.block_bytes = block_bytes;
    f.data_bytes = 3 * block_bytes;
    f.images = {image(0), image(1), image(2)};
    f.runs = {{0, 40, 0, 0, {{1, 0, 40, 0, block_checksums(image_bytes(1))}}}, {4096, 5000, 0, 0, {{0, 0, 5000, 0, block_checksums(image_bytes(0))}}}};
    return f;
}

// The same images, the other way: a run that holds pieces of two ranks, and one that is encoded, and its checksums are cut where a region ends. And one region is a
// block of an array.
inline Footer packed_footer() {
    Footer f = footer();
    f.images[0].regions[0].global_shape = {40, 100};
    f.images[0].regions[0].global_offset = {10, 0};
    const Bytes bytes = image_bytes(0);
    const std::vector<std::uint64_t> sums = block_checksums(bytes);
    f.images[0].cuts = 1;
    f.data_bytes = 2 * block_bytes;
    f.codecs = {{"zero-runs", ""}};
    f.runs = {{0, 944, 0, 0, {{1, 0, 40, 0, block_checksums(image_bytes(1))}, {0, 4096, 904, 40, {sums[1]}}}}, {4096, 3000, 1, 0xC0DEC, {{0, 0, 4096, 0, {checksum(ByteView(bytes).first(4000)), checksum(ByteView(bytes).subspan(4000, 96))}, {4000}}}}};
    return f;
}

// The whole part that footer() ends.
inline Bytes part() {
    const Footer f = footer();
    Bytes bytes(f.data_bytes);
    for (const StoredRun& run : f.runs) {
        const Bytes image = image_bytes(run.pieces.front().rank);
        std::copy(image.begin(), image.end(), bytes.begin() + static_cast<std::ptrdiff_t>(run.part_offset));
    }
    const Bytes tail = encode_footer(f);
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    return bytes;
}

inline Manifest manifest() {
    Manifest m;
    m.key = key;
    m.epoch = 3;
    m.parent = parent;
    m.attempt_id = attempt_id;
    m.ranks = 3;
    m.nodes = 2;
    m.image_bytes = 5040;
    m.block_bytes = block_bytes;
    m.wall_time_s = 1'700'000'000;
    const Bytes tail = encode_footer(footer());
    m.parts = {{part_file_name(0, 1, attempt_id),
                footer().data_bytes + tail.size(),
                footer().data_bytes,
                footer_checksum(tail),
                {0, 1, 2}}};
    return m;
}

// As version 1 had it: its part ended in a footer of another form.
inline Manifest manifest_of_version_1() {
    Manifest m = manifest();
    m.parts[0].bytes = 13'040;
    m.parts[0].footer_checksum = 0x29FCE7F2F3A351AA;
    return m;
}

// One part below another root, and one more root without any.
inline Manifest manifest_with_roots() {
    Manifest m = manifest();
    m.roots = {"/fast/a", "/fast/b"};
    m.parts[0].root = 2;
    return m;
}

inline Manifest tombstone_with_roots() {
    Manifest m;
    m.key = key;
    m.epoch = 4;
    m.abandoned = true;
    m.roots = {"/fast/a", "/fast/b"};
    return m;
}

inline Manifest tombstone() {
    Manifest m;
    m.key = key;
    m.epoch = 4;
    m.abandoned = true;
    return m;
}

inline ImageHeader image_header() {
    ImageHeader h{key, 3, parent, 0, 3, block_bytes, 0, 0, false, image(0)};
    const ImageLayout layout = image_layout(encode_image_header(h).size(), h.image, h.block_bytes);
    h.checksums_offset = layout.checksums_offset;
    h.data_offset = layout.data_offset;
    return h;
}

inline Roster roster() {
    return {"melt",
            incarnation,
            {0x5EC2E7, 0x5EC2E8},
            3,
            parent,
            3,
            1,
            {{"node-a", "fi_sockaddr_in://127.0.0.1:4711", {0, 2}}, {"node-b", "", {1}}},
            1};
}
inline Roster roster_with_roots() {
    Roster r = roster();
    r.format = format_version;
    r.roots = {"/fast/a", "/fast/b"};
    return r;
}
inline NodeRecord node_record() { return {incarnation, 1, "fi_sockaddr_in://127.0.0.1:4712"}; }
inline IoNodeRecord io_node_record() { return {"io-0", "fi_sockaddr_in://127.0.0.1:4713", 1}; }
inline OpenRecord open_record() { return {incarnation, 3, "node-a.cluster", 4242, 1'700'000'000, 3}; }
inline FromRecord from_record() { return {incarnation, parent, false, {}}; }
inline FromRecord from_record_looked() { return {incarnation, parent, true, {parent, {{0xF00, 0xBA}, 9}}}; }

// One of each kind, in the order of message::Body.
inline std::vector<message::Message> messages() {
    const Source source{0, 4096, 904};
    const std::vector<NodeSources> nodes = {{0, {{0, 0, 5000}, {2, 0, 0}}}, {1, {{1, 0, 40}}}};
    const PartPlan plan{0, "gv-client-1", 8 * block_bytes, {{1, 0, 3 * block_bytes, nodes}, {0, 3 * block_bytes, block_bytes, {}}}};
    const std::vector<message::Work> work = {{0, 4 * block_bytes, block_bytes, {{1, {{1, 0, 40}}}}}};
    const std::vector<message::Body> bodies = {
        message::Sealed{{image(0), image(2)}, block_bytes},
        message::Noted{{1, 5}},
        message::Lead{
            2, attempt_id, 1, 3, block_bytes, {plan}, {image(0), image(1), image(2)}, {{0, "a:1"}, {1, "b:2"}}, true, "zero-runs", 1 << 20},
        message::Progress{attempt_id, 3, 123456, {{0, 4096, 8192, 1'000'000}, {2, 0, 4096, 0}}, 1},
        message::PartsDone{attempt_id, Code::unavailable, "node-b: silent for 10 s", true, 1, true, 0, manifest().parts, 0x0123456789abcdef, Card::has_room},
        message::Acknowledged{attempt_id},
        message::Leave{attempt_id},
        message::Want{99, source},
        message::Chunk{99, Code::ok, "", {1, 2, 0xFFFFFFFFFFFFFFFF}, {5, 4095}},
        message::Ended{Code::superseded, "version 7 was taken again", true},
        message::Cancel{},
        message::Shed{attempt_id, 1, 3, 2, 8192},
        message::Given{attempt_id, 1, work},
        message::Take{attempt_id, 1, work, {{1, "b:2"}}},
        message::Taken{attempt_id, 1},
        message::Complete{attempt_id, {image(0)}},
        message::Opened{attempt_id, 0},
        message::ShareDone{attempt_id, 0, 1, 2, block_bytes, {{4 * block_bytes, 40, 0, 0, {{1, 0, 40, 0, {7}}}}}, {2}, {4 * block_bytes, 40, 8}},
        message::ShareKept{attempt_id, 0, 1},
        message::Room{attempt_id, 0, 7, 3000},
        message::Roomed{attempt_id, 0, 7, 8192}};
    std::vector<message::Message> all;
    for (const message::Body& body : bodies) all.push_back({{0x5EC2E7, 0x5EC2E8}, key, 1, "a:1", body});
    return all;
}

// ---- random ----

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    std::uint64_t number() { return engine_(); }
    std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
    std::uint32_t below32(std::uint64_t bound) { return static_cast<std::uint32_t>(below(bound)); }
    bool coin() { return below(2) == 0; }
    Id128 id() { return {number(), number() | 1}; }

    std::string text(std::string_view alphabet, std::uint64_t length_max) {
        std::string text;
        for (std::uint64_t n = below(length_max + 1); n > 0; --n) text += alphabet[below(alphabet.size())];
        return text;
    }
    std::string name() { return "n" + text("abzAZ059._-", name_bytes_max - 1); }
    VersionKey version_key() { return {name(), number() | 1, id()}; }
    Parent some_parent() { return coin() ? Parent{} : Parent{id(), number() | 1}; }
    std::uint64_t block() { return block_bytes_min << below(19); }

    Region region(std::string name, std::uint64_t offset) {
        Region r{std::move(name), RegionKind::memory, static_cast<DataType>(below(15)), {}, offset, 0};
        r.length = type_bytes(r.type);
        for (std::uint64_t n = below(4); n > 0; --n) r.length *= r.shape.emplace_back(below(20));
        if (coin() && !r.shape.empty())
            for (const std::uint64_t extent : r.shape) {
                r.global_offset.push_back(below(100));
                r.global_shape.push_back(r.global_offset.back() + extent + below(100));
            }
        if (below(4) == 0)
            r = {r.name,  coin() ? RegionKind::callback : RegionKind::file, DataType::bytes, {r.length}, offset,
                 r.length, {}, {}};
        return r;
    }
    ImageInfo image(Rank rank) {
        ImageInfo image{rank, 0, {}};
        for (std::uint64_t i = 0, n = below(5); i < n; ++i) {
            const Region r = region("dir/\xC3\xA4 region " + std::to_string(i), image.bytes);
            image.regions.push_back(r);
            image.bytes += r.length + below(100);
        }
        if (image.bytes > 0) image.cuts = below(std::min<std::uint64_t>(image.bytes, 10));
        return image;
    }
    std::vector<ImageInfo> images(std::uint32_t ranks) {
        std::vector<ImageInfo> images;
        for (Rank rank = 0; rank < ranks; ++rank)
            if (below(3) != 0) images.push_back(image(rank));
        std::shuffle(images.begin(), images.end(), engine_);
        return images;
    }

    Footer footer() {
        Footer f;
        f.key = version_key();
        f.attempt = below32(100);
        f.attempt_id = id();
        f.ranks = 1 + below32(20);
        f.parts = 1 + below32(f.ranks);
        f.part = below32(f.parts);
        f.block_bytes = block_bytes_min << below(3);
        f.images = images(f.ranks);
        if (coin()) f.codecs.push_back({"zero-runs", text("level=19", 8)});
        std::vector<StoredPiece> pieces;
        for (const ImageInfo& image : f.images) cut(image, f.block_bytes, pieces);
        std::shuffle(pieces.begin(), pieces.end(), engine_);
        for (std::size_t i = 0; i < pieces.size();) {
            StoredRun& run = f.runs.emplace_back();
            for (std::uint64_t n = 1 + below(3); n > 0 && i < pieces.size(); --n, ++i) {
                pieces[i].at = raw_bytes(run);
                run.pieces.push_back(std::move(pieces[i]));
            }
            run.stored_bytes = raw_bytes(run);
            run.part_offset = f.data_bytes + below(3) * part_alignment;  // gaps are allowed
            if (!f.codecs.empty() && run.stored_bytes > 1 && coin()) run = {run.part_offset, 1 + below(run.stored_bytes - 1), 1, number(), std::move(run.pieces)};
            f.data_bytes = run.part_offset + round_up(run.stored_bytes, part_alignment);
        }
        return f;
    }
    PartInfo part_info(std::uint32_t part, std::uint32_t parts, Id128 attempt, std::uint64_t block) {
        PartInfo info{part_file_name(part, parts, attempt), 0, below(1000) * block, number(), {}};
        info.bytes = info.footer_offset + part_trailer_bytes + 1 + below(1000);
        return info;
    }
    Manifest manifest() {
        Manifest m;
        m.key = version_key();
        m.epoch = 1 + below(epoch_max);
        m.parent = some_parent();
        m.abandoned = below(5) == 0;
        for (std::uint64_t root = coin() ? below(4) : 0; root > 0; --root) m.roots.push_back("/fast/" + std::to_string(root));
        if (m.abandoned) return m;
        m.attempt_id = id();
        m.ranks = 1 + below32(30);
        m.nodes = 1 + below32(10);
        m.image_bytes = number();
        m.block_bytes = block();
        m.wall_time_s = number();
        const std::uint32_t parts = 1 + below32(m.ranks);
        for (std::uint32_t part = 0; part < parts; ++part) {
            m.parts.push_back(part_info(part, parts, m.attempt_id, m.block_bytes));
            m.parts.back().root = below32(static_cast<std::uint32_t>(m.roots.size()) + 1);
            for (Rank rank = 0; rank < m.ranks; ++rank)
                if (rank % parts == part || below(4) == 0) m.parts.back().ranks.push_back(rank);
        }
        return m;
    }
    ImageHeader image_header() {
        ImageHeader h;
        h.key = version_key();
        h.epoch = 1 + below(epoch_max);
        h.parent = some_parent();
        h.ranks = 1 + below32(1000);
        h.rank = below32(h.ranks);
        h.block_bytes = block();
        h.image = image(h.rank);
        const ImageLayout layout = image_layout(encode_image_header(h).size() + below(5000), h.image, h.block_bytes);
        h.checksums_offset = layout.checksums_offset;
        h.data_offset = layout.data_offset;
        return h;
    }
    Roster roster() {
        Roster r{name(), id(), id(), 1 + below(epoch_max), some_parent(), 1 + below32(50), 1, {}, 1 + below32(format_version)};
        r.files = 1 + below32(r.ranks);
        for (std::uint64_t i = 0, nodes = 1 + below(8); i < nodes; ++i)
            r.members.push_back({"node" + std::to_string(i), text("abc:/[]1234567890", 60), {}});
        for (std::uint64_t root = coin() ? below(4) : 0; root > 0; --root) r.roots.push_back("/fast/" + std::to_string(root));
        for (Rank rank = 0; rank < r.ranks; ++rank) r.members[rank == 0 ? 0 : below(r.members.size())].ranks.push_back(rank);
        return r;
    }
    NodeRecord node_record() { return {id(), below32(5000), text("abc:/", 60)}; }
    IoNodeRecord io_node_record() { return {name(), "a" + text("bc:/", 60), 1 + below32(3)}; }
    OpenRecord open_record() {
        return {id(), 1 + below(epoch_max), text("host.-", 60), number(), number(), 1 + below32(ranks_max)};
    }
    FromRecord from_record() {
        FromRecord r{id(), some_parent(), below(2) != 0, {}};
        for (std::uint64_t i = below(4); i > 0; --i) r.whole.push_back({id(), 1 + below(1'000'000)});
        return r;
    }

    message::Message message() {
        const auto some_code = [&] { return static_cast<Code>(below(14)); };
        const auto some_text = [&] { return text("why: \n", 200); };
        const auto source = [&](std::uint64_t b) {
            return Source{below32(ranks_max), below(1000) * b, below(1ull << 40)};
        };
        message::Message m{id(), version_key(), below32(5000), text("addr:/1", 60), message::Cancel{}};
        switch (below(21)) {
            case 0:
                m.body = message::Sealed{images(10), block()};
                break;
            case 1:
                m.body = message::Noted{{below32(9), below32(9)}};
                break;
            case 2:
                m.body = lead();
                break;
            case 3:
                m.body = message::Progress{id(), number(), number(), {{below32(9), number(), number(), number()}}, below32(9)};
                break;
            case 4:
                m.body = message::PartsDone{id(),   some_code(), some_text(),
                                            coin(), below32(9),  coin(), below32(9),
                                            {part_info(0, 9, id(), 4096)}, number()};
                break;
            case 5:
                m.body = message::Acknowledged{id()};
                break;
            case 6:
                m.body = message::Leave{id()};
                break;
            case 7:
                m.body = message::Want{number(), source(1), static_cast<Reason>(below(256))};
                break;
            case 8:
                m.body = message::Chunk{number(), some_code(), some_text(), {number(), number()}};
                break;
            case 9:
                m.body = message::Ended{some_code(), some_text(), coin()};
                break;
            case 10:
                m.body = message::Shed{id(), below32(9), below32(9), below32(9), number()};
                break;
            case 11:
                m.body = message::Given{id(), below32(9), work()};
                break;
            case 12:
                m.body = message::Take{id(), below32(9), work(), {{below32(9), text("addr:/1", 60)}}};
                break;
            case 13:
                m.body = message::Taken{id(), below32(9)};
                break;
            case 14:
                m.body = message::Complete{id(), images(10)};
                break;
            case 15:
                m.body = message::Opened{id(), below32(9)};
                break;
            case 16:
                m.body = message::ShareDone{id(), below32(9), below32(3), 3, 4096, {{below(99), below(99), below32(3), number(), {{below32(9), 4096 * below(99), 1 + below(99), below(99), {number()}}}}}, {below32(9)},
                                            {below(99), below(99), number()}};
                break;
            case 17:
                m.body = message::ShareKept{id(), below32(9), below32(9)};
                break;
            case 18:
                m.body = message::Room{id(), below32(9), below32(9), 1 + below(99)};
                break;
            case 19:
                m.body = message::Roomed{id(), below32(9), below32(9), below(99) * part_alignment};
                break;
            default:
                break;
        }
        return m;
    }

  private:
    std::vector<NodeSources> nodes(std::uint64_t block) {
        std::vector<NodeSources> nodes;
        for (std::uint64_t n = below(3); n > 0; --n) nodes.push_back({below32(9), {{below32(20), below(9) * block, below(1ull << 40)}}});
        return nodes;
    }
    std::vector<message::Work> work() { return {{below32(9), below(99) * part_alignment, below(99), nodes(4096)}}; }
    message::Lead lead() {
        message::Lead lead;
        lead.attempt = below32(9);
        lead.attempt_id = id();
        lead.ranks_total = 1 + below32(20);
        lead.parts_total = 1 + below32(lead.ranks_total);
        lead.block_bytes = block();
        lead.keep_own = below32(2) == 1;
        lead.pack_bytes = below(1 << 20);
        lead.codec = text("zero-runs", 9);
        lead.images = images(lead.ranks_total);
        for (std::uint32_t part = 0; part < lead.parts_total; ++part) {
            PartPlan plan{part, text("target-1", 20), number() / 4 % bytes_max, {}};
            for (std::uint64_t n = 1 + below(3); n > 0; --n)
                plan.shares.push_back({below32(9), below(9) * lead.block_bytes, below(9) * lead.block_bytes, nodes(lead.block_bytes)});
            lead.parts.push_back(plan);
            lead.addresses.push_back({part, text("addr:/1", 60)});
        }
        return lead;
    }
    // Some or all of an image, as pieces that are in no run yet.
    void cut(const ImageInfo& image, std::uint64_t block, std::vector<StoredPiece>& pieces) {
        for (std::uint64_t at = 0; at < image.bytes;) {
            const std::uint64_t length = std::min(coin() ? (1 + below(4)) * block : 1 + below(4 * block), image.bytes - at);
            StoredPiece piece{image.rank, at, length, 0, {}, {}};
            for (std::uint64_t next = at; coin() && (next += 1 + below(2 * block)) < at + length;)
                if (next % block != 0) piece.cuts.push_back(next);
            for (std::uint64_t n = unit_count(block, at, piece.cuts, length); n > 0; --n) piece.checksums.push_back(number());
            if (below(5) != 0) pieces.push_back(piece);
            at += length;
        }
    }

    std::mt19937_64 engine_;
};

}  // namespace cairn::samples
