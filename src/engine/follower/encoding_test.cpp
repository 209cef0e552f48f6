// The follower alone, asked for bytes that are encoded: what goes out, what is said of it, and that nothing of it keeps anybody from having the bytes raw.
#include "engine/follower/follower.hpp"
#include "engine/role_testing.hpp"
#include "world/sim/encoding.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;
using testing::RoleOptions;

// Nobody here leads; what the follower says of what went is kept.
struct EncodingAlone : Follower {
    explicit EncodingAlone(Common& c) : Follower(c, [this](Flight&) { return [this](std::uint64_t bytes, std::uint64_t raw) { told.emplace_back(bytes, raw); }; }) {}
    std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
};

// Node 1 of three, whose rank 1 has an image that a codec makes shorter; node 2 leads.
struct EncodingTest : ::testing::Test {
    static constexpr std::uint64_t image_bytes = 6 * role_block;
    static constexpr Source source{1, 2 * role_block, 4 * role_block};
    static RoleOptions options() {
        RoleOptions options;
        options.self = 1;
        options.settings.encode_buffers = 1;
        options.settings.buffer_bytes = 4 * role_block;
        options.model.codec_shrinks = true;
        options.model.stored_min = 0.3;
        options.model.stored_max = 0.5;
        return options;
    }
    void begin(const RoleOptions& options = EncodingTest::options()) {
        node = std::make_unique<Alone<EncodingAlone>>(options);
        node->add_image(1, image_bytes);
        scratch->write(0, sim::runs_of_description(1, 0, image_bytes));
        node->flight->images.at(1).image.data = {std::make_shared<sim::SimBuffer>(scratch, image_bytes), 0, image_bytes};
        operations = &node->watch_operations();
    }
    // Asks as a leader on node 2 does, which has posted room for it.
    Slice ask(std::uint64_t tag, std::string codec = "zero-runs", Version base = 0, KeyEfforts keys = {}) {
        const World leader = node->process(2).world();
        const Slice room{leader.storage.allocate(source.length).value(), 0, source.length};
        EXPECT_TRUE(leader.network.post_payload(tag, room).ok());
        node->note_heard(2);
        node->subject.hear(node->flight, 2, node->process(2).address(), message::Want{tag, source, Reason::flush, std::move(codec), base, std::move(keys)});
        return room;
    }
    // Version 9 of the job, whose image of rank 1 is in scratch still.
    FlightPtr add_base(bool is_right = true) {
        auto older = std::make_shared<Flight>(node->world, VersionKey{"series", 9, {7, 1}}, node->job);
        older->state.level = Level::committed;
        older_scratch->write(0, sim::runs_of_description(9, 0, image_bytes));
        LocalImage image = node->image_of(1, image_bytes);
        image.data = {std::make_shared<sim::SimBuffer>(older_scratch, image_bytes), 0, image_bytes};
        image.checksums = node->result_of(node->world.cpu.checksums(image.data, role_block));
        if (!is_right) ++image.checksums[3];
        older->images.emplace(1, held_image(std::move(image)));
        node->job->base = 9;
        node->job->base_flight = older;
        return older;
    }
    message::Chunk next() {
        message::Chunk chunk = node->next<message::Chunk>(2);
        node->run(second);
        return chunk;
    }
    Slice wanted() const { return sim::describe(1, source.length, source.image_offset); }
    // It holds the raw bytes, and the answer said so.
    void expect_raw(const message::Chunk& chunk, const Slice& room, const std::string& what) {
        EXPECT_EQ(chunk.code, Code::ok) << what << ": " << chunk.text;
        EXPECT_EQ(chunk.stored_bytes, 0u) << what;
        EXPECT_EQ(chunk.stored_checksum, 0u) << what;
        EXPECT_EQ(chunk.checksums, raw_checksums()) << what;
        EXPECT_TRUE(sim::content_equal(room, wanted())) << what;
        EXPECT_EQ(node->subject.told.back(), std::pair(source.length, source.length)) << what;
    }
    void expect_encoded(const message::Chunk& chunk, const Slice& room) {
        ASSERT_GT(chunk.stored_bytes, 0u) << chunk.text;
        EXPECT_LE(chunk.stored_bytes, source.length / 2);
        const Slice stored = room.part(0, chunk.stored_bytes);
        const World leader = node->process(2).world();
        EXPECT_EQ(node->result_of(leader.cpu.checksums(stored, stored.length)).front(), chunk.stored_checksum);
        const std::optional<sim::Runs> raw = sim::decode_runs(sim::runs_of(stored), sim::Runs(), source.length);
        EXPECT_TRUE(raw && sim::content_equal(sim::slice_of(*raw), wanted()));
        EXPECT_EQ(chunk.checksums, raw_checksums()) << "those of the raw bytes, whatever travels";
        EXPECT_EQ(node->subject.told.back(), std::pair(chunk.stored_bytes, source.length));
    }
    std::vector<std::uint64_t> raw_checksums() { return node->result_of(node->world.cpu.checksums(wanted(), role_block)); }
    std::ptrdiff_t did(const std::string& what) const {
        return std::count_if(operations->begin(), operations->end(), [&](const auto& each) { return each.rfind(what, 0) == 0; });
    }

    std::shared_ptr<sim::Content> scratch = std::make_shared<sim::Content>(), older_scratch = std::make_shared<sim::Content>();
    std::unique_ptr<Alone<EncodingAlone>> node;
    const std::vector<std::string>* operations = nullptr;
};

TEST_F(EncodingTest, SendsWhatIsAskedForEncoded) {
    begin();
    const Slice room = ask(11);
    const message::Chunk chunk = next();
    expect_encoded(chunk, room);
    EXPECT_EQ(node->common.counters.sent_bytes, chunk.stored_bytes);
    EXPECT_EQ(node->common.pace.counters().out_bytes, chunk.stored_bytes) << "what did not go through the card does not count";
    EXPECT_EQ(node->common.pace.under_way_out(), 0u);
    EXPECT_EQ(node->flight->images.at(1).users, 0u);
    node->subject.hear(node->flight, 2, node->process(2).address(), message::Want{11, source, Reason::flush, "zero-runs"});
    EXPECT_EQ(next(), chunk);
    EXPECT_EQ(did("payload "), 1);
    EXPECT_EQ(did("encode "), 1);
    const Slice other = ask(12);
    expect_encoded(next(), other);  // its buffer came back
}

TEST_F(EncodingTest, DataOfAKeyAreEncodedAsTheRequestSays) {
    RoleOptions keyed = options();
    keyed.model.codec_keys = {{1, 1e9, 0.3, 0.5}};
    keyed.settings.encode_at = EncodeAt::leader;
    const KeyEfforts leaving{{1, Effort::none}};
    for (const Version base : {0, 9}) {
        begin(keyed);
        const FlightPtr older = add_base();
        const Slice encoded = ask(11, "predict-planes-zstd", base);
        const message::Chunk chunk = next();
        EXPECT_GT(chunk.stored_bytes, 0u);
        EXPECT_EQ(chunk.needs_base, base != 0);
        if (base == 0) expect_encoded(chunk, encoded);
        const Slice left = ask(12, "predict-planes-zstd", base, leaving);
        expect_raw(next(), left, "its key is left as it is");
    }
}

// Who leads encodes it, and does not have the image that says what lies in it.
TEST_F(EncodingTest, WhatIsKnownOfRawBytesIsToldToWhoAsks) {
    begin();
    LocalImage image = node->flight->images.at(1).image;
    Region field, tail;
    field.name = "field", field.offset = 8, field.length = 3 * role_block, field.type = DataType::f64, field.shape = {role_block / 4, 12};
    tail.name = "tail", tail.offset = 4 * role_block, tail.length = 2 * role_block, tail.type = DataType::i16, tail.shape = {role_block};
    image.header.image.regions = {field, tail};
    node->flight->images.insert_or_assign(1, held_image(image));
    const std::vector<NumberArray> known = within(node->flight->images.at(1).arrays->in({1, 0, image_bytes}), source.image_offset, source.length);
    ASSERT_EQ(known.size(), 2u);
    std::set<std::uint64_t> asked;
    const auto told = [&](std::uint64_t tag, bool describe, std::string codec = "") {
        const World leader = node->process(2).world();
        const bool is_new = leader.network.post_payload(tag, {leader.storage.allocate(source.length).value(), 0, source.length}).ok();
        EXPECT_EQ(is_new, !asked.count(tag));
        asked.insert(tag);
        node->note_heard(2);
        message::Want want{tag, source, Reason::flush, std::move(codec)};
        want.describe = describe;
        node->subject.hear(node->flight, 2, node->process(2).address(), want);
        return next();
    };
    EXPECT_EQ(told(11, true).arrays, known);
    EXPECT_TRUE(told(11, true).arrays.empty()) << "what is kept for who asks again is short";
    EXPECT_EQ(node->flight->follower->served.at(11).arrays.capacity(), 0u);
    EXPECT_TRUE(told(12, false).arrays.empty());
    const message::Chunk encoded = told(13, true, "zero-runs");
    EXPECT_GT(encoded.stored_bytes, 0u);
    EXPECT_TRUE(encoded.arrays.empty()) << "nobody encodes it again";
    node->sim.faults().hang_scratch = node->sim.faults().hang_never = 1;
    node->flight->images.at(1).known.assign(node->flight->images.at(1).known.size(), true);
    const World leader = node->process(2).world();
    EXPECT_TRUE(leader.network.post_payload(14, {leader.storage.allocate(source.length).value(), 0, source.length}).ok());
    message::Want want{14, source};
    want.describe = true;
    node->subject.hear(node->flight, 2, node->process(2).address(), want);
    node->run(node->common.settings.io_wait / 2);
    const message::Chunk late = next();
    EXPECT_EQ(late.code, Code::ok) << late.text;
    EXPECT_TRUE(late.arrays.empty()) << "files that do not come back keep nobody from having the bytes";
}

TEST_F(EncodingTest, WhatCanNotBeEncodedGoesOutRaw) {
    struct Case {
        const char* what;
        std::function<void(RoleOptions&)> change;
        std::string codec = "zero-runs";
    };
    const Case cases[] = {{"nobody asked for it", [](RoleOptions&) {}, ""},
                          {"a codec that is not known", [](RoleOptions&) {}, "zstd"},
                          {"no codec", [](RoleOptions&) {}, "none"},
                          {"it can not pay", [](RoleOptions& o) { o.model.codec_shrinks = false; }},
                          {"it does not pay", [](RoleOptions& o) { o.model.stored_min = o.model.stored_max = 0.95; }},
                          {"this node has no buffers for it", [](RoleOptions& o) { o.settings.encode_buffers = 0; }},
                          {"they are too small", [](RoleOptions& o) { o.settings.buffer_bytes = 2 * role_block; }},
                          {"encoding fails", [](RoleOptions& o) { o.faults.encode_error = 1; }}};
    for (const Case& each : cases) {
        RoleOptions changed = options();
        each.change(changed);
        begin(changed);
        const Slice room = ask(11, each.codec);
        expect_raw(next(), room, each.what);
        EXPECT_EQ(node->common.counters.sent_bytes, source.length) << each.what;
        EXPECT_EQ(node->common.pace.counters().out_bytes, source.length) << each.what;
        EXPECT_EQ(did("payload "), 1) << each.what;
    }
}

// Version 9 of the job, whose image of rank 1 is in scratch still.
TEST_F(EncodingTest, WhatChangedSinceABaseIsSent) {
    for (const bool is_right : {true, false}) {
        begin();
        const FlightPtr older = add_base(is_right);
        const Slice room = ask(11, "predict-planes-zstd", 9);
        const message::Chunk chunk = next();
        EXPECT_EQ(chunk.needs_base, is_right) << "what is not what its checksums are of is no base";
        EXPECT_EQ(older->images.at(1).users, 0u);
        if (!is_right) continue;
        const sim::Runs stored = sim::runs_of(room.part(0, chunk.stored_bytes)), base = sim::runs_of(sim::describe(9, source.length, source.image_offset));
        const std::optional<sim::Runs> raw = sim::decode_runs(stored, base, source.length);
        EXPECT_TRUE(raw && sim::content_equal(sim::slice_of(*raw), wanted()));
        EXPECT_FALSE(sim::decode_runs(stored, sim::Runs(), source.length));
    }
}

// Its checksums were right a moment before.
TEST_F(EncodingTest, WhatScratchLosesOfABaseWhileItIsUsedIsNoBase) {
    begin();
    const FlightPtr older = add_base();
    node->sim.set_observer([&](sim::Process&, const char* what, const std::string&) {
        if (std::string(what) == "encode") older_scratch->lose(0);
    });
    const Slice room = ask(11, "predict-planes-zstd", 9);
    const message::Chunk chunk = next();
    expect_raw(chunk, room, "some of it may be zeros");
    EXPECT_FALSE(chunk.needs_base);
    EXPECT_EQ(older->images.at(1).users, 0u);
}

// This node is set to leave encoding to who writes: what has a base it encodes all the same, since nobody else has that, and nothing else.
TEST_F(EncodingTest, WithoutItsBaseItIsNotEncodedWhereLeadersAreTo) {
    for (const EncodeAt at : {EncodeAt::leader, EncodeAt::follower}) {
        RoleOptions set = options();
        set.settings.encode_at = at;
        begin(set);
        const World leader = node->process(2).world();
        const Slice room{leader.storage.allocate(source.length).value(), 0, source.length};
        EXPECT_TRUE(leader.network.post_payload(11, room).ok());
        node->note_heard(2);
        node->subject.hear(node->flight, 2, node->process(2).address(), message::Want{11, source, Reason::flush, "predict-planes-zstd", 9});
        EXPECT_EQ(next().stored_bytes != 0, at == EncodeAt::follower);
    }
}

// A buffer that is in use is not waited for.
TEST_F(EncodingTest, WithoutAFreeBufferItGoesOutRawAtOnce) {
    RoleOptions slow = options();
    slow.model.codec_rate = static_cast<double>(source.length);  // a second
    begin(slow);
    const Slice first = ask(11), second_one = ask(12);
    const Nanos begun = node->sim.now();
    message::Chunk chunk = node->next<message::Chunk>(2);
    EXPECT_LT(node->sim.now() - begun, second / 2);
    ASSERT_EQ(chunk.tag, 12u);
    node->run(100 * millisecond);
    expect_raw(chunk, second_one, "no buffer");
    chunk = next();
    ASSERT_EQ(chunk.tag, 11u);
    expect_encoded(chunk, first);
    EXPECT_EQ(did("encode "), 1);
}

// Its checksums were made before: what is encoded may be zeros in the place of what they are of. Raw bytes show that to who gets them.
TEST_F(EncodingTest, WhatScratchLosesWhileItIsEncodedIsNotSaidToBeWhole) {
    begin();
    node->sim.set_observer([&](sim::Process&, const char* what, const std::string&) {
        if (std::string(what) == "encode") scratch->lose(0);
    });
    ask(11);
    EXPECT_EQ(next().stored_bytes, 0u);
    EXPECT_EQ(node->flight->images.at(1).users, 0u);
}

}  // namespace
}  // namespace cairn::engine
