// How hard a codec works on the arrays of some keys (NumberArray::key, mcrEngine's variables that are alike), where that is not as hard as on all else: a plain value that travels with the plan of a
// version, so that whoever is asked again makes the same of the same bytes. And what came of it, key by key.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

inline constexpr std::size_t keys_max = 256;  // that are told of one by one, by whoever tells

// How long a codec may take over bytes. none: they are left as they are, and cost a copy.
enum class Effort : std::uint8_t { fast, small, none };
inline constexpr std::size_t efforts_count = 3;

struct KeyEffort {
    std::uint32_t key = 0;
    Effort effort = Effort::none;
    bool operator==(const KeyEffort&) const = default;
};
using KeyEfforts = std::vector<KeyEffort>;  // by key, none twice and none 0; at most keys_max

inline Effort effort_of(const KeyEfforts& keys, std::uint32_t key, Effort otherwise) {
    const auto found = std::lower_bound(keys.begin(), keys.end(), key, [](const KeyEffort& each, std::uint32_t value) { return each.key < value; });
    return found != keys.end() && found->key == key ? found->effort : otherwise;
}

// What was made of the arrays of a key; key 0: of all else, and of what is of a key that is not told of by itself.
struct KeyEncoded {
    std::uint32_t key = 0;
    Effort effort = Effort::fast;
    std::uint64_t raw_bytes = 0, stored_bytes = 0;
    std::uint64_t took_ns = 0;  // of one thread
    bool operator==(const KeyEncoded&) const = default;
};

}  // namespace cairn
