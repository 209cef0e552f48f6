#include "base/log.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <thread>
#include <vector>

namespace cairn {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream in(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

struct Log : testing::Test {
    std::string path = testing::TempDir() + "cairn_log_" + std::to_string(::getpid());
    void SetUp() override { ::unlink(path.c_str()); }
    void TearDown() override {
        log_off();
        ::unlink(path.c_str());
    }
};

TEST_F(Log, a_line_holds_its_fields) {
    EXPECT_EQ(log_line(LogLevel::info, "started", {{"node", "n0"}, {"pid", 12}, {"share", 0.25}, {"ok", true}}),
              "info started node=n0 pid=12 share=0.25 ok=true");
    EXPECT_EQ(log_line(LogLevel::error, "open failed", {{"path", "/a b"}, {"empty", ""}, {"text", "say \"x\"\n\x01"}}),
              "error \"open failed\" path=\"/a b\" empty=\"\" text=\"say \\\"x\\\"\\n\\x01\"");
}

// A scheduler retires no node for want of room.
TEST_F(Log, a_failure_says_whether_something_is_full_or_broken) {
    EXPECT_EQ(log_line(LogLevel::warning, "not-committed", {{"why", Status(Code::out_of_space, "full")}, {"n", 1}}),
              "warning not-committed why=\"out of space: full\" cause=capacity n=1");
    EXPECT_EQ(log_line(LogLevel::warning, "lost", {{"why", Status(Code::io_error, "x")}}), "warning lost why=\"I/O error: x\" cause=fault");
    EXPECT_EQ(log_line(LogLevel::info, "given-up", {{"why", Status(Code::cancelled, "x")}}), "info given-up why=\"cancelled: x\"");
    EXPECT_EQ(log_line(LogLevel::info, "well", {{"outcome", Status()}}), "info well outcome=ok");
}

TEST_F(Log, is_silent_until_opened_and_below_its_level) {
    EXPECT_FALSE(log_wants(LogLevel::error));
    ASSERT_TRUE(log_to_file(path, LogLevel::warning).ok());
    log_info("not wanted");
    log_warning("wanted", {{"n", 1}});
    log_off();
    log_error("after the end");
    const auto lines = lines_of(path);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_TRUE(std::regex_match(lines[0], std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning wanted n=1)")))
        << lines[0];
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(Log, threads_do_not_mix_their_lines) {
    ASSERT_TRUE(log_to_file(path, LogLevel::info).ok());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([] {
            for (int i = 0; i < 100; ++i) log_info("event", {{"text", std::string(100, 'x')}});
        });
    for (auto& thread : threads) thread.join();
    const auto lines = lines_of(path);
    ASSERT_EQ(lines.size(), 400u);
    for (const auto& line : lines) EXPECT_TRUE(line.ends_with(" info event text=" + std::string(100, 'x'))) << line;
}

TEST_F(Log, a_log_that_can_not_be_opened_is_named_and_the_old_one_stays) {
    ASSERT_TRUE(log_to_file(path, LogLevel::info).ok());
    const Status status = log_to_file("/nowhere/at/all", LogLevel::info);
    EXPECT_EQ(status.code(), Code::not_found);
    EXPECT_NE(status.text().find("/nowhere/at/all"), std::string::npos);
    log_info("still here");
    EXPECT_EQ(lines_of(path).size(), 1u);
}

}  // namespace
}  // namespace cairn
