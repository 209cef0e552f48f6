// Id128 to and from hexadecimal.
#include "base/bytes.hpp"

#include <cstdio>

namespace cairn {

std::string Id128::hex() const {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                  static_cast<unsigned long long>(low));
    return text;
}

bool Id128::parse(std::string_view hex, Id128& id) {
    if (hex.size() != 32) return false;
    std::uint64_t half[2] = {0, 0};
    for (std::size_t i = 0; i < 32; ++i) {
        const char c = hex[i];
        unsigned digit;
        if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
        else if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a' + 10);
        else return false;
        half[i / 16] = half[i / 16] << 4 | digit;
    }
    id = {half[0], half[1]};
    return true;
}

}  // namespace cairn
