// `cairn ls` and `cairn show` on versions of two lineages and on images in scratch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/version_testing.hpp"

namespace cairn::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

struct Ls : testing::Test {
    ProgramFolder folder;
    Melt melt{folder};
    Ran cairn(const std::string& arguments) { return folder.run(arguments); }
};

TEST_F(Ls, nothing_there) {
    EXPECT_EQ(cairn("ls").out, "no checkpoints under " + folder.path("checkpoints") + "\n");
    EXPECT_EQ(cairn("ls melt").exit, static_cast<int>(Code::not_found));
    EXPECT_THAT(cairn("ls melt").err, HasSubstr("no checkpoint is named melt"));
    EXPECT_EQ(cairn("ls ../melt").exit, 1);
    const Ran missing = cairn("ls --persistent nowhere");
    EXPECT_EQ(missing.exit, static_cast<int>(Code::not_found));
    EXPECT_THAT(missing.err, HasSubstr("--persistent"));
    folder.environment = "CAIRN_PATHS_PERSISTENT=/nowhere/at/all";
    EXPECT_THAT(cairn("ls").err, HasSubstr("/nowhere/at/all (paths.persistent, from CAIRN_PATHS_PERSISTENT)"));
}

TEST_F(Ls, a_folder_that_is_no_checkpoint_is_left_out) {
    std::filesystem::create_directories(folder.path("checkpoints/other/things"));
    folder.write("checkpoints/file", "x");
    EXPECT_EQ(cairn("ls").out, "no checkpoints under " + folder.path("checkpoints") + "\n");
}

TEST_F(Ls, versions_of_two_lineages) {
    melt.open(1, first);
    melt.commit(1, first, 1);
    melt.commit(2, first, 1);
    melt.open(2, second, {first, 1});
    melt.commit(2, second, 2, {first, 1});
    const Ran all = cairn("ls");
    EXPECT_EQ(all.exit, 0) << all.err;
    EXPECT_THAT(all.out, ContainsRegex("melt +3 +2 +committed +4 +2 +58\\.6 KiB"));
    const Ran ls = cairn("ls melt");
    EXPECT_THAT(ls.out, ContainsRegex("\\* +1 +committed +persistent +4 +2 .* 11111111\n"));
    EXPECT_THAT(ls.out, ContainsRegex("\n +2 +committed +persistent .* 11111111\n")) << "gone back behind it";
    EXPECT_THAT(ls.out, ContainsRegex("\\* +2 +committed +persistent .* 22222222\n"));
    const Json json = Json::parse(cairn("ls melt --json").out);
    const Json& versions = json["checkpoints"][0]["versions"];
    ASSERT_EQ(versions.size(), 3u);
    EXPECT_EQ(versions[1]["current"], false);
    EXPECT_EQ(versions[2]["current"], true);
    EXPECT_EQ(versions[2]["parent"]["version"], 1);
    EXPECT_EQ(versions[2]["image_bytes"], 60'000);
    EXPECT_EQ(versions[2]["files"], 2);
}

TEST_F(Ls, levels_and_states) {
    melt.open(1, first);
    melt.commit(1, first, 1);
    for (Rank rank = 0; rank < 4; ++rank) melt.seal(rank < 2 ? "n0" : "n1", 1, first, 1, rank);
    for (Rank rank = 0; rank < 4; ++rank) melt.seal(rank < 2 ? "n0" : "n1", 2, first, 1, rank);
    melt.seal("n0", 3, first, 1, 0);
    static_cast<void>(melt.part(4, first, 0));
    melt.commit(5, first, 1);
    Melt::flip(melt.layout.manifest(Melt::key(5, first)), 60);
    const Ran ls = cairn("ls melt");
    EXPECT_EQ(ls.exit, 0) << ls.err;
    EXPECT_THAT(ls.out, ContainsRegex("1 +committed +scratch \\+ persistent "));
    EXPECT_THAT(ls.out, ContainsRegex("2 +sealed +scratch +4 "));
    EXPECT_THAT(ls.out, ContainsRegex("3 +partial +scratch 1/4 "));
    EXPECT_THAT(ls.out, ContainsRegex("4 +unfinished +- "));
    EXPECT_THAT(ls.out, ContainsRegex("5 +damaged "));
    EXPECT_THAT(ls.out, HasSubstr("version 5: ")) << "says what is wrong";
}

TEST_F(Ls, a_damaged_slot_is_told_and_hides_nothing) {
    melt.seal("n0", 1, first, 1, 0);
    const std::string slot = melt.seal("n0", 1, first, 1, 1);
    Melt::flip(slot, image_header_offset + 50);
    const Ran ls = cairn("ls melt");
    EXPECT_THAT(ls.err, HasSubstr(slot));
    EXPECT_THAT(ls.out, ContainsRegex("1 +partial +scratch 1/4"));
}

TEST_F(Ls, who_takes_the_newest_is_told_of_a_newer_one_that_is_damaged) {
    melt.open(1, first);
    melt.commit(1, first, 1);
    melt.commit(3, first, 1);
    EXPECT_EQ(cairn("show melt").err, "");
    Melt::flip(melt.layout.manifest(Melt::key(3, first)), 60);
    for (const std::string command : {"show melt", "extract melt --rank 1 -o -"}) {
        const Ran ran = cairn(command);
        EXPECT_EQ(ran.exit, 0) << ran.err;
        EXPECT_THAT(ran.err, HasSubstr("version 3 is newer than 1, and damaged: ")) << command;
    }
    EXPECT_EQ(cairn("show melt 1").err, "") << "who names a version knows which";
    Melt::flip(melt.layout.manifest(Melt::key(1, first)), 60);
    for (const std::string command : {"show melt", "extract melt --rank 1 -o -"}) {
        const Ran ran = cairn(command);
        EXPECT_EQ(ran.exit, 6) << ran.err;
        EXPECT_THAT(ran.err, HasSubstr("no version of melt can be read, and version 3 is damaged: ")) << command;
    }
}

TEST_F(Ls, show_names_parts_regions_and_pieces) {
    melt.open(1, first);
    melt.commit(1, first, 1);
    melt.commit(3, first, 1);
    const Ran show = cairn("show melt");
    EXPECT_EQ(show.exit, 0) << show.err;
    EXPECT_THAT(show.out, ContainsRegex("version +3, in the current lineage"));
    EXPECT_THAT(show.out, ContainsRegex("images +4 ranks on 2 nodes, 58\\.6 KiB \\(60,000 bytes\\)"));
    EXPECT_THAT(show.out, HasSubstr("part-0000-of-0002."));
    EXPECT_THAT(show.out, ContainsRegex("1 +grid +memory +f64 +2362 +18\\.5 KiB +0\n"));
    EXPECT_THAT(show.out, ContainsRegex("1 +restart/melt\\.1 +file +bytes +1000 +1000 B +19000\n"));
    EXPECT_THAT(show.out, Not(HasSubstr("from byte of image")));
    EXPECT_THAT(cairn("show melt 1 --pieces").out, ContainsRegex("1 +0 +20000 +0 +12288 +5 +raw\n"));
    const Json json = Json::parse(cairn("show melt 1 --json").out);
    EXPECT_EQ(json["version"], 1);
    EXPECT_EQ(json["parts"][0]["runs"][1]["part_offset"], 12'288);
    EXPECT_EQ(json["images"][3]["bytes"], 0);
    EXPECT_EQ(json["images"][0]["regions"][0]["shape"][0], 1'112);
}

TEST_F(Ls, show_of_what_is_not_there_says_what_is) {
    melt.open(1, first);
    melt.commit(1, first, 1);
    const Ran show = cairn("show melt 9");
    EXPECT_EQ(show.exit, static_cast<int>(Code::not_found));
    EXPECT_THAT(show.err, HasSubstr("no committed version 9; committed are 1"));
    EXPECT_EQ(cairn("show melt nine").exit, 1);
    EXPECT_EQ(cairn("show").exit, 1);
    std::filesystem::resize_file(melt.part_path(1, first, 1), 100);
    const Ran cut = cairn("show melt 1");
    EXPECT_EQ(cut.exit, static_cast<int>(Code::corrupt));
    EXPECT_THAT(cut.err, HasSubstr("part-0001-of-0002"));
}

}  // namespace
}  // namespace cairn::cli
