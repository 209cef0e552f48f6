// What leaves scratch: by retention when a newer version is committed, and earlier when there is no room. Never the
// newest committed version of a series, never an image that somebody reads.
#include <algorithm>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "daemon/slots.hpp"

namespace cairn {

// By series, the oldest first.
std::vector<Slots::Held> Slots::held_versions() {
    std::map<VersionKey, Held> by_key;
    for (Place place = slots_.begin(); place != slots_.end(); ++place) {
        Slot& slot = place->second;
        if (slot.state != State::image) continue;
        Held& held = by_key[slot.image.key];
        if (held.slots.empty()) {
            const VersionState state = node_.state(slot.image.key);
            held.key = slot.image.key;
            held.age = {slot.image.epoch, slot.image.key.version};
            held.committed = state.level == Level::committed;
            held.sealed_everywhere = state.level >= Level::sealed;
            held.final = state.final;
            held.failed = !state.failure.ok();
            // Of an older job also what every rank had sealed: its coordinator is gone, or has lost its own.
            held.abandoned = state.failure.code() == Code::deadline && (state.level < Level::sealed || !node_.is_newest(slot.image.key.incarnation));
        }
        slot.image.committed |= held.committed;
        held.committed |= slot.image.committed;
        held.slots.push_back(place);
    }
    std::vector<Held> versions;
    for (auto& [key, held] : by_key) versions.push_back(std::move(held));
    std::sort(versions.begin(), versions.end(), [](const Held& a, const Held& b) {
        return std::tie(a.key.name, a.age, a.key) < std::tie(b.key.name, b.age, b.key);
    });
    return versions;
}

std::vector<VersionKey> Slots::unfinished() {
    std::vector<VersionKey> keys;
    for (const Held& held : held_versions())
        if (!held.committed && !held.final) keys.push_back(held.key);
    return keys;
}

std::vector<VersionKey> Slots::all_committed() {
    std::vector<VersionKey> keys;
    for (const Held& held : held_versions()) {
        if (!held.committed) return {};
        keys.push_back(held.key);
    }
    return keys;
}

std::vector<DeadImages::Scratch::Held> Slots::undecided() {
    std::vector<DeadImages::Scratch::Held> all;
    for (const Held& held : held_versions()) {
        if (held.committed || held.final) continue;
        const Image& image = held.slots.front()->second.image;
        DeadImages::Scratch::Held& out = all.emplace_back();
        out.version = {held.key, image.epoch, image.parent, image.ranks};
        for (const Place place : held.slots) {
            out.in_use |= !place->second.pins.empty();
            out.taken += place->second.pinned;
        }
    }
    return all;
}

void Slots::let_go(const VersionKey& key) {
    for (const Held& held : held_versions())
        if (held.key == key) drop(held);
}

// True when at least one slot became free.
bool Slots::drop(const Held& version) {
    bool gained = false;
    for (const Place place : version.slots) {
        if (!place->second.pins.empty()) continue;
        const Rank rank = place->second.image.rank;
        const bool may_be_written = node_.may_be_written(version.key, rank);
        if (!node_.drop_image(version.key, rank).ok()) continue;  // being flushed, or read
        const BufferPtr& map = place->second.map;
        if (may_be_written || (map && map->has_lost_bytes()))
            unlink(place);  // and not to be used again: what comes late must not meet a later image, and what is lost is not worth one
        else
            make_free(place);
        gained = true;
    }
    return gained;
}

void Slots::apply_retention() {
    const std::vector<Held> versions = held_versions();
    std::uint64_t newer = 0;  // committed versions of the series that are newer
    for (auto held = versions.rbegin(); held != versions.rend(); ++held) {
        if (held != versions.rbegin() && std::prev(held)->key.name != held->key.name) newer = 0;
        if (held->committed) {
            const std::uint64_t last = settings_.keep_last;
            if (!retention_keeps(last, settings_.keep_every, held->key.version, newer++)) drop(*held);
        } else if (held->final || (held->abandoned && newer > 0)) {
            // Cancelled or superseded: nobody will ever want it. Abandoned, a rank never sealed it, or its coordinator is silent: nobody will when a
            // newer one is committed; until then they may turn up.
            drop(*held);
        }
    }
}

// ---- no room ----

Task<bool> Slots::make_room() {
    const std::vector<Held> versions = held_versions();
    if (drop_committed(versions)) co_return true;
    if (!settings_.replace_oldest) co_return false;
    const std::optional<Held> victim = replaceable(versions);
    if (!victim) co_return false;
    const VersionKey key = victim->key;
    if (drop(*victim)) co_return true;
    const Status cancelled = co_await node_.cancel(key, clock_.in(settings_.cancel_wait));
    log_info("version-replaced", {{"name", key.name}, {"version", key.version}, {"outcome", cancelled}});
    for (const Held& held : held_versions())  // what was found before the wait may be gone
        if (held.key == key) co_return drop(held);
    co_return true;
}

bool Slots::drop_committed(const std::vector<Held>& versions) {
    for (auto held = versions.begin(); held != versions.end(); ++held) {
        const bool newer_committed = std::any_of(std::next(held), versions.end(), [&](const Held& other) {
            return other.committed && other.key.name == held->key.name;
        });
        if (held->committed && newer_committed && drop(*held)) return true;
    }
    return false;
}

// The oldest that may go, and is not the oldest of its series on its way to persistent.
std::optional<Slots::Held> Slots::replaceable(const std::vector<Held>& versions) const {
    const std::string* passed_over = nullptr;  // the series whose oldest on its way has been seen
    for (auto held = versions.begin(); held != versions.end(); ++held) {
        const bool newer_sealed = std::any_of(std::next(held), versions.end(), [&](const Held& other) {
            return other.key.name == held->key.name && (other.committed || other.sealed_everywhere);
        });
        if (held->committed || !newer_sealed) continue;
        const bool on_its_way = !held->final && !held->failed;
        if (on_its_way && (!passed_over || *passed_over != held->key.name)) {
            passed_over = &held->key.name;
            continue;
        }
        const bool pinned = std::any_of(held->slots.begin(), held->slots.end(),
                                        [](Place place) { return !place->second.pins.empty(); });
        if (!pinned) return *held;
    }
    return std::nullopt;
}

std::string Slots::what_holds() {
    std::string text;
    const auto add = [&](const std::string& piece) { text += (text.empty() ? "" : "; ") + piece; };
    for (const Held& held : held_versions()) {
        std::uint64_t held_bytes = 0;
        bool pinned = false;
        for (const Place place : held.slots) {
            held_bytes += place->second.bytes;
            pinned |= !place->second.pins.empty();
        }
        add(version_text(held.key) + " holds " + format_bytes(held_bytes) +
            " (" +
            (pinned           ? "being restored"
             : held.committed ? "committed"
             : held.failed    ? "not committed: " + node_.state(held.key).failure.text()
                              : "not committed yet") +
            ")");
    }
    std::uint64_t written = 0;
    for (const auto& [path, slot] : slots_)
        if (slot.state == State::owned || slot.state == State::busy) written += slot.bytes;
    if (written > 0) add(format_bytes(written) + " are being captured");
    if (text.empty()) text = "no checkpoint holds it, something else fills this file system";
    if (settings_.bytes_max != 0)
        add("all checkpoints together may hold " + format_bytes(settings_.bytes_max) + " (" + settings_.bytes_max_from +
            ")");
    return text + ". Make scratch larger, checkpoint less often, or set capture.when_full = \"replace_oldest\"";
}

}  // namespace cairn
