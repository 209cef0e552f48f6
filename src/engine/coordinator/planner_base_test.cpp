// Which versions are whole, and which may depend on one that is.
#include "engine/coordinator/planner_testing.hpp"

namespace cairn::engine {
namespace {

using testing::PlannerTest;
using testing::RoleOptions;

struct PlannerBaseTest : PlannerTest {
    static RoleOptions every(std::uint32_t full_every, Codec codec = Codec::planes) {
        RoleOptions options;
        options.settings.codec = codec;
        options.settings.full_every = full_every;
        return options;
    }
    // What the version is told to depend on; it is committed, and does where `depends`.
    Version base_of(Version version, bool depends) {
        node->flight->key.version = version;
        const Version base = plan().base;
        bool is_first = true;
        for (auto& [leader, track] : side().contest->leaders) {
            EXPECT_EQ(track.lead.base, base);
            EXPECT_EQ(track.lead.encode_at_follower, base != 0) << "bases are where images are";
            track.done.emplace();
            track.done->needs_base = depends && std::exchange(is_first, false);
        }
        node->subject.learn_of_base(*node->flight);
        return base;
    }
};

TEST_F(PlannerBaseTest, OfSoManyVersionsOneIsWhole) {
    begin(every(3));
    std::vector<Version> bases;
    for (Version version = 10; version < 17; ++version) bases.push_back(base_of(version, !bases.empty() && bases.size() % 3 != 0));
    EXPECT_EQ(bases, (std::vector<Version>{0, 10, 10, 0, 13, 13, 0}));
}

TEST_F(PlannerBaseTest, OneThatCameOutWholeIsTheNextBase) {
    begin(every(5));
    EXPECT_EQ(base_of(1, false), 0u);
    EXPECT_EQ(base_of(2, true), 1u);
    EXPECT_EQ(base_of(3, false), 1u);
    EXPECT_EQ(base_of(4, true), 3u) << "nothing of version 3 was shorter as a difference, and so it needs nothing";
}

TEST_F(PlannerBaseTest, AnOlderVersionThatCommitsLateTakesNoNewerOnesPlace) {
    begin(every(5));
    EXPECT_EQ(base_of(7, false), 0u);
    EXPECT_EQ(base_of(6, false), 0u) << "and nothing older was whole";
    EXPECT_EQ(base_of(8, true), 7u);
}

// Who has a base is encoded alone; of the whole ones images share runs, with a codec.
TEST_F(PlannerBaseTest, OnlyWholeVersionsAreMerged) {
    RoleOptions options = every(3);
    options.settings.merge_ranks = 5;
    options.settings.merge_bytes = 100;
    begin(options);
    std::vector<std::uint32_t> ranks;
    for (Version version = 10; version < 14; ++version) {
        base_of(version, !ranks.empty() && ranks.size() % 3 != 0);
        for (const auto& [leader, track] : side().contest->leaders) {
            EXPECT_EQ(track.lead.merge_ranks, side().contest->merge.ranks);
            EXPECT_EQ(track.lead.merge_bytes, track.lead.merge_ranks == 1 ? 0 : side().contest->block_bytes);
        }
        ranks.push_back(side().contest->merge.ranks);
    }
    EXPECT_EQ(ranks, (std::vector<std::uint32_t>{5, 1, 1, 5}));
    options.settings.codec = Codec::none;
    begin(options);
    base_of(1, false);
    EXPECT_EQ(side().contest->merge, MergePolicy());
}

// The pieces of a run with a base lie end to end; and what several images have in common is no business of a codec any more.
TEST_F(PlannerBaseTest, EqualPagesAreSoughtInWholeVersionsWhichAreNotMerged) {
    RoleOptions options = every(2);
    options.settings.merge_ranks = 5;
    options.settings.equal_pages = true;
    begin(options);
    for (const bool depends : {false, true, false}) {
        base_of(depends ? 11 : side().contest ? 12 : 10, depends);
        EXPECT_EQ(side().contest->equal_pages, !depends);
        EXPECT_EQ(side().contest->merge, MergePolicy());
        for (const auto& [leader, track] : side().contest->leaders) EXPECT_EQ(track.lead.equal_pages, !depends);
    }
    options.settings.equal_pages = false;
    begin(options);
    base_of(1, false);
    EXPECT_FALSE(side().contest->equal_pages);
    options.settings = every(1).settings;
    options.settings.equal_pages = true;
    options.settings.placement = Placement::interleaved;
    begin(options);
    base_of(1, false);
    EXPECT_FALSE(side().contest->equal_pages) << "offsets are fixed beforehand";
}

TEST_F(PlannerBaseTest, ThereIsNoneWithoutTheSettingOrACodecThatTakesOne) {
    for (const RoleOptions& options : {every(1), every(4, Codec::zero_runs), every(4, Codec::none)}) {
        begin(options);
        EXPECT_EQ(base_of(1, false), 0u);
        EXPECT_EQ(base_of(2, false), 0u);
    }
}

// Who removes versions looks for what depends on one among those after it.
TEST_F(PlannerBaseTest, NoneDependsOnANewerOne) {
    begin(every(5));
    EXPECT_EQ(base_of(5, false), 0u);
    EXPECT_EQ(base_of(4, false), 0u) << "it waited for a node, and is committed late";
}

}  // namespace
}  // namespace cairn::engine
