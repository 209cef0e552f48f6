#include "cli/codec_search.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/units.hpp"
#include "cli/flush_runs.hpp"
#include "model/key_choice.hpp"
#include "model/merging.hpp"

namespace cairn::cli {

namespace {

constexpr double worth = 1.02;         // of any change
constexpr double worth_of_auto = 1.05;  // CodecChoice's: of a codec over none
constexpr double shorter_least = 16.0 / 15;  // else nothing is stored encoded

struct Value {
    std::string_view text;  // of flush.codec
    Codec codec;
};
constexpr Value values[] = {{"off", Codec::none}, {"zero-runs", Codec::zero_runs}, {"delta-shuffle-zstd", Codec::numbers}, {"fast", Codec::planes}, {"small", Codec::planes_small}};
constexpr std::uint64_t turns[] = {4 << 10, 32 << 10, 256 << 10, 64 << 20};  // the last: each image once
constexpr std::uint64_t blocks[] = {256 << 10, 1 << 20, 4 << 20, 16 << 20};
constexpr std::size_t merged_codecs = 2;
constexpr int check_rounds = 2;

bool is_better(double reached, double than) { return worth * reached < than; }

// Whether the coordinator would merge versions of which two trials said this.
bool is_found_by_trials(const CodecTrial& apart, const CodecTrial& merged) {
    MergeChoice choice;
    for (int trial = 0; trial < 2; ++trial) choice.record({true, apart.stored_bytes, merged.stored_bytes, merged.raw_bytes});
    return choice.merges();
}

class Search {
  public:
    Search(const SearchInput& input, const TryIt& try_it) : input_(input), try_it_(try_it), present_codec_(codec_text(input.present)) {}

    Result<SearchReport> run() {
        TRY(try_codecs());
        if (input_.images > 1) TRY(try_merging());
        set_as_today();
        choose_codec();
        const Tried* best = &row_of(standing(report_.codec));
        if (report_.codec != "off") {
            best = &choose_merging();
            if (best->combination.merge_ranks == 1) {
                TRY(try_blocks(best->combination));
                best = &choose_block(*best);
            }
        }
        report_.best = best->combination;
        const Tried& today = present(standing(present_codec_));
        report_.gain = reach(today) / reach(*best);
        note_changes();
        if (knows_storage() && !is_same(today.combination, best->combination)) TRY(check(today.combination));
        return std::move(report_);
    }

  private:
    double reach(const Tried& tried) const { return reached(input_, tried.trial); }
    bool knows_storage() const { return input_.storage_bytes_per_s > 0; }

    static bool is_same(const Combination& a, const Combination& b) { return a.method == b.method && a.merge_ranks == b.merge_ranks && a.merge_bytes == b.merge_bytes && a.block_bytes == b.block_bytes; }

    // Two values of flush.codec may come to the same.
    const Tried* find(const Combination& wanted) const {
        for (const std::vector<Tried>* rows : {&report_.codecs, &report_.merged, &report_.blocks})
            for (const Tried& each : *rows)
                if (is_same(each.combination, wanted)) return &each;
        return nullptr;
    }

    Status add(std::vector<Tried>& rows, Combination combination) {
        if (const Tried* same = find(combination)) {
            rows.push_back({std::move(combination), CodecTrial(same->trial)});
            return {};
        }
        TRY_ASSIGN(CodecTrial trial, try_it_(combination));
        rows.push_back({std::move(combination), std::move(trial)});
        return {};
    }

    Status try_codecs() {
        for (const Value& value : values) TRY(add(report_.codecs, {std::string(value.text), {value.codec, wants_arrays(value.codec), {}}, 1, 0, input_.present.block_bytes}));
        return knows_storage() ? try_auto() : Status();
    }

    // What it comes to in the end, by the coordinator's own choice among keys.
    Status try_auto() {
        const Tried &fast = row_of("fast"), &small = row_of("small");
        const Speeds speeds{static_cast<double>(input_.threads), input_.storage_bytes_per_s};
        KeyChoice choice;
        std::vector<KeyEncoded> seen = fast.trial.keys;
        seen.insert(seen.end(), small.trial.keys.begin(), small.trial.keys.end());
        choice.record(seen, Effort::fast);
        Method method{Codec::none, false, {}};  // off's
        double most = worth_of_auto * input_.storage_bytes_per_s;
        for (const Tried* row : {&fast, &small}) {
            const Effort whole = *effort_of(row->combination.method.codec);
            const KeyEfforts efforts = choice.best(whole, speeds);
            const std::optional<Made> made = choice.made(whole, efforts);
            if (!made || speeds.durable(*made) <= most) continue;
            most = speeds.durable(*made);
            method = {row->combination.method.codec, true, efforts};
        }
        return add(report_.codecs, {"auto", method, 1, 0, input_.present.block_bytes});
    }

    // The best ones that encode, and what may be chosen in any case.
    std::vector<const Tried*> to_merge() const {
        std::vector<const Tried*> rows;
        for (const Tried& each : report_.codecs)
            if (each.combination.method.codec != Codec::none) rows.push_back(&each);
        const auto is_needed = [&](const Tried* row) { return row->combination.codec == standing("auto") || row->combination.codec == present_codec_; };
        std::stable_sort(rows.begin(), rows.end(), [&](const Tried* a, const Tried* b) { return reach(*a) < reach(*b); });
        for (std::size_t i = rows.size(); i-- > merged_codecs;)
            if (!is_needed(rows[i])) rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
        return rows;
    }

    Status try_merging() {
        std::vector<Combination> ways;  // as they are set today, then others
        const Settings::Flush& now = input_.present;
        ways.push_back({"", {}, now.merge_ranks > 1 ? now.merge_ranks : merge_ranks_chosen, now.merge_bytes, now.block_bytes});
        for (const std::uint64_t turn : turns) ways.push_back({"", {}, merge_ranks_chosen, turn, std::min(now.block_bytes, turn)});
        std::vector<MergePolicy> seen;
        for (const Combination& way : ways) {
            const MergePolicy policy = policy_of(way);
            if (policy.ranks < 2 || std::find(seen.begin(), seen.end(), policy) != seen.end()) continue;
            seen.push_back(policy);
            for (const Tried* row : to_merge()) TRY(add(report_.merged, {row->combination.codec, row->combination.method, way.merge_ranks, way.merge_bytes, way.block_bytes, std::min(policy.ranks, input_.images)}));
        }
        return {};
    }

    MergePolicy policy_of(const Combination& way) const {
        Settings::Flush flush = input_.present;
        flush.block_bytes = way.block_bytes;
        return merge_policy(run_settings(flush, 0, 0), way.merge_ranks, way.merge_bytes);
    }

    Status try_blocks(Combination combination) {
        for (const std::uint64_t block : blocks) {
            if (block == input_.present.block_bytes || input_.present.buffer_bytes % block != 0) continue;
            combination.block_bytes = block;
            TRY(add(report_.blocks, combination));
        }
        return {};
    }

    const Tried& row_of(const std::string& codec) const {
        return *std::find_if(report_.codecs.begin(), report_.codecs.end(), [&](const Tried& each) { return each.combination.codec == codec; });
    }
    std::string standing(const std::string& codec) const { return codec == "auto" && !knows_storage() ? "fast" : codec; }

    // What merging as it is set today makes of a codec.
    const Tried& present(const std::string& codec) const {
        const Tried& apart = row_of(codec);
        const Settings::Flush& now = input_.present;
        for (const Tried& each : report_.merged) {
            const Combination& way = each.combination;
            if (now.merge_ranks == 1 || way.codec != codec || way.merge_bytes != now.merge_bytes || way.block_bytes != now.block_bytes) continue;
            return now.merge_ranks > 1 || is_found_by_trials(apart.trial, each.trial) ? each : apart;
        }
        return apart;
    }

    double best_of(const std::string& codec) const {
        double best = reach(row_of(codec));
        for (const Tried& each : report_.merged)
            if (each.combination.codec == codec) best = std::min(best, reach(each));
        return best;
    }

    void choose_codec() {
        const auto is_shorter = [](const Tried& each) { return each.trial.ratio() >= shorter_least; };
        if (!knows_storage()) {
            const bool any = std::any_of(report_.codecs.begin(), report_.codecs.end(), is_shorter) || std::any_of(report_.merged.begin(), report_.merged.end(), is_shorter);
            report_.codec = any ? "auto" : "off";
            return;
        }
        std::string best = "off";
        for (const Tried& each : report_.codecs)
            if (best_of(each.combination.codec) < best_of(best)) best = each.combination.codec;
        if (!is_better(best_of(best), best_of("off"))) best = "off";
        else if (!is_better(best_of(best), best_of(present_codec_))) best = present_codec_;
        else if (!is_better(best_of(best), best_of("auto"))) best = "auto";
        report_.codec = best;
    }

    const Tried& choose_merging() {
        const std::string codec = standing(report_.codec);
        const Tried &apart = row_of(codec), &today = present(codec), *best = &apart;
        for (const Tried& each : report_.merged) {
            const bool may_be = each.combination.codec == codec && (knows_storage() || is_found_by_trials(apart.trial, each.trial));
            if (may_be && reach(each) < reach(*best)) best = &each;
        }
        if (!is_better(reach(*best), reach(today))) return today;
        const Combination& way = best->combination;
        report_.block_bytes = way.block_bytes;
        if (way.merge_ranks == 1) report_.merge_ranks = 1;
        else if (way.merge_ranks != input_.present.merge_ranks) report_.merge_ranks = is_found_by_trials(apart.trial, best->trial) ? 0 : way.merge_ranks;
        if (way.merge_ranks > 1) report_.merge_bytes = way.merge_bytes;
        return *best;
    }

    const Tried& choose_block(const Tried& today) {
        const Tried* best = &today;
        for (const Tried& each : report_.blocks)
            if (reach(each) < reach(*best)) best = &each;
        if (!is_better(reach(*best), reach(today))) return today;
        report_.block_bytes = best->combination.block_bytes;
        return *best;
    }

    Status check(const Combination& today) {
        const Combination best = report_.best;
        std::optional<CodecTrial> of_today, of_best;
        for (int round = 0; round < check_rounds; ++round)
            for (const auto& [combination, quickest] : {std::pair(&today, &of_today), std::pair(&best, &of_best)}) {
                TRY_ASSIGN(CodecTrial trial, try_it_(*combination));
                if (!*quickest || trial.encode_s < (*quickest)->encode_s) *quickest = std::move(trial);
            }
        report_.gain = reached(input_, *of_today) / reached(input_, *of_best);
        if (is_better(reached(input_, *of_best), reached(input_, *of_today))) return {};
        report_.is_refuted = true;
        report_.best = today;
        report_.gain = 1;
        report_.codec = present_codec_;
        set_as_today();
        report_.changes.clear();
        return {};
    }

    void set_as_today() {
        report_.merge_ranks = input_.present.merge_ranks;
        report_.merge_bytes = input_.present.merge_bytes;
        report_.block_bytes = input_.present.block_bytes;
    }

    void note_changes() {
        const auto quoted = [](const std::string& value) { return "\"" + value + "\""; };
        const Settings::Flush& now = input_.present;
        std::vector<ConfigChange>& changes = report_.changes;
        if (report_.codec != present_codec_) changes.emplace_back("flush.codec", quoted(report_.codec));
        if (report_.merge_ranks != now.merge_ranks) changes.emplace_back("flush.merge_ranks", std::to_string(report_.merge_ranks));
        if (report_.merge_bytes != now.merge_bytes) changes.emplace_back("flush.merge_bytes", quoted(format_bytes_exact(report_.merge_bytes)));
        if (report_.block_bytes != now.block_bytes) changes.emplace_back("flush.block_bytes", quoted(format_bytes_exact(report_.block_bytes)));
    }

    const SearchInput& input_;
    const TryIt& try_it_;
    std::string present_codec_;
    SearchReport report_;
};

}  // namespace

std::string codec_text(const Settings::Flush& flush) {
    Settings settings;
    settings.flush = flush;
    const ConfigKey& key = *find_config_key("flush.codec");
    return key.format(key.get(settings));
}

double reached(const SearchInput& input, const CodecTrial& trial) {
    return input.storage_bytes_per_s > 0 ? durable_s(trial, trial.raw_bytes, input.storage_bytes_per_s, input.threads) : trial.part_bytes;
}

std::uint64_t trials_most(const SearchInput& input) {
    const std::uint64_t ways = std::size(turns) + 1, codecs = merged_codecs + 2;
    return std::size(values) + (input.storage_bytes_per_s > 0 ? 1 + 2 * check_rounds : 0) + (input.images > 1 ? ways * codecs : 0) + std::size(blocks);
}

Result<SearchReport> search_codecs(const SearchInput& input, const TryIt& try_it) { return Search(input, try_it).run(); }

}  // namespace cairn::cli
