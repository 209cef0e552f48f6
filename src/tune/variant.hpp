// Variant: one way to write, as settings say it; what of it is tried (Levels); and what one run gave (Measured).
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "engine/router/node.hpp"
#include "world/real/storage.hpp"

namespace cairn::tune {

struct Variant {
    std::uint32_t writers = 8;
    std::uint32_t files = 1;  // a leader
    Placement placement = Placement::append;
    LocalSplit local_split = LocalSplit::chunks;
    std::uint64_t buffer_bytes = 64ull << 20;  // a chunk is at most that
    std::uint64_t block_bytes = 1ull << 20;
    bool direct = true;
    bool uring = true;  // else threads
    auto operator<=>(const Variant&) const = default;
};

// What can be varied, in the order in which tables and texts name it.
enum class Factor : std::uint8_t { writers, placement, local_split, files, buffer_bytes, block_bytes, direct, uring };
inline constexpr Factor factors[] = {Factor::writers,      Factor::placement,   Factor::local_split, Factor::files,
                                     Factor::buffer_bytes, Factor::block_bytes, Factor::direct,      Factor::uring};

// Levels as numbers: enums by value, flags as 0 and 1.
std::uint64_t level(const Variant& variant, Factor factor);
void set_level(Variant& variant, Factor factor, std::uint64_t value);
std::string level_text(Factor factor, std::uint64_t value);  // "8", "interleaved", "64 MiB", "on", "io_uring"
std::string factor_text(Factor factor);                      // "writers", "direct I/O"
std::string setting_name(Factor factor);                     // "flush.writers"; of files none: K is of the whole job
std::string setting_value(Factor factor, std::uint64_t value);  // as cairn.toml has it: 8, "interleaved", "64 MiB", true

// "as it is", "8 writers", "8 writers, interleaved": what differs from `present`.
std::string difference_text(const Variant& variant, const Variant& present);
std::vector<Factor> differences(const Variant& variant, const Variant& present);
// The whole of it, short, for a table: "8 writers  append  chunks  1 file  64 MiB / 1 MiB  direct  io_uring".
std::string whole_text(const Variant& variant);

// As the engine would have it: each of the files has a writer at least, and each the same number; a chunk is a block at least.
Variant normal(Variant variant);

struct Levels {
    std::vector<std::uint64_t> of[std::size(factors)];
    std::vector<std::uint64_t>& operator[](Factor factor) { return of[static_cast<std::size_t>(factor)]; }
    const std::vector<std::uint64_t>& operator[](Factor factor) const { return of[static_cast<std::size_t>(factor)]; }
};

// What a daemon with these settings does. `uring`: what automatic comes to here.
Variant variant_of(const Settings& settings, bool uring);

struct Measured {
    double write_s = 0;    // from the start of the leader's flush until the last writer ended: the paper's time
    double durable_s = 0;  // until all was durable: fsync of data and footer, and of the directory
    double wall_s = 0;     // what the run cost, with all that comes before and after
    std::uint64_t received_bytes = 0, local_bytes = 0;
    double received_per_s(bool durable) const { return static_cast<double>(received_bytes) / (durable ? durable_s : write_s); }
    double all_per_s(bool durable) const { return static_cast<double>(received_bytes + local_bytes) / (durable ? durable_s : write_s); }
};

}  // namespace cairn::tune
