// Directory trees on a real file system: what is told of one, that every change in it shows, and when a watched one is complete.
#include "cli/tree_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "cli/watch_files.hpp"

namespace cairn::cli {
namespace {

using namespace std::chrono_literals;

struct Folder {
    std::string path;
    Folder() {
        char name[] = "/tmp/cairn-trees-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { EXPECT_TRUE(remove_tree(path).ok()); }
    std::string operator/(const std::string& name) const { return path + "/" + name; }
};

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// A tree with a file, a link to it, another name of it, a directory and a FIFO.
void make(const std::string& top) {
    std::filesystem::create_directories(top + "/d/empty");
    write(top + "/d/file", "text");
    ASSERT_EQ(::link((top + "/d/file").c_str(), (top + "/other").c_str()), 0);
    ASSERT_EQ(::symlink("d/file", (top + "/link").c_str()), 0);
    ASSERT_EQ(::mkfifo((top + "/pipe").c_str(), 0600), 0);
}

TEST(TreeFiles, tells_what_is_in_it_by_path) {
    const Folder folder;
    make(folder / "t.1");
    const auto read = read_tree(folder / "t.1", "t.1");
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_TRUE(check_trees({read->tree}).ok()) << check_trees({read->tree}).to_string();
    std::vector<std::pair<std::string, TreeEntryKind>> told;
    for (const TreeEntry& entry : read->tree.entries) told.emplace_back(entry.path, entry.kind);
    const std::vector<std::pair<std::string, TreeEntryKind>> made = {{"", TreeEntryKind::directory}, {"d", TreeEntryKind::directory}, {"d/empty", TreeEntryKind::directory}, {"d/file", TreeEntryKind::file},
                                                                     {"link", TreeEntryKind::symbolic_link}, {"other", TreeEntryKind::hard_link}, {"pipe", TreeEntryKind::fifo}};
    EXPECT_EQ(told, made);
    EXPECT_EQ(read->tree.entries[5].link, 3u);
    EXPECT_EQ(read->tree.entries[4].target, "d/file");
    EXPECT_EQ(read->mark.bytes, 8u) << "each name of the file counts";
    EXPECT_EQ(*FileMark::of(folder / "t.1"), read->mark);
}

TEST(TreeFiles, a_region_s_name_is_a_number_where_the_path_can_not_be_one) {
    const Folder folder;
    std::filesystem::create_directory(folder / "t.1");
    for (const char* name : {"a\xFF", "\xFF", ".cairn-file-3", "good"}) write(folder / (std::string("t.1/") + name), "x");
    const auto read = read_tree(folder / "t.1", "t.1");
    ASSERT_TRUE(read.ok());
    std::map<std::string, std::string> regions;
    for (const TreeEntry& entry : read->tree.entries)
        if (entry.kind == TreeEntryKind::file) regions[entry.path] = tree_region_name(read->tree, entry);
    EXPECT_EQ(regions, (std::map<std::string, std::string>{{".cairn-file-3", "t.1/.cairn-file-3"}, {"a\xFF", "t.1/.cairn-file-2"}, {"good", "t.1/good"}, {"\xFF", "t.1/.cairn-file-4"}}));
}

TEST(TreeFiles, every_change_in_it_shows) {
    const Folder folder;
    make(folder / "t.1");
    const auto mark = [&] { return *FileMark::of(folder / "t.1"); };
    const std::vector<std::pair<const char*, std::function<void()>>> changes = {
        {"a file written", [&] { write(folder / "t.1/d/file", "test"); }},
        {"a file made", [&] { write(folder / "t.1/d/empty/new", ""); }},
        {"a file removed", [&] { std::filesystem::remove(folder / "t.1/d/empty/new"); }},
        {"a mode", [&] { EXPECT_EQ(::chmod((folder / "t.1/pipe").c_str(), 0644), 0); }},
        {"a name", [&] { std::filesystem::rename(folder / "t.1/link", folder / "t.1/lint"); }},
        {"another name", [&] { EXPECT_EQ(::link((folder / "t.1/pipe").c_str(), (folder / "t.1/too").c_str()), 0); }},
        {"a time", [&] { std::filesystem::last_write_time(folder / "t.1/d", std::filesystem::file_time_type::clock::now() - 1h); }},
    };
    for (const auto& [what, change] : changes) {
        const FileMark before = mark();
        EXPECT_EQ(mark(), before);
        std::this_thread::sleep_for(before.tick());
        change();
        EXPECT_FALSE(mark() == before) << what;
    }
}

TEST(TreeFiles, one_in_which_files_come_and_go_is_not_gone) {
    const Folder folder;
    make(folder / "t.1");
    std::atomic<bool> ended = false;
    std::thread writer([&] {
        for (int i = 0; !ended; ++i) {
            const std::string sub = folder / ("t.1/d/" + std::to_string(i % 5));
            std::filesystem::create_directory(sub);
            write(sub + "/x", "x");
            std::filesystem::remove_all(sub);
        }
    });
    int went = 0;
    for (int i = 0; i < 200'000 && went < 20; ++i) {
        const auto mark = FileMark::of(folder / "t.1");
        if (mark.ok()) continue;
        ++went;
        EXPECT_EQ(mark.code(), Code::io_error) << mark.status().to_string();
    }
    ended = true;
    writer.join();
    EXPECT_EQ(went, 20) << "nothing went away while it was looked at: the test does not test";
    std::filesystem::remove_all(folder / "t.1");
    EXPECT_EQ(FileMark::of(folder / "t.1").code(), Code::not_found);
}

TEST(TreeFiles, who_writes_in_it_is_named) {
    const Folder folder;
    make(folder / "t.1");
    std::string which;
    const Writers before = writers_of(folder / "t.1", &which);
    const files::Descriptor held(::open((folder / "t.1/d/file").c_str(), O_WRONLY | O_CLOEXEC));
    const Writers now = writers_of(folder / "t.1", &which);
    if (before == Writers::unknown) return;  // a file system without leases
    EXPECT_EQ(before, Writers::none);
    EXPECT_EQ(now, Writers::some);
    EXPECT_EQ(which, "d/file");
}

TEST(TreeFiles, is_removed_and_what_its_links_lead_to_is_not) {
    const Folder folder;
    make(folder / "t.1");
    write(folder / "outside", "x");
    std::filesystem::create_directory(folder / "kept");
    write(folder / "kept/x", "x");
    for (const char* name : {"outside", "kept"}) std::filesystem::create_symlink(std::filesystem::path("..") / name, folder / (std::string("t.1/to ") + name));
    EXPECT_EQ(::chmod((folder / "t.1/d").c_str(), 0), 0);
    EXPECT_TRUE(remove_tree(folder / "t.1").ok());
    EXPECT_FALSE(std::filesystem::exists(folder / "t.1"));
    EXPECT_TRUE(std::filesystem::exists(folder / "outside") && std::filesystem::exists(folder / "kept/x"));
}

// A watched folder, and whether its only version is complete once it had the time for that.
struct Watched {
    Folder folder;
    WatchedFiles watched;
    explicit Watched(const std::string& last_file) : watched(open(folder.path, last_file)) {}
    static WatchedFiles open(const std::string& path, const std::string& last_file) {
        Completeness completeness;
        completeness.files = 1;
        completeness.last_file = last_file;
        completeness.found_ms = 50;
        return std::move(WatchedFiles::open(path, *FilePattern::parse("t.{version}"), completeness)).value();
    }
    bool complete_within(int looks) {
        for (int i = 0; i < looks; ++i, std::this_thread::sleep_for(5ms)) {
            EXPECT_TRUE(watched.read_events().ok());
            if (!watched.sets().empty() && watched.complete(watched.sets().begin()->second)) return true;
        }
        return false;
    }
    bool complete() { return complete_within(4000); }
    bool stays_incomplete() { return !complete_within(80); }
    std::string obstacle() { return watched.sets().begin()->second.obstacle; }
};

TEST(WatchedTrees, one_that_is_moved_there_is_complete) {
    Watched watched("");
    make(watched.folder / "x");
    EXPECT_TRUE(watched.stays_incomplete()) << "it has not its name";
    std::filesystem::rename(watched.folder / "x", watched.folder / "t.1");
    EXPECT_TRUE(watched.complete());
}

TEST(WatchedTrees, one_that_is_made_there_is_complete_at_the_end) {
    Watched watched("");
    make(watched.folder / "t.1");
    EXPECT_TRUE(watched.stays_incomplete());
    EXPECT_NE(watched.obstacle().find("--last-file"), std::string::npos) << watched.obstacle();
    watched.watched.tell_end();
    EXPECT_TRUE(watched.complete());
}

TEST(WatchedTrees, or_when_its_last_file_is_closed) {
    Watched watched("last");
    make(watched.folder / "t.1");
    for (const char* directory : {"t.1/d/last", "t.1/last"}) std::filesystem::create_directory(watched.folder / directory);
    EXPECT_TRUE(watched.stays_incomplete()) << "a directory is no file";
    std::filesystem::remove(watched.folder / "t.1/last");
    {
        std::ofstream last(watched.folder / "t.1/last");
        last << "text" << std::flush;
        EXPECT_TRUE(watched.stays_incomplete());
    }
    EXPECT_TRUE(watched.complete());
}

TEST(WatchedTrees, one_that_lacks_its_last_file_is_not_even_complete_when_it_is_moved_there) {
    Watched watched("last");
    make(watched.folder / "x");
    std::filesystem::rename(watched.folder / "x", watched.folder / "t.1");
    EXPECT_TRUE(watched.stays_incomplete());
    EXPECT_EQ(watched.obstacle(), "t.1 has no last yet");
    watched.watched.tell_end();
    EXPECT_TRUE(watched.stays_incomplete());
    write(watched.folder / "t.1/last", "");
    EXPECT_TRUE(watched.complete());
}

TEST(WatchedTrees, one_that_is_moved_away_is_gone_and_the_next_of_its_place_is_another) {
    Watched watched("last");
    make(watched.folder / "t.1");
    EXPECT_TRUE(watched.stays_incomplete());
    std::filesystem::rename(watched.folder / "t.1", watched.folder / "t.2");
    write(watched.folder / "t.2/last", "");
    EXPECT_TRUE(watched.complete());
    EXPECT_EQ(watched.watched.sets().size(), 1u);
    EXPECT_EQ(watched.watched.sets().begin()->first, 2u);
}

TEST(WatchedTrees, a_link_to_one_is_none) {
    Watched watched("");
    make(watched.folder / "x");
    std::filesystem::create_symlink("x", watched.folder / "t.1");
    EXPECT_TRUE(watched.stays_incomplete());
    EXPECT_TRUE(watched.watched.sets().empty());
}

}  // namespace
}  // namespace cairn::cli
