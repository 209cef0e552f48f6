// The control protocol: every kind of request and answer goes there and back; hostile bytes are refused, never
// followed.
#include "format/control.hpp"

#include <gtest/gtest.h>

#include <random>

#include "format/frame.hpp"
#include "format/image.hpp"

namespace cairn {
namespace {

const VersionKey key{"heat", 7, {1, 2}};

Roster roster() {
    Roster out;
    out.name = "heat";
    out.incarnation = {1, 2};
    out.secret = {3, 4};
    out.epoch = 5;
    out.ranks = 2;
    out.files = 1;
    out.members = {{"n0", "fi_sockaddr_in://127.0.0.1:1", {0, 1}}};
    return out;
}

ImageHeader header() {
    ImageHeader out;
    out.key = key;
    out.epoch = 5;
    out.parent = {{5, 6}, 3};
    out.rank = out.image.rank = 1;
    out.ranks = 2;
    out.block_bytes = 4096;
    out.image.bytes = 3 * 4096 + 100;
    out.image.index_bytes = 100;
    out.cuts = {100, 4196, 3 * 4096 + 4};
    out.image.cuts = out.cuts.size();
    const ImageLayout layout = image_layout(encode_image_header(out).size(), out.image, out.block_bytes);
    out.checksums_offset = layout.checksums_offset;
    out.data_offset = layout.data_offset;
    return out;
}

std::vector<control::Request> requests() {
    return {control::Hello{9, "1.2.3", 77, true},
            control::Join{roster(), 0, 1},
            control::Acquire{key, 3, 1ull << 40, 250, 1ull << 39, 1 << 20},
            control::Sealed{key, 3, "/dev/shm/cairn/images/slot-1"},
            control::Release{"/dev/shm/cairn/images/slot-1"},
            control::Wait{key, Level::committed, 12, 2},
            control::Cancel{key},
            control::Images{"heat"},
            control::Unpin{},
            control::GetStatus{},
            control::Stop{5000},
            control::Offer{header()},
            control::Give{4, 5, 250, 1},
            control::Prepare{3, 1ull << 40, 1}};
}

std::vector<control::Answer> answers() {
    control::NodeStatus status;
    status.node = "n0";
    status.pid = 4;
    status.address = "somewhere";
    status.uptime_ms = 5;
    status.storage_backend = "io_uring";
    status.sessions = 6;
    status.captured_bytes = 7, status.sent_bytes = 8, status.received_bytes = 9, status.written_bytes = 10;
    status.scratch_bytes = 11, status.anonymous_bytes = 12, status.anonymous_peak_bytes = 13;
    status.versions_committed = 14, status.attempts_failed = 15;
    status.last_flush_s = 1.5, status.last_flush_bytes = 16;
    status.writers = {{0.25, 0.5, 17, 18}};
    status.versions = {{key, Level::sealed, Code::io_error, "why", 19, 20, 21}};
    status.targets = {"gv-client-0", "gv-client-1"};
    status.io_node = true;
    status.cards = {{"ib0", 100'000, 22}, {"eth0", 1000, 23}};
    status.card = "ib0", status.card_choice = "the fastest of 2";
    return {control::Failed{Code::out_of_space, "scratch is full"},
            control::Done{},
            control::Welcome{1, "1.2.3", 78, "n0", "somewhere", 3, true, true},
            control::Slot{"/dev/shm/cairn/images/slot-1", 1 << 20, true},
            control::State{Level::committed, Code::cancelled, "why", true, 3},
            control::ImageList{{{key, 8, {{5, 6}, 3}, 2, 4, 100, "/dev/shm/cairn/images/slot-1"}}, true},
            status,
            control::Stopped{{key, key}},
            control::Offered{4},
            control::Wanted{5, 6, 7, 8, 9, {Level::sealed, Code::io_error, "why", true, 3}, -1},
            control::Prepared{{{"/dev/shm/cairn/images/slot-1", 1 << 20, true}, {"/dev/shm/cairn/images/slot-2", 2 << 20, false}}, true}};
}

ByteView payload_of(const Bytes& frame) { return ByteView(frame).subspan(control_header_bytes); }

TEST(Control, EveryRequestGoesThereAndBack) {
    for (const control::Request& request : requests()) {
        const Bytes frame = encode_control(42, request);
        const auto header = decode_control_header(ByteView(frame).first(control_header_bytes));
        ASSERT_TRUE(header.ok());
        EXPECT_EQ(header->number, 42u);
        EXPECT_EQ(header->payload_bytes, frame.size() - control_header_bytes);
        const auto decoded = decode_control_request(payload_of(frame));
        ASSERT_TRUE(decoded.ok()) << request.index() << " " << decoded.status().to_string();
        EXPECT_EQ(decoded->index(), request.index());
        EXPECT_EQ(encode_control(42, *decoded), frame);  // the same bytes: nothing was lost
        EXPECT_FALSE(decode_control_answer(payload_of(frame)).ok());
    }
}

TEST(Control, EveryAnswerGoesThereAndBack) {
    for (const control::Answer& answer : answers()) {
        const Bytes frame = encode_control(1, answer);
        const auto decoded = decode_control_answer(payload_of(frame));
        ASSERT_TRUE(decoded.ok()) << answer.index() << " " << decoded.status().to_string();
        EXPECT_EQ(decoded->index(), answer.index());
        EXPECT_EQ(encode_control(1, *decoded), frame);
        EXPECT_FALSE(decode_control_request(payload_of(frame)).ok());
    }
}

// Re-encoding would not notice a field that neither way carries.
TEST(Control, FieldsArriveAtTheirPlaces) {
    const Bytes join = encode_control(1, requests()[1]);
    const auto joined = decode_control_request(payload_of(join));
    EXPECT_EQ(std::get<control::Join>(*joined).roster, roster());
    EXPECT_EQ(std::get<control::Join>(*joined).rank, 1u);
    const Bytes acquire = encode_control(1, requests()[2]);
    const auto acquired = decode_control_request(payload_of(acquire));
    EXPECT_EQ(std::get<control::Acquire>(*acquired).key, key);
    EXPECT_EQ(std::get<control::Acquire>(*acquired).bytes, 1ull << 40);
    EXPECT_EQ(std::get<control::Acquire>(*acquired).wait_ms, 250u);
    EXPECT_EQ(std::get<control::Acquire>(*acquired).image_bytes, 1ull << 39);
    EXPECT_EQ(std::get<control::Acquire>(*acquired).block_bytes, 1ull << 20);
    const Bytes welcome = encode_control(1, answers()[2]);
    const auto welcomed = decode_control_answer(payload_of(welcome));
    EXPECT_EQ(std::get<control::Welcome>(*welcomed).format, 3u);
    EXPECT_TRUE(std::get<control::Welcome>(*welcomed).through);
    EXPECT_TRUE(std::get<control::Welcome>(*welcomed).prepares);
    const auto offered = decode_control_request(payload_of(encode_control(1, requests()[11])));
    EXPECT_EQ(std::get<control::Offer>(*offered).header, header());
    const auto gives = decode_control_request(payload_of(encode_control(1, requests()[12])));
    EXPECT_EQ(std::get<control::Give>(*gives).image, 4u);
    EXPECT_EQ(std::get<control::Give>(*gives).piece, 5u);
    EXPECT_EQ(std::get<control::Give>(*gives).wait_ms, 250u);
    EXPECT_EQ(std::get<control::Give>(*gives).failures_told, 1u);
    const auto wants = decode_control_answer(payload_of(encode_control(1, answers()[9])));
    const auto& wanted = std::get<control::Wanted>(*wants);
    EXPECT_EQ(wanted.piece, 5u);
    EXPECT_EQ(wanted.offset, 6u);
    EXPECT_EQ(wanted.length, 7u);
    EXPECT_EQ(wanted.window, 8u);
    EXPECT_EQ(wanted.window_bytes, 9u);
    EXPECT_EQ(wanted.state.failures, 3u);
    const auto prepares = decode_control_request(payload_of(encode_control(1, requests()[13])));
    EXPECT_EQ(std::get<control::Prepare>(*prepares).rank, 3u);
    EXPECT_EQ(std::get<control::Prepare>(*prepares).bytes, 1ull << 40);
    EXPECT_EQ(std::get<control::Prepare>(*prepares).numa_node, 1);
    const auto are_there = decode_control_answer(payload_of(encode_control(1, answers()[10])));
    const auto& prepared = std::get<control::Prepared>(*are_there);
    ASSERT_EQ(prepared.slots.size(), 2u);
    EXPECT_EQ(prepared.slots[1].path, "/dev/shm/cairn/images/slot-2");
    EXPECT_EQ(prepared.slots[1].bytes, 2u << 20);
    EXPECT_TRUE(prepared.more_to_come);
    const Bytes list = encode_control(1, answers()[5]);
    const auto listed = decode_control_answer(payload_of(list));
    const auto& entry = std::get<control::ImageList>(*listed).images.at(0);
    EXPECT_EQ(entry.epoch, 8u);
    EXPECT_EQ(entry.parent, (Parent{{5, 6}, 3}));
    EXPECT_EQ(entry.rank, 2u);
    EXPECT_EQ(entry.ranks, 4u);
    EXPECT_EQ(entry.bytes, 100u);
    const Bytes status = encode_control(1, answers()[6]);
    const auto got = decode_control_answer(payload_of(status));
    const auto& node = std::get<control::NodeStatus>(*got);
    EXPECT_EQ(node.anonymous_peak_bytes, 13u);
    EXPECT_EQ(node.last_flush_bytes, 16u);
    EXPECT_EQ(node.writers.at(0).local_bytes, 18u);
    EXPECT_EQ(node.versions.at(0).expected_bytes, 21u);
    EXPECT_EQ(node.targets, (std::vector<std::string>{"gv-client-0", "gv-client-1"}));
}

TEST(Control, LengthIsBounded) {
    Bytes header(control_header_bytes);
    EXPECT_EQ(decode_control_header(header).code(), Code::corrupt);
    put_u32(header.data(), control_payload_bytes_max + 1);
    EXPECT_EQ(decode_control_header(header).code(), Code::corrupt);
    put_u32(header.data(), control_payload_bytes_max);
    EXPECT_TRUE(decode_control_header(header).ok());
}

TEST(Control, NamesAndPathsCanNotLeave) {
    for (const char* name : {"", "../x", "a/b", ".hidden"}) {
        const Bytes frame = encode_control(1, control::Request(control::Images{name}));
        EXPECT_EQ(decode_control_request(payload_of(frame)).code(), Code::corrupt) << name;
        const VersionKey bad{name, 1, {1, 2}};
        const Bytes cancel = encode_control(1, control::Request(control::Cancel{bad}));
        EXPECT_EQ(decode_control_request(payload_of(cancel)).code(), Code::corrupt) << name;
    }
    for (const std::string& path :
         {std::string(), std::string("slot-1"), std::string("/a\0b", 4), "/" + std::string(5000, 'a')}) {
        const Bytes frame = encode_control(1, control::Request(control::Release{path}));
        EXPECT_EQ(decode_control_request(payload_of(frame)).code(), Code::corrupt) << path;
    }
}

TEST(Control, ValuesOutOfRangeAreRefused) {
    const Bytes level = encode_control(1, control::Request(control::Wait{key, static_cast<Level>(4), 0, 0}));
    EXPECT_EQ(decode_control_request(payload_of(level)).code(), Code::corrupt);
    const Bytes code = encode_control(1, control::Answer(control::State{Level::captured, static_cast<Code>(99), "", false, 0}));
    EXPECT_EQ(decode_control_answer(payload_of(code)).code(), Code::corrupt);
    const Bytes ok = encode_control(1, control::Answer(control::Failed{Code::ok, "?"}));
    EXPECT_EQ(decode_control_answer(payload_of(ok)).code(), Code::corrupt);
    const Bytes self = encode_control(1, control::Request(control::Join{roster(), 1, 0}));
    EXPECT_EQ(decode_control_request(payload_of(self)).code(), Code::corrupt);
}

// Units that cover nothing, or all of memory, are made of what an offer says.
TEST(Control, AnOfferThatContradictsItselfIsRefused) {
    control::Offer offer{header()};
    offer.header.cuts = {100, 100, 4196};
    EXPECT_EQ(decode_control_request(payload_of(encode_control(1, control::Request(offer)))).code(), Code::corrupt) << "not increasing";
    offer.header = header();
    offer.header.cuts.back() = offer.header.image.bytes + 4096;
    EXPECT_EQ(decode_control_request(payload_of(encode_control(1, control::Request(offer)))).code(), Code::corrupt) << "behind the end";
    offer.header = header();
    offer.header.cuts.pop_back();
    EXPECT_EQ(decode_control_request(payload_of(encode_control(1, control::Request(offer)))).code(), Code::corrupt) << "fewer than said";
    const control::Wanted wanted{5, 6, 10, 8, 9, {}, -1};
    EXPECT_EQ(decode_control_answer(payload_of(encode_control(1, control::Answer(wanted)))).code(), Code::corrupt) << "longer than its window";
}

TEST(Control, LongReasonsAreCutAndControlCharactersTakenOut) {
    const Bytes frame = encode_control(1, control::Answer(control::Failed{Code::internal, std::string(100'000, 'x')}));
    const auto decoded = decode_control_answer(payload_of(frame));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(std::get<control::Failed>(*decoded).text.size(), text_bytes_max);
    const Bytes escape = encode_control(1, control::Answer(control::Failed{Code::internal, "a\x1b[2Jb\nc"}));
    EXPECT_EQ(std::get<control::Failed>(*decode_control_answer(payload_of(escape))).text, "a?[2Jb\nc");
}

TEST(Control, CutAndFlippedPayloadsNeverCrash) {
    std::mt19937_64 random(1);
    std::vector<Bytes> frames;
    for (const auto& request : requests()) frames.push_back(encode_control(1, request));
    for (const auto& answer : answers()) frames.push_back(encode_control(1, answer));
    std::size_t refused = 0;
    for (const Bytes& frame : frames) {
        const ByteView whole = payload_of(frame);
        for (std::size_t length = 0; length < whole.size(); length += 4) {
            static_cast<void>(decode_control_request(whole.first(length)));
            static_cast<void>(decode_control_answer(whole.first(length)));
        }
        for (int i = 0; i < 2000; ++i) {
            Bytes damaged(whole.begin(), whole.end());
            for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips)
                damaged[random() % damaged.size()] ^= static_cast<std::byte>(1u << (random() % 8));
            refused += !decode_control_request(damaged).ok();
            static_cast<void>(decode_control_answer(damaged));
        }
    }
    EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace cairn
