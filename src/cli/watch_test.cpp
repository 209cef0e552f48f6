// `cairn watch`: which names match, and the real command with real daemons beside writers that are slow, late and
// unruly.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "base/trace_testing.hpp"
#include "cli/program_testing.hpp"
#include "cli/watch_files.hpp"

namespace cairn::cli {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;
using namespace std::chrono_literals;

std::optional<Version> match(const std::string& pattern, const std::string& name) {
    const auto parsed = FilePattern::parse(pattern);
    return parsed.ok() ? parsed->match(name) : std::optional<Version>();
}

TEST(WatchPattern, finds_the_version_in_a_name) {
    EXPECT_EQ(match("melt.restart.{version}.*", "melt.restart.250.base"), 250u);
    EXPECT_EQ(match("melt.restart.{version}.*", "melt.restart.000250.7"), 250u);
    EXPECT_EQ(match("*{version}.dat", "a12.dat"), 12u) << "the longest number";
    EXPECT_EQ(match("*.{version}.*", "melt.1.250.0"), 250u);
    EXPECT_EQ(match("*.{version}.*", "x.1.2.0"), 1u) << "the leftmost of equally long ones";
    EXPECT_EQ(match("run2{version}", "run2100"), 100u);
    EXPECT_EQ(match("x{version}", "x18446744073709551615"), 18446744073709551615u);
    EXPECT_EQ(match("x{version}", "x99999999999999999999999"), std::nullopt);
    EXPECT_EQ(match("melt.restart.{version}.*", "melt.restart..0"), std::nullopt);
    EXPECT_EQ(match("melt.restart.{version}.*", "melt.restart.250"), std::nullopt);
    EXPECT_EQ(match("melt.restart.{version}.[0-9]", "melt.restart.250.base"), std::nullopt);
    EXPECT_EQ(FilePattern::parse("sub/x{version}")->folder(), "sub");
    for (const char* bad : {"", "x", "{version}{version}", "{version}/x", "*/x{version}"})
        EXPECT_EQ(FilePattern::parse(bad).code(), Code::invalid_argument) << bad;
}

// Virtual nodes with a folder each, watchers in the background, all ended in the end.
struct Watch : testing::Test {
    ProgramFolder folder;
    std::vector<pid_t> started;

    Watch() { folder.environment = "CAIRN_DAEMON_IDLE_S=5 CAIRN_FLUSH_BLOCK_BYTES=65536"; }
    void TearDown() override {
        for (const pid_t pid : started) end(pid, SIGKILL);
        folder.run("stop --wait 0");
    }

    std::string files(int node) { return folder.path("n" + std::to_string(node)); }
    std::string log(int node) { return folder.read("watch-" + std::to_string(node)); }

    // The process is the watcher itself (exec), so that signals reach it.
    pid_t watch(int node, const std::string& more) {
        std::filesystem::create_directories(files(node));
        std::filesystem::remove(folder.path("watch-" + std::to_string(node)));  // what an earlier watcher said
        const std::string command = "cd '" + folder.path(".") + "' && exec env CAIRN_NODE=n" + std::to_string(node) +
                                    " CAIRN_PATHS_SCRATCH='" + folder.path("scratch") + "' " + folder.environment +
                                    " '" CAIRN_PROGRAM "' watch --json --name m --pattern 'm.{version}.*' -d '" +
                                    files(node) + "' " + more + " >watch-" + std::to_string(node) + " 2>&1";
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
            ::_exit(127);
        }
        started.push_back(pid);
        return pid;
    }
    std::vector<pid_t> two_watchers(const std::string& more) {
        std::vector<pid_t> pids;
        for (int node : {0, 1})
            pids.push_back(watch(node, "--index " + std::to_string(node) + " --watchers 2 --job j " + more));
        return pids;
    }
    // The exit code; -1 after a signal.
    int end(pid_t pid, int signal) {
        if (signal != 0) ::kill(pid, signal);
        std::erase(started, pid);
        int status = -1;
        ::waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    // Lines of one kind that a watcher said.
    std::vector<Json> said(int node, const std::string& event) {
        std::vector<Json> found;
        std::istringstream lines(log(node));
        for (std::string line; std::getline(lines, line);) {
            const Json json = Json::parse(line, nullptr, false);
            if (json.is_object() && json.value("event", "") == event) found.push_back(json);
        }
        return found;
    }
    // The deadline only keeps a hanging test from hanging the suite.
    bool until(const std::function<bool()>& reached) {
        for (int i = 0; i < 2000; ++i, std::this_thread::sleep_for(50ms))
            if (reached()) return true;
        return false;
    }
    bool until_said(int node, const std::string& event, std::size_t times = 1) {
        const bool reached = until([&] { return said(node, event).size() >= times; });
        if (!reached) ADD_FAILURE() << "watcher " << node << " never said " << event << ":\n" << log(node);
        return reached;
    }

    // Also what a version that is lost says.
    bool until_noted(int node, const std::string& text) {
        const bool reached = until([&] {
            for (const char* event : {"note", "lost"})
                for (const Json& line : said(node, event))
                    if (line["text"].get<std::string>().find(text) != std::string::npos) return true;
            return false;
        });
        if (!reached) ADD_FAILURE() << "watcher " << node << " never said '" << text << "':\n" << log(node);
        return reached;
    }

    static std::string content(int version, int rank, std::size_t bytes = 200'000) {
        std::string text;
        while (text.size() < bytes) text += std::to_string(version) + " of " + std::to_string(rank) + "\n";
        return text;
    }
    // In pieces, through one descriptor.
    void write_slowly(int node, int version, int rank) {
        std::ofstream out(files(node) + "/m." + std::to_string(version) + "." + std::to_string(rank), std::ios::binary);
        const std::string all = content(version, rank);
        for (std::size_t at = 0; at < all.size(); at += 50'000, std::this_thread::sleep_for(100ms))
            out << all.substr(at, 50'000) << std::flush;
    }
    void put(int node, const std::string& name, const std::string& text) {
        folder.write("n" + std::to_string(node) + "/" + name, text);
    }
};

TEST_F(Watch, two_nodes_commit_what_slow_writers_wrote_and_it_survives_kill_9) {
    const auto pids = two_watchers("--files 2 -k 1");
    ASSERT_TRUE(until_said(0, "watching") && until_said(1, "watching"));
    for (const int version : {250, 500}) {
        std::vector<std::thread> writers;
        for (int rank = 0; rank < 4; ++rank)
            writers.emplace_back([this, rank, version] { write_slowly(rank / 2, version, rank); });
        for (std::thread& each : writers) each.join();
        ASSERT_TRUE(until_said(0, "committed", version / 250) && until_said(1, "committed", version / 250));
    }
    for (const pid_t pid : pids) end(pid, SIGKILL);
    const Json committed = said(1, "committed").back();
    EXPECT_EQ(committed["version"], 500);
    EXPECT_EQ(committed["images"], 2);
    EXPECT_EQ(committed["parts"], 1);
    EXPECT_EQ(committed["files"], 2);
    EXPECT_EQ(said(0, "captured")[0]["bytes"], content(250, 0).size() + content(250, 1).size());

    ASSERT_EQ(folder.run("extract m newest --rank 1 --files one").exit, 0);
    EXPECT_EQ(folder.read("one/m.500.2"), content(500, 2));
    EXPECT_EQ(folder.read("one/m.500.3"), content(500, 3));
    EXPECT_FALSE(std::filesystem::exists(folder.path("one/m.500.0")));
    ASSERT_EQ(folder.run("extract m 250 --files all").exit, 0);
    for (int rank = 0; rank < 4; ++rank)
        EXPECT_EQ(folder.read("all/m.250." + std::to_string(rank)), content(250, rank));
}

TEST_F(Watch, a_restarted_watcher_goes_on_after_what_is_committed) {
    pid_t pid = watch(0, "--files 1");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.1.x", content(1, 0));
    ASSERT_TRUE(until_said(0, "committed"));
    EXPECT_EQ(end(pid, SIGTERM), 0) << log(0);

    put(0, "m.2.x", content(2, 0));
    pid = watch(0, "--files 1");
    ASSERT_TRUE(until_said(0, "captured"));  // "committed" may be said of version 1 once more, before
    EXPECT_EQ(said(0, "watching")[0]["from"], 1);
    EXPECT_EQ(said(0, "captured").size(), 1u) << log(0);
    EXPECT_EQ(said(0, "captured")[0]["version"], 2);
    put(0, "m.1.x", content(9, 9));
    ASSERT_TRUE(until_noted(0, "--from"));
    EXPECT_EQ(end(pid, SIGTERM), 0) << log(0);
    EXPECT_TRUE(folder.run("extract m newest --rank 0 --region m.2.x -o -").out == content(2, 0));

    // Going back: what lies there is left alone, what is written again is taken.
    pid = watch(0, "--files 1 --from 1 --until-commit-of 2");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.2.x", content(22, 0));
    EXPECT_EQ(end(pid, 0), 0) << log(0);
    EXPECT_TRUE(folder.run("extract m newest --rank 0 --region m.2.x -o -").out == content(22, 0));
}

TEST_F(Watch, settles_when_nobody_writes_any_more) {
    const pid_t pid = watch(0, "--settle-ms 300");
    ASSERT_TRUE(until_said(0, "watching"));
    std::thread slow([this] { write_slowly(0, 7, 0); });
    put(0, "m.7.quick", "here at once");
    slow.join();
    put(0, ".tmp", content(7, 5));
    std::filesystem::rename(files(0) + "/.tmp", files(0) + "/m.7.moved");
    ASSERT_TRUE(until_said(0, "committed"));
    EXPECT_EQ(said(0, "captured")[0]["files"], 3) << log(0);
    EXPECT_EQ(end(pid, SIGTERM), 0) << log(0);
    EXPECT_TRUE(folder.run("extract m 7 --rank 0 --region m.7.0 -o -").out == content(7, 0));
    EXPECT_TRUE(folder.run("extract m 7 --rank 0 --region m.7.moved -o -").out == content(7, 5));
}

TEST_F(Watch, a_file_that_somebody_still_writes_is_not_taken) {
    put(0, "m.3.x", "the first half, ");
    const int fd = ::open((files(0) + "/m.3.x").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    const pid_t pid = watch(0, "--files 1");
    ASSERT_TRUE(until_said(0, "watching"));
    std::this_thread::sleep_for(1500ms);
    EXPECT_TRUE(said(0, "captured").empty()) << "it was there at the start, quiet, but open for writing";
    ASSERT_EQ(::write(fd, "the second", 10), 10);
    ::close(fd);
    ASSERT_TRUE(until_said(0, "committed"));
    EXPECT_EQ(end(pid, SIGINT), 0) << log(0);
    EXPECT_EQ(folder.run("extract m 3 --rank 0 --region m.3.x -o -").out, "the first half, the second");
}

TEST_F(Watch, a_file_that_comes_late_is_told) {
    const pid_t pid = watch(0, "--files 1");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.1.a", "a");
    ASSERT_TRUE(until_said(0, "captured"));
    put(0, "m.1.b", "b");
    ASSERT_TRUE(until_noted(0, "m.1.b was written after"));
    EXPECT_EQ(end(pid, SIGTERM), static_cast<int>(Code::cancelled)) << log(0);
}

TEST_F(Watch, a_file_that_is_written_again_is_told) {
    const pid_t pid = watch(0, "--files 1");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.1.a", "header");
    ASSERT_TRUE(until_said(0, "committed"));
    put(0, "m.1.a", "header and more");
    ASSERT_TRUE(until_noted(0,
                            "m.1.a was written again after the version was captured; it is committed with what the "
                            "file held before, and a restart would take it: if it is not whole, `cairn rm --force "));
    ASSERT_TRUE(until_noted(0, "takes it away. The program closes its files before they are whole"));
    EXPECT_EQ(end(pid, SIGTERM), static_cast<int>(Code::cancelled)) << log(0);
}

TEST_F(Watch, fewer_files_than_before_are_told) {
    const pid_t pid = watch(0, "--settle-ms 1000");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.1.a", "a");
    put(0, "m.1.b", "b");
    ASSERT_TRUE(until_said(0, "committed"));
    put(0, "m.2.a", "alone");
    ASSERT_TRUE(until_noted(0, "1 file, the version before had 2"));
    EXPECT_EQ(end(pid, SIGTERM), 0) << log(0);
}

TEST_F(Watch, an_incomplete_version_does_not_hold_up_newer_ones) {
    const pid_t pid = watch(0, "--files 2");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.0.a", "versions count from 1");
    put(0, "m.18446744073709551615.a", "and end before this");
    put(0, "m.18446744073709551615.b", "so it is none");
    put(0, "m.1.a", "alone");
    put(0, "m.2.a", "a");
    put(0, "m.2.b", "b");
    ASSERT_TRUE(until_said(0, "committed"));
    EXPECT_EQ(said(0, "committed")[0]["version"], 2);
    EXPECT_EQ(said(0, "lost")[0]["version"], 1);
    EXPECT_TRUE(until_noted(0, "files of number 0, such as m.0.a, are left out: versions count from 1"));
    EXPECT_TRUE(until_noted(0, "files of number 18446744073709551615, such as m.18446744073709551615.a, are left out"));
    EXPECT_EQ(end(pid, SIGTERM), static_cast<int>(Code::cancelled));
}

TEST_F(Watch, a_file_that_is_held_open_or_is_no_file_does_not_hold_up_newer_versions) {
    const pid_t pid = watch(0, "--settle-ms 100");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.1.x", "held");
    const int held = ::open((files(0) + "/m.1.x").c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(held, 0);
    ASSERT_TRUE(until_noted(0, "not captured yet: 1 file (m.1.x), m.1.x is open for writing"));
    std::filesystem::create_symlink("m.2.x", files(0) + "/m.2.x");
    std::filesystem::create_symlink("nowhere", files(0) + "/m.2.y");
    put(0, "m.3.x", "three");
    ASSERT_TRUE(until_said(0, "committed"));
    EXPECT_EQ(said(0, "committed")[0]["version"], 3);
    EXPECT_EQ(said(0, "lost").size(), 1u) << log(0);
    EXPECT_EQ(said(0, "lost")[0]["version"], 1);
    EXPECT_THAT(said(0, "lost")[0]["text"].get<std::string>(), HasSubstr("m.1.x is open for writing"));
    EXPECT_TRUE(until_noted(0, "m.2.x is a link that leads nowhere") && until_noted(0, "m.2.y is a link that leads"));
    EXPECT_EQ(end(pid, SIGTERM), static_cast<int>(Code::cancelled)) << log(0);
    ::close(held);
}

// A version of which there is only such a link is none, also one that waited behind others for as long as they do.
TEST_F(Watch, a_link_that_leads_nowhere_is_no_version) {
    const pid_t pid = watch(0, "--settle-ms 100");
    ASSERT_TRUE(until_said(0, "watching"));
    std::filesystem::create_symlink("nowhere", files(0) + "/m.5.x");
    put(0, "m.1.x", "held");
    const int held = ::open((files(0) + "/m.1.x").c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(held, 0);
    put(0, "m.2.x", "two");
    put(0, "m.10.x", "ten");
    ASSERT_TRUE(until_said(0, "committed", 2));
    EXPECT_TRUE(until_noted(0, "m.5.x is a link that leads nowhere"));
    ASSERT_EQ(said(0, "lost").size(), 1u) << log(0);
    EXPECT_EQ(said(0, "lost")[0]["version"], 1);
    EXPECT_EQ(log(0).find("--files says"), std::string::npos) << log(0);
    EXPECT_EQ(end(pid, SIGTERM), static_cast<int>(Code::cancelled)) << log(0);
    ::close(held);
}

TEST_F(Watch, a_file_whose_name_no_region_can_have_is_named) {
    const pid_t pid = watch(0, "--settle-ms 100");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.1.a\nb", "one");
    EXPECT_TRUE(until_noted(0, "not captured: file m.1.a?b: a region's name has a control character"));
    put(0, "m.2.\xff", "two");
    EXPECT_TRUE(until_noted(0, "not captured: file m.2."));
    EXPECT_EQ(end(pid, SIGTERM), static_cast<int>(Code::cancelled)) << log(0);
}

TEST_F(Watch, a_file_that_is_written_for_ever_holds_up_for_so_long_only) {
    folder.environment += " CAIRN_DEADLINES_VERSION_MS=7000";
    const pid_t pid = watch(0, "--settle-ms 100");
    ASSERT_TRUE(until_said(0, "watching"));
    std::atomic<bool> stop = false;
    std::thread logger([&] {
        std::ofstream out(files(0) + "/m.1.log");
        for (; !stop; std::this_thread::sleep_for(20ms)) out << "another line" << std::endl;
    });
    put(0, "m.2.x", "two");
    EXPECT_TRUE(until_noted(0, "an older version is still being written: 1 file (m.1.log)"));
    EXPECT_TRUE(until_said(0, "committed"));
    EXPECT_EQ(said(0, "committed")[0]["version"], 2) << log(0);
    stop = true;
    logger.join();
    EXPECT_EQ(end(pid, SIGTERM), static_cast<int>(Code::cancelled)) << log(0);
}

TEST_F(Watch, a_node_without_files_captures_empty_images) {
    const pid_t with = watch(0, "--index 0 --watchers 2 --job j --files 1 --until-commit-of 2");
    const pid_t without = watch(1, "--index 1 --watchers 2 --job j --files 0 --until-commit-of 2");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.1.x", "one");
    ASSERT_TRUE(until_said(0, "committed") && until_said(1, "committed"));
    put(0, "m.2.x", "two");
    EXPECT_EQ(end(with, 0), 0) << log(0);
    EXPECT_EQ(end(without, 0), 0) << log(1);
    EXPECT_EQ(said(1, "captured").size(), 2u);
    EXPECT_EQ(said(1, "captured")[0]["files"], 0);
    EXPECT_EQ(folder.run("verify m 2").exit, 0);
}

TEST_F(Watch, a_partner_that_never_completes_a_version_is_named) {
    folder.environment += " CAIRN_DAEMON_STOP_WAIT_MS=1000";
    const auto pids = two_watchers("--files 1");
    ASSERT_TRUE(until_said(0, "watching") && until_said(1, "watching"));
    put(0, "m.1.x", "one half");
    ASSERT_TRUE(until_noted(0, "not by all watchers: version 1 is not yet sealed by all ranks: node 1 (n1, rank 1) has"));
    for (const pid_t pid : pids) ::kill(pid, SIGTERM);
    EXPECT_EQ(end(pids[0], 0), static_cast<int>(Code::deadline)) << log(0);
    EXPECT_THAT(log(0), HasSubstr("node 1 (n1, rank 1) has not sealed it; what was captured is in scratch"));
    EXPECT_EQ(end(pids[1], 0), 0) << log(1);
}

TEST_F(Watch, a_partner_is_named_when_the_daemon_answers_again) {
    folder.environment += " CAIRN_DAEMON_STOP_WAIT_MS=1000";
    const auto pids = two_watchers("--files 1");
    ASSERT_TRUE(until_said(0, "watching") && until_said(1, "watching"));
    put(0, "m.1.x", "one half");
    ASSERT_TRUE(until_said(0, "captured"));
    pid_t daemon = 0;
    const Json status = Json::parse(folder.run("status --json").out);
    for (const Json& node : status["nodes"])
        if (node["node"] == "n0") daemon = node["pid"].get<pid_t>();
    ASSERT_GT(daemon, 0) << status;
    ASSERT_EQ(::kill(daemon, SIGSTOP), 0);
    const bool is_unsure = until_noted(0, "as far as can be told");
    ::kill(daemon, SIGCONT);
    ASSERT_TRUE(is_unsure && until_noted(0, "not by all watchers: version 1 is not yet sealed by all ranks: node 1 (n1, rank 1) has"));
    for (const pid_t pid : pids) ::kill(pid, SIGTERM);
    for (const int node : {0, 1}) end(pids[static_cast<std::size_t>(node)], 0);
}

// Nobody waits for a watcher that can not say that it goes, or has something else to wait for; who goes last leaves the meeting place clean.
TEST_F(Watch, one_that_ends_needs_no_partner) {
    folder.environment += " CAIRN_DAEMON_STOP_WAIT_MS=1000 CAIRN_DEADLINES_OPEN_MS=600000";  // longer than the test has
    for (const bool is_killed : {false, true}) {
        const auto pids = two_watchers("--files 1");
        ASSERT_TRUE(until_said(0, "watching") && until_said(1, "watching"));
        put(0, is_killed ? "m.3.x" : "m.1.x", "one");
        put(1, is_killed ? "m.3.y" : "m.1.y", "two");
        ASSERT_TRUE(until_said(0, "committed") && until_said(1, "committed"));
        if (is_killed) end(pids[0], SIGKILL);
        if (!is_killed) {
            put(0, "m.2.x", "one half");
            ASSERT_TRUE(until_said(0, "captured", 2));
        }
        EXPECT_EQ(end(pids[1], SIGTERM), 0) << log(1);
        if (is_killed) break;
        EXPECT_EQ(end(pids[0], SIGTERM), static_cast<int>(Code::deadline)) << log(0);
        for (const int node : {0, 1}) EXPECT_EQ(log(node).find("rank 0 would name it"), std::string::npos) << log(node);
        EXPECT_TRUE(std::filesystem::is_empty(folder.path("checkpoints/.cairn/rendezvous")));
    }
}

TEST_F(Watch, originals_go_only_when_newer_ones_are_committed) {
    const pid_t pid = watch(0, "--files 1 --delete-older 1");
    ASSERT_TRUE(until_said(0, "watching"));
    put(0, "m.1.x", "one");
    ASSERT_TRUE(until_said(0, "committed", 1));
    EXPECT_TRUE(std::filesystem::exists(files(0) + "/m.1.x"));
    put(0, "m.2.x", "two");
    ASSERT_TRUE(until_said(0, "removed"));
    EXPECT_FALSE(std::filesystem::exists(files(0) + "/m.1.x"));
    EXPECT_TRUE(std::filesystem::exists(files(0) + "/m.2.x"));
    EXPECT_EQ(end(pid, SIGTERM), 0);
}

TEST_F(Watch, once_takes_what_is_there) {
    folder.environment += " CAIRN_TRACE_FILE='" + folder.path("trace.json") + "'";
    put(0, "m.1.x", "one");
    put(0, "m.2.x", "two");
    const pid_t pid = watch(0, "--files 1 --once");
    EXPECT_EQ(end(pid, 0), 0) << log(0);
    EXPECT_EQ(said(0, "committed").size(), 2u) << log(0);
    EXPECT_EQ(folder.run("extract m 1 --rank 0 --region m.1.x -o -").out, "one");
    EXPECT_EQ(folder.run("stop").exit, 0);
    int traces = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path("."))) {
        if (!entry.path().filename().string().starts_with("trace-cairnd-")) continue;
        ++traces;
        const Json events = Json::parse(folder.read(entry.path().filename().string()), nullptr, false);
        EXPECT_EQ(trace_testing::broken_trace_rule(events), "");
        EXPECT_GT(events.size(), 5u);
    }
    EXPECT_EQ(traces, 1) << "the daemon's";
    const pid_t idle = watch(0, "--files 1 --idle-exit 1s");
    EXPECT_EQ(end(idle, 0), 0) << log(0);
}

TEST_F(Watch, a_folder_that_goes_away_ends_it) {
    const pid_t pid = watch(0, "--files 1");
    ASSERT_TRUE(until_said(0, "watching"));
    std::filesystem::remove_all(files(0));
    EXPECT_EQ(end(pid, 0), static_cast<int>(Code::not_found));
    EXPECT_THAT(log(0), HasSubstr(files(0) + " was removed"));
}

TEST_F(Watch, what_can_not_be_is_said) {
    const auto refused = [&](const std::string& arguments, Code code, const std::string& text) {
        const Ran ran = folder.run("watch --name m " + arguments);
        EXPECT_EQ(ran.exit, static_cast<int>(code)) << arguments;
        EXPECT_THAT(ran.err, HasSubstr(text)) << arguments;
    };
    refused("--pattern x", Code::invalid_argument, "no {version}");
    refused("--pattern '{version}' -d nowhere", Code::not_found, "nowhere");
    refused("--pattern '{version}' --watchers 2", Code::invalid_argument, "needs --index");
    refused("--pattern '{version}' --watchers 2 --index 2 --job j", Code::invalid_argument, "0 to 1");
    refused("--pattern '{version}' --watchers 2 --index 0", Code::invalid_argument, "--job");
    refused("--pattern '{version}' --settle-ms 0", Code::invalid_argument, "needs --files");
    refused("--pattern '{version}' --from yesterday", Code::invalid_argument, "--from 'yesterday'");
    refused("--pattern '{version}' --from 18446744073709551615", Code::invalid_argument, "--from '1844");
    refused("--pattern '{version}' --set a.b=1", Code::invalid_argument, "no such key");
    refused("--pattern '{version}' --set flush.files=1 --set flush.writers=1 --set flush.files=2", Code::invalid_argument,
            "--set flush.files is given twice");
    refused("--pattern '{version}' --set flush.files=1 -k 1", Code::invalid_argument, "--files-max says it already");
    refused("--pattern '{version}' --set flush.files=x", Code::invalid_argument, "--set flush.files=x: ");
    refused("--pattern '{version}' -k 2", Code::invalid_argument, "allowed are 1 to 1");
    refused("--pattern '{version}' --delete-older 0", Code::invalid_argument, "1 or more");
    refused("--pattern '{version}' --idle-exit soon", Code::invalid_argument, "--idle-exit 'soon'");
    refused("--pattern '{version}' --from 7", Code::not_found, "version 7");
}

}  // namespace
}  // namespace cairn::cli
