// The follower alone: it announces until the version has ended, and gives the bytes of its images to whoever asks, each request once.
#include "engine/follower/follower.hpp"

#include "engine/role_testing.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::role_bytes;
using testing::RoleOptions;

// Nobody here leads, so nobody asks what the node sends.
struct FollowerAlone : Follower {
    explicit FollowerAlone(Common& c) : Follower(c, [](Flight&) { return [](std::uint64_t, std::uint64_t) {}; }) {}
};

// Node 1 of three, whose rank 1 has an image; node 0 coordinates, node 2 leads.
struct FollowerTest : ::testing::Test {
    static constexpr std::uint64_t image_bytes = 5 * role_block + 100;
    static RoleOptions options() {
        RoleOptions options;
        options.self = 1;
        return options;
    }
    void seal() {
        node.add_image(1, image_bytes);
        node.flight->state.level = Level::captured;
        node.subject.on_image(node.flight);
    }
    void hear(NodeIndex from, message::ForFollower body) {
        node.note_heard(from);
        node.subject.hear(node.flight, from, node.process(from).address(), std::move(body));
    }
    // How often a payload began to go out.
    std::size_t payloads() const {
        return static_cast<std::size_t>(std::count_if(operations.begin(), operations.end(), [](const auto& each) { return each.rfind("payload ", 0) == 0; }));
    }
    // Asks as a leader on node 2 does, which has posted room for it.
    std::shared_ptr<BytesBuffer> ask(std::uint64_t tag, Source source, Reason reason = Reason::flush) {
        auto room = std::make_shared<BytesBuffer>(Bytes(source.length));
        const Status posted = node.process(2).world().network.post_payload(tag, {room, 0, source.length});
        EXPECT_TRUE(posted.ok());
        hear(2, message::Want{tag, source, reason});
        return room;
    }

    Alone<FollowerAlone> node{options()};
    const std::vector<std::string>& operations = node.watch_operations();
};

TEST_F(FollowerTest, AnnouncesUntilTheVersionHasEnded) {
    seal();
    const message::Sealed sealed = node.next<message::Sealed>(0);
    EXPECT_EQ(sealed, (message::Sealed{{testing::role_image(1, image_bytes)}, role_block}));
    node.note_heard(0);
    node.next<message::Sealed>(0);  // it was lost, perhaps
    node.subject.on_image(node.flight);  // said twice: still announced once at a time
    node.run(60 * second);
    const std::size_t repeated = node.heard<message::Sealed>(0).size();
    EXPECT_GE(repeated, 10u);
    EXPECT_LE(repeated, 30u) << "each pause is twice the one before, up to a quarter of peer_wait";
    node.flight->state.final = true;
    node.subject.on_end(*node.flight);
    node.common.update(*node.flight);
    node.run(second);
    node.heard<message::Sealed>(0);
    node.run(300 * second);
    EXPECT_TRUE(node.heard<message::Sealed>(0).empty());
}

TEST_F(FollowerTest, ARankThatDoesNotSealIsNamedAndNothingIsAnnounced) {
    RoleOptions two = options();
    two.ranks = {{0}, {1, 2}};
    two.settings.version_wait = 20 * second;
    Alone<FollowerAlone> half(two);
    half.add_image(1, image_bytes);
    half.subject.on_image(half.flight);
    ASSERT_TRUE(half.run_until([&] { return !half.flight->state.failure.ok(); }, 21 * second));
    EXPECT_EQ(half.flight->state.failure.code(), Code::deadline);
    EXPECT_NE(half.flight->state.failure.text().find("did not seal it in time: 2"), std::string::npos) << half.flight->state.failure.text();
    EXPECT_TRUE(half.heard<message::Sealed>(0).empty());
    half.add_image(2, image_bytes);  // late, and welcome
    half.common.update(*half.flight);
    EXPECT_EQ(half.next<message::Sealed>(0).images.size(), 2u);
}

// The sizes of all ranks of the node, once, also of one that was sealed before the last one began; not before they are all known.
TEST_F(FollowerTest, TellsTheSizesWhenTheLastRankHasBegun) {
    RoleOptions three = options();
    three.ranks = {{0}, {4, 1, 2}};
    Alone<FollowerAlone> begun(three);
    auto& begins = begun.job->begun[1];
    const auto begin = [&](Rank rank, std::uint64_t bytes) {
        begins[rank] = {rank, bytes, role_block};
        begun.subject.on_begun(*begun.job, begun.flight->key, begun.flight->images);
        begun.run(second);
    };
    begin(4, 44);
    begin(1, image_bytes);
    begun.add_image(1, image_bytes);
    begins.erase(1);
    EXPECT_TRUE(begun.heard<message::Begun>(0).empty());
    begin(2, 0);
    const std::vector<message::Begun> told = begun.heard<message::Begun>(0);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0], (message::Begun{{{1, image_bytes, {}}, {2, 0, {}}, {4, 44, {}}}, role_block}));
    begun.run(60 * second);
    EXPECT_TRUE(begun.heard<message::Begun>(0).empty()) << "a hint is not repeated";
}

TEST_F(FollowerTest, ARankThatHasBegunIsToldFromOneThatHasNot) {
    RoleOptions three = options();
    three.ranks = {{0}, {1, 2, 3}};
    three.settings.version_wait = 20 * second;
    Alone<FollowerAlone> half(three);
    half.job->begun[1][3] = {3, 3 << 20, role_block};
    for (const Version other : {0u, 2u}) half.job->begun[other][2] = {2, 1 << 20, role_block};
    half.add_image(1, image_bytes);
    half.subject.on_image(half.flight);
    ASSERT_TRUE(half.run_until([&] { return !half.flight->state.failure.ok(); }, 21 * second));
    EXPECT_NE(half.flight->state.failure.text().find("did not seal it in time: 2 3 (has begun, 3.00 MiB)"), std::string::npos) << half.flight->state.failure.text();
}

// Who restores asks when the version has long been committed, and what was read for nobody before.
TEST_F(FollowerTest, ARestartIsServedAfterTheEndAndAFlushIsNot) {
    seal();
    node.flight->state.level = Level::committed;
    node.flight->state.final = true;
    node.subject.on_end(*node.flight);
    const Source source{1, role_block, image_bytes - role_block};
    const auto late = ask(11, {1, 0, role_block});
    EXPECT_EQ(node.next<message::Chunk>(2).code, Code::cancelled);
    const auto room = ask(12, source, Reason::restart);
    EXPECT_EQ(node.next<message::Chunk>(2).code, Code::ok);
    node.run(second);
    EXPECT_TRUE(room->bytes() == testing::bytes_in(role_bytes(1, image_bytes), source.image_offset, source.length));
    hear(2, message::Want{12, source, Reason::restart});  // the answer was lost
    EXPECT_EQ(node.next<message::Chunk>(2).code, Code::ok);
    node.run(second);
    EXPECT_EQ(payloads(), 1u) << "and goes out once";
}

// A silent coordinator: its waiters hear of it, and what stands under persistent says how it ended.
TEST_F(FollowerTest, ASilentCoordinatorIsNamed) {
    seal();
    ASSERT_TRUE(node.run_until([&] { return !node.flight->state.failure.ok(); }, 60 * second));
    EXPECT_EQ(node.flight->state.failure.code(), Code::unavailable);
    EXPECT_NE(node.flight->state.failure.text().find("node 0 (n0, rank 0)"), std::string::npos) << node.flight->state.failure.text();
    EXPECT_TRUE(node.ends.empty());
}

TEST_F(FollowerTest, AnswersWithBytesAndTheirChecksums) {
    seal();
    const Source source{1, 2 * role_block, image_bytes - 2 * role_block};
    const auto room = ask(11, source);
    const message::Chunk chunk = node.next<message::Chunk>(2);
    const Bytes wanted = testing::bytes_in(role_bytes(1, image_bytes), source.image_offset, source.length);
    EXPECT_EQ(chunk.tag, 11u);
    EXPECT_EQ(chunk.code, Code::ok) << chunk.text;
    EXPECT_EQ(chunk.checksums, testing::block_checksums(wanted));
    node.run(second);
    EXPECT_TRUE(room->bytes() == wanted);
    EXPECT_EQ(payloads(), 1u);
    EXPECT_EQ(node.common.counters.sent_bytes, source.length);
    EXPECT_EQ(node.flight->images.at(1).users, 0u);
}

TEST_F(FollowerTest, ARepeatedRequestIsAnsweredAndSendsNoSecondPayload) {
    seal();
    const Source source{1, 0, role_block};
    ask(11, source);
    hear(2, message::Want{11, source});  // while checksums are made: a sign of life
    const message::Chunk first = node.next<message::Chunk>(2);
    node.run(second);
    node.heard<message::Chunk>(2);
    for (int i = 0; i < 3; ++i) hear(2, message::Want{11, source});
    node.run(second);
    const std::vector<message::Chunk> again = node.heard<message::Chunk>(2);
    ASSERT_EQ(again.size(), 3u);
    for (const message::Chunk& each : again) {
        EXPECT_EQ(each.tag, 11u);
        EXPECT_EQ(each.checksums, testing::block_checksums(role_bytes(1, role_block)));
    }
    EXPECT_EQ(payloads(), 1u);
}

// One that comes late is a new one where the answer was forgotten: so many are remembered, and no more.
TEST_F(FollowerTest, RemembersAsManyAnswersAsItMay) {
    RoleOptions few = options();
    few.settings.limits.answers = 2;
    Alone<FollowerAlone> forgetful(few);
    const std::vector<std::string>& did = forgetful.watch_operations();
    const auto sent = [&] { return std::count_if(did.begin(), did.end(), [](const auto& each) { return each.rfind("payload ", 0) == 0; }); };
    forgetful.add_image(1, image_bytes);
    for (const std::uint64_t tag : {1u, 2u, 3u}) {
        forgetful.subject.hear(forgetful.flight, 2, forgetful.process(2).address(), message::Want{tag, {1, 0, role_block}});
        forgetful.run(second);
    }
    EXPECT_EQ(sent(), 3);
    forgetful.subject.hear(forgetful.flight, 2, forgetful.process(2).address(), message::Want{3, {1, 0, role_block}});
    forgetful.run(second);
    EXPECT_EQ(sent(), 3);
    forgetful.subject.hear(forgetful.flight, 2, forgetful.process(2).address(), message::Want{1, {1, 0, role_block}});
    forgetful.run(second);
    EXPECT_EQ(sent(), 4);
}

TEST_F(FollowerTest, AnImageThatIsGoneIsNotFound) {
    seal();
    node.flight->images.clear();
    ask(11, {1, 0, role_block});
    const message::Chunk chunk = node.next<message::Chunk>(2);
    EXPECT_EQ(chunk.code, Code::not_found);
    EXPECT_FALSE(chunk.used_up) << "another daemon may have it";
    EXPECT_NE(chunk.text.find("rank 1"), std::string::npos) << chunk.text;
    EXPECT_EQ(payloads(), 0u);
}

// What can be read once only is said to be used up when it is, and to nobody who asks again in time.
TEST_F(FollowerTest, WhatCanBeReadOnceOnlyIsUsedUp) {
    LocalImage image = node.image_of(1, 3 * role_block);
    image.readable = Readable::once;
    image.data = sim::describe_once(5, 3 * role_block);
    node.flight->images.emplace(1, held_image(std::move(image)));
    const auto room_11 = ask(11, {1, 0, role_block}), room_12 = ask(12, {1, 0, role_block});
    node.run(second);
    for (const message::Chunk& chunk : node.heard<message::Chunk>(2)) EXPECT_EQ(chunk.code, Code::ok) << chunk.text;
    const Bytes wanted = sim::materialise(sim::runs_of_description(5, 0, role_block));
    EXPECT_TRUE(room_11->bytes() == wanted);
    EXPECT_TRUE(room_12->bytes() == wanted) << "it came damaged, perhaps: it is in a buffer still";
    for (const std::uint64_t at : {1u, 2u}) ask(12 + at, {1, at * role_block, role_block});
    node.run(second);
    node.heard<message::Chunk>(2);
    ask(20, {1, 0, role_block});
    const message::Chunk chunk = node.next<message::Chunk>(2);
    EXPECT_EQ(chunk.code, Code::not_found);
    EXPECT_TRUE(chunk.used_up);
    EXPECT_EQ(node.flight->images.at(1).users, 0u);
}

TEST_F(FollowerTest, WhatIsNotInTheImageIsRefused) {
    seal();
    const Source outside[] = {{1, 0, image_bytes + 1}, {1, 6 * role_block, role_block}, {1, 1, role_block}, {1, UINT64_MAX - role_block + 1, role_block}};
    std::uint64_t tag = 20;
    for (const Source& source : outside) {
        hear(2, message::Want{++tag, source});
        EXPECT_EQ(node.next<message::Chunk>(2).code, Code::invalid_argument) << source.image_offset << "+" << source.length;
    }
    EXPECT_EQ(payloads(), 0u);
}

// A flush gives way to the application; a restart is what the application waits for.
TEST_F(FollowerTest, TheReasonDecidesThePace) {
    seal();
    node.common.pace.set_limits({.closed = true});
    const Source source{1, 0, role_block};
    const auto of_flush = ask(11, source), of_restart = ask(12, source, Reason::restart);
    EXPECT_EQ(node.next<message::Chunk>(2).tag, 12u);
    node.run(second);
    EXPECT_EQ(payloads(), 1u);
    EXPECT_TRUE(of_restart->bytes() == role_bytes(1, role_block));
    EXPECT_TRUE(node.heard<message::Chunk>(2).empty());
    node.common.pace.set_limits({});
    EXPECT_EQ(node.next<message::Chunk>(2).tag, 11u);
    node.run(second);
    EXPECT_TRUE(of_flush->bytes() == role_bytes(1, role_block));
}

// Who asks hears of it each time, and nothing stays behind.
TEST_F(FollowerTest, AReasonThatIsNotKnownIsAnswered) {
    seal();
    for (int i = 0; i < 2; ++i) {
        hear(2, message::Want{11, {1, 0, role_block}, static_cast<Reason>(200)});
        const message::Chunk chunk = node.next<message::Chunk>(2);
        EXPECT_EQ(chunk.tag, 11u);
        EXPECT_EQ(chunk.code, Code::unsupported);
        EXPECT_NE(chunk.text.find("reason 200"), std::string::npos) << chunk.text;
        EXPECT_NE(chunk.text.find("install"), std::string::npos) << chunk.text;
    }
    EXPECT_EQ(payloads(), 0u);
    EXPECT_EQ(node.flight->images.at(1).users, 0u);
}

TEST_F(FollowerTest, SaysThatItLacksImagesOnlyWhenNoneIsUnseen) {
    bool unseen = true;
    node.common.has_unseen_images = [&](Id128) { return unseen; };
    hear(0, message::Noted{{2}});
    node.run(second);
    EXPECT_TRUE(node.heard<message::Noted>(0).empty()) << "scratch was not gone through: it may be there";
    unseen = false;
    hear(0, message::Noted{{2}});
    EXPECT_TRUE(node.next<message::Noted>(0).missing.empty());
    seal();
    hear(0, message::Noted{{2}});
    node.run(second);
    EXPECT_TRUE(node.heard<message::Noted>(0).empty()) << "it lacks nothing";
    EXPECT_EQ(node.subject.unsealed(*node.flight), 2u);
    EXPECT_EQ(node.flight->state.level, Level::captured);
    hear(0, message::Noted{});
    EXPECT_EQ(node.subject.unsealed(*node.flight), std::nullopt);
    EXPECT_EQ(node.flight->state.level, Level::sealed);
}

TEST_F(FollowerTest, AnIoNodeAnswersTheCall) {
    RoleOptions io = options();
    io.ranks = {{0}, {}};
    Alone<FollowerAlone> helper(io);
    helper.subject.hear(helper.flight, 0, helper.process(0).address(), message::Noted{{0}});
    EXPECT_TRUE(helper.next<message::Noted>(0).missing.empty());
}

}  // namespace
}  // namespace cairn::engine
