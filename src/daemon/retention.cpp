#include "daemon/retention.hpp"

#include <algorithm>
#include <tuple>

#include "base/config.hpp"
#include "base/units.hpp"

namespace cairn {

void sort_by_age(std::vector<HeldVersion>& versions) {
    std::sort(versions.begin(), versions.end(), [](const HeldVersion& a, const HeldVersion& b) {
        return std::tie(a.key.name, a.epoch, a.key.version, a.key) < std::tie(b.key.name, b.epoch, b.key.version, b.key);
    });
}

std::vector<VersionKey> not_kept(const std::vector<HeldVersion>& versions, std::uint64_t keep_last, std::uint64_t keep_every) {
    std::vector<VersionKey> keys;
    std::uint64_t newer = 0;  // committed versions of the series that are newer
    for (auto held = versions.rbegin(); held != versions.rend(); ++held) {
        if (held != versions.rbegin() && std::prev(held)->key.name != held->key.name) newer = 0;
        if (held->committed) {
            if (!retention_keeps(keep_last, keep_every, held->key.version, newer++) && !held->is_base) keys.push_back(held->key);
        } else if (held->final || (held->abandoned && newer > 0)) {
            // Cancelled or superseded: nobody will ever want it. Abandoned: nobody will when a newer one is committed; until then they may turn up.
            keys.push_back(held->key);
        }
    }
    return keys;
}

std::vector<VersionKey> spare_copies(const std::vector<HeldVersion>& versions) {
    std::vector<VersionKey> keys;
    for (auto held = versions.begin(); held != versions.end(); ++held) {
        const bool newer_committed = std::any_of(std::next(held), versions.end(), [&](const HeldVersion& other) {
            return other.committed && other.key.name == held->key.name;
        });
        if (held->committed && newer_committed) keys.push_back(held->key);
    }
    return keys;
}

std::optional<VersionKey> replaceable(const std::vector<HeldVersion>& versions) {
    const std::string* passed_over = nullptr;  // the series whose oldest on its way has been seen
    for (auto held = versions.begin(); held != versions.end(); ++held) {
        const bool newer_sealed = std::any_of(std::next(held), versions.end(), [&](const HeldVersion& other) {
            return other.key.name == held->key.name && (other.committed || other.sealed_everywhere);
        });
        if (held->committed || !newer_sealed) continue;
        const bool on_its_way = !held->final && held->failure.ok();
        if (on_its_way && (!passed_over || *passed_over != held->key.name)) {
            passed_over = &held->key.name;
            continue;
        }
        if (!held->pinned) return held->key;
    }
    return std::nullopt;
}

std::string what_holds(const std::vector<HeldVersion>& versions, std::uint64_t written_bytes) {
    std::string text;
    const auto add = [&](const std::string& piece) { text += (text.empty() ? "" : "; ") + piece; };
    for (const HeldVersion& held : versions)
        add(version_text(held.key) + " holds " + format_bytes(held.bytes) + " (" +
            (held.pinned          ? "being restored"
             : held.committed     ? "committed"
             : !held.failure.ok() ? "not committed: " + held.failure.text()
                                  : "not committed yet") +
            ")");
    if (written_bytes > 0) add(format_bytes(written_bytes) + " are being captured");
    return text;
}

}  // namespace cairn
