// What a codec would make of a version without one: when it is tried, on what, and what is told of it.
#include "copies/cpu_testing.hpp"
#include "engine/leader/writer_testing.hpp"

namespace cairn::engine {
namespace {

using testing::role_block;
using testing::RoleOptions;
using testing::WriterTest;

struct TrialTest : WriterTest {
    // A version without a codec, which tries one; what the node's process did with codecs.
    std::vector<std::string> encodings(RoleOptions options, const message::Lead& trying) {
        options.model.codec_shrinks = true;
        begin(options, trying);
        node->flight->state.node_expected_bytes = own_bytes;
        std::vector<std::string> seen;
        node->sim.set_observer([&](sim::Process&, const char* what, const std::string& detail) {
            if (std::string(what) == "encode") seen.push_back(detail);
        });
        end_of_received();
        start();
        node->run(second);
        EXPECT_TRUE(ended && attempt->failure.ok()) << attempt->failure.to_string();
        EXPECT_TRUE(seen.empty()) << "it would take the processor from checksums";
        node->subject.trial.begin(*attempt, part());
        node->run(second);
        check(own_bytes);
        for (const StoredRun& run : part().runs) EXPECT_EQ(run.codec, 0u) << "what is tried is not stored";
        EXPECT_EQ(node->flight->images.at(1).users, 0u);
        return seen;
    }
    static message::Lead trying() {
        message::Lead trying = lead();
        trying.trial = "zero-runs";
        trying.parts[0].shares[0].nodes.resize(1);
        return trying;
    }
};

TEST_F(TrialTest, APieceIsEncodedWhenAllAreWritten) {
    RoleOptions options;
    options.model.codec_rate = 1e6;
    const std::vector<std::string> seen = encodings(options, trying());
    ASSERT_FALSE(seen.empty());
    for (const std::string& piece : seen) EXPECT_EQ(std::stoull(piece), std::stoull(seen.front()));
    const std::vector<message::CodecRate> rates = node->subject.trial.seen(*attempt);
    ASSERT_EQ(rates.size(), 1u);
    EXPECT_EQ(rates[0].codec, "zero-runs");
    EXPECT_LE(rates[0].stored_bytes, rates[0].raw_bytes);
    EXPECT_GT(rates[0].stored_bytes, 0u);
    EXPECT_NEAR(static_cast<double>(rates[0].raw_bytes_per_s), 1e6, 1e4);
    attempt->lead.trial = "another";
    EXPECT_TRUE(node->subject.trial.seen(*attempt).empty()) << "nobody asked for it";
}

// A thread gets its first milliseconds at once even where no core is idle.
TEST_F(TrialTest, ItGoesOnUntilItHasTakenLongEnough) {
    RoleOptions options;
    options.model.codec_rate = 1e6;
    const std::vector<std::string> slow = encodings(options, trying());
    double bytes = 0;
    for (const std::string& piece : slow) bytes += std::stod(piece);
    EXPECT_GE(bytes, 1e5);
    EXPECT_LT(bytes - std::stod(slow.back()), 1e5) << "a tenth of a second at that rate, and no longer";
}

TEST_F(TrialTest, OfATinyVersionASinglePieceIsNotEncodedForEver) {
    RoleOptions options;
    options.model.codec_rate = 1e12;
    EXPECT_EQ(encodings(options, trying()).size(), 16u);
}

TEST_F(TrialTest, ItIsAnotherChunkInAnotherVersion) {
    std::set<std::uint64_t> places;
    for (Version version = 1; version <= 4; ++version) {
        RoleOptions options;
        options.model.codec_shrinks = true;
        begin(options, trying());
        node->flight->key.version = version;
        node->flight->state.node_expected_bytes = 100 * role_block;
        PendingChunk chunk;
        chunk.source = {1, 0, role_block};
        chunk.data = Slice::of(Bytes(role_block));
        std::uint64_t place = 0;
        for (std::uint64_t at = 0; at < 100; ++at) {
            chunk.data = Slice::of(Bytes(role_block));
            node->subject.trial.offer(*attempt, chunk, &node->flight->images.at(1));
            if (attempt->tried && attempt->tried->raw.data() == chunk.data.data()) place = at;
        }
        places.insert(place);
    }
    EXPECT_EQ(places.size(), 4u);
}

// The rest of what it leads is others'.
TEST_F(TrialTest, ALeaderOfLittleOfItsOwnTriesThat) {
    for (Version version = 1; version <= 4; ++version) {
        RoleOptions options;
        options.model.codec_shrinks = true;
        begin(options, trying());
        node->flight->key.version = version;
        node->flight->state.node_expected_bytes = 1000 * role_block;
        PendingChunk chunk;
        chunk.source = {1, 0, role_block};
        chunk.data = Slice::of(Bytes(role_block));
        node->subject.trial.offer(*attempt, chunk, &node->flight->images.at(1));
        EXPECT_TRUE(attempt->tried.has_value()) << version;
    }
}

TEST_F(TrialTest, NoMoreIsTriedThanTakesASecondOfABusyCore) {
    RoleOptions options;
    options.model.codec_shrinks = true;
    begin(options, trying());
    PendingChunk chunk;
    chunk.source = {1, 0, 3 << 20};
    chunk.data = Slice::of(Bytes(3 << 20));
    node->subject.trial.offer(*attempt, chunk, &node->flight->images.at(1));
    ASSERT_TRUE(attempt->tried.has_value());
    EXPECT_EQ(attempt->tried->raw.length, 2u << 20);
}

TEST_F(TrialTest, APartThatIsWrittenEndsTheTrialsOfAll) {
    RoleOptions options;
    options.model.codec_shrinks = true;
    begin(options, trying());
    PendingChunk chunk;
    chunk.source = {1, 0, role_block};
    chunk.data = Slice::of(Bytes(role_block));
    node->subject.trial.begin(*attempt, part());
    node->subject.trial.offer(*attempt, chunk, &node->flight->images.at(1));
    EXPECT_FALSE(attempt->tried.has_value());
}

// It waits for none, and lets its image go.
TEST_F(TrialTest, WithoutABufferNothingIsTried) {
    RoleOptions options;
    options.settings.buffers = 2;
    options.model.codec_shrinks = true;
    begin(options, trying());
    PendingChunk chunk;
    chunk.source = {1, 0, role_block};
    chunk.data = Slice::of(Bytes(role_block));
    node->subject.trial.offer(*attempt, chunk, &node->flight->images.at(1));
    ASSERT_TRUE(attempt->tried.has_value());
    Result<BufferRing::Use> one = node->result_of(node->subject.ring.take_to_encode(node->world.clock.in(second)));
    Result<BufferRing::Use> two = node->result_of(node->subject.ring.take_to_encode(node->world.clock.in(second)));
    ASSERT_TRUE(one.ok() && two.ok());
    node->subject.trial.begin(*attempt, part());
    node->run(millisecond);
    EXPECT_EQ(node->flight->images.at(1).users, 0u);
    EXPECT_EQ(part().gate.active(), 0u);
    EXPECT_TRUE(node->subject.trial.seen(*attempt).empty());
}

TEST_F(TrialTest, WhatCanNotBeMadeShorterIsAsLongAsItWas) {
    RoleOptions options;
    options.model.stored_min = options.model.stored_max = 1.05;
    ASSERT_FALSE(encodings(options, trying()).empty());
    const std::vector<message::CodecRate> rates = node->subject.trial.seen(*attempt);
    ASSERT_EQ(rates.size(), 1u);
    EXPECT_EQ(rates[0].stored_bytes, rates[0].raw_bytes);
}

// Threads of which most would find nothing to do encode no faster.
TEST_F(TrialTest, NoMoreIsEncodedAtOnceThanThereAreWritersAndBuffers) {
    begin({}, trying());
    node->job->codecs_seen[Codec::zero_runs].add(1000, 500, 1);
    testing::WatchedCpu cpu(node->world.cpu);
    const auto rate = [&](unsigned threads, std::uint32_t writers, std::uint32_t buffers) {
        cpu.threads = threads;
        FlushSettings settings;
        settings.writers = writers;
        Gate gate(node->world.clock);
        Common common(testing::with_cpu(node->world, cpu), node->layout, settings, gate);
        BufferRing ring(node->world.clock, node->world.storage, buffers, 2 * role_block);
        return Trial(common, ring).seen(*attempt).at(0).raw_bytes_per_s;
    };
    EXPECT_EQ(rate(2, 4, 16), 2000u);
    EXPECT_EQ(rate(64, 4, 16), 4000u);
    EXPECT_EQ(rate(64, 4, 3), 3000u);
}

TEST(BusySpan, OfWritesThatOverlapTheTimeCountsOnce) {
    BusySpan span;
    span.begin(10);
    span.begin(15);
    span.end(20);
    EXPECT_EQ(span.busy(), 0);
    span.end(30);
    EXPECT_EQ(span.busy(), 20);
    span.begin(50);
    span.end(51);
    EXPECT_EQ(span.busy(), 21);
}

}  // namespace
}  // namespace cairn::engine
