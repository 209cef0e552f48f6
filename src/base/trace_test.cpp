#include "base/trace.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/trace_testing.hpp"

namespace cairn {
namespace {

struct Trace : testing::Test {
    std::string path = testing::TempDir() + "cairn.trace.json";
    std::string written = testing::TempDir() + "cairn.trace-test-" + std::to_string(::getpid()) + ".json";
    void TearDown() override {
        static_cast<void>(trace_close());
        ::unlink(written.c_str());
    }
    nlohmann::json read() { return nlohmann::json::parse(std::ifstream(written), nullptr, false); }
};

TEST_F(Trace, spans_and_counters_come_out_as_chrome_events) {
    EXPECT_FALSE(trace_is_open());
    trace_span("writer 0", "before it was open", 0, 1);
    ASSERT_TRUE(trace_open(path, "test").ok());
    trace_span("writer 0", "write", 1'500, 4'000, {{"bytes", 64}, {"part", "part-0001"}, {"last", true}});
    trace_span("writer \"1\"", "write", 5'000, 4'000);
    trace_counter("free buffers", 7'000, 2.5);
    struct { std::int64_t time; std::int64_t now() { return time; } } clock{8'000};
    {
        const TraceSpan span(clock, "writer 0", "scope");
        clock.time += 250;
    }
    ASSERT_TRUE(trace_close().ok());
    trace_span("writer 0", "after it was closed", 0, 1);

    const auto events = read();
    EXPECT_EQ(trace_testing::broken_trace_rule(events), "");
    ASSERT_TRUE(events.is_array());
    ASSERT_EQ(events.size(), 7u) << events.dump(1);  // process, 2 tracks, 3 spans, 1 counter
    EXPECT_EQ(events[0]["args"]["name"], "test");
    EXPECT_EQ(events[1]["args"]["name"], "writer 0");
    const auto& span = events[2];
    EXPECT_EQ(span["ph"], "X");
    EXPECT_EQ(span["name"], "write");
    EXPECT_EQ(span["ts"], 1.5);
    EXPECT_EQ(span["dur"], 2.5);
    EXPECT_EQ(span["args"]["bytes"], 64);
    EXPECT_EQ(span["args"]["part"], "part-0001");
    EXPECT_EQ(span["args"]["last"], true);
    EXPECT_EQ(events[4]["dur"], 0.0) << "a span never ends before it begins";
    EXPECT_NE(events[4]["tid"], span["tid"]);
    EXPECT_EQ(events[5]["args"]["value"], 2.5);
    EXPECT_EQ(events[6]["tid"], span["tid"]);
    EXPECT_EQ(events[6]["dur"], 0.25);
}

TEST_F(Trace, spans_of_one_track_that_overlap_go_to_lines_of_their_own) {
    ASSERT_TRUE(trace_open(path, "test").ok());
    std::uint64_t random = 1;
    for (std::int64_t end = 10'000; end < 10'000'000; end += 1 + static_cast<std::int64_t>(random % 4000)) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const auto length = static_cast<std::int64_t>((random >> 33) % 10'000);
        trace_span("leader", "part", end - length, end);
        if (random % 7 == 0) trace_span("leader", "now", end, end);
    }
    ASSERT_TRUE(trace_close().ok());
    const auto events = read();
    EXPECT_EQ(trace_testing::broken_trace_rule(events), "");
    EXPECT_EQ(events[1]["args"]["name"], "leader");
    EXPECT_NE(events.dump().find("leader (2)"), std::string::npos);
    const auto crossing = nlohmann::json::parse(R"([{"ph":"M","name":"process_name","pid":1,"args":{"name":"p"}},
        {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"t"}},
        {"ph":"X","name":"a","pid":1,"tid":1,"ts":0.0,"dur":2.0},{"ph":"X","name":"b","pid":1,"tid":1,"ts":1.0,"dur":2.0}])");
    EXPECT_NE(trace_testing::broken_trace_rule(crossing).find("overlap"), std::string::npos);
}

TEST_F(Trace, more_than_a_buffer_is_written) {
    ASSERT_TRUE(trace_open(path, "test").ok());
    for (int i = 0; i < 10'000; ++i) trace_span("t", "span", i, i + 1);
    ASSERT_TRUE(trace_close().ok());
    EXPECT_EQ(read().size(), 10'002u);
}

TEST_F(Trace, a_trace_that_can_not_be_made_says_which_setting) {
    const Status status = trace_open("/nowhere/t.json", "test");
    EXPECT_EQ(status.code(), Code::not_found);
    EXPECT_NE(status.text().find("trace.file"), std::string::npos);
    EXPECT_FALSE(trace_is_open());
}

TEST_F(Trace, one_of_a_simulation_appears_whole_or_not_at_all) {
    const std::string beside = path + ".cairn-" + std::to_string(::getpid());
    ::unlink(path.c_str());
    ASSERT_TRUE(trace_open_simulated(path, 2).ok());
    EXPECT_EQ(::access(beside.c_str(), F_OK), 0);
    trace_as(1, [](std::uint32_t) -> std::string { return "node 0"; });
    trace_span("t", "span", 0, 1);
    trace_as(2, [](std::uint32_t) -> std::string { return "node 1"; });  // left out
    trace_span("t", "span", 0, 1);
    EXPECT_NE(::access(path.c_str(), F_OK), 0);
    ASSERT_TRUE(trace_close().ok());
    EXPECT_NE(::access(beside.c_str(), F_OK), 0);
    EXPECT_EQ(nlohmann::json::parse(std::ifstream(path), nullptr, false).size(), 4u);  // two processes, a track, a span

    ASSERT_TRUE(trace_open_simulated(path, 2).ok());  // the one that stands there stays when another is given up, or interrupted
    trace_discard();
    EXPECT_FALSE(trace_is_open());
    ASSERT_TRUE(trace_open_simulated(path, 2).ok());
    trace_remove_unfinished();
    EXPECT_NE(::access(beside.c_str(), F_OK), 0);
    trace_discard();
    EXPECT_EQ(nlohmann::json::parse(std::ifstream(path), nullptr, false).size(), 4u);
    ::unlink(path.c_str());
    EXPECT_EQ(trace_open_simulated("/dev/null", 2).code(), Code::invalid_argument);
    EXPECT_EQ(trace_open_simulated("/nowhere/t.json", 2).code(), Code::not_found);
    trace_remove_unfinished();  // of none: nothing
}

TEST_F(Trace, a_full_disk_comes_out_at_the_close) {
    const std::string link = testing::TempDir() + "cairn_full-test-" + std::to_string(::getpid());
    ASSERT_EQ(::symlink("/dev/full", link.c_str()), 0);
    ASSERT_TRUE(trace_open(testing::TempDir() + "cairn_full", "test").ok());
    trace_span("t", "span", 0, 1);
    EXPECT_TRUE(trace_status().ok()) << "not written yet";
    for (int i = 0; i < 10'000; ++i) trace_span("t", "span", i, i + 1);
    EXPECT_EQ(trace_status().code(), Code::out_of_space) << "before the close";
    EXPECT_EQ(trace_close().code(), Code::out_of_space);
    ::unlink(link.c_str());
}

}  // namespace
}  // namespace cairn
