// The rules of gc, one by one: what spares a thing, and what lets it go.
#include "catalog/gc_rules.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

using Act = GcAnswer::Act;

const Id128 head_job{7, 7}, older_job{5, 5};
constexpr GcJob over{true, false}, on_record{false, false}, served{true, true};

GcVersion made(Id128 incarnation, Version version, bool is_committed, bool is_current) {
    GcVersion made;
    made.key = {"melt", version, incarnation};
    made.is_committed = is_committed;
    made.is_current = is_current;
    made.is_old = true;
    return made;
}

// Versions 3 and 4 are committed and current; 5 of the older job was left behind.
GcSeries certain() {
    GcSeries series;
    series.versions = {made(older_job, 3, true, true), made(head_job, 4, true, true), made(older_job, 5, false, false)};
    series.head = head_job;
    series.head_is_certain = series.lineage_is_certain = true;
    return series;
}
GcSeries untold() {
    GcSeries series = certain();
    series.head_is_certain = series.lineage_is_certain = false;
    return series;
}
const GcVersion left_behind = made(older_job, 5, false, false);

TEST(GcRules, AFenceGoesOnlyWhereNobodyCouldCommitAndNobodyWouldLook) {
    EXPECT_TRUE(fence_can_go(certain(), left_behind, over, {}));
    EXPECT_FALSE(fence_can_go(certain(), left_behind, on_record, {}));
    EXPECT_FALSE(fence_can_go(untold(), left_behind, over, {}));
    GcVersion in_scratch = left_behind;
    in_scratch.is_in_scratch = true;
    EXPECT_FALSE(fence_can_go(certain(), in_scratch, over, {}));
}

// Of the current lineage: while a newer one is committed, a restart passes it by. Not where the newer one goes, too.
TEST(GcRules, AFenceInTheCurrentLineageNeedsANewerVersion) {
    const GcSeries series = certain();
    EXPECT_TRUE(fence_can_go(series, series.versions[0], over, {}));
    EXPECT_FALSE(fence_can_go(series, series.versions[1], over, {}));
    EXPECT_FALSE(fence_can_go(series, series.versions[0], over, {series.versions[1].key}));
    GcSeries tail_untold = series;
    tail_untold.lineage_is_certain = false;  // then the one left behind may be in it
    EXPECT_FALSE(fence_can_go(tail_untold, left_behind, over, {}));
}

TEST(GcRules, WhatAnotherNeedsIsSparedUnlessThatGoesToo) {
    GcSeries series = certain();
    series.dependents = {{series.versions[1].key, {{3, older_job}}, true}};
    const GcAnswer taken{Act::take, "beyond the retention rule", Fence::lift};
    const GcAnswer spared = unless_needed(taken, series, series.versions[0].key, {});
    EXPECT_EQ(spared.act, Act::spare);
    EXPECT_EQ(spared.why, "beyond the retention rule, but version 4 depends on it");
    EXPECT_EQ(unless_needed(taken, series, series.versions[0].key, {series.versions[1].key}).act, Act::take);
    EXPECT_EQ(unless_needed(taken, series, series.versions[1].key, {}).act, Act::take);
    EXPECT_EQ(unless_needed({Act::spare, "in flight", Fence::keep}, series, series.versions[0].key, {}).why, "in flight");
}

TEST(GcRules, AJobIsSupersededByACommitOfTheHead) {
    EXPECT_TRUE(is_superseded(certain(), older_job));
    EXPECT_FALSE(is_superseded(certain(), head_job));
    EXPECT_FALSE(is_superseded(untold(), older_job));
    GcSeries nothing_yet = certain();
    nothing_yet.versions[1].is_committed = false;
    EXPECT_FALSE(is_superseded(nothing_yet, older_job));
    EXPECT_FALSE(is_superseded({}, older_job));
}

TEST(GcRules, UnfinishedIsSparedForEachReasonThatItMayLive) {
    const auto act = [](const GcSeries& series, const GcVersion& version, const GcJob& job, bool unknown = false) {
        return judge_unfinished(series, version, job, unknown).act;
    };
    EXPECT_EQ(act(certain(), left_behind, on_record), Act::take);  // beside the lineage: nobody waits for it
    EXPECT_EQ(judge_unfinished(certain(), left_behind, on_record, false).fence, Fence::keep);
    EXPECT_EQ(judge_unfinished(certain(), left_behind, over, false).fence, Fence::lift);
    GcVersion young = left_behind;
    young.is_old = false;
    EXPECT_EQ(act(certain(), young, over, true), Act::spare);
    EXPECT_EQ(act(certain(), left_behind, served, true), Act::spare);
    EXPECT_EQ(act(untold(), left_behind, on_record), Act::spare);
    GcVersion current = made(head_job, 5, false, true);
    EXPECT_EQ(act(certain(), current, on_record), Act::spare);
    EXPECT_EQ(act(certain(), current, over), Act::take);
    EXPECT_EQ(judge_unfinished(certain(), current, over, false).fence, Fence::keep);  // nothing newer is committed
}

TEST(GcRules, WhatNothingNamesGoesByTheOperatorsWordAlone) {
    GcVersion nameless = left_behind;
    nameless.key.incarnation.low = 0;
    EXPECT_EQ(judge_unfinished(certain(), nameless, over, false).act, Act::spare);
    EXPECT_EQ(judge_unfinished(certain(), nameless, over, true).act, Act::take_unfenced);
    EXPECT_EQ(judge_meeting("j", {}, false, over, false).act, Act::spare);
    EXPECT_EQ(judge_meeting("j", {}, false, on_record, true).act, Act::take_unfenced);
}

TEST(GcRules, ATombstoneStaysUntilNobodyNeedsIt) {
    const auto judged = [](const GcVersion& version, const GcJob& job, bool has_parts) { return judge_given_up(certain(), version, job, has_parts); };
    EXPECT_EQ(judged(left_behind, on_record, false).act, Act::nothing);
    EXPECT_EQ(judged(left_behind, served, false).act, Act::nothing);
    EXPECT_EQ(judged(left_behind, over, false).fence, Fence::lift);
    EXPECT_EQ(judged(left_behind, on_record, true).act, Act::take);  // its parts, not the tombstone
    EXPECT_EQ(judged(left_behind, on_record, true).fence, Fence::keep);
    GcVersion young = left_behind;
    young.is_old = false;
    EXPECT_EQ(judged(young, over, false).act, Act::nothing);
}

TEST(GcRules, OtherLineagesGoOnlyWhereTheCurrentOneIsThereForSure) {
    GcVersion other = made(older_job, 5, true, false);
    EXPECT_EQ(judge_other_lineage(certain(), other, over).act, Act::take);
    EXPECT_EQ(judge_other_lineage(untold(), other, over).act, Act::spare);
    GcSeries unreadable = certain();
    unreadable.versions[1].is_committed = false;
    EXPECT_EQ(judge_other_lineage(unreadable, other, over).act, Act::spare);
    unreadable.head_is_on_record = true;
    EXPECT_EQ(judge_other_lineage(unreadable, other, over).act, Act::take);
    unreadable.head_is_on_record = false;
    unreadable.versions[1].is_in_scratch = true;
    EXPECT_EQ(judge_other_lineage(unreadable, other, over).act, Act::take);
}

TEST(GcRules, ARecordWithARosterIsAliveUntilItIsSuperseded) {
    EXPECT_TRUE(record_can_go(false, false, false));
    EXPECT_FALSE(record_can_go(true, false, true));
    EXPECT_FALSE(record_can_go(false, true, false));
    EXPECT_TRUE(record_can_go(false, true, true));
}

TEST(GcRules, AMeetingIsInUseWhileItsJobMayLive) {
    EXPECT_EQ(judge_meeting("j", older_job, false, over, false).act, Act::take_unfenced);
    EXPECT_EQ(judge_meeting("j", older_job, true, over, true).act, Act::spare);
    EXPECT_EQ(judge_meeting("j", older_job, false, on_record, true).act, Act::spare);
    EXPECT_EQ(judge_meeting("j", older_job, false, served, true).act, Act::spare);
}

}  // namespace
}  // namespace cairn
