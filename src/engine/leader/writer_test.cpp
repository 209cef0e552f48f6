// The writer alone: what was received goes first, runs are aligned in its own range, and where each went is kept for the footer.
#include "engine/leader/writer_testing.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::role_bytes;
using testing::RoleOptions;
using testing::WriterAlone;
using testing::WriterTest;

TEST_F(WriterTest, WhatWasReceivedGoesFirst) {
    begin();
    receive({2, 0, role_block});
    receive({2, role_block, other_bytes - role_block});
    start();
    end_of_received();
    node->run(second);
    ASSERT_TRUE(ended);
    EXPECT_TRUE(attempt->failure.ok()) << attempt->failure.to_string();
    ASSERT_GE(part().runs.size(), 3u);
    EXPECT_EQ(part().runs[0].pieces[0].rank, 2u);
    EXPECT_EQ(part().runs[1].pieces[0].rank, 2u);
    EXPECT_EQ(part().runs[2].pieces[0].rank, 1u);
    check(own_bytes + other_bytes);
    EXPECT_EQ(attempt->written_bytes, own_bytes + other_bytes);
    EXPECT_EQ(attempt->times[0].received_bytes, other_bytes);
    EXPECT_EQ(attempt->times[0].local_bytes, own_bytes);
    EXPECT_EQ(part().begun_bytes() + part().writing_bytes, 0u);
}

// Local data do not wait for what must come; and nobody goes home before all came.
TEST_F(WriterTest, WaitsForWhatIsStillToCome) {
    begin();
    start();
    node->run(10 * second);
    EXPECT_FALSE(ended);
    check(own_bytes);
    receive({2, 0, other_bytes});
    end_of_received();
    node->run(second);
    EXPECT_TRUE(ended);
    check(own_bytes + other_bytes);
}

TEST_F(WriterTest, AnImageThatHasLeftScratchIsNotTheStoragesFault) {
    begin();
    node->flight->images.clear();
    start();
    node->run(second);
    EXPECT_TRUE(ended);
    EXPECT_EQ(attempt->failure.code(), Code::not_found);
    EXPECT_NE(attempt->failure.text().find("rank 1"), std::string::npos) << attempt->failure.text();
    EXPECT_FALSE(attempt->failed_part.has_value());
    EXPECT_TRUE(part().runs.empty());
}

// Of an image that can be read once only, and was, by an attempt before this one: the coordinator need not try again.
TEST_F(WriterTest, WhatIsUsedUpIsSaidToTheCoordinator) {
    begin();
    HeldImage& held = node->flight->images.at(1);
    held.once = std::make_shared<OnceState>(OnceState{std::vector<bool>(held.unit_ends.size(), true)});
    start();
    node->run(second);
    EXPECT_EQ(attempt->failure.code(), Code::not_found);
    EXPECT_FALSE(attempt->failed_part.has_value());
    EXPECT_NE(node->next<message::Cancel>(0).text.find("rank 1's image, which can be read once only"), std::string::npos);
}

TEST_F(WriterTest, AWriteThatFailsNamesItsPartAndLeavesNoRun) {
    begin();
    node->sim.faults().out_of_space = 1;
    start();
    node->run(second);
    EXPECT_TRUE(ended);
    EXPECT_EQ(attempt->failure.code(), Code::out_of_space);
    EXPECT_EQ(attempt->failed_part, 0u);
    EXPECT_TRUE(part().runs.empty());
    EXPECT_EQ(attempt->written_bytes, 0u);
}

// More than the range holds would go over what another leader writes.
TEST_F(WriterTest, NothingIsWrittenBehindTheRange) {
    message::Lead narrow = lead();
    narrow.parts[0].shares[0].bytes = 4 * role_block;
    begin({}, narrow);
    start();
    node->run(second);
    EXPECT_TRUE(ended);
    EXPECT_EQ(attempt->failure.code(), Code::internal);
    EXPECT_LE(node->read(part().path)->size(), from + 4 * role_block);
}

TEST_F(WriterTest, EachRankBelongsToOneWriterWhereImagesAreNotSplit) {
    RoleOptions options;
    options.settings.local_split = LocalSplit::files;
    begin(options, lead(), 2);
    node->gate.spawn(keep(node->subject.writer.write_loop(*attempt, part(), 1), &ended));
    node->run(second);
    EXPECT_EQ(attempt->written_bytes, 0u) << "it is the other's";
    bool other_ended = false;
    node->gate.spawn(keep(node->subject.writer.write_loop(*attempt, part(), 0), &other_ended));
    end_of_received();
    node->run(second);
    EXPECT_TRUE(ended && other_ended);
    check(own_bytes);
}

// A short run loses up to part_alignment. Where runs are encoded, one writer's turn is thus not the measure: chunks are as long as buffers allow.
TEST_F(WriterTest, ChunksThatAreEncodedAreLongOnes) {
    begin({}, lead(), 8);
    EXPECT_EQ(part().next_chunk_bytes(role_block, 0), role_block);
    message::Lead encoding = lead();
    encoding.codec = "zero-runs";
    begin({}, encoding, 8);
    EXPECT_EQ(part().next_chunk_bytes(role_block, 0), 2 * role_block);
    part().encoded_chunk_bytes_max = 1ull << 30;
    EXPECT_EQ(part().next_chunk_bytes(role_block, 0), 1ull << 20);
    part().encoded_raw_bytes = 40ull << 20, part().encoded_stored_bytes = 1ull << 20;
    EXPECT_EQ(part().next_chunk_bytes(role_block, 0), 10ull << 20);
}

// All data here are of one key, which the plan names.
TEST_F(WriterTest, DataOfAKeyAreEncodedAsThePlanSays) {
    for (const Effort effort : {Effort::fast, Effort::small, Effort::none}) {
        message::Lead encoding = lead();
        encoding.codec = "predict-planes-zstd";
        if (effort != Effort::fast) encoding.keys = {{1, effort}};
        RoleOptions options;
        options.model.codec_shrinks = true;
        options.model.codec_keys = {{1, 1e9, 0.5, 0.5}};
        begin(options, encoding);
        node->flight->images.at(1).image.data = sim::describe(1, own_bytes);
        end_of_received();
        start();
        node->run(second);
        EXPECT_TRUE(ended && attempt->failure.ok()) << attempt->failure.to_string();
        ASSERT_FALSE(part().runs.empty());
        std::uint64_t stored = 0, raw = 0;
        for (const StoredRun& run : part().runs) {
            EXPECT_EQ(run.codec != 0, effort != Effort::none);
            stored += run.stored_bytes;
            for (const StoredPiece& piece : run.pieces) raw += piece.length;
        }
        EXPECT_NEAR(static_cast<double>(stored) / static_cast<double>(raw), effort == Effort::fast ? 0.5 : effort == Effort::small ? 0.475 : 1, 0.01);
        const std::vector<KeyEncoded> told = node->job->keys_seen.take();
        ASSERT_EQ(told.size(), 1u) << "no byte is of another key";
        EXPECT_EQ(told[0].key, 1u);
        EXPECT_EQ(told[0].effort, effort);
        EXPECT_EQ(told[0].raw_bytes, raw);
        EXPECT_EQ(told[0].stored_bytes, stored);
        EXPECT_NE(told[0].took_ns, 0u);
    }
}

TEST_F(WriterTest, WhatDoesNotGetShorterIsToldAsLongAsItWas) {
    message::Lead encoding = lead();
    encoding.codec = "predict-planes-zstd";
    RoleOptions options;
    options.model.codec_shrinks = true;
    options.model.stored_min = options.model.stored_max = 1.1;
    begin(options, encoding);
    node->flight->images.at(1).image.data = sim::describe(1, own_bytes);
    end_of_received();
    start();
    node->run(second);
    const std::vector<KeyEncoded> told = node->job->keys_seen.take();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].key, 0u);
    EXPECT_GT(told[0].raw_bytes, 0u);
    EXPECT_EQ(told[0].stored_bytes, told[0].raw_bytes);
}

// And however fast storage is, they are no longer than whoever wants some bytes of one likes to decode.
TEST_F(WriterTest, ChunksThatAreEncodedAreNotEndless) {
    for (const bool encodes : {false, true}) {
        message::Lead fast = lead();
        if (encodes) fast.codec = "zero-runs";
        begin({}, fast);
        part().chunk_bytes_max = 64ull << 20;
        part().written_bytes = 1ull << 40;
        part().rate.begin(0);
        part().rate.end(second, 1ull << 40);
        if (encodes) part().encoded_chunk_bytes_max = 1ull << 30;
        EXPECT_EQ(part().next_chunk_bytes(role_block, second), encodes ? 4ull << 20 : 64ull << 20);
    }
}

// Its checksums were made before, and what is written may be zeros.
TEST_F(WriterTest, WhatScratchLosesWhileItIsWrittenIsNoRun) {
    begin();
    const auto scratch = std::make_shared<sim::Content>();
    scratch->write(0, sim::runs_of_description(1, 0, own_bytes));
    node->flight->images.at(1).image.data = {std::make_shared<sim::SimBuffer>(scratch, own_bytes), 0, own_bytes};
    node->sim.set_observer([&](sim::Process&, const char* what, const std::string&) {
        if (std::string(what) == "write") scratch->lose(0);
    });
    end_of_received();
    start();
    node->run(second);
    EXPECT_TRUE(ended);
    EXPECT_TRUE(part().runs.empty());
    EXPECT_EQ(attempt->failure.code(), Code::io_error) << attempt->failure.to_string();
    EXPECT_TRUE(part().blameless) << "its storage took what it was given";
}

// Its checksums were made before: what is encoded may be zeros in the place of what they are of.
TEST_F(WriterTest, WhatScratchLosesWhileItIsEncodedIsNoRun) {
    for (const bool loses : {true, false}) {
        message::Lead encoding = lead();
        encoding.codec = "zero-runs";
        encoding.parts[0].shares[0].nodes = {{1, {{1, 0, role_block}}}};
        RoleOptions options;
        options.model.codec_shrinks = true;
        options.model.stored_max = 0.5;
        begin(options, encoding);
        const auto scratch = std::make_shared<sim::Content>();
        scratch->write(0, sim::runs_of_description(1, 0, own_bytes));
        node->flight->images.at(1).image.data = {std::make_shared<sim::SimBuffer>(scratch, own_bytes), 0, own_bytes};
        std::uint32_t encoded = 0;
        node->sim.set_observer([&](sim::Process&, const char* what, const std::string&) {
            if (std::string(what) != "encode") return;
            ++encoded;
            if (loses) scratch->lose(0);
        });
        end_of_received();
        start();
        node->run(second);
        EXPECT_TRUE(ended);
        EXPECT_EQ(encoded, 1u);
        EXPECT_EQ(part().runs.size(), loses ? 0u : 1u);
        EXPECT_EQ(attempt->failure.code(), loses ? Code::io_error : Code::ok) << attempt->failure.to_string();
        if (!loses) {
            EXPECT_NE(part().runs.at(0).codec, 0u);
            continue;
        }
        EXPECT_NE(attempt->failure.text().find("rank 1, /scratch/slot-1: a part of it can not be read any more"), std::string::npos) << attempt->failure.text();
        EXPECT_FALSE(attempt->failed_part.has_value()) << "storage is not to blame";
        EXPECT_EQ(node->flight->images.at(1).users, 0u);
    }
}

// Version 9, whose image of rank 1 is in scratch still, as long as it is not lost while it is used.
TEST_F(WriterTest, ItsOwnDataAreStoredAsWhatChangedSinceABase) {
    for (const bool loses : {false, true}) {
        message::Lead encoding = lead();
        encoding.codec = "predict-planes-zstd";
        encoding.base = 9;
        encoding.parts[0].shares[0].nodes = {{1, {{1, 0, own_bytes}}}};
        RoleOptions options;
        options.model.codec_shrinks = true;
        options.model.stored_max = 0.5;
        begin(options, encoding);
        auto older = std::make_shared<Flight>(node->world, VersionKey{"series", 9, {7, 1}}, node->job);
        older->state.level = Level::committed;
        node->flight->images.at(1).image.data = sim::describe(1, own_bytes);
        LocalImage image = node->image_of(1, own_bytes);
        const auto scratch = std::make_shared<sim::Content>();
        scratch->write(0, sim::runs_of_description(9, 0, own_bytes));
        image.data = {std::make_shared<sim::SimBuffer>(scratch, own_bytes), 0, own_bytes};
        image.checksums = node->result_of(node->world.cpu.checksums(image.data, role_block));
        older->images.emplace(1, held_image(std::move(image)));
        node->job->base = 9;
        node->job->base_flight = older;
        node->sim.set_observer([&](sim::Process&, const char* what, const std::string&) {
            if (loses && std::string(what) == "encode") scratch->lose(0);
        });
        end_of_received();
        start();
        node->run(second);
        ASSERT_TRUE(ended && attempt->failure.ok()) << attempt->failure.to_string();
        ASSERT_FALSE(part().runs.empty());
        for (const StoredRun& run : part().runs) {
            EXPECT_EQ(run.base, loses ? 0u : 1u);
            EXPECT_EQ(run.codec, loses ? 0u : 1u) << "nothing that was made while it was lost counts";
        }
        EXPECT_EQ(older->images.at(1).users, 0u);
    }
}

// By its follower: it goes where it went, and nobody decodes it, or encodes it once more.
TEST_F(WriterTest, WhatCameEncodedIsWrittenAsItCame) {
    message::Lead encoding = lead();
    encoding.codec = "zero-runs";
    encoding.parts[0].shares[0].nodes = {{2, {{2, 0, other_bytes}}}};
    RoleOptions options;
    options.settings.buffers = 1;
    options.model.codec_shrinks = true;
    begin(options, encoding);
    const std::vector<std::string>& operations = node->watch_operations();
    receive({2, 0, other_bytes});
    PendingChunk& chunk = part().write_queue.front().front();
    const std::vector<std::uint64_t> raw_checksums = chunk.checksums;
    const Bytes stored = role_bytes(9, 1000);
    chunk.use = node->result_of(node->subject.ring.take_to_receive(true, node->world.clock.in(second))).value();
    chunk.data = {chunk.use.buffer, 0, stored.size()};
    sim::put(chunk.data, sim::runs_of_bytes(stored));
    chunk.codec = 1;
    chunk.checksum = checksum(stored);
    end_of_received();
    start();
    node->run(second);
    ASSERT_TRUE(ended && attempt->failure.ok()) << attempt->failure.to_string();
    ASSERT_EQ(part().runs.size(), 1u);
    const StoredRun& run = part().runs[0];
    EXPECT_EQ(run.codec, 1u);
    EXPECT_EQ(run.stored_bytes, stored.size());
    EXPECT_EQ(run.checksum, checksum(stored));
    EXPECT_EQ(raw_bytes(run), other_bytes);
    EXPECT_EQ(run.pieces.at(0).checksums, raw_checksums);
    EXPECT_TRUE(testing::bytes_in(node->read(part().path).value(), run.part_offset, run.stored_bytes) == stored);
    EXPECT_EQ(std::count_if(operations.begin(), operations.end(), [](const auto& each) { return each.rfind("encode", 0) == 0; }), 0);
    EXPECT_EQ(part().ahead_bytes, 0u);
    const Result<BufferPtr> free = node->result_of(node->subject.ring.take(node->world.clock.now()));
    EXPECT_TRUE(free.ok()) << "its buffer is a credit again";
}

// Two regions of numbers each; the end of one image, and all of the other.
TEST_F(WriterTest, OfAPackIsKnownWhatIsKnownOfItsImages) {
    begin();
    const auto add = [&](Rank rank) {
        LocalImage image = node->image_of(rank, 3 * role_block);
        Region head, tail;
        head.name = "head", head.length = role_block, head.type = DataType::f64, head.shape = {role_block / 8};
        tail.name = "tail", tail.offset = role_block, tail.length = 2 * role_block, tail.type = DataType::f32, tail.shape = {role_block / 2};
        image.header.image.regions = {head, tail};
        node->flight->images.insert_or_assign(rank, held_image(std::move(image)));
    };
    add(0);
    add(1);
    PendingChunk chunk;
    chunk.packed = {{1, 2 * role_block, role_block, 0, {}, {}}, {2, 0, 100, role_block, {}, {}}, {0, 0, 3 * role_block, role_block + 104, {}, {}}};
    ASSERT_EQ(arrays_in(*node->flight, chunk)().size(), 3u) << "nothing of rank 2, which is not here";
    chunk.arrays = {{role_block + 4, 96, 8}};  // as its follower told
    const std::vector<NumberArray> known = arrays_in(*node->flight, chunk)();
    ASSERT_EQ(known.size(), 4u);
    const auto expect = [](const NumberArray& array, std::uint64_t offset, std::uint64_t length, unsigned width) {
        EXPECT_EQ(array.offset, offset);
        EXPECT_EQ(array.length, length);
        EXPECT_EQ(array.width, width);
    };
    expect(known[0], 0, role_block, 4);
    expect(known[1], role_block + 4, 96, 8);
    expect(known[2], role_block + 104, role_block, 8);
    expect(known[3], 2 * role_block + 104, 2 * role_block, 4);
    EXPECT_TRUE(arrays_in(*node->flight, PendingChunk())().empty());
}

}  // namespace
}  // namespace cairn::engine
