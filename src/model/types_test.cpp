// How versions and images are named to people.
#include "model/types.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Types, AVersionIsNamedByItsSeriesAndNumber) {
    const VersionKey key{"melt", 3, {1, 2}};
    EXPECT_EQ(version_text(key), "melt version 3");
    EXPECT_EQ(version_text("melt", 18446744073709551614u), "melt version 18446744073709551614");
    EXPECT_EQ(image_text(key, 7), "melt version 3 rank 7");
}

}  // namespace
}  // namespace cairn
