// The header of a safetensors part, made of what the part holds: of images whose region index is read back from it, and only where that is what was written.
#include "engine/leader/tensor_file.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/checksum.hpp"
#include "engine/role_testing.hpp"
#include "format/region_index.hpp"
#include "format/safetensors.hpp"
#include "model/checksum_units.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::role_block;

struct Nothing {
    explicit Nothing(Common&) {}
};

// One image of a tensor of 1000 numbers and its index, in a part that has room for a header.
struct TensorFile : ::testing::Test {
    void SetUp() override {
        Region weights;
        weights.name = "w";
        weights.type = DataType::f32;
        weights.shape = {1000};
        weights.length = 4000;
        image = testing::bytes_in(testing::role_bytes(3, role_block), 0, 4000);
        image.resize(round_up(image.size(), region_index_align));
        const Bytes index = encode_region_index({weights}).bytes;
        info = {3, image.size() + index.size()};
        info.index_bytes = index.size();
        info.naming_bytes = tensors_naming_bytes({weights});
        info.cuts = 1;
        cuts = {image.size()};
        image.insert(image.end(), index.begin(), index.end());
        plan.shares = {{0, 0, 0, {{0, {{3, 0, info.bytes}}}}}};
        part.emplace(node.world, plan, 0);
        part->places = tensor_places(plan.shares.front().nodes, {{3, info}});
        const std::string directory = node.layout.persistent + "/a";
        ASSERT_TRUE(node.result_of(node.world.storage.make_directory(directory, 0755, node.world.clock.in(second))).ok());
        part->path = directory + "/part";
        OpenOptions options;
        options.mode = OpenMode::create;
        part->file = node.result_of(node.world.storage.open(part->path, options, node.world.clock.in(second))).value();
        put(part->places->prefix_bytes, image);
        footer.block_bytes = role_block;
        footer.images = {info};
        StoredPiece piece{3, 0, info.bytes, 0, {}, cuts};
        std::uint64_t begin = 0;
        for (const std::uint64_t end : unit_ends({role_block, 0, cuts}, info.bytes)) {
            piece.checksums.push_back(checksum(ByteView(image).subspan(begin, end - begin)));
            begin = end;
        }
        footer.runs = {{part->places->prefix_bytes, info.bytes, 0, 0, {piece}}};
    }
    void put(std::uint64_t offset, Bytes bytes) {
        Slice data = Slice::of(std::move(bytes));
        ASSERT_TRUE(node.result_of(write_all(node.world.storage, part->file, offset, std::move(data), node.world.clock.in(second))).ok());
    }
    Status write() { return node.result_of(write_tensors_header(node.world, *part, footer, second)); }
    Bytes written() {
        const Slice into = Slice::of(Bytes(part->places->prefix_bytes));
        EXPECT_TRUE(node.result_of(read_all(node.world.storage, part->file, 0, into, node.world.clock.in(second))).ok());
        return Bytes(into.bytes().begin(), into.bytes().end());
    }

    Alone<Nothing> node{testing::RoleOptions()};
    Bytes image;
    ImageInfo info;
    std::vector<std::uint64_t> cuts;
    PartPlan plan;
    std::optional<PartState> part;
    Footer footer;
};

TEST_F(TensorFile, TheHeaderSaysWhatTheRegionIndexSays) {
    ASSERT_TRUE(write().ok());
    const Bytes header = written();
    EXPECT_EQ(footer.prefix_checksum, checksum(header));
    const nlohmann::json named = nlohmann::json::parse(reinterpret_cast<const char*>(header.data()) + 8, reinterpret_cast<const char*>(header.data()) + header.size());
    EXPECT_EQ(named["w"], nlohmann::json::parse(R"({"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]})"));
    EXPECT_EQ(named["cairn//3.0"]["data_offsets"], nlohmann::json({4000, info.bytes}));
}

TEST_F(TensorFile, ARegionIndexThatIsNotWhatWasWrittenIsNoHeader) {
    put(part->places->prefix_bytes + info.bytes - info.index_bytes, Bytes(1, std::byte{0x55}));
    EXPECT_EQ(write().code(), Code::io_error);
}

TEST_F(TensorFile, WithoutItsChecksumsAnIndexIsNotBelieved) {
    footer.runs.front().pieces.front().checksums.pop_back();
    EXPECT_EQ(write().code(), Code::io_error);
}

}  // namespace
}  // namespace cairn::engine
