// The exhaustive test itself: faults as text, pairs that are all of them, and that a run with the same faults is the same run.
#include "proof/exhaustive.hpp"

#include <gtest/gtest.h>

namespace cairn::testing {
namespace {

TEST(Exhaustive, FaultsAreReadAsTheyAreWritten) {
    const std::string text = "17:kill:0 18:kill:1 40:power o23:hang o7:fail-done";
    const Result<std::vector<Fault>> faults = parse_faults(text);
    ASSERT_TRUE(faults.ok()) << faults.status().text();
    EXPECT_EQ(to_text(*faults), text);
    EXPECT_EQ(faults->size(), 5u);
    for (const char* bad : {"17", "17:", "17:kill", "17:kill:2", "17:power:0", "o17:kill", "17:hang", "kill:0", "o:hang", "x"})
        EXPECT_EQ(parse_faults(bad).status().text(), "'" + std::string(bad) + "' is no fault (as in 17:kill:0, 40:power, o23:hang)");
}

TEST(Exhaustive, AllRoundsTogetherAreAllPairsOnce) {
    for (const std::uint64_t steps : {0, 1, 2, 7, 100, 761})
        for (const std::uint64_t first : {0, 1, 5000}) {
            std::vector<std::uint64_t> times(steps + 1);
            for (std::uint64_t round = 0; round <= steps; ++round)
                for (const std::uint64_t place : second_places(round, first, steps)) {
                    ASSERT_GE(place, 1u);
                    ASSERT_LE(place, steps);
                    ++times[place];
                }
            for (std::uint64_t place = 1; place <= steps; ++place) EXPECT_EQ(times[place], 1u) << place << " of " << steps;
        }
}

TEST(Exhaustive, TheSameFaultsAreTheSameRun) {
    const Result<std::vector<Fault>> faults = parse_faults("300:kill:0 310:cut");
    ASSERT_TRUE(faults.ok());
    const SeedResult first = run_with({2, 2}, *faults, false), again = run_with({2, 2}, *faults, false);
    EXPECT_TRUE(first.ok) << first.failure;
    EXPECT_EQ(first.fingerprint, again.fingerprint);
    EXPECT_EQ(first.story, again.story);
    EXPECT_NE(first.story.find("strikes: 310:cut"), std::string::npos) << first.story;
    EXPECT_NE(first.fingerprint, run_with({2, 2}, {}, false).fingerprint);
}

// A kind that can strike nowhere would be no kind.
TEST(Exhaustive, EveryKindOfFaultCanStrike) {
    class Collect final : public Chooser {
      public:
        bool strikes(const Fault& fault) override {
            names.insert((fault.of_operation ? "o:" : "") + std::string(fault.name));
            return false;
        }
        void stepped(std::uint64_t state) override { states.insert(state); }
        void job_over() override { over = true; }
        bool indifferent() const override { return over; }
        std::set<std::string> names;
        std::set<std::uint64_t> states;
        bool over = false;
    };
    Collect collect;
    for (const JobCase& which : job_cases) {
        collect.over = false;
        const SeedResult result = SteppedRun(which, collect).run();
        EXPECT_TRUE(result.ok) << result.failure;
        EXPECT_EQ(result.committed, 4u);
    }
    EXPECT_GT(collect.states.size(), 400u);
    for (const StepFault& kind : step_faults()) EXPECT_TRUE(collect.names.count(kind.name)) << kind.name;
    for (const OperationFault& kind : operation_faults()) EXPECT_TRUE(collect.names.count("o:" + std::string(kind.name))) << kind.name << " " << kind.operations;
}

}  // namespace
}  // namespace cairn::testing
