// Which bytes of an older version may be taken away from those of a newer one.
#include "engine/base_use.hpp"

#include "engine/role_testing.hpp"

namespace cairn::engine {
namespace {

using testing::role_block;

// Version 1 is committed, and node 0 has its image of rank 0; of version 3 it has the one that is looked at.
struct BaseUseTest : ::testing::Test {
    static constexpr std::uint64_t image_bytes = 5 * role_block + 100;
    static constexpr Source source{0, role_block, 2 * role_block};

    struct Nothing {
        explicit Nothing(Common&) {}
    };
    BaseUseTest() : node(testing::RoleOptions()), older(node.flight) {
        LocalImage image = node.image_of(0, image_bytes);
        image.checksums = testing::block_checksums(testing::role_bytes(0, image_bytes));
        older->images.emplace(0, held_image(std::move(image)));
        older->state.level = Level::committed;
        node.job->base = 1;
        node.job->base_flight = older;
        now = held_image(node.image_of(0, image_bytes));
    }
    BaseUse use(const Source& of = source) { return base_of(*node.job, 1, of, now); }
    HeldImage& image() { return older->images.at(0); }

    testing::Alone<Nothing> node;
    FlightPtr older;
    HeldImage now;
};

TEST_F(BaseUseTest, AreTheSameBytesWithTheirChecksums) {
    const Bytes whole = testing::role_bytes(0, image_bytes);
    for (const Source& of : {source, Source{0, 4 * role_block, role_block + 100}}) {
        const BaseUse base = use(of);
        const Bytes wanted = testing::bytes_in(whole, of.image_offset, of.length);
        ASSERT_EQ(base.bytes().bytes.length, of.length);
        EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), base.bytes().bytes.bytes().begin()));
        EXPECT_EQ(base.bytes().checksums, testing::block_checksums(wanted));
        EXPECT_EQ(unit_ends(base.bytes().units, of.length).size(), base.bytes().checksums.size());
    }
}

TEST_F(BaseUseTest, HoldsTheImageAsLongAsItIsUsed) {
    {
        BaseUse base = use();
        EXPECT_EQ(image().users, 1u);
        const BaseUse moved = std::move(base);
        EXPECT_EQ(image().users, 1u);
        const BaseUse again = use();
        EXPECT_EQ(image().users, 2u);
    }
    EXPECT_EQ(image().users, 0u);
}

TEST_F(BaseUseTest, ThereIsNoneWhereTheBytesAreNotAtHand) {
    const auto none = [&](const char* why, const Source& of = source) {
        EXPECT_EQ(use(of).bytes().bytes.length, 0u) << why;
        EXPECT_EQ(image().users, 0u) << why;
    };
    none("of another rank", {1, role_block, role_block});
    none("beyond its end", {0, 4 * role_block, 2 * role_block});
    none("not whole units", {0, role_block, role_block / 2});
    image().known[2] = image().is_told = false;
    none("nobody knows a checksum of it");
    image().known[2] = image().is_told = true;
    image().once = std::make_shared<OnceState>();
    none("it can be read once only");
    image().once = nullptr;
    now.image.header.block_bytes = 2 * role_block;
    none("in other blocks");
    now.image.header.block_bytes = role_block;
    older->state.level = Level::sealed;
    none("it is not committed");
    older->state.level = Level::committed;
    EXPECT_EQ(base_of(*node.job, 2, source, now).bytes().bytes.length, 0u) << "this node was told of another base";
    EXPECT_EQ(base_of(*node.job, 0, source, now).bytes().bytes.length, 0u) << "there is to be none";
    node.job->base_flight.reset();
    none("the version is forgotten");
    node.job->base_flight = older;
    older->images.clear();
    EXPECT_EQ(use().bytes().bytes.length, 0u) << "its image has left scratch";
}

}  // namespace
}  // namespace cairn::engine
