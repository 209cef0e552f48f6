#include "model/balance.hpp"

#include <algorithm>
#include <utility>

namespace cairn {

namespace {
constexpr double worth_idle_s = 0.05, worth_busy_s = 0.5;  // that a leader must be behind before somebody helps
constexpr double worth_of_elapsed = 0.05;                  // ... and somebody on another target, of the flush so far
constexpr double worth_of_card = 0.5;                      // that a leader must have left beside what it writes, of the most it wrote: rates waver by a third

double left_bytes(const LeaderLoad& load) { return static_cast<double>(load.unstarted_bytes) + static_cast<double>(load.begun_bytes); }

using Loads = std::vector<LeaderLoad*>;

// `worth_s`: that a leader must be behind before an idle one helps.
std::optional<Shift> shift_among(const Loads& loads, std::uint64_t block_bytes, double worth_s, bool settled) {
    double bytes = 0, rates = 0;
    std::size_t measured = 0;
    for (const LeaderLoad* load : loads) {
        bytes += left_bytes(*load);
        rates += load->bytes_per_s;
        measured += load->bytes_per_s > 0;
    }
    if (bytes == 0 || measured == 0) return std::nullopt;
    // One that had nothing to write so far is taken for an average one.
    const double usual = rates / static_cast<double>(measured);
    const auto rate_of = [&](const LeaderLoad& load) { return load.bytes_per_s == 0 && load.unstarted_bytes == 0 ? usual : load.bytes_per_s; };
    rates = 0;
    for (const LeaderLoad* load : loads) rates += rate_of(*load);
    const double end_s = bytes / rates;
    // What each is ahead of that end (negative: behind), in bytes that it could write by then.
    const auto ahead = [&](const LeaderLoad& load) { return end_s * rate_of(load) - left_bytes(load); };
    const auto left_s = [](const LeaderLoad& load) { return load.bytes_per_s > 0 ? left_bytes(load) / load.bytes_per_s : 1e9; };
    const LeaderLoad *from = nullptr, *to = nullptr;
    for (const LeaderLoad* each : loads) {
        const LeaderLoad& load = *each;
        if (load.moving) continue;
        const bool may_be_stuck = load.bytes_per_s > 0 || settled;  // else it may just have begun
        if (may_be_stuck && !load.took && load.unstarted_bytes >= block_bytes && (!from || left_s(load) > left_s(*from))) from = &load;
        if (!load.full && rate_of(load) > 0 && (!to || ahead(load) > ahead(*to))) to = &load;
    }
    if (!from || !to || from == to) return std::nullopt;
    const double behind_s = left_s(*from) - end_s;
    const bool idle = to->unstarted_bytes == 0;
    if (behind_s < (idle ? worth_s : std::max(worth_s, worth_busy_s))) return std::nullopt;
    if (!idle && (!settled || left_s(*from) < 2 * end_s)) return std::nullopt;  // at less than half the speed of the others
    const double wanted = std::min(ahead(*to), -ahead(*from));
    std::uint64_t shifted = static_cast<std::uint64_t>(std::max(wanted, 0.0)) / block_bytes * block_bytes;
    shifted = std::min(shifted, from->unstarted_bytes / block_bytes * block_bytes);
    if (shifted < block_bytes) return std::nullopt;
    return Shift{from->leader, to->leader, shifted, from->part, to->part};
}

}  // namespace

std::vector<LeaderLoad> loads_of(std::vector<LeaderLoad> parts, double most_bytes_per_s, bool settled) {
    std::vector<LeaderLoad> loads;
    std::optional<LeaderLoad> done;
    double now = 0;
    bool all_measured = true;
    for (LeaderLoad& part : parts) {
        if (left_bytes(part) > 0) {
            now += part.bytes_per_s;
            all_measured &= part.bytes_per_s > 0;
            loads.push_back(part);
        } else if (!done || std::pair(!part.full, part.bytes_per_s) > std::pair(!done->full, done->bytes_per_s)) {
            done = part;
        }
    }
    if (!done || done->full) return loads;
    if (!loads.empty()) {
        const double left = most_bytes_per_s - now;
        if (left <= worth_of_card * most_bytes_per_s || !(all_measured || settled)) return loads;
        done->bytes_per_s = std::min(done->bytes_per_s, left);
        if (done->bytes_per_s <= 0) return loads;
    }
    loads.push_back(*done);
    return loads;
}

std::vector<LeaderLoad> loads_of_card(std::vector<LeaderLoad> parts) {
    double left = 0, rate = 0;
    for (const LeaderLoad& part : parts) {
        left += left_bytes(part);
        if (left_bytes(part) > 0) rate += part.bytes_per_s;
    }
    if (left == 0) return loads_of(std::move(parts), 0, true);
    std::erase_if(parts, [](const LeaderLoad& part) { return left_bytes(part) == 0; });
    for (LeaderLoad& part : parts) part.bytes_per_s = rate * left_bytes(part) / left;
    return parts;
}

std::vector<Shift> next_shifts(std::vector<LeaderLoad> loads, std::uint64_t block_bytes, double elapsed_s, bool settled) {
    std::map<std::uint32_t, Loads> targets;
    std::map<NodeIndex, Loads> leaders;
    Loads all;
    for (LeaderLoad& load : loads) {
        targets[load.target].push_back(&load);
        leaders[load.leader].push_back(&load);
        all.push_back(&load);
    }
    std::vector<Shift> shifts;
    const auto shift_all = [&](const Loads& among, double worth_s) {
        while (const std::optional<Shift> shift = shift_among(among, block_bytes, worth_s, settled)) {
            shifts.push_back(*shift);
            for (const NodeIndex leader : {shift->from, shift->to})
                for (LeaderLoad* load : leaders[leader]) load->moving = true;
        }
    };
    for (const auto& [target, group] : targets) shift_all(group, worth_idle_s);
    if (targets.size() > 1) shift_all(all, std::max(worth_idle_s, worth_of_elapsed * elapsed_s));
    return shifts;
}

namespace {
constexpr double good_enough = 0.98;  // of the best measured
constexpr std::uint64_t again_after = 64;   // flushes until a worse number of leaders is tried once more: file systems change. Twice as
constexpr std::uint32_t doublings_max = 4;  // many each time
}  // namespace

std::uint32_t LeaderChoice::next(std::uint32_t files, std::uint32_t most) {
    most = std::max(most, 1u);
    if (keep_own_) return most;  // where the cards decide, every card fewer costs its share
    const std::uint32_t least = std::clamp(files, 1u, most);
    double best = 0;
    for (const auto& [leaders, m] : measured_)
        if (leaders >= least && leaders <= most) best = std::max(best, m.bytes_per_s);
    if (best == 0 || !measured_.count(most)) return most;
    std::uint32_t chosen = most;
    for (const auto& [leaders, m] : measured_)
        if (leaders >= least && leaders < chosen && m.bytes_per_s >= good_enough * best) chosen = leaders;
    // An eighth fewer: where every card counts, a try costs a seventh of one flush, a quarter fewer a third, and half would double it.
    const std::uint32_t fewer = (chosen - std::max(1u, chosen / 8)) / least * least;
    if (fewer >= least && 4ull * fewer >= 3ull * chosen && is_due(fewer)) return fewer;
    if (chosen != most && is_due(most)) return most;  // now and then all are tried again, too
    return chosen;
}

bool LeaderChoice::is_due(std::uint32_t leaders) const {
    const auto known = measured_.find(leaders);
    return known == measured_.end() || flushes_ - known->second.at >= again_after << std::min(known->second.times - 1, doublings_max);
}

void LeaderChoice::record(std::uint32_t leaders, std::uint64_t bytes, double seconds) {
    if (++flushes_ == 1) return;  // memory, connections and files are cold: anything would look better
    if (bytes == 0 || seconds <= 0) return;
    const double rate = static_cast<double>(bytes) / seconds;
    Measured& m = measured_[leaders];
    m.bytes_per_s = std::max(rate, m.before);
    m.before = rate;
    m.at = flushes_;
    ++m.times;
}

void LeaderChoice::record_cards(std::uint32_t full, std::uint32_t with_room) {
    if (full == with_room || keep_own_ == (full > with_room)) return;
    keep_own_ = !keep_own_;
    begin_anew();
}

}  // namespace cairn
