// FileMark: by what it is seen that a file, or anything in a directory tree, was written, replaced or truncated; and whether somebody has it open for that.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/status.hpp"

struct stat;

namespace cairn::cli {

struct FileMark {
    std::uint64_t device = 0, inode = 0, bytes = 0, mode = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    // A directory tree: bytes are those of all its files, times the newest of all that is in it, and `inside` differs where anything in it differs.
    bool tree = false;
    std::uint64_t inside = 0;
    bool operator==(const FileMark&) const = default;
    // not_found: gone, or a link that leads nowhere; invalid_argument: neither a regular file nor a directory (nor a link to a file).
    static Result<FileMark> of(const std::string& path);
    static FileMark of_file(const struct stat& about);
    // How long this stamp may stand while the file is written: a tick of the clock that gave it.
    std::chrono::nanoseconds tick() const;
};

inline constexpr std::chrono::nanoseconds kernel_tick = std::chrono::milliseconds(10);

// Whether a process of this node has it, or a file of this tree, open for writing; `unknown` where the file system has no leases. `which`: the file.
enum class Writers : std::uint8_t { none, some, unknown };
Writers writers_of(const std::string& path, std::string* which = nullptr);

}  // namespace cairn::cli
