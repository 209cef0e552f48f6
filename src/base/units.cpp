// Units: parsing goes through decimal digits, not doubles, so that large exact sizes stay exact.
#include "base/units.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace cairn {

namespace {

struct Unit {
    std::string_view name;  // lower case
    std::uint64_t factor;
};

constexpr std::uint64_t kib = 1ull << 10, mib = 1ull << 20, gib = 1ull << 30, tib = 1ull << 40, pib = 1ull << 50;
constexpr std::array size_units = {
    Unit{"b", 1},    Unit{"bytes", 1}, Unit{"kib", kib}, Unit{"kb", kib}, Unit{"k", kib}, Unit{"mib", mib},
    Unit{"mb", mib}, Unit{"m", mib},   Unit{"gib", gib}, Unit{"gb", gib}, Unit{"g", gib}, Unit{"tib", tib},
    Unit{"tb", tib}, Unit{"t", tib},   Unit{"pib", pib}, Unit{"pb", pib}, Unit{"p", pib},
};
constexpr std::uint64_t us = 1'000, ms = 1'000'000, s = 1'000'000'000;
constexpr std::array time_units = {
    Unit{"ns", 1},  Unit{"us", us},      Unit{"ms", ms},      Unit{"s", s},
    Unit{"sec", s}, Unit{"min", 60 * s}, Unit{"h", 3600 * s}, Unit{"d", 86400 * s},
};

std::string_view trim(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
    return text;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

// digits[.digits] times factor, exactly. `digits` holds at most 18 decimals, so that their power of ten fits.
Result<std::uint64_t> multiply(std::string_view whole, std::string_view fraction, std::uint64_t factor) {
    using Wide = unsigned __int128;
    constexpr Wide limit = UINT64_MAX;
    Wide value = 0;
    for (char c : whole) {
        value = value * 10 + static_cast<unsigned>(c - '0');
        if (value > limit) return invalid_argument("too large");
    }
    value *= factor;
    Wide part = 0, scale = 1;
    while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
    if (fraction.size() > 18) return invalid_argument("too many decimals");
    for (char c : fraction) {
        part = part * 10 + static_cast<unsigned>(c - '0');
        scale *= 10;
    }
    part *= factor;
    if (part % scale != 0) return invalid_argument("not a whole number of the smallest unit");
    value += part / scale;
    if (value > limit) return invalid_argument("too large");
    return static_cast<std::uint64_t>(value);
}

template <std::size_t N>
Result<std::uint64_t> parse(std::string_view text, const std::array<Unit, N>& units, std::uint64_t plain,
                            const char* examples) {
    text = trim(text);
    const auto digits = [&](std::size_t from) {
        std::size_t end = from;
        while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
        return text.substr(from, end - from);
    };
    const std::string_view whole = digits(0);
    std::string_view fraction;
    std::size_t used = whole.size();
    if (used < text.size() && text[used] == '.') {
        fraction = digits(used + 1);
        used += 1 + fraction.size();
    }
    if (whole.empty() || (used > whole.size() && fraction.empty()))
        return invalid_argument(std::string("not a number with a unit, such as ") + examples);
    const std::string name = lower(trim(text.substr(used)));
    if (name.empty()) return multiply(whole, fraction, plain);
    for (const Unit& unit : units)
        if (unit.name == name) return multiply(whole, fraction, unit.factor);
    return invalid_argument("unknown unit '" + name + "'; write it like " + examples);
}

std::string three_digits(double value, const char* unit) {
    char buffer[48];
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    std::snprintf(buffer, sizeof buffer, "%.*f %s", decimals, value, unit);
    return buffer;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) { return parse(text, size_units, 1, "64 MiB"); }

Result<std::uint64_t> parse_duration(std::string_view text, std::uint64_t unit_ns) {
    return parse(text, time_units, unit_ns, "500 ms or 30 s");
}

std::string format_bytes(std::uint64_t bytes) {
    if (bytes < kib) return std::to_string(bytes) + " B";
    static constexpr std::array names = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    for (; value >= 1023.5 && unit + 1 < names.size(); ++unit) value /= 1024;
    return three_digits(value, names[unit]);
}

std::string format_bytes_exact(std::uint64_t bytes) {
    static constexpr std::array<Unit, 5> units = {Unit{"PiB", pib}, Unit{"TiB", tib}, Unit{"GiB", gib},
                                                  Unit{"MiB", mib}, Unit{"KiB", kib}};
    for (const Unit& unit : units)
        if (bytes != 0 && bytes % unit.factor == 0)
            return std::to_string(bytes / unit.factor) + " " + std::string(unit.name);
    return std::to_string(bytes) + " B";
}

std::string format_duration(double seconds) {
    if (!std::isfinite(seconds)) return "-";
    if (seconds <= 0) return "0 s";
    if (seconds < 0.9995e-3) return three_digits(seconds * 1e6, "us");
    if (seconds < 0.9995) return three_digits(seconds * 1e3, "ms");
    if (seconds < 99.95) return three_digits(seconds, "s");
    char buffer[64];
    const auto total = static_cast<unsigned long long>(std::llround(std::min(seconds, 1e15)));
    if (total < 3600)
        std::snprintf(buffer, sizeof buffer, "%llu min %02llu s", total / 60, total % 60);
    else
        std::snprintf(buffer, sizeof buffer, "%llu h %02llu min", total / 3600, total / 60 % 60);
    return buffer;
}

std::string format_duration_exact(std::uint64_t nanoseconds) {
    static constexpr std::array<Unit, 6> units = {Unit{"d", 86400 * s}, Unit{"h", 3600 * s}, Unit{"min", 60 * s},
                                                  Unit{"s", s},         Unit{"ms", ms},      Unit{"us", us}};
    if (nanoseconds == 0) return "0 s";
    for (const Unit& unit : units)
        if (nanoseconds % unit.factor == 0)
            return std::to_string(nanoseconds / unit.factor) + " " + std::string(unit.name);
    return std::to_string(nanoseconds) + " ns";
}

std::string format_rate(double bytes_per_second) {
    if (!std::isfinite(bytes_per_second) || bytes_per_second < 0 || bytes_per_second > 1e19) return "-";
    return format_bytes(static_cast<std::uint64_t>(bytes_per_second)) + "/s";
}

std::string format_count(std::uint64_t count) {
    std::string digits = std::to_string(count);
    for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
    return digits;
}

}  // namespace cairn
