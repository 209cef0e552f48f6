// The coordinator when a part's storage fails: another file takes its place on another target, with all that the part held, and the version commits in the same attempt.
#include "engine/coordinator/coordinator.hpp"
#include "engine/role_testing.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "model/coverage.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::RoleOptions;

// Node 0 coordinates, both nodes lead a part each, below two of three roots.
struct ReplacerTest : ::testing::Test {
    static constexpr std::uint64_t image_bytes = 16 * role_block;
    static RoleOptions options() {
        RoleOptions options;
        options.ranks = {{0}, {1}};
        options.files = 2;
        options.roots = {"/persistent/.a", "/persistent/.b", "/persistent/.c"};
        options.settings.leaders = 2;
        return options;
    }
    ReplacerTest() : node(options()) {
        for (const NodeIndex from : {0u, 1u}) hear(from, message::Sealed{{testing::role_image(from, image_bytes)}, role_block});
        for (const NodeIndex to : {0u, 1u}) leads.push_back(node.next<message::Lead>(to));
    }
    void hear(NodeIndex from, message::ForCoordinator body) {
        node.note_heard(from);
        node.subject.hear(node.flight, from, std::move(body));
    }
    Id128 attempt_id() const { return leads[0].attempt_id; }
    const PartPlan& plan(NodeIndex of) const { return leads[of].parts.front(); }
    void progress(NodeIndex from, std::vector<message::PartProgress> parts) { hear(from, message::Progress{attempt_id(), ++sequence, 0, std::move(parts), 0}); }
    void fail(NodeIndex from, Code code = Code::io_error) { hear(from, message::PartFailed{attempt_id(), plan(from).part, code, "a disk"}); }
    // The one with a plan, which comes after one without.
    message::Replace replacement(NodeIndex to) {
        message::Replace found;
        EXPECT_TRUE(node.run_until([&] {
            for (message::Replace& each : node.heard<message::Replace>(to))
                if (!each.with.empty()) found = std::move(each);
            return !found.with.empty();
        }, 60 * second));
        return found;
    }
    // As a leader whose part, by this plan, is durable.
    void done(NodeIndex from, const PartPlan& part, std::uint64_t covered) {
        const std::string name = part_file_name(node.job->part_name(part, attempt_id()));
        const std::string path = Layout::version_below(part.target, node.flight->key) + "/" + name;
        const Status wrote = node.result_of(write_file(node.world.storage, path, Bytes(20 * role_block), 0644, node.world.clock.in(second)));
        EXPECT_TRUE(wrote.ok()) << wrote.to_string();
        message::PartsDone report;
        report.attempt_id = attempt_id();
        report.parts = {{name, 20 * role_block, 12 * role_block, 1, {from}}};
        report.parts[0].root = node.job->root_of(part.target);
        report.coverage = covered;
        hear(from, report);
    }
    std::optional<Manifest> manifest() {
        const std::optional<Bytes> bytes = node.durable(node.layout.manifest(node.flight->key));
        if (!bytes) return std::nullopt;
        return decode_manifest(*bytes).value();
    }

    Alone<Coordinator> node;
    std::vector<message::Lead> leads;
    std::uint64_t sequence = 0;
};

TEST_F(ReplacerTest, AnotherFileTakesThePlaceOfThePart) {
    ASSERT_TRUE(leads[1].may_replace);
    ASSERT_EQ(plan(0).part + plan(1).part, 1u) << "a part each";
    progress(1, {{plan(1).part, 10 * role_block, 0, 1000}});
    fail(1);
    const message::Replace replace = replacement(1);
    EXPECT_EQ(replace.attempt_id, attempt_id());
    EXPECT_EQ(replace.part, plan(1).part);
    const PartPlan& with = replace.with.front();
    EXPECT_EQ(with.part, 2u) << "a number of its own";
    EXPECT_EQ(with.number(), plan(1).part);
    EXPECT_EQ(with.replacement, 1u);
    EXPECT_NE(with.target, plan(0).target) << "which has its own part";
    EXPECT_NE(with.target, plan(1).target);
    ASSERT_EQ(with.shares.size(), 1u);
    EXPECT_EQ(with.shares[0].nodes, plan(1).shares[0].nodes) << "all of it";
    EXPECT_EQ(replace.addresses.size(), 1u);
    progress(1, {{with.part, 0, 0, 1000}});
    node.heard<message::Replace>(1);
    node.run(second);
    EXPECT_TRUE(node.heard<message::Replace>(1).empty()) << "it has said that it knows";
    done(0, plan(0), coverage(0, 0, image_bytes));
    done(1, with, coverage(1, 0, image_bytes));
    EXPECT_EQ(node.next<message::Ended>(1).code, Code::ok);
    ASSERT_TRUE(manifest().has_value());
    EXPECT_EQ(manifest()->parts[plan(1).part].file, part_file_name({plan(1).part, 2, attempt_id(), FileLayout::parts, 1}));
    EXPECT_EQ(manifest()->parts[plan(1).part].root, node.job->root_of(with.target));
    EXPECT_EQ(node.common.counters.attempts_failed, 0u);
}

TEST_F(ReplacerTest, WhoAsksAgainHearsItAgain) {
    fail(1);
    replacement(1);
    progress(1, {});  // it dropped the part by itself, and knows of no other
    for (int i = 0; i < 2; ++i) {
        node.heard<message::Replace>(1);
        fail(1);
        EXPECT_EQ(node.next<message::Replace>(1).with.size(), 1u);
    }
}

// Where one fails after the other, each is the part's next replacement; and none goes where one failed.
TEST_F(ReplacerTest, OneThatFailsIsReplacedAgainUntilNoTargetIsLeft) {
    fail(1);
    const PartPlan first = replacement(1).with.front();
    hear(1, message::PartFailed{attempt_id(), first.part, Code::deadline, "no answer"});
    const PartPlan second_one = replacement(1).with.front();
    EXPECT_EQ(second_one.number(), plan(1).part);
    EXPECT_EQ(second_one.replacement, 2u);
    EXPECT_EQ(second_one.target, plan(0).target);
    hear(1, message::PartFailed{attempt_id(), second_one.part, Code::io_error, "a third disk"});
    EXPECT_EQ(node.next<message::Leave>(1).attempt_id, attempt_id());
    EXPECT_EQ(node.common.counters.attempts_failed, 1u);
}

// What has just changed hands is in the part, or is not, and nothing is in two.
TEST_F(ReplacerTest, WaitsForWorkThatIsChangingHands) {
    node.run(10 * second);
    const auto tell = [&] {
        progress(1, {{plan(1).part, 12 * role_block, 0, role_block}});
        progress(0, {{plan(0).part, 0, 0, 4 * role_block}});
    };
    message::Shed shed;
    ASSERT_TRUE(node.run_until([&] {
        tell();
        const std::vector<message::Shed> asked = node.heard<message::Shed>(1);
        if (!asked.empty()) shed = asked.back();
        return !asked.empty();
    }, 10 * second));
    fail(1);
    node.run(second);
    for (const message::Replace& each : node.heard<message::Replace>(1)) EXPECT_TRUE(each.with.empty()) << "somebody may have given some of it away";
    const std::uint64_t left = image_bytes - 4 * role_block;
    hear(1, message::Given{attempt_id(), shed.move, {{plan(1).part, left, 4 * role_block, {{1, {{1, left, 4 * role_block}}}}}}});
    EXPECT_EQ(node.next<message::Take>(0).move, shed.move);
    EXPECT_EQ(replacement(1).with.front().shares[0].nodes, (std::vector<NodeSources>{{1, {{1, 0, left}}}}));
}

// Nor is it known what the part is that work is on its way to.
TEST_F(ReplacerTest, WaitsForWorkThatIsOnItsWayIn) {
    node.run(10 * second);
    message::Shed shed;
    ASSERT_TRUE(node.run_until([&] {
        progress(1, {{plan(1).part, 12 * role_block, 0, role_block}});
        progress(0, {{plan(0).part, 0, 0, 4 * role_block}});
        const std::vector<message::Shed> asked = node.heard<message::Shed>(1);
        if (!asked.empty()) shed = asked.back();
        return !asked.empty();
    }, 10 * second));
    fail(0);
    node.run(second);
    for (const message::Replace& each : node.heard<message::Replace>(0)) EXPECT_TRUE(each.with.empty()) << "somebody may be giving some work to it";
    hear(1, message::Given{attempt_id(), shed.move, {}});
    EXPECT_EQ(replacement(0).with.front().shares[0].nodes, plan(0).shares[0].nodes);
}

// Its files are complete when nobody can say any more that one is not.
TEST_F(ReplacerTest, NoWorkIsCalledCompleteWhileAPartHasNoFile) {
    fail(1);
    progress(1, {});
    progress(0, {{plan(0).part, 0, 0, 1000}});
    const PartPlan with = replacement(1).with.front();
    node.run(second);
    EXPECT_TRUE(node.heard<message::Complete>(0).empty());
    progress(1, {{with.part, 0, 0, 1000}});
    progress(0, {{plan(0).part, 0, 0, 1000}});
    EXPECT_EQ(node.next<message::Complete>(0).attempt_id, attempt_id());
}

// Another leader of the part did not hear that its share was kept, and took its target for dead.
TEST_F(ReplacerTest, APartThatItsFirstLeaderReportedIsNotReplaced) {
    PartPlan& part = node.flight->coordinator->contest->plan[plan(0).part];
    part.shares.push_back({1, part.range_bytes(), 0, {}});
    hear(1, message::PartFailed{attempt_id(), plan(0).part, Code::deadline, "no answer"});
    EXPECT_TRUE(node.next<message::Replace>(1).with.empty());
    done(0, plan(0), coverage(0, 0, image_bytes));  // before it heard of that
    node.run(second);
    hear(1, message::PartFailed{attempt_id(), plan(0).part, Code::deadline, "no answer"});
    EXPECT_EQ(node.next<message::Replace>(1).part, plan(0).part);
    done(1, plan(1), coverage(1, 0, image_bytes));
    EXPECT_EQ(node.next<message::Ended>(1).code, Code::ok);
    ASSERT_TRUE(manifest().has_value());
    EXPECT_EQ(manifest()->parts[plan(0).part].file, part_file_name({plan(0).part, 2, attempt_id(), FileLayout::parts, 0}));
}

TEST_F(ReplacerTest, OnlyALeaderOfThePartIsBelieved) {
    hear(0, message::PartFailed{attempt_id(), plan(1).part, Code::io_error, "not mine"});
    hear(0, message::PartFailed{attempt_id(), 7, Code::io_error, "none of the attempt's"});
    hear(1, message::PartFailed{{7, 7}, plan(1).part, Code::io_error, "another attempt's"});
    node.run(second);
    EXPECT_TRUE(node.heard<message::Replace>(0).empty());
    EXPECT_TRUE(node.heard<message::Replace>(1).empty());
    EXPECT_EQ(node.next<message::Leave>(1).attempt_id, (Id128{7, 7}));
}

}  // namespace
}  // namespace cairn::engine
