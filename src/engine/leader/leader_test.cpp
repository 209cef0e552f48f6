// The leader alone: it leads an attempt once, writes its part durably before it says so, gives and takes work, and ends when no more will come.
#include "engine/leader/leader.hpp"

#include "engine/role_testing.hpp"
#include "format/part.hpp"
#include "model/coverage.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::role_bytes;
using testing::RoleOptions;

// Node 1 of three leads; node 0 coordinates.
struct LeaderTest : ::testing::Test {
    static constexpr std::uint64_t blocks = 40, image_bytes = (blocks - 1) * role_block + 100;
    static constexpr Id128 attempt_id{7, 5};

    static RoleOptions options() {
        RoleOptions options;
        options.self = 1;
        options.settings.writers = 2;
        return options;
    }
    // Storage takes a block in 40 ms: most of the image is not begun for a while.
    static RoleOptions slow() {
        RoleOptions options = LeaderTest::options();
        options.settings.writers = 1;
        options.model.persistent_client_rate = 1e5;
        return options;
    }
    // Of one part that only it writes, with so much of its own image.
    static message::Lead lead_of(std::uint64_t bytes, std::uint64_t range_bytes) {
        message::Lead lead;
        lead.attempt = 1;
        lead.attempt_id = attempt_id;
        lead.parts_total = 1;
        lead.ranks_total = 3;
        lead.block_bytes = role_block;
        lead.parts = {{0, "", 0, {{1, 0, range_bytes, {{1, {{1, 0, bytes}}}}}}}};
        lead.images = {testing::role_image(1, image_bytes)};
        return lead;
    }
    static message::Lead whole() { return lead_of(image_bytes, blocks * role_block); }

    void hear(message::ForLeader body) {
        node->note_heard(0);
        node->subject.hear(node->flight, 0, std::move(body));
    }
    void begin(const RoleOptions& options, message::Lead lead) {
        node = std::make_unique<Alone<Leader>>(options);
        node->add_image(1, image_bytes);
        hear(std::move(lead));
    }
    void complete() { hear(message::Complete{attempt_id, {}}); }
    std::string path() const { return node->layout.part(node->flight->key, 0, 1, attempt_id); }
    Footer footer_of(const Bytes& file) {
        const std::uint64_t tail = file.size() - std::min<std::uint64_t>(file.size(), part_trailer_bytes);
        const Result<FooterPlace> place = decode_trailer(ByteView(file).subspan(tail), file.size());
        EXPECT_TRUE(place.ok()) << place.status().to_string();
        if (!place.ok()) return {};
        Result<Footer> footer = decode_footer(ByteView(file).subspan(place->offset, place->length), *place);
        EXPECT_TRUE(footer.ok()) << footer.status().to_string();
        return footer.ok() ? std::move(footer).value() : Footer();
    }
    // Every piece's bytes are where the footer says, and are what it says: so many bytes in all.
    std::uint64_t check_bytes(const Bytes& file, const Footer& footer) {
        const Bytes image = role_bytes(1, image_bytes);
        std::uint64_t sum = 0;
        for (const StoredRun& run : footer.runs)
            for (const StoredPiece& piece : run.pieces) {
                EXPECT_TRUE(testing::bytes_in(file, run.part_offset + piece.at, piece.length) == testing::bytes_in(image, piece.image_offset, piece.length));
                EXPECT_EQ(piece.checksums, testing::block_checksums(testing::bytes_in(image, piece.image_offset, piece.length)));
                EXPECT_EQ(run.part_offset % part_alignment, 0u);
                sum += piece.length;
            }
        return sum;
    }

    std::unique_ptr<Alone<Leader>> node;
};

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

TEST_F(LeaderTest, ShedGivesFromTheEndAndRemembersItsAnswer) {
    begin(slow(), whole());
    node->run(200 * millisecond);
    const std::uint64_t end = blocks * role_block;
    hear(message::Shed{attempt_id, 1, 0, 2, 3 * role_block});
    const message::Given given = node->next<message::Given>(0);
    const std::uint64_t first = (blocks - 3) * role_block, second_move = (blocks - 5) * role_block;
    EXPECT_EQ(given, (message::Given{attempt_id, 1, {{0, end - 3 * role_block, 3 * role_block, {{1, {{1, first, image_bytes - first}}}}}}}));
    hear(message::Shed{attempt_id, 2, 0, 2, 2 * role_block});
    const message::Given next = node->next<message::Given>(0);
    EXPECT_EQ(next, (message::Given{attempt_id, 2, {{0, end - 5 * role_block, 2 * role_block, {{1, {{1, second_move, 2 * role_block}}}}}}}));
    hear(message::Shed{attempt_id, 1, 0, 2, 3 * role_block});  // its answer was lost
    EXPECT_EQ(node->next<message::Given>(0), given);
    hear(message::Shed{{7, 6}, 3, 0, 2, role_block});  // of another attempt
    node->run(100 * millisecond);
    EXPECT_TRUE(node->heard<message::Given>(0).empty());
    complete();
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::ok) << done.text;
    const Bytes file = node->read(path()).value();
    const Footer footer = footer_of(file);
    EXPECT_EQ(check_bytes(file, footer), second_move);
    EXPECT_EQ(done.coverage, coverage(1, 0, second_move));
}

// More than there is: all that is not begun. After Complete, or of a part that it does not write: nothing, which is an answer, too.
TEST_F(LeaderTest, ShedGivesNoMoreThanIsNotBegun) {
    begin(slow(), whole());
    node->run(200 * millisecond);
    hear(message::Shed{attempt_id, 1, 7, 2, role_block});
    EXPECT_EQ(node->next<message::Given>(0), (message::Given{attempt_id, 1, {}}));
    hear(message::Shed{attempt_id, 2, 0, 2, 1000 * role_block});
    const message::Given given = node->next<message::Given>(0);
    ASSERT_EQ(given.work.size(), 1u);
    const std::uint64_t begun = given.work[0].offset;
    EXPECT_GT(begun, 0u);
    EXPECT_EQ(begun + given.work[0].bytes, blocks * role_block);
    hear(message::Shed{attempt_id, 3, 0, 2, role_block});
    EXPECT_TRUE(node->next<message::Given>(0).work.empty());
    complete();
    EXPECT_EQ(node->next<message::PartsDone>(0).coverage, coverage(1, 0, begun));
}

TEST_F(LeaderTest, ATakeIsWrittenOnceHoweverOftenItComes) {
    const std::uint64_t own = 10 * role_block;
    begin(slow(), lead_of(own, own));
    node->run(100 * millisecond);
    const message::Take take{attempt_id, 4, {{0, own, (blocks - 10) * role_block, {{1, {{1, own, image_bytes - own}}}}}}, {}};
    hear(take);
    EXPECT_EQ(node->next<message::Taken>(0), (message::Taken{attempt_id, 4}));
    node->run(millisecond);
    EXPECT_EQ(node->heard<message::Progress>(0).back().taken, 1u) << "the coordinator must know that its numbers know of it";
    hear(take);
    EXPECT_EQ(node->next<message::Taken>(0), (message::Taken{attempt_id, 4}));
    EXPECT_EQ(node->next<message::Progress>(0).taken, 1u);
    complete();
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::ok) << done.text;
    EXPECT_EQ(done.coverage, coverage(1, 0, image_bytes));
    const Bytes file = node->read(path()).value();
    EXPECT_EQ(check_bytes(file, footer_of(file)), image_bytes);
    EXPECT_EQ(node->common.counters.taken_over_bytes, image_bytes - own);
}

TEST_F(LeaderTest, ATakeOfAPartThatItDoesNotWriteFailsTheAttempt) {
    begin(slow(), whole());
    hear(message::Take{attempt_id, 1, {{3, 0, role_block, {{1, {{1, 0, role_block}}}}}}, {}});
    const message::PartsDone done = node->next<message::PartsDone>(0);
    EXPECT_EQ(done.code, Code::internal);
    EXPECT_FALSE(done.has_failed_part) << "storage is not to blame";
    EXPECT_TRUE(done.parts.empty());
    EXPECT_TRUE(node->heard<message::Taken>(0).empty());
}

// It would be written over what another leader writes, or goes round where so much is named.
TEST_F(LeaderTest, ATakeThatClaimsLessThanItNeedsFailsTheAttempt) {
    const std::vector<NodeSources> works[] = {{{1, {{1, 0, 2 * role_block}}}}, {{2, {{2, 0, 1ull << 60}, {2, 0, 15ull << 60}, {2, 0, role_block}}}}};
    for (const std::vector<NodeSources>& nodes : works) {
        begin(slow(), lead_of(role_block, role_block));
        hear(message::Take{attempt_id, 1, {{0, role_block, role_block, nodes}}, {}});
        const message::PartsDone done = node->next<message::PartsDone>(0);
        EXPECT_EQ(done.code, Code::internal);
        EXPECT_NE(done.text.find("takes more than the 4.00 KiB"), std::string::npos) << done.text;
        EXPECT_TRUE(node->heard<message::Taken>(0).empty());
        EXPECT_EQ(node->common.counters.taken_over_bytes, 0u);
    }
}

// Where cards decide, its own small images are its own data, too, in packs: they go by portions, and the next one when as much was sent as those have.
TEST_F(LeaderTest, ItsOwnSmallImagesChangeHandsByPortions) {
    constexpr std::uint64_t small = 1000;
    message::Lead lead = lead_of(image_bytes, 4 * blocks * role_block);
    lead.keep_own = true;
    lead.pack_bytes = role_block;
    lead.parts[0].shares[0].nodes = {{1, {{1, 0, image_bytes}}}, {2, {}}};
    for (Rank rank = 10; rank < 410; ++rank) {
        lead.parts[0].shares[0].nodes[rank % 2].sources.push_back({rank, 0, small});
        lead.images.push_back(testing::role_image(rank, small));
    }
    node = std::make_unique<Alone<Leader>>(slow());
    node->add_image(1, image_bytes);
    for (Rank rank = 10; rank < 410; rank += 2) node->add_image(rank, small);
    hear(lead);
    node->run(200 * millisecond);
    hear(message::Shed{attempt_id, 1, 0, 2, 1000 * role_block});
    const message::Given given = node->next<message::Given>(0);
    std::uint64_t own = 0;
    for (const message::Work& work : given.work) {
        EXPECT_EQ(packs_of(work.nodes, {role_block, role_block}).size(), 1u) << "packed anew, several might take more space than they have";
        for (const NodeSources& each : work.nodes)
            for (const Source& source : each.sources) own += each.node == 1 ? source.length : 0;
    }
    EXPECT_GT(own, 0u);
    EXPECT_LE(own, 16 * role_block) << "a portion: half a second of what it writes, or a little";
    hear(message::Shed{attempt_id, 2, 0, 2, 1000 * role_block});
    for (const message::Work& work : node->next<message::Given>(0).work)
        for (const NodeSources& each : work.nodes) EXPECT_NE(each.node, 1u) << "the first portion was not sent yet";
    const auto sent = node->subject.watch_send(*node->flight);
    sent(own);
    hear(message::Shed{attempt_id, 3, 0, 2, 1000 * role_block});
    EXPECT_FALSE(node->next<message::Given>(0).work.empty());
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
