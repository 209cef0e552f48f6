// Scenarios as text, and shrinking to what is known to be the smallest that fails.
#include "proof/shrink.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "proof/seed_children.hpp"

namespace cairn::testing {
namespace {

std::size_t count(const Scenario& scenario, Happening what) {
    return static_cast<std::size_t>(std::count_if(scenario.steps.begin(), scenario.steps.end(), [&](const Step& step) { return step.what == what; }));
}

TEST(Scenario, TextSaysAllOfIt) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        Scenario drawn = draw_scenario(seed);
        drawn.faults.resize(fault_classes().size());
        const Result<Scenario> parsed = parse_scenario(to_text(drawn));
        ASSERT_TRUE(parsed.ok()) << parsed.status().text();
        EXPECT_EQ(*parsed, drawn) << to_text(drawn);
    }
}

TEST(Scenario, SameSeedSameRun) {
    const SeedResult first = run_scenario(draw_scenario(3)), second = run_scenario(draw_scenario(3));
    EXPECT_TRUE(first.ok) << first.failure;
    EXPECT_EQ(first.fingerprint, second.fingerprint);
    EXPECT_EQ(first.story, second.story);
}

TEST(Scenario, BadTextIsRefusedByName) {
    const auto refusal = [](const std::string& text) { return parse_scenario(text).status().text(); };
    EXPECT_EQ(refusal("files=0 ranks=2"), "files: '0' is not a number from 1 to 65536");
    EXPECT_EQ(refusal("files=2x"), "files: '2x' is not a number from 1 to 65536");
    EXPECT_EQ(refusal("ranks=1,2,"), "");
    EXPECT_EQ(refusal("ranks=0,2"), "ranks: the first node has at least one");
    EXPECT_EQ(refusal("ranks=1 files=2"), "files: more than there are ranks");
    EXPECT_EQ(refusal("loss=1000001"), "loss: '1000001' is not a number from 0 to 1000000");
    EXPECT_EQ(refusal("steps=capture:1,explode:2"), "steps: 'explode:2' is none (as in capture:5)");
    EXPECT_EQ(refusal("steps=capture"), "steps: 'capture' is none (as in capture:5)");
    EXPECT_EQ(refusal("colour=blue"), "a scenario has no 'colour'");
    EXPECT_EQ(refusal("blue"), "'blue' is not key=value");
    EXPECT_EQ(refusal("block=8192 buffer=12288"), "buffer is a multiple of block, block of 4096");
}

TEST(Shrink, ClassesForgetNumbersAndDetails) {
    EXPECT_EQ(failure_class("version 12 was removed, and came back"), failure_class("version 7 was removed, and came back"));
    EXPECT_EQ(failure_class("a part is torn: part-0001"), "a part is torn");
    EXPECT_NE(failure_class("hangs: no end after 10 s"), failure_class("crashed: signal 11"));
}

// A planted failure: two captures with a kill after them, on three ranks or more, where messages are lost.
std::optional<std::string> planted(const Scenario& scenario) {
    const auto last_kill = std::find_if(scenario.steps.rbegin(), scenario.steps.rend(), [](const Step& step) { return step.what == Happening::kill; });
    std::size_t captured = 0;
    for (auto step = last_kill; step != scenario.steps.rend(); ++step) captured += step->what == Happening::capture;
    if (captured < 2 || scenario.ranks() < 3 || scenario.fault(&sim::Faults::message_loss) == 0) return std::nullopt;
    return "planted: with " + std::to_string(scenario.steps.size()) + " steps";
}

TEST(Shrink, FindsTheSmallestThatFailsInTheSameWay) {
    int shrunk = 0;
    for (std::uint64_t seed = 1; seed <= 1200; ++seed) {
        const Scenario drawn = draw_scenario(seed);
        const std::optional<std::string> failure = planted(drawn);
        if (!failure) continue;
        ++shrunk;
        const Shrunk smallest = shrink(drawn, *failure, planted, [] { return true; });
        const Scenario& s = smallest.scenario;
        EXPECT_TRUE(smallest.done);
        EXPECT_EQ(smallest.failure, "planted: with 3 steps");
        EXPECT_EQ(count(s, Happening::capture), 2u);
        EXPECT_EQ(count(s, Happening::kill), 1u);
        EXPECT_EQ(s.ranks(), 3u);
        EXPECT_EQ(std::count_if(s.faults.begin(), s.faults.end(), [](std::uint64_t rate) { return rate > 0; }), 1);
        for (const ScenarioNumber& number : scenario_numbers()) {
            if (number.simplest == UINT64_MAX) continue;
            EXPECT_EQ(s.*number.value, number.simplest) << number.name;
        }
    }
    EXPECT_GT(shrunk, 5);
}

TEST(Shrink, AnotherFailureIsNotTaken) {
    Scenario scenario = draw_scenario(1);
    scenario.steps = {{Happening::capture, 1}, {Happening::kill, 2}};
    const auto failure_of = [](const Scenario& s) -> std::optional<std::string> {
        return s.steps.size() == 2 ? "the first: two steps" : "the second: fewer";
    };
    const Shrunk smallest = shrink(scenario, "the first: two steps", failure_of, [] { return true; });
    EXPECT_EQ(smallest.scenario.steps.size(), 2u);
    EXPECT_EQ(smallest.failure, "the first: two steps");
}

TEST(Shrink, StopsAtItsBound) {
    const auto always = [](const Scenario&) -> std::optional<std::string> { return "fails"; };
    int left = 3;
    const Shrunk smallest = shrink(draw_scenario(5), "fails", always, [&] { return left-- > 0; });
    EXPECT_EQ(smallest.tries, 3u);
    EXPECT_FALSE(smallest.done);
}

TEST(Children, ResultsComeBackWhole) {
    const Scenario scenario = draw_scenario(3);
    const SeedResult here = run_scenario(scenario), there = run_in_child(scenario, {});
    EXPECT_EQ(here.ok, there.ok);
    EXPECT_EQ(here.failure, there.failure);
    EXPECT_EQ(here.story, there.story);
    EXPECT_EQ(here.fingerprint, there.fingerprint);
    EXPECT_EQ(here.saw, there.saw);
}

TEST(Children, OneThatHangsOrCrashesIsAFailedOne) {
    Scenario endless;
    endless.ranks_per_node = {512};
    endless.image_bytes = 1ull << 40;
    ChildOptions options;
    options.limit_s = 1;
    options.silent = true;
    endless.steps.assign(1000, {Happening::capture, 7});
    EXPECT_EQ(failure_class(run_in_child(endless, options).failure), "hangs");
    Scenario impossible;
    impossible.ranks_per_node = {30};
    impossible.image_bytes = 0;  // that they are smaller than; its text would be refused
    impossible.steps = {{Happening::capture, 1}};
    EXPECT_EQ(failure_class(run_in_child(impossible, options).failure), "crashed");
}

}  // namespace
}  // namespace cairn::testing
