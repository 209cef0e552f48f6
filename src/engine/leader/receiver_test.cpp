// The receiver alone: a credit for each free buffer, what comes damaged is asked for again, and a follower that is silent or has nothing more is named.
#include "engine/leader/receiver_testing.hpp"

namespace cairn::engine {
namespace {

using testing::ReceiverTest;
using testing::role_block;
using testing::role_bytes;

TEST_F(ReceiverTest, AsksForAsMuchAsThereAreFreeBuffers) {
    begin();
    std::vector<message::Want> asked = wants();
    ASSERT_EQ(asked.size(), 2u);
    std::vector<Source> queued;
    while (!asked.empty()) {
        for (const message::Want& want : asked) answer(want);
        node.run(100 * millisecond);
        EXPECT_TRUE(wants().empty()) << "both buffers wait to be written";
        for (const PendingChunk& chunk : write_all_queued()) {
            queued.push_back(chunk.source);
            EXPECT_TRUE(chunk.received);
            EXPECT_EQ(chunk.checksums, testing::block_checksums(testing::bytes_in(role_bytes(1, image_bytes), chunk.source.image_offset, chunk.source.length)));
        }
        asked = wants();
        EXPECT_LE(asked.size(), 2u);
    }
    ASSERT_EQ(queued.size(), blocks);
    std::sort(queued.begin(), queued.end(), [](const Source& a, const Source& b) { return a.image_offset < b.image_offset; });
    for (std::uint64_t i = 0; i < blocks; ++i) EXPECT_EQ(queued[i], (Source{1, i * role_block, role_block}));
    EXPECT_FALSE(part().receiver_done) << "work of others may come yet";
    attempt->finishing = true;
    attempt->work.notify_all();
    node.run(second);
    EXPECT_TRUE(part().receiver_done);
    EXPECT_TRUE(attempt->failure.ok()) << attempt->failure.to_string();
}

TEST_F(ReceiverTest, WhereAChunkWillLieIsAskedTogetherWithIt) {
    message::Lead lead = attempt->lead;
    lead.parts_total = 2;
    lead.parts.front().shares.insert(lead.parts.front().shares.begin(), {2, image_bytes, role_block, {}});
    lead.addresses.push_back({2, node.process(2).address()});
    lead_by(lead);
    begin();
    EXPECT_EQ(wants().size(), 2u);
    const std::vector<message::Room> rooms = node.heard<message::Room>(2);
    ASSERT_EQ(rooms.size(), 2u) << "before a byte of them has come";
    EXPECT_EQ(rooms.front(), (message::Room{attempt->lead.attempt_id, 0, 0, role_block}));
}

TEST_F(ReceiverTest, ADamagedChunkIsAskedForAgain) {
    begin();
    const message::Want first = wants().front();
    answer(first, true);
    const std::vector<message::Want> again = wants();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].source, first.source);
    EXPECT_NE(again[0].tag, first.tag) << "what comes late of the first must not land in the second's place";
    EXPECT_TRUE(part().write_queue.front().empty());
    answer(again[0]);
    node.run(100 * millisecond);
    EXPECT_EQ(write_all_queued().size(), 1u);
    EXPECT_TRUE(attempt->failure.ok());
}

// It would be written over what came under the next tag, after that was compared.
TEST_F(ReceiverTest, WhatMayComeLateSharesItsBufferWithNothing) {
    begin();
    const message::Want want = wants().front();
    node.sim.faults().payload_delay = 1;
    node.sim.faults().message_delay_max = 100'000 * second;
    const auto task = [](World w, Address to, std::uint64_t tag, Slice slice) -> Task<void> {
        const Status late = co_await w.network.send_payload(std::move(to), tag, std::move(slice), w.clock.in(second));
        EXPECT_FALSE(late.ok());
    };
    ASSERT_TRUE(node.sim.run(task(node.process(1).world(), node.process(0).address(), want.tag, Slice::of(Bytes(role_block))), node.sim.now() + 2 * second));
    tell(chunk_of(want));
    node.run(node.common.settings.io_wait + second);
    EXPECT_EQ(attempt->failure.code(), Code::deadline) << attempt->failure.to_string();
    for (const message::Want& each : wants()) EXPECT_FALSE(each.source == want.source);
}

TEST_F(ReceiverTest, AChunkThatIsAlwaysDamagedFailsTheAttemptByName) {
    begin();
    std::vector<message::Want> asked = wants();
    const Source source = asked.front().source;
    int tries = 0;
    for (; attempt->failure.ok() && tries < 10; ++tries) {
        ASSERT_FALSE(asked.empty());
        EXPECT_EQ(asked.front().source, source);
        answer(asked.front(), true);
        asked = wants();
    }
    EXPECT_EQ(tries, 3);
    EXPECT_EQ(attempt->failure.code(), Code::corrupt);
    EXPECT_NE(attempt->failure.text().find("rank 1 from node 1 (n1, rank 1)"), std::string::npos) << attempt->failure.text();
    EXPECT_EQ(attempt->lost, 1u);
    EXPECT_TRUE(part().receiver_done);
}

TEST_F(ReceiverTest, APayloadOfAnotherLengthIsDamage) {
    begin();
    message::Want want = wants().front();
    const message::Chunk chunk = chunk_of(want);
    want.source.length /= 2;
    send(want);
    tell(chunk);
    ASSERT_EQ(wants().size(), 1u);
    EXPECT_TRUE(part().write_queue.front().empty());
}

TEST_F(ReceiverTest, AnImageThatIsGoneIsNotAskedForAgain) {
    begin();
    const message::Want want = wants().front();
    tell({want.tag, Code::not_found, "the image of rank 1 is not in this node's scratch any more", {}});
    EXPECT_TRUE(wants().empty());
    EXPECT_EQ(attempt->failure.code(), Code::not_found);
    EXPECT_EQ(attempt->lost, 1u);
}

TEST_F(ReceiverTest, WhatIsUsedUpIsSaidToTheCoordinator) {
    begin();
    message::Chunk chunk{wants().front().tag, Code::not_found, "rank 1's image can be read once only", {}};
    chunk.used_up = true;
    tell(chunk);
    EXPECT_TRUE(wants().empty());
    EXPECT_EQ(attempt->failure.code(), Code::not_found);
    EXPECT_EQ(node.next<message::Cancel>(0).text, chunk.text);
}

// An image of this node's own, which goes into a pack.
TEST_F(ReceiverTest, WhatOfItsOwnIsUsedUpIsSaidToTheCoordinator) {
    constexpr std::uint64_t small = 1'000;
    message::Lead& lead = attempt->lead;
    lead.pack_bytes = role_block;
    lead.parts = {{0, "", 0, {{0, 0, role_block, {{0, {{0, 0, small}}}, {1, {{1, 0, small}}}}}}}};
    attempt = std::make_shared<Attempt>(node.world, node.flight, lead);
    node.flight->leader->leading = attempt;
    node.subject.writer.lay_out(*attempt, part());
    LocalImage image = node.image_of(0, small);
    image.readable = Readable::once;
    HeldImage& held = node.flight->images.emplace(0, held_image(std::move(image))).first->second;
    held.once->used.assign(held.once->used.size(), true);
    begin();
    node.run(second);
    EXPECT_EQ(attempt->failure.code(), Code::not_found);
    EXPECT_NE(node.next<message::Cancel>(0).text.find("rank 0's image, which can be read once only"), std::string::npos);
}

TEST_F(ReceiverTest, AnAttemptThatEndsWhileItsPaceHoldsItBackLetsItsImageGo) {
    message::Lead lead = attempt->lead;
    lead.pack_bytes = role_block;
    lead.parts = {{0, "", 0, {{0, 0, role_block, {{0, {{0, 0, 1'000}}}, {1, {{1, 0, 1'000}}}}}}}};
    lead_by(lead);
    node.add_image(0, 1'000);
    PaceLimits limits;
    limits.closed = true;
    node.common.pace.set_limits(limits);
    begin();
    node.run(second);
    EXPECT_EQ(node.flight->images.at(0).users, 1u);
    attempt->fail(unavailable("elsewhere"));
    node.common.pace.wake();
    node.run(second);
    EXPECT_EQ(part().fetching, 0u);
    EXPECT_EQ(node.flight->images.at(0).users, 0u);
}

// A repeated or a foreign answer is none.
TEST_F(ReceiverTest, TheFirstAnswerToACreditCounts) {
    begin();
    const message::Want want = wants().front();
    tell({want.tag + 1000, Code::not_found, "", {}});
    tell(chunk_of(want));
    tell({want.tag, Code::not_found, "", {}});
    send(want);
    node.run(100 * millisecond);
    EXPECT_EQ(write_all_queued().size(), 1u);
    EXPECT_TRUE(attempt->failure.ok()) << attempt->failure.to_string();
}

TEST_F(ReceiverTest, ASilentFollowerIsAskedOnceMoreAndThenGivenUp) {
    begin();
    const std::vector<message::Want> asked = wants();
    const Nanos begun = node.sim.now();
    const FlushSettings& settings = node.common.settings;
    while (attempt->failure.ok() && node.sim.now() - begun < 10 * settings.peer_wait) {
        node.subject.receiver.watch_followers(*attempt);
        const std::vector<message::Want> again = wants();
        EXPECT_EQ(again.size(), attempt->failure.ok() ? 1u : 0u) << "one of its credits shows whether it lives";
        for (const message::Want& want : again) EXPECT_TRUE(want == asked[0] || want == asked[1]);
        node.run(settings.heartbeat);
    }
    EXPECT_EQ(attempt->failure.code(), Code::unavailable);
    EXPECT_NE(attempt->failure.text().find("node 1 (n1, rank 1) fell silent"), std::string::npos) << attempt->failure.text();
    EXPECT_EQ(attempt->lost, 1u);
    EXPECT_GT(node.sim.now() - begun, settings.peer_wait);
    EXPECT_LT(node.sim.now() - begun, settings.peer_wait + 4 * settings.heartbeat);
}

TEST_F(ReceiverTest, AFollowerThatSpeaksIsWaitedFor) {
    begin();
    wants();
    for (int i = 0; i < 100; ++i) {
        node.subject.receiver.watch_followers(*attempt);
        node.run(node.common.settings.heartbeat);
        if (i % 10 == 0) node.note_heard(1);  // that its checksums are being made, say
    }
    EXPECT_TRUE(attempt->failure.ok()) << attempt->failure.to_string();
}

// The buffers of a follower that died do not stay with the attempt.
TEST_F(ReceiverTest, AnAttemptThatIsOverGivesItsBuffersBack) {
    begin();
    ASSERT_EQ(wants().size(), 2u);
    attempt->fail(unavailable("elsewhere"));
    node.run(second);
    EXPECT_TRUE(part().receiver_done);
    EXPECT_EQ(part().fetching, 0u);
    EXPECT_TRUE(attempt->credits.empty());
    for (int i = 0; i < 2; ++i) {
        const Result<BufferPtr> free = node.result_of(node.subject.ring.take(node.world.clock.now()));
        EXPECT_TRUE(free.ok());
    }
}

// Its receiver waits for a buffer, and all of them wait to be written by writers that are gone.
TEST_F(ReceiverTest, APartThatIsDroppedGivesItsBuffersBackAtOnce) {
    begin();
    for (const message::Want& want : wants()) answer(want);
    node.run(100 * millisecond);
    ASSERT_EQ(part().write_queue.front().size(), 2u);
    attempt->drop(part());
    EXPECT_TRUE(part().write_queue.front().empty());
    node.run(100 * millisecond);
    EXPECT_TRUE(part().receiver_done);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(node.result_of(node.subject.ring.take(node.world.clock.now())).ok());
    EXPECT_TRUE(attempt->failure.ok());
}

// Followers encode what it asks them for.
struct ReceiverEncodedTest : ReceiverTest {
    ReceiverEncodedTest() {
        attempt->lead.codec = "zero-runs";
        attempt->lead.encode_at_follower = true;
        attempt->lead.keys = {{5, Effort::none}};
        attempt->codec = Codec::zero_runs;
    }
    // What its follower made of it: nobody decodes it here.
    static Bytes stored_of(const message::Want& want) { return testing::bytes_in(role_bytes(9, image_bytes), want.source.image_offset, want.source.length / 2); }
    message::Chunk encoded_chunk_of(const message::Want& want) const {
        message::Chunk chunk = chunk_of(want);
        chunk.stored_bytes = want.source.length / 2;
        chunk.stored_checksum = checksum(stored_of(want));
        return chunk;
    }
    // None is queued, and it is asked for once more.
    message::Want asked_again(const message::Want& first, const char* why) {
        const std::vector<message::Want> again = wants();
        EXPECT_TRUE(part().write_queue.front().empty()) << why;
        EXPECT_EQ(again.size(), 1u) << why;
        if (again.empty()) return {};
        EXPECT_EQ(again[0].source, first.source) << why;
        EXPECT_NE(again[0].tag, first.tag) << why;
        EXPECT_EQ(again[0].keys, first.keys) << why;
        return again[0];
    }
};

TEST_F(ReceiverEncodedTest, WhatComesEncodedIsQueuedAsItCame) {
    begin();
    const message::Want want = wants().front();
    EXPECT_EQ(want.codec, "zero-runs");
    EXPECT_EQ(want.keys, attempt->lead.keys);
    send_bytes(want.tag, stored_of(want));
    tell(encoded_chunk_of(want));
    node.run(100 * millisecond);
    ASSERT_EQ(part().write_queue.front().size(), 1u);
    const PendingChunk& chunk = part().write_queue.front().front();
    EXPECT_EQ(chunk.codec, 1u);
    EXPECT_EQ(chunk.checksum, checksum(stored_of(want)));
    EXPECT_TRUE(sim::content_equal(chunk.data, Slice::of(stored_of(want))));
    EXPECT_EQ(chunk.checksums, chunk_of(want).checksums) << "as its follower told them";
    EXPECT_EQ(chunk.bytes(), role_block) << "of the image";
    EXPECT_EQ(node.common.counters.received_bytes, role_block / 2);
    EXPECT_EQ(node.common.counters.came_encoded_bytes, role_block / 2);
    EXPECT_EQ(node.common.pace.counters().in_bytes, role_block / 2);
    EXPECT_EQ(node.common.pace.under_way_in(), 0u);
}

TEST_F(ReceiverEncodedTest, WhatDependsOnABaseSaysSoAndOnlyWhereItIsAskedTo) {
    for (const Version base : {Version{9}, Version{0}}) {
        attempt->lead.base = base;
        if (base != 0) begin();
        message::Want want = wants().front();
        EXPECT_EQ(want.base, base);
        send_bytes(want.tag, stored_of(want));
        message::Chunk chunk = encoded_chunk_of(want);
        chunk.needs_base = true;
        tell(std::move(chunk));
        if (base == 0) {
            asked_again(want, "nobody asked for a base");
            continue;
        }
        node.run(100 * millisecond);
        ASSERT_EQ(part().write_queue.front().size(), 1u);
        EXPECT_TRUE(part().write_queue.front().front().needs_base);
        part().write_queue.front().clear();
        attempt->lead.base = 0;
    }
}

TEST_F(ReceiverEncodedTest, WhatComesRawIsQueuedRaw) {
    begin();
    const message::Want want = wants().front();
    answer(want);
    node.run(100 * millisecond);
    ASSERT_EQ(part().write_queue.front().size(), 1u);
    EXPECT_EQ(part().write_queue.front().front().codec, 0u);
    EXPECT_EQ(node.common.counters.received_bytes, role_block);
    EXPECT_EQ(node.common.counters.came_encoded_bytes, 0u);
    EXPECT_EQ(node.common.pace.counters().in_bytes, role_block);
    EXPECT_EQ(write_all_queued().size(), 1u);
}

// What it encodes itself it asks about, where that codec makes use of it.
TEST_F(ReceiverTest, WhatIsToldOfAChunkIsKeptWithIt) {
    for (const Codec codec : {Codec::zero_runs, Codec::planes}) {
        attempt->codec = codec;
        if (codec == Codec::zero_runs) begin();
        const message::Want want = wants().front();
        message::Chunk chunk = chunk_of(want);
        EXPECT_EQ(want.describe, codec == Codec::planes);
        if (want.describe) chunk.arrays = {{0, 64, 8, true, false, 4, 0, 77}};
        const std::vector<NumberArray> told = chunk.arrays;
        send(want);
        tell(std::move(chunk));
        node.run(100 * millisecond);
        const std::vector<PendingChunk> queued = write_all_queued();
        ASSERT_EQ(queued.size(), 1u);
        EXPECT_EQ(queued.front().arrays, told);
        node.run(100 * millisecond);
    }
    const message::Want want = wants().front();
    message::Chunk chunk = chunk_of(want);
    chunk.arrays = {{want.source.length - 8, 16, 8}};
    send(want);
    tell(std::move(chunk));
    node.run(100 * millisecond);
    const std::vector<PendingChunk> queued = write_all_queued();
    ASSERT_EQ(queued.size(), 1u) << "a wrong word of it costs room, and no bit";
    EXPECT_TRUE(queued.front().arrays.empty());
}

TEST_F(ReceiverEncodedTest, DamageOnItsWayIsAskedForAgain) {
    begin();
    const message::Want first = wants().front();
    Bytes damaged = stored_of(first);
    damaged[17] ^= std::byte{1};
    send_bytes(first.tag, damaged);
    tell(encoded_chunk_of(first));
    const message::Want second_one = asked_again(first, "a bit differs");
    answer(second_one);  // raw this time: the buffer is as long as it was
    node.run(100 * millisecond);
    EXPECT_EQ(write_all_queued().size(), 1u);
    EXPECT_TRUE(attempt->failure.ok()) << attempt->failure.to_string();
}

TEST_F(ReceiverEncodedTest, WhatAFollowerMayNotSayIsDamage) {
    struct Case {
        const char* why;
        std::function<void(message::Chunk&)> change;
        std::uint64_t bytes = role_block / 2;
    };
    const Case cases[] = {{"as long as raw", [](message::Chunk& c) { c.stored_bytes = role_block; }, role_block},
                          {"shorter than told", [](message::Chunk&) {}, role_block / 2 - 1},
                          {"longer than told", [](message::Chunk&) {}, role_block / 2 + 1},
                          {"checksums for more", [](message::Chunk& c) { c.checksums.push_back(1); }},
                          {"cuts outside", [](message::Chunk& c) { c.cuts = {image_bytes + 1}, c.checksums.push_back(1); }}};
    begin();
    message::Want want = wants().front();
    for (const Case& each : cases) {
        message::Chunk chunk = encoded_chunk_of(want);
        each.change(chunk);
        Bytes data = testing::bytes_in(role_bytes(9, image_bytes), want.source.image_offset, each.bytes);
        chunk.stored_checksum = checksum(testing::bytes_in(data, 0, std::min<std::uint64_t>(each.bytes, chunk.stored_bytes)));
        send_bytes(want.tag, std::move(data));
        tell(std::move(chunk));
        const message::Want again = asked_again(want, each.why);
        answer(again);
        node.run(100 * millisecond);
        EXPECT_EQ(write_all_queued().size(), 1u) << each.why;
        const std::vector<message::Want> next = wants();
        ASSERT_EQ(next.size(), 1u) << each.why;
        want = next.front();
    }
    EXPECT_TRUE(attempt->failure.ok()) << attempt->failure.to_string();
}

TEST_F(ReceiverEncodedTest, WhatWasNotAskedForEncodedMayNotComeSo) {
    attempt->lead.encode_at_follower = false;
    begin();
    const message::Want want = wants().front();
    EXPECT_EQ(want.codec, "");
    EXPECT_TRUE(want.keys.empty());
    send_bytes(want.tag, stored_of(want));
    tell(encoded_chunk_of(want));
    asked_again(want, "nobody asked");
}

}  // namespace
}  // namespace cairn::engine
