// The part file alone: two leaders of one part. Who opens it when, whose share must be in before the footer, and what is found out when they do not have the
// same file.
#include "engine/leader/part_file.hpp"

#include "engine/role_testing.hpp"
#include "format/part.hpp"
#include "model/coverage.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::role_bytes;
using testing::RoleOptions;

struct PartFileAlone {
    explicit PartFileAlone(Common& c) : ring(c.world.clock, c.world.storage, c.settings.buffers, c.settings.buffer_bytes), part_file(c, ring) {}
    BufferRing ring;
    PartFile part_file;
};

// One part of eight blocks: nodes 1 and 2 lead, node 1 first, each with half of it and its own rank's image. One of them is under test.
struct PartFileTest : ::testing::Test {
    static constexpr std::uint64_t half = 4 * role_block;
    static constexpr Id128 attempt_id{7, 5};

    void begin(NodeIndex self, RoleOptions options = {}, const std::string& target = {}) {
        options.self = self;
        options.settings.buffer_bytes = 16 * role_block;
        node = std::make_unique<Alone<PartFileAlone>>(options);
        message::Lead lead = testing::role_lead(attempt_id);
        lead.parts = {{0, target, 4 * half, {{1, 0, half, {{1, {{1, 0, half}}}}}, {2, half, half, {{2, {{2, 0, half}}}}}}}};
        lead.images = {testing::role_image(1, half), testing::role_image(2, half)};
        lead.addresses = {{1, node->process(1).address()}, {2, node->process(2).address()}};
        attempt = std::make_shared<Attempt>(node->world, node->flight, lead);
        node->flight->leader = std::make_shared<LeaderSide>();
        node->flight->leader->leading = attempt;
        part().root = node->layout.root(node->job->roots, node->job->root_of(target));
        part().path = Layout::part_below(part().root, node->flight->key, {0, 1, attempt_id});
    }
    PartState& part() { return *attempt->parts.front(); }
    PartFile& part_file() { return node->subject.part_file; }
    static Task<void> keep(Task<Status> task, std::optional<Status>* out) {
        Status status = co_await task;
        *out = std::move(status);
    }
    void start_open() { node->gate.spawn(keep(part_file().open(*attempt, part()), &opened)); }
    void start_finish() { node->gate.spawn(keep(part_file().finish_share(*attempt, part()), &finished)); }
    static StoredRun run_of(Rank rank, std::uint64_t part_offset, std::uint64_t from = 0, std::uint64_t length = half) {
        return {part_offset, length, 0, 0, {{rank, from, length, 0, testing::block_checksums(testing::bytes_in(role_bytes(rank, half), from, length))}}};
    }
    // What the node's writers would have written and noted: its rank's image, at this offset.
    void write_own(Rank rank, std::uint64_t offset) {
        const Slice data = Slice::of(role_bytes(rank, half));
        const Status wrote = node->result_of(write_all(node->world.storage, part().file, offset, data, node->world.clock.in(second)));
        ASSERT_TRUE(wrote.ok()) << wrote.to_string();
        part().runs.push_back(run_of(rank, offset));
    }
    // The other leader writes its half, through its own machine.
    void write_as(NodeIndex other, Rank rank, std::uint64_t offset) {
        const auto task = [](World w, std::string path, std::uint64_t at, Slice data, OpenMode mode) -> Task<Status> {
            OpenOptions options;
            options.mode = mode;
            Result<FilePtr> file = co_await w.storage.open(std::move(path), options, w.clock.in(second));
            if (!file.ok()) co_return std::move(file).status();
            Status wrote = co_await write_all(w.storage, *file, at, std::move(data), w.clock.in(second));
            co_return wrote;
        };
        const OpenMode mode = other == 1 ? OpenMode::create : OpenMode::write;
        const Status wrote = node->result_of(task(node->process(other).world(), part().path, offset, Slice::of(role_bytes(rank, half)), mode));
        ASSERT_TRUE(wrote.ok()) << wrote.to_string();
    }
    void share_done(std::vector<StoredRun> runs, std::uint32_t piece = 0, std::uint32_t pieces = 1, message::Sample sample = {}) {
        part_file().on_share_done(*node->flight, 2, {attempt_id, 0, piece, pieces, role_block, std::move(runs), {}, sample});
    }
    static message::Sample sample_at(std::uint64_t offset, Rank rank, std::uint64_t from) {
        return {offset, role_block, testing::block_checksums(testing::bytes_in(role_bytes(rank, half), from, role_block)).front()};
    }

    std::unique_ptr<Alone<PartFileAlone>> node;
    std::shared_ptr<Attempt> attempt;
    std::optional<Status> opened, finished;
};

TEST_F(PartFileTest, TheFirstLeaderSizesTheFileBeforeItTellsTheOthers) {
    begin(1);
    const std::vector<std::string>& operations = node->watch_operations();
    start_open();
    EXPECT_EQ(node->next<message::Opened>(2), (message::Opened{attempt_id, 0}));
    ASSERT_TRUE(opened && opened->ok());
    EXPECT_EQ(node->read(part().path)->size(), 4 * half);
    const auto place = [&](const std::string& what) { return std::find(operations.begin(), operations.end(), what) - operations.begin(); };
    EXPECT_LT(place("create " + part().path), place("resize " + part().path));
    EXPECT_LT(place("resize " + part().path), place("send " + node->process(2).address()));
    part_file().tell_opened(*attempt, part());  // every heartbeat, until its share is in
    EXPECT_EQ(node->next<message::Opened>(2), (message::Opened{attempt_id, 0}));
    share_done({run_of(2, half)});
    part_file().tell_opened(*attempt, part());
    node->run(second);
    EXPECT_TRUE(node->heard<message::Opened>(2).empty());
}

TEST_F(PartFileTest, AFileThatDidNotGetItsSizeIsNotUsed) {
    RoleOptions options;
    options.faults.resize_lost = 1;
    begin(1, options);
    start_open();
    node->run(second);
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(opened->code(), Code::io_error);
    EXPECT_TRUE(node->heard<message::Opened>(2).empty());
}

TEST_F(PartFileTest, APartBelowARootIsReportedThere) {
    RoleOptions options;
    options.roots = {"/persistent/.a", "/persistent/.b"};
    begin(1, options, "/persistent/.b");
    start_open();
    node->run(second);
    ASSERT_TRUE(opened && opened->ok());
    EXPECT_EQ(part().path.rfind("/persistent/.b/series/1/part-", 0), 0u) << part().path;
    write_own(1, 0);
    write_as(2, 2, half);
    start_finish();
    share_done({run_of(2, half)}, 0, 1, sample_at(half, 2, 0));
    node->run(second);
    ASSERT_TRUE(finished && finished->ok());
    EXPECT_EQ(part().done->root, 2u);
}

TEST_F(PartFileTest, ARootThatIsAwayHereIsNamedAndWhoSawIt) {
    RoleOptions options;
    options.roots = {"/persistent/.a"};
    begin(1, options, "/persistent/.a");
    node->sim.faults().below = "/persistent/.a";
    node->sim.faults().below_is = sim::Faults::Below::away;
    start_open();
    node->run(second);
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(opened->code(), Code::unavailable);
    EXPECT_NE(opened->text().find("the coordinator, node 0 (n0, rank 0), has made its directory"), std::string::npos) << opened->text();
    EXPECT_FALSE(part().file) << "nothing to remove";
    EXPECT_TRUE(node->heard<message::Opened>(2).empty());
}

// Whoever holds the file removes it (lead.cpp).
TEST_F(PartFileTest, AFileWhoseTargetIsGoneIsStillThisLeaders) {
    RoleOptions options;
    options.model.target_rates = {1e9, 1e9};
    options.model.targets_gone = {1};
    begin(1, options, "1");
    node->common.targets = std::make_shared<PlacementTargets>(PlacementTargets{"sim", {"0", "1"}, std::string(sim::target_mark)});
    start_open();
    node->run(second);
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(opened->code(), Code::io_error);
    EXPECT_NE(opened->text().find("storage target 1 any more"), std::string::npos) << opened->text();
    EXPECT_TRUE(part().file);
    EXPECT_TRUE(node->heard<message::Opened>(2).empty());
}

TEST_F(PartFileTest, AnotherLeaderOpensOnlyAfterOpened) {
    begin(2);
    const std::vector<std::string>& operations = node->watch_operations();
    write_as(1, 1, 0);
    start_open();
    part_file().on_opened(*node->flight, {{7, 6}, 0});   // of another attempt
    part_file().on_opened(*node->flight, {attempt_id, 1});  // of another part
    node->run(10 * second);
    EXPECT_FALSE(opened.has_value());
    EXPECT_TRUE(operations.empty());
    part_file().on_opened(*node->flight, {attempt_id, 0});
    node->run(second);
    ASSERT_TRUE(opened && opened->ok());
    EXPECT_EQ(operations, std::vector<std::string>{"open " + part().path}) << "it creates nothing";
}

// It may be heard before the Lead.
TEST_F(PartFileTest, OpenedMayComeFirst) {
    begin(2);
    write_as(1, 1, 0);
    part_file().on_opened(*node->flight, {attempt_id, 0});
    start_open();
    node->run(second);
    EXPECT_TRUE(opened && opened->ok());
}

TEST_F(PartFileTest, AFirstLeaderThatNeverOpensIsNamed) {
    begin(2);
    start_open();
    ASSERT_TRUE(node->run_until([&] { return opened.has_value(); }, 300 * second));
    EXPECT_EQ(opened->code(), Code::unavailable);
    EXPECT_NE(opened->text().find("node 1 (n1, rank 1)"), std::string::npos) << opened->text();
    EXPECT_TRUE(part().blameless) << "its storage is not to blame";
}

TEST_F(PartFileTest, TheFooterComesWhenEveryShareIsIn) {
    begin(1);
    start_open();
    node->run(second);
    write_own(1, 0);
    write_as(2, 2, half);
    const std::vector<std::string>& operations = node->watch_operations();
    start_finish();
    node->run(60 * second);
    EXPECT_FALSE(finished.has_value());
    EXPECT_EQ(operations, std::vector<std::string>{"fsync " + part().path}) << "its own share; no footer while another's is missing";
    share_done({run_of(2, half, 0, role_block)}, 0, 2);
    EXPECT_EQ(node->next<message::ShareKept>(2), (message::ShareKept{attempt_id, 0, 0}));
    share_done({run_of(2, half, 0, role_block)}, 0, 2);  // its answer was lost
    EXPECT_EQ(node->next<message::ShareKept>(2), (message::ShareKept{attempt_id, 0, 0}));
    node->run(60 * second);
    EXPECT_FALSE(finished.has_value()) << "one of two pieces";
    share_done({run_of(2, half + role_block, role_block, half - role_block)}, 1, 2, sample_at(half, 2, 0));
    node->run(second);
    ASSERT_TRUE(finished.has_value());
    EXPECT_TRUE(finished->ok()) << finished->to_string();
    ASSERT_TRUE(part().done && part().durable);
    EXPECT_EQ(part().done->footer_offset, 2 * half);
    EXPECT_EQ(part().done->ranks, (std::vector<Rank>{1, 2}));
    EXPECT_EQ(part().coverage, coverage(1, 0, half) + coverage(2, 0, half));
    const Bytes file = node->read(part().path).value();
    EXPECT_EQ(file.size(), part().done->bytes) << "cut to what it is";
    const Result<FooterPlace> place = decode_trailer(ByteView(file).last(part_trailer_bytes), file.size());
    ASSERT_TRUE(place.ok()) << place.status().to_string();
    const Result<Footer> footer = decode_footer(ByteView(file).subspan(place->offset, place->length), *place);
    ASSERT_TRUE(footer.ok()) << footer.status().to_string();
    EXPECT_EQ(footer->runs, (std::vector{run_of(1, 0), run_of(2, half)})) << "what was cut for messages is joined again";
}

// Of two parts of its own the first needs the base.
TEST_F(PartFileTest, ABaseIsNeededWhereOnePartNeedsIt) {
    begin(1);
    node->flight->key.version = 10;
    const Status made = node->result_of(make_directories(node->world.storage, node->layout.persistent, node->layout.version(node->flight->key), node->world.clock.in(second)));
    ASSERT_TRUE(made.ok()) << made.to_string();
    message::Lead lead = attempt->lead;
    lead.codec = "predict-planes-zstd";
    lead.base = 9;
    lead.parts_total = 2;
    lead.images = {testing::role_image(1, half), testing::role_image(2, half)};
    lead.parts = {{0, "", 0, {{1, 0, half, {{1, {{1, 0, half}}}}}}}, {1, "", 0, {{1, 0, half, {{1, {{2, 0, half}}}}}}}};
    attempt = std::make_shared<Attempt>(node->world, node->flight, lead);
    node->flight->leader->leading = attempt;
    for (const Rank rank : {1u, 2u}) {
        PartState& own = *attempt->parts.at(rank - 1);
        own.root = node->layout.persistent;
        own.path = Layout::part_below(own.root, node->flight->key, {rank - 1, 2, attempt_id});
        const Status opened = node->result_of(part_file().open(*attempt, own));
        ASSERT_TRUE(opened.ok()) << opened.to_string();
        StoredRun run = run_of(rank, 0);
        if (rank == 1) run.codec = run.base = 1, run.stored_bytes = role_block;
        const Slice data = Slice::of(role_bytes(rank, run.stored_bytes));
        ASSERT_TRUE(node->result_of(write_all(node->world.storage, own.file, 0, data, node->world.clock.in(second))).ok());
        own.runs.push_back(run);
        const Status finished_it = node->result_of(part_file().finish_share(*attempt, own));
        ASSERT_TRUE(finished_it.ok()) << finished_it.to_string();
        EXPECT_EQ(own.needs_base, rank == 1);
    }
}

TEST_F(PartFileTest, AFileThatWasNotCutIsNotReported) {
    begin(1);
    start_open();
    node->run(second);
    write_own(1, 0);
    write_as(2, 2, half);
    share_done({run_of(2, half)}, 0, 1, sample_at(half, 2, 0));
    node->sim.faults().resize_lost = 1;
    start_finish();
    node->run(second);
    ASSERT_TRUE(finished.has_value());
    EXPECT_EQ(finished->code(), Code::io_error);
    EXPECT_NE(finished->text().find(" bytes, not the "), std::string::npos) << finished->to_string();
    EXPECT_FALSE(part().done.has_value());
}

// Another file system lies over persistent by then, with a directory of the same name.
TEST_F(PartFileTest, ADirectoryThatIsNotThePartsOwnMakesNothingDurable) {
    begin(1);
    start_open();
    node->run(second);
    write_own(1, 0);
    write_as(2, 2, half);
    share_done({run_of(2, half)}, 0, 1, sample_at(half, 2, 0));
    const std::string directory = node->layout.version(node->flight->key);
    for (std::size_t end = directory.find('/', 1);; end = directory.find('/', end + 1)) {
        (void)node->sim.other_persistent().make_directory(directory.substr(0, end), 0).ok();
        if (end == std::string::npos) break;
    }
    node->sim.set_observer([this](sim::Process& process, const char* what, const std::string&) {
        if (std::string("fsync_directory") == what) process.node().cover(true);
    });
    start_finish();
    node->run(second);
    ASSERT_TRUE(finished.has_value());
    EXPECT_EQ(finished->code(), Code::unavailable) << finished->to_string();
    EXPECT_NE(finished->text().find("another file system mounted there"), std::string::npos) << finished->text();
    EXPECT_TRUE(part().blameless);
    EXPECT_FALSE(part().done.has_value());
}

TEST_F(PartFileTest, AShareOfAnEarlierAttemptIsNoneOfThisOne) {
    begin(1);
    message::ShareDone late{{7, 4}, 0, 0, 1, role_block, {run_of(2, half)}, {}, {}};
    part_file().on_share_done(*node->flight, 2, std::move(late));
    node->run(second);
    EXPECT_TRUE(part().gathered.empty());
    EXPECT_TRUE(node->heard<message::ShareKept>(2).empty());
}

// It was said to the coordinator, so all pieces came: only the answer was lost.
TEST_F(PartFileTest, AShareIsAnsweredAlsoWhenThePartIsDone) {
    begin(1);
    node->flight->leader->leading.reset();
    share_done({run_of(2, half)});
    node->run(second);
    EXPECT_TRUE(node->heard<message::ShareKept>(2).empty()) << "an attempt that is not known here";
    node->flight->leader->reported = attempt_id;
    share_done({run_of(2, half)});
    EXPECT_EQ(node->next<message::ShareKept>(2), (message::ShareKept{attempt_id, 0, 0}));
}

// Two files of one name: what the other made durable is not in this one.
TEST_F(PartFileTest, AShareThatIsNotInTheFileFails) {
    begin(1);
    start_open();
    node->run(second);
    write_own(1, 0);
    start_finish();
    share_done({run_of(2, half)}, 0, 1, sample_at(half + role_block, 2, role_block));
    node->run(second);
    ASSERT_TRUE(finished.has_value());
    EXPECT_EQ(finished->code(), Code::io_error);
    EXPECT_NE(finished->text().find("two files of one name"), std::string::npos) << finished->text();
    EXPECT_NE(finished->text().find("node 2 (n2, rank 2)"), std::string::npos) << finished->text();
    EXPECT_FALSE(part().done.has_value());
    EXPECT_EQ(node->read(part().path)->size(), 4 * half) << "no footer";
}

// Also where it sent no sample: any block of its extents that a hole would not do for is looked at.
TEST_F(PartFileTest, WithoutASampleABlockIsLookedAt) {
    begin(1);
    start_open();
    node->run(second);
    write_own(1, 0);
    start_finish();
    share_done({run_of(2, half)});
    node->run(second);
    ASSERT_TRUE(finished.has_value());
    EXPECT_NE(finished->text().find("two files of one name"), std::string::npos) << finished->text();
}

TEST_F(PartFileTest, ARunThatIsEncodedToLittleIsLookedAtToo) {
    begin(1);
    start_open();
    node->run(second);
    write_own(1, 0);
    start_finish();
    StoredRun encoded = run_of(2, half);
    encoded.codec = 1;
    encoded.stored_bytes = 100;
    encoded.checksum = 7;
    share_done({encoded});
    node->run(second);
    ASSERT_TRUE(finished.has_value());
    EXPECT_NE(finished->text().find("two files of one name"), std::string::npos) << finished->text();
}

// Of a run of several pieces, of which the first is all zeros.
TEST_F(PartFileTest, WhatIsLookedAtMayLieInTheMiddleOfARun) {
    begin(1);
    start_open();
    node->run(second);
    write_own(1, 0);
    write_as(2, 2, half);
    start_finish();
    StoredRun pack = run_of(2, half, 0, role_block);
    pack.pieces[0].checksums = testing::block_checksums(Bytes(role_block));
    pack.pieces.push_back(run_of(2, half, role_block, half - role_block).pieces[0]);
    pack.pieces[1].at = role_block;
    pack.stored_bytes = half;
    share_done({pack});
    node->run(second);
    ASSERT_TRUE(finished.has_value());
    EXPECT_TRUE(finished->ok()) << finished->to_string();
}

TEST_F(PartFileTest, AShareThatNeverComesIsNamed) {
    RoleOptions options;
    options.settings.version_wait = 20 * second;
    begin(1, options);
    start_open();
    node->run(second);
    start_finish();
    ASSERT_TRUE(node->run_until([&] { return finished.has_value(); }, 60 * second));
    EXPECT_EQ(finished->code(), Code::unavailable);
    EXPECT_NE(finished->text().find("node 2 (n2, rank 2)"), std::string::npos) << finished->text();
    EXPECT_TRUE(part().blameless);
}

TEST_F(PartFileTest, AnotherLeaderSyncsAndThenRepeatsItsShareUntilItIsKept) {
    RoleOptions options;
    options.settings.limits.message_units = 3;
    begin(2, options);
    write_as(1, 1, 0);
    const Status named = node->result_of(node->world.storage.fsync_directory(node->layout.version(node->flight->key), node->world.clock.in(second)));
    ASSERT_TRUE(named.ok());
    part_file().on_opened(*node->flight, {attempt_id, 0});
    start_open();
    node->run(second);
    write_own(2, half);
    part().sample = sample_at(half, 2, 0);
    start_finish();
    message::ShareDone share = node->next<message::ShareDone>(1);
    const std::optional<Bytes> kept = node->durable(part().path);  // when the word arrives, if everybody's power went
    ASSERT_TRUE(kept && kept->size() == 2 * half);
    EXPECT_TRUE(testing::bytes_in(*kept, half, half) == role_bytes(2, half));
    EXPECT_EQ(share.pieces, 2u);
    EXPECT_EQ(share.sample, part().sample);
    part_file().on_share_kept(*node->flight, {attempt_id, 0, 0});
    part_file().on_share_kept(*node->flight, {{7, 6}, 0, 1});  // of another attempt
    node->run(10 * node->common.settings.heartbeat);
    const std::vector<message::ShareDone> again = node->heard<message::ShareDone>(1);
    ASSERT_GE(again.size(), 2u);
    EXPECT_EQ(again.back().piece, 1u) << "only what was not kept";
    EXPECT_EQ(again.back().runs, std::vector{run_of(2, half + 3 * role_block, 3 * role_block, role_block)});
    EXPECT_FALSE(finished.has_value());
    part_file().on_share_kept(*node->flight, {attempt_id, 0, 1});
    node->run(second);
    ASSERT_TRUE(finished && finished->ok());
    EXPECT_TRUE(part().durable);
    EXPECT_FALSE(part().done.has_value()) << "the footer is the first leader's";
    EXPECT_EQ(node->read(part().path)->size(), 2 * half);
}

// Whoever could not sync has nothing to say.
TEST_F(PartFileTest, AShareThatIsNotDurableIsNotSaid) {
    begin(2);
    write_as(1, 1, 0);
    part_file().on_opened(*node->flight, {attempt_id, 0});
    start_open();
    node->run(second);
    write_own(2, half);
    node->sim.faults().fsync_error = 1;
    start_finish();
    node->run(60 * second);
    ASSERT_TRUE(finished.has_value());
    EXPECT_EQ(finished->code(), Code::io_error);
    EXPECT_FALSE(part().durable);
    EXPECT_TRUE(node->heard<message::ShareDone>(1).empty());
}

}  // namespace
}  // namespace cairn::engine
