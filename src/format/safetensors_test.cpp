// Headers of safetensors files: that they name every region and leave no gap, that their room is always enough, and that what reads them takes no other bytes for one. That the
// package of other programs reads them shows tests/safetensors_test.py.
#include "format/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "base/units.hpp"
#include "model/tensor_places.hpp"

namespace cairn {
namespace {

using Json = nlohmann::json;

Region region(std::string name, DataType type, std::vector<std::uint64_t> shape, std::uint64_t offset) {
    Region made;
    made.name = std::move(name);
    made.type = type;
    made.length = type_bytes(type);
    for (const std::uint64_t extent : shape) made.length *= extent;
    made.shape = std::move(shape);
    made.offset = offset;
    return made;
}

Json parsed(const Bytes& header) {
    const auto* const begin = reinterpret_cast<const char*>(header.data());
    return Json::parse(begin + 8, begin + header.size());
}

Json header_of(const std::vector<TensorImage>& images) { return parsed(encode_safetensors_header(images, 1 << 16).value()); }

TEST(SafetensorsHeader, NamesRegionsAndWhatIsBetweenThem) {
    const Json header = header_of({{3, 0, 100, {region("w", DataType::bf16, {2, 3}, 0), region("b", DataType::f64, {}, 16)}}});
    EXPECT_EQ(header, Json::parse(R"({"w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, "cairn//3.0": {"dtype": "U8", "shape": [4], "data_offsets": [12, 16]},
        "b": {"dtype": "F64", "shape": [], "data_offsets": [16, 24]}, "cairn//3.1": {"dtype": "U8", "shape": [76], "data_offsets": [24, 100]}})"));
}

TEST(SafetensorsHeader, TellsRanksApartWhereTheyHaveOneName) {
    const std::vector<Region> regions = {region("w", DataType::u8, {8}, 0)};
    const Json header = header_of({{0, 0, 8, regions}, {7, 4096, 8, regions}, {9, 8192, 8, {region("mine", DataType::i8, {8}, 0)}}});
    EXPECT_EQ(header["w//rank0"]["data_offsets"], Json({0, 8}));
    EXPECT_EQ(header["cairn//7.0"]["data_offsets"], Json({8, 4096})) << "the way to the next image";
    EXPECT_EQ(header["w//rank7"]["data_offsets"], Json({4096, 4104}));
    EXPECT_TRUE(header.contains("mine"));
    EXPECT_FALSE(header.contains("w"));
}

TEST(SafetensorsHeader, HasAllTypesAndNamesOfItsOwn) {
    EXPECT_EQ(header_of({{0, 0, 32, {region("z", DataType::c64, {2, 2}, 0)}}})["z"], Json::parse(R"({"dtype": "F32", "shape": [2, 2, 2], "data_offsets": [0, 32]})"));
    EXPECT_EQ(header_of({{0, 0, 16, {region("z", DataType::c128, {}, 0)}}})["z"], Json::parse(R"({"dtype": "F64", "shape": [2], "data_offsets": [0, 16]})"));
    EXPECT_TRUE(header_of({{0, 0, 8, {region("__metadata__", DataType::u8, {8}, 0)}}}).contains("__metadata__//rank0"));
    EXPECT_TRUE(header_of({{0, 0, 8, {region("a \"quoted\\\" \xC3\xA9", DataType::u8, {8}, 0)}}}).contains("a \"quoted\\\" \xC3\xA9"));
    EXPECT_EQ(header_of({}), Json::object());
}

TEST(SafetensorsHeader, LeavesOutWhatLiesOverAnother) {
    const Json header = header_of({{0, 0, 24, {region("a", DataType::u8, {16}, 0), region("b", DataType::u8, {16}, 8)}}});
    EXPECT_EQ(header["cairn//0.0"]["data_offsets"], Json({16, 24}));
    EXPECT_FALSE(header.contains("b"));
}

// Whatever regions there are, also with gaps before each, and numbers as long as they get.
TEST(SafetensorsHeader, FitsIntoTheRoomThatWasLeftForIt) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<TensorImage> images;
        std::uint64_t room = tensors_frame_bytes, at = 0;
        for (std::uint64_t i = 0, count = 1 + random() % 4; i < count; ++i) {
            TensorImage image{static_cast<Rank>(round % 2 == 0 ? i : (1u << 24) - 1 - i), at, 0, {}};
            for (std::uint64_t r = 0, regions = random() % 12; r < regions; ++r) {
                std::string name(1 + random() % 400, round % 3 == 0 ? '"' : 'n');
                name += std::to_string(r);
                if (random() % 2 == 0) image.bytes += random() % 3 == 0 ? std::uint64_t{1} << 58 : 1 + random() % 64;
                image.regions.push_back(region(name, static_cast<DataType>(random() % 15), std::vector<std::uint64_t>(random() % 5, 1 + random() % 9), image.bytes));
                image.bytes += image.regions.back().length;
            }
            image.bytes += random() % 2 == 0 ? 0 : 4096;
            at = round_up(at + image.bytes, part_alignment);
            room += tensors_naming_bytes(image.regions);
            images.push_back(std::move(image));
        }
        const Result<Bytes> header = encode_safetensors_header(images, round_up(room, part_alignment));
        ASSERT_TRUE(header.ok()) << round << ": " << header.status().to_string();
        std::uint64_t end = 0, most = 0;
        const Json named = parsed(*header);
        for (const auto& [name, tensor] : named.items()) end = std::max(end, tensor["data_offsets"][1].get<std::uint64_t>()), most += tensor["data_offsets"][1].get<std::uint64_t>() - tensor["data_offsets"][0].get<std::uint64_t>();
        EXPECT_EQ(end, most) << "gaps, or tensors over each other";
    }
    EXPECT_EQ(encode_safetensors_header({{0, 0, 8, {region("w", DataType::u8, {8}, 0)}}}, 40).code(), Code::internal);
}

TEST(SafetensorsHeader, IsReadForItsNames) {
    const Bytes header = encode_safetensors_header({{0, 0, 40, {region("w", DataType::f32, {2}, 0), region("v", DataType::f32, {2}, 16)}}}, 4096).value();
    EXPECT_EQ(safetensors_header_length(ByteView(header).first(8)).value(), 4088u);
    const Bytes several = encode_safetensors_header({{0, 0, 8, {region("cairn", DataType::u8, {8}, 0)}}, {1, 8, 8, {region("cairn", DataType::u8, {8}, 0)}}}, 4096).value();
    EXPECT_EQ(decode_safetensors_names(ByteView(several).subspan(8)).value().size(), 2u) << "a region's name, and not what lies between";
    EXPECT_THAT(decode_safetensors_names(ByteView(header).subspan(8)).value(), testing::UnorderedElementsAre(std::pair<std::string, std::uint64_t>("w", 8), std::pair<std::string, std::uint64_t>("v", 8)));
    EXPECT_EQ(safetensors_header_length(ByteView(header).first(7)).code(), Code::corrupt);
    EXPECT_EQ(safetensors_header_length(Bytes(8, std::byte{0xFF})).code(), Code::corrupt);
    EXPECT_EQ(safetensors_header_length(Bytes(8)).code(), Code::corrupt);
    EXPECT_EQ(decode_safetensors_names(as_bytes(std::string_view("[1, 2"))).code(), Code::corrupt);
    EXPECT_TRUE(decode_safetensors_names(as_bytes(std::string_view(R"({"a": 1, "b": {"data_offsets": [1]}})"))).value().empty());
}

TEST(SafetensorsIndex, IsAsOtherProgramsKnowIt) {
    const Bytes index = encode_safetensors_index({{"w", "file-1"}, {"v", "file-2"}}, 24, {0xA, 0xB});
    EXPECT_EQ(Json::parse(reinterpret_cast<const char*>(index.data()), reinterpret_cast<const char*>(index.data()) + index.size()),
              Json::parse(R"({"metadata": {"total_size": 24, "cairn_incarnation": "000000000000000a000000000000000b"}, "weight_map": {"w": "file-1", "v": "file-2"}})"));
    const ByteView begin = ByteView(index).first(std::min<std::size_t>(index.size(), safetensors_index_begin_bytes));
    EXPECT_TRUE(is_index_of(begin, {0xA, 0xB}));
    EXPECT_FALSE(is_index_of(begin, {0xA, 0xC}));
}

}  // namespace
}  // namespace cairn
