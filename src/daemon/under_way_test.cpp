// What a node's flush is said to need, by what its versions have come to: sums of versions, given bytes and processors, and no clock.
#include "daemon/under_way.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace cairn {
namespace {

constexpr std::uint64_t of_image = 256 << 20;
constexpr double limit_s = 30;  // of a job of which nothing is known

// A node whose threads wait for a processor all the time, or work.
class UnderWayTest : public testing::Test {
  protected:
    static VersionKey key_of(Version version) { return {"job", version, {1, 1}}; }
    VersionState& seal(Version version) {
        VersionState& state = versions_[key_of(version)];
        state.level = Level::sealed;
        state.bytes = of_image;
        state.all_here = true;
        return state;
    }
    bool pass(double seconds) {
        const Nanos span = static_cast<Nanos>(seconds * second);
        now_ += span;
        (waits_ ? processors_.waited : processors_.used) += span;
        return under_way_.look(now_);
    }
    // Whether it took a step up while `progress` went from 0 to 1.
    template <class Progress>
    bool takes_a_step(double took_s, Progress progress) {
        bool stepped = false;
        constexpr int looks = 40;
        for (int i = 1; i < looks; ++i) {
            progress(static_cast<double>(i) / looks);
            EXPECT_TRUE(pass(took_s / looks));
            stepped |= wanted() > first_;
        }
        return stepped;
    }
    CpuClass wanted() const { return under_way_.need().wanted(); }

    std::map<VersionKey, VersionState> versions_;
    std::set<VersionKey> unsealed_;
    std::uint64_t given_ = 100ull << 30;  // of versions long ago
    Processors::Seen processors_;
    bool waits_ = true;  // else its threads work
    CpuClass first_ = CpuClass::idle;
    Nanos now_ = second;
    UnderWay under_way_{{0.5, 2}, UnderWay::Sight{
        .versions = [this] {
            std::vector<VersionKey> keys;
            for (const auto& [key, state] : versions_) keys.push_back(key);
            return keys;
        },
        .state = [this](const VersionKey& key) { return versions_[key]; },
        .is_unsealed = [this](const VersionKey& key) { return unsealed_.count(key) != 0; },
        .given_bytes = [this] { return given_; },
        .processors = [this] { return processors_; }}};
};

TEST_F(UnderWayTest, ALeaderThatIsInTimeTakesNoStep) {
    VersionState& state = seal(1);
    state.node_expected_bytes = 2 * of_image;  // others' besides
    const auto writes = [&](double part) { state.node_written_bytes = static_cast<std::uint64_t>(part * 2 * of_image); };
    EXPECT_TRUE(under_way_.look(now_));
    EXPECT_EQ(wanted(), CpuClass::idle);
    EXPECT_FALSE(takes_a_step(0.6 * limit_s, writes));
    state.level = Level::committed;
    EXPECT_FALSE(pass(1));
    EXPECT_EQ(under_way_.need().time_limit(), 0);
}

TEST_F(UnderWayTest, ALeaderThatIsTooSlowTakesSteps) {
    VersionState& state = seal(1);
    state.node_expected_bytes = 2 * of_image;
    EXPECT_TRUE(under_way_.look(now_));
    EXPECT_TRUE(takes_a_step(2 * limit_s, [&](double part) { state.node_written_bytes = static_cast<std::uint64_t>(part * 2 * of_image); }));
}

TEST_F(UnderWayTest, WhatWorksAndDoesNotWaitIsNotHelpedByAStep) {
    VersionState& state = seal(1);
    state.node_expected_bytes = of_image;
    EXPECT_TRUE(under_way_.look(now_));
    waits_ = false;
    EXPECT_FALSE(takes_a_step(0.9 * limit_s, [&](double part) { state.node_written_bytes = static_cast<std::uint64_t>(part * of_image / 2); }));
}

TEST_F(UnderWayTest, WhoGivesItsImagesGoesByWhatItGaveSince) {
    const std::uint64_t before = given_;
    seal(1);
    EXPECT_TRUE(under_way_.look(now_));
    EXPECT_FALSE(takes_a_step(0.6 * limit_s, [&](double part) { given_ = before + static_cast<std::uint64_t>(part * of_image); }));
    versions_[key_of(1)].level = Level::committed;
    EXPECT_FALSE(pass(1));
    const std::uint64_t between = given_;
    seal(2);
    EXPECT_TRUE(under_way_.look(now_));
    first_ = wanted();
    EXPECT_TRUE(takes_a_step(2 * limit_s, [&](double part) { given_ = between + static_cast<std::uint64_t>(part * of_image); }));
}

// What it gave of the one that has not committed is not begun anew.
TEST_F(UnderWayTest, WhatWasGivenIsGivenWhenAnotherVersionEnds) {
    seal(1);
    EXPECT_TRUE(under_way_.look(now_));
    EXPECT_TRUE(pass(0.5));
    seal(2);
    EXPECT_TRUE(pass(0.1));
    first_ = wanted();
    EXPECT_EQ(first_, CpuClass::low) << "it is behind";
    given_ += 2 * of_image;
    EXPECT_TRUE(pass(0.2 * limit_s));
    versions_[key_of(1)].level = Level::committed;
    EXPECT_FALSE(takes_a_step(0.5 * limit_s, [](double) {})) << "the commit is all that is left";
}

TEST_F(UnderWayTest, AnEndOfOneVersionGivesAnotherNoMoreTime) {
    seal(1);
    seal(2);
    EXPECT_TRUE(under_way_.look(now_));
    EXPECT_TRUE(pass(0.7 * limit_s));
    versions_[key_of(1)].level = Level::committed;
    EXPECT_TRUE(pass(0.1 * limit_s));
    EXPECT_FALSE(under_way_.need().is_late(now_));
    EXPECT_TRUE(pass(0.3 * limit_s));
    EXPECT_TRUE(under_way_.need().is_late(now_));
}

TEST_F(UnderWayTest, WhatAnotherNodeHoldsUpIsHurriedForOneTimeLimit) {
    VersionState& state = seal(1);
    state.level = Level::captured;
    unsealed_.insert(key_of(1));
    EXPECT_TRUE(under_way_.look(now_));
    EXPECT_TRUE(pass(0.5 * limit_s));
    EXPECT_TRUE(pass(0.4 * limit_s));
    EXPECT_FALSE(pass(0.2 * limit_s));
    EXPECT_EQ(wanted(), CpuClass::idle);
    EXPECT_FALSE(pass(1));
    state.level = Level::sealed;
    EXPECT_TRUE(pass(1));
}

}  // namespace
}  // namespace cairn
