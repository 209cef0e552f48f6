// What an encoding is told of keys, and tells of them: how hard to work on the arrays of which, and what each took. The clock is the caller's, so that codecs stay pure.
#pragma once

#include "model/key_efforts.hpp"

namespace cairn {

struct ByKey {
    const KeyEfforts* efforts = nullptr;       // none: all alike
    std::uint64_t (*now_ns)() = nullptr;
    std::vector<KeyEncoded> seen = {};         // arrays of one key and effort in each row; no row of key 0

    std::uint64_t now() const { return now_ns ? now_ns() : 0; }
    Effort of(std::uint32_t key, Effort otherwise) const { return efforts && key != 0 ? effort_of(*efforts, key, otherwise) : otherwise; }
    void add(const KeyEncoded& made) {
        if (made.key == 0) return;
        const auto found = std::find_if(seen.begin(), seen.end(), [&](const KeyEncoded& each) { return each.key == made.key && each.effort == made.effort; });
        if (found == seen.end()) return seen.push_back(made);
        found->raw_bytes += made.raw_bytes;
        found->stored_bytes += made.stored_bytes;
        found->took_ns += made.took_ns;
    }
    // Nothing of it is stored.
    void give_up() {
        for (KeyEncoded& each : seen) each.stored_bytes = each.raw_bytes;
    }
};

}  // namespace cairn
