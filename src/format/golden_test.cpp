// Golden files: what each version of the format looks like, checked in under tests/golden. Today's reader reads them to
// the same values; today's writer writes the current version's byte for byte. `CAIRN_WRITE_GOLDEN=1 test_format` writes
// those of the current version that are absent: a file that is there is never changed, a changed format is a new
// version.
#include <flatbuffers/flatbuffers.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "format/region_index.hpp"
#include "format/samples.hpp"

namespace cairn {
namespace {

std::filesystem::path golden(const std::string& file, std::uint32_t version = format_version) {
    return std::filesystem::path(CAIRN_GOLDEN) / ("v" + std::to_string(version)) / file;
}

// As an earlier version wrote it.
Bytes read_old_golden(const std::string& file, std::uint32_t version) {
    std::ifstream stream(golden(file, version), std::ios::binary);
    return to_bytes(std::string(std::istreambuf_iterator<char>(stream), {}));
}

// The golden file; written first when asked for and absent. Empty when it is not there.
Bytes read_golden(const std::string& file, const Bytes& made_now) {
    const auto path = golden(file);
    if (std::getenv("CAIRN_WRITE_GOLDEN") && !std::filesystem::exists(path)) {
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(made_now.data()), static_cast<std::streamsize>(made_now.size()));
    }
    std::ifstream stream(path, std::ios::binary);
    return to_bytes(std::string(std::istreambuf_iterator<char>(stream), {}));
}

// FlatBuffers promises what its bytes mean, not how a later library arranges them; those here were arranged by 2.0.
constexpr bool same_arrangement = FLATBUFFERS_VERSION_MAJOR == 2;

// `of_version_1`: where that version said something else.
template <class Value, class Encode, class Decode>
void expect_golden(const std::string& file, const Value& value, Encode encode_value, Decode decode_value, std::optional<Value> of_version_1 = {}) {
    const Bytes made_now = encode_value(value);
    const Bytes bytes = read_golden(file, made_now);
    const auto read = decode_value(bytes);
    ASSERT_TRUE(read.ok()) << file << ": " << read.status().to_string();
    EXPECT_TRUE(*read == value) << file;
    EXPECT_TRUE(*decode_value(made_now) == value) << file;
    EXPECT_TRUE(encode_value(*read) == bytes || !same_arrangement) << file << ": written otherwise than it was read";
    for (std::uint32_t version = 1; version < format_version; ++version) {
        const Bytes old = read_old_golden(file, version);
        if (old.empty()) continue;  // there was no such record
        const auto of_old = decode_value(old);
        ASSERT_TRUE(of_old.ok()) << file << " of version " << version << ": " << of_old.status().to_string();
        EXPECT_TRUE(*of_old == (version == 1 ? of_version_1.value_or(value) : value)) << file << " of version " << version;
    }
}

TEST(Golden, Records) {
    expect_golden("manifest", samples::manifest(), encode_manifest, decode_manifest, std::optional(samples::manifest_of_version_1()));
    expect_golden("manifest-abandoned", samples::tombstone(), encode_manifest, decode_manifest);
    expect_golden("manifest-roots", samples::manifest_with_roots(), encode_manifest, decode_manifest);
    expect_golden("manifest-abandoned-roots", samples::tombstone_with_roots(), encode_manifest, decode_manifest);
    expect_golden("roster-roots", samples::roster_with_roots(), encode_roster, decode_roster);
    expect_golden("image-header", samples::image_header(), encode_image_header, decode_image_header);
    expect_golden("roster", samples::roster(), encode_roster, decode_roster);
    expect_golden("node", samples::node_record(), encode_node_record, decode_node_record);
    expect_golden("io-node", samples::io_node_record(), encode_io_node_record, decode_io_node_record);
    expect_golden("open", samples::open_record(), encode_open_record, decode_open_record);
    expect_golden("from", samples::from_record(), encode_from_record, decode_from_record);
    expect_golden("tree-index", samples::trees(), encode_tree_index, decode_tree_index);
    expect_golden("from-looked", samples::from_record_looked(), encode_from_record, decode_from_record);
}

TEST(Golden, RegionIndex) {
    const auto encode_index = [](const std::vector<Region>& regions) { return encode_region_index(regions).bytes; };
    const auto decode_index = [](ByteView bytes) { return decode_region_index(bytes, 10'000); };
    expect_golden("region-index-described", samples::described_regions(), encode_index, decode_index);
}

TEST(Golden, Messages) {
    const char* const called[] = {"sealed", "noted", "lead",  "progress", "parts-done", "acknowledged",
                                  "leave",  "want",  "chunk", "ended",    "cancel",
                                  "shed",   "given", "take",  "taken",    "complete",   "opened",
                                  "share-done", "share-kept", "room", "roomed", "begun", "part-failed", "replace"};
    const std::vector<message::Message> messages = samples::messages();
    ASSERT_EQ(messages.size(), std::size(called));
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const std::string file = std::string("message-") + called[i];
        const Bytes bytes = read_golden(file, encode(messages[i]));
        const auto read = decode_message(bytes);
        ASSERT_TRUE(read.ok()) << file << ": " << read.status().to_string();
        EXPECT_TRUE(*read == messages[i]) << file;
        EXPECT_TRUE(encode(*read) == bytes || !same_arrangement) << file << ": written otherwise than it was read";
        // Of an older version only the sender matters (engine/router): its words may mean something else, or nothing.
        const auto old = decode_message(read_old_golden(file, 1));
        if (read_old_golden(file, 1).empty()) continue;  // there was no such message
        EXPECT_TRUE(old.ok() ? old->key == messages[i].key && old->from == messages[i].from : file == "message-share-done") << file;
    }
}

// A whole part, read as FORMAT.md tells a reader to: trailer, footer, every block against its checksum, every image put
// together.
void expect_part(const Bytes& bytes) {
    const auto place = decode_trailer(bytes, bytes.size());
    ASSERT_TRUE(place.ok()) << place.status().to_string();
    const auto footer = decode_footer(ByteView(bytes).subspan(place->offset, place->length), *place);
    ASSERT_TRUE(footer.ok()) << footer.status().to_string();
    EXPECT_EQ(*footer, samples::footer());
    for (const StoredRun& run : footer->runs) {
        const StoredPiece& piece = run.pieces.at(0);
        const ByteView data = ByteView(bytes).subspan(run.part_offset, run.stored_bytes);
        EXPECT_EQ(samples::block_checksums(data), piece.checksums) << "rank " << piece.rank;
        const Bytes image = samples::image_bytes(piece.rank);
        EXPECT_TRUE(std::equal(data.begin(), data.end(), image.begin(), image.end())) << "rank " << piece.rank;
    }
}

TEST(Golden, Part) {
    const Bytes bytes = read_golden("part", samples::part());
    expect_part(bytes);
    EXPECT_TRUE(samples::part() == bytes || !same_arrangement) << "written otherwise than it was read";
    expect_part(read_old_golden("part", 1));
}

// The part's tail alone: what fuzz_part starts from.
TEST(Golden, PartTail) {
    const Bytes tail = read_golden("part-tail", encode_footer(samples::footer()));
    const Bytes part = read_golden("part", samples::part());
    ASSERT_GT(tail.size(), part_trailer_bytes);
    ASSERT_LT(tail.size(), part.size());
    EXPECT_TRUE(std::equal(tail.rbegin(), tail.rend(), part.rbegin()));
}

// Runs of several pieces, and an encoded one.
TEST(Golden, PackedTail) {
    const Bytes tail = read_golden("part-tail-packed", encode_footer(samples::packed_footer()));
    const auto place = decode_trailer(tail, samples::packed_footer().data_bytes + tail.size());
    ASSERT_TRUE(place.ok()) << place.status().to_string();
    const auto footer = decode_footer(ByteView(tail).first(place->length), *place);
    ASSERT_TRUE(footer.ok()) << footer.status().to_string();
    EXPECT_EQ(*footer, samples::packed_footer());
    EXPECT_TRUE(encode_footer(*footer) == tail || !same_arrangement) << "written otherwise than it was read";
}

// FORMAT.md prints the tail; a print that nobody checks would soon be of another format.
TEST(Golden, TailAsFormatMdPrintsIt) {
    std::ifstream page(std::filesystem::path(CAIRN_GOLDEN) / "../../FORMAT.md");
    Bytes printed;
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("<!-- golden: part-tail -->")) inside = true;
        if (!inside || line.size() < 50 || line[8] != ':') continue;
        EXPECT_EQ(std::stoul(line.substr(0, 8), nullptr, 16), samples::footer().data_bytes + printed.size());
        for (std::size_t at = 10; at + 1 < 50 && line[at] != ' '; at += line[at + 2] == ' ' ? 3 : 2)
            printed.push_back(static_cast<std::byte>(std::stoul(line.substr(at, 2), nullptr, 16)));
    }
    EXPECT_TRUE(printed == read_golden("part-tail", encode_footer(samples::footer())));
}

// The golden manifest is of the golden part.
TEST(Golden, ManifestAndPartBelongTogether) {
    const Bytes part = read_golden("part", samples::part());
    const auto manifest = decode_manifest(read_golden("manifest", encode_manifest(samples::manifest())));
    const auto place = decode_trailer(part, part.size());
    ASSERT_TRUE(manifest.ok() && place.ok());
    const auto footer = decode_footer(ByteView(part).subspan(place->offset, place->length), *place);
    ASSERT_TRUE(footer.ok());
    Status status = check_footer_place(*place, manifest->parts[0]);
    if (status.ok()) status = check_part_of(*manifest, 0, *footer);
    EXPECT_TRUE(status.ok()) << status.to_string();
    const auto old = decode_manifest(read_old_golden("manifest", 1));
    const Bytes old_part = read_old_golden("part", 1);
    const auto old_place = decode_trailer(old_part, old_part.size());
    ASSERT_TRUE(old.ok() && old_place.ok());
    EXPECT_TRUE(check_footer_place(*old_place, old->parts[0]).ok() && check_part_of(*old, 0, *footer).ok()) << "a committed version of format 1";
}

}  // namespace
}  // namespace cairn
