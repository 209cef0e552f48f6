// TreeOutput: whole or not at all, by the letters of its index, and nothing outside.
#include "cli/tree_output.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/tree_files.hpp"

namespace cairn::cli {
namespace {

struct Folder {
    std::string path;
    Folder() {
        char name[] = "/tmp/cairn-trees-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { EXPECT_TRUE(remove_tree(path).ok()); }
    std::string operator/(const std::string& name) const { return path + "/" + name; }
    std::size_t entries() const { return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {})); }
};

std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

TreeEntry entry(const std::string& path, TreeEntryKind kind, std::uint32_t mode, std::int64_t seconds) {
    return {path, kind, mode, ::geteuid(), ::getegid(), {seconds, 7}, {seconds + 1, 8}};
}

// A closed directory with a file of three pieces, the middle one a hole, and a link beside.
Tree sample() {
    Tree tree{"t.1", {entry("", TreeEntryKind::directory, 0500, 100), entry("closed", TreeEntryKind::directory, 0555, 200), entry("closed/file", TreeEntryKind::file, 0440, 300),
                      entry("link", TreeEntryKind::symbolic_link, 0777, 400)}};
    tree.entries[2].bytes = 3 << 16;
    tree.entries[2].holes = {{1 << 16, 1 << 16}};
    tree.entries[3].target = "/etc";
    return tree;
}

std::string piece(char letter) { return std::string(1 << 16, letter); }

Status write(TreeOutput& output, const std::string& middle) {
    const std::string all = piece('a') + middle + piece('c');
    TRY(output.write_at(2, 100'000, as_bytes(all).subspan(100'000)));
    return output.write_at(2, 0, as_bytes(all).first(100'000));
}

TEST(TreeOutput, comes_as_its_index_says) {
    const Folder folder;
    auto output = TreeOutput::create(folder / "new", sample(), false);
    ASSERT_TRUE(output.ok()) << output.status().to_string();
    ASSERT_TRUE(write(**output, piece('\0')).ok());
    EXPECT_FALSE(std::filesystem::exists(folder / "new/t.1")) << "not before it is whole";
    const Status committed = (*output)->commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
    EXPECT_TRUE((*output)->not_restored().empty());
    EXPECT_TRUE(read(folder / "new/t.1/closed/file") == piece('a') + piece('\0') + piece('c'));
    auto back = read_tree(folder / "new/t.1", "t.1");
    ASSERT_TRUE(back.ok());
    for (std::size_t i = 0; i < back->tree.entries.size(); ++i) back->tree.entries[i].accessed = sample().entries[i].accessed;  // we have just read it
    EXPECT_TRUE(back->tree == sample());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "new"), {}), 1);
}

TEST(TreeOutput, loses_no_byte_where_the_index_lies_about_a_hole) {
    const Folder folder;
    auto output = TreeOutput::create(folder.path, sample(), false);
    ASSERT_TRUE(output.ok());
    const std::string middle = std::string(60'000, '\0') + "x" + std::string((1 << 16) - 60'001, '\0');
    ASSERT_TRUE(write(**output, middle).ok() && (*output)->commit().ok());
    EXPECT_TRUE(read(folder / "t.1/closed/file") == piece('a') + middle + piece('c'));
}

TEST(TreeOutput, leaves_nothing_where_it_is_not_committed) {
    const Folder folder;
    {
        auto output = TreeOutput::create(folder.path, sample(), false);
        ASSERT_TRUE(output.ok());
        ASSERT_TRUE(write(**output, piece('\0')).ok());
        EXPECT_EQ(folder.entries(), 1u);
    }
    EXPECT_EQ(folder.entries(), 0u);
}

TEST(TreeOutput, does_not_replace_unless_it_is_told_to) {
    const Folder folder;
    std::filesystem::create_directories(folder / "t.1/mine");
    EXPECT_EQ(TreeOutput::create(folder.path, sample(), false).code(), Code::already_exists);
    std::filesystem::remove_all(folder / "t.1");
    {
        auto late = TreeOutput::create(folder.path, sample(), false);
        ASSERT_TRUE(late.ok());
        std::filesystem::create_directories(folder / "t.1");  // it came meanwhile
        EXPECT_EQ((*late)->commit().code(), Code::already_exists);
    }
    EXPECT_EQ(folder.entries(), 1u);
    auto replacing = TreeOutput::create(folder.path, sample(), true);
    ASSERT_TRUE(replacing.ok());
    const Status committed = (*replacing)->commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
    EXPECT_EQ(folder.entries(), 1u);
    EXPECT_TRUE(std::filesystem::exists(folder / "t.1/closed/file"));
}

TEST(TreeOutput, takes_no_index_that_is_not_valid) {
    const Folder folder;
    Tree tree = sample();
    tree.entries.push_back(entry("link/x", TreeEntryKind::file, 0600, 1));
    EXPECT_EQ(TreeOutput::create(folder.path, tree, true).code(), Code::corrupt);
    EXPECT_EQ(folder.entries(), 0u);
}

// More files than stay open, with bytes that come by turns.
TEST(TreeOutput, has_any_number_of_files) {
    const Folder folder;
    Tree tree{"t.1", {entry("", TreeEntryKind::directory, 0755, 1)}};
    constexpr std::size_t count = 700;
    for (std::size_t i = 0; i < count; ++i) tree.entries.push_back(entry(std::to_string(1000 + i), TreeEntryKind::file, 0644, 1));
    for (std::size_t i = 1; i <= count; ++i) tree.entries[i].bytes = 2;
    auto output = TreeOutput::create(folder.path, tree, false);
    ASSERT_TRUE(output.ok());
    for (const std::uint64_t at : {1, 0})
        for (std::size_t i = 1; i <= count; ++i) ASSERT_TRUE((*output)->write_at(i, at, as_bytes(at == 0 ? "a" : "b")).ok());
    ASSERT_TRUE((*output)->commit().ok());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(read(folder / ("t.1/" + std::to_string(1000 + i))), "ab");
}

}  // namespace
}  // namespace cairn::cli
