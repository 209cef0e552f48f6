// Handing out: each byte to whoever wants it, once, in whatever order runs come; and what a run costs.
#include "read/hand_out.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cairn {
namespace {

Bytes image_of(std::size_t bytes) {
    Bytes image(bytes);
    for (std::size_t i = 0; i < bytes; ++i) image[i] = static_cast<std::byte>(i * 167 + (i >> 8));
    return image;
}

HandOut::Receiver into(Bytes& place) {
    return [&place](std::uint64_t at, const Slice& data) {
        const ByteView bytes = data.bytes();
        std::copy(bytes.begin(), bytes.end(), place.begin() + static_cast<std::ptrdiff_t>(at));
        return Status();
    };
}

TEST(HandOut, RangesThatOverlapAndNestAllGetTheirBytes) {
    const Bytes image = image_of(10'000);
    std::mt19937_64 random(3);
    for (int round = 0; round < 50; ++round) {
        std::vector<ImageRange> ranges = {{0, 10'000}};  // one over all the others
        for (int i = 0; i < 20; ++i) {
            const std::uint64_t offset = random() % 9'000;
            ranges.push_back({offset, 1 + random() % (10'000 - offset)});
        }
        std::vector<Bytes> got;
        for (const ImageRange& range : ranges) got.emplace_back(range.length);
        HandOut out;
        for (std::size_t i = 0; i < ranges.size(); ++i) out.add(4, ranges[i], "one", into(got[i]));
        std::vector<std::uint64_t> runs;
        for (std::uint64_t at = 0; at < 10'000; at += 512) runs.push_back(at);
        std::shuffle(runs.begin(), runs.end(), random);
        for (const std::uint64_t at : runs) {
            EXPECT_FALSE(out.check_complete().ok());
            ASSERT_TRUE(out.take(4, at, Slice::of(image).part(at, std::min<std::uint64_t>(512, 10'000 - at))).ok());
        }
        EXPECT_TRUE(out.check_complete().ok()) << out.check_complete().to_string();
        for (std::size_t i = 0; i < ranges.size(); ++i)
            ASSERT_TRUE(std::equal(got[i].begin(), got[i].end(), image.begin() + static_cast<std::ptrdiff_t>(ranges[i].offset)));
    }
}

TEST(HandOut, RanksAreKeptApart) {
    const Bytes image = image_of(100);
    Bytes one(100), two(100);
    HandOut out;
    out.add(1, {0, 100}, "region grid", into(one));
    out.add(2, {0, 100}, "region grid", into(two));
    out.add(3, {0, 0}, "nothing", nullptr);  // of no bytes: it waits for none
    EXPECT_EQ(out.wanted(), (std::vector<WantedImage>{{1, {{0, 100}}}, {2, {{0, 100}}}}));
    ASSERT_TRUE(out.take(2, 0, Slice::of(image)).ok());
    ASSERT_TRUE(out.take(9, 0, Slice::of(image)).ok());  // nobody's
    EXPECT_EQ(two, image);
    EXPECT_EQ(one, Bytes(100));
    EXPECT_NE(out.check_complete().text().find("region grid of rank 1 (100 bytes from 0 of its image): 0 bytes"), std::string::npos)
        << out.check_complete().to_string();
}

// Straight into memory goes only what one alone wants, all of it.
TEST(HandOut, MemoryIsThatOfWhoAloneWantsAllOfAUnit) {
    Bytes first(100), second(100);
    const auto never_asked = [](std::uint64_t, const Slice&) { return Status(Code::internal, "asked"); };
    const auto memory_of = [](Bytes& of) { return Slice::whole(std::make_shared<BorrowedMemory>(of.data(), of.size())); };
    HandOut out;
    out.add(3, {0, 100}, "first", never_asked, memory_of(first));
    out.add(3, {100, 100}, "second", never_asked, memory_of(second));
    out.add(3, {150, 10}, "some of it again", never_asked);
    out.add(3, {200, 100}, "without memory", never_asked);
    const Receiving to = out.receiving();
    const Slice middle = to.memory(3, 20, 30);
    ASSERT_TRUE(middle.buffer);
    EXPECT_EQ(middle.data(), first.data() + 20);
    EXPECT_EQ(middle.length, 30u);
    EXPECT_EQ(to.memory(3, 100, 50).data(), second.data());
    EXPECT_FALSE(to.memory(3, 90, 20).buffer) << "it is of two";
    EXPECT_FALSE(to.memory(3, 140, 15).buffer) << "some of it is wanted twice";
    EXPECT_FALSE(to.memory(3, 210, 10).buffer);
    EXPECT_FALSE(to.memory(3, 300, 10).buffer) << "nobody wants it";
    EXPECT_FALSE(to.memory(4, 0, 10).buffer);
}

TEST(HandOut, WhatHasLandedIsThere) {
    Bytes place(100);
    HandOut out;
    out.add(3, {50, 100}, "region grid", nullptr, Slice::whole(std::make_shared<BorrowedMemory>(place.data(), place.size())));
    const Receiving to = out.receiving();
    ASSERT_TRUE(to.memory(3, 50, 60).buffer);
    to.landed(3, 50, 60);
    EXPECT_NE(out.check_complete().text().find("60 bytes were handed out"), std::string::npos) << out.check_complete().to_string();
    to.landed(3, 110, 40);
    EXPECT_TRUE(out.check_complete().ok()) << out.check_complete().to_string();
}

TEST(HandOut, WhatAReceiverSaysEndsTheReading) {
    HandOut out;
    out.add(0, {10, 10}, "one", [](std::uint64_t, const Slice&) { return Status(Code::out_of_space, "full"); });
    EXPECT_TRUE(out.take(0, 0, Slice::of(Bytes(10))).ok());
    EXPECT_EQ(out.take(0, 5, Slice::of(Bytes(10))).code(), Code::out_of_space);
}

// Ten times the regions, in ten times the runs, are about ten times the work; a look at every region for every run is a hundred times as much. So it is
// with one that reaches over all others, wherever it begins.
TEST(HandOut, WorkGrowsWithTheRegionsAndNotWithTheirSquare) {
    const auto work = [](std::uint64_t regions, bool one_over_all) {
        HandOut out;
        const auto takes = [](std::uint64_t, const Slice&) { return Status(); };
        for (std::uint64_t i = 0; i < regions; ++i) out.add(0, {64 * i, 60}, "one", takes);
        if (one_over_all) out.add(0, {0, 64 * regions}, "all", takes);
        const Slice run = Slice::of(Bytes(640));
        for (std::uint64_t at = 0; at < 64 * regions; at += run.length) EXPECT_TRUE(out.take(0, at, run).ok());
        EXPECT_TRUE(out.check_complete().ok());
        return out.looked_at();
    };
    for (const bool one_over_all : {false, true}) {
        EXPECT_LE(work(100'000, one_over_all), 15 * work(10'000, one_over_all)) << one_over_all;
        EXPECT_LE(work(10'000, one_over_all), 6 * 10'000u) << one_over_all;
    }
}

}  // namespace
}  // namespace cairn
