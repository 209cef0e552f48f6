// Which images are dead: a table. A series' past is drawn as its records, then one image is asked about.
#include "catalog/dead.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

const Id128 ada{1, 1}, bea{2, 2}, cleo{3, 3}, dora{4, 4};  // incarnations, in the order of their epochs 1 to 4

LineageEntry opened(Id128 incarnation) {
    LineageEntry entry;
    entry.open.incarnation = incarnation;
    entry.open.epoch = incarnation.low;
    entry.open.ranks = 2;
    return entry;
}
LineageEntry went_on(Id128 incarnation, Parent from, std::vector<Parent> whole, bool looked = true) {
    LineageEntry entry = opened(incarnation);
    entry.from = FromRecord{incarnation, from, looked, std::move(whole)};
    return entry;
}
CatalogEntry committed(Id128 incarnation, Version version, Parent parent = {}) {
    CatalogEntry entry;
    entry.key = {"melt", version, incarnation};
    entry.manifest.emplace();
    entry.manifest->key = entry.key;
    entry.manifest->epoch = incarnation.low;
    entry.manifest->parent = parent;
    return entry;
}
CatalogEntry tombstone(Id128 incarnation, Version version) {
    CatalogEntry entry = committed(incarnation, version);
    entry.manifest->abandoned = true;
    return entry;
}
CatalogEntry damaged(Id128 incarnation, Version version) {
    CatalogEntry entry;
    entry.key = {"melt", version, incarnation};
    entry.damage = corrupt("a flipped bit");
    return entry;
}

// A directory of a version that can not be listed.
CatalogEntry hidden(Version version) { return damaged({}, version); }

// Records with a flipped bit.
LineageEntry lost_from(Id128 incarnation) {
    LineageEntry entry = opened(incarnation);
    entry.from_damage = corrupt("a flipped bit");
    return entry;
}
LineageEntry lost_open(LineageEntry entry) {
    if (!entry.from) entry.open.incarnation = {};  // else that tells it
    entry.open_damage = corrupt("a flipped bit");
    return entry;
}

struct Case {
    const char* name;
    std::vector<LineageEntry> opens;
    std::vector<CatalogEntry> entries;
    Parent image;
    bool dead;
    bool listed = true;  // the lineage
};

const std::vector<LineageEntry> from_5 = {opened(ada), went_on(bea, {ada, 5}, {})};

const std::vector<Case> cases = {
    // the head went on from version 5
    {"AboveAndNotWhole", from_5, {committed(ada, 5)}, {ada, 6}, true},
    {"TheOneGoneOnFrom", from_5, {committed(ada, 4)}, {ada, 5}, false},
    {"BelowAndNothingNewerCommitted", from_5, {committed(ada, 3)}, {ada, 4}, false},
    {"BelowAndNotWholeWithANewerCommitted", from_5, {committed(ada, 5)}, {ada, 4}, false},
    {"BelowAndWhole", {opened(ada), went_on(bea, {ada, 5}, {{ada, 4}})}, {committed(ada, 5)}, {ada, 4}, false},
    {"BelowAndWholeAfterTheHeadCommitted", {opened(ada), went_on(bea, {ada, 5}, {{ada, 4}})}, {committed(ada, 5), committed(bea, 6, {ada, 5})}, {ada, 4}, false},
    {"AboveAndWhole", {opened(ada), went_on(bea, {ada, 5}, {{ada, 6}})}, {committed(ada, 5)}, {ada, 6}, false},
    {"AboveAndWholeAfterTheHeadCommitted", {opened(ada), went_on(bea, {ada, 5}, {{ada, 6}})}, {committed(ada, 5), committed(bea, 6, {ada, 5})}, {ada, 6}, true},
    {"AnotherVersionWasWhole", {opened(ada), went_on(bea, {ada, 5}, {{ada, 7}, {bea, 6}})}, {committed(ada, 5)}, {ada, 6}, true},
    {"TheHeadsOwn", from_5, {committed(ada, 5)}, {bea, 6}, false},
    {"CommittedAboveIt", from_5, {committed(ada, 5), committed(ada, 6)}, {ada, 6}, false},
    {"GivenUpAboveIt", from_5, {committed(ada, 5), tombstone(ada, 6)}, {ada, 6}, true},
    // what the head's commit means
    {"ATombstoneIsNoCommit", {opened(ada), went_on(bea, {ada, 5}, {{ada, 6}})}, {committed(ada, 5), tombstone(bea, 6)}, {ada, 6}, false},
    // a head that began anew
    {"AnewAndNothingCommitted", {opened(ada), opened(bea)}, {committed(ada, 5)}, {ada, 6}, false},
    {"AnewAndCommitted", {opened(ada), opened(bea)}, {committed(ada, 5), committed(bea, 1)}, {ada, 6}, true},
    {"NobodyEverCommitted", {opened(ada), opened(bea)}, {}, {ada, 1}, false},
    {"TheFirstOneNeverCommitted", {opened(ada), opened(bea)}, {committed(bea, 1)}, {ada, 1}, true},
    // more than two opens
    {"BesideTheLineage", {opened(ada), opened(bea), went_on(cleo, {ada, 5}, {})}, {committed(ada, 5)}, {bea, 1}, true},
    {"BesideTheLineageAndWhole", {opened(ada), opened(bea), went_on(cleo, {ada, 5}, {{bea, 1}})}, {committed(ada, 5)}, {bea, 1}, false},
    {"LeftBehindByAnEarlierHead", {opened(ada), went_on(bea, {ada, 3}, {}), went_on(cleo, {bea, 9}, {})}, {committed(ada, 3), committed(bea, 9, {ada, 3})}, {ada, 7}, true},
    {"BelowAnEarlierHead", {opened(ada), went_on(bea, {ada, 3}, {}), went_on(cleo, {bea, 9}, {{ada, 2}})}, {committed(ada, 3), committed(bea, 9, {ada, 3})}, {ada, 2}, false},
    {"ANewerOpenThatDidNothingYet", {opened(ada), went_on(bea, {ada, 5}, {}), opened(cleo)}, {committed(ada, 5)}, {cleo, 1}, false},
    {"TheHeadIsTheNewestThatWentOn", {opened(ada), went_on(bea, {ada, 5}, {}), went_on(cleo, {ada, 4}, {})}, {committed(ada, 5)}, {bea, 6}, true},
    {"AnOpenThatIsNotOnRecord", from_5, {committed(ada, 5)}, {Id128{9, 1}, 2}, true},
    {"AnotherOfTheHeadsEpoch", from_5, {committed(ada, 5)}, {Id128{9, 2}, 2}, false},
    {"BesideATombstoneOfANewerOpen", {opened(ada), went_on(bea, {ada, 5}, {}), opened(cleo)}, {committed(ada, 5), tombstone(cleo, 1)}, {ada, 6}, true},
    // doubt
    {"AHeadThatDidNotLook", {opened(ada), went_on(bea, {ada, 5}, {}, false)}, {committed(ada, 5)}, {ada, 6}, false},
    {"AHeadThatDidNotLookAndCommitted", {opened(ada), went_on(bea, {ada, 5}, {}, false)}, {committed(ada, 5), committed(bea, 6, {ada, 5})}, {ada, 6}, true},
    {"AHeadThatDidNotLookBelow", {opened(ada), went_on(bea, {ada, 5}, {}, false)}, {committed(ada, 5), committed(bea, 6, {ada, 5})}, {ada, 4}, false},
    {"AParentThatIsNotOnRecord", {opened(ada), went_on(bea, {dora, 5}, {})}, {}, {ada, 6}, false},
    {"ADamagedManifestOfANewerOpen", {opened(ada), went_on(bea, {ada, 5}, {}), opened(cleo)}, {committed(ada, 5), damaged(cleo, 1)}, {ada, 6}, false},
    {"ADamagedManifestOfNobody", from_5, {committed(ada, 5), damaged(dora, 1)}, {ada, 6}, false},
    {"ADamagedManifestOfAnOlderOpen", from_5, {committed(ada, 5), damaged(ada, 3)}, {ada, 6}, true},
    {"ItsOwnManifestIsDamaged", from_5, {committed(ada, 5), damaged(ada, 6)}, {ada, 6}, false},
    {"NoRecords", {}, {}, {ada, 1}, false},
    // damaged records
    {"TheHeadsFromIsDamaged", {opened(ada), lost_from(bea)}, {committed(ada, 5)}, {ada, 6}, false},
    {"TheHeadsFromIsDamagedAndItsCommitTells", {opened(ada), lost_from(bea)}, {committed(ada, 5), committed(bea, 6, {ada, 5})}, {ada, 6}, false},
    {"BothRecordsOfTheHeadAreDamagedAndItsCommitTells", {opened(ada), lost_open(lost_from(bea))}, {committed(ada, 5), committed(bea, 6, {ada, 5})}, {ada, 6}, false},
    {"TheHeadsOpenIsDamaged", {opened(ada), lost_open(went_on(bea, {ada, 5}, {}))}, {committed(ada, 5)}, {ada, 6}, true},
    {"AnOlderOpenIsDamaged", {lost_open(opened(ada)), went_on(bea, {ada, 5}, {})}, {committed(ada, 5)}, {ada, 6}, true},
    {"AnOlderOpenIsDamagedAndNothingTells", {lost_open(opened(ada)), went_on(bea, {ada, 5}, {})}, {}, {ada, 6}, false},
    {"ANewerFromIsDamaged", {opened(ada), went_on(bea, {ada, 5}, {}), lost_from(cleo)}, {committed(ada, 5)}, {ada, 6}, false},
    {"ANewerFromIsDamagedAndItsOpen", {opened(ada), went_on(bea, {ada, 5}, {}), lost_open(lost_from(cleo))}, {committed(ada, 5)}, {ada, 6}, false},
    {"AFromInTheMiddleIsDamaged", {opened(ada), lost_from(bea), went_on(cleo, {bea, 9}, {})}, {committed(ada, 3)}, {ada, 7}, false},
    {"AFromInTheMiddleIsDamagedAndACommitTells", {opened(ada), lost_from(bea), went_on(cleo, {bea, 9}, {})}, {committed(ada, 3), committed(bea, 9, {ada, 3})}, {ada, 7}, true},
    {"AFromInTheMiddleIsDamagedAndItsOpen", {opened(ada), lost_open(lost_from(bea)), went_on(cleo, {bea, 9}, {})}, {committed(ada, 3)}, {ada, 7}, false},
    {"AFromBesideTheLineageIsDamaged", {opened(ada), lost_from(bea), went_on(cleo, {ada, 5}, {})}, {committed(ada, 5)}, {ada, 6}, true},
    {"TheLineageCanNotBeListed", {}, {committed(ada, 5), committed(bea, 6, {ada, 5})}, {ada, 6}, false, false},
    {"ADirectoryIsHidden", from_5, {committed(ada, 5), hidden(7)}, {ada, 6}, false},
    {"ItsOwnDirectoryIsHidden", from_5, {committed(ada, 5), hidden(6)}, {ada, 6}, false},
    {"ADirectoryIsHiddenBesideADamagedOpen", {lost_open(opened(ada)), went_on(bea, {ada, 5}, {})}, {committed(ada, 5), hidden(6)}, {ada, 6}, false},
    {"AnOlderDirectoryIsHidden", from_5, {committed(ada, 5), hidden(1)}, {ada, 6}, false},
};

class WhyDead : public ::testing::TestWithParam<Case> {};

TEST_P(WhyDead, Is) {
    const Case& each = GetParam();
    const LineageRecords records{"melt", each.opens, each.listed ? Status() : corrupt("is not a directory")};
    const auto why = why_dead(records, each.entries, {"melt", each.image.version, each.image.incarnation}, each.image.incarnation.low);
    EXPECT_EQ(why.has_value(), each.dead) << why.value_or("it stays");
}

INSTANTIATE_TEST_SUITE_P(Table, WhyDead, ::testing::ValuesIn(cases), [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace cairn
