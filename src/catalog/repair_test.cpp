// Repair of a lineage, killed at each of its operations, and beside a job that opens.
#include "catalog/repair.hpp"

#include <gtest/gtest.h>

#include "proof/cluster.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

class RepairTest : public ::testing::Test {
  protected:
    // Version 1 of one job; another one went on from it and committed 2.
    RepairTest() : cluster_(options()) {
        take(1);
        first_ = cluster_.roster;
        CAIRN_CHECK(cluster_.open_job().ok());
        cluster_.roster.parent = {first_.incarnation, 1};
        (void)run<Status>([&](World& world) { return record_parent(world, cluster_.layout, "series", cluster_.roster.epoch, {cluster_.roster.incarnation, cluster_.roster.parent}, never); });
        CAIRN_CHECK(cluster_.hosts[0].daemon->join(std::make_shared<const Roster>(cluster_.roster), 0).ok());
        CAIRN_CHECK(cluster_.capture_all(2).ok() && cluster_.run_until_committed(2, 60 * second));
    }
    static ClusterOptions options() {
        ClusterOptions o;
        o.ranks_per_node = {1};
        return o;
    }
    void take(Version version) {
        CAIRN_CHECK(cluster_.open_job().ok());
        CAIRN_CHECK(cluster_.capture_all(version).ok() && cluster_.run_until_committed(version, 60 * second));
    }

    // In a process of its own; nothing where it was killed after so many operations.
    template <class R>
    std::optional<R> run(const std::function<Task<R>(World&)>& make, std::uint64_t operations = UINT64_MAX) {
        sim::Process& process = cluster_.hosts[0].node->start_process("command");
        World world = process.world();
        std::optional<R> result;
        const auto task = [](World& w, const std::function<Task<R>(World&)>& m, std::optional<R>* out) -> Task<void> {
            R made = co_await m(w);
            *out = std::move(made);
        };
        std::uint64_t seen = 0;
        cluster_.sim.set_observer([&](sim::Process& of, const char*, const std::string&) {
            if (&of == &process && seen++ == operations) cluster_.sim.at(cluster_.sim.now(), [&process] { process.kill(); });
        });
        (void)cluster_.sim.run(task(world, make, &result), cluster_.sim.now() + 60 * second);
        cluster_.sim.set_observer(nullptr);
        process.kill();
        return result;
    }
    std::optional<Result<Repair>> repair(bool forget = false, std::uint64_t operations = UINT64_MAX) {
        RepairOptions options;
        options.forget = forget;
        return run<Result<Repair>>([=, this](World& world) { return repair_lineage(world, cluster_.layout, "series", {}, options); }, operations);
    }
    LineageRecords records() {
        auto read = run<Result<LineageRecords>>([&](World& world) { return read_lineage(world, cluster_.layout, "series", never); });
        EXPECT_TRUE(read && read->ok());
        return read && read->ok() ? std::move(**read) : LineageRecords();
    }
    void flip(const std::string& path, std::uint64_t byte = 60) { EXPECT_TRUE(cluster_.sim.persistent().flip_bit(path, byte, 3).ok()) << path; }
    Version newest() {
        const auto found = cluster_.newest_committed();
        EXPECT_TRUE(found.ok()) << found.status().to_string();
        return found.ok() && *found ? (*found)->key.version : 0;
    }

    void claim_above(std::uint64_t epoch) {
        const auto claimed = run<Result<std::uint64_t>>([&](World& world) {
            OpenRecord record;
            record.incarnation = world.random.id();
            record.ranks = 1;
            return claim_epoch(world, cluster_.layout, "series", record, 0, never);
        });
        ASSERT_TRUE(claimed && claimed->ok());
        EXPECT_GT(**claimed, epoch) << "an epoch stays taken";
    }

    Cluster cluster_;
    Roster first_;
};

TEST_F(RepairTest, WritesWhatManifestsTell) {
    const LineageRecords before = records();
    for (const LineageEntry& entry : before.opens) {
        flip(cluster_.layout.lineage_open("series", entry.open.epoch));
        if (entry.from) flip(cluster_.layout.lineage_from("series", entry.open.epoch));
    }
    EXPECT_EQ(newest(), 2u) << "manifests tell all of it";
    const auto repaired = repair();
    ASSERT_TRUE(repaired && repaired->ok());
    EXPECT_EQ((*repaired)->done.size(), 3u);
    EXPECT_TRUE((*repaired)->left.empty());
    const LineageRecords after = records();
    ASSERT_EQ(after.opens.size(), before.opens.size());
    for (std::size_t i = 0; i < after.opens.size(); ++i) {
        EXPECT_FALSE(after.opens[i].open_damage || after.opens[i].from_damage);
        EXPECT_EQ(after.opens[i].open.incarnation, before.opens[i].open.incarnation);
        EXPECT_EQ(after.opens[i].open.ranks, before.opens[i].open.ranks);
        EXPECT_EQ(after.opens[i].from, before.opens[i].from);
    }
}

TEST_F(RepairTest, KilledAnywhereItLosesNothing) {
    const std::uint64_t epoch = cluster_.roster.epoch;
    bool ended = false;
    for (std::uint64_t operations = 0; !ended && operations < 200; ++operations) {
        SCOPED_TRACE(operations);
        flip(cluster_.layout.lineage_open("series", epoch));
        flip(cluster_.layout.lineage_from("series", epoch));
        ended = repair(false, operations).has_value();
        EXPECT_EQ(newest(), 2u);
        if (operations % 8 == 0) claim_above(epoch);
        const auto again = repair();
        ASSERT_TRUE(again && again->ok());
        EXPECT_TRUE((*again)->left.empty());
        const LineageRecords after = records();
        for (const LineageEntry& entry : after.opens) EXPECT_FALSE(entry.open_damage || entry.from_damage) << entry.open.epoch;
        EXPECT_EQ(newest(), 2u);
    }
    EXPECT_TRUE(ended) << "it came to its end at last";
}

TEST_F(RepairTest, WhatNothingTellsIsForgottenWhenAskedFor) {
    CAIRN_CHECK(cluster_.open_job().ok());  // goes back to version 1, and commits nothing
    const std::uint64_t epoch = cluster_.roster.epoch;
    const FromRecord from{cluster_.roster.incarnation, {first_.incarnation, 1}};
    (void)run<Status>([&](World& world) { return record_parent(world, cluster_.layout, "series", epoch, from, never); });
    EXPECT_EQ(newest(), 1u);
    const std::string path = cluster_.layout.lineage_from("series", epoch);
    flip(path);
    const auto refused = cluster_.newest_committed();
    EXPECT_EQ(refused.code(), Code::corrupt) << "it may have gone back, and it did";
    EXPECT_NE(refused.status().text().find(path), std::string::npos) << refused.status().text();
    auto repaired = repair();
    ASSERT_TRUE(repaired && repaired->ok());
    EXPECT_TRUE((*repaired)->done.empty());
    ASSERT_EQ((*repaired)->left.size(), 1u);
    EXPECT_NE((*repaired)->left[0].text().find("--forget"), std::string::npos);
    EXPECT_FALSE(cluster_.newest_committed().ok());
    repaired = repair(true);
    ASSERT_TRUE(repaired && repaired->ok());
    EXPECT_TRUE((*repaired)->left.empty());
    EXPECT_EQ(newest(), 2u);
}

// An open that left nothing: its record is written anew as nobody's, which keeps its epoch.
TEST_F(RepairTest, AnOpenThatLeftNothingIsNobodys) {
    CAIRN_CHECK(cluster_.open_job().ok());
    const std::uint64_t epoch = cluster_.roster.epoch;
    flip(cluster_.layout.lineage_open("series", epoch));
    EXPECT_EQ(newest(), 2u);
    const auto repaired = repair();
    ASSERT_TRUE(repaired && repaired->ok());
    EXPECT_TRUE((*repaired)->left.empty());
    EXPECT_EQ(records().opens.back().open.epoch, epoch);
    EXPECT_EQ(newest(), 2u);
    // The job that began with it runs on, and commits.
    CAIRN_CHECK(cluster_.capture_all(3).ok());
    EXPECT_TRUE(cluster_.run_until_committed(3, 60 * second)) << cluster_.state(0, 3).failure.to_string();
}

}  // namespace
}  // namespace cairn
