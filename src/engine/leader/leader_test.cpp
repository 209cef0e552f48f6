// The leader alone: it leads an attempt once, writes its part durably before it says so, gives and takes work, and ends when no more will come.
#include "engine/leader/leader_testing.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::role_bytes;
using testing::RoleOptions;

struct LeaderTest : testing::LeaderAlone {};

TEST_F(LeaderTest, WritesAPartDurablyBeforeItSaysSo) {
    begin(options(), whole());
    complete();
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::ok) << done.text;
    const std::optional<Bytes> kept = node->durable(path());  // when the word arrives, if everybody's power went
    ASSERT_TRUE(kept.has_value());
    ASSERT_TRUE(kept == node->read(path())) << kept->size() << " bytes are durable";
    const Footer footer = footer_of(*kept);
    EXPECT_EQ(footer.key, node->flight->key);
    EXPECT_EQ(footer.attempt_id, attempt_id);
    EXPECT_EQ(footer.ranks, 3u);
    EXPECT_EQ(footer.data_bytes, blocks * role_block);
    EXPECT_EQ(footer.images, std::vector{testing::role_image(1, image_bytes)});
    EXPECT_EQ(check_bytes(*kept, footer), image_bytes);
    ASSERT_EQ(done.parts.size(), 1u);
    EXPECT_EQ(done.parts[0].bytes, kept->size());
    EXPECT_EQ(done.parts[0].footer_offset, footer.data_bytes);
    EXPECT_EQ(done.parts[0].footer_checksum, footer_checksum(ByteView(*kept).subspan(footer.data_bytes)));
    EXPECT_EQ(done.parts[0].ranks, std::vector<Rank>{1});
    EXPECT_EQ(done.coverage, coverage(1, 0, image_bytes));
}

// All is written: nothing is closed before the coordinator says that no more work will come. Its report is repeated until it is acknowledged.
TEST_F(LeaderTest, CompleteEndsItAndAcknowledgedEndsTheReport) {
    begin(options(), whole());
    node->run(20 * second);
    EXPECT_TRUE(node->heard<message::PartsDone>(0).empty());
    const message::Progress idle = node->heard<message::Progress>(0).back();
    EXPECT_EQ(idle.bytes, image_bytes);
    ASSERT_EQ(idle.parts.size(), 1u);
    EXPECT_EQ(idle.parts[0].unstarted_bytes + idle.parts[0].begun_bytes, 0u);
    complete();
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(node->next<message::PartsDone>(0), done);
    EXPECT_TRUE(node->subject.is_leading(*node->flight));
    hear(message::Acknowledged{{7, 6}});  // of another attempt
    node->next<message::PartsDone>(0);
    hear(message::Acknowledged{attempt_id});
    ASSERT_TRUE(node->run_until([&] { return !node->subject.is_leading(*node->flight); }, second));
    node->run(second);
    node->heard<message::PartsDone>(0);
    node->run(60 * second);
    EXPECT_TRUE(node->heard<message::PartsDone>(0).empty());
    EXPECT_TRUE(node->read(path()).has_value()) << "a manifest may name it";
    EXPECT_EQ(node->common.counters.leading, 0u);
}

TEST_F(LeaderTest, LeadsAnAttemptOnce) {
    node = std::make_unique<Alone<Leader>>(options());
    node->add_image(1, image_bytes);
    const std::vector<std::string>& operations = node->watch_operations();
    const auto created = [&] { return std::count(operations.begin(), operations.end(), "create " + path()); };
    hear(whole());
    hear(whole());  // repeated
    complete();
    node->next<message::PartsDone>(0);
    hear(message::Acknowledged{attempt_id});
    node->run(second);
    EXPECT_EQ(created(), 1);
    hear(whole());  // very late
    node->run(10 * second);
    EXPECT_FALSE(node->subject.is_leading(*node->flight));
    EXPECT_EQ(created(), 1);
    message::Lead other = whole();
    other.attempt_id = {7, 6};
    hear(other);
    node->run(second);
    EXPECT_TRUE(node->subject.is_leading(*node->flight)) << "another attempt is another matter";
}

TEST_F(LeaderTest, ALeaveBeforeItsLeadPreventsIt) {
    node = std::make_unique<Alone<Leader>>(options());
    node->add_image(1, image_bytes);
    hear(message::Leave{attempt_id});
    hear(whole());
    node->run(10 * second);
    EXPECT_FALSE(node->subject.is_leading(*node->flight));
    EXPECT_FALSE(node->read(path()).has_value());
    EXPECT_TRUE(node->heard<message::Progress>(0).empty());
}

// What nobody will name goes.
TEST_F(LeaderTest, LeavesAnAttemptAndRemovesItsPart) {
    begin(slow(), whole());
    node->run(200 * millisecond);
    EXPECT_TRUE(node->read(path()).has_value());
    hear(message::Leave{{7, 6}});  // another one: goes on
    node->run(100 * millisecond);
    EXPECT_TRUE(node->subject.is_leading(*node->flight));
    hear(message::Leave{attempt_id});
    node->run(60 * second);
    EXPECT_FALSE(node->subject.is_leading(*node->flight));
    EXPECT_FALSE(node->read(path()).has_value());
    EXPECT_LT(node->common.counters.written_bytes, image_bytes);
}

// Its receiver waits for a buffer, and all of them wait for a follower that says nothing: they come back at once, and the next attempt may need them.
TEST_F(LeaderTest, LeavesAtOnceThoughAllItsBuffersAreAskedFor) {
    RoleOptions few = options();
    few.settings.buffers = 2;
    few.settings.buffer_bytes = role_block;
    message::Lead lead = whole();
    lead.parts[0].shares[0].nodes = {{2, {{2, 0, image_bytes}}}};
    lead.images = {testing::role_image(2, image_bytes)};
    node = std::make_unique<Alone<Leader>>(few);
    lead.addresses = {{2, node->process(2).address()}};
    hear(lead);
    node->run(second);
    EXPECT_GE(node->heard<message::Want>(2).size(), 2u);
    hear(message::Leave{attempt_id});
    node->run(second);
    EXPECT_FALSE(node->subject.is_leading(*node->flight));
    EXPECT_EQ(node->process(1).buffer_bytes(), 2 * role_block);
}

TEST_F(LeaderTest, ANewerAttemptTakesThePlaceOfAnOlder) {
    begin(slow(), whole());
    node->run(200 * millisecond);
    message::Lead newer = whole();
    newer.attempt = 2;
    newer.attempt_id = {7, 6};
    hear(newer);
    complete();  // of the older
    hear(message::Complete{newer.attempt_id, {}});
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.attempt_id, newer.attempt_id);
    EXPECT_EQ(done.code, Code::ok) << done.text;
    EXPECT_FALSE(node->read(path()).has_value());
    EXPECT_TRUE(node->read(node->layout.part(node->flight->key, 0, 1, newer.attempt_id)).has_value());
}

TEST_F(LeaderTest, RefusesBlocksLargerThanItsBuffers) {
    RoleOptions small = options();
    small.settings.buffer_bytes = role_block / 2;
    begin(small, whole());
    message::PartsDone refused = node->next<message::PartsDone>(0);
    EXPECT_EQ(refused.attempt_id, attempt_id);
    EXPECT_EQ(refused.code, Code::invalid_argument);
    EXPECT_NE(refused.text.find("flush.buffer_bytes"), std::string::npos) << refused.text;
    EXPECT_FALSE(node->subject.is_leading(*node->flight));
    EXPECT_FALSE(node->read(path()).has_value());
    hear(whole());  // its answer was lost
    EXPECT_EQ(node->next<message::PartsDone>(0), refused);
}

TEST_F(LeaderTest, RefusesAPartOfWhichItHasNoShare) {
    message::Lead lead = whole();
    lead.parts[0].shares[0].leader = 2;
    begin(options(), lead);
    EXPECT_EQ(node->next<message::PartsDone>(0).code, Code::internal);
    lead = whole();
    lead.attempt_id = {7, 6};
    lead.parts[0].shares[0].nodes[0].node = 3;
    hear(lead);
    EXPECT_EQ(node->next<message::PartsDone>(0).code, Code::internal) << "data of a node that is none";
    EXPECT_FALSE(node->subject.is_leading(*node->flight));
}

// Storage that fails is told with its part, and what was written of it goes.
TEST_F(LeaderTest, AFailedWriteNamesItsPart) {
    node = std::make_unique<Alone<Leader>>(options());
    node->add_image(1, image_bytes);
    node->sim.faults().fsync_error = 1;
    hear(whole());
    complete();
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::io_error);
    EXPECT_TRUE(done.has_failed_part);
    EXPECT_EQ(done.failed_part, 0u);
    EXPECT_FALSE(done.has_lost);
    EXPECT_NE(done.text.find(path()), std::string::npos) << done.text;
    node->run(second);
    EXPECT_FALSE(node->read(path()).has_value());
}

// A coordinator that is gone for good keeps no leader for ever.
TEST_F(LeaderTest, GivesUpASilentCoordinator) {
    RoleOptions patient = options();
    patient.settings.version_wait = 30 * second;
    begin(patient, whole());
    node->run(29 * second);
    EXPECT_TRUE(node->subject.is_leading(*node->flight));
    ASSERT_TRUE(node->run_until([&] { return !node->subject.is_leading(*node->flight); }, 90 * second));
    EXPECT_FALSE(node->read(path()).has_value());
}

}  // namespace
}  // namespace cairn::engine
