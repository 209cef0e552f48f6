// The region index: what goes in comes back, one name is found by few pages, and nothing hostile comes through.
#include "format/region_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "format/check.hpp"
#include "region_index_generated.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

// Regions of 8 bytes each, with names in another order than they lie; `padding` characters more in each name.
std::vector<Region> many(std::size_t count, std::size_t padding = 0) {
    std::vector<Region> regions;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string name = std::string(padding, 'n') + "layer." + std::to_string(i * 7919 % count);
        regions.push_back({name, RegionKind::memory, DataType::f64, {1}, 8 * i, 8, {}, {}});
    }
    return regions;
}

// As a reader does it, with the pages that it read.
struct Looked {
    Result<InPage> found = corrupt("");
    int reads = 1;
};
Looked look(const RegionIndex& index, const std::string& name, std::uint64_t data_bytes) {
    Looked looked;
    IndexPage at = decode_region_index_end(ByteView(index.bytes).last(region_index_end_bytes), index.bytes.size()).value().page;
    EXPECT_LE(at.length + region_index_end_bytes, region_index_first_read_bytes);
    for (;; ++looked.reads) {
        looked.found = find_in_page(ByteView(index.bytes).subspan(at.offset, at.length), at, name, data_bytes);
        if (!looked.found.ok() || !looked.found->below) return looked;
        at = *looked.found->below;
    }
}

bool is_too_deep(const Result<std::vector<Region>>& regions) { return regions.status().text().find("levels of pages") != std::string::npos; }

TEST(RegionIndex, OfNoRegionsIsNothing) { EXPECT_TRUE(encode_region_index({}).bytes.empty()); }

TEST(RegionIndex, GivesBackWhatItIsMadeOf) {
    for (const std::size_t count : {1u, 2u, 300u, 20'000u}) {
        std::vector<Region> regions = many(count);
        regions.push_back({"empty", RegionKind::callback, DataType::bytes, {0}, 8 * count, 0, {}, {}});
        regions.push_back({"block", RegionKind::memory, DataType::u8, {4, 5}, 8 * count, 20, {40, 50}, {36, 45}});
        const std::uint64_t data_bytes = 8 * count + 20;
        const RegionIndex index = encode_region_index(regions);
        EXPECT_EQ(index.bytes.size() % 8, 0u);
        std::uint64_t at = 0;
        for (const IndexPage& page : index.pages) {
            EXPECT_EQ(page.offset, at);
            at += page.length;
        }
        EXPECT_EQ(at, index.bytes.size());
        const Result<std::vector<Region>> back = decode_region_index(index.bytes, data_bytes);
        ASSERT_TRUE(back.ok()) << back.status().to_string();
        EXPECT_EQ(*back, regions) << count;
        EXPECT_EQ(decode_region_index(index.bytes, data_bytes - 1).code(), Code::corrupt) << "a region leaves the image";
    }
}

// As many as there can be, with names as long as they may be: its page is longer than the topmost page is.
TEST(RegionIndex, KeepsWhatIsSaidOfARegion) {
    for (const std::size_t arrays : {1u, 2u, 1000u}) {
        std::vector<Region> regions = many(300);
        regions.push_back({"made", RegionKind::callback, DataType::bytes, {20}, 2400, 20, {}, {}, {}});
        for (std::size_t i = 0; i < arrays; ++i)
            regions.back().described.push_back({std::string(arrays == 1000 ? 255 : i, 'n'), i == 0 ? DataType::c128 : DataType::i16, i == 1, std::vector<std::uint64_t>(1 + i % 32, 3), 7 * i});
        regions.back().described.front().shape.push_back(open_axis);
        const RegionIndex index = encode_region_index(regions);
        const Result<std::vector<Region>> back = decode_region_index(index.bytes, 2420);
        ASSERT_TRUE(back.ok()) << back.status().to_string();
        EXPECT_EQ(*back, regions);
        const std::vector<Region> one{regions.back()};
        const RegionIndex alone = encode_region_index(one);
        const Looked looked = look(alone, "made", 2420);
        ASSERT_TRUE(looked.found.ok() && looked.found->region) << looked.found.status().to_string();
        EXPECT_EQ(*looked.found->region, one[0]);
        EXPECT_EQ(decode_region_index(alone.bytes, 2420).value(), one);
        EXPECT_EQ(looked.reads, arrays == 1000 ? 2 : 1);
    }
}

// A later release may say what this one does not understand, and a hostile image anything: the region is there all the same.
TEST(RegionIndex, LeavesOutWhatCanNotBeSaidOfARegion) {
    const DescribedArray good{"good", DataType::f64, true, {open_axis, 3}, 8};
    Region region{"made", RegionKind::file, DataType::bytes, {20}, 0, 20, {}, {}, {good}};
    const auto add = [&](auto change) {
        DescribedArray bad = good;
        change(bad);
        region.described.push_back(bad);
    };
    add([](DescribedArray& a) { a.type = DataType::bytes; });
    add([](DescribedArray& a) { a.type = static_cast<DataType>(15); });
    add([](DescribedArray& a) { a.type = static_cast<DataType>(255); });
    add([](DescribedArray& a) { a.name = std::string(256, 'n'); });
    add([](DescribedArray& a) { a.name = "\x1b[2J"; });
    add([](DescribedArray& a) { a.shape = {}; });
    add([](DescribedArray& a) { a.shape = {5, 0}; });
    add([](DescribedArray& a) { a.shape = {open_axis, open_axis}; });
    add([](DescribedArray& a) { a.shape = {1ull << 60, 1ull << 60}; });
    add([](DescribedArray& a) { a.shape = std::vector<std::uint64_t>(33, 1); });
    add([](DescribedArray& a) { a.offset = UINT64_MAX; });
    for (int more = 0; more < 1000; ++more) add([&](DescribedArray& a) { a.offset = 8 + more; });
    const Result<std::vector<Region>> back = decode_region_index(encode_region_index({region}).bytes, 20);
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(back->at(0).length, 20u);
    ASSERT_EQ(back->at(0).described.size(), 1000u - 11) << "of the first thousand those that can be";
    for (const DescribedArray& array : back->at(0).described) EXPECT_EQ(array.shape, good.shape);
}

TEST(RegionIndex, OneOfAHundredThousandIsFoundByThreeReads) {
    for (const std::size_t padding : {0u, 490u}) {  // the second: names as long as they may be
        const std::vector<Region> regions = many(100'000, padding);
        const RegionIndex index = encode_region_index(regions);
        for (std::size_t i = 0; i < regions.size(); i += 997) {
            const Looked looked = look(index, regions[i].name, 800'000);
            ASSERT_TRUE(looked.found.ok()) << looked.found.status().to_string();
            ASSERT_TRUE(looked.found->region);
            EXPECT_EQ(*looked.found->region, regions[i]);
            EXPECT_LE(looked.reads, 3);
        }
        for (const char* absent : {"", "a", "layer.", "layer.99999x", "zzz"}) {
            const Looked looked = look(index, std::string(padding, 'n') + absent, 800'000);
            ASSERT_TRUE(looked.found.ok());
            EXPECT_FALSE(looked.found->region) << absent;
        }
    }
}

TEST(RegionIndex, OfADamagedEndIsCorrupt) {
    const RegionIndex index = encode_region_index(many(1000));
    for (std::size_t cut = 1; cut <= 64; ++cut) EXPECT_EQ(decode_region_index(ByteView(index.bytes).first(index.bytes.size() - cut), 8000).code(), Code::corrupt);
    for (std::size_t byte = index.bytes.size() - region_index_end_bytes; byte < index.bytes.size(); ++byte) {
        Bytes other = index.bytes;
        other[byte] ^= std::byte{1};
        EXPECT_EQ(decode_region_index(other, 8000).code(), Code::corrupt) << byte;
    }
}

// Checksums keep chance out; what is left is an index that somebody made to do harm.
TEST(RegionIndex, OfHostileBytesHoldsItsInvariantsOrIsCorrupt) {
    std::vector<Region> said = many(1000);
    said.back() = {"made", RegionKind::file, DataType::bytes, {8}, said.back().offset, 8, {}, {}, std::vector<DescribedArray>(1000, {"name", DataType::f32, false, {2, open_axis}, 3})};
    const RegionIndex index = encode_region_index(said);
    std::mt19937_64 random(1);
    int refused = 0;
    for (int round = 0; round < 3000; ++round) {
        Bytes other = index.bytes;
        for (int flips = 0; flips < 4; ++flips) other[random() % other.size()] = static_cast<std::byte>(random());
        const Result<std::vector<Region>> regions = decode_region_index(other, 8000);
        refused += !regions.ok();
        if (!regions.ok()) EXPECT_EQ(regions.code(), Code::corrupt);
        else for (const Region& region : *regions) {
            EXPECT_LE(region.offset + region.length, 8000u);
            for (const DescribedArray& array : region.described) EXPECT_TRUE(check::can_be(array));
        }
    }
    EXPECT_GT(refused, 1000);
}

// One page is said to reach over the next one: each is looked at for all that it is said to be.
TEST(RegionIndex, OfPagesThatOverlapIsCorrupt) {
    RegionIndex index = encode_region_index(many(200));
    ASSERT_EQ(index.pages.size(), 3u) << "two pages of regions, and the one above them";
    const std::uint64_t first = index.pages[0].length, both = first + index.pages[1].length;
    std::size_t changed = 0;
    for (std::uint64_t at = index.pages[2].offset; at + 8 < index.bytes.size(); at += 4) {
        if (std::memcmp(index.bytes.data() + at, &first, 8) != 0) continue;
        Bytes other = index.bytes;
        std::memcpy(other.data() + at, &both, 8);
        const Result<std::vector<Region>> regions = decode_region_index(other, 1600);
        changed += regions.status().text().find("one over the other") != std::string::npos;
    }
    EXPECT_EQ(changed, 1u) << "the length of the first page";
}

// Each page names the one before it, and nothing else.
TEST(RegionIndex, OfMoreLevelsThanThereCanBeIsCorrupt) {
    for (const int levels : {region_index_levels_max, region_index_levels_max + 1}) {
        Bytes bytes;
        IndexPage last;
        const auto append = [&](const flatbuffers::FlatBufferBuilder& builder) {
            const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
            last = {bytes.size(), round_up(builder.GetSize(), 8)};
            bytes.insert(bytes.end(), data, data + builder.GetSize());
            bytes.resize(last.offset + last.length);
        };
        for (int level = 0; level < levels; ++level) {
            flatbuffers::FlatBufferBuilder builder;
            if (level == 0) {
                const std::vector<flatbuffers::Offset<fb::Region>> one{fb::CreateRegion(builder, builder.CreateString("a"))};
                fb::FinishRegionPageBuffer(builder, fb::CreateRegionPage(builder, builder.CreateVector(one)));
            } else {
                const std::vector<flatbuffers::Offset<fb::PageRef>> one{fb::CreatePageRef(builder, builder.CreateString("a"), last.offset, last.length)};
                fb::FinishRegionPageBuffer(builder, fb::CreateRegionPage(builder, 0, builder.CreateVector(one)));
            }
            append(builder);
        }
        const std::uint64_t end[3] = {last.offset, last.length, 1};
        const ByteView words = std::as_bytes(std::span(end)), magic = std::as_bytes(std::span("CAIRNreg", 8));
        bytes.insert(bytes.end(), words.begin(), words.end());
        bytes.insert(bytes.end(), magic.begin(), magic.end());
        const Result<std::vector<Region>> regions = decode_region_index(bytes, 8);
        if (levels <= region_index_levels_max) EXPECT_FALSE(is_too_deep(regions)) << regions.status().to_string();
        else EXPECT_TRUE(is_too_deep(regions)) << regions.status().to_string();
    }
}

TEST(RegionIndex, OfAPageThatNamesOneBehindItIsCorrupt) {
    const RegionIndex index = encode_region_index(many(200));
    ASSERT_EQ(index.pages.size(), 3u) << "two pages of regions, and the one above them";
    const IndexPage top = index.pages.back();
    const std::uint64_t length = top.length - region_index_end_bytes;
    const ByteView page = ByteView(index.bytes).subspan(top.offset, length);
    EXPECT_TRUE(find_in_page(page, {top.offset, length}, "layer.0", 1600).ok());
    EXPECT_THAT(find_in_page(page, {0, length}, "layer.0", 1600).status().text(), HasSubstr("names one at"));
}

}  // namespace
}  // namespace cairn
