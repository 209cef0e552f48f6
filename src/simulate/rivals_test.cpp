// The other strategies on small clusters: answers known by hand, and what tells one strategy from another.
#include <gtest/gtest.h>

#include "simulate/small_testing.hpp"

namespace cairn::simulate {
namespace {

double flush_s(Strategy strategy, const std::vector<std::string>& settings = {}) { return last(small(settings), of(strategy)).flush_s(); }

TEST(SimulateRivals, CardsBindThemTo) {  // 256 MiB a node at 100 MiB/s
    for (const Strategy strategy : {Strategy::at_offset, Strategy::every_node, Strategy::file_per_rank, Strategy::vertical, Strategy::orchestrated}) {
        SCOPED_TRACE(name_of(strategy));
        EXPECT_NEAR(flush_s(strategy), 2.56, 0.05);
        EXPECT_NEAR(flush_s(strategy, {"job.nodes=1", "job.files=1"}), 2.56, 0.05);
        EXPECT_NEAR(flush_s(strategy, {"job.network_share=0.5"}), 5.12, 0.1);
        EXPECT_NEAR(flush_s(strategy, {"job.images_bytes=[201326592, 201326592, 67108864, 67108864]"}), 3.84, 0.05);  // the fullest node has 384 MiB
    }
}

TEST(SimulateRivals, ServersAndTargetsBindThemToo) {
    for (const Strategy strategy : {Strategy::two_phase, Strategy::at_offset, Strategy::every_node, Strategy::file_per_rank, Strategy::vertical, Strategy::orchestrated}) {
        SCOPED_TRACE(name_of(strategy));
        EXPECT_NEAR(flush_s(strategy, {"storage.server_bytes_per_s=10 MiB"}), 51.2, 6);  // 2 GiB at 40 MiB/s; two_phase waits for data in between
        EXPECT_NEAR(flush_s(strategy, {"storage.target_bytes_per_s=5 MiB"}), 51.2, 6);
        EXPECT_NEAR(flush_s(strategy, {"storage.target_bytes_per_s=10 MiB", "storage.background=0.5"}), 51.2, 6);
    }
}

TEST(SimulateRivals, AFileLiesOnOneTargetUnlessItIsStriped) {
    for (const Strategy strategy : {Strategy::at_offset, Strategy::every_node}) {
        SCOPED_TRACE(name_of(strategy));
        EXPECT_NEAR(flush_s(strategy, {"job.files=1"}), 4, 0.05);  // 2 GiB at 512 MiB/s
        EXPECT_NEAR(flush_s(strategy, {"job.files=1", "storage.stripes=2"}), 2.56, 0.05);
    }
}

TEST(SimulateRivals, MoreFilesThanNodesAreOneANode) {
    for (const char* files : {"job.files=8", "job.files=16"}) EXPECT_NEAR(flush_s(Strategy::every_node, {files}), 2.56, 0.05) << files;
    EXPECT_EQ(answer(small({"job.files=16"}), of(Strategy::every_node)).files, 8u);
}

// A leader is sent what is not its own, a buffer at a time, and sends it on when it has it: 2 files of 1 GiB, of which 768 MiB come first.
TEST(SimulateRivals, TwoPhasesTakeTurns) {
    EXPECT_NEAR(flush_s(Strategy::two_phase, {"job.files=2"}), (1024 + 768) / 100.0, 0.3);
    EXPECT_NEAR(flush_s(Strategy::two_phase), 2.56, 0.05);  // a file a node: nothing is sent
}

TEST(SimulateRivals, WhoIsSynchronousBlocksTheApplication) {
    for (const Strategy strategy : {Strategy::two_phase, Strategy::at_offset}) {
        const VersionOutcome v = last(small(), of(strategy));
        EXPECT_EQ(v.capture_s, v.flush_s()) << name_of(strategy);
    }
    for (const Strategy strategy : {Strategy::every_node, Strategy::file_per_rank, Strategy::vertical, Strategy::orchestrated})
        EXPECT_NEAR(last(small(), of(strategy)).capture_s, 128.0 / 4096, 0.001) << name_of(strategy);
}

TEST(SimulateRivals, ARequestCostsItsTarget) {  // two requests of 64 MiB at 32 MiB/s, and half a second each
    const std::vector<std::string> one = {"job.nodes=1", "job.ranks_per_node=1", "job.files=1", "storage.target_bytes_per_s=32 MiB", "storage.request_us=500000"};
    EXPECT_NEAR(flush_s(Strategy::file_per_rank, one), 5, 0.05);
}

TEST(SimulateRivals, OneWriterReachesWhatOneCan) {
    EXPECT_NEAR(flush_s(Strategy::every_node, {"node.writer_bytes_per_s=20 MiB"}), 12.8, 0.2);
    EXPECT_NEAR(flush_s(Strategy::file_per_rank, {"node.writer_bytes_per_s=20 MiB"}), 6.4, 0.2);  // two write on a node
    EXPECT_NEAR(flush_s(Strategy::file_per_rank, {"node.client_bytes_per_s=20 MiB"}), 12.8, 0.2);
}

// Sixteen files at four a second: the last opens after 4 s, the one before a quarter of a second earlier, and both pass one card.
TEST(SimulateRivals, ManyFilesWaitForTheMetadataServer) {
    EXPECT_NEAR(flush_s(Strategy::file_per_rank, {"storage.metadata_ops_per_s=4"}), 3.75 + 2.56, 0.1);
    EXPECT_NEAR(flush_s(Strategy::every_node, {"storage.metadata_ops_per_s=4"}), 2 + 2.56, 0.1);  // eight
}

// Two files of each node on one target. Both at once halve it; one after the other they do not.
TEST(SimulateRivals, OneAfterTheOtherDoesNotCrowd) {
    const std::vector<std::string> crowd = {"storage.target_bytes_per_s=25 MiB", "storage.crowd=1"};
    EXPECT_NEAR(flush_s(Strategy::vertical, crowd), 20.48, 0.3);
    EXPECT_NEAR(flush_s(Strategy::orchestrated, crowd), 10.24, 0.3);
}

TEST(SimulateRivals, AFileThatLiesWholeOnOneTargetMayGetLessOfIt) {  // 2 GiB at 8 x 10 MiB/s
    const std::vector<std::string> half = {"storage.target_bytes_per_s=10 MiB", "storage.whole_files=0.5"};
    for (const Strategy strategy : {Strategy::file_per_rank, Strategy::vertical, Strategy::orchestrated}) EXPECT_NEAR(flush_s(strategy, half), 51.2, 1) << name_of(strategy);
    std::vector<std::string> striped = half;
    striped.push_back("storage.stripes=8");
    EXPECT_NEAR(flush_s(Strategy::file_per_rank, striped), 25.6, 0.5);
}

TEST(SimulateRivals, TheConstantIsThePartOfTheCardsThatIsReached) {
    EXPECT_NEAR(flush_s(Strategy::file_per_rank, {"rivals.file_per_rank=0.5"}), 5.12, 0.05);
    EXPECT_NEAR(flush_s(Strategy::file_per_rank, {"rivals.every_node=0.5"}), 2.56, 0.05);  // another's
    EXPECT_NEAR(flush_s(Strategy::every_node, {"rivals.every_node=0.5", "rivals.every_node_uneven=0.5"}), 5.12, 0.05);  // images are equal
    const double even = flush_s(Strategy::every_node, {"job.imbalance=0.2"});
    EXPECT_NEAR(flush_s(Strategy::every_node, {"job.imbalance=0.2", "rivals.every_node_uneven=0.5"}) / even, 2, 0.05);
}

TEST(SimulateRivals, FsyncAndLatencyCount) {
    EXPECT_NEAR(flush_s(Strategy::file_per_rank, {"storage.fsync_ms=1000", "storage.latency_us=0"}), 3.56, 0.01);
    EXPECT_NEAR(flush_s(Strategy::file_per_rank, {"storage.fsync_ms=0", "storage.latency_us=1000000"}), 2.56 + 3, 0.7);  // an open and two writes
}

TEST(SimulateRivals, VersionsComeAtTheirTime) {
    const Outcome outcome = answer(small({"job.versions=3", "job.compute_s=60"}), of(Strategy::file_per_rank));
    ASSERT_EQ(outcome.versions.size(), 3u);
    EXPECT_NEAR(outcome.seconds, 120 + 2.6, 0.1);
}

TEST(SimulateRivals, BytesArriveWhereTheyBelong) {
    for (const Strategy strategy : strategies) {
        if (strategy == Strategy::cairn) continue;
        const Outcome outcome = answer(small({"job.imbalance=0.2"}), of(strategy));
        std::uint64_t held = 0, written = 0;
        for (const std::uint64_t bytes : outcome.target_bytes) held += bytes;
        for (const LeaderOutcome& leader : outcome.versions[0].leaders) written += leader.bytes;
        EXPECT_EQ(held, outcome.versions[0].bytes) << name_of(strategy);
        EXPECT_EQ(written, outcome.versions[0].bytes) << name_of(strategy);
    }
}

TEST(SimulateRivals, WhatIsNotOverInTimeIsAnError) {
    for (const Strategy strategy : strategies) {
        Question question = of(strategy);
        question.limit_s = 1;
        EXPECT_EQ(simulate(small(), question).code(), Code::deadline) << name_of(strategy);
    }
}

TEST(SimulateRivals, NamesGoBothWays) {
    for (const Strategy strategy : strategies) EXPECT_EQ(strategy_of(name_of(strategy)), strategy);
    EXPECT_EQ(strategy_of("nonsense"), std::nullopt);
}

}  // namespace
}  // namespace cairn::simulate
