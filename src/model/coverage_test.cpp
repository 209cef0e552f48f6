#include "model/coverage.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::uint64_t block = 4096;

TEST(Coverage, IsTheSameHoweverAnImageIsCut) {
    const std::uint64_t whole = coverage(7, 0, 10 * block + 5);
    EXPECT_EQ(coverage(7, 0, 3 * block) + coverage(7, 3 * block, 7 * block + 5), whole);
    EXPECT_EQ(coverage(7, 10 * block, 5) + coverage(7, 0, 10 * block), whole);
    EXPECT_EQ(coverage(7, 0, 17) + coverage(7, 17, 10 * block - 12), whole);  // cut anywhere
    EXPECT_EQ(coverage(7, 0, 0), 0u);
    EXPECT_EQ(coverage(7, 5 * block, 0), 0u);
}

TEST(Coverage, TellsWhatIsMissingDoubleOrSomebodyElses) {
    const std::uint64_t whole = coverage(0, 0, 4 * block) + coverage(1, 0, 4 * block);
    const std::uint64_t but_one = coverage(0, 0, 3 * block) + coverage(1, 0, 4 * block);
    EXPECT_NE(but_one, whole);
    EXPECT_NE(but_one + coverage(0, 2 * block, block), whole);  // one twice, one missing: as many bytes
    EXPECT_NE(but_one + coverage(1, 3 * block, block), whole);
    EXPECT_NE(but_one + coverage(0, 3 * block, block - 1), whole);
    EXPECT_NE(coverage(0, 0, 4 * block) + coverage(1, 0, 4 * block) + coverage(2, 0, block), whole);
    EXPECT_NE(coverage(0, 0, 4 * block) + coverage(1, 0, block) + coverage(1, block - 1, 3 * block + 1), whole);  // one byte twice
    EXPECT_NE(coverage(1, 0, 4 * block) + coverage(1, 0, 4 * block), whole);
}

}  // namespace
}  // namespace cairn
