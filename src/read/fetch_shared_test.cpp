// Ranks of a node that fetch at the same time: each run that several of them need is read and decoded once, whatever they go through; and what is wrong is told by each whom it concerns.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "proof/cluster.hpp"
#include "read/fetch.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

// Four ranks on one node, then one on another; version 1 is committed.
class FetchShared : public ::testing::Test {
  protected:
    void commit(std::uint64_t image_bytes, Codec codec, std::size_t shelves = 16, std::uint32_t files = 1) {
        ClusterOptions o;
        o.files = files;
        o.ranks_per_node = {4, 1};
        o.image_bytes = [image_bytes](Rank rank, Version) { return image_bytes + 5'000 * rank; };
        o.settings.buffer_bytes = 1 << 16;
        o.settings.codec = codec;
        o.settings.merge_ranks = 4;
        o.settings.merge_bytes = 4096;
        o.model.codec_shrinks = true;
        o.share = shelves;
        cluster_ = std::make_unique<Cluster>(o);
        ASSERT_TRUE(cluster_->open_job().ok());
        ASSERT_TRUE(cluster_->capture_all(1).ok());
        ASSERT_TRUE(cluster_->run_until_committed(1, 60 * second));
        const Result<Manifest> manifest = cluster_->manifest_now(cluster_->key(1));
        ASSERT_TRUE(manifest.ok());
        manifest_ = *manifest;
        cluster_->sim.set_observer([this](sim::Process& process, const char* what, const std::string& detail) {
            if (process.name() != "rank") return;
            decodes_ += std::string(what) == "decode";
            part_reads_ += std::string(what) == "read" && detail.find("/part-") != std::string::npos;
        });
    }
    std::vector<ImagePlaces> places(std::vector<Rank> ranks) const {
        std::vector<ImagePlaces> places;
        for (const Rank rank : ranks) places.push_back({cluster_->key(1), rank, "", true});
        return places;
    }
    std::vector<Fetched> fetch(std::vector<Rank> ranks, std::optional<Cluster::Killed> killed = std::nullopt) {
        decodes_ = part_reads_ = 0;
        return cluster_->fetch_together(0, places(std::move(ranks)), cluster_->key(1), killed);
    }
    // One of five has not come when the others read: the names of what they share stay.
    std::vector<Fetched> fetch_without_one() {
        std::vector<ImagePlaces> all = places({0, 1, 2, 3});
        cluster_->share(0, all);
        for (ImagePlaces& each : all) each.shared->ranks.push_back(4);
        return cluster_->fetch_as_told(0, all, cluster_->key(1));
    }
    static void flip_on_shelves(sim::Process& process, const std::string& path, std::uint64_t at) {
        for (std::uint64_t shelf = 0; shelf < 16; ++shelf) (void)process.node().scratch().flip_bit(path, shelf * SharedRuns::shelf_bytes + at, 1).ok();
    }
    struct Sum {
        std::uint64_t made = 0, taken = 0, alone = 0;
        bool operator==(const Sum&) const = default;
    };
    static Sum sum_of(const std::vector<Fetched>& all) {
        Sum sum;
        for (const Fetched& each : all) sum = {sum.made + each.shared.made, sum.taken + each.shared.taken, sum.alone + each.shared.alone};
        return sum;
    }
    // Of all parts.
    OpenVersion opened() {
        Result<OpenVersion> version(Status(Code::deadline, ""));
        const auto open = [](World world, Layout layout, Manifest its, Result<OpenVersion>* out) -> Task<void> {
            Result<OpenVersion> got = co_await open_version(world, std::move(layout), std::move(its), every_rank, {});
            *out = std::move(got);
        };
        sim::Process& process = cluster_->hosts[0].node->start_process("reader");
        (void)cluster_->sim.run(open(process.world(), cluster_->layout, manifest_, &version), cluster_->sim.now() + 60 * second);
        process.kill();
        CAIRN_CHECK(version.ok());
        return std::move(version).value();
    }
    struct Runs {
        std::uint64_t encoded = 0;          // with pieces of ranks 0 to 3
        std::uint64_t made = 0, taken = 0;  // of several of them; by the others
        std::uint64_t shared_at = 0;  // where an encoded one lies in part 0
        std::set<Rank> shared_by;     // and whose pieces it has
        bool is_of_others = false;    // one is in the first part of one of its ranks, and not in that of another, say
    };
    Runs runs() {
        Runs runs;
        std::map<Rank, std::size_t> parts;  // before this one
        for (const Footer& footer : opened().footers) {
            std::set<Rank> of_part;
            for (const StoredRun& run : footer.runs) {
                std::set<Rank> whose;
                for (const StoredPiece& piece : run.pieces)
                    if (piece.rank < 4) whose.insert(piece.rank);
                of_part.insert(whose.begin(), whose.end());
                runs.encoded += run.codec != 0 && !whose.empty();
                if (whose.size() < 2) continue;
                ++runs.made;
                runs.taken += whose.size() - 1;
                for (const Rank rank : whose) runs.is_of_others |= parts[rank] != parts[*whose.begin()];
                if (run.codec == 0) continue;
                runs.shared_at = run.part_offset;
                runs.shared_by = whose;
            }
            for (const Rank rank : of_part) ++parts[rank];
        }
        return runs;
    }
    static void expect_ok(const std::vector<Fetched>& all) {
        for (const Fetched& each : all) EXPECT_TRUE(each.status.ok()) << each.status.to_string();
    }

    std::unique_ptr<Cluster> cluster_;
    Manifest manifest_;
    std::uint64_t decodes_ = 0, part_reads_ = 0;
};

TEST_F(FetchShared, EachMergedRunIsDecodedOnce) {
    commit(200'000, Codec::zero_runs);
    const Runs there = runs();
    const std::vector<Fetched> all = fetch({0, 1, 2, 3});
    expect_ok(all);
    EXPECT_GE(there.made, 10u);
    EXPECT_EQ(sum_of(all), (Sum{there.made, there.taken, 0}));
    EXPECT_EQ(decodes_, there.encoded);
}

TEST_F(FetchShared, SoIsEachPackOfSmallImages) {
    commit(9'000, Codec::zero_runs);
    const Runs there = runs();
    const std::vector<Fetched> all = fetch({0, 1, 2, 3});
    expect_ok(all);
    EXPECT_GT(there.made, 0u);
    EXPECT_EQ(sum_of(all), (Sum{there.made, there.taken, 0}));
    EXPECT_EQ(decodes_, there.encoded);
}

TEST_F(FetchShared, AndWhatIsStoredAsItIsIsReadOnce) {
    commit(9'000, Codec::none);
    std::uint64_t alone = 0;
    for (const Rank rank : {0, 1, 2, 3}) {
        expect_ok(fetch({rank}));
        alone += part_reads_;
    }
    const std::vector<Fetched> all = fetch({0, 1, 2, 3});
    expect_ok(all);
    EXPECT_GT(sum_of(all).taken, 0u);
    EXPECT_EQ(part_reads_, alone - sum_of(all).taken);
}

// The shelf of a run is the same for all, whichever parts they read besides.
TEST_F(FetchShared, SoItIsWhereRanksHaveOtherParts) {
    commit(200'000, Codec::zero_runs, 16, 3);
    const Runs there = runs();
    ASSERT_TRUE(there.is_of_others);
    const std::vector<Fetched> all = fetch({0, 1, 2, 3});
    expect_ok(all);
    EXPECT_EQ(sum_of(all), (Sum{there.made, there.taken, 0}));
    EXPECT_EQ(decodes_, there.encoded);
}

// However few shelves there are: what is ready is taken first, so nobody waits for what waits for him.
TEST_F(FetchShared, OneShelfIsEnough) {
    commit(200'000, Codec::zero_runs, 1);
    const std::vector<Fetched> all = fetch({0, 1, 2, 3});
    expect_ok(all);
    const Runs there = runs();
    EXPECT_EQ(sum_of(all), (Sum{there.made, there.taken, 0}));
}

TEST_F(FetchShared, OneThatIsKilledHoldsNobodyUpForEver) {
    commit(200'000, Codec::zero_runs, 4);
    std::uint64_t late = 0;
    const Nanos begun = cluster_->sim.now();
    (void)fetch({0, 1, 2, 3});
    const Nanos span = cluster_->sim.now() - begun;
    for (Nanos after = span / 20; after < span; after += span / 20) {
        const std::vector<Fetched> all = fetch({0, 1, 2, 3}, Cluster::Killed{1, after});
        for (const Rank rank : {0, 2, 3}) EXPECT_TRUE(all[rank].status.ok()) << all[rank].status.to_string();
        late += sum_of(all).alone;
    }
    EXPECT_GT(late, 0u);
}

// Whoever finds the shelves taken would wait for it otherwise.
TEST_F(FetchShared, OneWhoseRestoreFailsIsNotWaitedFor) {
    commit(200'000, Codec::zero_runs, 2);
    std::vector<ImagePlaces> all = places({0, 1, 2, 3});
    cluster_->share(0, all);
    all[1].key.version = 7;  // which nobody has taken
    const Nanos begun = cluster_->sim.now();
    const std::vector<Fetched> fetched = cluster_->fetch_as_told(0, all, cluster_->key(1));
    EXPECT_LT(cluster_->sim.now() - begun, RestoreSettings().io_wait);
    for (const Rank rank : {0, 1, 2, 3}) EXPECT_EQ(fetched[rank].status.ok(), rank != 1) << fetched[rank].status.to_string();
    EXPECT_GT(sum_of(fetched).taken, 0u);
}

TEST_F(FetchShared, WhereScratchHangsEveryoneReadsAlone) {
    commit(200'000, Codec::zero_runs);
    cluster_->sim.faults().hang_scratch = 1;
    cluster_->sim.faults().hang_never = 1;
    const std::vector<Fetched> all = fetch({0, 1, 2, 3});
    expect_ok(all);
    for (const Fetched& each : all) EXPECT_EQ(each.not_shared.code(), Code::deadline) << each.not_shared.to_string();
}

TEST_F(FetchShared, EachNamesItsOwnDamage) {
    commit(200'000, Codec::zero_runs);
    const Runs there = runs();
    ASSERT_GT(there.shared_by.size(), 1u);
    const std::string path = cluster_->layout.part(manifest_, 0);
    ASSERT_TRUE(cluster_->sim.persistent().flip_bit(path, there.shared_at + 200, 3).ok());
    const std::vector<Fetched> all = fetch({0, 1, 2, 3});
    for (const Rank rank : {0, 1, 2, 3}) {
        const bool is_hit = there.shared_by.count(rank) != 0;
        EXPECT_EQ(all[rank].status.code(), is_hit ? Code::corrupt : Code::ok) << all[rank].status.to_string();
        EXPECT_EQ(all[rank].status.text().find("rank " + std::to_string(rank)) != std::string::npos, is_hit) << all[rank].status.to_string();
    }
}

// A shelf whose bytes are others: whoever takes them reads the part itself, and nothing is damaged.
TEST_F(FetchShared, WhatAnotherMadeIsNotTrusted) {
    commit(200'000, Codec::zero_runs);
    std::uint64_t flips = 0;
    cluster_->sim.set_observer([&](sim::Process& process, const char* what, const std::string& detail) {
        if (std::string(what) != "read" || detail.find(".runs") == std::string::npos || flips > 8) return;
        flip_on_shelves(process, detail, 4096 * flips + 100);
        ++flips;
    });
    const std::vector<Fetched> fetched = fetch_without_one();
    expect_ok(fetched);
    EXPECT_GT(flips, 0u);
    EXPECT_GT(sum_of(fetched).alone, 0u);
}

// Nor is any piece of which some blocks are right.
TEST_F(FetchShared, NorIsWhatIsHalfRight) {
    commit(9'000, Codec::zero_runs);
    bool is_flipped = false;
    cluster_->sim.set_observer([&](sim::Process& process, const char* what, const std::string& detail) {
        if (std::string(what) != "read" || detail.find(".runs") == std::string::npos || std::exchange(is_flipped, true)) return;
        for (std::uint64_t at = 100; at < 80'000; at += 8192) flip_on_shelves(process, detail, at);
    });
    const std::vector<Fetched> fetched = fetch_without_one();
    expect_ok(fetched);
    EXPECT_TRUE(is_flipped);
    EXPECT_GT(sum_of(fetched).alone, 0u);
}

}  // namespace
}  // namespace cairn
