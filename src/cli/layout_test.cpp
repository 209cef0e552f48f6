// `cairn layout`: of directories without and with targets, and of a version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/version_testing.hpp"

namespace cairn::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using Json = nlohmann::json;

struct LayoutCommand : testing::Test {
    ProgramFolder folder;
    Ran cairn(const std::string& arguments) { return folder.run(arguments); }
    std::string two_roots() {
        for (const char* name : {"a", "b"}) std::filesystem::create_directories(folder.path(name));
        return folder.path("a") + "," + folder.path("b");
    }
};

TEST_F(LayoutCommand, without_targets_the_file_system_chooses) {
    const Ran ran = cairn("layout --nodes 3");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("driver        plain, no storage target: Cairn knows no way to choose"));
    EXPECT_THAT(ran.out, HasSubstr("layout        aggregated, 3 files of 1.00 GiB\n"));
    EXPECT_THAT(cairn("layout nowhere/yet").out, HasSubstr("directory     " + folder.path("nowhere/yet")));
}

TEST_F(LayoutCommand, directories_are_targets) {
    folder.environment = "CAIRN_STORAGE_DIRECTORIES=" + two_roots();
    const Ran ran = cairn("layout --nodes 4 --bytes 1GiB");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("directories, 2 storage targets"));
    EXPECT_THAT(ran.out, ContainsRegex("\n +?.*/a +[0-9.]+ [KMGT]iB\n"));
    EXPECT_THAT(ran.out, HasSubstr("targets       2 of 2 get files; the fullest 512 MiB, 0.0 % above the mean of all"));
    EXPECT_THAT(cairn("layout --nodes 1 --ranks 8").out, HasSubstr("better        flush.files = 2 fills all targets"));
    folder.environment += " CAIRN_FLUSH_LAYOUT=file-per-node";
    const Json json = Json::parse(cairn("layout --nodes 3 --bytes 3GiB --json").out);
    EXPECT_EQ(json["driver"], "directories");
    EXPECT_EQ(json["targets"].size(), 2u);
    EXPECT_EQ(json["expected"]["layout"], "file-per-node");
    EXPECT_EQ(json["expected"]["files"], 3);
    EXPECT_EQ(json["expected"]["fullest_bytes"], 2ull << 30);
    EXPECT_THAT(json["expected"]["hints"].dump(), HasSubstr("aggregated"));
}

TEST_F(LayoutCommand, explains_where_a_version_lies) {
    Melt melt{folder};
    melt.open(1, first);
    melt.commit(1, first, 1);
    const Ran ran = cairn("layout --explain melt");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, ContainsRegex("part-0001-of-0002[^ ]* +[0-9.]+ KiB +.*checkpoints\n"));
    EXPECT_THAT(ran.out, ContainsRegex("checkpoints +2 +[0-9.]+ KiB"));
    EXPECT_THAT(ran.out, HasSubstr("the fullest target has 0.0 % more"));
    EXPECT_EQ(Json::parse(cairn("layout --explain melt --version 1 --json").out)["files"].size(), 2u);
}

TEST_F(LayoutCommand, what_is_asked_wrongly_is_told) {
    EXPECT_EQ(cairn("layout --nodes 0").exit, 1);
    EXPECT_THAT(cairn("layout --nodes 4 --ranks 2").err, HasSubstr("--ranks"));
    EXPECT_EQ(cairn("layout --bytes lots").exit, 1);
    EXPECT_EQ(cairn("layout --explain melt").exit, static_cast<int>(Code::not_found));
    EXPECT_EQ(cairn("layout there --explain melt").exit, 1);
}

}  // namespace
}  // namespace cairn::cli
