// The planner alone, for tests.
#pragma once

#include "engine/coordinator/planner.hpp"
#include "engine/role_testing.hpp"

namespace cairn::testing {

// Node 0 coordinates; each node's rank has sealed an image of eight blocks.
struct PlannerTest : ::testing::Test {
    static constexpr std::uint64_t image_bytes = 8 * role_block;

    void begin(const RoleOptions& options = {}) {
        node = std::make_unique<Alone<engine::Planner>>(options);
        node->flight->coordinator = std::make_shared<engine::CoordinatorSide>(node->flight->since);
        for (NodeIndex each = 0; each < node->job->nodes(); ++each)
            for (const Rank rank : node->job->roster->members[each].ranks) seal(each, rank);
    }
    void seal(NodeIndex from, Rank rank, std::uint64_t block_bytes = role_block) { side().sealed[from] = {{role_image(rank, image_bytes)}, block_bytes}; }
    engine::CoordinatorSide& side() { return *node->flight->coordinator; }
    // The next attempt's, which is then the one under way.
    const engine::Contest& plan() {
        engine::Contest contest;
        contest.attempt = ++side().attempts;
        contest.attempt_id = {7, contest.attempt};
        contest.begun = node->world.clock.now();
        const Result<std::vector<NodeImages>> planned = node->subject.plan(*node->flight, contest);
        EXPECT_TRUE(planned.ok()) << planned.status().to_string();
        side().contest = std::move(contest);
        return *side().contest;
    }
    std::vector<NodeIndex> leaders() {
        std::vector<NodeIndex> found;
        for (const auto& [leader, track] : side().contest->leaders) found.push_back(leader);
        return found;
    }
    std::set<std::string> targets() {
        std::set<std::string> found;
        for (const PartPlan& part : side().contest->plan) found.insert(part.target);
        return found;
    }
    // As a leader tells it.
    void fails(NodeIndex leader, message::PartsDone done) {
        done.attempt_id = side().contest->attempt_id;
        side().contest->leaders.at(leader).done = std::move(done);
        node->subject.learn_from_failures(*node->flight);
    }
    static message::PartsDone of_part(std::uint32_t part) {
        message::PartsDone done;
        done.code = Code::io_error;
        done.has_failed_part = true;
        done.failed_part = part;
        return done;
    }
    static message::PartsDone of_itself() {
        message::PartsDone done;
        done.code = Code::out_of_space;
        return done;
    }

    std::unique_ptr<Alone<engine::Planner>> node;
};

}  // namespace cairn::testing
