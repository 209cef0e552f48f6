#include "model/key_choice.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace cairn {

namespace {
constexpr double kept_each = 0.75;    // of what was seen before, at each version
constexpr double weight_most = 3;     // times what is seen now: what was seen before counts no more than that, however much it was. A trial of 2 MiB tells of data and cores that are others now
constexpr double slower_most = 16;    // from one version to the next
constexpr double careful_share = 0.9;  // of the time that threads have: what takes a little longer than it did is not to be late for it
constexpr double no_time = 1e-15;     // of a byte
constexpr double stored_least = 1e-6, stored_most = 2;  // of a byte
constexpr std::size_t known_max = 1024;  // keys; those of the fewest bytes are forgotten

std::size_t place(Effort effort) { return static_cast<std::size_t>(effort); }
}  // namespace

double KeyChoice::raw_bytes() const {
    double sum = 0;
    for (const auto& [key, known] : known_) sum += known.raw;
    return sum;
}

bool KeyChoice::knows_keys() const { return !known_.empty() && known_.rbegin()->first != 0; }

// Cores that are busy make all keys slower, and a trial sees a few of them: the others are as much slower as those. What is of no key is not the same from one place to the next.
void KeyChoice::follow_speed(const std::vector<KeyEncoded>& seen) {
    double expected_s = 0, took_s = 0;
    for (const KeyEncoded& each : seen) {
        const auto found = known_.find(each.key);
        if (each.key == 0 || each.effort == Effort::none || found == known_.end() || found->second.by[place(each.effort)].raw == 0) continue;
        expected_s += static_cast<double>(each.raw_bytes) * found->second.by[place(each.effort)].made.took_s;
        took_s += static_cast<double>(each.took_ns) * 1e-9;
    }
    if (expected_s <= 0 || took_s <= 0) return;
    const double slower = std::clamp(took_s / expected_s, 1 / slower_most, slower_most);
    for (auto& [key, known] : known_)
        for (Did& did : known.by) did.made.took_s *= slower;
}

void KeyChoice::record(const std::vector<KeyEncoded>& seen, std::optional<Effort> used, const KeyEfforts& efforts, double shorter) {
    if (seen.empty()) return;
    follow_speed(seen);
    const bool has_shares = used || !was_used_;
    was_used_ |= used.has_value();
    std::map<std::pair<std::uint32_t, Effort>, std::array<double, 3>> sums;  // of all leaders: raw bytes, stored bytes, seconds
    for (const KeyEncoded& each : seen) {
        std::array<double, 3>& sum = sums[{each.key, each.effort}];
        sum[0] += static_cast<double>(each.raw_bytes);
        sum[1] += static_cast<double>(each.stored_bytes);
        sum[2] += static_cast<double>(each.took_ns) * 1e-9;
    }
    if (has_shares)
        for (auto& [key, known] : known_) known.raw *= kept_each;
    for (const auto& [of, sum] : sums) {
        const double raw = sum[0];
        if (raw <= 0) continue;
        Known& known = known_[of.first];
        if (has_shares && (!used || of.second == effort_of(efforts, of.first, *used))) known.raw += raw;
        const double stored = (of.second == Effort::none ? 1 : shorter) * std::clamp(sum[1] / raw, stored_least, stored_most);
        Did& did = known.by[place(of.second)];
        const double before = std::min(did.raw, weight_most * raw), all = before + raw;
        did.made.stored = (before * did.made.stored + raw * stored) / all;
        did.made.took_s = (before * did.made.took_s + sum[2]) / all;
        did.raw = all;
    }
    bound();
}

void KeyChoice::bound() {
    if (known_.size() <= known_max) return;
    std::vector<std::pair<double, std::uint32_t>> sizes;
    for (const auto& [key, known] : known_)
        if (key != 0) sizes.emplace_back(known.raw, key);
    const auto least = sizes.begin() + static_cast<std::ptrdiff_t>(known_.size() - known_max);
    std::nth_element(sizes.begin(), least, sizes.end());
    for (auto each = sizes.begin(); each != least; ++each) known_.erase(each->second);
}

KeyChoice::Means KeyChoice::means() const {
    std::array<Made, efforts_count> sums{}, of_both{};
    std::array<double, efforts_count> raw{};
    for (Made& sum : sums) sum.stored = 0;
    for (Made& sum : of_both) sum.stored = 0;
    for (const auto& [key, known] : known_) {
        const bool has_both = known.by[place(Effort::fast)].raw > 0 && known.by[place(Effort::small)].raw > 0;
        for (std::size_t effort = 0; effort < efforts_count; ++effort) {
            const Did& did = known.by[effort];
            if (did.raw == 0) continue;
            const double weight = std::max(known.raw, 1.0);  // seen on trial alone, it counts a little
            raw[effort] += weight;
            for (auto* into : {&sums, &of_both}) {
                if (into == &of_both && !has_both) continue;
                (*into)[effort].stored += weight * did.made.stored;
                (*into)[effort].took_s += weight * did.made.took_s;
            }
        }
    }
    Means means;
    for (std::size_t effort = 0; effort < efforts_count; ++effort)
        if (raw[effort] > 0) means.of[effort] = Made{sums[effort].stored / raw[effort], sums[effort].took_s / raw[effort]};
    const Made &fast = of_both[place(Effort::fast)], &small = of_both[place(Effort::small)];
    if (fast.stored > 0 && fast.took_s > 0 && small.took_s > 0) means.small_by_fast = Made{small.stored / fast.stored, small.took_s / fast.took_s};
    return means;
}

// Of a key on which it was not seen: from the other effort, where others tell how both compare; else what it is on others.
Made KeyChoice::expected(const Known& known, Effort effort, const Means& means, double shorter) {
    const Did& did = known.by[place(effort)];
    if (effort == Effort::none) return {1, did.made.took_s};
    Made made = did.made;
    if (did.raw == 0) {
        const Effort other = effort == Effort::fast ? Effort::small : Effort::fast;
        const Made before = known.by[place(other)].made;
        if (known.by[place(other)].raw > 0 && means.small_by_fast) {
            const Made& by = *means.small_by_fast;
            made = effort == Effort::small ? Made{before.stored * by.stored, before.took_s * by.took_s} : Made{before.stored / by.stored, before.took_s / by.took_s};
        } else if (means.of[place(effort)]) {
            made = *means.of[place(effort)];
        }
    }
    made.stored /= shorter;
    return made;
}

std::optional<Made> KeyChoice::made(Effort whole, const KeyEfforts& efforts, double shorter) const {
    const Means all_means = means();
    const double all = raw_bytes();
    if (!all_means.of[place(whole)] || all <= 0) return std::nullopt;
    Made sum{0, 0};
    for (const auto& [key, known] : known_) {
        const Made each = expected(known, key == 0 ? whole : effort_of(efforts, key, whole), all_means, shorter);
        sum.stored += known.raw / all * each.stored;
        sum.took_s += known.raw / all * each.took_s;
    }
    return sum;
}

// Along the convex hull, from what is left as it is: each step saves less for its time than the one before. Of efforts that were seen on it.
std::vector<KeyChoice::Step> KeyChoice::steps_of(std::uint32_t key, const Known& known, double share, double shorter) {
    const auto seen = [&](Effort effort) { return Made{known.by[place(effort)].made.stored / shorter, known.by[place(effort)].made.took_s}; };
    Made now{1, known.by[place(Effort::none)].made.took_s};
    std::vector<Step> steps;
    for (;;) {
        Step best{key, Effort::none, {}};
        for (const Effort effort : {Effort::fast, Effort::small}) {
            const Made made = seen(effort);
            const double saved = now.stored - made.stored, took_s = made.took_s - now.took_s, worth = saved / std::max(took_s, no_time);
            if (known.by[place(effort)].raw > 0 && saved > 0 && worth > best.worth) best = {key, effort, {-share * saved, share * took_s}, worth};
        }
        if (best.to == Effort::none) return steps;
        steps.push_back(best);
        now = seen(best.to);
    }
}

KeyEfforts KeyChoice::best(Effort whole, const Speeds& speeds, double shorter) const {
    const double all = raw_bytes();
    if (!made(whole, {}, shorter)) return {};
    // All keys that are known are left as they are, and then steps are taken.
    KeyEfforts chosen;
    std::vector<Step> steps;
    for (const auto& [key, known] : known_) {
        if (key == 0 || (known.by[place(Effort::fast)].raw == 0 && known.by[place(Effort::small)].raw == 0)) continue;
        chosen.push_back({key, Effort::none});
        const std::vector<Step> more = steps_of(key, known, known.raw / all, shorter);
        steps.insert(steps.end(), more.begin(), more.end());
    }
    const Speeds careful{careful_share * speeds.encoders, speeds.stored_bytes_per_s};
    std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.worth > b.worth; });
    Made sum = *made(whole, chosen, shorter);
    std::set<std::uint32_t> ended;  // keys whose steps are not all taken: the next one is from where the last one leads
    for (const Step& step : steps) {
        const Made next{sum.stored + step.more.stored, sum.took_s + step.more.took_s};
        if (careful.durable(next) <= careful.durable(sum)) ended.insert(step.key);
        if (ended.count(step.key) != 0) continue;
        sum = next;
        const auto of_key = std::lower_bound(chosen.begin(), chosen.end(), step.key, [](const KeyEffort& each, std::uint32_t key) { return each.key < key; });
        of_key->effort = step.to;
    }
    std::erase_if(chosen, [&](const KeyEffort& each) { return each.effort == whole; });
    std::stable_sort(chosen.begin(), chosen.end(), [&](const KeyEffort& a, const KeyEffort& b) { return known_.at(a.key).raw > known_.at(b.key).raw; });
    chosen.resize(std::min(chosen.size(), keys_max));
    std::sort(chosen.begin(), chosen.end(), [](const KeyEffort& a, const KeyEffort& b) { return a.key < b.key; });
    return chosen;
}

}  // namespace cairn
