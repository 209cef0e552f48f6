// A restart on small clusters, where the answer is known by hand: all ranks read at once, and whatever is slowest decides.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "simulate/small_testing.hpp"

namespace cairn::simulate {
namespace {

Outcome restarted(std::vector<std::string> settings = {}, Strategy strategy = Strategy::cairn, std::uint64_t seed = 1) {
    settings.push_back("job.restart=1");
    Question question = of(strategy);
    question.seed = seed;
    return answer(small(settings), question);
}

double restart_s(std::vector<std::string> settings = {}, Strategy strategy = Strategy::cairn) {
    const Outcome outcome = restarted(std::move(settings), strategy);
    EXPECT_TRUE(outcome.restart_s.has_value());
    return outcome.restart_s.value_or(0);
}

TEST(SimulateRestart, CardsBindAll) {  // 256 MiB a node at 100 MiB/s
    for (const Strategy strategy : strategies) {
        SCOPED_TRACE(name_of(strategy));
        EXPECT_NEAR(restart_s({}, strategy), 2.56, 0.1);
        EXPECT_NEAR(restart_s({"node.nic_in_bytes_per_s=50 MiB"}, strategy), 5.12, 0.15);
        EXPECT_NEAR(restart_s({"node.nic_out_bytes_per_s=50 MiB"}, strategy), 2.56, 0.1) << "what is read comes in";
        EXPECT_NEAR(restart_s({"job.images_bytes=[201326592, 201326592, 67108864, 67108864]"}, strategy), 3.84, 0.15) << "the fullest node has 384 MiB";
    }
}

TEST(SimulateRestart, ServersAndTargetsBindAll) {  // 2 GiB
    for (const Strategy strategy : strategies) {
        SCOPED_TRACE(name_of(strategy));
        EXPECT_NEAR(restart_s({"storage.target_bytes_per_s=25 MiB"}, strategy), 10.24, 1);
        EXPECT_NEAR(restart_s({"storage.server_bytes_per_s=50 MiB"}, strategy), 10.24, 1);
        EXPECT_NEAR(restart_s({"storage.target_bytes_per_s=50 MiB", "storage.background=0.5"}, strategy), 10.24, 1);
    }
}

// 2 GiB at 8 x 25 MiB/s, of which half is stored; then 256 MiB a node are decoded.
TEST(SimulateRestart, ACodecHelpsAsFarAsItsDecoderAllows) {
    const auto with = [](const std::string& codec, const std::string& ratio, const std::string& decode) {
        return restart_s({"storage.target_bytes_per_s=25 MiB", "codec.bytes_per_s=2 GiB", "flush.codec=" + codec, "codec.ratio=" + ratio, "codec.decode_bytes_per_s=" + decode});
    };
    const double off = with("off", "2", "8 GiB");
    EXPECT_NEAR(with("fast", "2", "8 GiB") / off, 0.5, 0.04);
    EXPECT_NEAR(with("fast", "4", "8 GiB") / off, 0.25, 0.04);
    EXPECT_NEAR(with("fast", "2", "10 MiB"), 25.6, 1);
    EXPECT_NEAR(with("off", "2", "10 MiB"), off, 0.01) << "nothing is to be decoded";
}

// Encoding slowly costs the flush, and not the restart; the other way round, too.
TEST(SimulateRestart, EachWayHasItsRate) {
    const std::vector<std::string> coded = {"flush.codec=fast", "codec.ratio=2"};
    const auto with = [&](const std::string& encode, const std::string& decode) {
        std::vector<std::string> settings = coded;
        settings.push_back("codec.bytes_per_s=" + encode);
        settings.push_back("codec.decode_bytes_per_s=" + decode);
        return restarted(settings);
    };
    const Outcome slow_there = with("10 MiB", "2 GiB"), slow_back = with("2 GiB", "10 MiB");
    EXPECT_GT(slow_there.versions[0].flush_s(), 20);
    EXPECT_LT(*slow_there.restart_s, 3);
    EXPECT_LT(slow_back.versions[0].flush_s(), 3);
    EXPECT_GT(*slow_back.restart_s, 20);
}

TEST(SimulateRestart, RanksVerifyAndCopyWhatTheyRead) {
    EXPECT_NEAR(restart_s({"node.checksum_bytes_per_s=20 MiB"}), 12.8, 1);  // 256 MiB a node, when the first of them are there
    EXPECT_NEAR(restart_s({"node.memory_bytes_per_s=16 MiB"}), 8, 0.1);       // 128 MiB a rank
}

// Two that read at one target, be it two files or two places of one, halve it; one after the other they do not, nor do two who read the same.
TEST(SimulateRestart, WhoReadsAtOnceCrowds) {
    const std::vector<std::string> slow = {"storage.target_bytes_per_s=25 MiB"}, crowd = {"storage.target_bytes_per_s=25 MiB", "storage.crowd=1"};
    for (const Strategy strategy : {Strategy::cairn, Strategy::file_per_rank, Strategy::vertical, Strategy::at_offset}) EXPECT_NEAR(restart_s(crowd, strategy) / restart_s(slow, strategy), 2, 0.1) << name_of(strategy);
    EXPECT_NEAR(restart_s(crowd, Strategy::orchestrated), 10.24, 0.3);
    EXPECT_NEAR(restart_s({"storage.target_bytes_per_s=25 MiB", "storage.crowd=1", "storage.crowd_from=16"}), restart_s(slow), 0.1);
}

TEST(SimulateRestart, RivalsReachTheirPartOfTheCards) {
    EXPECT_NEAR(restart_s({"rivals.file_per_rank=0.5"}, Strategy::file_per_rank), 5.12, 0.05);
    EXPECT_NEAR(restart_s({"node.writer_bytes_per_s=20 MiB"}, Strategy::file_per_rank), 6.4, 0.2);
    EXPECT_NEAR(restart_s({"storage.fsync_ms=1000"}, Strategy::file_per_rank), 2.56, 0.05) << "nothing is made durable";
}

// Two files of 1 GiB, of which leaders send on 768 MiB, a buffer at a time.
TEST(SimulateRestart, TwoPhasesTakeTurns) { EXPECT_NEAR(restart_s({"job.files=2"}, Strategy::two_phase), (1024 + 768) / 100.0, 0.3); }

// 512 KiB of 16 ranks in a run or two: read once they take half a second, and 8 if each rank reads all of it.
TEST(SimulateRestart, WhatRanksOfANodeShareIsReadOnce) {
    const auto with = [](const std::string& nodes, const std::string& ranks_per_node) {
        return restart_s({"job.nodes=" + nodes, "job.ranks_per_node=" + ranks_per_node, "flush.leaders=1", "job.files=1", "job.image_bytes=32 KiB", "flush.block_bytes=4 KiB", "storage.targets=1", "storage.servers=1", "storage.target_bytes_per_s=1 MiB"});
    };
    EXPECT_NEAR(with("1", "16"), 0.55, 0.1);
    EXPECT_NEAR(with("16", "1"), 8, 0.5) << "each node reads by itself";
}

TEST(SimulateRestart, NodesOfWhateverKindAndFilesHoweverTheyLie) {
    for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{{"job.io_nodes=2", "job.files=2"}, {"job.files=2", "storage.stripes=2"}, {"job.files=16"}, {"flush.placement=interleaved"}, {"job.ranks_per_node=1"}, {"job.versions=3", "job.imbalance=0.2"}})
        EXPECT_NEAR(restart_s(settings), settings[0] == "job.ranks_per_node=1" ? 1.28 : 2.56, 0.5) << settings[0];
}

TEST(SimulateRestart, TheVersionsBeforeAreAsIfThereWereNone) {
    for (const Strategy strategy : strategies) {
        const Cluster cluster = small({"job.imbalance=0.2", "job.versions=2"});
        const Outcome without = answer(cluster, of(strategy)), with = restarted({"job.imbalance=0.2", "job.versions=2"}, strategy);
        EXPECT_FALSE(without.restart_s.has_value());
        EXPECT_EQ(with.target_bytes, without.target_bytes) << name_of(strategy);
        EXPECT_EQ(with.target_busy_s, without.target_busy_s);
        for (std::size_t version = 0; version < 2; ++version) EXPECT_EQ(with.versions[version].flush_s(), without.versions[version].flush_s()) << name_of(strategy);
        EXPECT_GT(with.seconds, without.seconds);
    }
}

TEST(SimulateRestart, TheSameSeedGivesTheSame) {
    const std::vector<std::string> settings = {"job.imbalance=0.2", "flush.codec=fast"};
    const Outcome one = restarted(settings), again = restarted(settings), another = restarted(settings, Strategy::cairn, 2);
    EXPECT_EQ(one.fingerprint, again.fingerprint);
    EXPECT_EQ(one.restart_s, again.restart_s);
    EXPECT_NE(one.restart_s, another.restart_s);
}

TEST(SimulateRestart, WhatIsNotOverInTimeIsAnError) {
    for (const Strategy strategy : strategies) {
        Question question = of(strategy);
        question.limit_s = 20;
        const Result<Outcome> outcome = simulate(small({"job.restart=1", "node.nic_in_bytes_per_s=1 MiB"}), question);
        EXPECT_EQ(outcome.code(), Code::deadline) << name_of(strategy);
        EXPECT_NE(outcome.status().text().find("restarting from version 1 was not over after 20.0 s"), std::string::npos) << outcome.status().text();
    }
}

TEST(SimulateRestart, TablesAndJsonTellIt) {
    const Cluster cluster = small({"job.restart=1"});
    const Answer with{cluster, answer(cluster), 0.25};
    const auto document = nlohmann::json::parse(json_text({with}))[0];
    EXPECT_EQ(document["restart_s"], *with.outcome.restart_s);
    const std::string text = tables({with}, false);
    EXPECT_NE(text.find("  restart "), std::string::npos) << text;
    EXPECT_NE(text.find(format_duration(*with.outcome.restart_s) + "  250 ms\n"), std::string::npos) << text;
    const Answer without{small(), answer(small()), 0.25};
    EXPECT_FALSE(nlohmann::json::parse(json_text({without}))[0].contains("restart_s"));
    EXPECT_EQ(tables({without}, false).find("restart"), std::string::npos);
}

}  // namespace
}  // namespace cairn::simulate
