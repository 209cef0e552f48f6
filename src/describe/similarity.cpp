#include "describe/similarity.hpp"

#include "base/checksum.hpp"

namespace cairn {

namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Up to where runs of digits count as one sign.
std::size_t numbered_end(const std::string& name, NameRule rule) {
    if (rule == NameRule::all) return name.size();
    const std::size_t end = name.find_last_of("/.");
    return end == std::string::npos || rule == NameRule::exact ? 0 : end;
}
}  // namespace

std::string similarity_key(const Extent& extent, NameRule rule) {
    const std::string& name = extent.name;
    const std::size_t numbered = numbered_end(name, rule);
    std::string key;
    key.reserve(name.size() + 12);
    for (std::size_t i = 0; i < numbered; ++i) {
        if (!is_digit(name[i])) key += name[i];
        else if (i == 0 || !is_digit(name[i - 1])) key += '#';
    }
    const bool is_record = name.ends_with(']');  // "u[17]", as Cairn names a record of netCDF's
    const std::size_t bracket = is_record ? name.rfind('[') : std::string::npos;
    if (bracket != std::string::npos && bracket >= numbered) key.append(name, numbered, bracket - numbered).append("[#]");
    else key.append(name, numbered, std::string::npos);
    key += ' ';
    key += type_name(extent.type);
    if (extent.is_big_endian) key += " big-endian";
    return key;
}

std::uint32_t similarity_number(const Extent& extent, NameRule rule) {
    const std::uint64_t sum = checksum(as_bytes(similarity_key(extent, rule)));
    const auto number = static_cast<std::uint32_t>(sum ^ sum >> 32);
    return number == 0 ? 1 : number;
}

}  // namespace cairn
