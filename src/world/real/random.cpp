#include "world/real/random.hpp"

#include <sys/random.h>

#include <cerrno>

namespace cairn {

std::uint64_t SystemRandom::next() {
    std::uint64_t value = 0;
    ssize_t got;
    // So few bytes come whole, or not at all when a signal came before the system had entropy.
    do got = ::getrandom(&value, sizeof value, 0);
    while (got < 0 && errno == EINTR);
    CAIRN_CHECK(got == sizeof value);  // Linux has it since 3.17
    return value;
}

}  // namespace cairn
