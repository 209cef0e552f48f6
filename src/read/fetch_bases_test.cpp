// Ranks of a node that fetch a version at the same time which is stored as what changed since an older one: what several of them need of either is read and decoded once, and what is wrong with the older one is told by
// each whom it concerns.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "proof/cluster.hpp"
#include "read/fetch.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

// Four ranks on one node, then one on another. Version 1 is merged, and version 2, which is apart, needs it.
class FetchBases : public ::testing::Test {
  protected:
    void commit(std::size_t shelves = 16, std::uint32_t files = 1, std::uint64_t image_bytes = 200'000) {
        ClusterOptions o;
        o.files = files;
        o.ranks_per_node = {4, 1};
        o.image_bytes = [image_bytes](Rank rank, Version) { return image_bytes + 5'000 * rank; };
        o.settings.buffer_bytes = 1 << 16;
        o.settings.codec = Codec::planes;
        o.settings.full_every = 2;
        o.settings.encode_buffers = 2;
        o.settings.merge_ranks = 4;
        o.settings.merge_bytes = 4096;
        o.model.codec_shrinks = true;
        if (is_plain_) o.model.stored_min = 1.1;
        o.model.stored_max = is_plain_ ? 1.6 : 0.8;
        o.share = shelves;
        cluster_ = std::make_unique<Cluster>(o);
        ASSERT_TRUE(cluster_->open_job().ok());
        for (const Version version : {1, 2}) {
            ASSERT_TRUE(cluster_->capture_all(version).ok());
            ASSERT_TRUE(cluster_->run_until_committed(version, 60 * second));
        }
        const Result<Manifest> manifest = cluster_->manifest_now(cluster_->key(2));
        ASSERT_TRUE(manifest.ok());
        ASSERT_EQ(manifest->bases.size(), 1u);
        open(*manifest);
        note_needed();
        cluster_->sim.set_observer([this](sim::Process& process, const char* what, const std::string& detail) {
            if (process.name() != "rank") return;
            decodes_ += std::string(what) == "decode";
            part_reads_ += std::string(what) == "read" && detail.find("/part-") != std::string::npos;
        });
    }
    std::vector<ImagePlaces> places() const {
        std::vector<ImagePlaces> places;
        for (const Rank rank : {0, 1, 2, 3}) places.push_back({cluster_->key(2), rank, "", true});
        return places;
    }
    std::vector<Fetched> fetch(std::optional<Cluster::Killed> killed = std::nullopt) {
        decodes_ = part_reads_ = 0;
        return cluster_->fetch_together(0, places(), cluster_->key(2), killed);
    }
    static void expect_ok(const std::vector<Fetched>& all) {
        for (const Fetched& each : all) EXPECT_TRUE(each.status.ok()) << each.status.to_string();
    }
    static SharedRuns::Counts sum_of(const std::vector<Fetched>& all) {
        SharedRuns::Counts sum;
        for (const Fetched& each : all) {
            sum.made += each.shared.made;
            sum.taken += each.shared.taken;
            sum.alone += each.shared.alone;
            sum.taken_of_bases += each.shared.taken_of_bases;
        }
        return sum;
    }
    const OpenVersion& base() const { return version_.bases.at(0)->version; }

    bool is_plain_ = false;  // version 1
    std::unique_ptr<Cluster> cluster_;
    OpenVersion version_;
    std::uint64_t decodes_ = 0, part_reads_ = 0;
    std::uint64_t encoded_ = 0;         // runs with pieces of ranks 0 to 3
    std::uint64_t encoded_of_base_ = 0;  // that these need
    std::uint64_t shared_of_base_ = 0;  // how many of them others take, of all who need them
    std::optional<std::pair<std::uint64_t, std::set<Rank>>> shared_at_;  // where one lies in part 0, and who needs it

  private:
    // Of all parts.
    void open(const Manifest& manifest) {
        Result<OpenVersion> version(Status(Code::deadline, ""));
        const auto open = [](World world, Layout layout, Manifest its, Result<OpenVersion>* out) -> Task<void> {
            Result<OpenVersion> got = co_await open_version(world, std::move(layout), std::move(its), every_rank, {});
            *out = std::move(got);
        };
        sim::Process& process = cluster_->hosts[0].node->start_process("reader");
        (void)cluster_->sim.run(open(process.world(), cluster_->layout, manifest, &version), cluster_->sim.now() + 60 * second);
        process.kill();
        ASSERT_TRUE(version.ok()) << version.status().to_string();
        version_ = std::move(version).value();
    }
    // Whose runs of the version need which of the base.
    void note_needed() {
        std::map<std::pair<std::size_t, std::size_t>, std::set<Rank>> needed;
        encoded_ = encoded_of_base_ = shared_of_base_ = 0;
        for (const Footer& footer : version_.footers)
            for (const StoredRun& run : footer.runs) {
                encoded_ += run.codec != 0 && run.pieces.front().rank < 4;
                for (const StoredPiece& piece : run.pieces)
                    for (const PiecePlace& place : base().pieces(piece.rank)) {
                        const StoredPiece& older = base().piece(place);
                        const bool meets = older.image_offset < piece.image_offset + piece.length && piece.image_offset < older.image_offset + older.length;
                        if (run.base != 0 && piece.rank < 4 && meets) needed[{place.footer, place.run}].insert(piece.rank);
                    }
            }
        for (const auto& [place, ranks] : needed) {
            const StoredRun& run = base().footers[place.first].runs[place.second];
            encoded_of_base_ += run.codec != 0;
            shared_of_base_ += ranks.size() - 1;
            if (ranks.size() > 1 && base().footers[place.first].part == 0) shared_at_ = std::pair(run.part_offset, ranks);
        }
    }
};

TEST_F(FetchBases, EachRunOfTheBaseIsDecodedOnce) {
    commit();
    const std::vector<Fetched> all = fetch();
    expect_ok(all);
    EXPECT_GE(encoded_of_base_, 10u);
    EXPECT_GE(shared_of_base_, encoded_of_base_);
    EXPECT_EQ(decodes_, encoded_ + encoded_of_base_);
    EXPECT_EQ(sum_of(all).taken_of_bases, shared_of_base_);
    EXPECT_EQ(sum_of(all).alone, 0u);
}

TEST_F(FetchBases, SoItIsWhereRanksHaveOtherParts) {
    commit(16, 3);
    expect_ok(fetch());
    EXPECT_EQ(decodes_, encoded_ + encoded_of_base_);
}

TEST_F(FetchBases, WhatIsStoredAsItIsIsReadOnce) {
    is_plain_ = true;
    commit(2);
    const std::vector<Fetched> all = fetch();
    expect_ok(all);
    EXPECT_EQ(encoded_of_base_, 0u);
    EXPECT_EQ(decodes_, encoded_);
    EXPECT_EQ(sum_of(all).alone, 0u);
    EXPECT_EQ(sum_of(all).taken_of_bases, shared_of_base_);
}

// What is ready is taken whatever a rank waits for, and so nobody waits in a circle.
TEST_F(FetchBases, OneShelfIsEnough) {
    commit(2);
    const Nanos begun = cluster_->sim.now();
    expect_ok(fetch());
    EXPECT_EQ(decodes_, encoded_ + encoded_of_base_);
    EXPECT_LT(cluster_->sim.now() - begun, RestoreSettings().io_wait);
}

TEST_F(FetchBases, WithoutAShelfEachDecodesForItself) {
    commit(1);
    expect_ok(fetch());
    EXPECT_GT(decodes_, encoded_ + encoded_of_base_);
}

// Who has no memory for what is ready waits for no shelf.
TEST_F(FetchBases, WithoutMemoryNobodyWaitsInACircle) {
    commit(4);
    cluster_->options.restore.encoded_bytes = 1;
    const Nanos begun = cluster_->sim.now();
    expect_ok(fetch());
    EXPECT_LT(cluster_->sim.now() - begun, RestoreSettings().io_wait);
}

// Of an image many times as long.
TEST_F(FetchBases, MemoryIsForWhatIsStillNeeded) {
    commit(8, 1, 1'600'000);
    cluster_->options.restore.encoded_bytes = 512 << 10;
    expect_ok(fetch());
    EXPECT_GE(encoded_of_base_, 80u);
    EXPECT_EQ(decodes_, encoded_ + encoded_of_base_);
}

TEST_F(FetchBases, OneThatIsKilledCostsOneWait) {
    commit(8);
    std::uint64_t late = 0;
    const Nanos begun = cluster_->sim.now();
    expect_ok(fetch());
    const Nanos span = cluster_->sim.now() - begun;
    for (Nanos after = span / 30; after < span; after += span / 30) {
        const Nanos killed = cluster_->sim.now();
        const std::vector<Fetched> all = fetch(Cluster::Killed{1, after});
        for (const Rank rank : {0, 2, 3}) EXPECT_TRUE(all[rank].status.ok()) << all[rank].status.to_string();
        EXPECT_LT(cluster_->sim.now() - killed, RestoreSettings().io_wait + 10 * span);
        late += sum_of(all).alone;
    }
    EXPECT_GT(late, 0u);
}

TEST_F(FetchBases, EachNamesWhatIsDamagedInTheBase) {
    commit();
    ASSERT_TRUE(shared_at_.has_value());
    ASSERT_TRUE(cluster_->sim.persistent().flip_bit(cluster_->layout.part(base().manifest, 0), shared_at_->first + 200, 3).ok());
    const std::vector<Fetched> all = fetch();
    for (const Rank rank : {0, 1, 2, 3}) {
        const std::string& text = all[rank].status.text();
        const bool is_hit = shared_at_->second.count(rank) != 0;
        EXPECT_EQ(all[rank].status.code(), is_hit ? Code::corrupt : Code::ok) << all[rank].status.to_string();
        if (!is_hit) continue;
        EXPECT_NE(text.find("needs version 1, its base: "), std::string::npos) << text;
        EXPECT_NE(text.find("rank " + std::to_string(rank)), std::string::npos) << text;
    }
}

// Shelves whose bytes are others: whoever takes them reads the base itself, and nothing is damaged.
TEST_F(FetchBases, WhatAnotherMadeOfTheBaseIsNotTrusted) {
    commit();
    std::uint64_t flips = 0;
    cluster_->sim.set_observer([&](sim::Process& process, const char* what, const std::string& detail) {
        if (std::string(what) != "read" || detail.find(".runs") == std::string::npos || ++flips > 8) return;
        for (std::uint64_t shelf = 0; shelf < 16; ++shelf)
            for (std::uint64_t at = 100; at < 60'000; at += 4096) (void)process.node().scratch().flip_bit(detail, shelf * SharedRuns::shelf_bytes + at, 1).ok();
    });
    std::vector<ImagePlaces> all = places();
    cluster_->share(0, all);
    for (ImagePlaces& each : all) each.shared->ranks.push_back(4);  // who does not come: the names stay
    const std::vector<Fetched> fetched = cluster_->fetch_as_told(0, all, cluster_->key(2));
    expect_ok(fetched);
    EXPECT_GT(flips, 0u);
    EXPECT_GT(sum_of(fetched).alone, 0u);
}

}  // namespace
}  // namespace cairn
