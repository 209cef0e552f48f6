// A stream over encoded runs: each is decoded once while there is room to keep it, and as often as it is needed where there is none.
#include <gtest/gtest.h>

#include "copies/cpu_testing.hpp"
#include "read/plan.hpp"
#include "world/sim/simulation.hpp"

namespace cairn {
namespace {

// One rank's image in one part of two encoded runs: block after block of it lies in the one and in the other.
class Stream : public ::testing::Test {
  protected:
    static constexpr std::uint64_t block = 4096, blocks_a_run = 8, runs = 2;

    Stream() {
        copies_.ranks = 1;
        copies_.parts.emplace();
        OpenVersion& parts = *copies_.parts;
        parts.manifest.key = {"melt", 1, {1, 1}};
        parts.manifest.ranks = 1;
        parts.manifest.block_bytes = block;
        parts.manifest.parts.push_back({"part", 0, 0, 0, {0}});
        parts.parts = {0};
        parts.footers.emplace_back().block_bytes = block;
        parts.footers[0].images.push_back({0, runs * blocks_a_run * block, {}});
        parts.footers[0].codecs.push_back({"zero-runs", ""});
        sim_.model().codec_shrinks = true;
        sim_.model().stored_max = 0.8;
        run(write());
        parts.index();
    }
    void run(Task<void> task) { CAIRN_CHECK(sim_.run(std::move(task), sim_.now() + 600 * second)); }

    static Slice raw(std::uint64_t run) { return sim::describe(run + 1, blocks_a_run * block, 0); }
    Task<void> write() {
        OpenVersion& parts = *copies_.parts;
        Status made = co_await make_directories(world_.storage, "/persistent", layout_.version(parts.manifest.key), sim_.now() + 60 * second);
        CAIRN_CHECK(made.ok());
        OpenOptions options;
        options.mode = OpenMode::create;
        std::string path = layout_.version(parts.manifest.key) + "/part";
        Result<FilePtr> file = co_await world_.storage.open(path, options, sim_.now() + 60 * second);
        CAIRN_CHECK(file.ok());
        for (std::uint64_t i = 0; i < runs; ++i) {
            Result<BufferPtr> into = world_.storage.allocate(blocks_a_run * block);
            Slice room = Slice::whole(*into), from = raw(i);
            Result<Encoded> encoded = co_await cpu_.encode(Coding(Codec::zero_runs), from, BaseBytes(), nothing_known, room, never);
            CAIRN_CHECK(encoded.ok() && encoded->bytes != 0);
            const std::vector<std::uint64_t> checksums = co_await cpu_.checksums(from, block);
            StoredRun& stored = parts.footers[0].runs.emplace_back(StoredRun{i * blocks_a_run * block, encoded->bytes, 1, encoded->checksum, {}});
            for (std::uint64_t k = 0; k < blocks_a_run; ++k) stored.pieces.push_back({0, (k * runs + i) * block, block, k * block, {checksums[k]}});
            Status written = co_await write_all(world_.storage, *file, stored.part_offset, room.part(0, encoded->bytes), sim_.now() + 60 * second);
            CAIRN_CHECK(written.ok());
        }
    }

    // In windows of so many blocks; each byte is compared.
    Task<void> read(std::uint64_t window_blocks) {
        settings_.buffer_bytes = block;
        const std::uint64_t bytes = runs * blocks_a_run * block;
        const Result<ReadPlan> plan = plan_reads(copies_, {{0, {}}}, settings_.buffer_bytes);
        CAIRN_CHECK(plan.ok());
        EncodedRuns encoded(world_, settings_.encoded_bytes);
        for (PlanPiece& piece : in_image_order(copies_, *plan, window_blocks * block)) {
            HandOut out;
            out.add(0, piece.range, "window", [&](std::uint64_t at, const Slice& data) {
                const std::uint64_t place = (piece.range.offset + at) / block;
                EXPECT_TRUE(sim::content_equal(data, raw(place % runs).part(place / runs * block, block))) << place;
                return Status();
            });
            Status status = co_await read_planned(world_, layout_, copies_, std::move(piece.plan), out, settings_, &encoded);
            EXPECT_TRUE(status.ok()) << status.to_string();
            read_ += piece.range.length;
        }
        EXPECT_EQ(read_, bytes);
    }

    sim::Simulation sim_{1};
    sim::Process& process_ = sim_.add_node().start_process("reader");
    testing::WatchedCpu cpu_{process_.world().cpu};
    World world_ = testing::with_cpu(process_.world(), cpu_);
    Layout layout_{"/persistent"};
    VersionCopies copies_;
    RestoreSettings settings_;
    std::uint64_t read_ = 0;
};

TEST_F(Stream, ARunIsDecodedOnceHoweverManyPiecesWantIt) {
    run(read(1));
    EXPECT_EQ(cpu_.decodes, static_cast<int>(runs));
}

// Both runs are in each window, and there is room for one: no wait for the other's, no more memory, and it comes through.
TEST_F(Stream, WithoutRoomToKeepItARunIsDecodedAgain) {
    settings_.encoded_bytes = 1;
    const Nanos begun = sim_.now();
    run(read(4));
    EXPECT_EQ(cpu_.decodes, static_cast<int>(blocks_a_run / 2 * runs));  // in each of its windows
    EXPECT_LT(sim_.now() - begun, settings_.io_wait);
    EXPECT_LE(process_.buffer_bytes_peak(), settings_.readers * block + 2 * blocks_a_run * block);
}

}  // namespace
}  // namespace cairn
