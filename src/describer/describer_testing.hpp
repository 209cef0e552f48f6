// What a process has: descriptors, and children that nobody reaped.
#pragma once

#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

#include "describer/describer.hpp"

namespace cairn::testing {

inline std::size_t open_descriptors() {
    std::size_t count = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) count += !each.path().empty();
    return count;
}

// No child at all, neither running nor dead.
inline bool has_no_children() {
    siginfo_t who{};
    return ::waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

inline constexpr Describer::Patience patient{1000, std::chrono::milliseconds(0), std::chrono::milliseconds(0)};  // starts again at once
inline constexpr std::chrono::milliseconds ample = std::chrono::seconds(60);

}  // namespace cairn::testing
