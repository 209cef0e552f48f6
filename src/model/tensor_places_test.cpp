#include "model/tensor_places.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(TensorPlaces, AreBehindRoomForTheHeaderEachFromAPageOn) {
    std::map<Rank, ImageInfo> images;
    for (const auto& [rank, bytes, naming] : {std::tuple<Rank, std::uint64_t, std::uint64_t>{4, 5000, 4000}, {2, 0, 40}, {9, 4096, 300}}) {
        images[rank].rank = rank;
        images[rank].bytes = bytes;
        images[rank].naming_bytes = naming;
    }
    const TensorPlaces places = tensor_places({{0, {{4, 0, 5000}, {2, 0, 0}}}, {1, {{9, 0, 4096}}}}, images);
    EXPECT_EQ(places.prefix_bytes, 8192u) << "64 + 4340 in whole pages";
    EXPECT_EQ(places.begins, (std::map<Rank, std::uint64_t>{{4, 8192}, {9, 16384}}));
    EXPECT_EQ(places.end, 20480u);
    EXPECT_EQ(tensor_places({{0, {{2, 0, 0}}}}, images), (TensorPlaces{4096, {}, 4096})) << "a part without a byte is a header";
}

}  // namespace
}  // namespace cairn
