#include "base/text_table.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(TextTable, aligns_text_left_and_numbers_right) {
    TextTable table({left("name"), right("bytes"), left("state")});
    table.add({"a", "1", "committed"});
    table.add({"longer", "12345"});
    table.rule();
    table.add({"\u00fc", "7", "x"});
    EXPECT_EQ(table.to_string(1),
              " name    bytes  state\n"
              " ------  -----  ---------\n"
              " a           1  committed\n"
              " longer  12345\n"
              " ------  -----  ---------\n"
              " \u00fc           7  x\n");
}

TEST(TextTable, leaves_columns_out_to_fit) {
    const auto fitted = [](std::size_t width) {
        TextTable table({left("node"), right("up"), right("rate"), left("note")});
        table.add({"n0", "1 s", "7", ""});
        table.fit(width, {"up", "rate"});
        const std::string text = table.to_string();
        return text.substr(0, text.find('\n'));
    };
    EXPECT_EQ(fitted(0), "node   up  rate  note");
    EXPECT_EQ(fitted(21), "node   up  rate  note");
    EXPECT_EQ(fitted(20), "node  rate  note");
    EXPECT_EQ(fitted(15), "node  note");
    EXPECT_EQ(fitted(1), "node  note");
}

TEST(TextTable, small_helpers) {
    EXPECT_EQ(plural(1, "rank"), "1 rank");
    EXPECT_EQ(plural(1200, "rank"), "1,200 ranks");
    EXPECT_EQ(for_terminal("a\x1b[2Jb\n"), "a?[2Jb?");
    EXPECT_EQ(for_terminal("a\u009b2Jb\u00e9"), "a??2Jb\u00e9");
    EXPECT_EQ(format_ranges({}), "");
    EXPECT_EQ(format_ranges({0, 1, 2, 3, 7, 9, 10}), "0-3, 7, 9, 10");
    EXPECT_EQ(format_ranges({0, 2, 4, 6}, 2), "0, 2, ...");
    EXPECT_EQ(format_bar(0.5, 4), "[##  ]");
    EXPECT_EQ(format_bar(7, 4), "[####]");
    EXPECT_EQ(format_bar(0.0 / 0.0, 4), "[    ]");
}

}  // namespace
}  // namespace cairn
