#include "base/config_edit.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

const std::vector<ConfigChange> changes = {{"flush.writers", "4"}, {"flush.placement", "\"interleaved\""}, {"flush.direct", "false"}};

TEST(ConfigEdit, KeepsCommentsOrderAndOtherKeys) {
    const std::string before =
        "# ours\n\n[flush]  # how\n  placement=\"append\"# in order of arrival\nfiles = 4\nwriters = 8 # a \"good\" number\n\n# where\n[paths]\nscratch = "
        "\"/a # b\"\n";
    const Result<std::string> after = edit_config(before, changes);
    ASSERT_TRUE(after.ok()) << after.status().to_string();
    EXPECT_EQ(*after,
              "# ours\n\n[flush]  # how\n  placement=\"interleaved\"# in order of arrival\nfiles = 4\nwriters = 4 # a \"good\" number\ndirect = false\n\n# "
              "where\n[paths]\nscratch = \"/a # b\"\n");
    EXPECT_EQ(config_difference(before, *after),
              "-   placement=\"append\"# in order of arrival\n+   placement=\"interleaved\"# in order of arrival\n- writers = 8 # a \"good\" number\n+ "
              "writers = 4 # a \"good\" number\n+ direct = false\n");
    EXPECT_EQ(*edit_config(*after, changes), *after);
    EXPECT_EQ(config_difference(*after, *after), "");
}

TEST(ConfigEdit, MakesWhatIsMissing) {
    EXPECT_EQ(*edit_config("", {{"flush.writers", "4"}}), "[flush]\nwriters = 4\n");
    EXPECT_EQ(*edit_config("[paths]\nscratch = \"/s\"", {{"flush.writers", "4"}}), "[paths]\nscratch = \"/s\"\n\n[flush]\nwriters = 4\n");
    EXPECT_EQ(*edit_config("[flush]\n\n[paths]\n", {{"flush.writers", "4"}}), "[flush]\nwriters = 4\n\n[paths]\n");
    EXPECT_EQ(*edit_config("flush.writers = 8 # dotted\n", {{"flush.writers", "4"}}), "flush.writers = 4 # dotted\n");
}

TEST(ConfigEdit, RefusesWhatItDoesNotUnderstand) {
    EXPECT_EQ(edit_config("flush = { writers = 8 }\n", {{"flush.writers", "4"}}).code(), Code::invalid_argument);
    EXPECT_EQ(edit_config("[flush\n", {{"flush.writers", "4"}}).code(), Code::invalid_argument);
    EXPECT_EQ(edit_config("[flush]\n# writers = 1\nwriters = '''\n8'''\n", {{"flush.writers", "4"}}).code(), Code::invalid_argument);
}

// A key that is only in a comment is not that key, nor is one of another section.
TEST(ConfigEdit, LooksAtTheRightLine) {
    EXPECT_EQ(*edit_config("[other]\nwriters = 1\n[flush]\n# writers = 2\n", {{"flush.writers", "4"}}),
              "[other]\nwriters = 1\n[flush]\nwriters = 4\n# writers = 2\n");
}

}  // namespace
}  // namespace cairn
