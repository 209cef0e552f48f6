#include "base/heap.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace cairn {

// glibc has this as a tunable of the environment only, which is read before main(). So the heap is made as large in one piece, given the advice and handed
// back, and malloc told to keep what it has. M_MMAP_MAX: also what is large comes from there.
void expect_heap(std::uint64_t bytes) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    void* whole = std::malloc(bytes);
    if (!whole) return;
    const auto first = (reinterpret_cast<std::uintptr_t>(whole) + page - 1) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(whole) + bytes) / page * page;
    if (end > first) (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
    std::free(whole);
}

}  // namespace cairn
