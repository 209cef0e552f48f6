// Reads that checksum what they read, beyond what the conformance suite asks: runs of many pieces, and destinations that are not to be touched any more.
#include "world/real/checksummed_read.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "world/real/test_world.hpp"

namespace cairn {
namespace {

class ChecksummedReadTest : public testing::Test {
  protected:
    ChecksummedReadTest() {
        std::uint32_t state = 1;
        for (std::byte& each : content_) each = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
        std::ofstream(directory_ / "file", std::ios::binary).write(reinterpret_cast<const char*>(content_.data()), static_cast<std::streamsize>(content_.size()));
        OpenOptions options;
        file_ = *loop_->run(storage_->open(directory_ / "file", options, loop_->in(test::patience)));
    }

    std::unique_ptr<Loop> loop_ = test::make_loop();
    std::unique_ptr<RealStorage> storage_ = test::make_storage(*loop_, {});
    test::TemporaryDirectory directory_;
    Bytes content_ = Bytes((3 << 20) + 4'321);
    FilePtr file_;
};

TEST_F(ChecksummedReadTest, ALongRunComesInOneUnitAndGoesWhereItShould) {
    Bytes place(content_.size() + 64, std::byte{0xee});
    auto memory = std::make_shared<BorrowedMemory>(place.data() + 16, content_.size());
    std::vector<Destination> into;
    into.push_back(Destination{0, Slice::whole(memory)});
    const auto sums = loop_->run(storage_->read_checksummed(file_, 0, content_.size(), 16 << 20, std::move(into), loop_->in(test::patience)));
    ASSERT_TRUE(sums.ok()) << sums.status().to_string();
    EXPECT_EQ(*sums, std::vector<std::uint64_t>{checksum(content_)});
    EXPECT_TRUE(std::equal(content_.begin(), content_.end(), place.begin() + 16));
    EXPECT_TRUE(std::all_of(place.end() - 48, place.end(), [](std::byte each) { return each == std::byte{0xee}; }));
    EXPECT_EQ(storage_->statistics().read_bytes, content_.size());
    EXPECT_EQ(memory.use_count(), 1) << "nobody may touch it any more";
}

// The thread comes back when nobody waits any more, as after a read that hung.
TEST_F(ChecksummedReadTest, WhoComesLateTouchesNothing) {
    Bytes place(content_.size(), std::byte{0xee});
    auto memory = std::make_shared<BorrowedMemory>(place.data(), place.size());
    std::vector<Destination> into;
    into.push_back(Destination{0, Slice::whole(memory)});
    ChecksummedRead reading(*loop_, std::dynamic_pointer_cast<RealFile>(file_), 0, content_.size(), 1 << 20, std::move(into));
    { const ChecksummedRead::Closing closing(reading); }
    EXPECT_EQ(memory.use_count(), 1);
    reading.run();
    EXPECT_TRUE(std::all_of(place.begin(), place.end(), [](std::byte each) { return each == std::byte{0xee}; }));
}

}  // namespace
}  // namespace cairn
