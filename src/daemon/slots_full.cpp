// Slots: what is in them, by version, and what of it goes when retention lets it (retention.hpp) or there is no room. Never an image that somebody reads.
#include <algorithm>

#include "base/log.hpp"
#include "base/units.hpp"
#include "daemon/slots.hpp"

namespace cairn {

std::vector<HeldVersion> Slots::held_versions() {
    std::map<VersionKey, HeldVersion> by_key;
    for (auto& [path, slot] : slots_) {
        if (slot.state != State::image) continue;
        const auto [place, is_new] = by_key.try_emplace(slot.image.key);
        HeldVersion& held = place->second;
        if (is_new) {
            const VersionState state = node_.state(slot.image.key);
            held.key = slot.image.key;
            held.epoch = slot.image.epoch;
            held.committed = state.level == Level::committed;
            held.sealed_everywhere = state.level >= Level::sealed;
            held.final = state.final;
            held.is_base = node_.is_base(slot.image.key) && node_.is_newest(slot.image.key.incarnation);
            held.failure = state.failure;
            // Of an older job also what every rank had sealed: its coordinator is gone, or has lost its own.
            held.abandoned = state.failure.code() == Code::deadline && (state.level < Level::sealed || !node_.is_newest(slot.image.key.incarnation));
        }
        slot.image.committed |= held.committed;
        held.committed |= slot.image.committed;
        held.pinned |= !slot.pins.empty();
        held.bytes += slot.bytes;
    }
    std::vector<HeldVersion> versions;
    for (auto& [key, held] : by_key) versions.push_back(std::move(held));
    sort_by_age(versions);
    return versions;
}

std::vector<VersionKey> Slots::unfinished() {
    std::vector<VersionKey> keys;
    for (const HeldVersion& held : held_versions())
        if (!held.committed && !held.final) keys.push_back(held.key);
    return keys;
}

std::vector<VersionKey> Slots::all_committed() {
    std::vector<VersionKey> keys;
    for (const HeldVersion& held : held_versions()) {
        if (!held.committed) return {};
        keys.push_back(held.key);
    }
    return keys;
}

std::vector<DeadImages::Scratch::Held> Slots::undecided() {
    std::vector<DeadImages::Scratch::Held> all;
    for (const VersionKey& key : unfinished()) {
        DeadImages::Scratch::Held& out = all.emplace_back();
        for (const auto& [path, slot] : slots_) {
            if (slot.state != State::image || slot.image.key != key) continue;
            out.version = {key, slot.image.epoch, slot.image.parent, slot.image.ranks};
            out.in_use |= !slot.pins.empty();
            out.taken += slot.pinned;
        }
    }
    return all;
}

void Slots::let_go(const VersionKey& key) { drop(key); }

// True when at least one slot became free, or will in a moment.
bool Slots::drop(const VersionKey& key) {
    bool gained = false;
    for (Place next = slots_.begin(); next != slots_.end();) {
        const Place place = next++;
        const Slot& slot = place->second;
        if (slot.state != State::image || slot.image.key != key || !slot.pins.empty()) continue;
        const Rank rank = slot.image.rank;
        const bool may_be_written = node_.may_be_written(key, rank);
        if (!node_.drop_image(key, rank).ok()) continue;  // being flushed, or read
        if (may_be_written || (slot.map && slot.map->has_lost_bytes()))
            unlink(place);  // and not to be used again: what comes late must not meet a later image, and what is lost is not worth one
        else
            make_free(place);
        gained = true;
    }
    return gained;
}

void Slots::apply_retention() {
    for (const VersionKey& key : not_kept(held_versions(), settings_.keep_last, settings_.keep_every)) drop(key);
}

// ---- no room ----

Task<bool> Slots::make_room() {
    const std::vector<HeldVersion> versions = held_versions();
    for (const VersionKey& spare : spare_copies(versions))
        if (drop(spare)) co_return true;
    if (!settings_.replace_oldest) co_return false;
    const std::optional<VersionKey> victim = replaceable(versions);
    if (!victim) co_return false;
    const VersionKey key = *victim;
    if (drop(key)) co_return true;
    const Status cancelled = co_await node_.cancel(key, clock_.in(settings_.cancel_wait));
    log_info("version-replaced", {{"name", key.name}, {"version", key.version}, {"outcome", cancelled}});
    const bool is_held = std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) {
        return entry.second.state == State::image && entry.second.image.key == key;
    });
    co_return !is_held || drop(key);  // what was found before the wait may be gone
}

std::string Slots::what_holds() {
    std::uint64_t written = 0;
    for (const auto& [path, slot] : slots_)
        if (slot.state == State::owned || slot.state == State::busy) written += slot.bytes;
    std::string text = cairn::what_holds(held_versions(), written);
    if (text.empty()) text = "no checkpoint holds it, something else fills this file system";
    if (settings_.bytes_max != 0)
        text += "; all checkpoints together may hold " + format_bytes(settings_.bytes_max) + " (" + settings_.bytes_max_from + ")";
    return text + ". Make scratch larger, checkpoint less often, or set capture.when_full = \"replace_oldest\"";
}

}  // namespace cairn
