// The production engine on small clusters, where the answer is known by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "simulate/small_testing.hpp"

namespace cairn::simulate {
namespace {

constexpr std::uint64_t mib = 1 << 20;

TEST(SimulateCairn, CardsBind) {
    const VersionOutcome v = last(small());
    EXPECT_EQ(v.bytes, 16 * 128 * mib);
    EXPECT_NEAR(v.flush_s(), 2.56, 0.1);  // 256 MiB a node at 100 MiB/s
    EXPECT_EQ(v.leaders.size(), 8u);
    EXPECT_NEAR(v.capture_s, 128.0 / 4096, 0.01);
    std::uint64_t written = 0;
    for (const LeaderOutcome& leader : v.leaders) written += leader.bytes;
    EXPECT_GE(written, v.bytes);
    EXPECT_LT(written, v.bytes * 101 / 100);  // footers
}

TEST(SimulateCairn, ANodeAloneIsBoundByItsCard) {
    const VersionOutcome v = last(small({"job.nodes=1", "job.files=1"}));
    EXPECT_NEAR(v.flush_s(), 2.56, 0.08);
    EXPECT_EQ(v.leaders.size(), 1u);
}

TEST(SimulateCairn, TargetsBind) { EXPECT_NEAR(last(small({"storage.target_bytes_per_s=25 MiB"})).flush_s(), 10.24, 0.4); }  // 2 GiB at 8 x 25 MiB/s

TEST(SimulateCairn, ServersBind) {
    EXPECT_NEAR(last(small({"storage.server_bytes_per_s=50 MiB"})).flush_s(), 10.24, 0.4);  // 2 GiB at 4 x 50 MiB/s
    EXPECT_NEAR(last(small({"storage.server_bytes_per_s=50 MiB", "storage.servers_bytes_per_s=[\"100 MiB\"]"})).flush_s(), 5.12, 0.3);  // each by itself counts
}

// 2 GiB at 8 x 25 MiB/s, of which a codec leaves half; where the nodes encode slower than that it binds.
TEST(SimulateCairn, ACodecHelpsAsFarAsItsRateAllows) {
    const std::vector<std::string> slow = {"storage.target_bytes_per_s=25 MiB", "codec.ratio=2"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.end(), slow.begin(), slow.end());
        return last(small(more)).flush_s();
    };
    EXPECT_NEAR(with({"flush.codec=fast", "codec.bytes_per_s=500 MiB"}), 5.12, 0.4);
    EXPECT_NEAR(with({"flush.codec=fast", "codec.bytes_per_s=10 MiB"}), 25.6, 1);  // 256 MiB a node
}

// One node writes 2 GiB. Seven eighths come in at 100 MiB/s, raw or encoded; and all of it is encoded by one node, or each node encodes its own, as far as it has a buffer for that: the rest is sent raw.
TEST(SimulateCairn, FollowersThatEncodeSaveTheLeadersCardAndTime) {
    const auto with = [](const std::string& at, const std::string& rate) {
        return last(small({"flush.encode_at=" + at, "codec.bytes_per_s=" + rate, "flush.codec=fast", "codec.ratio=2", "flush.leaders=1", "job.files=1", "storage.target_bytes_per_s=10 GiB", "storage.server_bytes_per_s=10 GiB"})).flush_s();
    };
    EXPECT_NEAR(with("leader", "2 GiB"), 17.9, 1);
    EXPECT_LT(with("follower", "2 GiB"), 0.75 * 17.9);
    EXPECT_GT(with("follower", "2 GiB"), 10.2) << "what is stored goes out over one card";
    EXPECT_NEAR(with("leader", "50 MiB"), 41, 2);
    EXPECT_LT(with("follower", "50 MiB"), 0.5 * 41);
}

// The first version is stored as it is; from the next on it is what is sooner.
TEST(SimulateCairn, AutoIsWhicheverIsSooner) {
    const std::vector<std::string> chosen = {"flush.codec=auto", "codec.ratio=2", "job.versions=4"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.end(), chosen.begin(), chosen.end());
        return answer(small(more)).versions;
    };
    const std::vector<VersionOutcome> slow_storage = with({"storage.target_bytes_per_s=25 MiB", "codec.bytes_per_s=500 MiB"});
    EXPECT_NEAR(slow_storage.front().flush_s(), 10.24, 0.4);
    EXPECT_NEAR(slow_storage.back().flush_s(), 5.12, 0.4);
    const std::vector<VersionOutcome> slow_encoding = with({"storage.target_bytes_per_s=25 MiB", "codec.bytes_per_s=10 MiB"});
    for (const VersionOutcome& version : slow_encoding) EXPECT_NEAR(version.flush_s(), 10.24, 0.4);
}

// 2 GiB at 8 x 100 MiB/s: half of the data leave a quarter in no time, and the other half take 16 s for all nodes to be made a tenth shorter.
TEST(SimulateCairn, AutoLeavesWhatIsHardWhereThatIsSooner) {
    const auto with = [&](const char* codec, const char* target) {
        return last(small({std::string("flush.codec=") + codec, std::string("storage.target_bytes_per_s=") + target, "job.versions=8", "node.nic_out_bytes_per_s=10 GiB", "node.nic_in_bytes_per_s=10 GiB", "codec.ratio=4", "codec.bytes_per_s=2 GiB", "codec.hard_share=0.5",
                           "codec.hard_ratio=1.1", "codec.hard_bytes_per_s=8 MiB"})).flush_s();
    };
    const double off = with("off", "100 MiB"), fast = with("fast", "100 MiB"), chosen = with("auto", "100 MiB");
    EXPECT_NEAR(off, 2.56, 0.2);
    EXPECT_GT(fast, 12);
    EXPECT_LT(chosen, 0.75 * off) << "half of it, and a quarter of the other half, where storage takes all as it comes";
    EXPECT_LT(with("auto", "5 MiB"), 0.63 * with("off", "5 MiB")) << "time enough for all of it";
}

// With one server at a tenth others take its work, after the first flush has seen it: 2 GiB at 3 x 50 + 5 MiB/s; equal shares would take 102 s.
TEST(SimulateCairn, ASlowServerIsGoneRound) {
    const VersionOutcome v = last(small({"job.versions=3", "storage.servers_bytes_per_s=[\"50 MiB\", \"50 MiB\", \"50 MiB\", \"5 MiB\"]"}));
    EXPECT_GT(v.flush_s(), 13.2);
    EXPECT_LT(v.flush_s(), 16);
}

TEST(SimulateCairn, FewerWritersAreBoundByTheirCards) {
    std::vector<double> seconds;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Question question;
        question.seed = seed;
        seconds.push_back(last(small({"job.files=2", "flush.leaders=2"}), question).flush_s());
    }
    std::sort(seconds.begin(), seconds.end());
    EXPECT_GT(seconds[0], 10.24);
    EXPECT_LT(seconds[2], 13);  // beside its card out a leader's card in is full, and it waits for the first and the last chunk; when work moves turns on the last microsecond
}

TEST(SimulateCairn, DedicatedNodesLeadForAll) {
    const Outcome outcome = answer(small({"job.files=2", "job.io_nodes=2", "job.versions=4"}));
    ASSERT_EQ(outcome.versions.size(), 4u);
    for (const VersionOutcome& v : outcome.versions) {
        ASSERT_EQ(v.leaders.size(), 2u);
        for (const LeaderOutcome& leader : v.leaders) EXPECT_GE(leader.node, 8u);
        EXPECT_GT(v.flush_s(), 10.24);  // all of it through two cards, in and out again
        EXPECT_LT(v.flush_s(), 16);
    }
}

// With as many files as leaders are wanted; a node that leads no more is no leader of later versions.
TEST(SimulateCairn, LeadersAreThoseOfTheVersion) {
    const Outcome outcome = answer(small({"job.files=4", "job.versions=6", "job.imbalance=0.2"}));
    for (const VersionOutcome& v : outcome.versions) {
        std::uint64_t written = 0;
        for (const LeaderOutcome& leader : v.leaders) {
            written += leader.bytes;
            EXPECT_LE(leader.seconds, v.flush_s());
        }
        EXPECT_GE(written, v.bytes);
        EXPECT_LT(written, v.bytes * 101 / 100);
    }
}

TEST(SimulateCairn, ARequestCostsItsTarget) {
    const std::vector<std::string> bound = {"storage.target_bytes_per_s=25 MiB"};
    const double without = last(small(bound)).flush_s();
    std::vector<std::string> costly = bound;
    costly.push_back("storage.request_us=40000");  // as long as 1 MiB itself: what eight writers write at once is half a second's worth at most
    EXPECT_NEAR(last(small(costly)).flush_s() / without, 2, 0.15);
}

TEST(SimulateCairn, WritersThatCrowdSlowEachOther) {
    // Two nodes write into each of four files.
    const std::vector<std::string> two = {"storage.target_bytes_per_s=25 MiB", "storage.targets=4", "storage.servers=4", "job.files=4"};
    std::vector<std::string> crowded = two;
    crowded.push_back("storage.crowd=1");
    EXPECT_GT(last(small(crowded)).flush_s() / last(small(two)).flush_s(), 1.3);
    crowded.push_back("storage.crowd_from=16");
    EXPECT_NEAR(last(small(crowded)).flush_s() / last(small(two)).flush_s(), 1, 0.02);
}

TEST(SimulateCairn, OthersTakeTheirShareOfTargets) {
    EXPECT_NEAR(last(small({"storage.target_bytes_per_s=50 MiB", "storage.background=0.5"})).flush_s(), 10.24, 0.4);
}

TEST(SimulateCairn, TheApplicationTakesItsShareOfCards) { EXPECT_NEAR(last(small({"job.network_share=0.5"})).flush_s(), 5.12, 0.2); }

// All of a node's bytes leave through its own card, whoever writes them.
TEST(SimulateCairn, TheFullestNodeDecides) {
    const VersionOutcome v = last(small({"job.versions=4", "job.images_bytes=[201326592, 201326592, 67108864, 67108864]"}));  // 384 and 128 MiB a node
    EXPECT_GT(v.flush_s(), 3.83);
    EXPECT_LT(v.flush_s(), 4.6);
}

TEST(SimulateCairn, VersionsComeAtTheirTime) {
    const Outcome outcome = answer(small({"job.versions=3", "job.compute_s=60"}));
    ASSERT_EQ(outcome.versions.size(), 3u);
    for (const VersionOutcome& v : outcome.versions) EXPECT_NEAR(v.flush_s(), 2.56, 0.1);
    EXPECT_NEAR(outcome.seconds, 120 + 2.6, 2);
}

TEST(SimulateCairn, TheSameSeedGivesTheSameToTheByte) {
    const Cluster cluster = small({"job.imbalance=0.2"});
    const auto run = [&](std::uint64_t seed) {
        Question question;
        question.seed = seed;
        return answer(cluster, question);
    };
    const Outcome one = run(1), again = run(1), another = run(2);
    EXPECT_EQ(one.fingerprint, again.fingerprint);
    EXPECT_EQ(json_text({{cluster, one, 0}}), json_text({{cluster, again, 0}}));
    EXPECT_NE(one.fingerprint, another.fingerprint);
    EXPECT_NE(one.versions[0].bytes, another.versions[0].bytes);
}

TEST(SimulateCairn, WhatAClientHoldsIsWrittenBeforeTheCommit) {
    EXPECT_NEAR(last(small({"storage.write_behind_bytes=64 MiB", "node.connections=1"})).flush_s(), 2.56, 0.1);  // as without it
}

// Which work moves in a flush turns on the last microsecond, so that a single one may take a tenth more by either way, and the median of five a twentieth.
struct SharingTest : testing::TestWithParam<std::uint32_t> {};

TEST_P(SharingTest, BothWaysAgree) {
    const std::string nodes = std::to_string(GetParam()), files = std::to_string(GetParam() / 2);
    const Cluster cluster = small({"job.imbalance=0.2", "job.nodes=" + nodes, "job.files=" + files, "flush.buffer_bytes=16 MiB"});
    std::vector<double> ratios;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Question exact, queued;
        exact.seed = queued.seed = seed;
        exact.sharing = sim::Bandwidth::Sharing::exact;
        queued.sharing = sim::Bandwidth::Sharing::queued;
        ratios.push_back(last(cluster, queued).flush_s() / last(cluster, exact).flush_s());
        EXPECT_NEAR(ratios.back(), 1, 0.2) << "seed " << seed;
    }
    std::sort(ratios.begin(), ratios.end());
    EXPECT_NEAR(ratios[2], 1, 0.07) << "the median";
}
INSTANTIATE_TEST_SUITE_P(Nodes, SharingTest, testing::Values(8, 16, 32, 64));

TEST(SimulateCairn, WhatIsNotOverInTimeIsAnError) {
    Question question;
    question.limit_s = 1;
    const Result<Outcome> outcome = simulate(small(), question);
    EXPECT_EQ(outcome.code(), Code::deadline);
    EXPECT_NE(outcome.status().text().find("flushing version 1 was not over after 1.00 s"), std::string::npos) << outcome.status().text();
}

TEST(SimulateCairn, AnImpossibleClusterIsRefused) { EXPECT_EQ(simulate(small({"job.files=17"}), {}).code(), Code::invalid_argument); }

TEST(SimulateCairn, StripesOfFilesLieOnTargetsOfTheirOwn) {  // two files on four targets of eight, 2 GiB/s: cards decide
    const Outcome striped = answer(small({"job.files=2", "storage.stripes=2"}));
    EXPECT_EQ(std::count_if(striped.target_bytes.begin(), striped.target_bytes.end(), [](std::uint64_t bytes) { return bytes > 64 << 20; }), 4);
}

TEST(SimulateCairn, WhatTakesHoursIsWaitedFor) {
    EXPECT_GT(last(small({"node.memory_bytes_per_s=16 KiB"})).capture_s, 2 * 3600);
}

}  // namespace
}  // namespace cairn::simulate
