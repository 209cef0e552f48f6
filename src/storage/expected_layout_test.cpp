// What `cairn layout` expects: how many files, how many targets they fill, and what it says would be better.
#include "storage/expected_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t mib = 1 << 20;

LayoutQuestion of(FileLayout layout, std::uint32_t nodes, std::uint32_t targets) {
    LayoutQuestion question;
    question.layout = layout;
    question.nodes = nodes;
    question.ranks = 4 * nodes;
    question.targets = targets;
    question.bytes = question.ranks * 12 * mib;
    return question;
}

TEST(ExpectedLayout, AggregatedPartsFillAllTargetsWhereThereAreEnough) {
    const ExpectedLayout expected = expected_layout(of(FileLayout::parts, 5, 4));
    EXPECT_EQ(expected.files, 5u);
    EXPECT_EQ(expected.targets_filled, 4u);
    EXPECT_EQ(expected.fullest_bytes, 60 * mib);
    EXPECT_EQ(expected.mean_bytes, 60 * mib);
    EXPECT_THAT(expected.hints, IsEmpty());
}

TEST(ExpectedLayout, FewerPartsThanTargetsLeaveSomeEmpty) {
    LayoutQuestion question = of(FileLayout::parts, 2, 4);
    const ExpectedLayout expected = expected_layout(question);
    EXPECT_EQ(expected.targets_filled, 2u);
    EXPECT_EQ(expected.fullest_bytes, 2 * expected.mean_bytes);
    EXPECT_THAT(expected.hints, ElementsAre("flush.files = 4 fills all targets"));
    question.files = 4;
    EXPECT_EQ(expected_layout(question).targets_filled, 4u);
    EXPECT_THAT(expected_layout(question).hints, IsEmpty());
    question.targets = 9;
    EXPECT_THAT(expected_layout(question).hints, ElementsAre(HasSubstr("no number of files fills all targets")));
}

TEST(ExpectedLayout, NodesGoRoundTheTargets) {
    const ExpectedLayout uneven = expected_layout(of(FileLayout::ranks, 5, 4));
    EXPECT_EQ(uneven.files, 20u);
    EXPECT_EQ(uneven.targets_filled, 4u);
    EXPECT_EQ(uneven.fullest_bytes, 96 * mib);
    EXPECT_THAT(uneven.hints, ElementsAre(HasSubstr("flush.layout = aggregated")));
    const ExpectedLayout even = expected_layout(of(FileLayout::nodes, 8, 4));
    EXPECT_EQ(even.files, 8u);
    EXPECT_EQ(even.fullest_bytes, even.mean_bytes);
    EXPECT_THAT(even.hints, IsEmpty());
}

TEST(ExpectedLayout, WithoutTargetsTheFileSystemChooses) {
    const ExpectedLayout expected = expected_layout(of(FileLayout::parts, 3, 0));
    EXPECT_EQ(expected.files, 3u);
    EXPECT_EQ(expected.targets_filled, 0u);
    EXPECT_THAT(expected.hints, IsEmpty());
}

TEST(ExpectedLayout, FilesSpanTargetsWhereTheyCan) {
    LayoutQuestion question;
    question.nodes = 4, question.ranks = 8, question.targets = 8, question.bytes = 64ull << 30, question.files = 4;
    EXPECT_EQ(expected_layout(question).targets_filled, 4u);
    EXPECT_FALSE(expected_layout(question).hints.empty());
    question.spans = true;
    const ExpectedLayout spanned = expected_layout(question);
    EXPECT_EQ(spanned.stripes, 2u);
    EXPECT_EQ(spanned.targets_filled, 8u);
    EXPECT_EQ(spanned.fullest_bytes, 8ull << 30);
    EXPECT_TRUE(spanned.hints.empty());
    question.layout = FileLayout::nodes;
    EXPECT_EQ(expected_layout(question).stripes, 1u) << "a node's file lies on its target";
}

}  // namespace
}  // namespace cairn
