// Runs of content against plain bytes: whatever way content came about, the bytes and the checksum are the same.
#include "world/sim/content.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/checksum.hpp"
#include "world/sim/prng.hpp"

namespace cairn::sim {
namespace {

// Content and the same as plain bytes, changed side by side at random.
struct Twin {
    Content content;
    Bytes bytes;
    Prng prng;
    explicit Twin(std::uint64_t seed) : prng(seed) {}

    void write(std::uint64_t offset, const Runs& runs) {
        content.write(offset, runs);
        const Bytes plain = materialise(runs);
        if (bytes.size() < offset + plain.size()) bytes.resize(offset + plain.size());
        std::copy(plain.begin(), plain.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    void step() {
        const std::uint64_t offset = prng.below(5000), length = prng.between(1, 3000);
        switch (prng.below(6)) {
            case 0: write(offset, runs_of_description(prng.below(3), prng.below(100), length)); break;
            case 1: {
                Bytes real(length);
                for (std::byte& byte : real) byte = static_cast<std::byte>(prng.next());
                write(offset, runs_of_bytes(real));
                break;
            }
            case 2: write(offset, {Run{Run::Kind::hole, 0, 0, length, nullptr}}); break;
            case 3: write(offset, content.read(prng.below(6000), length)); break;  // a copy of itself
            case 4:
                content.resize(offset);
                bytes.resize(offset);
                break;
            case 5:
                if (bytes.empty()) break;
                content.flip_bit(offset % bytes.size(), 3);
                bytes[offset % bytes.size()] ^= std::byte{8};
                break;
        }
    }
};

std::uint64_t stored(const Content& content) {
    std::uint64_t sum = 0;
    for (const Run& run : content.read(0, content.size()))
        if (run.kind != Run::Kind::hole) sum += run.length;
    return sum;
}

TEST(Content, BehavesLikeBytes) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        Twin twin(seed);
        for (int i = 0; i < 150; ++i) {
            twin.step();
            ASSERT_EQ(twin.content.size(), twin.bytes.size());
            ASSERT_EQ(twin.content.stored_bytes(), stored(twin.content)) << "seed " << seed << " step " << i;
            const Runs all = twin.content.read(0, twin.content.size());
            ASSERT_TRUE(materialise(all) == twin.bytes) << "seed " << seed << " step " << i;
            ASSERT_TRUE(equal(all, runs_of_bytes(twin.bytes)));
            ASSERT_EQ(checksum_of(all), checksum(twin.bytes));
        }
    }
}

TEST(Content, MappedBytesStayWhereTheyAre) {
    Content content;
    content.write(10, runs_of_bytes(Bytes(100, std::byte{1})));
    ASSERT_TRUE(content.can_flatten());
    std::byte* data = content.flatten();
    EXPECT_EQ(data[9], std::byte{0});
    EXPECT_EQ(data[10], std::byte{1});
    data[10] = std::byte{2};
    content.write(50, runs_of_description(1, 0, 1000));  // over its end
    EXPECT_EQ(content.size(), 1050u);
    EXPECT_FALSE(content.can_flatten());
    EXPECT_EQ(materialise(content.read(10, 1))[0], std::byte{2});
    EXPECT_TRUE(equal(content.read(50, 1000), runs_of_description(1, 0, 1000)));
    EXPECT_TRUE(std::equal(data + 50, data + 110, materialise(runs_of_description(1, 0, 60)).begin()));
    content.resize(20);
    content.resize(110);
    EXPECT_EQ(data[10], std::byte{2});
    EXPECT_EQ(data[60], std::byte{0});
    EXPECT_TRUE(content.can_flatten());
    EXPECT_EQ(content.flatten(), data);
}

// Long ranges, which are not materialised.
TEST(Content, ChecksumOfLongRangesDependsOnBytesOnly) {
    constexpr std::uint64_t length = 10 * exact_bytes_max;
    Content content, pieces;
    content.write(0, runs_of_description(7, 100, length));
    for (std::uint64_t at = length; at > 0; at -= length / 10)  // from the back, in ten pieces
        pieces.write(at - length / 10, runs_of_description(7, 100 + at - length / 10, length / 10));
    const std::uint64_t sum = checksum_of(content.read(0, length));
    EXPECT_EQ(checksum_of(pieces.read(0, length)), sum);
    EXPECT_NE(checksum_of(runs_of_description(7, 101, length)), sum);
    EXPECT_NE(checksum_of(runs_of_description(8, 100, length)), sum);
    EXPECT_NE(checksum_of(runs_of_description(7, 100, length - 1)), sum);
    for (std::uint64_t byte : {std::uint64_t{0}, length / 2, length - 1}) {
        content.flip_bit(byte, 5);
        EXPECT_NE(checksum_of(content.read(0, length)), sum);
        EXPECT_FALSE(equal(content.read(0, length), pieces.read(0, length)));
        content.flip_bit(byte, 5);
        EXPECT_EQ(checksum_of(content.read(0, length)), sum);
        EXPECT_TRUE(equal(content.read(0, length), pieces.read(0, length)));
    }
    Runs real = runs_of_bytes(materialise(runs_of_description(7, 100, length)));
    EXPECT_EQ(checksum_of(real), checksum(materialise(real)));
    Runs halves = runs_of_bytes(ByteView(*real[0].bytes).subspan(0, 99'999));
    halves.push_back(runs_of_bytes(ByteView(*real[0].bytes).subspan(99'999))[0]);
    EXPECT_EQ(checksum_of(halves), checksum_of(real));
    Content zeros;
    zeros.resize(length);
    EXPECT_EQ(checksum_of(zeros.read(0, length)), checksum_of(runs_of_bytes(Bytes(length))));
}

TEST(Content, ChecksumsOfBlocksAreThoseOfEachBlock) {
    Content content;
    content.write(0, runs_of_description(7, 100, 700'000));
    content.write(300'000, runs_of_bytes(Bytes(50'000, std::byte{9})));
    content.write(500'000, runs_of_description(8, 0, 100));
    content.resize(900'001);  // a hole at the end
    for (const std::uint64_t block : {std::uint64_t{4096}, exact_bytes_max, exact_bytes_max + 1, std::uint64_t{200'000}, std::uint64_t{2'000'000}}) {
        const std::vector<std::uint64_t> sums = checksums_of(content.read(0, content.size()), block);
        ASSERT_EQ(sums.size(), (content.size() + block - 1) / block);
        for (std::size_t i = 0; i < sums.size(); ++i)
            EXPECT_EQ(sums[i], checksum_of(content.read(i * block, std::min(block, content.size() - i * block)))) << block << ", block " << i;
    }
    EXPECT_TRUE(checksums_of({}, 4096).empty());
}

TEST(Content, SlicesOfBothKinds) {
    const Slice described = describe(3, 10'000, 5);
    EXPECT_EQ(described.buffer->data(), nullptr);
    const Slice real = Slice::of(Bytes(10'000));
    EXPECT_FALSE(content_equal(described, real));
    put(real, runs_of(described));
    EXPECT_TRUE(content_equal(described, real));
    EXPECT_TRUE(content_equal(described.part(100, 50), describe(3, 50, 105)));
    EXPECT_FALSE(content_equal(described.part(100, 50), describe(3, 50, 104)));
    auto content = std::make_shared<Content>();
    const Slice other{std::make_shared<SimBuffer>(content, 20'000), 4'000, 10'000};
    put(other, runs_of(real));
    EXPECT_TRUE(content_equal(other, described));
    real.data()[9'999] ^= std::byte{1};
    EXPECT_FALSE(content_equal(real, described));
    EXPECT_TRUE(content_equal(other, described));  // a copy was taken
}

}  // namespace
}  // namespace cairn::sim
