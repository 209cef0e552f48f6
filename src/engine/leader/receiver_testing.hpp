// The receiver alone, for tests.
#pragma once

#include "engine/leader/receiver.hpp"
#include "engine/leader/writer.hpp"
#include "engine/role_testing.hpp"

namespace cairn::testing {

// The writer only lays out what there is to do: it never runs.
struct ReceiverAlone {
    explicit ReceiverAlone(engine::Common& c)
        : ring(c.world.clock, c.world.storage, c.settings.buffers, c.settings.buffer_bytes), rooms(c, ring), receiver(c, ring, rooms), part_file(c, ring), trial(c, ring), writer(c, ring, part_file, rooms, trial) {}
    BufferRing ring;
    engine::Rooms rooms;
    engine::Receiver receiver;
    engine::PartFile part_file;
    engine::Trial trial;
    engine::Writer writer;
};

// Node 0 leads, and wants eight blocks of rank 1, which node 1 holds. Chunks of one block, two buffers.
struct ReceiverTest : ::testing::Test {
    static constexpr std::uint64_t blocks = 8, image_bytes = blocks * role_block;
    static RoleOptions options() {
        RoleOptions options;
        options.settings.buffers = 2;
        options.settings.buffer_bytes = role_block;
        return options;
    }

    explicit ReceiverTest(const RoleOptions& with = options()) : node(with) {
        message::Lead lead;
        lead.attempt_id = {7, 5};
        lead.block_bytes = role_block;
        lead.parts = {{0, "", 0, {{0, 0, image_bytes, {{1, {{1, 0, image_bytes}}}}}}}};
        lead.addresses = {{1, node.process(1).address()}};
        lead_by(lead);
    }
    void lead_by(const message::Lead& lead) {
        attempt = std::make_shared<engine::Attempt>(node.world, node.flight, lead);
        node.flight->leader = std::make_shared<engine::LeaderSide>();
        node.flight->leader->leading = attempt;
        node.subject.writer.lay_out(*attempt, part());
    }
    engine::PartState& part() { return *attempt->parts.front(); }
    void begin() { node.gate.spawn(node.subject.receiver.receive(*attempt, part())); }
    // All Wants that node 1 was sent, and that were not asked for before.
    std::vector<message::Want> wants() {
        node.run(100 * millisecond);
        return node.heard<message::Want>(1);
    }
    message::Chunk chunk_of(const message::Want& want) const {
        const Bytes data = bytes_in(role_bytes(1, image_bytes), want.source.image_offset, want.source.length);
        return {want.tag, Code::ok, "", block_checksums(data)};
    }
    void tell(message::Chunk chunk) {
        node.note_heard(1);
        node.subject.receiver.on_chunk(*node.flight, std::move(chunk));
    }
    // The payload alone, as node 1 sends it.
    void send(const message::Want& want, bool damaged = false) {
        Bytes data = bytes_in(role_bytes(1, image_bytes), want.source.image_offset, want.source.length);
        if (damaged) data[17] ^= std::byte{1};
        send_bytes(want.tag, std::move(data));
    }
    void send_bytes(std::uint64_t payload_tag, Bytes data) {
        const auto task = [](World w, Address to, std::uint64_t tag, Slice slice) -> Task<void> {
            const Status sent = co_await w.network.send_payload(std::move(to), tag, std::move(slice), w.clock.in(second));
            EXPECT_TRUE(sent.ok()) << sent.to_string();
        };
        ASSERT_TRUE(node.sim.run(task(node.process(1).world(), node.process(0).address(), payload_tag, Slice::of(std::move(data))), node.sim.now() + 2 * second));
    }
    void answer(const message::Want& want, bool damaged = false) {
        send(want, damaged);
        tell(chunk_of(want));
    }
    // As a writer does it: what is queued is written, and its buffer free again.
    std::vector<engine::PendingChunk> write_all_queued() {
        std::vector<engine::PendingChunk> taken;
        for (engine::PendingChunk& chunk : part().write_queue.front()) {
            EXPECT_TRUE(sim::content_equal(chunk.data, Slice::of(bytes_in(role_bytes(1, image_bytes), chunk.source.image_offset, chunk.source.length))));
            part().ahead_bytes -= chunk.source.length;
            part().written_bytes += chunk.source.length;
            taken.push_back(std::move(chunk));
            taken.back().data = {};
        }
        part().write_queue.front().clear();
        attempt->work.notify_all();
        return taken;
    }

    Alone<ReceiverAlone> node;
    std::shared_ptr<engine::Attempt> attempt;
};

}  // namespace cairn::testing
