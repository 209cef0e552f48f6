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

// The codec in use, on data of a key that it does not encode: of the codec in general that says nothing.
TEST_F(TrialTest, WhatIsLeftAsItIsIsTriedNowAndThen) {
    message::Lead lead = trying();
    lead.codec = lead.trial = "predict-planes-zstd";
    lead.keys = {{1, Effort::none}};
    RoleOptions options;
    options.model.codec_shrinks = true;
    options.model.codec_keys = {{1, 1e6, 0.5, 0.5}};
    begin(options, lead);
    node->flight->images.at(1).image.data = sim::describe(1, own_bytes);
    node->flight->state.node_expected_bytes = own_bytes;
    end_of_received();
    start();
    node->run(second);
    EXPECT_TRUE(ended && attempt->failure.ok()) << attempt->failure.to_string();
    const CodecSeen in_use = node->job->codecs_seen.at(Codec::planes);
    node->job->keys_seen.take();
    node->subject.trial.begin(*attempt, part());
    node->run(second);
    const std::vector<KeyEncoded> told = node->job->keys_seen.take();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].effort, Effort::fast);
    EXPECT_NEAR(static_cast<double>(told[0].stored_bytes) / static_cast<double>(told[0].raw_bytes), 0.5, 0.01);
    EXPECT_EQ(node->job->codecs_seen.at(Codec::planes).raw_bytes(), in_use.raw_bytes());
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

// Node 1 has images of ranks 1, 4 and 5, each of 40 blocks but the last, and buffers of 32 blocks. Merging is to be tried.
struct MergeTrialTest : WriterTest {
    static constexpr std::uint64_t blocks = 40;
    static message::Lead comparing(std::uint32_t ranks = 3, std::uint64_t turn_bytes = 2 * role_block) {
        message::Lead lead = WriterTest::lead();
        lead.pack_bytes = 8 * role_block;
        lead.trial = "zero-runs";
        lead.trial_merge_ranks = ranks;
        lead.trial_merge_bytes = turn_bytes;
        return lead;
    }
    // What was encoded, in order; copies among it.
    std::vector<std::uint64_t> encodings(const message::Lead& lead, std::vector<std::uint64_t> lengths = {blocks, blocks, 30}, Version version = 1) {
        RoleOptions options;
        options.self = 1;
        options.settings.buffer_bytes = 32 * role_block;
        options.model.codec_shrinks = true;
        node = std::make_unique<testing::Alone<testing::WriterAlone>>(options);
        constexpr Rank ranks[] = {1, 4, 5};
        for (std::size_t i = 0; i < lengths.size(); ++i) node->add_image(ranks[i], lengths[i] * role_block);
        node->flight->key.version = version;
        attempt = std::make_shared<Attempt>(node->world, node->flight, lead);
        node->flight->leader = std::make_shared<LeaderSide>();
        node->flight->leader->leading = attempt;
        node->sim.set_observer([this](sim::Process&, const char* what, const std::string& detail) {
            if (std::string(what) == "encode") seen.push_back(std::stoull(detail));
        });
        seen.clear();
        node->subject.trial.begin(*attempt, part());
        node->run(second);
        for (const auto& [rank, held] : node->flight->images) EXPECT_EQ(held.users, 0u) << rank;
        EXPECT_EQ(part().gate.active(), 0u);
        return seen;
    }
    std::vector<std::uint64_t> seen;
};

// Five turns of an image are not to be had of half a buffer: of three images two turns each are.
TEST_F(MergeTrialTest, TheSameBytesAreEncodedByTurnsAndApart) {
    const std::vector<std::uint64_t> encoded = encodings(comparing());
    const std::uint64_t turn = 2 * role_block, stretch = 2 * turn;
    EXPECT_EQ(encoded, (std::vector<std::uint64_t>{turn, turn, turn, turn, turn, turn, 3 * stretch, stretch, stretch, stretch})) << "copies first";
    std::vector<message::CodecRate> rates = node->subject.trial.seen(*attempt);
    ASSERT_EQ(rates.size(), 1u);
    EXPECT_EQ(rates[0].codec, "zero-runs");
    EXPECT_EQ(rates[0].raw_bytes, 0u) << "nothing is said of its speed";
    EXPECT_EQ(rates[0].tried_bytes, 3 * stretch);
    for (const std::uint64_t bytes : {rates[0].apart_bytes, rates[0].merged_bytes}) {
        EXPECT_GT(bytes, 0u);
        EXPECT_LE(bytes, 3 * stretch);
    }
    EXPECT_TRUE(node->subject.trial.seen(*attempt).empty()) << "it is told once";
}

TEST_F(MergeTrialTest, OfTheCodecThatTheVersionHas) {
    message::Lead lead = comparing();
    lead.codec = codec_name(Codec::planes);
    EXPECT_FALSE(encodings(lead).empty());
    EXPECT_EQ(node->subject.trial.seen(*attempt).at(0).codec, codec_name(Codec::planes));
    lead.codec = "of another release";
    lead.trial = "";
    EXPECT_TRUE(encodings(lead).empty());
}

TEST_F(MergeTrialTest, WhereNothingWouldBeMergedNothingIsTried) {
    EXPECT_TRUE(encodings(comparing(), {blocks}).empty()) << "one image";
    EXPECT_TRUE(encodings(comparing(), {blocks, 3, 3}).empty()) << "the others are packed";
    EXPECT_TRUE(encodings(comparing(1)).empty());
    message::Lead unpacked = comparing();
    unpacked.pack_bytes = 0;
    EXPECT_TRUE(encodings(unpacked).empty());
    EXPECT_EQ(encodings(comparing(), {blocks, blocks}).size(), 8u + 1 + 2) << "of two images four turns each";
}

TEST_F(MergeTrialTest, WhatCanBeReadOnceOnlyIsLeftAlone) {
    message::Lead lead = comparing();
    encodings(lead);
    node->flight->images.at(4).once = std::make_shared<OnceState>();
    node->flight->images.at(5).once = std::make_shared<OnceState>();
    seen.clear();
    attempt->trial_begun = false;
    node->subject.trial.begin(*attempt, part());
    node->run(second);
    EXPECT_TRUE(seen.empty());
}

TEST_F(MergeTrialTest, OnceAnAttempt) {
    encodings(comparing());
    seen.clear();
    node->subject.trial.begin(*attempt, part());
    node->run(second);
    EXPECT_TRUE(seen.empty());
}

// As short as one image is, the others give no more.
TEST_F(MergeTrialTest, OfAShortImageAllThatItHas) {
    const std::vector<std::uint64_t> encoded = encodings(comparing(2, 8 * role_block), {blocks, 5});
    EXPECT_EQ(encoded, (std::vector<std::uint64_t>{5 * role_block, 5 * role_block, 10 * role_block, 5 * role_block, 5 * role_block}));
}

// No chunk of a version that is merged is one image's: what another codec makes of it is found out on turns.
TEST_F(MergeTrialTest, AnotherCodecIsTriedOnTurnsWhereTheVersionIsMerged) {
    message::Lead lead = comparing(1);
    lead.codec = codec_name(Codec::planes);
    lead.merge_ranks = 3;
    lead.merge_bytes = 2 * role_block;
    const std::vector<std::uint64_t> encoded = encodings(lead);
    ASSERT_GT(encoded.size(), 6u);
    for (std::size_t i = 6; i < encoded.size(); ++i) EXPECT_EQ(encoded[i], 12 * role_block);
    const std::vector<message::CodecRate> rates = node->subject.trial.seen(*attempt);
    ASSERT_EQ(rates.size(), 1u);
    EXPECT_EQ(rates[0].codec, "zero-runs");
    EXPECT_GT(rates[0].raw_bytes, 0u);
    EXPECT_EQ(rates[0].merged_bytes, 0u);
}

TEST_F(MergeTrialTest, OtherImagesAndOtherPlacesInOtherVersions) {
    std::set<std::pair<Rank, std::uint64_t>> places;
    for (Version version = 1; version <= 6; ++version) {
        encodings(comparing(2), {blocks, blocks, blocks}, version);
        const Trial::Sample sample = node->subject.trial.sample_of(*attempt).value();
        EXPECT_EQ(sample.stretches.size(), 2u);
        EXPECT_EQ(sample.stretches.front().source.image_offset % role_block, 0u);
        places.insert({sample.stretches.front().source.rank, sample.stretches.front().source.image_offset});
    }
    EXPECT_GE(places.size(), 5u);
}

// Each where its turn lies; and asked for once of each image.
TEST(ArraysByTurns, AreWhereTheTurnsLie) {
    NumberArray array;
    array.offset = 8, array.length = 100, array.width = 4;
    int asked = 0;
    const auto of_key = [&](std::uint32_t key) {
        return [&asked, array, key]() mutable {
            ++asked;
            array.key = key;
            return std::vector<NumberArray>{array};
        };
    };
    const Pack stretches = {{0, {4, 1000, 200}}, {0, {7, 1000, 200}}}, turns = {{0, {4, 1000, 64}}, {0, {7, 1000, 64}}, {0, {4, 1064, 136}}, {0, {7, 1064, 136}}};
    const std::vector<NumberArray> found = arrays_by_turns(stretches, {of_key(1), of_key(2)}, turns)();
    ASSERT_EQ(found.size(), 4u);
    EXPECT_EQ(asked, 2);
    const std::uint64_t offsets[] = {8, 64 + 8, 128, 128 + 136}, lengths[] = {56, 56, 44, 44};
    for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].offset, offsets[i]);
        EXPECT_EQ(found[i].length, lengths[i]);
        EXPECT_EQ(found[i].key, 1 + i % 2);
    }
}

TEST_F(MergeTrialTest, WhereNoCoreIsIdleNothingIsTold) {
    RoleOptions options;
    options.self = 1;
    options.settings.buffer_bytes = 32 * role_block;
    options.model.codec_shrinks = true;
    options.model.codec_rate = 1e4;
    node = std::make_unique<testing::Alone<testing::WriterAlone>>(options);
    for (const Rank rank : {1, 4}) node->add_image(rank, blocks * role_block);
    attempt = std::make_shared<Attempt>(node->world, node->flight, comparing());
    node->subject.trial.begin(*attempt, part());
    node->run(100 * second);
    EXPECT_TRUE(node->subject.trial.seen(*attempt).empty());
    EXPECT_EQ(node->flight->images.at(1).users, 0u);
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

TEST_F(TrialTest, NothingIsTriedWithoutRoomForIt) {
    RoleOptions options;
    options.settings.buffers = 1;
    EXPECT_TRUE(encodings(options, trying()).empty());
    message::Lead not_trying = trying();
    not_trying.trial.clear();
    EXPECT_TRUE(encodings({}, not_trying).empty()) << "nobody asked for it";
    message::Lead unknown = trying();
    unknown.trial = "no codec of this Cairn";
    EXPECT_TRUE(encodings({}, unknown).empty());
}

// It would be used up.
TEST_F(TrialTest, AnImageThatCanBeReadOnceIsNotTried) {
    RoleOptions options;
    options.model.codec_shrinks = true;
    begin(options, trying());
    HeldImage& held = node->flight->images.at(1);
    held.once = std::make_shared<OnceState>();
    PendingChunk chunk;
    chunk.source = {1, 0, role_block};
    chunk.data = Slice::of(Bytes(role_block));
    node->subject.trial.offer(*attempt, chunk, &held);
    EXPECT_FALSE(attempt->tried.has_value());
    held.once.reset();
    attempt->offered_bytes = own_bytes;
    node->subject.trial.offer(*attempt, chunk, &held);
    EXPECT_TRUE(attempt->tried.has_value());
}

}  // namespace
}  // namespace cairn::engine
