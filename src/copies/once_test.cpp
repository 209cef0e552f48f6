// Images that can be read once only: no byte is asked of its source twice, what a buffer keeps is given again, and what waits for a buffer has one in the end.
#include <gtest/gtest.h>

#include "copies/held.hpp"
#include "world/sim/simulation.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t block = 4096, blocks = 6, image_bytes = blocks * block - 100;
constexpr std::uint64_t seed = 7;

struct OnceTest : ::testing::Test {
    OnceTest() {
        LocalImage image;
        image.header.rank = 3;
        image.header.block_bytes = block;
        image.header.image.rank = 3;
        image.header.image.bytes = image_bytes;
        image.data = sim::describe_once(seed, image_bytes);
        image.readable = Readable::once;
        images->emplace(3, held_image(std::move(image)));
    }
    Result<HeldBytes> take(Source source, WantedFor use = WantedFor::sending) {
        std::optional<Result<HeldBytes>> result;
        const auto task = [](HeldReads* reads, HeldImagesPtr held, Source wanted, WantedFor wanted_for, const bool* nobody, std::optional<Result<HeldBytes>>* out) -> Task<void> {
            const std::function<bool()> is_over = [nobody] { return *nobody; };
            Result<HeldBytes> taken = co_await reads->bytes_of(held, wanted, wanted_for, is_over);
            out->emplace(std::move(taken));
        };
        CAIRN_CHECK(sim.run(task(&reads, images, source, use, &over, &result), sim.now() + 100 * second));
        return std::move(*result);
    }
    static Source range(std::uint64_t first, std::uint64_t count) { return {3, first * block, std::min(count * block, image_bytes - first * block)}; }
    void expect_given(const Result<HeldBytes>& taken, const Source& source) {
        ASSERT_TRUE(taken.ok()) << taken.status().to_string();
        EXPECT_EQ(taken->data.length, source.length);
        EXPECT_TRUE(sim::content_equal(taken->data, sim::describe(seed, source.length, source.image_offset)));
        EXPECT_EQ(taken->sums.checksums, sim::checksums_of(sim::runs_of_description(seed, source.image_offset, source.length), {block, source.image_offset, {}}));
    }

    sim::Simulation sim{1, {}, {}};
    sim::Process& process = sim.add_node().start_process("cairnd");
    World world = process.world();
    HeldImagesPtr images = std::make_shared<HeldImages>();
    bool over = false;
    Gate gate{world.clock};
    HeldReads reads{world, gate, 100 * millisecond, 4 * second, 2 * block};
};

TEST_F(OnceTest, ARangeIsReadOnceAndGivenAgainWhileABufferKeepsIt) {
    for (int i = 0; i < 3; ++i) expect_given(take(range(0, 2)), range(0, 2));
    expect_given(take(range(4, 2)), range(4, 2));
    expect_given(take(range(0, 2)), range(0, 2));
    EXPECT_EQ(images->at(3).users, 0u);
}

TEST_F(OnceTest, WhatNoBufferKeepsAnyMoreIsUsedUp) {
    expect_given(take(range(0, 2)), range(0, 2));
    expect_given(take(range(2, 2)), range(2, 2));
    EXPECT_FALSE(is_used_up(images->at(3), range(4, 2)));
    expect_given(take(range(4, 2)), range(4, 2));  // in the place of the first
    const Result<HeldBytes> again = take(range(0, 2));
    EXPECT_EQ(again.code(), Code::not_found);
    EXPECT_NE(again.status().text().find("rank 3's image, which can be read once only: bytes 0+8192"), std::string::npos) << again.status().text();
    EXPECT_TRUE(is_used_up(images->at(3), range(0, 2)));
    expect_given(take(range(4, 2)), range(4, 2));
}

// As another attempt may ask, whose chunks begin elsewhere.
TEST_F(OnceTest, ARangeThatIsReadInPartIsUsedUp) {
    expect_given(take(range(0, 2)), range(0, 2));
    for (const Source& other : {range(1, 2), range(0, 1)}) {
        EXPECT_EQ(take(other).code(), Code::not_found);
        EXPECT_TRUE(is_used_up(images->at(3), other));
    }
    expect_given(take(range(2, 1)), range(2, 1));
}

TEST_F(OnceTest, WhoFindsNoBufferWaitsForOne) {
    Result<HeldBytes> first = take(range(0, 2)), second_one = take(range(2, 2));
    EXPECT_EQ(take(range(4, 2)).code(), Code::deadline);
    EXPECT_FALSE(is_used_up(images->at(3), range(4, 2))) << "nothing of it was read";
    over = true;
    EXPECT_EQ(take(range(4, 2)).code(), Code::cancelled);
    over = false;
    expect_given(take(range(4, 1), WantedFor::writing), range(4, 1));  // who writes has others
    first->data = {};
    expect_given(take(range(5, 1)), range(5, 1));
    expect_given(second_one, range(2, 2));
    EXPECT_LE(process.buffer_bytes_peak(), OnceReads::buffers_most * 2 * block);
}

TEST_F(OnceTest, WhatCouldNotBeReadIsUsedUpToo) {
    sim.faults().encode_error = 1;
    EXPECT_EQ(take(range(0, 2)).code(), Code::out_of_space);
    sim.faults().encode_error = 0;
    EXPECT_EQ(take(range(0, 2)).code(), Code::not_found) << "half of it may have been read";
    expect_given(take(range(2, 2)), range(2, 2));
}

TEST_F(OnceTest, WhatItsSourceLostIsNoneOfItsBytes) {
    const auto source = std::dynamic_pointer_cast<sim::SimBuffer>(images->at(3).image.data.buffer);
    ASSERT_TRUE(source);
    source->content().lose(block);
    const Result<HeldBytes> taken = take(range(0, 2));
    EXPECT_EQ(taken.code(), Code::io_error);
    EXPECT_NE(taken.status().text().find("rank 3 lost some of its bytes"), std::string::npos) << taken.status().to_string();
}

// Memory that does not come back holds its buffer: the other one goes on.
TEST_F(OnceTest, AReadThatHangsTakesItsBufferAlone) {
    sim.faults().hang_scratch = 1;
    sim.faults().hang_io_max = sim::horizon;
    EXPECT_EQ(take(range(0, 2)).code(), Code::deadline);
    sim.faults().hang_scratch = 0;
    for (std::uint64_t first : {2, 4}) expect_given(take(range(first, 2)), range(first, 2));
}

}  // namespace
}  // namespace cairn
