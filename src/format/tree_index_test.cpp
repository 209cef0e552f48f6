// What a tree index must not say: whoever restores a tree does what it says.
#include <gtest/gtest.h>

#include <functional>

#include "format/samples.hpp"

namespace cairn {
namespace {

constexpr std::size_t core = 2, directory = 3, device = 6, socket = 8, same = 9, up = 10;  // of samples::trees()[0]

// What is said of the sample after such a change.
Status with(const std::function<void(Tree&)>& change) {
    std::vector<Tree> trees = samples::trees();
    change(trees[0]);
    const Status checked = check_trees(trees);
    EXPECT_EQ(decode_tree_index(encode_tree_index(trees)).code(), checked.code()) << "a reader checks the same";
    return checked;
}

TEST(TreeIndex, no_path_leads_out_of_its_tree) {
    EXPECT_TRUE(with([](Tree&) {}).ok());
    for (const std::string bad : {"..", "../x", "/etc/x", "d/../../x", "d/..", "d/./x", "d//x", "d/", "/", ".", ""}) {
        const Status status = with([&](Tree& tree) {
            tree.entries[up] = {bad, TreeEntryKind::file};
            std::sort(tree.entries.begin(), tree.entries.end(), [](const TreeEntry& a, const TreeEntry& b) { return a.path < b.path; });
            if (tree.entries[1].path.empty()) tree.entries[1].path = bad;
        });
        EXPECT_EQ(status.code(), Code::corrupt) << "'" << bad << "'";
    }
    EXPECT_EQ(with([](Tree& tree) { tree.entries[up].path = std::string("u\0p", 3); }).code(), Code::corrupt);
    EXPECT_EQ(with([](Tree& tree) { tree.entries[up].path = std::string(tree_path_bytes_max + 1, 'u'); }).code(), Code::corrupt);
}

TEST(TreeIndex, nothing_lies_behind_a_link_nor_in_no_directory) {
    for (const char* bad : {"up/x", "same/x", "where/x"}) {
        const Status status = with([&](Tree& tree) {
            tree.entries.push_back({bad, TreeEntryKind::file});
            std::sort(tree.entries.begin(), tree.entries.end(), [](const TreeEntry& a, const TreeEntry& b) { return a.path < b.path; });
        });
        EXPECT_EQ(status.code(), Code::corrupt) << bad;
        EXPECT_NE(status.text().find("in no directory"), std::string::npos) << status.text();
    }
}

TEST(TreeIndex, each_path_is_there_once) {
    EXPECT_EQ(with([](Tree& tree) { tree.entries[up].path = tree.entries[same].path; }).code(), Code::corrupt);
    EXPECT_EQ(with([](Tree& tree) { std::swap(tree.entries[same], tree.entries[up]); }).code(), Code::corrupt);
}

TEST(TreeIndex, a_tree_has_a_name_of_one_component_and_begins_with_itself) {
    for (const char* bad : {"", ".", "..", "a/b", "/a", "a\n"})
        EXPECT_EQ(with([&](Tree& tree) { tree.name = bad; }).code(), Code::corrupt) << bad;
    EXPECT_EQ(with([](Tree& tree) { tree.name = "ckpt.8"; }).code(), Code::corrupt) << "twice";
    EXPECT_EQ(with([](Tree& tree) { tree.entries.clear(); }).code(), Code::corrupt);
    EXPECT_EQ(with([](Tree& tree) { tree.entries.erase(tree.entries.begin()); }).code(), Code::corrupt);
    EXPECT_EQ(with([](Tree& tree) { tree.entries[0].kind = TreeEntryKind::file; }).code(), Code::corrupt);
}

TEST(TreeIndex, holes_lie_in_their_file_one_behind_the_other) {
    for (const std::vector<TreeHole>& bad : std::vector<std::vector<TreeHole>>{
             {{0, 0}}, {{0, 1'000'001}}, {{1'000'000, 1}}, {{UINT64_MAX, 2}}, {{10, UINT64_MAX}}, {{0, 10}, {9, 10}}, {{50, 10}, {0, 10}}})
        EXPECT_EQ(with([&](Tree& tree) { tree.entries[core].holes = bad; }).code(), Code::corrupt) << bad[0].offset;
    EXPECT_TRUE(with([](Tree& tree) { tree.entries[core].holes = {{0, 10}, {10, 999'990}}; }).ok());
}

TEST(TreeIndex, what_an_entry_has_fits_its_kind) {
    const std::vector<std::function<void(Tree&)>> changes = {
        [](Tree& tree) { tree.entries[directory].bytes = 1; },
        [](Tree& tree) { tree.entries[socket].region = "x"; },
        [](Tree& tree) { tree.entries[core].region = "../x"; },
        [](Tree& tree) { tree.entries[core].bytes = bytes_max + 1; },
        [](Tree& tree) { tree.entries[core].target = "x"; },
        [](Tree& tree) { tree.entries[up].target = ""; },
        [](Tree& tree) { tree.entries[up].target = std::string("x\0y", 3); },
        [](Tree& tree) { tree.entries[socket].minor = 1; },
        [](Tree& tree) { tree.entries[device].mode = 010000; },
        [](Tree& tree) { tree.entries[device].modified.nanoseconds = 1'000'000'000; },
        [](Tree& tree) { tree.entries[core].link = 1; },
        [](Tree& tree) { tree.entries[same].link = same; },
        [](Tree& tree) { tree.entries[same].link = up; },
        [](Tree& tree) { tree.entries[same].link = directory; },
        [](Tree& tree) { tree.entries[1].attributes[0].name = ""; },
        [](Tree& tree) { tree.entries[1].attributes[1].name = "user.a"; },
        [](Tree& tree) { tree.entries[1].attributes[0].value = std::string(attribute_value_bytes_max + 1, 'x'); },
    };
    for (std::size_t i = 0; i < changes.size(); ++i) EXPECT_EQ(with(changes[i]).code(), Code::corrupt) << i;
    EXPECT_EQ(with([](Tree& tree) { tree.entries[socket].kind = static_cast<TreeEntryKind>(8); }).code(), Code::unsupported);
}

TEST(TreeIndex, a_file_s_region_is_named_by_its_path_where_that_can_be) {
    const std::vector<Tree> trees = samples::trees();
    EXPECT_EQ(tree_region_name(trees[0], trees[0].entries[core]), "ckpt.7/core");
    EXPECT_EQ(tree_region_name(trees[0], trees[0].entries[1]), "ckpt.7/.cairn-file-1");
}

}  // namespace
}  // namespace cairn
