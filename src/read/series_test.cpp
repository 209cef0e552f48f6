// Series: the state of each version from what persistent and scratch hold of it, and which one a person means.
#include "read/series.hpp"

#include <gtest/gtest.h>

#include "read/series_testing.hpp"

namespace cairn {
namespace {

using namespace testing;

const Layout layout{"/persistent"};

Series joined(std::vector<LineageEntry> opens, std::vector<CatalogEntry> entries, const std::vector<ScratchImage>& images = {}) {
    Result<Series> series = join_series(layout, "melt", {"melt", std::move(opens), {}}, std::move(entries), images);
    CAIRN_CHECK(series.ok());
    return std::move(series).value();
}

SeenState state_of_only(const Series& series) {
    EXPECT_EQ(series.versions.size(), 1u);
    return series.versions.at(0).state;
}

TEST(Series, StatesSayWhereAVersionIs) {
    const auto opens = [] { return std::vector<LineageEntry>{opened(first_job, 10)}; };
    EXPECT_EQ(state_of_only(joined(opens(), {committed(first_job, 10, 3)})), SeenState::committed);
    EXPECT_EQ(state_of_only(joined(opens(), {given_up(first_job, 10, 3)}, {image(first_job, 10, 3, 0)})), SeenState::given_up);
    EXPECT_EQ(state_of_only(joined(opens(), {}, {image(first_job, 10, 3, 0)})), SeenState::partial);
    EXPECT_EQ(state_of_only(joined(opens(), {}, {image(first_job, 10, 3, 1), image(first_job, 10, 3, 0)})), SeenState::sealed);
    CatalogEntry parts;  // they tell half of their incarnation
    parts.key = {"melt", 3, {first_job.high, 0}};
    EXPECT_EQ(state_of_only(joined(opens(), {parts})), SeenState::unfinished);
    CatalogEntry damaged = parts;
    damaged.key.incarnation = first_job;
    damaged.damage = corrupt("manifest: damaged");
    EXPECT_EQ(state_of_only(joined(opens(), {damaged})), SeenState::damaged);
    EXPECT_EQ(state_name(joined(opens(), {damaged}).versions.front()), "damaged");
    damaged.damage = Status(Code::permission, "not yours to read");
    EXPECT_EQ(state_name(joined(opens(), {damaged}).versions.front()), "unreadable");
}

TEST(Series, ARankThatIsThereTwiceIsOneOfTwo) {
    const Series series = joined({opened(first_job, 10)}, {}, {image(first_job, 10, 3, 0), image(first_job, 10, 3, 0)});
    EXPECT_EQ(state_of_only(series), SeenState::partial);
    EXPECT_EQ(series.versions[0].scratch_ranks, std::vector<Rank>{0});
}

// Parts and images of one version are one row, although parts do not know the second half of its incarnation; the open record tells it.
TEST(Series, PartsAreJoinedWithImagesAndOpens) {
    CatalogEntry parts;
    parts.key = {"melt", 3, {first_job.high, 0}};
    parts.files.push_back({"part", false, 77});
    EXPECT_EQ(joined({opened(first_job, 10)}, {parts}).versions.at(0).key.incarnation, first_job);
    const Series series = joined({opened(first_job, 10)}, {parts}, {image(first_job, 10, 3, 0)});
    EXPECT_EQ(state_of_only(series), SeenState::partial);
    EXPECT_EQ(series.versions[0].key.incarnation, first_job);
    EXPECT_EQ(series.versions[0].stored_bytes, 77u);
}

TEST(Series, ImagesOfOtherSeriesAreNotIts) {
    ScratchImage other = image(first_job, 10, 9, 0);
    other.key.name = "other";
    EXPECT_EQ(joined({opened(first_job, 10)}, {committed(first_job, 10, 3)}, {other}).versions.size(), 1u);
}

TEST(Series, NobodyKnowsTheName) {
    EXPECT_EQ(join_series(layout, "melt", {"melt", {}, {}}, {}, {}).code(), Code::not_found);
    LineageRecords unlisted{"melt", {}, corrupt("the lineage can not be listed")};
    EXPECT_TRUE(join_series(layout, "melt", std::move(unlisted), {}, {}).ok());  // it is there, whatever it says
}

// Versions 1 to 3 of a first job; a second one went back to 1 and took its own 2.
Series went_back() {
    const Parent from{first_job, 1};
    return joined({opened(first_job, 10), opened(second_job, 11, from)},
                  {committed(first_job, 10, 1), committed(first_job, 10, 2), committed(first_job, 10, 3), committed(second_job, 11, 2, from)},
                  {image(second_job, 11, 4, 0, from)});
}

TEST(Series, NewestIsOfTheCurrentLineage) {
    const Series series = went_back();
    for (const char* text : {"", "newest", "latest"}) {
        const auto picked = pick_committed(series, text, "");
        ASSERT_TRUE(picked.ok()) << picked.status().to_string();
        EXPECT_EQ(picked->key, (VersionKey{"melt", 2, second_job}));
    }
    EXPECT_EQ(pick_committed(series, "2", "").value().key.incarnation, second_job);
    EXPECT_EQ(pick_committed(series, "2", first_job.hex().substr(0, 16)).value().key.incarnation, first_job);
    EXPECT_EQ(pick_committed(series, "3", "").value().key.incarnation, first_job);  // asked for by number, and there is one
    EXPECT_EQ(pick_committed(series, "newest", first_job.hex()).value().key.version, 3u);
}

TEST(Series, WhatIsNotCommittedIsReadFromScratchOnly) {
    const Series series = went_back();
    EXPECT_EQ(pick_committed(series, "4", "").code(), Code::not_found);
    const auto readable = pick_readable(series, "4", "");
    ASSERT_TRUE(readable.ok());
    EXPECT_TRUE(in_scratch_only(*readable));
    const auto missing = pick_readable(series, "5", "");
    EXPECT_EQ(missing.status().text(), "melt has no committed version 5; committed are 1, 2, 3");
}

TEST(Series, AVersionIsANumberFromOne) {
    EXPECT_EQ(parse_version("18446744073709551614").value(), UINT64_MAX - 1);
    for (const char* text : {"0", "18446744073709551615", "18446744073709551616", "-1", "1x", "", " 1"})
        EXPECT_EQ(parse_version(text).code(), Code::invalid_argument) << text;
}

}  // namespace
}  // namespace cairn
