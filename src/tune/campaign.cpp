#include "tune/campaign.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace cairn::tune {

namespace {

constexpr double screening_share = 0.4, contenders_share = 0.7;  // of the rest: where these stages end
constexpr std::uint32_t pairs_max = 24;
constexpr std::size_t singles_max = 3;             // contenders that change one thing
constexpr double worth = 1.02;                     // less is no reason to change a setting
constexpr double hopeless = 0.7;                   // of the present settings: screened once
constexpr std::size_t present_every = 8;

}  // namespace

const char* stage_name(Stage stage) {
    constexpr const char* names[] = {"screening", "contenders", "check", "figures"};
    return names[static_cast<std::size_t>(stage)];
}

Campaign::Campaign(CampaignOptions options, Runner& runner) : options_(std::move(options)), runner_(runner), random_(options_.seed) {
    options_.present = normal(options_.present);
    verdict_.best = options_.present;
}

Status Campaign::run() {
    const Nanos begun = runner_.now();
    const double all = static_cast<double>(std::max<Nanos>(options_.ends - begun, 0)) * (options_.figures ? 1 - figures_share : 1);
    const auto until = [&](double share) { return begun + static_cast<Nanos>(all * share); };
    TRY(screen(until(screening_share)));
    TRY(contend(until(contenders_share)));
    TRY(check(until(1)));
    if (options_.figures) TRY(draw());
    return {};
}

// ---- one run ----

// What a run costs is known from the last one like it, else from the longest with so many followers; of the first nothing is known.
bool Campaign::fits(const Variant& variant, std::uint32_t followers, Nanos until) const {
    double like = 0, longest = 0;
    for (const Run& run : runs_) {
        const double scale = static_cast<double>(1 + followers) / static_cast<double>(1 + run.followers);
        if (run.variant == variant && run.followers == followers) like = run.measured.wall_s;
        longest = std::max(longest, run.measured.wall_s * std::max(1.0, scale));
    }
    const double expected_s = like > 0 ? like : longest;
    return runner_.now() + static_cast<Nanos>(expected_s * second) <= until;
}

Status Campaign::measure(Stage stage, const Variant& variant, std::uint32_t followers) {
    options_.tell(stage, variant);
    Result<Measured> measured = runner_.run(variant, followers);
    if (!measured.ok()) return std::move(measured).status();
    runs_.push_back({stage, round_, variant, followers, *measured});
    return {};
}

// All of them once, in a random order. `whole`: there was time for all.
Status Campaign::round(Stage stage, std::vector<Variant> variants, Nanos until, bool& whole) {
    std::shuffle(variants.begin(), variants.end(), random_);
    ++round_;
    whole = false;
    for (const Variant& variant : variants) {
        if (!fits(variant, options_.followers.front(), until)) return {};
        TRY(measure(stage, variant, options_.followers.front()));
    }
    whole = true;
    return {};
}

std::vector<double> Campaign::ratios(const Variant& variant, Stage stage) const {
    std::map<std::uint32_t, std::vector<double>> present;
    for (const Run& run : runs_)
        if (run.stage == stage && run.variant == options_.present) present[run.round].push_back(rate(run.measured));
    std::vector<double> found;
    for (const Run& run : runs_)
        if (run.stage == stage && run.variant == variant && present.count(run.round)) found.push_back(rate(run.measured) / median(present[run.round]));
    return found;
}

// ---- screening ----

std::vector<Variant> Campaign::singles() const {
    std::vector<Variant> found;
    for (const Factor factor : factors)
        for (const std::uint64_t value : options_.levels[factor]) {
            Variant variant = options_.present;
            set_level(variant, factor, value);
            variant = normal(variant);
            const bool known = variant == options_.present || std::find(found.begin(), found.end(), variant) != found.end();
            if (!known) found.push_back(variant);
        }
    return found;
}

// The first round goes on past its share: without it there is nothing to choose from.
Status Campaign::screen(Nanos until) {
    std::vector<Variant> variants = singles();
    const std::size_t present_times = 1 + variants.size() / present_every;
    variants.insert(variants.end(), present_times, options_.present);
    TRY(measure(Stage::screening, options_.present, options_.followers.front()));  // cold: of a round of its own, so it counts nowhere
    bool whole = variants.size() > present_times;
    for (bool first = true; whole; first = false) {
        TRY(round(Stage::screening, variants, first ? options_.ends : until, whole));
        if (whole) std::erase_if(variants, [&](const Variant& variant) { return median(ratios(variant, Stage::screening)) < hopeless; });
    }
    return {};
}

// ---- contenders ----

// Where files are many is the user's choice, and changes what a user sees: what they win is told, and not mixed with the rest.
std::vector<Variant> Campaign::candidates() const {
    struct Gain {
        double ratio;
        Factor factor;
        std::uint64_t value;
    };
    std::map<Factor, Gain> best;
    for (const Variant& variant : singles()) {
        const std::vector<Factor> changed = differences(variant, options_.present);
        const bool of_files = std::find(changed.begin(), changed.end(), Factor::files) != changed.end();
        const double ratio = median(ratios(variant, Stage::screening));
        if (of_files || changed.empty() || ratio <= 1) continue;
        const Gain gain{ratio, changed.back(), level(variant, changed.back())};
        const auto [at, added] = best.emplace(gain.factor, gain);
        if (!added && gain.ratio > at->second.ratio) at->second = gain;
    }
    std::vector<Gain> gains;
    for (const auto& [factor, gain] : best) gains.push_back(gain);
    std::stable_sort(gains.begin(), gains.end(), [](const Gain& a, const Gain& b) { return a.ratio > b.ratio; });
    std::vector<Variant> found;
    const auto add = [&](Variant variant) {
        variant = normal(variant);
        if (variant != options_.present && std::find(found.begin(), found.end(), variant) == found.end()) found.push_back(variant);
    };
    for (std::size_t i = 0; i < std::min(singles_max, gains.size()); ++i) {
        Variant variant = options_.present;
        set_level(variant, gains[i].factor, gains[i].value);
        add(variant);
    }
    Variant together = options_.present;
    for (std::size_t i = 0; i < gains.size(); ++i) {
        set_level(together, gains[i].factor, gains[i].value);
        if (i > 0) add(together);
    }
    // How many writers are best depends on the rest more than anything else does.
    if (gains.size() > 1)
        for (const std::uint64_t writers : options_.levels[Factor::writers])
            if (writers == together.writers * 2ull || writers * 2 == together.writers) {
                Variant variant = together;
                set_level(variant, Factor::writers, writers);
                add(variant);
            }
    return found;
}

// What a contender wins over the present settings, less 2 % for each setting that it changes: every change must be worth it.
double Campaign::merit(const Variant& variant) const {
    return median(ratios(variant, Stage::contenders)) / std::pow(worth, static_cast<double>(differences(variant, options_.present).size()));
}

// Best first.
void Campaign::sort_by_merit(std::vector<Variant>& alive) const {
    std::map<Variant, double> by;
    for (const Variant& variant : alive) by[variant] = merit(variant);
    std::stable_sort(alive.begin(), alive.end(), [&](const Variant& a, const Variant& b) { return by[a] > by[b]; });
}

Status Campaign::contend(Nanos until) {
    std::vector<Variant> alive = candidates();
    finalists_ = alive;
    bool whole = !alive.empty();
    for (std::uint32_t rounds = 1; whole; ++rounds) {
        std::vector<Variant> variants = alive;
        variants.push_back(options_.present);
        TRY(round(Stage::contenders, variants, until, whole));
        if (rounds % 2 != 0 || !whole) continue;
        if (alive.size() == 1) break;
        sort_by_merit(alive);
        alive.resize((alive.size() + 1) / 2);
    }
    sort_by_merit(alive);
    // Without time for a round of them, what won most by itself is checked.
    const bool any_known = !alive.empty() && merit(alive.front()) > 0;
    if (any_known ? merit(alive.front()) > 1 : !alive.empty()) verdict_.best = alive.front();
    return {};
}

// ---- check ----

Status Campaign::check(Nanos until) {
    if (verdict_.best == options_.present) return {};
    bool whole = true;
    while (whole && verdict_.pairs < pairs_max) {
        if (runner_.now() >= until) break;
        TRY(round(Stage::check, {options_.present, verdict_.best}, until, whole));
        verdict_.pairs += whole ? 1 : 0;
    }
    const std::vector<double> found = ratios(verdict_.best, Stage::check);
    for (const Stage stage : {Stage::screening, Stage::contenders, Stage::check})
        if (const std::vector<double> known = ratios(verdict_.best, stage); !known.empty()) verdict_.ratio = median(known);
    verdict_.interval = median_interval(found);
    if (!verdict_.interval.known) verdict_.kind = Verdict::Kind::too_few;
    else verdict_.kind = verdict_.interval.low > 1 && verdict_.ratio >= worth ? Verdict::Kind::better : Verdict::Kind::within_noise;
    return {};
}

// ---- figures ----

// As the paper wrote: local files whole per writer. Cairn's own order with its own split.
Variant Campaign::figure_variant(const CampaignOptions& options, Placement placement, std::uint32_t writers, std::uint32_t files) {
    Variant variant = options.present;
    variant.placement = placement;
    variant.local_split = placement == Placement::append ? LocalSplit::chunks : LocalSplit::files;
    variant.writers = writers;
    variant.files = files;
    return normal(variant);
}

Status Campaign::draw() {
    std::set<std::pair<std::uint32_t, Variant>> points;
    for (const std::uint32_t followers : options_.followers)
        for (const std::uint64_t files : options_.levels[Factor::files])
            for (const std::uint64_t writers : options_.levels[Factor::writers])
                for (const Placement placement : {Placement::append, Placement::interleaved, Placement::contiguous})
                    points.insert({followers, figure_variant(options_, placement, static_cast<std::uint32_t>(writers), static_cast<std::uint32_t>(files))});
    std::vector<std::pair<std::uint32_t, Variant>> order(points.begin(), points.end());
    for (;;) {
        std::shuffle(order.begin(), order.end(), random_);
        ++round_;
        for (const auto& [followers, variant] : order) {
            if (!fits(variant, followers, options_.ends)) return {};
            TRY(measure(Stage::figures, variant, followers));
        }
    }
}

std::vector<double> Campaign::figure_values(const Variant& variant, std::uint32_t followers) const {
    std::vector<double> values;
    for (const Run& run : runs_)
        if (run.stage == Stage::figures && run.variant == variant && run.followers == followers) values.push_back(run.measured.received_per_s(false));
    return values;
}

// ---- results ----

std::vector<Row> Campaign::rows() const {
    std::vector<Variant> order = {options_.present};
    for (const std::vector<Variant>& more : {singles(), finalists_})
        for (const Variant& variant : more)
            if (std::find(order.begin(), order.end(), variant) == order.end()) order.push_back(variant);
    std::vector<Row> rows;
    for (const Variant& variant : order) {
        Row row;
        row.variant = variant;
        for (const Run& run : runs_) {
            if (run.variant != variant || run.stage == Stage::figures || run.round == 0) continue;
            row.received_per_s.push_back(run.measured.received_per_s(false));
            row.durable_per_s.push_back(run.measured.received_per_s(true));
            row.all_per_s.push_back(rate(run.measured));
        }
        for (const Stage stage : {Stage::screening, Stage::contenders, Stage::check})
            for (const double ratio : ratios(variant, stage)) row.ratios.push_back(ratio);
        if (!row.all_per_s.empty()) rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace cairn::tune
