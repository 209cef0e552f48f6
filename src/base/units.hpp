// Units: sizes, times and rates, read from what people write and written for people to read.
// Sizes are powers of 1024 (KiB, MiB, ...); nothing here uses powers of 1000.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace cairn {

// "4096", "64 MiB", "1.5GiB", "2 TiB"; also the short forms K, M, G, T and KB, MB, ... in the sense of 1024. A fraction
// must come out at a whole number of bytes. invalid_argument: anything else, negative, or over 2^64-1; the text says
// what is wrong.
Result<std::uint64_t> parse_bytes(std::string_view text);

// "500 ms", "30 s", "5 min", "2 h", "1 d"; a plain number counts in `unit_ns`. In nanoseconds. Same errors.
Result<std::uint64_t> parse_duration(std::string_view text, std::uint64_t unit_ns);

std::string format_bytes(std::uint64_t bytes);        // three digits: "512 B", "1.50 KiB", "64.0 MiB"
std::string format_bytes_exact(std::uint64_t bytes);  // what parse_bytes reads back: "64 MiB", "1000 B"
std::string format_duration(double seconds);          // "12.3 us", "850 ms", "4.20 s", "3 min 05 s", "2 h 10 min"
std::string format_duration_exact(std::uint64_t nanoseconds);  // what parse_duration reads back: "500 ms", "10 s"
std::string format_rate(double bytes_per_second);              // "1.20 GiB/s"; "-" when it is not a number
std::string format_count(std::uint64_t count);                 // digits in groups of three: "1,234,567"

}  // namespace cairn
