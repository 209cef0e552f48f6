// The writer alone, for tests of it and of what it tries.
#pragma once

#include "engine/leader/writer.hpp"
#include "engine/role_testing.hpp"

namespace cairn::testing {

struct WriterAlone {
    explicit WriterAlone(engine::Common& c)
        : ring(c.world.clock, c.world.storage, c.settings.buffers, c.settings.buffer_bytes), part_file(c, ring), rooms(c, ring), trial(c, ring), writer(c, ring, part_file, rooms, trial) {}
    BufferRing ring;
    engine::PartFile part_file;
    engine::Rooms rooms;
    engine::Trial trial;
    engine::Writer writer;
};

// Node 1 leads one part, from an offset on: its own rank 1, in blocks of which the last is short, and rank 2 of node 2.
struct WriterTest : ::testing::Test {
    static constexpr std::uint64_t from = 3 * role_block, own_bytes = 5 * role_block + 100, other_bytes = 2 * role_block + 10;
    static constexpr std::uint64_t range_bytes = 9 * role_block;

    static message::Lead lead() {
        message::Lead lead;
        lead.attempt_id = {7, 5};
        lead.parts_total = 1;
        lead.block_bytes = role_block;
        lead.parts = {{0, "", 0, {{1, from, range_bytes, {{1, {{1, 0, own_bytes}}}, {2, {{2, 0, other_bytes}}}}}}}};
        return lead;
    }
    void begin(RoleOptions options = {}, const message::Lead& lead = WriterTest::lead(), std::uint32_t writers = 1) {
        options.self = 1;
        options.settings.buffer_bytes = 2 * role_block;
        node = std::make_unique<Alone<WriterAlone>>(options);
        node->add_image(1, own_bytes);
        attempt = std::make_shared<engine::Attempt>(node->world, node->flight, lead);
        attempt->times.assign(1, {});
        node->flight->leader = std::make_shared<engine::LeaderSide>();
        node->flight->leader->leading = attempt;
        part().writers = writers;
        node->subject.writer.lay_out(*attempt, part());
        part().path = node->layout.part(node->flight->key, 0, 1, lead.attempt_id);
        OpenOptions creating;
        creating.mode = OpenMode::create;
        part().file = node->result_of(node->world.storage.open(part().path, creating, node->world.clock.in(second))).value();
    }
    engine::PartState& part() { return *attempt->parts.front(); }
    void start() { node->gate.spawn(keep(node->subject.writer.write_loop(*attempt, part(), 0), &ended)); }
    static Task<void> keep(Task<void> task, bool* out) {
        co_await task;
        *out = true;
    }
    // As the receiver does it.
    void receive(Source source) {
        engine::PendingChunk chunk;
        chunk.received = true;
        chunk.source = source;
        const Bytes data = bytes_in(role_bytes(source.rank, other_bytes), source.image_offset, source.length);
        chunk.checksums = block_checksums(data);
        chunk.data = Slice::of(data);
        part().ahead_bytes += source.length;
        part().write_queue.front().push_back(std::move(chunk));
        attempt->work.notify_all();
    }
    void end_of_received() {
        part().receiver_done = true;
        attempt->work.notify_all();
    }
    // What the runs say of the file, checked.
    void check(std::uint64_t bytes_wanted) {
        const Bytes file = node->read(part().path).value();
        std::map<std::uint64_t, std::uint64_t> taken;
        std::uint64_t sum = 0;
        for (const StoredRun& run : part().runs) {
            const StoredPiece& piece = run.pieces.at(0);
            const Bytes data = bytes_in(role_bytes(piece.rank, piece.rank == 1 ? own_bytes : other_bytes), piece.image_offset, piece.length);
            EXPECT_TRUE(bytes_in(file, run.part_offset, run.stored_bytes) == data) << run.part_offset;
            EXPECT_EQ(piece.checksums, block_checksums(data));
            EXPECT_EQ(run.part_offset % part_alignment, 0u);
            EXPECT_GE(run.part_offset, from);
            EXPECT_LE(run.part_offset + run.stored_bytes, from + range_bytes);
            EXPECT_TRUE(taken.emplace(run.part_offset, round_up(run.stored_bytes, part_alignment)).second);
            sum += piece.length;
        }
        std::uint64_t end = 0;
        for (const auto& [offset, bytes] : taken) {
            EXPECT_GE(offset, end) << "no block has two";
            end = offset + bytes;
        }
        EXPECT_EQ(sum, bytes_wanted);
    }

    std::unique_ptr<Alone<WriterAlone>> node;
    std::shared_ptr<engine::Attempt> attempt;
    bool ended = false;
};

}  // namespace cairn::testing
