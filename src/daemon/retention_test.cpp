#include "daemon/retention.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

VersionKey held_key(Version version, const std::string& name = "heat") { return {name, version, {1, 2}}; }

HeldVersion held_version(Version version, bool committed, const std::string& name = "heat") {
    HeldVersion held;
    held.key = held_key(version, name);
    held.epoch = 1;
    held.committed = held.sealed_everywhere = committed;
    held.final = committed;
    return held;
}

// Neither committed nor failed, and sealed by all.
HeldVersion on_its_way(Version version) {
    HeldVersion held = held_version(version, false);
    held.sealed_everywhere = true;
    return held;
}

TEST(Retention, AgeIsTheOpenThenTheVersion) {
    std::vector<HeldVersion> versions = {held_version(9, true, "sea"), held_version(2, true), held_version(1, true)};
    versions[2].epoch = 2;  // it went back
    sort_by_age(versions);
    EXPECT_EQ(versions[0].key, held_key(2));
    EXPECT_EQ(versions[1].key, held_key(1));
    EXPECT_EQ(versions[2].key.name, "sea");
}

TEST(Retention, TheRuleCountsEachSeriesByItself) {
    std::vector<HeldVersion> versions;
    for (const Version version : {1u, 2u, 3u, 4u}) versions.push_back(held_version(version, true));
    for (const Version version : {1u, 2u}) versions.push_back(held_version(version, true, "sea"));
    EXPECT_THAT(not_kept(versions, 2, 0), ElementsAre(held_key(2), held_key(1)));
    EXPECT_THAT(not_kept(versions, 1, 2), ElementsAre(held_key(1, "sea"), held_key(3), held_key(1)));
    EXPECT_THAT(not_kept(versions, 0, 0), IsEmpty());
}

TEST(Retention, ABaseStaysAsLongAsThereIsRoom) {
    std::vector<HeldVersion> versions;
    for (const Version version : {1u, 2u, 3u, 4u}) versions.push_back(held_version(version, true));
    versions[1].is_base = true;
    EXPECT_THAT(not_kept(versions, 1, 0), ElementsAre(held_key(3), held_key(1)));
    EXPECT_THAT(spare_copies(versions), ElementsAre(held_key(1), held_key(2), held_key(3)));
}

TEST(Retention, WhatNobodyWillWantGoesAndWhatMayTurnUpStays) {
    HeldVersion cancelled = held_version(2, false), abandoned = held_version(3, false), late = held_version(5, false);
    cancelled.final = abandoned.abandoned = late.abandoned = true;
    const std::vector<HeldVersion> versions = {on_its_way(1), cancelled, abandoned, held_version(4, true), late};
    EXPECT_THAT(not_kept(versions, 1, 0), ElementsAre(held_key(3), held_key(2)));
}

TEST(Retention, SpareCopiesAreThoseWithANewerOne) {
    const std::vector<HeldVersion> versions = {held_version(1, true), held_version(2, true), on_its_way(3), held_version(1, true, "sea")};
    EXPECT_THAT(spare_copies(versions), ElementsAre(held_key(1)));
    EXPECT_THAT(spare_copies({held_version(1, true)}), IsEmpty());
}

// Else none would ever be committed.
TEST(Retention, TheOldestOnItsWayIsLeftToFinish) {
    EXPECT_EQ(replaceable({on_its_way(1)}), std::nullopt);
    EXPECT_EQ(replaceable({on_its_way(1), on_its_way(2)}), std::nullopt);
    EXPECT_EQ(replaceable({on_its_way(1), on_its_way(2), on_its_way(3)}), held_key(2));
    HeldVersion failed = on_its_way(1), read = on_its_way(2);
    failed.failure = unavailable("no persistent");
    EXPECT_EQ(replaceable({failed, on_its_way(2)}), held_key(1));
    read.pinned = true;
    EXPECT_EQ(replaceable({on_its_way(1), read, on_its_way(3), on_its_way(4)}), held_key(3));
    EXPECT_EQ(replaceable({held_version(1, true), on_its_way(2)}), std::nullopt) << "what is committed is not replaced but spared";
}

TEST(Retention, SaysWhoHoldsWhatAndWhy) {
    HeldVersion failed = on_its_way(2), read = held_version(3, true);
    failed.failure = unavailable("no persistent");
    failed.bytes = 1 << 20;
    read.pinned = true;
    const std::string text = what_holds({on_its_way(1), failed, read, held_version(4, true)}, 2 << 20);
    for (const char* words : {"heat version 1 holds 0 B (not committed yet)", "version 2 holds 1.00 MiB (not committed: no persistent)", "version 3 holds 0 B (being restored)",
                              "version 4 holds 0 B (committed)", "2.00 MiB are being captured"})
        EXPECT_THAT(text, HasSubstr(words));
    EXPECT_EQ(what_holds({}, 0), "");
}

}  // namespace
}  // namespace cairn
