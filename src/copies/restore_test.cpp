// What a disk or a careless person can do to a committed version, and how each is told; and who may publish a manifest.
#include "copies/restore.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/checksum.hpp"
#include "catalog/removal.hpp"
#include "copies/damaged_testing.hpp"
#include "format/part.hpp"
#include "model/checksum_units.hpp"
#include "proof/cluster.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;
using testing::Damaged;
using testing::DamagedEncoded;

// Images of several regions, most of which end within a block.
class DamagedRegions : public Damaged {
  protected:
    DamagedRegions() : Damaged([] {
        ClusterOptions o = options();
        o.block_bytes = 16'384;
        o.settings.buffer_bytes = 65'536;
        o.regions = 4;
        return o;
    }()) {}
    // Rank 0's image, opened anew.
    OpenVersion open() {
        sim::Process& process = cluster_.hosts[0].node->start_process("reader");
        Result<OpenVersion> version(Status(Code::deadline, ""));
        const auto task = [](World w, Layout l, Manifest m, Result<OpenVersion>& out) -> Task<void> {
            Result<OpenVersion> opened = co_await open_version(w, l, m, 0, {});
            out = std::move(opened);
        };
        EXPECT_TRUE(cluster_.sim.run(task(process.world(), cluster_.layout, manifest_, version), cluster_.sim.now() + 60 * second));
        process.kill();
        return std::move(version).value();
    }
    Status read(const OpenVersion& version, const Region& region) {
        sim::Process& process = cluster_.hosts[0].node->start_process("reader");
        Status status = deadline_passed("not read");
        const auto task = [](World w, Layout l, const OpenVersion& v, ImageRange range, Status& out) -> Task<void> {
            const ImageSink sink = [](std::uint64_t, Slice) { return Status(); };
            std::vector<ImageRange> ranges(1, range);
            Status restored = co_await restore_image(w, l, v, 0, std::move(ranges), sink, {});
            out = std::move(restored);
        };
        EXPECT_TRUE(cluster_.sim.run(task(process.world(), cluster_.layout, version, {region.offset, region.length}, status), cluster_.sim.now() + 60 * second));
        process.kill();
        return status;
    }
    void flip(const OpenVersion& version, std::uint64_t image_offset) {
        for (const PiecePlace& place : version.pieces(0)) {
            const StoredPiece& piece = version.piece(place);
            if (image_offset < piece.image_offset || image_offset >= piece.image_offset + piece.length) continue;
            const std::uint64_t at = version.run(place).part_offset + piece.at + image_offset - piece.image_offset;
            ASSERT_TRUE(cluster_.sim.persistent().flip_bit(part(version.parts[place.footer]), at, 3).ok());
        }
    }
};

TEST_F(DamagedRegions, OneIsVerifiedWithoutAByteOfItsNeighbour) {
    const OpenVersion version = open();
    const std::vector<Region>& regions = version.image(0)->regions;
    ASSERT_EQ(regions.size(), 4u);
    const Region &damaged = regions[2], &neighbour = regions[3];
    ASSERT_GE(damaged.length, unit_bytes_min);
    ASSERT_NE(neighbour.offset % 16'384, 0u) << "they are to meet within a block";
    flip(version, damaged.offset + damaged.length - 1);
    const Status status = read(version, damaged);
    EXPECT_EQ(status.code(), Code::corrupt) << status.to_string();
    EXPECT_NE(status.text().find("region state-2: checksum differs"), std::string::npos) << status.text();
    EXPECT_TRUE(read(version, neighbour).ok()) << read(version, neighbour).to_string();
    const std::vector<Damage> all = verify();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all.front().region, "state-2");
}

TEST_F(DamagedEncoded, NothingIsFoundAndAllIsShorter) {
    EXPECT_TRUE(verify().empty());
    EXPECT_TRUE(cluster_.check_committed(manifest_.key).ok());
    for (std::size_t i = 0; i < manifest_.parts.size(); ++i) {
        const Footer footer = footer_of(i);
        ASSERT_FALSE(footer.runs.empty());
        EXPECT_EQ(footer.codecs, (std::vector<CodecName>{{"zero-runs", ""}}));
        for (const StoredRun& run : footer.runs) EXPECT_TRUE(run.codec == 1 && run.stored_bytes < raw_bytes(run));
    }
}

// A reader's buffer is one block here, and most runs are larger.
TEST_F(DamagedEncoded, ReadersTogetherTakeABoundedAmountOfMemory) {
    std::size_t runs = 0, large = 0;
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < manifest_.parts.size(); ++i)
        for (const StoredRun& run : footer_of(i).runs) {
            ++runs;
            large += run.stored_bytes > 4096 ? 1 : 0;
            largest = std::max(largest, round_up(run.stored_bytes, 4096) + round_up(raw_bytes(run), 4096));
        }
    ASSERT_GE(runs, 8u);
    ASSERT_GT(large, runs / 2);
    RestoreSettings settings;
    settings.buffer_bytes = 4096;
    settings.encoded_bytes = 1;  // one at a time
    EXPECT_TRUE(verify(settings).empty());
    EXPECT_LE(memory_peak_, settings.readers * settings.buffer_bytes + largest);
    settings.encoded_bytes = 2 * largest;
    EXPECT_TRUE(verify(settings).empty());
    EXPECT_GT(memory_peak_, settings.readers * settings.buffer_bytes + largest);
    EXPECT_LE(memory_peak_, settings.readers * settings.buffer_bytes + 2 * largest);
}

TEST_F(DamagedEncoded, AFlippedBitInWhatIsStoredIsNamed) {
    const StoredRun run = footer_of(1).runs.back();
    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(part(1), run.part_offset + run.stored_bytes - 1, 5).ok());
    expect_corrupt(manifest_.parts[1].file + " block " + std::to_string(run.part_offset / 4096) + ", rank " + std::to_string(run.pieces[0].rank));
    const std::vector<Damage> damage = verify();
    ASSERT_EQ(damage.size(), run.pieces.size());
    EXPECT_EQ(damage[0].rank, run.pieces[0].rank);
    EXPECT_NE(damage[0].status.text().find("encoded bytes"), std::string::npos) << damage[0].status.text();
}

// No memory, no time, no thread: nothing is known of the run then. What was found before is told all the same.
TEST_F(DamagedEncoded, WhatKeepsThisMachineFromDecodingIsNoDamage) {
    for (const Code code : {Code::out_of_space, Code::deadline, Code::unavailable, Code::io_error}) {
        const Result<std::vector<Damage>> found = look({}, Status(code, "it can not"));
        EXPECT_EQ(found.code(), code);
        EXPECT_NE(found.status().text().find(": run at "), std::string::npos) << found.status().to_string();
    }
    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(part(0), 0, 5).ok());
    RestoreSettings one;
    one.readers = 1;
    const Result<std::vector<Damage>> found = look(one, Status(Code::out_of_space, "it can not"));
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(found->front().status.code(), Code::corrupt);
    EXPECT_EQ(found->back().status.code(), Code::out_of_space);
}

TEST_F(DamagedEncoded, ACodecThatNobodyKnowsIsNoDamage) {
    Footer footer = footer_of(0);
    ASSERT_FALSE(footer.runs.empty());
    footer.codecs.front().name = "newer-one";
    write_footer(0, footer);
    const std::vector<Damage> found = verify();
    EXPECT_FALSE(found.empty());
    for (const Damage& each : found) {
        EXPECT_EQ(each.status.code(), Code::unsupported);
        EXPECT_EQ(each.part, manifest_.parts[0].file);
    }
}

TEST_F(Damaged, NothingIsFoundWhereNothingIs) { EXPECT_TRUE(verify().empty()); }

TEST_F(Damaged, AFlippedBitIsNamedByPartBlockRankAndRegion) {
    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(part(1), 3 * 4096 + 100, 5).ok());
    expect_corrupt(manifest_.parts[1].file + " block 3");
    const std::vector<Damage> damage = verify();
    ASSERT_EQ(damage.size(), 1u);
    EXPECT_EQ(damage[0].part, manifest_.parts[1].file);
    EXPECT_EQ(damage[0].block, 3u);
    EXPECT_EQ(damage[0].rank, 2u);
    EXPECT_EQ(damage[0].region, "state");
}

// What another format begins with is of no image: it is compared, and hides nothing of what is.
TEST_F(Damaged, WhatStandsBeforeDataIsVerifiedAndHidesNothing) {
    Footer footer = footer_of(0);
    const Bytes prefix(4096, std::byte{7});
    footer.prefix_bytes = prefix.size();
    footer.prefix_checksum = checksum(prefix);
    for (StoredRun& run : footer.runs) run.part_offset += prefix.size();
    const auto inode = cluster_.sim.persistent().find(part(0));
    ASSERT_TRUE(inode.ok());
    sim::Content& content = *(*inode)->content;
    content.write(prefix.size(), content.read(0, footer.data_bytes));
    content.write(0, sim::runs_of_bytes(prefix));
    const PartInfo& info = manifest_.parts[0];
    footer.data_bytes += prefix.size();
    write_footer(0, footer);
    EXPECT_TRUE(verify().empty());
    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(part(0), 4095, 1).ok());
    std::vector<Damage> found = verify();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].part, info.file);
    EXPECT_TRUE(found[0].of_no_image);
    EXPECT_NE(found[0].status.text().find("what stands before its data is damaged"), std::string::npos) << found[0].status.text();
    footer.runs.pop_back();
    write_footer(0, footer);
    found = verify();
    EXPECT_FALSE(found.front().of_no_image) << found.front().status.text();
    EXPECT_TRUE(found.back().of_no_image);
}

// Reads that do not come back are damage, too; they must not end the look at all that lies behind them.
TEST(Verify, ReadsThatHangHideNoDamage) {
    for (const double hang_io : {0.04, 0.9}) {
        ClusterOptions options;
        options.image_bytes = [](Rank, Version) { return 400'000; };
        Cluster cluster(options);
        ASSERT_TRUE(cluster.open_job().ok());
        ASSERT_TRUE(cluster.capture_all(1).ok());
        ASSERT_TRUE(cluster.run_until_committed(1, 60 * second));
        const Manifest manifest = **cluster.newest_committed();
        const std::string last = cluster.layout.version(manifest.key) + "/" + manifest.parts.back().file;
        ASSERT_TRUE(cluster.sim.persistent().flip_bit(last, manifest.parts.back().footer_offset - 8192, 1).ok());
        Result<std::vector<Damage>> found(Status(Code::internal, ""));
        const auto task = [](World w, const Cluster& c, Manifest m, std::function<void(std::uint64_t)> begun,
                             Result<std::vector<Damage>>& out) -> Task<void> {
            RestoreSettings settings;
            settings.buffer_bytes = 4096;
            Result<std::vector<Damage>> damage = co_await verify_version(w, c.layout, m, settings, begun);
            out = std::move(damage);
        };
        const auto begun = [&](std::uint64_t) { cluster.sim.faults().hang_io = hang_io; };
        sim::Process& process = cluster.hosts[0].node->start_process("verify");
        EXPECT_TRUE(cluster.sim.run(task(process.world(), cluster, manifest, begun, found), cluster.sim.now() + 3600 * second));
        process.kill();
        ASSERT_TRUE(found.ok()) << found.status().to_string();
        const auto has = [&](const std::function<bool(const Damage&)>& what) { return std::any_of(found->begin(), found->end(), what); };
        EXPECT_TRUE(has([](const Damage& each) { return each.status.code() == Code::deadline; }));
        const bool is_all = !has([](const Damage& each) { return each.status.text().find("not looked at") != std::string::npos; });
        EXPECT_EQ(is_all, hang_io < 0.5);
        EXPECT_EQ(has([](const Damage& each) { return each.status.code() == Code::corrupt; }), is_all);
    }
}

TEST_F(Damaged, AFlippedBitInAFooterIsNamed) {
    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(part(0), manifest_.parts[0].footer_offset + 10, 1).ok());
    expect_corrupt(manifest_.parts[0].file);
    EXPECT_EQ(verify().size(), 1u);
}

// Whoever may write there can make a sparse part that says to have a footer of nearly 2 GiB.
class HugeFooter : public Damaged {
  protected:
    // The part's own tail, of a footer as large as it can be; what the manifest would say of it.
    PartInfo grow() {
        PartInfo info = manifest_.parts[0];
        const auto inode = cluster_.sim.persistent().find(part(0));
        CAIRN_CHECK(inode.ok());
        sim::Content& content = *(*inode)->content;
        Bytes trailer = sim::materialise(content.read(info.bytes - part_trailer_bytes, part_trailer_bytes));
        const std::uint64_t length = record_bytes_max;
        std::memcpy(trailer.data() + 8, &length, 8);
        const std::uint64_t checked = checksum(ByteView(trailer).first(32));
        std::memcpy(trailer.data() + 32, &checked, 8);
        info.bytes = info.footer_offset + length + part_trailer_bytes;
        content.resize(info.bytes);
        content.write(info.bytes - part_trailer_bytes, sim::runs_of_bytes(trailer));
        return info;
    }
    Status read(const PartInfo* expected) {
        sim::Process& process = cluster_.hosts[0].node->start_process("reader");
        Status status;
        const auto task = [](World w, std::string path, const PartInfo* info, Status& out) -> Task<void> {
            Result<Footer> footer = co_await read_footer(w, std::move(path), info, {});
            out = std::move(footer).status();
        };
        EXPECT_TRUE(cluster_.sim.run(task(process.world(), part(0), expected, status), cluster_.sim.now() + 60 * second));
        process.kill();
        return status;
    }
};

TEST_F(HugeFooter, OneThatIsNotInTheManifestIsNotRead) {
    PartInfo info = grow();
    info.footer_offset += 4096;
    const Status status = read(&info);
    EXPECT_EQ(status.code(), Code::corrupt);
    EXPECT_NE(status.text().find(info.file + ": its footer is not the one in the manifest"), std::string::npos) << status.to_string();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // with these whoever gets no memory dies
TEST_F(HugeFooter, WithoutMemoryForItItIsNamed) {
    const PartInfo info = grow();
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit less = before;
    less.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (512ull << 20);
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &less), 0);
    const Status status = read(&info);
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_EQ(status.code(), Code::out_of_space);
    EXPECT_NE(status.text().find(info.file + ": its footer: no memory for "), std::string::npos) << status.to_string();
}
#endif

TEST_F(Damaged, ATruncatedPartIsNamed) {
    ASSERT_TRUE(cluster_.sim.persistent().truncate(part(0), manifest_.parts[0].bytes - 1).ok());
    expect_corrupt(manifest_.parts[0].file);
}

// What a node that wrote to the part may see for a second or two after it was cut to its size; and what nobody may see for longer.
TEST_F(Damaged, APartThatIsTooLargeIsLookedAtAgain) {
    sim::FileSystem& files = cluster_.sim.persistent();
    const auto cut_after = [](World w, Nanos wait, sim::FileSystem& fs, std::string path, std::uint64_t bytes) -> Task<void> {
        co_await w.clock.sleep(wait);
        EXPECT_TRUE(fs.truncate(path, bytes).ok());
    };
    sim::Process& process = cluster_.hosts[0].node->start_process("cut");
    {
        ASSERT_TRUE(files.truncate(part(0), manifest_.parts[0].bytes + 4096).ok());
        World world = process.world();
        Gate gate(world.clock);
        gate.spawn(cut_after(world, 1500 * millisecond, files, part(0), manifest_.parts[0].bytes));
        EXPECT_TRUE(verify().empty());
        EXPECT_EQ(gate.active(), 0u);
    }
    ASSERT_TRUE(files.truncate(part(0), manifest_.parts[0].bytes + 4096).ok());
    expect_corrupt("in the manifest");
}

TEST_F(Damaged, AMissingPartIsNamed) {
    ASSERT_TRUE(cluster_.sim.persistent().lose(part(1)).ok());
    expect_corrupt("the part is missing");
    EXPECT_EQ(verify().size(), 1u);
}

TEST_F(Damaged, APartOfAnotherVersionIsNotTaken) {
    ASSERT_TRUE(cluster_.capture_all(2).ok());
    ASSERT_TRUE(cluster_.run_until_committed(2, 60 * second));
    const Manifest other = **cluster_.newest_committed();
    ASSERT_EQ(other.key.version, 2u);
    ASSERT_TRUE(cluster_.sim.persistent().lose(part(0)).ok());
    ASSERT_TRUE(cluster_.sim.persistent().publish(cluster_.layout.version(other.key) + "/" + other.parts[0].file, part(0), false, 0).ok());
    expect_corrupt(manifest_.parts[0].file);
    EXPECT_TRUE(cluster_.check_committed(other.key).ok());
}

TEST_F(Damaged, ADamagedManifestIsToldAndHidesNoOther) {
    ASSERT_TRUE(cluster_.capture_all(2).ok());
    ASSERT_TRUE(cluster_.run_until_committed(2, 60 * second));
    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(cluster_.layout.manifest(cluster_.key(2)), 60, 0).ok());
    const auto newest = cluster_.newest_committed();
    ASSERT_TRUE(newest.ok() && newest->has_value());
    EXPECT_EQ((*newest)->key.version, 1u);
}

// ---- who may publish ----

Status run_status(Cluster& cluster, Task<Status> task) {
    Status status(Code::deadline, "not done");
    const auto keep = [](Task<Status> t, Status& out) -> Task<void> {
        Status result = co_await t;
        out = std::move(result);
    };
    (void)cluster.sim.run(keep(std::move(task), status), cluster.sim.now() + 60 * second);
    return status;
}

TEST(Commit, ATombstoneFencesALatePublisherOut) {
    ClusterOptions options;
    options.image_bytes = [](Rank, Version) { return 2'000'000; };
    options.model.persistent_rate = 1e6;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    cluster.sim.run_until(cluster.sim.now() + second);  // in the middle of the flush
    sim::Process& process = cluster.hosts[1].node->start_process("gc");
    const Manifest tombstone = tombstone_of(cluster.key(1), cluster.roster.epoch, {}, cluster.roster.ranks);
    World world = process.world();
    const Status given_up = run_status(cluster, give_up_version(world, cluster.layout, tombstone, 10 * second));
    ASSERT_TRUE(given_up.ok()) << given_up.to_string();
    ASSERT_TRUE(cluster.sim.run_until([&] { return cluster.state(0, 1).final && cluster.state(1, 1).final; }, cluster.sim.now() + 120 * second));
    EXPECT_EQ(cluster.state(0, 1).failure.code(), Code::superseded);
    EXPECT_EQ(cluster.state(1, 1).level, Level::sealed);
    const auto newest = cluster.newest_committed();
    ASSERT_TRUE(newest.ok());
    EXPECT_FALSE(newest->has_value());
}

TEST(Commit, CancelStopsTheFlushOnAllNodes) {
    ClusterOptions options;
    options.image_bytes = [](Rank, Version) { return 2'000'000; };
    options.model.persistent_rate = 1e6;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    cluster.sim.run_until(cluster.sim.now() + second);
    const Status cancelled = run_status(cluster, cluster.hosts[1].daemon->cancel(cluster.key(1), cluster.sim.now() + 60 * second));
    EXPECT_TRUE(cancelled.ok()) << cancelled.to_string();
    ASSERT_TRUE(cluster.sim.run_until([&] { return cluster.state(0, 1).final; }, cluster.sim.now() + 60 * second));
    EXPECT_EQ(cluster.state(0, 1).failure.code(), Code::cancelled);
    EXPECT_FALSE((*cluster.newest_committed()).has_value());
    ASSERT_TRUE(cluster.capture_all(2).ok());  // and the next one is not hindered
    ASSERT_TRUE(cluster.run_until_committed(2, 120 * second));
    const Status late = run_status(cluster, cluster.hosts[0].daemon->cancel(cluster.key(2), cluster.sim.now() + 60 * second));
    EXPECT_EQ(late.code(), Code::already_exists);
}

TEST(Commit, FullStorageIsToldAndTheVersionCommitsWhenThereIsRoomAgain) {
    ClusterOptions options;
    options.image_bytes = [](Rank, Version) { return 2'000'000; };
    options.model.persistent_bytes_max = 3'000'000;
    Cluster cluster(options);
    ASSERT_TRUE(cluster.open_job().ok());
    ASSERT_TRUE(cluster.capture_all(1).ok());
    ASSERT_TRUE(cluster.sim.run_until([&] { return !cluster.state(1, 1).failure.ok(); }, cluster.sim.now() + 60 * second));
    EXPECT_EQ(cluster.state(1, 1).failure.code(), Code::out_of_space) << cluster.state(1, 1).failure.to_string();
    cluster.sim.model().persistent_bytes_max = UINT64_MAX;
    ASSERT_TRUE(cluster.run_until_committed(1, 120 * second)) << cluster.state(0, 1).failure.to_string() << cluster.state(1, 1).failure.to_string();
    EXPECT_TRUE(cluster.check_committed(cluster.key(1)).ok());
}

}  // namespace
}  // namespace cairn
