// Equal pages: what is found to be the same, what is worth sharing, and that every image keeps all of its bytes and its own checksums.
#include "engine/leader/equal_pages.hpp"

#include "copies/cpu_testing.hpp"
#include "engine/leader/leader_testing.hpp"
#include "engine/leader/writer_testing.hpp"

namespace cairn::engine {
namespace {

using testing::block_checksums;
using testing::bytes_in;
using testing::LeaderAlone;
using testing::role_block;
using testing::role_bytes;
using testing::RoleOptions;
using testing::WriterTest;

using Sums = std::vector<std::uint64_t>;

// Two blocks at least; each unit is a block.
constexpr EqualPagesLimits limits{2 * role_block, 1000, 1000, 1000, 1000};

struct EqualPagesTest : ::testing::Test {
    // Blocks of an image with these checksums.
    OwnBytes own(const Sums& sums, Rank rank, std::uint64_t first_block = 0) const { return {rank, first_block * role_block, sums.size() * role_block, sums, none}; }
    std::optional<std::size_t> keep(const Sums& sums, Rank rank, std::uint64_t first_block = 0) { return pages.keep(own(sums, rank, first_block), &memory); }
    // In blocks: each stretch, those that are found in brackets.
    std::string look(const Sums& sums, std::uint64_t first_block = 0) {
        std::string text;
        for (const EqualPages::Stretch& stretch : pages.look_through(own(sums, 9, first_block))) {
            EXPECT_EQ(stretch.length, stretch.units * role_block);
            EXPECT_EQ(stretch.offset, stretch.first_unit * role_block);
            if (stretch.matches.empty()) text += std::to_string(stretch.units) + " ";
            else text += "[";
            for (const EqualPages::Match& match : stretch.matches)
                text += std::to_string(match.units) + " at " + std::to_string(match.at / role_block) + " of " + std::to_string(match.place) + (&match == &stretch.matches.back() ? "] " : ", ");
        }
        return text;
    }

    const Sums none;
    BytesBuffer memory{Bytes(1)};
    EqualPages pages{role_block, limits};
};

TEST_F(EqualPagesTest, NothingIsKnownAtFirst) { EXPECT_EQ(look({1, 2, 3}), "3 "); }

TEST_F(EqualPagesTest, WhereverItLies) {
    keep({1, 2, 3, 4}, 0, 10);
    EXPECT_EQ(look({7, 8, 2, 3, 4, 9}, 5), "2 [3 at 1 of 0] 1 ");
    EXPECT_EQ(look({1, 2, 3, 4}), "[4 at 0 of 0] ");
    EXPECT_EQ(look({4, 3, 7, 1, 2}), "[1 at 3 of 0, 1 at 2 of 0] 1 [2 at 0 of 0] ");
}

TEST_F(EqualPagesTest, AShortStretchIsNotWorthIt) {
    keep({1, 2, 3, 4}, 0);
    EXPECT_EQ(look({7, 2, 8}), "3 ");
    EXPECT_EQ(look({2}), "[1 at 1 of 0] ") << "unless there is no more";
}

TEST_F(EqualPagesTest, NorAreManyShortPieces) {
    EqualPagesLimits longer = limits;
    longer.stretch_bytes = 4 * role_block;
    pages = EqualPages(role_block, longer);
    keep({1, 2, 3, 4, 5, 6, 7, 8}, 0);
    EXPECT_EQ(look({9, 4, 3, 2, 1}), "5 ");
    EXPECT_EQ(look({9, 3, 4, 1, 2}), "1 [2 at 2 of 0, 2 at 0 of 0] ");
}

TEST_F(EqualPagesTest, AStretchMayLieInSeveralPlaces) {
    keep({1, 2, 3}, 0);
    keep({4, 5, 6}, 1, 4);
    EXPECT_EQ(look({2, 3, 4, 5, 7}), "[2 at 1 of 0, 2 at 0 of 1] 1 ");
}

// Of units that repeat themselves the newest run of them is found, so that pieces are long.
TEST_F(EqualPagesTest, ZerosAreFoundInLongRuns) {
    keep({1, 0, 2}, 0);
    keep({0, 0, 0, 0, 3}, 1);
    keep({5, 0, 6}, 2);
    EXPECT_EQ(look({0, 0, 0, 0, 0, 0, 8}), "[4 at 0 of 1, 2 at 0 of 1] 1 ");
}

TEST_F(EqualPagesTest, AUnitOfAnotherLengthIsAnother) {
    keep({1, 2, 3}, 0);
    const Sums sums = {2, 3};
    const OwnBytes shorter{9, 0, role_block + 100, sums, none};
    ASSERT_EQ(pages.look_through(shorter).size(), 1u);
    EXPECT_TRUE(pages.look_through(shorter).front().matches.empty());
    const Sums cut = {role_block / 2};
    const Sums halves = {1, 2, 3, 4};
    EXPECT_TRUE(pages.look_through({9, 0, 3 * role_block, halves, cut}).front().matches.empty());
}

TEST_F(EqualPagesTest, CutsGoWithTheirPieces) {
    const Sums cuts = {role_block + 100}, sums = {1, 2, 3, 4};
    const OwnBytes first{0, 0, 3 * role_block, sums, cuts};
    pages.written(pages.keep(first, &memory).value(), 0);
    const Sums later_cuts = {5 * role_block + 100};
    const OwnBytes other{1, 4 * role_block, 3 * role_block, sums, later_cuts};
    const auto found = pages.look_through(other);
    ASSERT_EQ(found.size(), 1u);
    ASSERT_TRUE(pages.share(found.front().matches, other));
    std::vector<StoredRun> runs = {{0, 3 * role_block, 0, 0, {{0, 0, 3 * role_block, 0, sums, cuts}}}};
    ASSERT_TRUE(pages.attach(runs).ok());
    ASSERT_EQ(runs[0].pieces.size(), 2u);
    EXPECT_EQ(runs[0].pieces[1], (StoredPiece{1, 4 * role_block, 3 * role_block, 0, sums, later_cuts}));
    EXPECT_EQ(pages.shared_bytes(), 3 * role_block);
}

TEST_F(EqualPagesTest, BoundsAreKept) {
    EqualPagesLimits few = limits;
    few.units = 4;
    pages = EqualPages(role_block, few);
    keep({1, 2, 3}, 0);
    keep({4, 5, 6}, 1);
    EXPECT_EQ(look({4, 5, 1, 2}), "2 [2 at 0 of 0] ") << "what came when the bound was reached gives no place";
    few = limits;
    few.run_units = 5;
    pages = EqualPages(role_block, few);
    keep({1, 2, 3}, 0);
    const Sums two = {1, 2};
    EXPECT_TRUE(pages.share(pages.look_through(own(two, 1)).front().matches, own(two, 1)));
    EXPECT_FALSE(pages.share(pages.look_through(own(two, 2)).front().matches, own(two, 2)));
    few = limits;
    few.run_pieces = 2;
    pages = EqualPages(role_block, few);
    keep({1, 2, 3}, 0);
    EXPECT_TRUE(pages.share(pages.look_through(own(two, 1)).front().matches, own(two, 1)));
    EXPECT_FALSE(pages.share(pages.look_through(own(two, 2)).front().matches, own(two, 2)));
    few = limits;
    few.pieces = 1;
    pages = EqualPages(role_block, few);
    keep({1, 2}, 0);
    keep({3, 4}, 0, 2);
    EXPECT_TRUE(pages.share(pages.look_through(own(two, 1)).front().matches, own(two, 1)));
    const Sums others = {3, 4};
    EXPECT_FALSE(pages.share(pages.look_through(own(others, 1)).front().matches, own(others, 1)));
    EXPECT_EQ(pages.shared_bytes(), 2 * role_block);
}

// Each unit is remembered with its place, also one that is known already.
TEST_F(EqualPagesTest, UnitsThatRepeatThemselvesCountToo) {
    EqualPagesLimits few = limits;
    few.units = 7;
    pages = EqualPages(role_block, few);
    EXPECT_TRUE(keep({0, 0, 0}, 0));
    EXPECT_TRUE(keep({0, 0, 0, 0}, 1));
    EXPECT_FALSE(keep({0}, 2));
}

TEST_F(EqualPagesTest, WhereMemoryDoesNotComeBackNothingMoreIsFound) {
    keep({1, 2, 3}, 0);
    ASSERT_EQ(look({1, 2}), "[2 at 0 of 0] ");
    pages.forget();
    EXPECT_EQ(look({1, 2}).find("at"), std::string::npos);
    EXPECT_FALSE(keep({4, 5}, 1));
}

TEST_F(EqualPagesTest, WhatIsSharedMustHaveBeenWritten) {
    keep({1, 2, 3}, 0);
    const Sums two = {1, 2};
    ASSERT_TRUE(pages.share(pages.look_through(own(two, 1)).front().matches, own(two, 1)));
    std::vector<StoredRun> runs;
    EXPECT_EQ(pages.attach(runs).code(), Code::internal);
}

TEST_F(EqualPagesTest, ManyAreFoundAgain) {
    constexpr std::uint64_t count = 900;
    for (std::uint64_t i = 0; i < count; i += 3) keep({i * 1'000'003, (i + 1) * 1'000'003, (i + 2) * 1'000'003}, 0, i);
    for (std::uint64_t i = 0; i < count; i += 3) EXPECT_EQ(look({(i + 1) * 1'000'003, (i + 2) * 1'000'003}), "[2 at 1 of " + std::to_string(i / 3) + "] ");
}

// Ranks 1 and 2 are node 1's. Rank 2 has a page of its own, then all of rank 1's but its end, then something else.
struct EqualImages : LeaderAlone {
    static constexpr std::uint64_t equal_blocks = 30, tail = 5 * role_block + 50, other_bytes = (1 + equal_blocks) * role_block + tail;
    static Bytes other() {
        Bytes bytes = bytes_in(role_bytes(90, role_block), 0, role_block);
        const Bytes equal = bytes_in(role_bytes(1, image_bytes), 2 * role_block, equal_blocks * role_block), own = role_bytes(78, tail);
        bytes.insert(bytes.end(), equal.begin(), equal.end());
        bytes.insert(bytes.end(), own.begin(), own.end());
        return bytes;
    }
    static message::Lead both() {
        message::Lead lead = testing::role_lead(attempt_id);
        lead.parts = {{0, "", 0, {{1, 0, 100 * role_block, {{1, {{1, 0, image_bytes}, {2, 0, other_bytes}}}}}}}};
        lead.images = {testing::role_image(1, image_bytes), testing::role_image(2, other_bytes)};
        lead.equal_pages = true;
        return lead;
    }
    static RoleOptions options() {
        RoleOptions options = LeaderAlone::options();
        options.ranks = {{0}, {1, 2}, {3}};
        options.settings.limits.equal_stretch_bytes = 2 * role_block;
        return options;
    }
    // Simulated codecs make nothing shorter but what is described.
    static Slice described_other() {
        sim::Runs runs;
        for (const sim::Runs& each : {sim::runs_of_description(90, 0, role_block), sim::runs_of_description(1, 2 * role_block, equal_blocks * role_block), sim::runs_of_description(78, 0, tail)})
            runs.insert(runs.end(), each.begin(), each.end());
        return sim::slice_of(runs);
    }
    void lead(const RoleOptions& options, const message::Lead& lead, bool is_described = false) {
        node = std::make_unique<testing::Alone<Leader>>(options);
        LocalImage first = node->image_of(1, image_bytes), second = node->image_of(2, other_bytes);
        if (is_described) first.data = sim::describe(1, image_bytes);
        second.data = is_described ? described_other() : Slice::of(other());
        node->flight->images.emplace(1, held_image(std::move(first)));
        node->flight->images.emplace(2, held_image(std::move(second)));
        hear(lead);
        complete();
        done = node->next<message::PartsDone>(0);
    }
    // Where footers say that images lie, there are their bytes, with their own checksums; how much is stored.
    std::uint64_t check() {
        EXPECT_EQ(done.code, Code::ok) << done.text;
        const Bytes file = node->read(path()).value();
        footer = footer_of(file);
        std::map<Rank, std::uint64_t> sums;
        std::uint64_t stored = 0;
        for (const StoredRun& run : footer.runs) {
            stored += run.stored_bytes;
            for (const StoredPiece& piece : run.pieces) {
                const Bytes image = piece.rank == 1 ? role_bytes(1, image_bytes) : other();
                const Bytes bytes = bytes_in(image, piece.image_offset, piece.length);
                EXPECT_TRUE(bytes_in(file, run.part_offset + piece.at, piece.length) == bytes) << piece.rank << " at " << piece.image_offset;
                EXPECT_EQ(piece.checksums, block_checksums(bytes));
                sums[piece.rank] += piece.length;
            }
        }
        EXPECT_EQ(sums[1], image_bytes);
        EXPECT_EQ(sums[2], other_bytes);
        EXPECT_EQ(done.coverage, coverage(1, 0, image_bytes) + coverage(2, 0, other_bytes));
        EXPECT_EQ(stored, image_bytes + other_bytes - done.equal_bytes);
        EXPECT_LT(file.size(), stored + 60 * role_block) << "no gap for what was not written";
        for (const auto& [rank, image] : node->flight->images) EXPECT_EQ(image.users, 0u);
        return stored;
    }

    message::PartsDone done;
    Footer footer;
};

TEST_F(EqualImages, AreStoredOnce) {
    lead(options(), both());
    check();
    EXPECT_GE(done.equal_bytes, 20 * role_block);
    EXPECT_LE(done.equal_bytes, equal_blocks * role_block);
    EXPECT_EQ(node->subject.is_leading(*node->flight), true) << "until it is acknowledged";
}

TEST_F(EqualImages, NotWithoutBeingAsked) {
    message::Lead apart = both();
    apart.equal_pages = false;
    lead(options(), apart);
    EXPECT_EQ(check(), image_bytes + other_bytes);
}

// They are what is encoded, and no ratio counts them.
TEST_F(EqualImages, AreSharedBeforeACodec) {
    RoleOptions encoding = options();
    encoding.model.codec_shrinks = true;
    encoding.model.stored_min = encoding.model.stored_max = 0.5;
    encoding.settings.buffers = 4;
    message::Lead coded = both();
    coded.codec = "zero-runs";
    lead(encoding, coded, true);
    ASSERT_EQ(done.code, Code::ok) << done.text;
    EXPECT_GT(done.equal_bytes, 0u);
    ASSERT_FALSE(done.codecs.empty());
    EXPECT_LE(done.codecs[0].raw_bytes, image_bytes + other_bytes - done.equal_bytes);
    footer = footer_of(node->read(path()).value());
    bool is_shared_encoded = false;
    for (const StoredRun& run : footer.runs) is_shared_encoded |= run.codec != 0 && run.pieces.size() > 1;
    EXPECT_TRUE(is_shared_encoded);
}

// Ranks 1 and 3 of node 1 have the same bytes.
struct AlikeTest : WriterTest {
    std::uint64_t stored_bytes(bool differs) {
        message::Lead lead = WriterTest::lead();
        lead.equal_pages = true;
        lead.parts[0].shares[0].nodes = {{1, {{1, 0, own_bytes}, {3, 0, own_bytes}}}};
        lead.parts[0].shares[0].bytes = 40 * role_block;
        RoleOptions options;
        options.ranks = {{0}, {1, 3}, {2}};
        options.settings.limits.equal_stretch_bytes = role_block;
        begin(options, lead);
        LocalImage same = node->image_of(1, own_bytes);
        same.header.rank = 3;
        node->flight->images.emplace(3, held_image(std::move(same)));
        testing::WatchedCpu cpu(node->world.cpu);
        cpu.differs = differs;
        Gate gate(node->world.clock);
        FlushSettings settings = options.settings;
        settings.buffer_bytes = 2 * role_block;
        Common common(testing::with_cpu(node->world, cpu), node->layout, settings, gate);
        testing::WriterAlone alone(common);
        end_of_received();
        gate.spawn(keep(alone.writer.write_loop(*attempt, part(), 0), &ended));
        node->run(second);
        EXPECT_TRUE(ended && attempt->failure.ok()) << attempt->failure.to_string();
        EXPECT_GT(cpu.comparisons, 0);
        EXPECT_EQ(attempt->written_bytes, 2 * own_bytes);
        std::uint64_t stored = 0;
        for (const StoredRun& run : part().runs) stored += run.stored_bytes;
        EXPECT_EQ(part().equal_pages->shared_bytes(), 2 * own_bytes - stored);
        return stored;
    }
};

TEST_F(AlikeTest, WhatIsTheSameIsWrittenOnce) { EXPECT_EQ(stored_bytes(false), own_bytes); }

// Of a checksum alone nothing follows.
TEST_F(AlikeTest, WhatOnlyLooksTheSameIsWritten) { EXPECT_EQ(stored_bytes(true), 2 * own_bytes); }

// An image that took the place of the one whose bytes were written is another one, whatever it says.
TEST_F(WriterTest, AnImageThatIsNotThereAnyMoreGivesNoPlace) {
    message::Lead lead = WriterTest::lead();
    lead.equal_pages = true;
    lead.parts[0].shares[0].nodes = {{1, {{1, 0, own_bytes}}}};
    lead.parts[0].shares[0].bytes = 40 * role_block;
    RoleOptions options;
    options.settings.limits.equal_stretch_bytes = role_block;
    begin(options, lead);
    const Bytes image = role_bytes(1, own_bytes);
    const Sums sums = block_checksums(image), none;
    BytesBuffer another{Bytes(image)};
    part().equal_pages->written(part().equal_pages->keep({1, 0, own_bytes, sums, none}, &another).value(), 0);
    end_of_received();
    start();
    node->run(second);
    EXPECT_TRUE(ended && attempt->failure.ok());
    EXPECT_EQ(part().equal_pages->shared_bytes(), 0u);
    std::uint64_t stored = 0;
    for (const StoredRun& run : part().runs) stored += run.stored_bytes;
    EXPECT_EQ(stored, own_bytes);
}

}  // namespace
}  // namespace cairn::engine
