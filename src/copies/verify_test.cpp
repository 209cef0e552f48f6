// What verification says of one piece, run or index, and that it hides nothing of another: runs that this Cairn can not decode beside those that it can, pieces that
// share their bytes, an index that nobody can use beside a part that can not be opened.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "copies/damaged_testing.hpp"
#include "copies/indexed_testing.hpp"
#include "format/part.hpp"
#include "model/checksum_units.hpp"
#include "world/sim/encoding.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;
using testing::Damaged;
using testing::DamagedEncoded;

// Small images share no run.
class DamagedApart : public Damaged {
  protected:
    DamagedApart() : Damaged([] {
        ClusterOptions o = options();
        o.settings.placement = Placement::contiguous;
        return o;
    }()) {}
};

TEST_F(DamagedApart, ARunOfAnUnknownCodecHidesNoOtherOfItsPart) {
    Footer footer = footer_of(0);
    ASSERT_GE(footer.runs.size(), 2u);
    StoredRun& unknown = footer.runs.front();
    const StoredRun known = footer.runs.back();
    const Rank its = unknown.pieces.front().rank, other = known.pieces.front().rank;
    ASSERT_NE(its, other);
    footer.codecs.push_back({"newer-one", "level=3"});
    unknown.codec = 1;
    unknown.stored_bytes -= 1;
    write_footer(0, footer);

    std::vector<Damage> found = verify();
    ASSERT_EQ(found.size(), unknown.pieces.size());
    EXPECT_EQ(found[0].status.code(), Code::unsupported);
    EXPECT_NE(found[0].status.text().find("newer-one"), std::string::npos) << found[0].status.text();
    EXPECT_EQ(found[0].part, manifest_.parts[0].file);
    EXPECT_EQ(found[0].block, unknown.part_offset / 4096);
    EXPECT_EQ(found[0].rank, its);
    EXPECT_EQ(restore(its).code(), Code::unsupported);
    EXPECT_TRUE(restore(other).ok()) << restore(other).to_string();

    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(part(0), known.part_offset + 100, 1).ok());
    found = verify();
    const auto is_damage = [](const Damage& damage) { return damage.status.code() == Code::corrupt; };
    ASSERT_EQ(std::count_if(found.begin(), found.end(), is_damage), 1);
    EXPECT_EQ(std::find_if(found.begin(), found.end(), is_damage)->rank, other);
    EXPECT_EQ(restore(other).code(), Code::corrupt);
}

// Its stored bytes are as they were written, and what they decode to is not what was captured.
TEST_F(DamagedEncoded, OnlyWhoDecodesFindsRawBytesThatAreWrong) {
    Footer footer = footer_of(0);
    const auto encoded = std::find_if(footer.runs.begin(), footer.runs.end(), [](const StoredRun& run) { return run.codec != 0; });
    ASSERT_NE(encoded, footer.runs.end());
    encoded->pieces.back().checksums.back() ^= 1;
    const StoredRun run = *encoded;
    write_footer(0, footer);

    EXPECT_TRUE(verify({}, VerifyDepth::stored).empty());
    EXPECT_EQ(decodes_, 0);
    EXPECT_EQ(verified_bytes_, manifest_.image_bytes);
    const std::vector<Damage> found = verify({}, VerifyDepth::decoded);
    EXPECT_GT(decodes_, 0);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].status.code(), Code::corrupt);
    EXPECT_EQ(found[0].part, manifest_.parts[0].file);
    EXPECT_EQ(found[0].block, run.part_offset / footer.block_bytes);
    EXPECT_EQ(found[0].rank, run.pieces.back().rank);
    EXPECT_FALSE(found[0].region.empty());
    EXPECT_EQ(restore(run.pieces.back().rank).code(), Code::corrupt);
}

TEST_F(DamagedEncoded, StoredBytesThatAreWrongAreFoundWithoutTheCodec) {
    Footer footer = footer_of(0);
    const auto encoded = std::find_if(footer.runs.begin(), footer.runs.end(), [](const StoredRun& run) { return run.codec != 0; });
    ASSERT_NE(encoded, footer.runs.end());
    footer.codecs[encoded->codec - 1] = {"newer-one", "level=3"};
    const StoredRun run = *encoded;
    write_footer(0, footer);
    RestoreSettings small;
    small.buffer_bytes = 4096;  // less than the run: it is not read into a reader's buffer
    for (const RestoreSettings& settings : {RestoreSettings{}, small}) EXPECT_TRUE(verify(settings, VerifyDepth::stored).empty());
    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(part(0), run.part_offset + run.stored_bytes / 2, 1).ok());
    for (const RestoreSettings& settings : {RestoreSettings{}, small}) {
        const std::vector<Damage> found = verify(settings, VerifyDepth::stored);
        EXPECT_EQ(decodes_, 0);
        ASSERT_EQ(found.size(), run.pieces.size());
        EXPECT_EQ(found[0].status.code(), Code::corrupt);
        EXPECT_EQ(found[0].block, run.part_offset / footer.block_bytes);
        EXPECT_EQ(found[0].rank, run.pieces.front().rank);
    }
}

TEST_F(DamagedEncoded, ARunWithABaseIsRefusedAndHidesNoOther) {
    ASSERT_TRUE(cluster_.capture_all(2).ok());
    ASSERT_TRUE(cluster_.run_until_committed(2, 60 * second));
    manifest_ = **cluster_.newest_committed();
    ASSERT_EQ(manifest_.key.version, 2u);
    const BaseVersion older{1, manifest_.key.incarnation};
    manifest_.bases.push_back(older);
    Footer footer = footer_of(0);
    footer.bases.push_back({older, 0, 0});
    footer.runs.front().base = 1;
    write_footer(0, footer);
    std::set<Rank> refused;
    for (const StoredPiece& piece : footer.runs.front().pieces) refused.insert(piece.rank);

    const std::vector<Damage> found = verify();
    ASSERT_EQ(found.size(), footer.runs.front().pieces.size());
    for (const Damage& each : found) {
        EXPECT_EQ(each.status.code(), Code::unsupported);
        EXPECT_NE(each.status.text().find("against a run of version 1"), std::string::npos) << each.status.text();
        EXPECT_TRUE(each.rank && refused.count(*each.rank));
    }
    std::size_t whole = 0;
    for (Rank rank = 0; rank < manifest_.ranks; ++rank) {
        const Status status = restore(rank);
        EXPECT_EQ(status.code(), refused.count(rank) ? Code::unsupported : Code::ok) << rank << ": " << status.to_string();
        whole += status.ok() ? 1 : 0;
    }
    EXPECT_GT(whole, 0u);
}

// The first run of each part anew, as differences to what its images were in version 1.
TEST_F(DamagedEncoded, RunsWithABaseAreReadInTheSimulatedWorld) {
    const std::string damaged = part(0);
    const std::uint64_t damaged_at = footer_of(0).runs.front().part_offset + 5;
    ASSERT_TRUE(cluster_.capture_all(2).ok());
    ASSERT_TRUE(cluster_.run_until_committed(2, 60 * second));
    manifest_ = **cluster_.newest_committed();
    const BaseVersion older{1, manifest_.key.incarnation};
    manifest_.bases.push_back(older);
    for (std::size_t i = 0; i < manifest_.parts.size(); ++i) {
        Footer footer = footer_of(i);
        footer.bases.push_back({older, 0, 0});
        footer.codecs.push_back({"predict-planes-zstd", ""});
        StoredRun& first = footer.runs.front();
        sim::Runs now, before;
        for (const StoredPiece& piece : first.pieces)
            for (const Version version : {Version(1), Version(2)})
                for (const sim::Run& run : sim::runs_of_description(Cluster::content_seed(older.incarnation, version, piece.rank), piece.image_offset, piece.length))
                    (version == 1 ? before : now).push_back(run);
        const double share = 1.9 * static_cast<double>(first.stored_bytes) / static_cast<double>(raw_bytes(first));  // halved, since there is a base
        const sim::Runs stored = sim::encode_runs(now, before, first.stored_bytes, share, share);
        ASSERT_FALSE(stored.empty());
        const auto inode = cluster_.sim.persistent().find(part(i));
        ASSERT_TRUE(inode.ok());
        (*inode)->content->write(first.part_offset, stored);
        first.stored_bytes = sim::length_of(stored);
        first.checksum = sim::checksum_of(stored);
        first.codec = static_cast<std::uint32_t>(footer.codecs.size());
        first.base = 1;
        write_footer(i, footer);
    }
    RestoreSettings small;
    small.buffer_bytes = 4096;
    small.encoded_bytes = 1;
    for (const RestoreSettings& settings : {RestoreSettings{}, small})
        for (const VerifyDepth depth : {VerifyDepth::stored, VerifyDepth::decoded}) {
            const std::vector<Damage> found = verify(settings, depth);
            EXPECT_TRUE(found.empty()) << found.front().status.to_string();
            EXPECT_EQ(verified_bytes_, manifest_.image_bytes);
        }
    for (Rank rank = 0; rank < manifest_.ranks; ++rank) EXPECT_TRUE(restore(rank).ok()) << restore(rank).to_string();

    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(damaged, damaged_at, 1).ok());
    for (const VerifyDepth depth : {VerifyDepth::stored, VerifyDepth::decoded}) {
        const std::vector<Damage> found = verify({}, depth);
        ASSERT_FALSE(found.empty());
        for (const Damage& each : found) EXPECT_NE(each.status.text().find("needs version 1, its base: "), std::string::npos) << each.status.text();
    }
}

// As a writer leaves them that finds the same blocks in two images: stored once, and two pieces refer to them.
TEST_F(DamagedApart, PiecesOfTwoRanksMayBeTheSameBytesOfARun) {
    constexpr std::uint64_t from = 2 * 4096, shared = 3 * 4096;
    Footer footer = footer_of(0);
    ASSERT_GE(footer.runs.size(), 2u);
    StoredRun &first = footer.runs.front(), &last = footer.runs.back();
    ASSERT_TRUE(first.pieces.size() == 1 && last.pieces.size() == 1);
    const StoredPiece& piece = first.pieces.front();
    StoredPiece &own = last.pieces.front(), taken = own;
    ASSERT_TRUE(piece.rank != own.rank && piece.image_offset == 0 && own.image_offset == 0 && piece.length > from + shared && own.length > shared);
    taken.length = shared;
    taken.at = from;
    taken.checksums.assign(piece.checksums.begin() + 2, piece.checksums.begin() + 5);
    own.image_offset = shared;
    own.length -= shared;
    own.checksums.erase(own.checksums.begin(), own.checksums.begin() + 3);
    last.part_offset += shared;
    last.stored_bytes -= shared;
    const Rank one = piece.rank, two = own.rank;
    first.pieces.push_back(taken);
    write_footer(0, footer);

    RestoreSettings blocks;
    blocks.buffer_bytes = 4096;  // unit by unit; else the run is read whole
    for (const RestoreSettings& settings : {RestoreSettings{}, blocks}) EXPECT_TRUE(verify(settings).empty());
    EXPECT_TRUE(restore(one).ok()) << restore(one).to_string();
    std::uint64_t bytes = 0;
    const ImageSink sink = [&](std::uint64_t offset, Slice data) {
        for (std::uint64_t at = 0; at < data.length; at += 4096) {
            const std::uint64_t length = std::min<std::uint64_t>(4096, data.length - at), in_image = offset + at;
            const bool is_shared = in_image < shared;
            EXPECT_TRUE(sim::content_equal(data.part(at, length), sim::describe(seed(is_shared ? one : two), length, is_shared ? in_image + from : in_image)));
        }
        bytes += data.length;
        return Status();
    };
    EXPECT_TRUE(restore(two, sink).ok());
    EXPECT_EQ(bytes, cluster_.options.image_bytes(two, 1));

    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(part(0), first.part_offset + from + 4096, 1).ok());
    for (const RestoreSettings& settings : {RestoreSettings{}, blocks}) {
        const std::vector<Damage> found = verify(settings);
        ASSERT_EQ(found.size(), 2u);
        EXPECT_EQ(found[0].block, found[1].block);
        EXPECT_EQ((std::set{*found[0].rank, *found[1].rank}), (std::set{one, two}));
    }
    EXPECT_EQ(restore(one).code(), Code::corrupt);
    EXPECT_EQ(restore(two, sink).code(), Code::corrupt);
}

// As a leader names it whose first file of this attempt lay on a target that died.
TEST(Verify, APartThatReplacedOneOfItsOwnAttemptIsReadUnderItsName) {
    sim::Simulation simulation{1, {}, {}};
    sim::Process& process = simulation.add_node().start_process("verify");
    testing::FilesInMemory files;
    const Layout layout{"/persistent"};
    Manifest manifest = testing::commit_by_hand(files, layout, std::vector<testing::IndexedImage>(2, testing::indexed_image({"a", "b", "c"})));
    const std::string first = layout.part(manifest, 1);
    manifest.parts[1].file = part_file_name({1, 2, manifest.attempt_id, FileLayout::parts, 1});
    ASSERT_TRUE(check_manifest(manifest).ok()) << check_manifest(manifest).to_string();
    ASSERT_NE(layout.part(manifest, 1), first);
    files.files[layout.part(manifest, 1)] = std::exchange(files.files.at(first), Bytes(100));
    const Result<Manifest> read_back = decode_manifest(encode_manifest(manifest));
    ASSERT_TRUE(read_back.ok()) << read_back.status().to_string();
    Result<std::vector<Damage>> found(Status(Code::deadline, ""));
    const auto task = [](World w, Layout l, Manifest m, Result<std::vector<Damage>>& out) -> Task<void> {
        Result<std::vector<Damage>> damage = co_await verify_version(w, l, m, {}, nullptr);
        out = std::move(damage);
    };
    ASSERT_TRUE(simulation.run(task(files.in(process.world()), layout, *read_back, found), 60 * second));
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_TRUE(found->empty()) << found->front().status.to_string();
}

// Of a part that can not be opened nobody can say whose bytes are damaged: no rank's, not rank 0's.
TEST(Verify, AnIndexThatNobodyCanUseIsToldBesideAPartThatCanNotBeOpened) {
    sim::Simulation simulation{1, {}, {}};
    sim::Process& process = simulation.add_node().start_process("verify");
    testing::FilesInMemory files;
    const Layout layout{"/persistent"};
    std::vector<testing::IndexedImage> images(2, testing::indexed_image({"a", "b", "c"}));
    images[0].bytes.back() ^= std::byte{1};  // before there are checksums of it
    const Manifest manifest = testing::commit_by_hand(files, layout, images);
    files.files.at(layout.part(manifest, 1)).back() ^= std::byte{1};
    Result<std::vector<Damage>> found(Status(Code::deadline, ""));
    const auto task = [](World w, Layout l, Manifest m, Result<std::vector<Damage>>& out) -> Task<void> {
        Result<std::vector<Damage>> damage = co_await verify_version(w, l, m, {}, nullptr);
        out = std::move(damage);
    };
    ASSERT_TRUE(simulation.run(task(files.in(process.world()), layout, manifest, found), 60 * second));
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    ASSERT_EQ(found->size(), 2u);
    const Damage &of_part = found->front(), &of_index = found->back();
    EXPECT_EQ(of_part.part, manifest.parts[1].file);
    EXPECT_FALSE(of_part.rank || of_part.block) << of_part.status.to_string();
    EXPECT_EQ(of_index.rank, 0u);
    EXPECT_EQ(of_index.region, region_index_name);
    EXPECT_FALSE(of_index.block);
}

// A part may only be away, with its root: an image of which it has some bytes is not damaged for that.
TEST(Verify, WhatAnImageLacksIsToldOfThePartThatCanNotBeOpened) {
    sim::Simulation simulation{1, {}, {}};
    sim::Process& process = simulation.add_node().start_process("verify");
    testing::FilesInMemory files;
    const Layout layout{"/persistent"};
    std::vector<std::string> names;
    for (int i = 0; i < 10'000; ++i) names.push_back("x" + std::to_string(i));
    Manifest manifest = testing::commit_by_hand(files, layout, std::vector<testing::IndexedImage>(2, testing::indexed_image(names)));
    Bytes& first = files.files.at(layout.part(manifest, 0));  // of rank 0 it has one block alone
    const Result<FooterPlace> place = decode_trailer(ByteView(first).last(part_trailer_bytes), first.size());
    ASSERT_TRUE(place.ok());
    Result<Footer> footer = decode_footer(ByteView(first).subspan(place->offset, place->length), *place);
    ASSERT_TRUE(footer.ok()) << footer.status().to_string();
    StoredRun& run = footer->runs.front();
    StoredPiece& piece = run.pieces.front();
    run.stored_bytes = piece.length = footer->block_bytes;
    piece.cuts = cuts_within(piece.cuts, 0, piece.length);
    piece.checksums.resize(unit_count(footer->block_bytes, 0, piece.cuts, piece.length));
    const Bytes tail = encode_footer(*footer);
    first.resize(footer->data_bytes);
    first.insert(first.end(), tail.begin(), tail.end());
    manifest.parts[0].bytes = first.size();
    manifest.parts[0].footer_checksum = footer_checksum(tail);
    files.files.erase(layout.part(manifest, 1));
    Result<std::vector<Damage>> found(Status(Code::deadline, ""));
    const auto task = [](World w, Layout l, Manifest m, Result<std::vector<Damage>>& out) -> Task<void> {
        Result<std::vector<Damage>> damage = co_await verify_version(w, l, m, {}, nullptr);
        out = std::move(damage);
    };
    ASSERT_TRUE(simulation.run(task(files.in(process.world()), layout, manifest, found), 60 * second));
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    ASSERT_EQ(found->size(), 1u) << found->back().status.to_string();
    EXPECT_EQ(found->front().part, manifest.parts[1].file);
}

}  // namespace
}  // namespace cairn
