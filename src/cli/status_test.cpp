// `cairn start`, `status` and `stop` with real daemons; the status table made from answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/daemons.hpp"
#include "cli/version_testing.hpp"

namespace cairn::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using Json = nlohmann::json;

struct StatusOf : testing::Test {
    ProgramFolder folder;
    void TearDown() override { cairn("stop --wait 0"); }
    Ran cairn(const std::string& arguments) { return folder.run(arguments); }
    static int exit_of(Code code) { return static_cast<int>(code); }
};

TEST_F(StatusOf, without_a_daemon) {
    const Ran status = cairn("status");
    EXPECT_EQ(status.exit, exit_of(Code::unavailable));
    EXPECT_THAT(status.err, HasSubstr("cairn start"));
    const Ran stop = cairn("stop");
    EXPECT_EQ(stop.exit, 0);
    EXPECT_EQ(stop.out, "no daemon runs here\n");
    EXPECT_EQ(cairn("status --interval soon").exit, 1);
    EXPECT_EQ(cairn("stop --wait soon").exit, 1);
    EXPECT_EQ(cairn("start --node ../x").exit, 1);
}

TEST_F(StatusOf, a_stop_of_a_node_that_never_was_names_those_there_are) {
    const Ran none = cairn("stop --node n1");
    EXPECT_EQ(none.exit, exit_of(Code::not_found));
    EXPECT_THAT(none.err, HasSubstr("no daemon of node n1 was ever started"));
    EXPECT_THAT(none.err, HasSubstr("; no node is here"));
    ASSERT_EQ(cairn("start --node n0").exit, 0);
    ASSERT_EQ(cairn("start --node n-2").exit, 0);
    const Ran mistyped = cairn("stop --node n1");
    EXPECT_EQ(mistyped.exit, exit_of(Code::not_found));
    EXPECT_THAT(mistyped.err, HasSubstr("no daemon of node n1 was ever started"));
    EXPECT_THAT(mistyped.err, HasSubstr("; the nodes here: n-2, n0"));
    EXPECT_EQ(Json::parse(cairn("stop --node n1 --json").out)["error"]["code"], "not found");
    EXPECT_EQ(Json::parse(cairn("status --json").out)["nodes"].size(), 2u) << "nobody was stopped";
    EXPECT_EQ(cairn("stop --node n0").exit, 0);
    const Ran again = cairn("stop --node n0");
    EXPECT_EQ(again.exit, 0) << again.err;
    EXPECT_EQ(again.out, "no daemon runs here\n");
}

// All killed, by a launcher for instance: who waits for what was captured is told that nobody finishes it, and what to do.
TEST_F(StatusOf, a_stop_without_a_daemon_names_what_scratch_holds) {
    const Melt melt(folder);
    melt.open(1, first);
    for (Rank rank = 0; rank < 4; ++rank) {
        melt.seal(rank < 2 ? "n0" : "n1", 1, first, 1, rank);
        melt.seal(rank < 2 ? "n0" : "n1", 2, first, 1, rank, {first, 1});
    }
    melt.commit(1, first, 1);
    const Ran stop = cairn("stop");
    EXPECT_EQ(stop.exit, exit_of(Code::deadline));
    EXPECT_EQ(stop.out, "no daemon runs here\n  left in scratch, without a daemon: melt version 2\n");
    EXPECT_THAT(stop.err, HasSubstr("1 version not committed"));
    EXPECT_THAT(stop.err, HasSubstr("`cairn start` on each node"));
    const Json json = Json::parse(cairn("stop --json").out);
    ASSERT_EQ(json["left"].size(), 1u);
    EXPECT_EQ(json["left"][0]["version"], 2);
    EXPECT_EQ(cairn("stop --node n1").exit, exit_of(Code::deadline));
    melt.commit(2, first, 1, {first, 1});
    EXPECT_EQ(cairn("stop").out, "no daemon runs here\n");
    EXPECT_EQ(cairn("stop").exit, 0);
    std::filesystem::remove_all(folder.path("checkpoints"));
    const Ran blind = cairn("stop");
    EXPECT_EQ(blind.exit, exit_of(Code::not_found));
    EXPECT_THAT(blind.err, HasSubstr("can not be told"));
}

// Killed again and again: in the pause before the keeper starts another there is no daemon, and a stop is a stop.
TEST_F(StatusOf, a_keeper_that_is_about_to_start_another_is_stopped) {
    folder.environment = "CAIRN_DAEMON_RESTART=true";
    ASSERT_EQ(cairn("start --node n0").exit, 0);
    const auto process = [&]() -> pid_t {
        const Ran status = cairn("status --json");
        return status.exit == 0 ? Json::parse(status.out)["nodes"][0]["pid"].get<pid_t>() : 0;
    };
    pid_t daemon = process();
    ASSERT_GT(daemon, 0);
    for (int death = 0; death < 3; ++death) {  // pauses of 0, 1 and 2 s
        const pid_t dead = daemon;
        ASSERT_EQ(::kill(dead, SIGKILL), 0);
        for (int tries = 0; tries < 400 && (daemon == dead || daemon == 0); ++tries) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            daemon = process();
        }
        ASSERT_GT(daemon, 0);
        ASSERT_NE(daemon, dead);
    }
    ASSERT_EQ(::kill(daemon, SIGKILL), 0);  // 4 s
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const Ran stop = cairn("stop");
    EXPECT_EQ(stop.exit, 0) << stop.err;
    EXPECT_THAT(stop.out, ContainsRegex("stopped the keeper of one that had died, .* \\(process [0-9]+\\)"));
    EXPECT_EQ(cairn("stop").out, "no daemon runs here\n");
    std::this_thread::sleep_for(std::chrono::seconds(5));
    EXPECT_EQ(cairn("status").exit, exit_of(Code::unavailable));
}

TEST_F(StatusOf, virtual_nodes_start_tell_and_stop) {
    const Ran started = cairn("start --node n0");
    ASSERT_EQ(started.exit, 0) << started.err;
    EXPECT_THAT(started.out, HasSubstr("cairnd of node n0 runs: process "));
    EXPECT_THAT(cairn("start --node n0").out, HasSubstr("runs already"));
    const Json second = Json::parse(cairn("start --node n1 --json").out);
    EXPECT_EQ(second["node"], "n1");
    EXPECT_EQ(second["started"], true);

    const Ran table = cairn("status");
    EXPECT_EQ(table.exit, 0) << table.err;
    EXPECT_THAT(table.out, ContainsRegex("node +process +up +clients +captured"));
    EXPECT_THAT(table.out, ContainsRegex("\nn0 +[0-9]+ "));
    EXPECT_THAT(table.out, ContainsRegex("\nn1 +[0-9]+ "));
    const Json all = Json::parse(cairn("status --json").out);
    ASSERT_EQ(all["nodes"].size(), 2u);
    EXPECT_EQ(all["nodes"][1]["pid"], second["pid"]);
    EXPECT_EQ(Json::parse(cairn("status --json --node n1").out)["nodes"].size(), 1u);

    const Ran one = cairn("stop --node n0");
    EXPECT_EQ(one.exit, 0) << one.err;
    EXPECT_THAT(one.out, HasSubstr("cairnd of node n0 stopped"));
    EXPECT_EQ(Json::parse(cairn("status --json").out)["nodes"].size(), 1u);
    EXPECT_EQ(Json::parse(cairn("stop --json").out)["stopped"][0]["node"], "n1");
    EXPECT_EQ(cairn("status").exit, exit_of(Code::unavailable));
}

TEST_F(StatusOf, one_that_stands_still_keeps_nobody_from_the_others) {
    folder.environment = "CAIRN_DAEMON_START_WAIT_MS=1500";
    const Json first = Json::parse(cairn("start --node n0 --json").out);
    ASSERT_EQ(cairn("start --node n1").exit, 0);
    const pid_t silent = first["pid"].get<pid_t>();
    ASSERT_EQ(::kill(silent, SIGSTOP), 0);
    const Ran status = cairn("status");
    EXPECT_EQ(status.exit, exit_of(Code::deadline));
    EXPECT_THAT(status.out, ContainsRegex("\nn1 +[0-9]+ "));
    EXPECT_THAT(status.err, ContainsRegex("-n0-.* was not heard: process " + std::to_string(silent) + ": .*SIGCONT"));
    const Json all = Json::parse(cairn("status --json").out);
    EXPECT_EQ(all["nodes"].size(), 1u);
    EXPECT_EQ(all["silent"].size(), 1u);
    const Ran stop = cairn("stop");
    EXPECT_EQ(stop.exit, exit_of(Code::deadline));
    EXPECT_THAT(stop.out, HasSubstr("cairnd of node n1 stopped"));
    EXPECT_THAT(stop.err, HasSubstr("process " + std::to_string(silent)));
    ASSERT_EQ(::kill(silent, SIGCONT), 0);
    EXPECT_THAT(cairn("stop --wait 10s").out, HasSubstr("cairnd of node n0 stopped"));
}

// They are asked all at once: three cost what one costs, and who answers is shown meanwhile.
TEST_F(StatusOf, those_that_stand_still_are_waited_for_together) {
    folder.environment = "CAIRN_DAEMON_START_WAIT_MS=3000";
    std::vector<pid_t> silent;
    for (const char* node : {"n0", "n1", "n2"}) silent.push_back(Json::parse(cairn(std::string("start --json --node ") + node).out)["pid"].get<pid_t>());
    ASSERT_EQ(cairn("start --node n3").exit, 0);
    const auto seconds_of = [&](const std::string& command, int exit) {
        const auto began = std::chrono::steady_clock::now();
        EXPECT_EQ(cairn(command).exit, exit) << command;
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    };
    ASSERT_EQ(::kill(silent[0], SIGSTOP), 0);
    const double one = seconds_of("status", exit_of(Code::deadline));
    for (const pid_t pid : silent) ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    EXPECT_LT(seconds_of("status --json", exit_of(Code::deadline)), 2 * one);
    const Ran start = cairn("start --node n1");
    EXPECT_EQ(start.exit, exit_of(Code::deadline));
    EXPECT_THAT(start.err, ContainsRegex("process " + std::to_string(silent[1]) + ": .*SIGCONT"));
    for (const char* command : {"status", "stop"}) {
        folder.write(".out", "");
        std::atomic<bool> is_over = false;
        std::thread asking([&] {
            EXPECT_LT(seconds_of(command, exit_of(Code::deadline)), 2 * one);
            is_over = true;
        });
        while (!is_over && folder.read(".out").find("n3") == std::string::npos) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_FALSE(is_over) << command << " shows the healthy one's answer before the others' time is over";
        asking.join();
    }
    for (const pid_t pid : silent) ASSERT_EQ(::kill(pid, SIGCONT), 0);
}

TEST_F(StatusOf, a_daemon_that_can_not_be_started_says_why) {
    folder.environment = "CAIRN_DAEMON_PROGRAM=/nowhere/cairnd";
    const Ran ran = cairn("start");
    EXPECT_EQ(ran.exit, exit_of(Code::unavailable));
    EXPECT_THAT(ran.err, HasSubstr("/nowhere/cairnd"));
    folder.environment = "CAIRN_FLUSH_FILES=many";
    EXPECT_EQ(cairn("start").exit, 1);
}

TEST(StatusText, shows_rates_progress_and_failures) {
    control::NodeStatus node;
    node.node = "n0";
    node.pid = 42;
    node.uptime_ms = 65'000;
    node.written_bytes = 1ull << 30;
    node.last_flush_s = 2;
    node.last_flush_bytes = 1ull << 30;
    control::NodeStatus::Flush old;
    old.key = {"melt", 1, {1, 1}};
    old.level = Level::committed;
    control::NodeStatus::Flush flush = old;
    flush.key.version = 2;
    flush.level = Level::sealed;
    flush.bytes = 3ull << 30;
    flush.written_bytes = 1ull << 30;
    flush.expected_bytes = 2ull << 30;
    control::NodeStatus::Flush failed = flush;
    failed.key.version = 3;
    failed.code = Code::out_of_space;
    failed.text = "persistent is full";
    failed.expected_bytes = 0;
    node.versions = {old, flush, failed};
    const std::string once = status_text({node}, {}, 0, 0);
    EXPECT_THAT(once, ContainsRegex("n0 +42 +65\\.0 s .* 512 MiB/s +2\\.00 s "));
    EXPECT_THAT(once, ContainsRegex("melt +2 +sealed +3\\.00 GiB +\\[##########          \\]  50 %\n"));
    EXPECT_THAT(once, ContainsRegex("melt +3 +sealed +3\\.00 GiB +-\n"));
    EXPECT_THAT(once, HasSubstr("\nn0, melt version 3: persistent is full\n"));
    EXPECT_THAT(status_json({node}), ContainsRegex("\"code\": \"ok\",\n *\"cause\": \"\"(.|\n)*\"code\": \"out of space\",\n *\"cause\": \"capacity\""));
    EXPECT_THAT(once, testing::Not(ContainsRegex("melt +1 "))) << "committed and not the newest";
    EXPECT_THAT(once, testing::Not(HasSubstr("storage targets")));
    control::NodeStatus later = node;
    later.targets = {"gv-client-0", "gv-client-1"};
    EXPECT_THAT(status_text({node, later}, {}, 0, 0), HasSubstr("\n\nstorage targets: gv-client-0, gv-client-1\n"));
    EXPECT_THAT(status_json({later}), ContainsRegex("\"targets\": \\[\n *\"gv-client-0\",\n *\"gv-client-1\"\n"));
    EXPECT_THAT(once, testing::Not(HasSubstr("I/O nodes")));
    later.io_node = true;
    EXPECT_THAT(status_text({node, later}, {}, 0, 0), HasSubstr("\n\nI/O nodes: n0\n"));
    EXPECT_THAT(status_json({node, later}), ContainsRegex("\"io_node\": false(.|\n)*\"io_node\": true"));
    later.written_bytes += 512ull << 20;
    EXPECT_THAT(status_text({later}, {node}, 2, 0), ContainsRegex(" 256 MiB/s +4\\.00 s "));
    node.pid = 43;
    EXPECT_THAT(status_text({later}, {node}, 2, 0), ContainsRegex(" 512 MiB/s "))
        << "another process: nothing to compare with";
}

TEST(StatusText, says_the_class_of_threads_and_what_a_cpuset_leaves) {
    control::NodeStatus node;
    node.node = "n0";
    node.cpu_class = "idle";
    node.processors = node.processors_in_machine = 64;
    const std::string usual = status_text({node}, {}, 0, 0);
    EXPECT_THAT(usual, testing::Not(HasSubstr("class")));
    EXPECT_THAT(usual, testing::Not(HasSubstr("processors")));
    node.cpu_class = "nice 5";
    node.cpu_class_why = "128 MiB left after 250 ms of 1.00 s";
    node.processors = 2;
    const std::string hurried = status_text({node}, {}, 0, 0);
    EXPECT_THAT(hurried, HasSubstr("\n\nn0 runs in class nice 5: 128 MiB left after 250 ms of 1.00 s\n"));
    EXPECT_THAT(hurried, HasSubstr("\nn0 has 2 of 64 processors, "));
    EXPECT_THAT(status_json({node}), ContainsRegex("\"cpu_class\": \"nice 5\",\n *\"cpu_class_why\": \"128 MiB left"));
}

TEST(StatusText, names_the_network_card) {
    control::NodeStatus node;
    node.node = "n0";
    EXPECT_THAT(status_text({node}, {}, 0, 0), testing::Not(HasSubstr("network card")));
    EXPECT_THAT(status_json({node}), ContainsRegex("\"card\": null,\n *\"cards\": \\[\\]"));
    node.cards = {{"eth0", 0, 0}};
    node.card = "eth0", node.card_choice = "the only one";
    EXPECT_THAT(status_text({node, node}, {}, 0, 0), ContainsRegex("\n\nnetwork card: eth0, unknown rate \\(the only one\\)\n$")) << "once for both";
    node.cards = {{"ib0", 100'000, 1}, {"eth0", 1000, 2}};
    node.card_choice = "the fastest of 2";
    EXPECT_THAT(status_text({node}, {}, 0, 0), HasSubstr("network card: eth0, 1 Gb/s, to 2 nodes (the fastest of 2; others: ib0, 100 Gb/s, to 1 node)\n"));
    EXPECT_THAT(status_json({node}), ContainsRegex("\"card\": \\{\n *\"interface\": \"eth0\",\n *\"rate_mbps\": 1000,\n *\"why\": \"the fastest of 2\""));
    EXPECT_THAT(status_json({node}), ContainsRegex("\"cards\": \\[\n *\\{\n *\"interface\": \"ib0\",\n *\"rate_mbps\": 100000,\n *\"nodes\": 1"));
}

TEST(StatusText, fits_the_terminal_and_does_not_jump) {
    control::NodeStatus node;
    node.node = "n0";
    control::NodeStatus::Flush flush;
    flush.key = {"a-series-with-a-name-that-is-rather-long", 2, {1, 1}};
    flush.expected_bytes = 1 << 20;
    node.versions = {flush};
    control::NodeStatus later = node;
    later.uptime_ms = 3'600'000;
    later.captured_bytes = later.written_bytes = later.sent_bytes = later.scratch_bytes = 999ull << 20;
    for (const std::size_t columns : {50, 80, 120, 200}) {
        const std::string first = status_text({node}, {}, 0, columns), then = status_text({later}, {node}, 1, columns);
        EXPECT_EQ(first.substr(0, first.find('\n')), then.substr(0, then.find('\n')));
        std::istringstream lines(then);
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), columns) << line;
    }
    EXPECT_THAT(status_text({node}, {}, 0, 80), HasSubstr("a-series-with-a-n...  "));
    EXPECT_THAT(status_text({node}, {}, 0, 80), ContainsRegex("^node .* written +rate +left .*scratch\n"));
}

}  // namespace
}  // namespace cairn::cli
