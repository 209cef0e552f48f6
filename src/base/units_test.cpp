#include "base/units.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::uint64_t ms = 1'000'000;

TEST(Units, reads_sizes) {
    EXPECT_EQ(parse_bytes("4096").value(), 4096u);
    EXPECT_EQ(parse_bytes(" 64 MiB ").value(), 64u << 20);
    EXPECT_EQ(parse_bytes("64mb").value(), 64u << 20);
    EXPECT_EQ(parse_bytes("1.5GiB").value(), 3ull << 29);
    EXPECT_EQ(parse_bytes("2T").value(), 2ull << 40);
    EXPECT_EQ(parse_bytes("0").value(), 0u);
    EXPECT_EQ(parse_bytes("18446744073709551615").value(), UINT64_MAX);
}

TEST(Units, refuses_what_is_not_a_size) {
    for (const char* text :
         {"", "MiB", "-1", "1..5", "1.", ".5", "1 2", "64 MiBi", "0x10", "1e6", "18446744073709551616", "16384 PiB",
          "99999999999999999999999999999999999999999999", "0.3 B", "1.0000000000000000000001 MiB"})
        EXPECT_EQ(parse_bytes(text).code(), Code::invalid_argument) << text;
}

TEST(Units, reads_times) {
    EXPECT_EQ(parse_duration("500", ms).value(), 500 * ms);
    EXPECT_EQ(parse_duration("30 s", ms).value(), 30'000 * ms);
    EXPECT_EQ(parse_duration("1.5 min", ms).value(), 90'000 * ms);
    EXPECT_EQ(parse_duration("2h", ms).value(), 7'200'000 * ms);
    EXPECT_EQ(parse_duration("5 parsecs", ms).code(), Code::invalid_argument);
    EXPECT_EQ(parse_duration("-5 s", ms).code(), Code::invalid_argument);
    EXPECT_EQ(parse_duration("300000 d", ms).code(), Code::invalid_argument);
}

TEST(Units, writes_exactly_what_it_reads) {
    for (const std::uint64_t bytes :
         {0ull, 1ull, 1000ull, 1024ull, 1536ull, 64ull << 20, (64ull << 20) + 1, 3ull << 40})
        EXPECT_EQ(parse_bytes(format_bytes_exact(bytes)).value(), bytes);
    for (const std::uint64_t span :
         {0ull, 1ull, 500 * 1'000'000ull, 30'000'000'000ull, 90'000'000'000ull, 86'400'000'000'000ull})
        EXPECT_EQ(parse_duration(format_duration_exact(span), 1).value(), span);
    EXPECT_EQ(format_bytes_exact(64 << 20), "64 MiB");
    EXPECT_EQ(format_duration_exact(600'000 * ms), "10 min");
}

TEST(Units, writes_for_people) {
    EXPECT_EQ(format_bytes(0), "0 B");
    EXPECT_EQ(format_bytes(1023), "1023 B");
    EXPECT_EQ(format_bytes(1024), "1.00 KiB");
    EXPECT_EQ(format_bytes(64 << 20), "64.0 MiB");
    EXPECT_EQ(format_bytes((1ull << 30) - 1), "1.00 GiB");
    EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
    EXPECT_EQ(format_duration(0), "0 s");
    EXPECT_EQ(format_duration(0.0000123), "12.3 us");
    EXPECT_EQ(format_duration(0.85), "850 ms");
    EXPECT_EQ(format_duration(4.2), "4.20 s");
    EXPECT_EQ(format_duration(185), "3 min 05 s");
    EXPECT_EQ(format_duration(7800), "2 h 10 min");
    EXPECT_EQ(format_rate(1.2 * 1073741824), "1.20 GiB/s");
    EXPECT_EQ(format_rate(1.0 / 0.0), "-");
    EXPECT_EQ(format_count(1234567), "1,234,567");
    EXPECT_EQ(format_count(999), "999");
}

}  // namespace
}  // namespace cairn
