// Lineage: which versions belong together, whatever was opened, restored from or taken again, and whether that can be told where records are damaged.
#include "catalog/lineage.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

const Id128 first{1, 1}, second_{2, 2}, third{3, 3}, fourth{4, 4};

LineageEntry opened(Id128 incarnation, std::uint64_t epoch, std::optional<Parent> from = std::nullopt) {
    LineageEntry entry;
    entry.open.incarnation = incarnation;
    entry.open.epoch = epoch;
    if (from) entry.from = FromRecord{incarnation, *from};
    return entry;
}

// The open of an epoch with a damaged .open, a damaged .from, or both; of a .from that is whole the incarnation is known.
LineageEntry open_lost(LineageEntry entry) {
    entry.open_damage = corrupt("/p/lineage/" + std::to_string(entry.open.epoch) + ".open: damaged");
    if (!entry.from) entry.open.incarnation = {};
    return entry;
}
LineageEntry from_lost(LineageEntry entry) {
    entry.from_damage = corrupt("/p/lineage/" + std::to_string(entry.open.epoch) + ".from: damaged");
    entry.from.reset();
    if (entry.open_damage) entry.open.incarnation = {};
    return entry;
}
LineageEntry both_lost(LineageEntry entry) { return from_lost(open_lost(std::move(entry))); }

CatalogEntry committed(Id128 incarnation, std::uint64_t epoch, Version version, Parent parent = {}) {
    CatalogEntry entry;
    entry.key = {"series", version, incarnation};
    entry.manifest.emplace();
    entry.manifest->key = entry.key;
    entry.manifest->epoch = epoch;
    entry.manifest->parent = parent;
    return entry;
}
CatalogEntry given_up(Id128 incarnation, std::uint64_t epoch, Version version, Parent parent = {}) {
    CatalogEntry entry = committed(incarnation, epoch, version, parent);
    entry.manifest->abandoned = true;
    return entry;
}
CatalogEntry damaged(Id128 incarnation, Version version) {
    CatalogEntry entry;
    entry.key = {"series", version, incarnation};
    entry.damage = corrupt("manifest: damaged");
    return entry;
}
CatalogEntry unlisted(Version version) { return damaged({}, version); }

Lineage of(std::vector<LineageEntry> opens, std::vector<CatalogEntry> entries, std::vector<SealedVersion> sealed = {}, Id128 own = {}) {
    return current_lineage({"series", std::move(opens), {}}, entries, sealed, own);
}

TEST(Lineage, OfNothingIsEmpty) {
    EXPECT_TRUE(of({}, {}).links.empty());
    EXPECT_TRUE(of({opened(first, 1)}, {}).links.empty()) << "an open that did nothing heads no lineage";
    EXPECT_TRUE(of({opened(first, 1)}, {}).is_certain());
}

TEST(Lineage, ParentsAreCutAtTheVersionTheyWereLeftAt) {
    const Lineage lineage = of({opened(first, 1), opened(second_, 2, Parent{first, 10})},
                               {committed(first, 1, 10), committed(first, 1, 20), committed(second_, 2, 20, {first, 10})});
    ASSERT_EQ(lineage.links.size(), 2u);
    EXPECT_TRUE(lineage.contains(second_, 20));
    EXPECT_TRUE(lineage.contains(first, 10));
    EXPECT_FALSE(lineage.contains(first, 20)) << "version 20 was taken again after going back";
}

TEST(Lineage, GoingBackCountsBeforeAnythingNewIsCommitted) {
    const Lineage lineage = of({opened(first, 1), opened(second_, 2, Parent{first, 10})}, {committed(first, 1, 10), committed(first, 1, 20)});
    EXPECT_TRUE(lineage.contains(first, 10));
    EXPECT_FALSE(lineage.contains(first, 20));
}

TEST(Lineage, AnOpenThatDidNothingHidesNothing) {
    EXPECT_TRUE(of({opened(first, 1), opened(second_, 2)}, {committed(first, 1, 20)}).contains(first, 20));
}

TEST(Lineage, AFreshStartLeavesOlderOnesBehindOnceItHasAVersion) {
    const Lineage lineage = of({opened(first, 1), opened(second_, 2)}, {committed(first, 1, 20), committed(second_, 2, 1)});
    EXPECT_TRUE(lineage.contains(second_, 1));
    EXPECT_FALSE(lineage.contains(first, 20));
}

TEST(Lineage, ImagesInScratchCount) {
    const std::vector<LineageEntry> opens = {opened(first, 1), opened(second_, 2)};
    const Lineage lineage = of(opens, {committed(first, 1, 20)}, {{second_, 2, 21, {first, 20}}});
    EXPECT_TRUE(lineage.contains(second_, 21));
    EXPECT_TRUE(lineage.contains(first, 20));
    const Lineage of_some_ranks = of(opens, {committed(first, 1, 20)}, {{second_, 2, 21, {first, 19}, false}});
    EXPECT_TRUE(of_some_ranks.contains(first, 20)) << "what some ranks hold is no version";
}

TEST(Lineage, TombstonesDoNotCount) {
    const Lineage lineage = of({opened(first, 1), opened(second_, 2)}, {committed(first, 1, 20), given_up(second_, 2, 30)});
    EXPECT_TRUE(lineage.contains(first, 20));
    EXPECT_FALSE(lineage.contains(second_, 30));
}

// The one manifest of a job that began anew: while storage does not give it, whoever restarts is told so, and goes on from nothing older.
TEST(Lineage, AManifestThatCanNotBeReadCounts) {
    CatalogEntry unread = committed(second_, 2, 1);
    unread.manifest.reset();
    unread.damage = Status(Code::io_error, "manifest: Input/output error");
    const Lineage lineage = of({opened(first, 1), opened(second_, 2)}, {committed(first, 1, 20), unread});
    EXPECT_TRUE(lineage.contains(second_, 1));
    EXPECT_FALSE(lineage.contains(first, 20));
    EXPECT_TRUE(of({opened(second_, 2)}, {unread}).contains(second_, 1));
}

TEST(Lineage, AHostileCycleEnds) {
    EXPECT_EQ(of({opened(first, 1, Parent{third, 5}), opened(second_, 2, Parent{first, 5}), opened(third, 3, Parent{second_, 5})}, {}).links.size(), 3u);
}

// Two jobs open as if nothing were there. The second one's version was cancelled, and its images are still in scratch.
TEST(Lineage, AVersionThatWasGivenUpLeadsNothingWhileItIsInScratch) {
    const std::vector<LineageEntry> rivals = {opened(first, 1), opened(second_, 2)};
    const std::vector<SealedVersion> images = {{second_, 2, 1, {}}};
    EXPECT_TRUE(of(rivals, {committed(first, 1, 1), given_up(second_, 2, 1)}, images).contains(first, 1));
    EXPECT_FALSE(of(rivals, {committed(first, 1, 1)}, images).contains(first, 1)) << "the newer one may commit yet";
    EXPECT_FALSE(of(rivals, {committed(first, 1, 1), given_up(second_, 2, 1)}, {{second_, 2, 2, {}}}).contains(first, 1));
}

// ---- records that can not be read ----

// A job, and one that went back to its version 10 and committed 11; what each damage does to what a restart finds. All that is not told below is certain.
struct Row {
    const char* what;
    std::vector<LineageEntry> opens;
    std::vector<CatalogEntry> entries;
    std::vector<SealedVersion> sealed = {};
    bool head = true, tail = true, hidden = true;
    std::vector<VersionKey> in = {}, out = {};  // of the lineage
    Id128 own = {};
};

VersionKey key(Id128 incarnation, Version version) { return {"series", version, incarnation}; }

TEST(Lineage, WhatADamagedRecordMeans) {
    const LineageEntry one = opened(first, 1), two = opened(second_, 2, Parent{first, 10}), two_fresh = opened(second_, 2), three = opened(third, 3);
    const CatalogEntry a10 = committed(first, 1, 10), a20 = committed(first, 1, 20), b11 = committed(second_, 2, 11, {first, 10});
    const VersionKey ten = key(first, 10), twenty = key(first, 20), eleven = key(second_, 11);
    const SealedVersion image{second_, 2, 11, {first, 10}}, image_of_some{second_, 2, 11, {first, 10}, false};
    const Parent a{first, 10};
    const std::vector<Row> rows = {
        {.what = "nothing is damaged", .opens = {one, two}, .entries = {a10, a20, b11}, .in = {ten, eleven}, .out = {twenty}},
        // the .open: its epoch is its name, and manifests, images or the .from tell whose it was
        {.what = "an old .open", .opens = {open_lost(one), two}, .entries = {a10, a20, b11}, .in = {ten, eleven}, .out = {twenty}},
        {.what = "an old .open without any version", .opens = {open_lost(one), two}, .entries = {b11}, .in = {eleven}},
        {.what = "the newest .open, committed", .opens = {one, open_lost(two)}, .entries = {a10, a20, b11}, .in = {ten, eleven}, .out = {twenty}},
        {.what = "the newest .open, nothing committed, its .from is whole", .opens = {one, open_lost(two)}, .entries = {a10, a20}, .in = {ten}, .out = {twenty}},
        {.what = "the newest .open, which led nothing", .opens = {one, open_lost(three)}, .entries = {a10, a20}, .in = {ten, twenty}},
        {.what = "the newest .open of a fresh start that committed", .opens = {one, open_lost(two_fresh)}, .entries = {a20, committed(second_, 2, 1)}, .in = {key(second_, 1)}, .out = {twenty}},
        // the .from: manifests, images and tombstones tell the same parent
        {.what = "the newest .from, committed", .opens = {one, from_lost(two)}, .entries = {a10, a20, b11}, .in = {ten, eleven}, .out = {twenty}},
        {.what = "both of the newest, committed", .opens = {one, both_lost(two)}, .entries = {a10, a20, b11}, .in = {ten, eleven}, .out = {twenty}},
        {.what = "both of all, committed", .opens = {open_lost(one), both_lost(two)}, .entries = {a10, a20, b11}, .in = {ten, eleven}, .out = {twenty}},
        {.what = "both of the newest, sealed", .opens = {one, both_lost(two)}, .entries = {a10, a20}, .sealed = {image}, .in = {ten, eleven}, .out = {twenty}},
        {.what = "both of the newest, sealed by some ranks", .opens = {one, both_lost(two)}, .entries = {a10, a20}, .sealed = {image_of_some}, .in = {ten}, .out = {twenty, }},
        {.what = "both of the newest, its coordinator gave a version up", .opens = {one, both_lost(two)}, .entries = {a10, a20, given_up(second_, 2, 11, a)}, .in = {ten}, .out = {twenty}},
        {.what = "the newest .from, its coordinator gave a version up", .opens = {one, from_lost(two)}, .entries = {a10, a20, given_up(second_, 2, 11, a)}, .in = {ten}, .out = {twenty}},
        {.what = "a .from of a fresh start that committed", .opens = {from_lost(opened(first, 1, Parent{}))}, .entries = {a20}, .in = {twenty}},
        // nothing else tells it
        {.what = "the newest .from, nothing committed", .opens = {one, from_lost(two)}, .entries = {a10, a20}, .tail = false, .out = {ten, twenty}},
        {.what = "both of the newest, nothing committed", .opens = {one, both_lost(two)}, .entries = {a10, a20}, .head = false},
        {.what = "both of the newest, a version removed by who knew no parent", .opens = {one, from_lost(two)}, .entries = {a10, a20, given_up(second_, 2, 11)}, .tail = false, .out = {ten, twenty}},
        {.what = "both of one before the newest, which nobody went on from", .opens = {one, both_lost(two), opened(third, 3, a)}, .entries = {a10, a20}, .in = {ten}, .out = {twenty}},
        {.what = "both of one that the newest went on from, all of it removed", .opens = {one, both_lost(two), opened(third, 3, Parent{second_, 11})}, .entries = {a10, a20, committed(third, 3, 12, {second_, 11})}, .tail = false, .in = {key(third, 12)}, .out = {ten, twenty}},
        {.what = "the .open of one that the newest went on from, all of it removed", .opens = {one, open_lost(two_fresh), opened(third, 3, Parent{second_, 11})}, .entries = {a10, committed(third, 3, 12, {second_, 11})}, .in = {key(third, 12)}, .out = {ten}},
        {.what = "an ancestor's .from, and its versions are gone", .opens = {one, from_lost(two), opened(third, 3, Parent{second_, 11})}, .entries = {a10, committed(third, 3, 12, {second_, 11})}, .tail = false, .in = {key(third, 12)}, .out = {ten}},
        // a manifest that can not be read may have been a commit
        {.what = "the only manifest of a fresh start", .opens = {one, two_fresh}, .entries = {a20, damaged(second_, 1)}, .in = {key(second_, 1)}, .out = {twenty}},
        {.what = "the only manifest of a fresh start, and its .open", .opens = {one, open_lost(two_fresh)}, .entries = {a20, damaged(second_, 1)}, .head = false},
        {.what = "a manifest of one whose .open is not the newest", .opens = {open_lost(one), two}, .entries = {damaged(first, 10), b11}, .in = {eleven, ten}},
        // a directory that can not be listed
        {.what = "an old directory", .opens = {one, two}, .entries = {a10, a20, b11, unlisted(5)}, .in = {ten, eleven}, .out = {twenty}},
        {.what = "a directory, where another open left nothing", .opens = {one, three}, .entries = {a10, a20, unlisted(30)}, .hidden = false, .in = {ten, twenty}},
        {.what = "a directory, and the only other open is who asks", .opens = {one, three}, .entries = {a10, a20, unlisted(30)}, .in = {ten, twenty}, .own = third},
        {.what = "nothing but a directory", .opens = {one, three}, .entries = {unlisted(30)}, .hidden = false, .own = third},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.what);
        const Lineage lineage = of(row.opens, row.entries, row.sealed, row.own);
        EXPECT_EQ(lineage.head.ok(), row.head) << lineage.head.text();
        EXPECT_EQ(lineage.tail.ok(), row.tail) << lineage.tail.text();
        EXPECT_EQ(lineage.hidden.ok(), row.hidden) << lineage.hidden.text();
        for (const VersionKey& each : row.in) EXPECT_TRUE(lineage.contains(each.incarnation, each.version)) << each.version;
        for (const VersionKey& each : row.out) EXPECT_FALSE(lineage.contains(each.incarnation, each.version)) << each.version;
        std::size_t damages = 0, named = lineage.passed_over.size() + (lineage.head.ok() ? 0 : 1) + (lineage.tail.ok() ? 0 : 1);
        for (const LineageEntry& entry : row.opens) damages += (entry.open_damage ? 1 : 0) + (entry.from_damage ? 1 : 0);
        for (const CatalogEntry& entry : row.entries) damages += entry.unlisted() ? 1 : 0;
        EXPECT_EQ(named, damages) << "what is damaged is named, each once";
        for (const Status* doubt : {&lineage.head, &lineage.tail, &lineage.hidden})
            EXPECT_TRUE(doubt->ok() || doubt->text().find("cairn repair series") != std::string::npos) << doubt->text();
    }
}

TEST(Lineage, WithoutItsRecordsTheNewestCanNotBeTold) {
    const LineageRecords records{"series", {}, corrupt("/p/lineage: is not a directory")};
    const Lineage lineage = current_lineage(records, {committed(first, 1, 20)}, {});
    EXPECT_EQ(lineage.head.code(), Code::corrupt) << "somebody may have gone back behind version 20";
    EXPECT_TRUE(lineage.contains(first, 20)) << "as far as it can be read";
}

TEST(Lineage, WhoCommitsAsksWhetherALaterOpenWentBackBehindIt) {
    const auto behind = [](std::vector<LineageEntry> opens, std::vector<CatalogEntry> entries) {
        return went_back_behind({"series", std::move(opens), {}}, entries, {"series", 20, first}, 1).code();
    };
    const LineageEntry one = opened(first, 1), two = opened(second_, 2, Parent{first, 10});
    EXPECT_EQ(behind({one, opened(second_, 2)}, {}), Code::ok);
    EXPECT_EQ(behind({one, two}, {}), Code::superseded);
    EXPECT_EQ(behind({one, opened(second_, 2, Parent{first, 20})}, {}), Code::ok);
    EXPECT_EQ(behind({open_lost(one), open_lost(two)}, {}), Code::superseded);
    EXPECT_EQ(behind({from_lost(opened(first, 1, Parent{third, 3})), opened(second_, 2)}, {}), Code::ok) << "where it came from itself does not matter";
    EXPECT_EQ(behind({one, from_lost(two)}, {}), Code::corrupt) << "nothing tells";
    EXPECT_EQ(behind({one, from_lost(two)}, {committed(second_, 2, 11, {first, 10})}), Code::superseded);
    EXPECT_EQ(behind({one, from_lost(two)}, {committed(second_, 2, 21, {first, 20})}), Code::ok);
    EXPECT_EQ(behind({one, from_lost(two), opened(third, 3, Parent{first, 9})}, {}), Code::superseded) << "another one is known to have gone back";
    EXPECT_EQ(went_back_behind({"series", {}, corrupt("/p/lineage: is not a directory")}, {}, {"series", 20, first}, 1).code(), Code::corrupt);
}

}  // namespace
}  // namespace cairn
