// Any range of an image is what a capture of all of it writes there.
#include "client/image_bytes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "client/testing.hpp"
#include "client/windows.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

class ImageBytesTest : public testing::Test {
  protected:
    void SetUp() override {
        header_.key = {"series", 3, {1, 2}};
        header_.epoch = 1;
        header_.rank = 1;
        header_.ranks = 2;
        header_.block_bytes = 4096;
        for (std::size_t i = 0; i < field_.size(); ++i) field_[i] = static_cast<std::uint8_t>(i * 37 + i / 251);
    }
    void protect(const char* name, std::size_t offset, std::uint64_t bytes) {
        const std::uint64_t shape[] = {bytes};
        ASSERT_TRUE(regions_.add_memory(name, field_.data() + offset, CAIRN_U8, 1, shape).ok());
    }
    void route(const char* name, std::uint64_t bytes) {
        std::ofstream(place_.file(name)) << std::string(bytes, 'f') << name;
        ASSERT_TRUE(regions_.add_file(name, place_.file(name).c_str()).ok());
    }
    CapturePlan plan() { return plan_capture(header_, regions_, MemoryMap::read().value()).value(); }
    // As it stands in a slot.
    Bytes captured(const CapturePlan& planned) {
        const std::string path = place_.file("slot-0");
        std::ofstream(path) << std::string(planned.slot_bytes, 'x');
        SlotMaps slots;
        SlotMaps::Map& slot = *slots.map(path, planned.slot_bytes).value();
        EXPECT_TRUE(capture(planned, regions_, slot, false).ok());
        const std::byte* image = slot.base + planned.header.data_offset;
        return {image, image + planned.header.image.bytes};
    }
    static Bytes read(ImageBytes& image, std::uint64_t offset, std::uint64_t length) {
        Bytes into(length, std::byte{0xEE});
        const Status status = image.read(offset, into);
        EXPECT_TRUE(status.ok()) << status.to_string();
        return into;
    }

    TemporaryPlace place_;
    ImageHeader header_;
    RegionTable regions_;
    std::vector<std::uint8_t> field_ = std::vector<std::uint8_t>(40'000);
};

TEST_F(ImageBytesTest, EveryRangeIsAsItWouldBeCaptured) {
    protect("odd", 0, 5);
    protect("field", 5, 20'000);
    route("empty", 0);
    route("file", 9'000);
    protect("last", 30'000, 7);
    const CapturePlan planned = plan();
    const Bytes whole = captured(planned);
    ImageBytes image(planned, regions_);
    EXPECT_TRUE(image.check().ok());
    EXPECT_EQ(read(image, 0, whole.size()), whole);
    std::mt19937_64 random(1);
    for (int i = 0; i < 500; ++i) {
        const std::uint64_t offset = random() % (whole.size() + 1), length = random() % (whole.size() - offset + 1);
        const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(offset);
        ASSERT_EQ(read(image, offset, length), Bytes(begin, begin + static_cast<std::ptrdiff_t>(length))) << offset << "+" << length;
    }
    Bytes beyond(2);
    EXPECT_EQ(image.read(whole.size() - 1, beyond).code(), Code::invalid_argument);
    EXPECT_EQ(image.read(UINT64_MAX, beyond).code(), Code::invalid_argument);
}

TEST_F(ImageBytesTest, OfNothingThereIsNothing) {
    const CapturePlan planned = plan();
    ImageBytes image(planned, regions_);
    EXPECT_EQ(read(image, 0, planned.header.image.bytes), captured(planned));
}

TEST_F(ImageBytesTest, AFileThatChangesBetweenTwoPiecesIsAnError) {
    route("file", 9'000);
    const CapturePlan planned = plan();
    ImageBytes image(planned, regions_);
    read(image, 0, 4096);
    read(image, 0, 4096);
    std::ofstream(place_.file("file"), std::ios::in | std::ios::out) << "other";
    Bytes into(4096);
    EXPECT_THAT(image.read(4096, into).text(), HasSubstr("it was written while it was copied"));
    ::truncate(place_.file("file").c_str(), 10);
    EXPECT_THAT(image.read(4096, into).text(), HasSubstr("it became shorter while it was copied"));
}

TEST_F(ImageBytesTest, ACallbackRegionIsRefusedByName) {
    const auto size = [](void*, std::uint64_t* bytes) { return static_cast<int>(*bytes = 0); };
    const auto give = [](void*, void*, std::uint64_t) { return 0; };
    const auto take = [](void*, const void*, std::uint64_t) { return 0; };
    ASSERT_TRUE(regions_.add_callbacks("called", size, give, take, nullptr).ok());
    const CapturePlan planned = plan();
    EXPECT_EQ(ImageBytes(planned, regions_).check().code(), Code::unsupported);
    EXPECT_THAT(ImageBytes(planned, regions_).check().text(), HasSubstr("region \"called\" is a callback region"));
}

TEST(WindowsTest, OnlyWhatWasGivenIsMapped) {
    TemporaryPlace place;
    std::ofstream(place.file("window")) << std::string(8192, 'w');
    const auto opened = [&] { return files::Descriptor(::open(place.file("window").c_str(), O_RDWR | O_CLOEXEC)); };
    Windows windows;
    EXPECT_EQ(windows.map(1, 8192, {}).code(), Code::internal) << "without a descriptor";
    EXPECT_EQ(windows.map(1, 4096, opened()).code(), Code::internal) << "of another size";
    const auto window = windows.map(1, 8192, opened());
    ASSERT_TRUE(window.ok());
    EXPECT_EQ(static_cast<char>((*window)[0]), 'w');
    EXPECT_EQ(windows.map(1, 8192, {})->data(), window->data());
    EXPECT_EQ(windows.map(1, 4096, {}).code(), Code::internal);
}

}  // namespace
}  // namespace cairn
