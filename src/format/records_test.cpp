// What every framed record must do, whatever its kind: come back as it went, and refuse bytes that are cut, flipped,
// foreign, newer, or well checksummed nonsense.
#include <gtest/gtest.h>

#include "format/frame.hpp"
#include "format/random_samples.hpp"

namespace cairn {
namespace {

// One struct for each kind: its frame, its codec, a fixed and a random value.
struct ManifestRecord {
    static constexpr FrameKind kind = FrameKind::manifest;
    static Bytes encode(const Manifest& value) { return encode_manifest(value); }
    static Result<Manifest> decode(ByteView bytes) { return decode_manifest(bytes); }
    static Manifest sample() { return samples::manifest(); }
    static Manifest random(samples::Random& random) { return random.manifest(); }
};
struct ImageRecord {
    static constexpr FrameKind kind = FrameKind::image;
    static Bytes encode(const ImageHeader& value) { return encode_image_header(value); }
    static Result<ImageHeader> decode(ByteView bytes) { return decode_image_header(bytes); }
    static ImageHeader sample() { return samples::image_header(); }
    static ImageHeader random(samples::Random& random) { return random.image_header(); }
};
struct RosterRecord {
    static constexpr FrameKind kind = FrameKind::roster;
    static Bytes encode(const Roster& value) { return encode_roster(value); }
    static Result<Roster> decode(ByteView bytes) { return decode_roster(bytes); }
    static Roster sample() { return samples::roster(); }
    static Roster random(samples::Random& random) { return random.roster(); }
};
struct NodesRecord {
    static constexpr FrameKind kind = FrameKind::node;
    static Bytes encode(const NodeRecord& value) { return encode_node_record(value); }
    static Result<NodeRecord> decode(ByteView bytes) { return decode_node_record(bytes); }
    static NodeRecord sample() { return samples::node_record(); }
    static NodeRecord random(samples::Random& random) { return random.node_record(); }
};
struct IoNodesRecord {
    static constexpr FrameKind kind = FrameKind::io_node;
    static Bytes encode(const IoNodeRecord& value) { return encode_io_node_record(value); }
    static Result<IoNodeRecord> decode(ByteView bytes) { return decode_io_node_record(bytes); }
    static IoNodeRecord sample() { return samples::io_node_record(); }
    static IoNodeRecord random(samples::Random& random) { return random.io_node_record(); }
};
struct OpensRecord {
    static constexpr FrameKind kind = FrameKind::open;
    static Bytes encode(const OpenRecord& value) { return encode_open_record(value); }
    static Result<OpenRecord> decode(ByteView bytes) { return decode_open_record(bytes); }
    static OpenRecord sample() { return samples::open_record(); }
    static OpenRecord random(samples::Random& random) { return random.open_record(); }
};
struct FromsRecord {
    static constexpr FrameKind kind = FrameKind::from;
    static Bytes encode(const FromRecord& value) { return encode_from_record(value); }
    static Result<FromRecord> decode(ByteView bytes) { return decode_from_record(bytes); }
    static FromRecord sample() { return samples::from_record(); }
    static FromRecord random(samples::Random& random) { return random.from_record(); }
};
struct TreesRecord {
    static constexpr FrameKind kind = FrameKind::trees;
    static Bytes encode(const std::vector<Tree>& value) { return encode_tree_index(value); }
    static Result<std::vector<Tree>> decode(ByteView bytes) { return decode_tree_index(bytes); }
    static std::vector<Tree> sample() { return samples::trees(); }
    static std::vector<Tree> random(samples::Random& random) { return random.trees(); }
};
template <std::size_t index>
struct MessageRecord {
    static constexpr FrameKind kind = FrameKind::message;
    static Bytes encode(const message::Message& value) { return cairn::encode(value); }
    static Result<message::Message> decode(ByteView bytes) { return decode_message(bytes); }
    static message::Message sample() { return samples::messages()[index]; }
    static message::Message random(samples::Random& random) { return random.message(); }
};

template <class Record>
class Records : public testing::Test {};
using Kinds =
    testing::Types<ManifestRecord, ImageRecord, RosterRecord, NodesRecord, IoNodesRecord, OpensRecord, FromsRecord, TreesRecord, MessageRecord<0>,
                   MessageRecord<1>, MessageRecord<2>, MessageRecord<3>, MessageRecord<4>, MessageRecord<5>,
                   MessageRecord<6>, MessageRecord<7>, MessageRecord<8>, MessageRecord<9>, MessageRecord<10>>;
TYPED_TEST_SUITE(Records, Kinds);

// The header's own checksum, made right again after a change.
void mend_header(Bytes& bytes) { put_u64(&bytes[32], checksum(ByteView(bytes).first(32))); }

TYPED_TEST(Records, ComeBack) {
    const auto sample = TypeParam::sample();
    const auto back = TypeParam::decode(TypeParam::encode(sample));
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_TRUE(*back == sample);
    samples::Random random(42);
    for (int i = 0; i < 300; ++i) {
        const auto value = TypeParam::random(random);
        const auto again = TypeParam::decode(TypeParam::encode(value));
        ASSERT_TRUE(again.ok()) << "value " << i << ": " << again.status().to_string();
        ASSERT_TRUE(*again == value) << "value " << i;
    }
}

TYPED_TEST(Records, CutAtEveryLength) {
    const Bytes bytes = TypeParam::encode(TypeParam::sample());
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        const auto result = TypeParam::decode(ByteView(bytes).first(length));
        ASSERT_EQ(result.code(), Code::corrupt) << length;
        EXPECT_NE(result.status().text().find("cut short"), std::string::npos) << result.status().text();
    }
}

TYPED_TEST(Records, EveryBitFlipped) {
    Bytes bytes = TypeParam::encode(TypeParam::sample());
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        bytes[bit / 8] ^= std::byte(1 << bit % 8);
        ASSERT_EQ(TypeParam::decode(bytes).code(), Code::corrupt) << "bit " << bit;
        bytes[bit / 8] ^= std::byte(1 << bit % 8);
    }
}

TYPED_TEST(Records, SomethingBehind) {
    Bytes bytes = TypeParam::encode(TypeParam::sample());
    bytes.push_back(std::byte(0));
    // The header of an image lies in a larger file; everything else is its whole file or datagram.
    EXPECT_EQ(TypeParam::decode(bytes).code(), TypeParam::kind == FrameKind::image ? Code::ok : Code::corrupt);
}

TYPED_TEST(Records, Foreign) {
    EXPECT_EQ(TypeParam::decode(as_bytes("")).code(), Code::corrupt);
    const auto html =
        TypeParam::decode(as_bytes("<html><body>404 Not Found: the file you asked for is not here</body></html>"));
    EXPECT_EQ(html.code(), Code::corrupt);
    EXPECT_NE(html.status().text().find("not one of Cairn's"), std::string::npos);
    // Another kind of Cairn's own.
    const Bytes other = TypeParam::kind == FrameKind::open ? encode_from_record(samples::from_record())
                                                           : encode_open_record(samples::open_record());
    EXPECT_EQ(TypeParam::decode(other).code(), Code::corrupt);
}

TYPED_TEST(Records, NewerVersion) {
    Bytes bytes = TypeParam::encode(TypeParam::sample());
    put_u32(&bytes[8], format_version + 1);
    mend_header(bytes);
    const auto result = TypeParam::decode(bytes);
    ASSERT_EQ(result.code(), Code::unsupported);
    const std::string found = "version " + std::to_string(format_version + 1) + " found",
                      known = "up to " + std::to_string(format_version);
    EXPECT_NE(result.status().text().find(found), std::string::npos) << result.status().text();
    EXPECT_NE(result.status().text().find(known), std::string::npos) << result.status().text();
}

TYPED_TEST(Records, ImpossibleHeader) {
    Bytes bytes = TypeParam::encode(TypeParam::sample());
    put_u32(&bytes[8], 0);
    mend_header(bytes);
    EXPECT_EQ(TypeParam::decode(bytes).code(), Code::corrupt) << "version 0";
    bytes = TypeParam::encode(TypeParam::sample());
    put_u32(&bytes[12], 1);
    mend_header(bytes);
    EXPECT_EQ(TypeParam::decode(bytes).code(), Code::corrupt) << "the field that is zero";
    bytes = TypeParam::encode(TypeParam::sample());
    for (const std::uint64_t length :
         {UINT64_MAX, UINT64_MAX - 39, std::uint64_t{1} << 63, std::uint64_t{bytes.size()}}) {
        put_u64(&bytes[16], length);
        mend_header(bytes);
        EXPECT_EQ(TypeParam::decode(bytes).code(), Code::corrupt) << "length " << length;
    }
}

// A body that is framed properly either fails or is a value that comes back.
template <class Record>
bool refused_or_comes_back(ByteView body) {
    const auto value = Record::decode(frame(Record::kind, body));
    if (!value.ok()) return value.code() == Code::corrupt || value.code() == Code::unsupported;
    const auto again = Record::decode(Record::encode(*value));
    return again.ok() && *again == *value;
}

TYPED_TEST(Records, NonsenseWithRightChecksums) {
    const Bytes bytes = TypeParam::encode(TypeParam::sample());
    Bytes body(bytes.begin() + frame_header_bytes, bytes.end());
    for (std::size_t bit = 0; bit < 8 * body.size(); ++bit) {
        body[bit / 8] ^= std::byte(1 << bit % 8);
        ASSERT_TRUE(refused_or_comes_back<TypeParam>(body)) << "bit " << bit;
        body[bit / 8] ^= std::byte(1 << bit % 8);
    }
    for (std::size_t length = 0; length < body.size(); ++length)
        ASSERT_TRUE(refused_or_comes_back<TypeParam>(ByteView(body).first(length))) << "length " << length;
    samples::Random random(7);
    for (int i = 0; i < 2000; ++i) {
        Bytes changed = body;
        for (std::uint64_t n = 1 + random.below(6); n > 0; --n) {
            const std::size_t at = random.below(changed.size());
            if (random.coin())
                changed[at] = static_cast<std::byte>(random.number());
            else
                put_u32(&changed[std::min(at / 4 * 4, changed.size() - 4)], random.below32(200));
        }
        ASSERT_TRUE(refused_or_comes_back<TypeParam>(changed)) << "change " << i;
    }
}

}  // namespace
}  // namespace cairn
