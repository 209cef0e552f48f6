// A leader alone gives and takes work: each move once, no more than is not begun, and every byte in some part.
#include "engine/leader/leader_testing.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;

struct MovesTest : testing::LeaderAlone {};

TEST_F(MovesTest, ShedGivesFromTheEndAndRemembersItsAnswer) {
    begin(slow(), whole());
    node->run(200 * millisecond);
    const std::uint64_t end = blocks * role_block;
    hear(message::Shed{attempt_id, 1, 0, 2, 3 * role_block});
    const message::Given given = node->next<message::Given>(0);
    const std::uint64_t first = (blocks - 3) * role_block, second_move = (blocks - 5) * role_block;
    EXPECT_EQ(given, (message::Given{attempt_id, 1, {{0, end - 3 * role_block, 3 * role_block, {{1, {{1, first, image_bytes - first}}}}}}}));
    hear(message::Shed{attempt_id, 2, 0, 2, 2 * role_block});
    const message::Given next = node->next<message::Given>(0);
    EXPECT_EQ(next, (message::Given{attempt_id, 2, {{0, end - 5 * role_block, 2 * role_block, {{1, {{1, second_move, 2 * role_block}}}}}}}));
    hear(message::Shed{attempt_id, 1, 0, 2, 3 * role_block});  // its answer was lost
    EXPECT_EQ(node->next<message::Given>(0), given);
    hear(message::Shed{{7, 6}, 3, 0, 2, role_block});  // of another attempt
    node->run(100 * millisecond);
    EXPECT_TRUE(node->heard<message::Given>(0).empty());
    complete();
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::ok) << done.text;
    const Bytes file = node->read(path()).value();
    const Footer footer = footer_of(file);
    EXPECT_EQ(check_bytes(file, footer), second_move);
    EXPECT_EQ(done.coverage, coverage(1, 0, second_move));
}

// More than there is: all that is not begun. After Complete, or of a part that it does not write: nothing, which is an answer, too.
TEST_F(MovesTest, ShedGivesNoMoreThanIsNotBegun) {
    begin(slow(), whole());
    node->run(200 * millisecond);
    hear(message::Shed{attempt_id, 1, 7, 2, role_block});
    EXPECT_EQ(node->next<message::Given>(0), (message::Given{attempt_id, 1, {}}));
    hear(message::Shed{attempt_id, 2, 0, 2, 1000 * role_block});
    const message::Given given = node->next<message::Given>(0);
    ASSERT_EQ(given.work.size(), 1u);
    const std::uint64_t begun = given.work[0].offset;
    EXPECT_GT(begun, 0u);
    EXPECT_EQ(begun + given.work[0].bytes, blocks * role_block);
    hear(message::Shed{attempt_id, 3, 0, 2, role_block});
    EXPECT_TRUE(node->next<message::Given>(0).work.empty());
    complete();
    EXPECT_EQ(node->next<message::PartsDone>(0).coverage, coverage(1, 0, begun));
}

TEST_F(MovesTest, ATakeIsWrittenOnceHoweverOftenItComes) {
    const std::uint64_t own = 10 * role_block;
    begin(slow(), lead_of(own, own));
    node->run(100 * millisecond);
    const message::Take take{attempt_id, 4, {{0, own, (blocks - 10) * role_block, {{1, {{1, own, image_bytes - own}}}}}}, {}};
    hear(take);
    EXPECT_EQ(node->next<message::Taken>(0), (message::Taken{attempt_id, 4}));
    node->run(millisecond);
    EXPECT_EQ(node->heard<message::Progress>(0).back().taken, 1u) << "the coordinator must know that its numbers know of it";
    hear(take);
    EXPECT_EQ(node->next<message::Taken>(0), (message::Taken{attempt_id, 4}));
    EXPECT_EQ(node->next<message::Progress>(0).taken, 1u);
    complete();
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::ok) << done.text;
    EXPECT_EQ(done.coverage, coverage(1, 0, image_bytes));
    const Bytes file = node->read(path()).value();
    EXPECT_EQ(check_bytes(file, footer_of(file)), image_bytes);
    EXPECT_EQ(node->common.counters.taken_over_bytes, image_bytes - own);
}

TEST_F(MovesTest, ATakeOfAPartThatItDoesNotWriteFailsTheAttempt) {
    begin(slow(), whole());
    hear(message::Take{attempt_id, 1, {{3, 0, role_block, {{1, {{1, 0, role_block}}}}}}, {}});
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::internal);
    EXPECT_FALSE(done.has_failed_part) << "storage is not to blame";
    EXPECT_TRUE(done.parts.empty());
    EXPECT_TRUE(node->heard<message::Taken>(0).empty());
}

// It would be written over what another leader writes, or goes round where so much is named.
TEST_F(MovesTest, ATakeThatClaimsLessThanItNeedsFailsTheAttempt) {
    const std::vector<NodeSources> works[] = {{{1, {{1, 0, 2 * role_block}}}}, {{2, {{2, 0, 1ull << 60}, {2, 0, 15ull << 60}, {2, 0, role_block}}}}};
    for (const std::vector<NodeSources>& nodes : works) {
        begin(slow(), lead_of(role_block, role_block));
        hear(message::Take{attempt_id, 1, {{0, role_block, role_block, nodes}}, {}});
        const message::PartsDone done = node->next<message::PartsDone>(0);
        EXPECT_EQ(done.code, Code::internal);
        EXPECT_NE(done.text.find("takes more than the 4.00 KiB"), std::string::npos) << done.text;
        EXPECT_TRUE(node->heard<message::Taken>(0).empty());
        EXPECT_EQ(node->common.counters.taken_over_bytes, 0u);
    }
}

// Where cards decide, its own small images are its own data, too, in packs: they go by portions, and the next one when as much was sent as those have.
TEST_F(MovesTest, ItsOwnSmallImagesChangeHandsByPortions) {
    constexpr std::uint64_t small = 1000;
    message::Lead lead = lead_of(image_bytes, 4 * blocks * role_block);
    lead.keep_own = true;
    lead.pack_bytes = role_block;
    lead.parts[0].shares[0].nodes = {{1, {{1, 0, image_bytes}}}, {2, {}}};
    for (Rank rank = 10; rank < 410; ++rank) {
        lead.parts[0].shares[0].nodes[rank % 2].sources.push_back({rank, 0, small});
        lead.images.push_back(testing::role_image(rank, small));
    }
    node = std::make_unique<Alone<Leader>>(slow());
    node->add_image(1, image_bytes);
    for (Rank rank = 10; rank < 410; rank += 2) node->add_image(rank, small);
    hear(lead);
    node->run(200 * millisecond);
    hear(message::Shed{attempt_id, 1, 0, 2, 1000 * role_block});
    const message::Given given = node->next<message::Given>(0);
    std::uint64_t own = 0;
    for (const message::Work& work : given.work) {
        EXPECT_EQ(packs_of(work.nodes, {role_block, role_block}).size(), 1u) << "packed anew, several might take more space than they have";
        for (const NodeSources& each : work.nodes)
            for (const Source& source : each.sources) own += each.node == 1 ? source.length : 0;
    }
    EXPECT_GT(own, 0u);
    EXPECT_LE(own, 16 * role_block) << "a portion: half a second of what it writes, or a little";
    hear(message::Shed{attempt_id, 2, 0, 2, 1000 * role_block});
    for (const message::Work& work : node->next<message::Given>(0).work)
        for (const NodeSources& each : work.nodes) EXPECT_NE(each.node, 1u) << "the first portion was not sent yet";
    const auto sent = node->subject.watch_send(*node->flight);
    sent(own / 2, own);  // encoded: all of it is gone, and took half of its bytes
    hear(message::Shed{attempt_id, 3, 0, 2, 1000 * role_block});
    EXPECT_FALSE(node->next<message::Given>(0).work.empty());
}

}  // namespace
}  // namespace cairn::engine
