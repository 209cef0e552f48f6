// Image slots: layout, state words, and headers whose every invariant is violated once.
#include "format/image.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "format/random_samples.hpp"

namespace cairn {
namespace {

TEST(Image, LayoutLeavesRoomForEverything) {
    samples::Random random(3);
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t header = random.below(100'000),
                            bytes = random.below(10) == 0 ? 0 : random.below(1ull << 40), block = random.block();
        const std::uint64_t cuts = bytes == 0 || random.coin() ? 0 : random.below(std::min<std::uint64_t>(bytes, 1000));
        const ImageLayout layout = image_layout(header, {0, bytes, {}, cuts}, block);
        ASSERT_GE(layout.checksums_offset, image_header_offset + header);
        ASSERT_EQ(layout.checksums_offset % 64, 0u);
        ASSERT_GE(layout.data_offset, layout.checksums_offset + 8 * (div_up(bytes, block) + 2 * cuts));
        ASSERT_EQ(layout.data_offset % 4096, 0u);
        ASSERT_GE(layout.file_bytes, layout.data_offset + bytes);
        ASSERT_LT(layout.file_bytes, layout.data_offset + bytes + 4096);
        ASSERT_EQ(layout.file_bytes % 4096, 0u);
    }
}

// The layout is computed from the length of a header that does not know its layout yet.
TEST(Image, EncodedLengthDoesNotDependOnPlaces) {
    ImageHeader header = samples::image_header();
    const std::size_t length = encode_image_header(header).size();
    for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4096}, UINT64_MAX}) {
        header.checksums_offset = header.data_offset = place;
        EXPECT_EQ(encode_image_header(header).size(), length);
    }
}

TEST(Image, StateWords) {
    alignas(4096) std::byte slot[4096] = {};
    EXPECT_FALSE(image_is_sealed(slot));
    EXPECT_FALSE(image_is_checksummed(slot));
    image_seal(slot);
    EXPECT_TRUE(image_is_sealed(slot));
    EXPECT_FALSE(image_is_checksummed(slot));
    EXPECT_EQ(as_text(ByteView(slot).first(8)), "CRNSEALD");
    image_set_checksummed(slot, 7);
    EXPECT_TRUE(image_is_checksummed(slot));
    EXPECT_EQ(slot[image_proof_offset], std::byte(7));
    EXPECT_EQ(as_text(ByteView(slot).subspan(8, 8)), "CRNCSUMD");
    image_set_invalid(slot);
    EXPECT_FALSE(image_is_sealed(slot));
    EXPECT_FALSE(image_is_checksummed(slot)) << "a recycled slot's table is another image's";
    // A word is whole or it is not: every bit counts.
    image_seal(slot);
    for (int bit = 0; bit < 64; ++bit) {
        slot[bit / 8] ^= std::byte(1 << bit % 8);
        EXPECT_FALSE(image_is_sealed(slot));
        slot[bit / 8] ^= std::byte(1 << bit % 8);
    }
}

// The same table in another image's slot proves nothing there.
TEST(Image, AProofIsOfOneImage) {
    const ImageHeader header = samples::image_header();
    const Bytes table(16, std::byte(3));
    const std::uint64_t proof = image_proof(header, table);
    EXPECT_EQ(proof, image_proof(header, table));
    const auto differs = [&](const std::function<void(ImageHeader&)>& change) {
        ImageHeader other = header;
        change(other);
        return image_proof(other, table) != proof;
    };
    EXPECT_TRUE(differs([](ImageHeader& h) { ++h.key.version; }));
    EXPECT_TRUE(differs([](ImageHeader& h) { ++h.key.incarnation.low; }));
    EXPECT_TRUE(differs([](ImageHeader& h) { ++h.rank; }));
    EXPECT_NE(image_proof(header, Bytes(16, std::byte(4))), proof);
    EXPECT_NE(image_proof(header, ByteView(table).first(8)), proof);
}

// Who sees the seal sees everything written before it.
TEST(Image, SealIsARelease) {
    alignas(4096) static std::byte slot[8192];
    for (int round = 0; round < 200; ++round) {
        image_set_invalid(slot);
        std::thread writer([&] {
            std::memset(slot + 4096, round, 4096);
            image_seal(slot);
        });
        while (!image_is_sealed(slot)) std::this_thread::yield();
        bool whole = true;
        for (int i = 4096; i < 8192; ++i) whole = whole && slot[i] == static_cast<std::byte>(round);
        writer.join();
        ASSERT_TRUE(whole) << round;
    }
}

TEST(Image, ChecksummedIsNotPartOfTheHeader) {
    ImageHeader header = samples::image_header();
    const Bytes bytes = encode_image_header(header);
    header.checksummed = true;
    EXPECT_EQ(encode_image_header(header), bytes);
    EXPECT_FALSE(decode_image_header(bytes)->checksummed);
}

struct Violation {
    const char* called;
    std::function<void(ImageHeader&)> make;
    const char* told;
};
const Violation violations[] = {
    {"name", [](ImageHeader& h) { h.key.name = "a/b"; }, "name is not a valid one"},
    {"version", [](ImageHeader& h) { h.key.version = 0; }, "version 0"},
    {"incarnation", [](ImageHeader& h) { h.key.incarnation = {}; }, "no incarnation"},
    {"parent", [](ImageHeader& h) { h.parent.version = 0; }, "a parent with"},
    {"epoch", [](ImageHeader& h) { h.epoch = 0; }, "epoch 0"},
    {"no ranks", [](ImageHeader& h) { h.ranks = 0; }, "0 ranks"},
    {"rank beyond", [](ImageHeader& h) { h.rank = h.image.rank = 3; }, "rank 3 of 3"},
    {"block size", [](ImageHeader& h) { h.block_bytes = 4097; }, "block size of 4097"},
    {"image too large",
     [](ImageHeader& h) {
         h.image = {0, 1ull << 61, {}};
     },
     "an image of"},
    {"region outside", [](ImageHeader& h) { h.image.bytes = 4999; }, "lies outside its image of 4999"},
    {"table before the header", [](ImageHeader& h) { h.checksums_offset = 0; }, "can not be"},
    {"table within the header", [](ImageHeader& h) { h.checksums_offset = image_header_offset + 64; },
     "lies within itself"},
    {"table not aligned", [](ImageHeader& h) { h.checksums_offset += 4; }, "can not be"},
    {"table over the data", [](ImageHeader& h) { h.checksums_offset = h.data_offset - 8; }, "can not be"},
    {"table behind the data", [](ImageHeader& h) { h.checksums_offset = h.data_offset + 8; }, "can not be"},
    {"table far beyond", [](ImageHeader& h) { h.checksums_offset = 0 - 8ull; }, "can not be"},
    {"table of more cuts than numbers can count", [](ImageHeader& h) { h.image = {0, 1ull << 60, {}, (1ull << 60) - (1ull << 29)}, h.block_bytes = block_bytes_max; }, "can not be"},
    {"data not on a page", [](ImageHeader& h) { h.data_offset += 512; }, "can not be"},
    {"data far beyond", [](ImageHeader& h) { h.data_offset = 0 - 4096ull; }, "can not be"},
};
class ImageInvariants : public testing::TestWithParam<Violation> {};
TEST_P(ImageInvariants, Violated) {
    ImageHeader header = samples::image_header();
    ASSERT_TRUE(decode_image_header(encode_image_header(header)).ok());
    GetParam().make(header);
    const auto result = decode_image_header(encode_image_header(header));
    ASSERT_EQ(result.code(), Code::corrupt);
    EXPECT_NE(result.status().text().find(GetParam().told), std::string::npos) << result.status().text();
}
INSTANTIATE_TEST_SUITE_P(Image, ImageInvariants, testing::ValuesIn(violations), [](const auto& test) {
    std::string name = test.param.called;
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
});

// Writers keep two ranks in one header; only one can be read back.
TEST(Image, RankOfHeaderAndImageDiffer) {
    ImageHeader header = samples::image_header();
    header.rank = 1;
    EXPECT_EQ(check_image_header(header).code(), Code::corrupt);
}

TEST(Image, SlotFileTooShort) {
    const ImageHeader header = samples::image_header();
    const std::uint64_t end = header.data_offset + header.image.bytes;
    EXPECT_TRUE(check_image_fits(header, end).ok());
    for (const std::uint64_t bytes : {end - 1, header.data_offset, header.data_offset - 1, std::uint64_t{0}})
        EXPECT_EQ(check_image_fits(header, bytes).code(), Code::corrupt) << bytes;
}

}  // namespace
}  // namespace cairn
