// From protected regions to a sealed image: memory that is not there, and what the slot holds afterwards.
#include "client/capture.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "base/checksum.hpp"
#include "client/testing.hpp"
#include "copies/scratch.hpp"
#include "format/region_index.hpp"
#include "model/checksum_units.hpp"
#include "read/regions.hpp"
#include "read/verify.hpp"
#include "world/real/world.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

MemoryMap memory_now() { return MemoryMap::read().value(); }

// A slot as the daemon hands it out, full of what an older image left.
class Capture : public testing::Test {
  protected:
    void SetUp() override {
        ImageHeader header;
        header.key = {"series", 3, {1, 2}};
        header.epoch = 1;
        header.rank = 1;
        header.ranks = 2;
        header.block_bytes = 4096;
        header_ = header;
        for (std::size_t i = 0; i < std::size(field_); ++i) field_[i] = static_cast<std::uint32_t>(i * 2654435761u);
        const std::uint64_t shape[] = {std::size(field_)};
        ASSERT_TRUE(regions_.add_memory("field", field_, CAIRN_U32, 1, shape).ok());
    }
    SlotMaps::Map& slot(std::uint64_t bytes) {
        const std::string path = place_.file("slot-0");
        std::ofstream(path) << std::string(bytes, 'x');
        return *slots_.map(path, bytes).value();
    }
    CapturePlan plan() { return plan_capture(header_, regions_, memory_now()).value(); }
    static ByteView image_in(const SlotMaps::Map& slot, const ImageHeader& header) {
        return {slot.base + header.data_offset, header.image.bytes};
    }

    void expect_checksums(const SlotMaps::Map& to, const CapturePlan& planned) {
        const ByteView image = image_in(to, planned.header);
        const std::vector<std::uint64_t> ends = unit_ends({4096, 0, planned.header.cuts}, image.size());
        for (std::size_t unit = 0, begin = 0; unit < ends.size(); begin = ends[unit++]) {
            std::uint64_t sum = 0;
            std::memcpy(&sum, to.base + planned.header.checksums_offset + 8 * unit, sizeof sum);
            EXPECT_EQ(sum, checksum(image.subspan(begin, ends[unit] - begin))) << unit;
        }
    }

    TemporaryPlace place_;
    ImageHeader header_;
    RegionTable regions_;
    SlotMaps slots_;
    std::uint32_t field_[5000];
};

TEST_F(Capture, SealsAWholeImage) {
    std::uint8_t odd[5] = {1, 2, 3, 4, 5}, last[7] = {};
    const std::uint64_t five[] = {5}, seven[] = {7};
    ASSERT_TRUE(regions_.add_memory("odd", odd, CAIRN_U8, 1, five).ok());
    ASSERT_TRUE(regions_.add_memory("last", last, CAIRN_U8, 1, seven).ok());
    const CapturePlan planned = plan();
    auto& to = slot(planned.slot_bytes + 4096);
    ASSERT_TRUE(capture(planned, regions_, to, false).ok());
    EXPECT_TRUE(image_is_sealed(to.base));
    EXPECT_FALSE(image_is_checksummed(to.base));
    auto header = decode_image_header({to.base + image_header_offset, to.bytes - image_header_offset}).value();
    header.cuts.resize(header.image.cuts);
    std::memcpy(header.cuts.data(), to.base + header.checksums_offset + 8 * image_units(header), 8 * header.cuts.size());
    const ByteView image = image_in(to, header);
    EXPECT_EQ(header.cuts, (std::vector<std::uint64_t>{sizeof field_, image.size() - header.image.index_bytes})) << "the field is cut from what is beside it, and the index";
    EXPECT_TRUE(header.image.regions.empty()) << "they are in the image";
    header.image.regions = decode_region_index(image.last(header.image.index_bytes), image.size() - header.image.index_bytes).value();
    EXPECT_EQ(header, planned.header);
    EXPECT_EQ(header.key.version, 3u);
    EXPECT_EQ(std::memcmp(image.data(), field_, sizeof field_), 0);
    EXPECT_EQ(std::memcmp(image.data() + header.image.regions[1].offset, odd, 5), 0);
    for (std::uint64_t gap = header.image.regions[1].offset + 5; gap < header.image.regions[2].offset; ++gap)
        ASSERT_EQ(image[gap], std::byte{0}) << "an older image shows at " << gap;
    for (std::uint64_t tail = header.data_offset + header.image.bytes; tail < planned.slot_bytes; ++tail)
        ASSERT_EQ(to.base[tail], std::byte{0}) << "an older image shows behind the end";
}

TEST_F(Capture, MakesChecksumsInTheSamePass) {
    const CapturePlan planned = plan();
    auto& to = slot(planned.slot_bytes);
    ASSERT_TRUE(capture(planned, regions_, to, true).ok());
    EXPECT_TRUE(image_is_checksummed(to.base));
    const ByteView image = image_in(to, planned.header);
    ASSERT_NE(image.size() % 4096, 0u) << "the last block is to be a short one";
    expect_checksums(to, planned);
}

TEST_F(Capture, MakesAChecksumForEachUnit) {
    std::vector<std::uint8_t> large(9000, 7), small(10, 8);
    const std::uint64_t many[] = {large.size()}, few[] = {small.size()};
    ASSERT_TRUE(regions_.add_memory("small", small.data(), CAIRN_U8, 1, few).ok());
    ASSERT_TRUE(regions_.add_memory("large", large.data(), CAIRN_U8, 1, many).ok());
    const CapturePlan planned = plan();
    EXPECT_EQ(planned.header.cuts.size(), 4u) << "before and behind the large one, before the index, and where the small one begins";
    auto& to = slot(planned.slot_bytes);
    ASSERT_TRUE(capture(planned, regions_, to, true).ok());
    expect_checksums(to, planned);
}

// Of a hundred thousand: the header is as short as with one, and a name costs three reads of the index.
TEST_F(Capture, OneRegionOfVeryManyIsFoundByFewReads) {
    const std::size_t header_bytes = plan().encoded.size();
    std::vector<double> values(100'000);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<double>(i);
        const std::uint64_t one[] = {1};
        ASSERT_TRUE(regions_.add_memory(("layers/" + std::to_string(i) + "/weight").c_str(), &values[i], CAIRN_F64, 1, one).ok());
    }
    const CapturePlan planned = plan();
    EXPECT_EQ(planned.encoded.size(), header_bytes);
    ASSERT_TRUE(capture(planned, regions_, slot(planned.slot_bytes), true).ok());

    const std::unique_ptr<RealWorld> real = RealWorld::create({}).value();
    World world = real->world();
    const Nanos until = real->loop().now() + 60 * second;
    VersionCopies copies;
    copies.slots.emplace(1, **real->loop().run(read_image(world, place_.file("slot-0"), until)));
    for (const int i : {0, 1, 777, 50'000, 99'999}) {
        const std::string name = "layers/" + std::to_string(i) + "/weight";
        const Result<FoundRegion> found = real->loop().run(find_region(world, Layout("/nowhere"), copies, 1, name, {}));
        ASSERT_TRUE(found.ok()) << found.status().to_string();
        ASSERT_TRUE(found->region) << name;
        EXPECT_LE(found->index_reads, 3u);
        double value = 0;
        std::memcpy(&value, copies.slots.at(1).data.data() + found->region->offset, sizeof value);
        EXPECT_EQ(value, i);
    }
    EXPECT_FALSE(real->loop().run(find_region(world, Layout("/nowhere"), copies, 1, "layers/7/bias", {}))->region);
    ASSERT_TRUE(real->loop().run(load_regions(world, Layout("/nowhere"), copies, {}, {})).ok());
    EXPECT_EQ(copies.find(1)->regions, planned.header.image.regions);
}

// As its checksums hold, nothing else tells it.
TEST_F(Capture, AnIndexThatNobodyCanUseIsDamage) {
    CapturePlan planned = plan();
    planned.index.back() ^= std::byte{1};
    ASSERT_TRUE(capture(planned, regions_, slot(planned.slot_bytes), true).ok());
    const std::unique_ptr<RealWorld> real = RealWorld::create({}).value();
    World world = real->world();
    Seen seen;
    seen.key = header_.key;
    seen.ranks = header_.ranks;
    seen.state = SeenState::partial;
    const ScratchImage image{header_.key, 1, {}, 1, 2, planned.header.image.bytes, place_.file("slot-0"), {}};
    const Result<Verdict> verdict = real->loop().run(verify_seen(world, Layout("/nowhere"), seen, {image}, {}, {}));
    ASSERT_TRUE(verdict.ok()) << verdict.status().to_string();
    ASSERT_EQ(verdict->damage.size(), 1u);
    EXPECT_EQ(verdict->damage[0].rank, 1u);
    EXPECT_EQ(verdict->damage[0].region, region_index_name);
    EXPECT_THAT(verdict->damage[0].status.text(), HasSubstr("does not end as one"));
}

TEST_F(Capture, OfNothingIsAnImageToo) {
    ASSERT_TRUE(regions_.remove("field").ok());
    const CapturePlan planned = plan();
    EXPECT_EQ(planned.header.image.bytes, 0u);
    auto& to = slot(planned.slot_bytes);
    for (const bool checksums : {false, true}) {
        ASSERT_TRUE(capture(planned, regions_, to, checksums).ok());
        EXPECT_TRUE(image_is_sealed(to.base));
    }
}

TEST_F(Capture, NamesMemoryThatIsGone) {
    auto* gone = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const std::uint64_t shape[] = {8192};
    ASSERT_TRUE(regions_.add_memory("gone", gone, CAIRN_U8, 1, shape).ok());
    ::munmap(gone, 8192);
    const auto planned = plan_capture(header_, regions_, memory_now());
    EXPECT_EQ(planned.code(), Code::invalid_argument);
    EXPECT_THAT(planned.status().text(), HasSubstr("\"gone\" is not mapped"));
}

struct Text {
    std::string value;
    int size_answer = 0, write_answer = 0;
    static int size(void* context, std::uint64_t* bytes) {
        *bytes = static_cast<Text*>(context)->value.size();
        return static_cast<Text*>(context)->size_answer;
    }
    static int write(void* context, void* into, std::uint64_t bytes) {
        std::memcpy(into, static_cast<Text*>(context)->value.data(), bytes);
        return static_cast<Text*>(context)->write_answer;
    }
    static int read(void*, const void*, std::uint64_t) { return 0; }
};

TEST_F(Capture, CallbacksWriteStraightIntoTheImage) {
    Text text{std::string(10'000, 't')};
    ASSERT_TRUE(regions_.add_callbacks("text", &Text::size, &Text::write, &Text::read, &text).ok());
    const CapturePlan planned = plan();
    auto& to = slot(planned.slot_bytes);
    ASSERT_TRUE(capture(planned, regions_, to, true).ok());
    const Region& region = planned.header.image.regions[1];
    EXPECT_EQ(as_text(image_in(to, planned.header).subspan(region.offset, region.length)), text.value);

    text.write_answer = 7;
    const Status refused = capture(planned, regions_, to, false);
    EXPECT_EQ(refused.code(), Code::cancelled);
    EXPECT_THAT(refused.text(), HasSubstr("refused with 7"));
    EXPECT_FALSE(image_is_sealed(to.base)) << "the image before it is half overwritten";
    text.size_answer = 8;
    EXPECT_EQ(plan_capture(header_, regions_, memory_now()).code(), Code::cancelled);
}

TEST_F(Capture, ARoutedFileBecomesARegion) {
    const std::string path = place_.file("restart.bin");
    std::ofstream(path) << std::string(100'001, 'r');
    ASSERT_TRUE(regions_.add_file("restart", path.c_str()).ok());
    const CapturePlan planned = plan();
    const Region& region = planned.header.image.regions[1];
    EXPECT_EQ(region.offset % 4096, 0u);
    auto& to = slot(planned.slot_bytes);
    ASSERT_TRUE(capture(planned, regions_, to, false).ok());
    EXPECT_EQ(as_text(image_in(to, planned.header).subspan(region.offset, region.length)), std::string(100'001, 'r'));

    ASSERT_EQ(::truncate(path.c_str(), 50), 0);
    EXPECT_THAT(capture(planned, regions_, to, false).text(), HasSubstr("shorter"));
    EXPECT_FALSE(image_is_sealed(to.base));
    ::unlink(path.c_str());
    const auto missing = plan_capture(header_, regions_, memory_now());
    EXPECT_EQ(missing.code(), Code::not_found);
    EXPECT_THAT(missing.status().text(), HasSubstr(path));
}

TEST_F(Capture, SlotsStayMappedUntilTheyAreOtherFiles) {
    const std::string path = place_.file("slot-0");
    std::byte* const first = slot(8192).base;
    EXPECT_EQ(slots_.map(path, 8192).value()->base, first);
    EXPECT_EQ(slots_.map(path, 9000).code(), Code::internal);
    std::ofstream(place_.file("other")) << std::string(12'288, 'o');
    ASSERT_EQ(::rename(place_.file("other").c_str(), path.c_str()), 0);
    const auto* second = slots_.map(path, 12'288).value();
    EXPECT_EQ(second->bytes, 12'288u);
    EXPECT_EQ(static_cast<char>(second->base[0]), 'o');
}

// What is asked for ahead is enough, and not much more.
TEST_F(Capture, TheSlotThatIsAskedForAheadIsLargeEnough) {
    EXPECT_EQ(slot_bytes_ahead(RegionTable(), header_.block_bytes), 0u) << "nothing is protected";
    for (const std::size_t regions : {1u, 3u, 400u, 3000u}) {
        for (const std::size_t bytes : {1u, 65u, 4097u, 300'001u}) {
            if (regions * bytes > 200'000'000) continue;
            RegionTable table;
            std::vector<std::vector<std::uint8_t>> memory(regions, std::vector<std::uint8_t>(bytes));
            for (std::size_t i = 0; i < regions; ++i) {
                const std::uint64_t shape[] = {bytes};
                ASSERT_TRUE(table.add_memory(("layers/" + std::to_string(i) + "/a.name.of.some.length").c_str(), memory[i].data(), CAIRN_U8, 1, shape).ok());
            }
            const std::uint64_t needed = plan_capture(header_, table, memory_now()).value().slot_bytes;
            const std::uint64_t asked = slot_bytes_ahead(table, header_.block_bytes);
            EXPECT_GE(asked, needed) << regions << " regions of " << bytes;
            EXPECT_LE(asked, needed + needed / 50 + regions * 1024 + 64 * 1024) << regions << " regions of " << bytes;
        }
    }
}

}  // namespace
}  // namespace cairn
