#include "world/real/fabric_frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace cairn {
namespace {

constexpr FabricReassembly::Limits limits{.sender_bytes = 4096, .all_bytes = 6000, .wait = 10 * second};
constexpr std::uint64_t total_max = 1 << 20;

Bytes counted(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
    return bytes;
}

FabricFragment piece(const Bytes& whole, std::uint64_t sender, std::uint64_t message, std::uint64_t offset,
                     std::uint64_t length) {
    return {sender, message, whole.size(), offset, ByteView(whole).subspan(offset, length)};
}

Bytes on_the_wire(const FabricFragment& fragment) {
    const FabricHeaderBytes header = encode_fabric_header(fragment);
    Bytes bytes(header.size() + fragment.data.size());
    std::memcpy(bytes.data(), header.data(), header.size());
    std::copy(fragment.data.begin(), fragment.data.end(), bytes.begin() + fabric_header_bytes);
    return bytes;
}

TEST(FabricFrames, HeaderComesBack) {
    const Bytes whole = counted(1000);
    const Bytes wire = on_the_wire(piece(whole, 0x1122334455667788, 9, 200, 300));
    ASSERT_EQ(wire.size(), fabric_header_bytes + 300);
    const auto back = decode_fabric_fragment(wire, total_max);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->sender, 0x1122334455667788u);
    EXPECT_EQ(back->message, 9u);
    EXPECT_EQ(back->total, 1000u);
    EXPECT_EQ(back->offset, 200u);
    EXPECT_TRUE(std::equal(back->data.begin(), back->data.end(), whole.begin() + 200, whole.begin() + 500));
}

TEST(FabricFrames, HostileHeadersAreRefused) {
    const Bytes whole = counted(100);
    const Bytes good = on_the_wire(piece(whole, 1, 1, 0, 50));
    ASSERT_TRUE(decode_fabric_fragment(good, total_max).has_value());
    for (std::size_t cut = 0; cut < fabric_header_bytes; ++cut)
        EXPECT_FALSE(decode_fabric_fragment(ByteView(good).first(cut), total_max).has_value()) << cut;
    EXPECT_FALSE(decode_fabric_fragment(ByteView(good).first(fabric_header_bytes), total_max).has_value()) << "no data";
    EXPECT_FALSE(decode_fabric_fragment(good, 99).has_value()) << "message too long";
    for (const std::size_t flipped : {0u, 3u, 4u}) {
        Bytes bad = good;
        bad[flipped] ^= std::byte{0x40};
        EXPECT_FALSE(decode_fabric_fragment(bad, total_max).has_value()) << "byte " << flipped;
    }
    FabricFragment past_end = piece(whole, 1, 1, 0, 50);
    past_end.offset = 51;
    EXPECT_FALSE(decode_fabric_fragment(on_the_wire(past_end), total_max).has_value());
    past_end.offset = UINT64_MAX - 10;
    EXPECT_FALSE(decode_fabric_fragment(on_the_wire(past_end), total_max).has_value());
}

TEST(FabricFrames, MessagesOfTwoSendersInterleave) {
    FabricReassembly reassembly(limits);
    const Bytes first = counted(1000), second = counted(700);
    EXPECT_FALSE(reassembly.add(piece(first, 1, 5, 0, 400), 0).has_value());
    EXPECT_FALSE(reassembly.add(piece(second, 2, 5, 0, 400), 0).has_value());
    EXPECT_FALSE(reassembly.add(piece(first, 1, 5, 400, 400), 0).has_value());
    EXPECT_EQ(reassembly.add(piece(second, 2, 5, 400, 300), 0), second);
    EXPECT_EQ(reassembly.add(piece(first, 1, 5, 800, 200), 0), first);
    EXPECT_TRUE(reassembly.empty());
    EXPECT_EQ(reassembly.held_bytes(), 0u);
    EXPECT_EQ(reassembly.dropped(), 0u);
}

TEST(FabricFrames, EmptyMessageIsWhole) {
    FabricReassembly reassembly(limits);
    const Bytes nothing;
    const auto back = decode_fabric_fragment(on_the_wire(piece(nothing, 1, 1, 0, 0)), total_max);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(reassembly.add(*back, 0), nothing);
}

TEST(FabricFrames, AGapDropsTheMessageAndTheRestOfIt) {
    FabricReassembly reassembly(limits);
    const Bytes whole = counted(900);
    EXPECT_FALSE(reassembly.add(piece(whole, 1, 1, 0, 300), 0).has_value());
    EXPECT_FALSE(reassembly.add(piece(whole, 1, 1, 600, 300), 0).has_value());
    EXPECT_FALSE(reassembly.add(piece(whole, 1, 1, 300, 300), 0).has_value());
    EXPECT_EQ(reassembly.dropped(), 1u);
    EXPECT_TRUE(reassembly.empty());
}

TEST(FabricFrames, ASenderThatChangesTheSizeIsDropped) {
    FabricReassembly reassembly(limits);
    const Bytes whole = counted(900), other = counted(2000);
    EXPECT_FALSE(reassembly.add(piece(whole, 1, 1, 0, 300), 0).has_value());
    EXPECT_FALSE(reassembly.add(piece(other, 1, 1, 300, 300), 0).has_value());
    EXPECT_EQ(reassembly.dropped(), 1u);
    EXPECT_EQ(reassembly.held_bytes(), 0u);
}

TEST(FabricFrames, HeldBytesAreBoundedBySenderAndInAll) {
    FabricReassembly reassembly(limits);
    const Bytes three = counted(3000), one = counted(1000), huge = counted(5000);
    EXPECT_FALSE(reassembly.add(piece(huge, 1, 1, 0, 10), 0).has_value());
    EXPECT_EQ(reassembly.dropped(), 1u) << "more than a sender may hold";
    EXPECT_FALSE(reassembly.add(piece(three, 1, 2, 0, 10), 0).has_value());
    EXPECT_FALSE(reassembly.add(piece(three, 1, 3, 0, 10), 0).has_value());
    EXPECT_EQ(reassembly.dropped(), 2u) << "the sender's second";
    EXPECT_FALSE(reassembly.add(piece(three, 2, 1, 0, 10), 0).has_value());
    EXPECT_EQ(reassembly.dropped(), 3u) << "another sender's, over the bound for all";
    EXPECT_FALSE(reassembly.add(piece(one, 2, 2, 0, 10), 0).has_value());
    EXPECT_EQ(reassembly.add(piece(three, 1, 2, 10, 2990), 0), three) << "what was begun is finished";
    EXPECT_LE(reassembly.held_bytes(), limits.all_bytes);
}

TEST(FabricFrames, ManyTinyMessagesAreBoundedToo) {
    FabricReassembly reassembly(limits);
    const Bytes two = counted(2);
    for (std::uint64_t message = 0; message < 1000; ++message)
        EXPECT_FALSE(reassembly.add(piece(two, 1, message, 0, 1), 0).has_value());
    EXPECT_GE(reassembly.dropped(), 900u);
}

TEST(FabricFrames, AHalfReceivedMessageTimesOut) {
    FabricReassembly reassembly(limits);
    const Bytes whole = counted(900);
    EXPECT_FALSE(reassembly.add(piece(whole, 1, 1, 0, 300), 5 * second).has_value());
    reassembly.expire(14 * second);
    EXPECT_FALSE(reassembly.empty());
    EXPECT_FALSE(reassembly.add(piece(whole, 1, 1, 300, 300), 14 * second).has_value());
    reassembly.expire(23 * second);
    EXPECT_FALSE(reassembly.empty()) << "the last fragment counts";
    reassembly.expire(24 * second);
    EXPECT_TRUE(reassembly.empty());
    EXPECT_EQ(reassembly.dropped(), 1u);
    EXPECT_FALSE(reassembly.add(piece(whole, 1, 1, 600, 300), 25 * second).has_value());
}

}  // namespace
}  // namespace cairn
