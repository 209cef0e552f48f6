#include "model/coverage.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::uint64_t block = 4096;

TEST(Coverage, IsTheSameHoweverAnImageIsCut) {
    const std::uint64_t whole = coverage(7, 0, 10 * block + 5, block);
    EXPECT_EQ(coverage(7, 0, 3 * block, block) + coverage(7, 3 * block, 7 * block + 5, block), whole);
    EXPECT_EQ(coverage(7, 10 * block, 5, block) + coverage(7, 0, 10 * block, block), whole);
    EXPECT_EQ(coverage(7, 0, 0, block), 0u);
}

TEST(Coverage, TellsWhatIsMissingDoubleOrSomebodyElses) {
    const std::uint64_t whole = coverage(0, 0, 4 * block, block) + coverage(1, 0, 4 * block, block);
    const std::uint64_t but_one = coverage(0, 0, 3 * block, block) + coverage(1, 0, 4 * block, block);
    EXPECT_NE(but_one, whole);
    EXPECT_NE(but_one + coverage(0, 2 * block, block, block), whole);  // one twice, one missing: as many bytes
    EXPECT_NE(but_one + coverage(1, 3 * block, block, block), whole);
    EXPECT_NE(but_one + coverage(0, 3 * block, block - 1, block), whole);
    EXPECT_NE(coverage(0, 0, 4 * block, block) + coverage(1, 0, 4 * block, block) + coverage(2, 0, block, block), whole);
}

}  // namespace
}  // namespace cairn
