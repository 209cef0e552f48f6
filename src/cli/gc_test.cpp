// `cairn rm` and `cairn gc`: what goes, what stays, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/version_testing.hpp"
#include "engine/removal.hpp"

namespace cairn::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Gc : testing::Test {
    ProgramFolder folder;
    Melt melt{folder};
    void SetUp() override { melt.open(1, first); }
    Ran cairn(const std::string& arguments) { return folder.run(arguments); }
    static int exit_of(Code code) { return static_cast<int>(code); }

    static void make_old(const std::string& path) {
        fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(2));
    }
    // "1 2*": the committed versions, those outside the current lineage marked.
    std::string versions() {
        const Json listed = Json::parse(cairn("ls melt --json").out);
        std::string text;
        for (const Json& version : listed["checkpoints"][0]["versions"])
            if (version["state"] == "committed")
                text += (text.empty() ? "" : " ") + version["version"].dump() + (version["current"] == true ? "" : "*");
        return text;
    }
    std::size_t files_in(Version version) {
        std::error_code none;
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(melt.layout.version("melt", version), none), {}));
    }
};

TEST_F(Gc, rm_removes_versions_but_the_newest_only_by_force) {
    for (Version version = 1; version <= 4; ++version) melt.commit(version, first, 1);
    const Ran ran = cairn("rm melt 1 3");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("removed melt version 3"));
    EXPECT_EQ(versions(), "2 4");
    EXPECT_FALSE(fs::exists(melt.layout.version("melt", 1)));
    const Ran newest = cairn("rm melt 2 4");
    EXPECT_EQ(newest.exit, 1);
    EXPECT_THAT(newest.err, HasSubstr("melt version 4 is the newest committed one"));
    EXPECT_EQ(versions(), "2 4") << "all or nothing of a refused request";
    EXPECT_EQ(Json::parse(cairn("rm melt 4 --force --json").out)["removed"][0]["version"], 4);
    EXPECT_EQ(versions(), "2");
    EXPECT_EQ(cairn("rm melt 4").exit, exit_of(Code::not_found));
    EXPECT_EQ(cairn("rm melt").exit, 1);
}

TEST_F(Gc, rm_of_one_of_two_incarnations) {
    melt.commit(1, first, 1);
    melt.commit(2, first, 1);
    melt.open(2, second, {first, 1});
    melt.commit(2, second, 2, {first, 1});
    melt.commit(3, second, 2, {first, 1});
    EXPECT_THAT(cairn("rm melt 2").err, HasSubstr("--incarnation"));
    EXPECT_EQ(cairn("rm melt 2 --incarnation 1111").exit, 0);
    EXPECT_EQ(versions(), "1 2 3");
    EXPECT_EQ(files_in(2), 3u) << "manifest and parts of the other one";
}

TEST_F(Gc, rm_tells_of_images_in_scratch) {
    melt.commit(1, first, 1);
    melt.commit(2, first, 1);
    melt.seal("n0", 1, first, 1, 0);
    EXPECT_THAT(cairn("rm melt 1").err, HasSubstr("commits them again"));
}

TEST_F(Gc, the_retention_rule) {
    for (Version version = 1; version <= 7; ++version) melt.commit(version, first, 1);
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n") << "0 keeps all";
    folder.environment = "CAIRN_RETENTION_PERSISTENT_LAST=2 CAIRN_RETENTION_PERSISTENT_EVERY=3";
    const Ran look = cairn("gc --dry-run");
    EXPECT_THAT(look.out, ContainsRegex("melt +5 +11111111 .*beyond the retention rule"));
    EXPECT_THAT(look.out, HasSubstr("would be freed"));
    EXPECT_EQ(versions(), "1 2 3 4 5 6 7");
    EXPECT_EQ(cairn("gc").exit, 0);
    EXPECT_EQ(versions(), "3 6 7");
    EXPECT_EQ(cairn("gc melt").out, "nothing to remove\n");
}

TEST_F(Gc, versions_of_other_lineages_go_when_asked_for) {
    melt.commit(1, first, 1);
    melt.commit(2, first, 1);
    melt.open(2, second, {first, 1});
    melt.commit(2, second, 2, {first, 1});
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n");
    EXPECT_EQ(versions(), "1 2* 2");
    EXPECT_EQ(cairn("gc --other-lineages").exit, 0);
    EXPECT_EQ(versions(), "1 2");
}

TEST_F(Gc, parts_of_attempts_that_did_not_commit) {
    melt.commit(1, first, 1);
    static_cast<void>(melt.part(1, first, 0, 6));
    const Ran ran = cairn("gc");
    EXPECT_THAT(ran.out, HasSubstr("parts of attempts that did not commit"));
    EXPECT_FALSE(fs::exists(melt.part_path(1, first, 0, 6)));
    EXPECT_EQ(cairn("verify").exit, 0);
}

TEST_F(Gc, what_an_older_incarnation_left_behind_is_fenced_then_removed) {
    melt.commit(1, first, 1);
    static_cast<void>(melt.part(2, first, 0));
    melt.open(2, second, {first, 1});
    melt.commit(2, second, 2, {first, 1});
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n") << "it is young: its daemon may still be at it";
    EXPECT_EQ(cairn("gc --age 0 --dry-run").exit, 0);
    make_old(melt.part_path(2, first, 0));
    const Ran ran = cairn("gc");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, ContainsRegex("melt +2 +11111111 .*left behind by an older incarnation"));
    EXPECT_FALSE(fs::exists(melt.part_path(2, first, 0)));
    EXPECT_TRUE(fs::exists(melt.layout.manifest(Melt::key(2, first))))
        << "the tombstone: nobody can commit it any more";
    EXPECT_THAT(cairn("ls melt").out, ContainsRegex("2 +given up .* 11111111"));
    EXPECT_EQ(cairn("verify").exit, 0);
    EXPECT_EQ(cairn("gc --age 0").out, "nothing to remove\n");
}

TEST_F(Gc, the_current_lineage_may_be_in_flight) {
    melt.commit(1, first, 1);
    static_cast<void>(melt.part(2, first, 0));
    make_old(melt.part_path(2, first, 0));
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n");
    EXPECT_TRUE(fs::exists(melt.part_path(2, first, 0)));
}

TEST_F(Gc, unpublished_manifests) {
    melt.commit(1, first, 1);
    const std::string temporary = melt.layout.manifest(Melt::key(1, first)) + ".x.tmp";
    Melt::write(temporary, as_bytes("torn"));
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n");
    make_old(temporary);
    EXPECT_THAT(cairn("gc").out, HasSubstr("unpublished manifests"));
    EXPECT_FALSE(fs::exists(temporary));
    EXPECT_EQ(cairn("verify").exit, 0);
}

TEST_F(Gc, wrong_requests) {
    EXPECT_EQ(cairn("gc glass").exit, exit_of(Code::not_found));
    const Ran age = cairn("gc --age soon");
    EXPECT_EQ(age.exit, 1);
    EXPECT_THAT(age.err, HasSubstr("--age"));
}

TEST(Retention, the_newest_always_stays) {
    using Indices = std::vector<std::size_t>;
    EXPECT_EQ(beyond_retention({1, 2, 3, 4}, 0, 0), Indices{});
    EXPECT_EQ(beyond_retention({1, 2, 3, 4}, 1, 0), (Indices{0, 1, 2}));
    EXPECT_EQ(beyond_retention({1, 2, 3, 4}, 1, 2), (Indices{0, 2}));
    EXPECT_EQ(beyond_retention({}, 1, 0), Indices{});
}

}  // namespace
}  // namespace cairn::cli
