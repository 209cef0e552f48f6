// Memory that runs out: while a NoMemory lives, `new` of any thread throws std::bad_alloc where it is asked for as many bytes as that says.
//
// It replaces operator new, so one source of a test program includes it, and no more.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace cairn::testing {

inline std::atomic<std::size_t> refused_from = SIZE_MAX, refused_to = SIZE_MAX;

class NoMemory {
  public:
    // From so many bytes to so many, both among them.
    explicit NoMemory(std::size_t from, std::size_t to = SIZE_MAX - 1) {
        refused_to = to;
        refused_from = from;
    }
    NoMemory(const NoMemory&) = delete;
    ~NoMemory() { refused_from = refused_to = SIZE_MAX; }
};

inline void* memory_of(std::size_t bytes) noexcept {
    const bool is_refused = bytes >= refused_from && bytes <= refused_to;
    return is_refused ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace cairn::testing

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (void* const memory = cairn::testing::memory_of(bytes)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return cairn::testing::memory_of(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
