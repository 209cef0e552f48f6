// Random values of every kind that the format knows, valid ones: what is encoded comes back the same.
#pragma once

#include <random>

#include "format/samples.hpp"

namespace cairn::samples {

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

    std::vector<DescribedArray> described() {
        std::vector<DescribedArray> arrays;
        for (std::uint64_t n = coin() ? below(4) : 0; n > 0; --n) {
            DescribedArray& array = arrays.emplace_back(DescribedArray{text("Grid/Density", 20), static_cast<DataType>(1 + below(14)), coin(), {}, below(1000)});
            for (std::uint64_t axis = 1 + below(3); axis > 0; --axis) array.shape.push_back(1 + below(20));
            if (coin()) array.shape.back() = open_axis;
        }
        return arrays;
    }
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
                 r.length, {}, {}, described()};
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
                const std::uint64_t end = raw_bytes(run), before = run.pieces.empty() ? 0 : run.pieces.back().at;
                pieces[i].at = below(4) != 0 ? end : before + below(end - before + 1);  // some are, or begin with, bytes that others are, too
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
        const auto layout = static_cast<FileLayout>(below(4));
        if (layout == FileLayout::nodes) m.nodes = std::min(m.nodes, m.ranks);
        const std::uint32_t parts = layout == FileLayout::ranks ? m.ranks : layout == FileLayout::nodes ? m.nodes : 1 + below32(m.ranks);
        for (std::uint32_t part = 0; part < parts; ++part) {
            m.parts.push_back(manifest_part(m, {part, parts, m.attempt_id, layout, coin() ? 0 : below32(3)}));
            for (Rank rank = 0; rank < m.ranks; ++rank)
                if (rank % parts == part || (layout != FileLayout::ranks && below(4) == 0)) m.parts.back().ranks.push_back(rank);
        }
        add_bases(m);
        for (std::uint32_t node = layout == FileLayout::parts || coin() ? m.nodes : 0; node < m.nodes; ++node) m.node_targets.push_back("gv-client-" + std::to_string(below(3)));
        return m;
    }
    PartInfo manifest_part(const Manifest& m, const PartFileName& name) {
        PartInfo part = part_info(name.part, name.parts, m.attempt_id, m.block_bytes);
        part.file = part_file_name(name);
        part.root = below32(static_cast<std::uint32_t>(m.roots.size()) + 1);
        if (below(4) != 0) return part;
        part.index_bytes = part.bytes - part.footer_offset;
        part.bytes = 1 + number() % bytes_max;
        part.footer_offset = 0;
        return part;
    }
    // Older versions, each with some part that some ranks of this one need.
    void add_bases(Manifest& m) {
        const Version newest = m.key.version - 1;
        for (std::uint32_t base = 1; base <= std::min<Version>(newest, coin() ? 0 : below(3)); ++base) {
            m.bases.push_back({1 + below(newest), id()});
            const Id128 attempt = id();
            for (const std::uint32_t part : {1u, 4u}) {
                m.parts.push_back(manifest_part(m, {part, 5, attempt, FileLayout::parts, 0}));
                m.parts.back().origin = base;
                m.parts.back().ranks = {below32(m.ranks)};
            }
        }
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
        r.layout = static_cast<FileLayout>(below(4));
        if (r.layout == FileLayout::ranks) r.files = r.ranks;
        if (r.layout == FileLayout::nodes) r.files = static_cast<std::uint32_t>(std::count_if(r.members.begin(), r.members.end(), [](const Member& each) { return !each.ranks.empty(); }));
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

    TreeEntry tree_entry(std::string path, const std::vector<TreeEntry>& before) {
        TreeEntry e{std::move(path), static_cast<TreeEntryKind>(below(8)), below32(010000), below32(UINT32_MAX), below32(UINT32_MAX), {static_cast<std::int64_t>(number()), below32(1'000'000'000)}, {0, below32(1'000'000'000)}};
        if (e.kind == TreeEntryKind::symbolic_link) e.target = "/" + text("abc/.\xFF\n", 60);
        if (e.kind >= TreeEntryKind::character_device) e.major = below32(4096), e.minor = below32(1 << 20);
        if (e.kind == TreeEntryKind::hard_link && (e.link = below(before.size()), before[e.link].kind <= TreeEntryKind::hard_link) && before[e.link].kind != TreeEntryKind::file) e.kind = TreeEntryKind::directory, e.link = 0;
        if (e.kind == TreeEntryKind::file) {
            for (std::uint64_t n = coin() ? below(5) : 0; n > 0; --n) {
                e.holes.push_back({e.bytes + below(5000), 1 + below(100'000)});
                e.bytes = e.holes.back().offset + e.holes.back().length;
            }
            e.bytes += below(10'000);
            if (coin()) e.region = "r" + text("ab/", 5) + "r" + std::to_string(before.size());
            if (!valid_region_name(e.region)) e.region.clear();
        }
        for (std::uint64_t n = coin() ? below(3) : 0; n > 0; --n) e.attributes.push_back({"user." + std::to_string(9 - n), text("xyz", 50)});
        return e;
    }
    std::vector<Tree> trees() {
        std::vector<Tree> trees;
        for (std::uint64_t t = 0, n = below(3); t < n; ++t) {
            Tree& tree = trees.emplace_back(Tree{"tree" + std::to_string(t), {TreeEntry{}}});
            for (std::uint64_t i = 0, entries = below(20); i < entries; ++i) {
                const TreeEntry& last = tree.entries.back();
                const bool deeper = last.kind == TreeEntryKind::directory && !last.path.empty() && coin();
                const std::string name = std::to_string(100 + i) + text("!\xC3\xFF\n \"", 8);
                tree.entries.push_back(tree_entry(deeper ? last.path + "/" + name : name, tree.entries));
            }
        }
        return trees;
    }

    message::Message message() {
        const auto some_code = [&] { return static_cast<Code>(below(14)); };
        const auto some_text = [&] { return text("why: \n", 200); };
        const auto source = [&](std::uint64_t b) {
            return Source{below32(ranks_max), below(1000) * b, below(1ull << 40)};
        };
        message::Message m{id(), version_key(), below32(5000), text("addr:/1", 60), message::Cancel{}};
        switch (below(24)) {
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
                                            {part_info(0, 9, id(), 4096)}, number(), Card::unknown, coin() ? std::vector<message::CodecRate>{{"zero-runs", number(), number(), number(), number(), number(), number()}} : std::vector<message::CodecRate>(), number(), coin(), below32(99), {{below32(9), static_cast<Effort>(below(3)), number() % bytes_max, number() % bytes_max, number()}}};
                break;
            case 5:
                m.body = message::Acknowledged{id()};
                break;
            case 6:
                m.body = message::Leave{id()};
                break;
            case 7:
                m.body = message::Want{number(), source(1), static_cast<Reason>(below(256)), coin() ? "zero-runs" : "", 0, efforts(), coin()};
                break;
            case 8:
                if (coin()) m.body = message::Chunk{number(), some_code(), some_text(), {number(), number()}};
                else if (coin()) m.body = message::Chunk{number(), Code::ok, some_text(), {number(), number()}, {}, 1 + below(1000), number()};
                else m.body = message::Chunk{number(), Code::ok, some_text(), {number()}, {}, 0, 0, false, false, some_arrays()};
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
            case 20:
                m.body = message::Begun{images(10), block()};
                break;
            case 21:
                m.body = message::PartFailed{id(), below32(9), static_cast<Code>(1 + below(13)), some_text()};
                break;
            case 22:
                m.body = replace();
                break;
            default:
                break;
        }
        return m;
    }

  private:
    message::Replace replace() {
        const std::uint32_t part = below32(9);
        message::Replace value{id(), part, {}, {{below32(9), text("addr:/1", 60)}}};
        if (coin()) value.with.push_back({9 + below32(9), "t", 0, {{below32(9), 0, part_alignment * below(99), nodes(1)}}, part, 1 + below32(3)});
        return value;
    }
    std::vector<NodeSources> nodes(std::uint64_t block) {
        std::vector<NodeSources> nodes;
        for (std::uint64_t n = below(3); n > 0; --n) nodes.push_back({below32(9), {{below32(20), below(9) * block, below(1ull << 40)}}});
        return nodes;
    }
    std::vector<message::Work> work() { return {{below32(9), below(99) * part_alignment, below(99), nodes(4096)}}; }
    KeyEfforts efforts() {
        KeyEfforts keys;
        std::uint32_t key = 0;
        for (std::uint64_t n = below(4); n > 0; --n) keys.push_back({key += 1 + below32(3), static_cast<Effort>(below(3))});
        return keys;
    }
    std::vector<NumberArray> some_arrays() {
        std::vector<NumberArray> arrays;
        std::uint64_t end = 0;
        for (std::uint64_t n = below(4); n > 0; --n) {
            const auto width = static_cast<std::uint8_t>(1u << below(4));
            arrays.push_back({end + below(99), width * (1 + below(1000)), width, coin(), coin(), below32(99), below32(9999), below32(1 << 30)});
            end = arrays.back().offset + arrays.back().length;
        }
        return arrays;
    }
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
        lead.keys = efforts();
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
