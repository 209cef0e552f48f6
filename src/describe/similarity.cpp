#include "describe/similarity.hpp"

#include "base/checksum.hpp"

namespace cairn {

namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }
}  // namespace

std::string similarity_key(const Extent& extent) {
    const std::string& name = extent.name;
    const std::size_t end = name.find_last_of("/."), groups = end == std::string::npos ? 0 : end;
    std::string key;
    key.reserve(name.size() + 12);
    for (std::size_t i = 0; i < groups; ++i) {
        if (!is_digit(name[i])) key += name[i];
        else if (i == 0 || !is_digit(name[i - 1])) key += '#';
    }
    const bool is_record = name.ends_with(']');  // "u[17]", as netCDF's are named
    const std::size_t bracket = is_record ? name.rfind('[') : std::string::npos;
    if (bracket != std::string::npos && bracket >= groups) key.append(name, groups, bracket - groups).append("[#]");
    else key.append(name, groups, std::string::npos);
    key += ' ';
    key += type_name(extent.type);
    if (extent.is_big_endian) key += " big-endian";
    return key;
}

std::uint32_t similarity_number(const Extent& extent) {
    const std::uint64_t sum = checksum(as_bytes(similarity_key(extent)));
    const auto number = static_cast<std::uint32_t>(sum ^ sum >> 32);
    return number == 0 ? 1 : number;
}

}  // namespace cairn
