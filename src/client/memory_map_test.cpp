#include "client/memory_map.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace cairn {
namespace {

MemoryMap memory_of_now() { return MemoryMap::read().value(); }

TEST(Memory, KnowsWhatIsMapped) {
    const std::size_t page = 4096;
    auto* base =
        static_cast<char*>(::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(base, MAP_FAILED);
    EXPECT_TRUE(memory_of_now().readable(base, 4 * page));
    ASSERT_EQ(::mprotect(base + page, page, PROT_READ), 0);
    EXPECT_TRUE(memory_of_now().readable(base, 4 * page)) << "neighbours with other rights count as one";
    EXPECT_FALSE(memory_of_now().writable(base, 4 * page));
    EXPECT_TRUE(memory_of_now().writable(base + 2 * page, 2 * page));
    ASSERT_EQ(::mprotect(base + page, page, PROT_NONE), 0);
    EXPECT_FALSE(memory_of_now().readable(base, 4 * page));
    ASSERT_EQ(::munmap(base + 3 * page, page), 0);
    EXPECT_TRUE(memory_of_now().readable(base + 2 * page, page));
    EXPECT_FALSE(memory_of_now().readable(base + 2 * page, page + 1));
    EXPECT_FALSE(memory_of_now().readable(nullptr, 1));
    EXPECT_FALSE(memory_of_now().readable(reinterpret_cast<void*>(~0ull - 10), 100));
    ::munmap(base, 3 * page);
}

}  // namespace
}  // namespace cairn
