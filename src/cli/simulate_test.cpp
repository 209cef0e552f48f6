// `cairn simulate` as a program: what it refuses and how, what it writes, and that an interrupted one leaves nothing.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/status.hpp"
#include "base/trace_testing.hpp"
#include "cli/program_testing.hpp"

namespace cairn::cli {
namespace {

using nlohmann::json;

const std::string laptop = CAIRN_SOURCE "/examples/clusters/laptop.toml";

constexpr int invalid = static_cast<int>(Code::invalid_argument), missing = static_cast<int>(Code::not_found), not_permitted = static_cast<int>(Code::permission),
              too_late = static_cast<int>(Code::deadline), no_space = static_cast<int>(Code::out_of_space);

struct SimulateTest : testing::Test {
    ProgramFolder folder;
    std::set<std::string> before = names();

    std::set<std::string> names() const {
        std::set<std::string> all;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path("")))
            if (const std::string name = entry.path().filename(); name != ".out" && name != ".err") all.insert(entry.path());
        return all;
    }
    // One line, of this command, with these words; nothing on the output, nothing left behind.
    void refused(const std::string& arguments, int exit, const std::vector<std::string>& words) {
        SCOPED_TRACE(arguments);
        before = names();
        const Ran ran = folder.run("simulate " + arguments);
        EXPECT_EQ(ran.exit, exit) << ran.err;
        EXPECT_EQ(ran.out, "");
        EXPECT_TRUE(ran.err.starts_with("cairn simulate: ")) << ran.err;
        EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
        for (const std::string& word : words) EXPECT_NE(ran.err.find(word), std::string::npos) << ran.err;
        EXPECT_EQ(names(), before);
    }
    json answer_of(const std::string& arguments) {
        const Ran ran = folder.run("simulate " + arguments + " --json");
        EXPECT_EQ(ran.exit, 0) << ran.err;
        EXPECT_EQ(ran.err, "");
        return json::parse(ran.out, nullptr, false);
    }
};

TEST_F(SimulateTest, StrategiesStandSideBySide) {
    const Ran ran = folder.run("simulate " + laptop + " --strategy all --files 2 --files 4");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, testing::HasSubstr("8 nodes, 32 ranks of 64.0 MiB +- 20 %, 4 servers, 4 targets"));
    EXPECT_THAT(ran.out, testing::ContainsRegex("cairn +4 +8 "));
    EXPECT_THAT(ran.out, testing::ContainsRegex("file_per_rank +32 +8 "));
}

TEST_F(SimulateTest, ARestartIsToldWhereItIsAskedFor) {
    const json with = answer_of(laptop + " --set job.restart=1 --strategy cairn --strategy two_phase --limit-s 999999999");
    ASSERT_EQ(with.size(), 2u);
    for (const json& one : with) EXPECT_GT(one["restart_s"].get<double>(), 32 * 64 * 0.8 / 800) << "the servers' rate";
    EXPECT_FALSE(answer_of(laptop)[0].contains("restart_s"));
    refused(laptop + " --set job.restart=1 --set job.nodes=65536 --set job.files=1", no_space, {"of memory, and this host has"});
    refused(laptop + " --set job.restart=2", invalid, {"job.restart=2", "a whole number from 0 to 1"});
}

TEST_F(SimulateTest, FilesThatAreNoCluster) {
    folder.write("big.toml", std::string(2 << 20, '#'));
    folder.write("bad.toml", "[job]\nnodes = = 3\n");
    folder.write("bytes.toml", "\xff\xfe\x01");
    ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
    refused("nowhere.toml", missing, {"nowhere.toml"});
    refused(folder.path("checkpoints"), invalid, {"not a regular file of at most 1 MiB"});
    refused("big.toml", invalid, {"big.toml", "1 MiB"});
    refused("fifo", invalid, {"not a regular file"});
    refused("bad.toml", invalid, {"bad.toml:2: not TOML"});
    refused("bytes.toml", invalid, {"bytes.toml:1: not TOML"});
    refused("", invalid, {"name a cluster file"});
}

TEST_F(SimulateTest, AFileThatMayNotBeRead) {
    folder.write("secret.toml", "");
    std::filesystem::permissions(folder.path("secret.toml"), std::filesystem::perms::none);
    if (::access(folder.path("secret.toml").c_str(), R_OK) == 0) {  // root reads all; a program without privileges does not
        for (const char* name : {"", "secret.toml"}) ASSERT_EQ(::chown(folder.path(name).c_str(), 65534, 65534), 0);
        const Ran ran = {std::system(("cd '" + folder.path("") + "' && setpriv --reuid 65534 --clear-groups '" CAIRN_PROGRAM "' simulate secret.toml >.out 2>.err").c_str()),
                         folder.read(".out"), folder.read(".err")};
        EXPECT_EQ(WEXITSTATUS(ran.exit), not_permitted) << ran.err;
        EXPECT_NE(ran.err.find("secret.toml: cannot read this cluster"), std::string::npos) << ran.err;
    } else {
        refused("secret.toml", not_permitted, {"secret.toml: cannot read this cluster"});
    }
}

TEST_F(SimulateTest, OptionsThatMakeNoSense) {
    for (const char* files : {"0", "-1", "33", "4x", "1.5", "' 3'", "99999999999999999999"}) refused(laptop + " --files " + files, invalid, {"--files", "from 1 to the number of ranks, 32"});
    refused(laptop + " --strategy nonsense", invalid, {"--strategy nonsense", "cairn, two_phase, at_offset, every_node, file_per_rank, vertical, orchestrated"});
    refused(laptop + " --sharing fairly", invalid, {"--sharing fairly", "exact and queued"});
    refused(laptop + " --set job.nodes", invalid, {"--set job.nodes", "--keys"});
    refused(laptop + " --set job.nodes=4 --set job.files=2 --set job.nodes=8", invalid, {"--set job.nodes is given twice"});
    refused(laptop + " --set job.nodes=0", invalid, {"job.nodes=0", "a whole number from 1 to"});
    refused(laptop + " --limit-s 0", invalid, {"--limit-s 0"});
    refused(laptop + " --set storage.metadata_ops_per_s=1e-10", invalid, {"storage.metadata_ops_per_s must be 0 (no limit) or at least"});
    refused(laptop + " --set node.client_crowd=1", invalid, {"node.client_crowd needs node.client_bytes_per_s"});
    refused(laptop + " --set 'job.nodes=8\nx=3'", invalid, {"--set"});
    refused(laptop + " --set job.files=33", invalid, {"job.files is 33", "32 ranks"});
    refused(laptop + " --set job.image_bytes=1e15 --set job.nodes=1000000", invalid, {"job.image_bytes x ranks x job.versions"});
    refused(laptop + " --set job.nodes=1048576 --set job.ranks_per_node=16 --set job.image_bytes=1e10", no_space,
            {"1,048,576 nodes with 16,777,216 ranks takes about", "of memory, and this host has", "flush.block_bytes"});
}

TEST_F(SimulateTest, WhatIsNotOverInTime) {
    refused(laptop + " --limit-s 1", too_late, {"was not over after 1.00 s of simulated time (--limit-s)"});
    refused(laptop + " --set job.compute_s=1000000 --limit-s 50", too_late, {"after 50.0 s of simulated time (--limit-s)"});
    refused(laptop + " --strategy file_per_rank --set job.image_bytes=1e12 --set node.memory_bytes_per_s=1 --limit-s 1000000000", too_late, {"capturing", "--limit-s"});
    refused(laptop + " --limit-s 1 --trace t.json --plot p.svg", too_late, {"--limit-s"});
    EXPECT_EQ(folder.run("simulate " + laptop + " --limit-s 9999999999999999999").exit, 0);
}

TEST_F(SimulateTest, FilesThatCanNotBeWritten) {
    folder.write("kept", "of somebody");
    ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
    refused(laptop + " --trace nowhere/t.json", missing, {"nowhere/t.json"});
    refused(laptop + " --plot nowhere/p.svg", missing, {"nowhere/p.svg"});
    for (const char* there : {"checkpoints", "fifo", "/dev/null"}) {
        refused(laptop + " --trace " + there, invalid, {there, "not a regular file"});
        refused(laptop + " --plot " + there, invalid, {there, "not a regular file"});
    }
    refused(laptop + " --trace t.json --files 1 --files 2", invalid, {"--trace is of one flush"});
    refused(laptop + " --trace t.json --strategy all", invalid, {"--trace is of one flush"});
    refused(laptop + " --trace kept --limit-s 1", too_late, {});
    EXPECT_EQ(folder.read("kept"), "of somebody");
}

TEST_F(SimulateTest, NoOutputTakesThePlaceOfAnInputOrOfAnother) {
    std::filesystem::copy_file(laptop, folder.path("mine.toml"));
    ASSERT_EQ(::symlink("mine.toml", folder.path("link.toml").c_str()), 0);
    refused("mine.toml --plot mine.toml", invalid, {"--plot mine.toml", "the cluster's file"});
    refused("mine.toml --trace link.toml", invalid, {"--trace link.toml", "the cluster's file"});
    refused("mine.toml --plot out --trace ./out", invalid, {"--trace ./out", "the file of --plot"});
    ASSERT_EQ(::symlink("real.svg", folder.path("link.svg").c_str()), 0);
    ASSERT_EQ(::symlink("real.json", folder.path("link.json").c_str()), 0);
    folder.write("real.svg", "");
    folder.write("real.json", "");
    ASSERT_EQ(folder.run("simulate mine.toml --plot link.svg --trace link.json").exit, 0);
    EXPECT_TRUE(folder.read("real.svg").starts_with("<svg "));
    EXPECT_TRUE(folder.read("real.json").starts_with("[{"));
    for (const char* link : {"link.svg", "link.json"}) {
        struct stat there = {};
        ASSERT_EQ(::lstat(folder.path(link).c_str(), &there), 0);
        EXPECT_TRUE(S_ISLNK(there.st_mode)) << link;
    }
    before = names();
}

TEST_F(SimulateTest, AnInterruptedOneLeavesNothing) {
    for (const int signal : {SIGINT, SIGTERM}) {
        before = names();
        const ::pid_t pid = ::fork();
        if (pid == 0) {
            const int nothing = ::open("/dev/null", O_RDWR);
            ::dup2(nothing, 1);
            ::dup2(nothing, 2);
            ::signal(signal, SIG_DFL);  // a shell without job control starts what runs behind it with SIGINT ignored
            if (::chdir(folder.path("").c_str()) != 0) ::_exit(99);
            ::execl(CAIRN_PROGRAM, CAIRN_PROGRAM, "simulate", CAIRN_SOURCE "/examples/clusters/frontier.toml", "--trace", "t.json", "--plot", "p.svg", nullptr);
            ::_exit(98);
        }
        while (names() == before && ::waitpid(pid, nullptr, WNOHANG) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_NE(names(), before) << "no trace was begun";  // Frontier takes minutes: it is far from its end
        ASSERT_EQ(::kill(pid, signal), 0);
        int status = 0;
        ASSERT_EQ(::waitpid(pid, &status, 0), pid);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
        EXPECT_EQ(names(), before);
    }
}

TEST_F(SimulateTest, TheDocumentParsesAndIsTheSameAgain) {
    const json one = answer_of(laptop + " --strategy all --files 2 --files 8");
    ASSERT_EQ(one.size(), 14u);
    std::set<std::string> strategies;
    for (const json& answer : one) {
        strategies.insert(answer["strategy"]);
        EXPECT_EQ(answer["versions"].size(), 4u);
        EXPECT_GT(answer["versions"][3]["bytes_per_s"], 0);
    }
    EXPECT_EQ(strategies.size(), 7u);
    EXPECT_EQ(folder.run("simulate --json " + laptop).out, folder.run("simulate --json " + laptop).out);
    EXPECT_NE(answer_of(laptop)[0]["fingerprint"], answer_of(laptop + " --seed 2")[0]["fingerprint"]);
    EXPECT_EQ(answer_of(laptop + " --set job.nodes=3 --files 3")[0]["nodes"], 3);
}

TEST_F(SimulateTest, ATraceHasTheNodesTracksWithinTheFlush) {
    const json answer = answer_of(laptop + " --set job.versions=1 --trace flush.json --trace-nodes 3")[0];
    const json events = json::parse(folder.read("flush.json"), nullptr, false);
    ASSERT_TRUE(events.is_array());
    std::map<int, std::string> processes;
    std::map<std::pair<int, int>, std::string> tracks;
    const double begin = 1e6 * answer["versions"][0]["capture_s"].get<double>() , end = 1e6 * answer["simulated_s"].get<double>();
    const double flush = 1e6 * answer["versions"][0]["flush_s"].get<double>();
    double first = end, last = 0;
    std::set<std::string> spans;
    std::set<int> writers_of;
    for (const json& event : events) {
        if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
        else if (event["name"] == "thread_name") tracks[{event["pid"], event["tid"]}] = event["args"]["name"];
        if (event["ph"] != "X") continue;
        const std::string track = tracks.at({event["pid"], event["tid"]});
        if (track.find("writer") != std::string::npos) writers_of.insert(event["pid"].get<int>());
        spans.insert(event["name"]);
        const double ts = event["ts"], dur = event["dur"];
        EXPECT_GE(dur, 0);
        first = std::min(first, ts);
        last = std::max(last, ts + dur);
    }
    EXPECT_EQ(processes, (std::map<int, std::string>{{0, "cluster"}, {1, "node 0"}, {2, "node 1"}, {3, "node 2"}}));
    EXPECT_EQ(writers_of, (std::set<int>{1, 2, 3}));
    for (const char* name : {"gather", "write local", "commit"}) EXPECT_TRUE(spans.count(name)) << name;
    EXPECT_GE(first, begin * 0.9);
    EXPECT_LE(last, first + flush * 1.02);
    EXPECT_GE(last, first + flush * 0.98);
    EXPECT_LE(last, end);
    EXPECT_EQ(folder.run("simulate " + laptop + " --files 32 --trace all.json --trace-nodes 9999999999999999999").exit, 0);
    const json all = json::parse(folder.read("all.json"), nullptr, false);
    EXPECT_EQ(trace_testing::broken_trace_rule(all), "");
    const auto slices = std::count_if(all.begin(), all.end(), [](const json& event) { return event["ph"] == "X"; });
    if (const long found = trace_testing::slices_in_perfetto(folder.path("all.json")); found >= 0) {
        EXPECT_EQ(found, slices);
    }
    EXPECT_EQ(folder.run("simulate " + laptop + " --trace none.json --trace-nodes 0").exit, 0);
    EXPECT_EQ(json::parse(folder.read("none.json"), nullptr, false).size(), 1u);  // the name of the cluster
}

TEST_F(SimulateTest, ItReplacesItsOwnFilesAndWritesAPicture) {
    folder.write("t.json", "old");
    folder.write("p.svg", "old");
    before = names();
    EXPECT_EQ(folder.run("simulate " + laptop + " --trace t.json --plot p.svg").exit, 0);
    EXPECT_TRUE(json::parse(folder.read("t.json"), nullptr, false).is_array());
    EXPECT_NE(folder.read("p.svg").find("</svg>"), std::string::npos);
    EXPECT_EQ(names(), before);
}

TEST_F(SimulateTest, KeysAndExampleAreThoseOfTheDocument) {
    const Ran ran = folder.run("simulate --keys");
    EXPECT_EQ(ran.exit, 0);
    EXPECT_TRUE(ran.out.starts_with("| key |")) << ran.out;
    std::ifstream in(CAIRN_SOURCE "/docs/simulate.md", std::ios::binary);
    const std::string document{std::istreambuf_iterator<char>(in), {}};
    std::ifstream example(laptop, std::ios::binary);
    EXPECT_NE(document.find("```toml\n" + std::string{std::istreambuf_iterator<char>(example), {}} + "```"), std::string::npos) << "docs/simulate.md shows another laptop.toml";
    EXPECT_NE(document.find(ran.out), std::string::npos) << "put what `cairn simulate --keys` prints into docs/simulate.md";
}

// Every cluster that is shipped reads.
TEST_F(SimulateTest, ExamplesAreClusters) {
    std::size_t seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator(CAIRN_SOURCE "/examples/clusters")) {
        ++seen;
        const json answer = answer_of(entry.path().string() + " --strategy every_node --set job.nodes=8 --set job.files=1 --set flush.leaders=1");
        ASSERT_EQ(answer.size(), 1u);
        EXPECT_EQ(answer[0]["cluster"], entry.path().stem().string());
    }
    EXPECT_GE(seen, 4u);
}

}  // namespace
}  // namespace cairn::cli
