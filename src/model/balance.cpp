#include "model/balance.hpp"

#include <algorithm>
#include <utility>

namespace cairn {

namespace {
constexpr double worth_idle_s = 0.05, worth_busy_s = 0.5;  // that a leader must be behind before somebody helps
constexpr double worth_of_elapsed = 0.05;                  // ... and somebody on another target, of the flush so far
constexpr double soon_s = 0.5;                             // a leader that has so much left to begin is as good as idle: what it takes from another node needs a while to come
constexpr double settled_after = 2, targets_settled_after = 4;  // heartbeats
constexpr double worth_of_card = 0.5;                      // that a leader must have left beside what it writes, of the most it wrote: rates waver by a third

double left_bytes(const LeaderLoad& load) { return static_cast<double>(load.unstarted_bytes) + static_cast<double>(load.begun_bytes); }

using Loads = std::vector<LeaderLoad*>;

// What leaders have together. One that had nothing to write so far is taken for an average one.
struct Sum {
    double bytes = 0, rates = 0, usual = 0;
    double rate_of(const LeaderLoad& load) const { return load.bytes_per_s == 0 && load.unstarted_bytes == 0 ? usual : load.bytes_per_s; }
    double left_s() const { return rates > 0 ? bytes / rates : 1e9; }
    // What they could write by then, beyond what they have; negative: they are behind.
    double ahead(double end_s) const { return end_s * rates - bytes; }
    double ahead(const LeaderLoad& load, double end_s) const { return end_s * rate_of(load) - left_bytes(load); }
};

Sum sum_of(const Loads& loads) {
    Sum sum;
    std::size_t measured = 0;
    for (const LeaderLoad* load : loads) {
        sum.bytes += left_bytes(*load);
        sum.rates += load->bytes_per_s;
        measured += load->bytes_per_s > 0;
    }
    sum.usual = measured == 0 ? 0 : sum.rates / static_cast<double>(measured);
    sum.rates = 0;
    for (const LeaderLoad* load : loads) sum.rates += sum.rate_of(*load);
    return sum;
}

// What their target takes: as much as those write who still do. Of what the others wrote nobody knows whether it would be more.
Sum sum_of_target(const Loads& loads, double usual) {
    Sum sum;
    sum.usual = usual;
    double busy = 0;
    for (const LeaderLoad* load : loads) {
        sum.bytes += left_bytes(*load);
        sum.rates += sum.rate_of(*load);
        if (left_bytes(*load) > 0) busy += load->bytes_per_s;
    }
    if (sum.bytes > 0) sum.rates = busy;
    return sum;
}

double left_s(const LeaderLoad& load) { return load.bytes_per_s > 0 ? left_bytes(load) / load.bytes_per_s : 1e9; }

// Who could give: the one that would be the last to end.
const LeaderLoad* last_of(const Loads& loads, std::uint64_t block_bytes, bool settled) {
    const LeaderLoad* last = nullptr;
    for (const LeaderLoad* load : loads) {
        const bool may_be_stuck = load->bytes_per_s > 0 || settled;  // else it may just have begun
        if (load->moving || load->took || !may_be_stuck || load->unstarted_bytes < block_bytes) continue;
        if (!last || left_s(*load) > left_s(*last)) last = load;
    }
    return last;
}

// Who could take: the one that could write most by then.
const LeaderLoad* first_of(const Loads& loads, const Sum& sum, double end_s) {
    const LeaderLoad* first = nullptr;
    for (const LeaderLoad* load : loads)
        if (!load->moving && !load->full && sum.rate_of(*load) > 0 && (!first || sum.ahead(*load, end_s) > sum.ahead(*first, end_s))) first = load;
    return first;
}

// `behind_s`: of who would give, against the end of all; `worth_s`: that it must be for an idle one to help.
bool is_worth_it(bool idle, double behind_s, double end_s, double worth_s, bool settled) {
    if (behind_s < (idle ? worth_s : std::max(worth_s, worth_busy_s))) return false;
    return idle || (settled && behind_s >= end_s);  // at less than half the speed of the others
}

std::optional<Shift> shift_of(const LeaderLoad& from, const LeaderLoad& to, double wanted_bytes, std::uint64_t block_bytes) {
    const std::uint64_t most = std::min(static_cast<std::uint64_t>(std::max(wanted_bytes, 0.0)), from.unstarted_bytes);
    const std::uint64_t bytes = most / block_bytes * block_bytes;
    if (bytes == 0) return std::nullopt;
    return Shift{from.leader, to.leader, bytes, from.part, to.part};
}

// Of one target.
std::optional<Shift> shift_among(const Loads& loads, std::uint64_t block_bytes, bool settled) {
    const Sum all = sum_of(loads);
    if (all.bytes == 0 || all.usual == 0) return std::nullopt;
    const double end_s = all.left_s();
    const LeaderLoad *from = last_of(loads, block_bytes, settled), *to = first_of(loads, all, end_s);
    if (!from || !to || from == to) return std::nullopt;
    const bool idle = to->unstarted_bytes == 0 || (settled && static_cast<double>(to->unstarted_bytes) < soon_s * all.rate_of(*to));
    if (!is_worth_it(idle, left_s(*from) - end_s, end_s, worth_idle_s, settled)) return std::nullopt;
    return shift_of(*from, *to, std::min(all.ahead(*to, end_s), -all.ahead(*from, end_s)), block_bytes);
}

// From one target to another. Leaders of one target share what it takes: one of them is slow where another one is fast. So only all of them together tell whether they are behind.
class AmongTargets {
  public:
    AmongTargets(const std::map<std::uint32_t, Loads>& targets, std::uint64_t block_bytes, double worth_s, double heartbeats)
        : block_bytes_(block_bytes), worth_s_(worth_s), settled_(heartbeats >= settled_after), are_targets_settled_(heartbeats >= targets_settled_after) {
        Loads loads;
        for (const auto& [target, group] : targets) loads.insert(loads.end(), group.begin(), group.end());
        const double usual = sum_of(loads).usual;
        if (usual == 0) return;
        double bytes = 0, rates = 0;
        for (const auto& [target, group] : targets) {
            groups_.push_back({&group, sum_of_target(group, usual)});
            bytes += groups_.back().sum.bytes;
            rates += groups_.back().sum.rates;
        }
        if (rates == 0) groups_.clear();
        else end_s_ = bytes / rates;
    }

    std::optional<Shift> next() {
        Group *from = nullptr, *to = nullptr;
        const LeaderLoad *giver = nullptr, *taker = nullptr;
        for (Group& group : groups_) {
            const LeaderLoad *last = last_of(*group.loads, block_bytes_, settled_), *first = first_of(*group.loads, group.sum, end_s_);
            if (last && (!from || group.sum.left_s() > from->sum.left_s())) from = &group, giver = last;
            if (first && (!to || group.sum.ahead(end_s_) > to->sum.ahead(end_s_))) to = &group, taker = first;
        }
        if (!from || !to || from == to || !is_worth_it(taker->unstarted_bytes == 0, from->sum.left_s() - end_s_, end_s_, worth_s_, are_targets_settled_)) return std::nullopt;
        const std::optional<Shift> shift = shift_of(*giver, *taker, std::min(to->sum.ahead(end_s_), -from->sum.ahead(end_s_)), block_bytes_);
        if (!shift) return std::nullopt;
        from->sum.bytes -= static_cast<double>(shift->bytes);
        to->sum.bytes += static_cast<double>(shift->bytes);
        return shift;
    }

  private:
    struct Group {
        const Loads* loads;
        Sum sum;
    };
    std::uint64_t block_bytes_;
    double worth_s_, end_s_ = 0;
    bool settled_, are_targets_settled_;
    std::vector<Group> groups_;
};

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

std::vector<Shift> next_shifts(std::vector<LeaderLoad> loads, std::uint64_t block_bytes, double elapsed_s, double heartbeats) {
    const bool settled = heartbeats >= settled_after;
    std::map<std::uint32_t, Loads> targets;
    std::map<NodeIndex, Loads> leaders;
    for (LeaderLoad& load : loads) {
        targets[load.target].push_back(&load);
        leaders[load.leader].push_back(&load);
    }
    std::vector<Shift> shifts;
    const auto keep = [&](const Shift& shift) {
        shifts.push_back(shift);
        for (const NodeIndex leader : {shift.from, shift.to})
            for (LeaderLoad* load : leaders[leader]) load->moving = true;
    };
    for (const auto& [target, group] : targets)
        while (const std::optional<Shift> shift = shift_among(group, block_bytes, settled)) keep(*shift);
    if (targets.size() < 2) return shifts;
    AmongTargets among(targets, block_bytes, std::max(worth_idle_s, worth_of_elapsed * elapsed_s), heartbeats);
    while (const std::optional<Shift> shift = among.next()) keep(*shift);
    return shifts;
}

namespace {
constexpr double good_enough = 0.98;  // of the best measured
constexpr std::uint64_t again_after = 64;   // flushes until a worse number of leaders is tried once more: file systems change. Twice as
constexpr std::uint32_t doublings_max = 4;  // many each time
}  // namespace

std::uint32_t LeaderChoice::next(std::uint32_t files, std::uint32_t most) {
    most = std::max(most, 1u);
    if (cards_ == Card::full) return most;  // where the cards decide, every card fewer costs its share
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
    if (full == with_room) return;
    const Card seen = full > with_room ? Card::full : Card::has_room;
    if (std::exchange(cards_, seen) != seen) begin_anew();
}

}  // namespace cairn
