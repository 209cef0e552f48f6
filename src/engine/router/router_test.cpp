// The router of one node: which messages it hears at all, whose each is, and what it remembers. The test plays the other nodes.
#include "engine/router/router.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/log.hpp"
#include "engine/router/node_testing.hpp"
#include "format/frame.hpp"
#include "format/limits.hpp"
#include "world/sim/encoding.hpp"

namespace cairn::engine {
namespace {

using testing::role_block;
using testing::RoleOptions;

struct RouterTest : testing::NodeAlone {};

TEST_F(RouterTest, WhatIsNotOfItsJobsIsDropped) {
    begin(1);
    const message::Want want{5, {1, 0, role_block}};
    message::Message said = message(2, 1, want);
    said.secret.low ^= 1;
    send(net->process(2), said);
    said = message(2, 1, want);
    said.key.incarnation.low ^= 1;  // of a job that is not known here
    send(net->process(2), said);
    said = message(2, 1, want);
    said.key.name = "other";
    send(net->process(2), said);
    send(net->process(2), message(3, 1, want));  // from a node that the job does not have
    EXPECT_TRUE(node->versions().empty());
    EXPECT_TRUE(net->heard<message::Chunk>(2).empty());
    say(2, 1, want);
    EXPECT_EQ(node->versions(), std::vector{key(1)});
    EXPECT_EQ(net->next<message::Chunk>(2).tag, 5u);
}

TEST_F(RouterTest, WhatIsNoMessageIsDropped) {
    begin(1);
    const auto task = [](World w, Address to) -> Task<Status> {
        Bytes bytes(100, std::byte{3});
        Status sent = co_await w.network.send(std::move(to), std::move(bytes), w.clock.in(second));
        co_return sent;
    };
    EXPECT_TRUE(net->result_of(task(net->process(2).world(), net->process(1).address())).ok());
    say(2, 1, message::Want{5, {1, 0, role_block}});
    EXPECT_EQ(net->next<message::Chunk>(2).tag, 5u) << "it goes on";
}

// What it says is neither heard nor answered; the log names it once, and so does whoever waits for it.
TEST_F(RouterTest, ADaemonOfAnotherFormatIsNotHeardAndNamedOnce) {
    const std::string path = (std::filesystem::temp_directory_path() / ("cairn-router-" + std::to_string(::getpid()))).string();
    ASSERT_TRUE(log_to_file(path, LogLevel::warning).ok());
    begin(0);
    ASSERT_TRUE(node->add_image(image_of(0, 1)).ok());
    const auto say_as = [&](std::uint32_t version) {
        Bytes bytes = encode(message(1, 1, message::Want{5, {0, 0, role_block}}));
        put_u32(&bytes[8], version);
        put_u64(&bytes[32], checksum(ByteView(bytes).first(32)));
        for (int i = 0; i < 2; ++i) send(net->process(1), bytes);
    };
    say_as(format_version + 1);
    for (std::uint32_t older = 1; older < format_version; ++older) {
        say_as(older);
        EXPECT_EQ(node->unsealed_by(key(1)), "node 1 (n1, rank 1, its cairnd is older: format " + std::to_string(older) + ", not " + std::to_string(format_version) + ")");
    }
    EXPECT_TRUE(net->heard<message::Chunk>(1).empty());
    say(1, 1, message::Want{5, {0, 0, role_block}});
    EXPECT_EQ(net->next<message::Chunk>(1).tag, 5u) << "it was replaced by a newer one";
    EXPECT_EQ(node->unsealed_by(key(1)), "node 1 (n1, rank 1)");
    log_off();
    std::ifstream file(path);
    std::string newer, older, line;
    while (std::getline(file, line)) {
        if (line.find("newer-daemon-not-understood") != std::string::npos) newer += line + "\n";
        if (line.find("older-daemon-not-heard") != std::string::npos) older += line + "\n";
    }
    std::filesystem::remove(path);
    EXPECT_EQ(std::count(newer.begin(), newer.end(), '\n'), 1) << newer;
    EXPECT_NE(newer.find("format version " + std::to_string(format_version + 1) + " found"), std::string::npos) << newer;
    EXPECT_EQ(std::count(older.begin(), older.end(), '\n'), format_version > 1 ? 1 : 0) << older;
    EXPECT_EQ(older.find("node=n1") != std::string::npos, format_version > 1) << older;
}

// The follower of a node that lacks images answers; a coordinator that is none does not.
TEST_F(RouterTest, NotedOfTheCoordinatorIsForTheFollower) {
    begin(1);
    say(2, 1, message::Noted{{1}});
    EXPECT_TRUE(net->heard<message::Noted>(2).empty());
    EXPECT_TRUE(net->heard<message::Noted>(0).empty());
    say(0, 1, message::Noted{{1}});
    EXPECT_TRUE(net->next<message::Noted>(0).missing.empty());
}

// What the coordinator says to its own node names node 1; what node 2 says of itself is no word on who is missing.
TEST_F(RouterTest, NotedOfOthersIsForTheCoordinator) {
    begin(0);
    ASSERT_TRUE(node->add_image(image_of(0, 1)).ok());
    net->run(second);
    EXPECT_EQ(node->unsealed_by(key(1)), "node 1 (n1, rank 1)");
    say(2, 1, message::Noted{{2}});
    EXPECT_EQ(node->unsealed_by(key(1)), "node 1 (n1, rank 1)");
    EXPECT_EQ(net->heard<message::Noted>(1).back().missing, std::vector<NodeIndex>{1});
}

// Each message finds its role, on this node and on another one.
TEST_F(RouterTest, HandsEachMessageToItsRole) {
    begin(1);
    message::Lead lead;
    lead.attempt_id = {7, 5};
    lead.block_bytes = role_block;
    lead.parts_total = lead.ranks_total = 1;
    lead.parts = {{0, "", 0, {{2, 0, role_block, {}}}}};
    say(0, 1, lead);
    EXPECT_EQ(net->next<message::PartsDone>(0).code, Code::internal) << "the leader's, who has no share of this part";
    say(2, 1, message::Sealed{{testing::role_image(2, role_block)}, role_block});
    EXPECT_TRUE(net->heard<message::Noted>(2).empty()) << "the coordinator's, who is another node";
    say(0, 1, message::Ended{Code::ok, "", true});
    EXPECT_EQ(node->state(key(1)).level, Level::committed);
    EXPECT_EQ(node->counters().versions_committed, 1u);
    say(0, 1, message::Ended{Code::superseded, "said late", true});
    EXPECT_EQ(node->state(key(1)).level, Level::committed) << "the first word stands";
    EXPECT_TRUE(node->state(key(1)).failure.ok());
}

// A job of one node: what it says to itself comes to the roles, too.
TEST_F(RouterTest, OneNodeIsAllRoles) {
    RoleOptions options;
    options.ranks = {{0}};
    begin(options);
    ASSERT_TRUE(node->add_image(image_of(0, 1)).ok());
    ASSERT_TRUE(net->run_until([&] { return node->state(key(1)).level == Level::committed; }, 10 * second));
    EXPECT_TRUE(net->durable(net->layout.manifest(key(1))).has_value());
}

// A daemon that was started again is where it spoke from.
TEST_F(RouterTest, AnswersWhereTheNodeWasLastHeardOf) {
    begin(1);
    sim::Process& again = net->process(0).node().start_process("cairnd");
    message::Message said = message(0, 1, message::Noted{{1}});
    said.address = again.address();
    send(again, said);
    EXPECT_TRUE(net->heard<message::Noted>(0).empty());
    EXPECT_FALSE(again.world().network.inbox().empty());
}

TEST_F(RouterTest, AnImageIsTakenOnceAndOnlyOfThisNodesRanks) {
    begin(1);
    LocalImage foreign = image_of(1, 1);
    foreign.header.key.incarnation.low ^= 1;
    EXPECT_EQ(node->add_image(foreign).code(), Code::not_found);
    EXPECT_EQ(node->add_image(image_of(2, 1)).code(), Code::invalid_argument);
    LocalImage large = image_of(1, 1);
    large.header.block_bytes = 1ull << 40;
    EXPECT_EQ(node->add_image(large).code(), Code::invalid_argument);
    EXPECT_EQ(node->state(key(1)).level, Level::none);
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok()) << "said twice";
    EXPECT_EQ(node->state(key(1)).bytes, image_bytes);
    LocalImage other = image_of(1, 1);
    other.path += "-other";
    EXPECT_EQ(node->add_image(other).code(), Code::already_exists);
    EXPECT_EQ(node->drop_image(key(1), 1).code(), Code::already_exists) << "it is being flushed";
    say(0, 1, message::Ended{Code::ok, "", true});
    EXPECT_TRUE(node->drop_image(key(1), 1).ok());
    EXPECT_EQ(node->image(key(1), 1), nullptr);
}

// Its size is told before it is sealed. A version that has only begun is none that anybody knows, waits for, or must forget.
TEST_F(RouterTest, AnImageThatBeginsIsToldAndNoVersionYet) {
    begin(1);
    VersionKey foreign = key(1);
    foreign.incarnation.low ^= 1;
    node->begin_image(foreign, {1, image_bytes, role_block});
    node->begin_image(key(1), {2, image_bytes, role_block});
    node->begin_image(key(1), {1, UINT64_MAX, role_block});
    node->begin_image(key(1), {1, image_bytes, 3});
    EXPECT_EQ(node->filling(), 0u) << "neither of this job, nor of this node, nor of a size that can be";
    node->begin_image(key(1), {1, image_bytes, role_block});
    EXPECT_EQ(net->next<message::Begun>(0), (message::Begun{{{1, image_bytes, {}}}, role_block}));
    EXPECT_EQ(node->filling(), 1u);
    EXPECT_TRUE(node->versions().empty());
    node->leave_image(key(1), 1);
    node->leave_image(key(7), 1);
    EXPECT_EQ(node->filling(), 0u);
    node->begin_image(key(1), {1, image_bytes, role_block});
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    EXPECT_EQ(node->filling(), 0u);
    net->heard<message::Begun>(0);
    node->begin_image(key(1), {1, image_bytes, role_block});
    EXPECT_EQ(node->filling(), 0u) << "it is sealed";
    EXPECT_TRUE(net->heard<message::Begun>(0).empty());
}

// One of them that seals, or gives up, says nothing of the others.
TEST_F(RouterTest, EachRankBeginsByItself) {
    RoleOptions options;
    options.ranks = {{0}, {1, 2, 3}, {4}};
    options.self = 1;
    begin(options);
    node->begin_image(key(1), {1, image_bytes, role_block});
    node->begin_image(key(1), {2, role_block, role_block});
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    EXPECT_EQ(node->filling(), 1u);
    net->run(second);
    EXPECT_TRUE(net->heard<message::Begun>(0).empty());
    node->begin_image(key(1), {3, 0, role_block});
    EXPECT_EQ(net->next<message::Begun>(0), (message::Begun{{{1, image_bytes, {}}, {2, role_block, {}}, {3, 0, {}}}, role_block}));
    node->leave_image(key(1), 3);
    EXPECT_EQ(node->filling(), 1u);
}

// Only the coordinator hears it.
TEST_F(RouterTest, SizesOfAVersionThatHasBegunMakeNoVersion) {
    begin(0);
    for (const NodeIndex from : {1u, 2u}) say(from, 1, message::Begun{{{from, image_bytes, {}}}, role_block});
    EXPECT_TRUE(node->versions().empty());
    node->begin_image(key(1), {0, image_bytes, role_block});
    net->run(second);
    ASSERT_TRUE(node->add_image(image_of(0, 1)).ok());
    for (const NodeIndex from : {1u, 2u}) say(from, 1, message::Sealed{{testing::role_image(from, image_bytes)}, role_block});
    net->run(second);
    EXPECT_EQ(node->counters().planned_ahead, 1u);
}

// While images are filled, or else after the last seal.
TEST_F(RouterTest, RoomIsLookedAtOnceAFlush) {
    for (const bool told : {false, true}) {
        if (node) net->process(net->self).kill();
        node.reset();
        RoleOptions options;
        options.roots = {"/persistent/.a", "/persistent/.b"};
        begin(options);
        const std::vector<std::string>& done = net->watch_operations();
        const auto looks = [&] { return std::count_if(done.begin(), done.end(), [](const std::string& each) { return each.starts_with("statvfs "); }); };
        for (const NodeIndex from : {1u, 2u}) {
            if (told) say(from, 1, message::Begun{{{from, image_bytes, {}}}, role_block});
            say(from, 1, message::Sealed{{testing::role_image(from, image_bytes)}, role_block});
        }
        if (told) node->begin_image(key(1), {0, image_bytes, role_block});
        net->run(second);
        EXPECT_EQ(looks(), told ? 2 : 0);
        ASSERT_TRUE(node->add_image(image_of(0, 1)).ok());
        net->next<message::Lead>(1);
        EXPECT_EQ(looks(), 2);
        EXPECT_EQ(node->counters().planned_ahead, told ? 1u : 0u);
    }
}

// Ended versions whose images have left: the oldest go, and no others.
TEST_F(RouterTest, AVersionThatNobodyHoldsIsForgotten) {
    RoleOptions options;
    options.self = 1;
    options.settings.limits.versions = 2;
    begin(options);
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    say(0, 1, message::Ended{Code::ok, "", true});
    for (Version version = 2; version <= 5; ++version) {
        say(0, version, message::Noted{{2}});
        EXPECT_EQ(node->versions().size(), version) << "what has not ended is remembered, and 1, whose image is here";
    }
    for (Version version = 2; version <= 5; ++version) say(0, version, message::Ended{Code::ok, "", true});
    EXPECT_EQ(node->versions().size(), 5u) << "more than it need: no new one has come";
    say(0, 6, message::Noted{{2}});
    EXPECT_EQ(node->versions(), (std::vector{key(1), key(6)})) << "the image of 1 is here, 6 has not ended";
    EXPECT_TRUE(node->drop_image(key(1), 1).ok());
    say(0, 7, message::Noted{{2}});
    EXPECT_EQ(node->versions(), (std::vector{key(6), key(7)}));
}

// It may not hear of the end.
TEST_F(RouterTest, AnIoNodeForgetsWhatItDoesNotLead) {
    RoleOptions options;
    options.ranks = {{0}, {}, {1}};
    options.self = 1;
    options.settings.limits.versions = 2;
    begin(options);
    for (Version version = 1; version <= 5; ++version) say(0, version, message::Noted{{2}});
    EXPECT_EQ(node->versions(), (std::vector{key(4), key(5)}));
}

// Versions 1 and 2 of this node's rank are committed and in scratch: the older one is the base that the coordinator names, and later one of which this node has nothing.
TEST_F(RouterTest, ABaseIsTheVersionThatTheCoordinatorNamesAndNoOther) {
    RoleOptions options;
    options.self = 1;
    options.settings.encode_buffers = 1;
    options.settings.buffer_bytes = image_bytes;
    options.model.codec_shrinks = true;
    options.model.stored_max = 0.5;
    begin(options);
    const auto add = [&](Version version) {
        LocalImage image = image_of(1, version);
        image.data = sim::describe(version, image_bytes);
        image.checksums = net->result_of(net->world.cpu.checksums(image.data, role_block));
        ASSERT_TRUE(node->add_image(std::move(image)).ok());
    };
    for (const Version version : {1u, 2u}) {
        add(version);
        say(0, version, message::Ended{Code::ok, "", true, 1});
    }
    EXPECT_TRUE(node->is_base(key(1)));
    EXPECT_FALSE(node->is_base(key(2)));
    add(3);
    // Where they need a base, what the bytes of the image are encoded as.
    const auto encoded = [&](std::uint64_t tag, Version base) -> std::optional<sim::Runs> {
        const World leader = net->process(2).world();
        const Slice room{leader.storage.allocate(image_bytes).value(), 0, image_bytes};
        EXPECT_TRUE(leader.network.post_payload(tag, room).ok());
        say(2, 3, message::Want{tag, {1, 0, image_bytes}, Reason::flush, "predict-planes-zstd", base});
        const message::Chunk chunk = net->next<message::Chunk>(2);
        EXPECT_EQ(chunk.code, Code::ok) << chunk.text;
        return chunk.needs_base ? std::optional(sim::runs_of(room.part(0, chunk.stored_bytes))) : std::nullopt;
    };
    const std::optional<sim::Runs> changed = encoded(11, 1);
    ASSERT_TRUE(changed.has_value());
    EXPECT_TRUE(sim::decode_runs(*changed, sim::runs_of_description(1, 0, image_bytes), image_bytes).has_value());
    say(0, 9, message::Ended{Code::ok, "", true, 8});
    EXPECT_TRUE(node->is_base(key(8)));
    EXPECT_FALSE(encoded(12, 8).has_value()) << "it has nothing of version 8";
}

TEST_F(RouterTest, AJobIsForgottenWhenNothingOfItIsNeeded) {
    begin(1);
    const Id128 incarnation = key(1).incarnation;
    ASSERT_TRUE(node->add_image(image_of(1, 1)).ok());
    net->run(second);
    EXPECT_FALSE(node->forget(incarnation)) << "it is announced";
    EXPECT_TRUE(node->knows(incarnation));
    say(0, 1, message::Ended{Code::ok, "", true});
    net->run(second);
    EXPECT_TRUE(node->forget(incarnation));
    EXPECT_FALSE(node->knows(incarnation));
    EXPECT_TRUE(node->versions().empty());
    say(0, 2, message::Noted{{1}});
    EXPECT_TRUE(node->versions().empty()) << "late messages are nobody's";
}

}  // namespace
}  // namespace cairn::engine
