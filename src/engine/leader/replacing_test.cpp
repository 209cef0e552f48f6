// The leader alone, when the storage of one of its parts fails: the others go on, it says so until it is told what comes in its place, and what it writes there is the whole part.
#include "engine/leader/leader_testing.hpp"
#include "format/names.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::RoleOptions;
using Below = sim::Faults::Below;

// Node 1 leads two parts, each with half of its image, below two roots of which the second fails.
struct ReplacingTest : testing::LeaderAlone {
    static constexpr std::uint64_t half = blocks / 2 * role_block;
    static inline const std::vector<std::string> roots = {"/persistent/.a", "/persistent/.b", "/persistent/.c"};

    static message::Lead two_parts() {
        message::Lead lead = testing::role_lead(attempt_id);
        lead.parts_total = 2;
        lead.may_replace = true;
        lead.parts = {{0, "/persistent/.a", 0, {{1, 0, half, {{1, {{1, 0, half}}}}}}}, {1, "/persistent/.b", 0, {{1, 0, half, {{1, {{1, half, image_bytes - half}}}}}}}};
        lead.images = {testing::role_image(1, image_bytes)};
        return lead;
    }
    void begin_with(Below below_is, message::Lead lead = two_parts(), const std::string& root = "/persistent/.b") {
        RoleOptions options = LeaderAlone::options();
        options.roots = roots;
        options.files = 2;
        node = std::make_unique<Alone<Leader>>(options);
        node->add_image(1, image_bytes);
        node->sim.faults().below = root;
        node->sim.faults().below_is = below_is;
        hear(std::move(lead));
    }
    static message::Replace replace_with(std::uint64_t bytes = image_bytes - half) {
        PartPlan plan{2, "/persistent/.c", 0, {{1, 0, half, {{1, {{1, half, bytes}}}}}}, 1, 1};
        return {attempt_id, 1, {plan}, {}};
    }
    std::string file(std::uint32_t part, const std::string& root, std::uint32_t replacement = 0) const {
        return Layout::part_below(root, node->flight->key, {part, 2, attempt_id, FileLayout::parts, replacement});
    }
    static bool has_part(const message::Progress& progress, std::uint32_t part) {
        return std::any_of(progress.parts.begin(), progress.parts.end(), [&](const auto& each) { return each.part == part; });
    }
};

TEST_F(ReplacingTest, WhatComesInItsPlaceIsTheWholePart) {
    begin_with(Below::fails);
    const message::PartFailed failed = node->next<message::PartFailed>(0);
    EXPECT_EQ(failed.attempt_id, attempt_id);
    EXPECT_EQ(failed.part, 1u);
    EXPECT_EQ(failed.code, Code::io_error);
    EXPECT_NE(failed.text.find(file(1, "/persistent/.b")), std::string::npos) << failed.text;
    EXPECT_FALSE(has_part(node->next<message::Progress>(0), 1));
    node->heard<message::PartFailed>(0);
    EXPECT_EQ(node->next<message::PartFailed>(0).part, 1u) << "until somebody answers";
    hear(replace_with());
    EXPECT_TRUE(node->run_until([&] { return has_part(node->next<message::Progress>(0), 2); }, 10 * second));
    node->heard<message::PartFailed>(0);
    hear(replace_with());  // repeated
    complete();
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::ok) << done.text;
    EXPECT_EQ(done.coverage, coverage(1, 0, image_bytes)) << "what was written below the root that failed is not counted";
    ASSERT_EQ(done.parts.size(), 2u);
    EXPECT_EQ(done.parts[1].file, part_file_name({1, 2, attempt_id, FileLayout::parts, 1}));
    EXPECT_EQ(done.parts[1].root, 3u);
    EXPECT_TRUE(node->heard<message::PartFailed>(0).empty());
    const Bytes whole = node->read(file(1, "/persistent/.c", 1)).value();
    const Footer footer = footer_of(whole);
    EXPECT_EQ(footer.part, 1u);
    EXPECT_EQ(check_bytes(whole, footer), image_bytes - half);
}

// The parts below a root that does not answer would each wait for it.
TEST_F(ReplacingTest, ATargetThatHangsIsLeftWithAllItsPartsAtOnce) {
    message::Lead lead = two_parts();
    lead.parts[0].target = "/persistent/.b";
    begin_with(Below::hangs, lead);
    std::set<std::uint32_t> failed;
    ASSERT_TRUE(node->run_until([&] {
        for (const message::PartFailed& each : node->heard<message::PartFailed>(0)) failed.insert(each.part);
        return failed.size() == 2;
    }, node->common.settings.io_wait + second));
    EXPECT_TRUE(node->heard<message::PartsDone>(0).empty());
}

// Its directory is the kernel's until the call comes back: who removes the file there waits as long, and so does all else that this version has to make beside it.
TEST_F(ReplacingTest, AFileAtWhichACallHangsStays) {
    begin_with(Below::fails, two_parts(), "");
    ASSERT_TRUE(node->run_until([&] { return node->read(file(1, "/persistent/.b")).has_value(); }, 10 * second));
    const Nanos io_wait = node->common.settings.io_wait;
    sim::Faults& faults = node->sim.faults();
    faults.hang_io = 1;
    faults.hang_never = 0;
    faults.hang_io_min = 3 * io_wait;
    faults.hang_io_max = faults.hang_io_min + second;
    ASSERT_TRUE(node->run_until([&] {
        for (const message::PartFailed& each : node->heard<message::PartFailed>(0))
            if (each.part == 1) return each.code == Code::deadline;
        return false;
    }, 3 * io_wait));
    node->run(10 * io_wait);  // what hung has come back long ago
    EXPECT_TRUE(node->read(file(1, "/persistent/.b")).has_value());
}

// Dropped with another part of its target while its footer was being made durable: it is written again all the same, and nobody waits for it.
TEST_F(ReplacingTest, OneThatIsDurableAfterItWasDroppedIsNot) {
    begin_with(Below::fails, two_parts(), "");
    PartState& part = *node->flight->leader->leading->parts[1];
    complete();
    ASSERT_TRUE(node->run_until([&] { return part.sync_begun != 0; }, 10 * second));
    node->flight->leader->leading->drop(part);
    node->run(second);
    EXPECT_FALSE(part.durable);
    EXPECT_FALSE(node->read(file(1, "/persistent/.b")).has_value()) << "nobody will name it";
    hear(replace_with());
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::ok) << done.text;
    ASSERT_EQ(done.parts.size(), 2u);
    EXPECT_EQ(done.parts[1].root, 3u);
    EXPECT_EQ(done.coverage, coverage(1, 0, image_bytes));
}

// It may have gone on long before: what it has of the part counts no more, and it is done with it.
TEST_F(ReplacingTest, ALeaderThatIsNotTheFirstOneOnlyLetsGo) {
    message::Lead lead = two_parts();
    lead.parts[1].shares.insert(lead.parts[1].shares.begin(), {2, half, half, {}});  // node 2 is its first leader
    lead.addresses = {{2, ""}};
    begin_with(Below::fails, lead);
    node->sim.faults().below.clear();
    node->run(second);
    EXPECT_TRUE(node->heard<message::PartFailed>(0).empty()) << "it waits for the file";
    hear(message::Replace{attempt_id, 1, {}, {}});
    node->run(10 * second);
    EXPECT_TRUE(node->subject.is_leading(*node->flight));
    complete();
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::ok) << done.text;
    EXPECT_EQ(done.parts.size(), 1u);
}

// It may have given work away, and has to say so until the coordinator has heard it; and to say that it has nothing left.
TEST_F(ReplacingTest, ALeaderWithoutAPartStaysUntilNoWorkChangesHands) {
    message::Lead lead = two_parts();
    lead.parts.erase(lead.parts.begin());
    lead.parts[0].shares.insert(lead.parts[0].shares.begin(), {2, half, half, {}});
    lead.addresses = {{2, ""}};
    begin_with(Below::fails, lead);
    hear(message::Replace{attempt_id, 1, {}, {}});
    node->run(second);
    node->heard<message::Progress>(0);
    EXPECT_TRUE(node->next<message::Progress>(0).parts.empty()) << "with each heartbeat";
    hear(message::Shed{attempt_id, 1, 1, 2, role_block});
    EXPECT_TRUE(node->next<message::Given>(0).work.empty());
    complete();
    EXPECT_EQ(node->next<message::PartsDone>(0).code, Code::ok);
}

TEST_F(ReplacingTest, AFirstLeaderWaitsForThePlan) {
    begin_with(Below::fails);
    node->next<message::PartFailed>(0);
    hear(message::Replace{attempt_id, 1, {}, {}});
    complete();
    node->run(10 * second);
    EXPECT_TRUE(node->heard<message::PartsDone>(0).empty());
    hear(replace_with());
    EXPECT_EQ(node->next<message::PartsDone>(0).code, Code::ok);
}

// Nobody else would end its wait.
TEST_F(ReplacingTest, NotForeverForACoordinatorThatIsSilent) {
    begin_with(Below::fails);
    complete();
    node->next<message::PartFailed>(0);
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::unavailable);
    EXPECT_NE(done.text.find("fell silent"), std::string::npos) << done.text;
}

TEST_F(ReplacingTest, WhereNothingCanTakeItsPlaceTheAttemptFails) {
    message::Lead lead = two_parts();
    lead.may_replace = false;
    begin_with(Below::fails, lead);
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::io_error);
    EXPECT_TRUE(done.has_failed_part);
    EXPECT_EQ(done.failed_part, 1u);
    EXPECT_TRUE(node->heard<message::PartFailed>(0).empty());
}

TEST_F(ReplacingTest, WhatIsTakenForItMeanwhileIsNotWritten) {
    begin_with(Below::fails);
    node->next<message::PartFailed>(0);
    hear(message::Take{attempt_id, 1, {{1, 0, role_block, {{1, {{1, 0, role_block}}}}}}, {}});
    EXPECT_EQ(node->next<message::Taken>(0).move, 1u);
    hear(message::Shed{attempt_id, 2, 1, 2, role_block});
    EXPECT_TRUE(node->next<message::Given>(0).work.empty());
    hear(replace_with());
    complete();
    EXPECT_EQ(node->next<message::PartsDone>(0).coverage, coverage(1, 0, image_bytes));
}

TEST_F(ReplacingTest, APlanThatCanNotBeEndsTheAttempt) {
    begin_with(Below::fails);
    node->next<message::PartFailed>(0);
    hear(replace_with(half + role_block));  // more than its range
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::internal);
    EXPECT_NE(done.text.find("more data than that"), std::string::npos) << done.text;
}

}  // namespace
}  // namespace cairn::engine
