// Fixed values for the tests of format/: the golden files are made of them, so never change one, add another. Random ones: random_samples.hpp.
#pragma once

#include <algorithm>

#include "base/checksum.hpp"
#include "format/image.hpp"
#include "format/lineage.hpp"
#include "format/manifest.hpp"
#include "format/message.hpp"
#include "format/part.hpp"
#include "format/roster.hpp"
#include "format/tree_index.hpp"
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

// A routed file of which the application said what lies in it, and memory beside it.
inline std::vector<Region> described_regions() {
    std::vector<Region> regions{{"out/restart.1", RegionKind::file, DataType::bytes, {5000}, 0, 5000, {}, {}, {}}, {"x", RegionKind::memory, DataType::f64, {5, 100}, 5056, 4000, {}, {}, {}}};
    regions[0].described = {{"Grid/Density", DataType::f64, false, {open_axis, 30}, 1000}, {"", DataType::u16, true, {4, 5}, 40}};
    return regions;
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

// One tree with an entry of every kind, and one with nothing in it.
inline std::vector<Tree> trees() {
    const TreeTime time{1'700'000'000, 123'456'789}, before_1970{-1, 999'999'999};
    Tree full{"ckpt.7", {{"", TreeEntryKind::directory, 0755, 1000, 100, time, time}}};
    full.entries.push_back({"a\xFF\n", TreeEntryKind::file, 04750, 0, 0, time, before_1970, 40, "ckpt.7/.cairn-file-1", {}, "", 0, 0, 0, {{"user.a", std::string("x\0y", 3)}, {"user.b", ""}}});
    full.entries.push_back({"core", TreeEntryKind::file, 0600, 1000, 100, time, time, 1'000'000, "", {{0, 4096}, {900'000, 100'000}}});
    full.entries.push_back({"d", TreeEntryKind::directory, 01777, 1000, 100, before_1970, time});
    full.entries.push_back({"d/empty", TreeEntryKind::file, 0400, 1000, 100, time, time});
    full.entries.push_back({"d/fifo", TreeEntryKind::fifo, 0644, 1000, 100, time, time});
    full.entries.push_back({"d/null", TreeEntryKind::character_device, 0666, 0, 0, time, time, 0, "", {}, "", 0, 1, 3});
    full.entries.push_back({"d/sda", TreeEntryKind::block_device, 0660, 0, 6, time, time, 0, "", {}, "", 0, 8, 0});
    full.entries.push_back({"d/socket", TreeEntryKind::socket, 0755, 1000, 100, time, time});
    full.entries.push_back({"same", TreeEntryKind::hard_link, 0, 0, 0, {}, {}, 0, "", {}, "", 2});
    full.entries.push_back({"up", TreeEntryKind::symbolic_link, 0777, 1000, 100, time, time, 0, "", {}, "../../etc/passwd"});
    return {full, {"ckpt.8", {{"", TreeEntryKind::directory, 0700, 0, 0, time, time}}}};
}
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
        message::Roomed{attempt_id, 0, 7, 8192},
        message::Begun{{image(0), image(2)}, block_bytes},
        message::PartFailed{attempt_id, 0, Code::deadline, "fsync: no answer for 30 s"},
        message::Replace{attempt_id, 0, {{1, "gv-client-2", 0, {{1, 0, 3 * block_bytes, nodes}}, 0, 1}}, {{0, "a:1"}}}};
    std::vector<message::Message> all;
    for (const message::Body& body : bodies) all.push_back({{0x5EC2E7, 0x5EC2E8}, key, 1, "a:1", body});
    return all;
}

}  // namespace cairn::samples
