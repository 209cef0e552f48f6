// Images that are asked of who has them: the bytes come into memory of the source, again after they were lost or given once, and not any more once it is gone.
#include <gtest/gtest.h>

#include "copies/held.hpp"
#include "world/sim/simulation.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t given_block = 4096, given_blocks = 6, given_bytes = given_blocks * given_block - 100;
constexpr std::uint64_t given_seed = 7;

class Giver final : public ImageSource {
  public:
    explicit Giver(World world) : world_(world) {}
    Result<BufferPtr> allocate(std::uint64_t bytes) override {
        ++buffers;
        return world_.storage.allocate(bytes);
    }
    Task<Status> fill(std::uint64_t offset, Slice into, Nanos deadline) override {
        asked.push_back(offset);
        if (is_gone) co_return not_found("gone");
        if (hangs) {
            owed.push_back(into);
            co_await world_.clock.sleep(deadline - world_.clock.now());
            co_return deadline_passed("it gives nothing");
        }
        sim::put(into, sim::runs_of_description(given_seed, offset, into.length));
        co_return Status();
    }
    std::vector<std::uint64_t> asked;
    std::vector<Slice> owed;  // it may write to them yet
    int buffers = 0;
    bool is_gone = false, hangs = false;

  private:
    World world_;
};

struct AskedTest : ::testing::Test {
    AskedTest() {
        LocalImage image;
        image.header.rank = 3;
        image.header.block_bytes = given_block;
        image.header.image.rank = 3;
        image.header.image.bytes = given_bytes;
        image.data = {nullptr, 0, given_bytes};
        image.readable = Readable::asked;
        image.source = giver;
        images->emplace(3, held_image(std::move(image)));
    }
    Result<HeldBytes> take(Source source, WantedFor use = WantedFor::sending) {
        std::optional<Result<HeldBytes>> result;
        const auto task = [](HeldReads* held_reads, HeldImagesPtr held, Source wanted, WantedFor wanted_for, std::optional<Result<HeldBytes>>* out) -> Task<void> {
            const std::function<bool()> is_over = [] { return false; };
            Result<HeldBytes> taken = co_await held_reads->bytes_of(held, wanted, wanted_for, is_over);
            out->emplace(std::move(taken));
        };
        CAIRN_CHECK(sim.run(task(&reads, images, source, use, &result), sim.now() + 100 * second));
        return std::move(*result);
    }
    static Source range(std::uint64_t first, std::uint64_t count) { return {3, first * given_block, std::min(count * given_block, given_bytes - first * given_block)}; }
    void expect_given(const Source& source, WantedFor use = WantedFor::sending) {
        const Result<HeldBytes> taken = take(source, use);
        ASSERT_TRUE(taken.ok()) << taken.status().to_string();
        EXPECT_TRUE(sim::content_equal(taken->data, sim::describe(given_seed, source.length, source.image_offset)));
        EXPECT_EQ(taken->sums.checksums, sim::checksums_of(sim::runs_of_description(given_seed, source.image_offset, source.length), {given_block, source.image_offset, {}}));
    }

    sim::Simulation sim{1, {}, {}};
    sim::Process& process = sim.add_node().start_process("cairnd");
    World world = process.world();
    std::shared_ptr<Giver> giver = std::make_shared<Giver>(world);
    HeldImagesPtr images = std::make_shared<HeldImages>();
    Gate gate{world.clock};
    HeldReads reads{world, gate, 100 * millisecond, 4 * second, 2 * given_block};
};

TEST_F(AskedTest, WhatNoBufferKeepsAnyMoreIsAskedForAgain) {
    for (int round = 0; round < 3; ++round)
        for (std::uint64_t first = 0; first < given_blocks; first += 2) expect_given(range(first, 2));
    for (const Source& other : {range(1, 2), range(0, 1), range(3, 3)}) expect_given(other);  // as another attempt may, whose chunks begin elsewhere
    EXPECT_FALSE(is_used_up(images->at(3), range(0, 6)));
    EXPECT_GT(giver->asked.size(), 9u);
    EXPECT_EQ(images->at(3).users, 0u);
}

TEST_F(AskedTest, WhatABufferKeepsIsNotAskedForAgain) {
    for (int i = 0; i < 3; ++i) expect_given(range(0, 2));
    EXPECT_EQ(giver->asked.size(), 1u);
}

TEST_F(AskedTest, HoweverLongTheImageIsItsBuffersAreFew) {
    for (int round = 0; round < 3; ++round)
        for (const WantedFor use : {WantedFor::sending, WantedFor::writing})
            for (std::uint64_t first = 0; first < given_blocks; ++first) expect_given(range(first, 1), use);
    EXPECT_LE(giver->buffers, static_cast<int>(OnceReads::buffers_most));
}

TEST_F(AskedTest, OnceItIsGoneTheImageIsUsedUp) {
    expect_given(range(0, 2));
    giver->is_gone = true;
    const Result<HeldBytes> taken = take(range(2, 2));
    EXPECT_EQ(taken.code(), Code::not_found);
    EXPECT_NE(taken.status().text().find("rank 3's image, which its process gives when it is asked"), std::string::npos) << taken.status().text();
    EXPECT_TRUE(is_used_up(images->at(3), range(2, 2)));
    const std::size_t asked = giver->asked.size();
    EXPECT_EQ(take(range(4, 2)).code(), Code::not_found);
    EXPECT_EQ(giver->asked.size(), asked) << "nobody asks it any more";
}

TEST_F(AskedTest, AsLongAsItMayWriteToABufferNobodyElseHasIt) {
    giver->hangs = true;
    for (const std::uint64_t first : {0, 2}) EXPECT_EQ(take(range(first, 2)).code(), Code::deadline);
    EXPECT_FALSE(is_used_up(images->at(3), range(0, 2)));
    giver->hangs = false;
    EXPECT_EQ(take(range(0, 2)).code(), Code::deadline) << "both are its";
    EXPECT_EQ(giver->asked.size(), 2u);
    giver->owed.pop_back();
    expect_given(range(0, 2));
    EXPECT_EQ(giver->buffers, 2);
}

}  // namespace
}  // namespace cairn
