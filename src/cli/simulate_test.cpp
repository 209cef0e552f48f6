// `cairn simulate`: tables, JSON, pictures and traces of a small cluster; bad input is one clear error and leaves nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/status.hpp"
#include "cli/program_testing.hpp"

namespace cairn::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using Json = nlohmann::json;

struct Simulate : testing::Test {
    ProgramFolder folder;
    Simulate() { folder.write("c.toml", laptop()); }
    static std::string laptop() {
        std::ifstream in(CAIRN_SOURCE "/examples/clusters/laptop.toml");
        return {std::istreambuf_iterator<char>(in), {}};
    }
    Ran simulate(const std::string& arguments) { return folder.run("simulate " + arguments); }
    // Exit code, and that the message names what is wrong.
    void refused(const std::string& arguments, Code code, const std::string& text) {
        const Ran ran = simulate(arguments);
        EXPECT_EQ(ran.exit, static_cast<int>(code)) << arguments;
        EXPECT_THAT(ran.err, HasSubstr(text)) << arguments;
        EXPECT_EQ(ran.out, "") << arguments;
    }
};

TEST_F(Simulate, strategies_side_by_side) {
    const Ran ran = simulate("c.toml --strategy all --files 2 --files 4");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("8 nodes, 32 ranks of 64.0 MiB +- 20 %, 4 servers, 4 targets"));
    EXPECT_THAT(ran.out, ContainsRegex("cairn +2 +8 "));
    EXPECT_THAT(ran.out, ContainsRegex("file_per_rank +32 +8 "));
}

TEST_F(Simulate, json_agrees_and_is_the_same_twice) {
    const Ran first = simulate("c.toml --json --seed 3"), again = simulate("c.toml --json --seed 3");
    EXPECT_EQ(first.out, again.out);
    const Json answer = Json::parse(first.out).at(0);
    EXPECT_EQ(answer.at("nodes"), 8);
    EXPECT_EQ(answer.at("versions").size(), 4u);
    EXPECT_EQ(answer.at("versions").at(3).at("leaders").size(), 8u);
}

TEST_F(Simulate, a_trace_has_the_writers_of_the_first_nodes) {
    ASSERT_EQ(simulate("c.toml --set job.versions=1 --trace t.json --trace-nodes 2 --plot p.svg").exit, 0);
    const Json events = Json::parse(folder.read("t.json"));
    std::set<int> processes;
    bool writes = false;
    for (const Json& event : events) {
        processes.insert(event.at("pid").get<int>());
        if (event.at("ph") != "X") continue;
        writes |= event.at("name") == "write local";
        EXPECT_LT(event.at("ts").get<double>() + event.at("dur").get<double>(), 1e8);
    }
    EXPECT_TRUE(writes);
    EXPECT_EQ(processes, (std::set<int>{0, 1, 2}));  // the cluster, node 0, node 1
    EXPECT_THAT(folder.read("p.svg"), HasSubstr("<svg"));
}

TEST_F(Simulate, bad_input_is_one_clear_error) {
    refused("", Code::invalid_argument, "name a cluster file");
    refused("nowhere.toml", Code::not_found, "nowhere.toml");
    refused("scratch", Code::invalid_argument, "not a regular file");
    refused("c.toml --files 0", Code::invalid_argument, "--files 0");
    refused("c.toml --files many", Code::invalid_argument, "--files many");
    refused("c.toml --strategy nonsense", Code::invalid_argument, "allowed: all, cairn, two_phase");
    refused("c.toml --sharing fairly", Code::invalid_argument, "exact and queued");
    refused("c.toml --set job.nodes=none", Code::invalid_argument, "job.nodes");
    refused("c.toml --limit-s 1", Code::deadline, "was not over after 1");
    refused("c.toml --trace missing/t.json", Code::not_found, "missing/t.json");
    folder.write("bad.toml", "[job]\nnodes = -3\n");
    refused("bad.toml", Code::invalid_argument, "bad.toml:2: job.nodes");
    folder.write("large.toml", std::string(2 << 20, '#'));
    refused("large.toml", Code::invalid_argument, "at most 1 MiB");
}

}  // namespace
}  // namespace cairn::cli
