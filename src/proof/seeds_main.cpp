// cairn_seeds: runs seeded clusters with faults and holds the promise against each; `cairn_seeds --help` says how. A seed that fails is shrunk to the
// smallest scenario that fails in the same way, and told with the one command that runs it again. Exit status 1 when any failed, 2 when the command
// line is wrong.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "proof/seed_children.hpp"
#include "proof/shrink.hpp"
#include "proof/steered.hpp"

using namespace cairn;
using namespace cairn::testing;

namespace {

constexpr const char* usage =
    "usage: cairn_seeds [--from N] [--count N] | --seed N | --scenario 'KEY=VALUE ...'\n"
    "  --from N        the first seed (1)\n"
    "  --count N       so many seeds (20000)\n"
    "  --seed N        this one alone, told step by step\n"
    "  --scenario TEXT the same for a scenario as a failed seed prints it\n"
    "  --jobs N        so many at the same time (one for each core)\n"
    "  --reach NAME    the smallest scenario that comes by this situation (situations.hpp), from the first of these seeds that does: a line for --steered\n"
    "  --steered FILE  then the scenarios of that file; fails unless every situation is reached, by random seeds or by its own\n"
    "  --limit-s N     processor time for one seed; then it counts as hanging (60)\n"
    "  --fingerprints FILE  of each seed: the number of its run, which is the same as long as every event is\n"
    "  --failures N    stop after so many failed (20)\n"
    "  --shrink N      shrink so many of those that failed, the first ones (1)\n"
    "  --shrink-s N    real time for shrinking one (60)\n"
    "  --trace         every event on standard error; with --seed or --scenario\n";

struct Options {
    std::uint64_t from = 1, count = 20'000, failures_max = 20, shrink = 1, shrink_s = 60;
    std::optional<Scenario> single;
    std::optional<std::size_t> reach;  // a place in `situations`
    std::optional<std::vector<Steered>> steered;
    std::string steered_file;
    std::string fingerprints_file;
    ChildOptions children;
};

double seconds_since(std::chrono::steady_clock::time_point then) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

Result<std::uint64_t> number_of(const std::string& option, const char* text, std::uint64_t least, std::uint64_t most) {
    std::uint64_t value = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, value);
    if (error != std::errc() || stop != end || value < least || value > most)
        return invalid_argument(option + ": '" + text + "' is not a number from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
}

Result<Options> parse(int argc, char** argv) {
    Options options;
    options.children.jobs = std::max(1u, std::thread::hardware_concurrency());
    bool trace = false;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (option == "--trace") { trace = true; continue; }
        if (i + 1 == argc) return invalid_argument("'" + option + "' is no option, or lacks its value (--help)");
        const char* text = argv[++i];
        const auto number = [&](auto& into, std::uint64_t least, std::uint64_t most) -> Status {
            TRY_ASSIGN(const std::uint64_t value, number_of(option, text, least, most));
            into = static_cast<std::remove_reference_t<decltype(into)>>(value);
            return {};
        };
        std::uint64_t seed = 0;
        if (option == "--from") TRY(number(options.from, 0, UINT64_MAX / 2));
        else if (option == "--count") TRY(number(options.count, 1, UINT64_MAX / 2));
        else if (option == "--jobs") TRY(number(options.children.jobs, 1, 1024));
        else if (option == "--limit-s") TRY(number(options.children.limit_s, 1, 86'400));
        else if (option == "--failures") TRY(number(options.failures_max, 1, UINT64_MAX));
        else if (option == "--shrink") TRY(number(options.shrink, 0, UINT64_MAX));
        else if (option == "--shrink-s") TRY(number(options.shrink_s, 1, 86'400));
        else if (option == "--fingerprints") options.fingerprints_file = text;
        else if (option == "--seed") {
            TRY(number(seed, 0, UINT64_MAX));
            options.single = draw_scenario(seed);
        } else if (option == "--scenario") {
            Result<Scenario> scenario = parse_scenario(text);
            if (!scenario.ok()) return std::move(scenario).status().within("--scenario");
            options.single = std::move(scenario).value();
        } else if (option == "--reach") {
            const auto found = std::find_if(situations.begin(), situations.end(), [&](const Situation& each) { return each.name == std::string_view(text); });
            if (found == situations.end()) return invalid_argument("--reach: there is no situation '" + std::string(text) + "' (situations.hpp)");
            options.reach = found - situations.begin();
        } else if (option == "--steered") {
            Result<std::vector<Steered>> steered = read_steered(text);
            if (!steered.ok()) return std::move(steered).status().within("--steered");
            options.steered = std::move(steered).value();
            options.steered_file = text;
        } else {
            return invalid_argument("'" + option + "' is no option (--help)");
        }
    }
    if (options.steered && options.single) return invalid_argument("--steered comes after random seeds: leave --seed and --scenario out");
    if (options.reach && (options.single || options.steered)) return invalid_argument("--reach looks among random seeds: leave --seed, --scenario and --steered out");
    if (trace && !options.single) return invalid_argument("--trace is for one seed: give --seed or --scenario, too");
    options.children.trace = trace;
    return options;
}

std::string again(const char* program, const Scenario& scenario) { return std::string(program) + " --scenario '" + to_text(scenario) + "'"; }

void tell_smallest(const Options& options, const char* program, Scenario scenario, const std::string& failure) {
    const auto begun = std::chrono::steady_clock::now();
    ChildOptions silent = options.children;
    silent.silent = true;
    silent.limit_s = std::min(silent.limit_s, 10u);
    const auto failure_of = [&](const Scenario& less) -> std::optional<std::string> {
        SeedResult result = run_in_child(less, silent);
        if (result.ok) return std::nullopt;
        return std::move(result.failure);
    };
    const Shrunk smallest = shrink(std::move(scenario), failure, failure_of, [&] { return seconds_since(begun) < static_cast<double>(options.shrink_s); });
    const Scenario& s = smallest.scenario;
    std::string faults;
    for (std::size_t i = 0; i < s.faults.size(); ++i)
        if (s.faults[i] > 0) faults += (faults.empty() ? "" : ", ") + std::string(fault_classes()[i].name);
    std::printf("  smallest that fails so (%zu tries in %.0f s%s): %zu nodes, %llu ranks, %llu files; faults: %s; %zu steps\n  its failure: %s\n  again: %s\n",
                smallest.tries, seconds_since(begun), smallest.done ? "" : ", stopped by --shrink-s", s.ranks_per_node.size(),
                static_cast<unsigned long long>(s.ranks()), static_cast<unsigned long long>(s.files), faults.empty() ? "none" : faults.c_str(),
                s.steps.size(), smallest.failure.c_str(), again(program, s).c_str());
}

// Results in the order of their seeds, whenever they come.
class Report {
  public:
    Report(const Options& options, const char* program) : options_(options), program_(program), next_(options.from) {
        if (!options.fingerprints_file.empty()) fingerprints_.reset(std::fopen(options.fingerprints_file.c_str(), "w"));
    }

    bool enough() const { return failed_ >= options_.failures_max; }
    void add(std::uint64_t seed, SeedResult result) {
        waiting_[seed] = std::move(result);
        for (auto first = waiting_.find(next_); first != waiting_.end() && !enough(); first = waiting_.find(++next_)) {
            tell(first->first, first->second);
            waiting_.erase(first);
        }
    }
    void tell_progress(bool last) {
        if (!::isatty(STDERR_FILENO)) return;
        const double rate = static_cast<double>(done_) / std::max(0.001, seconds_since(begun_));
        if (last) std::fprintf(stderr, "\r%78s\r", "");
        else std::fprintf(stderr, "\r%llu of %llu seeds, %llu failed, %.0f seeds/s, %.0f s left ", number(done_), number(options_.count), number(failed_), rate,
                          static_cast<double>(options_.count - done_) / std::max(rate, 0.001));
    }
    int end() {
        tell_progress(true);
        const double took = seconds_since(begun_);
        if (!options_.fingerprints_file.empty() && (!fingerprints_ || std::fflush(fingerprints_.get()) != 0)) {
            std::fprintf(stderr, "cairn_seeds: --fingerprints: %s can not be written\n", options_.fingerprints_file.c_str());
            return 2;
        }
        std::size_t missed = done_ > 0 ? tell_situations() : 0;
        if (options_.steered) missed += tell_steered();
        std::printf("%llu seeds in %.1f s (%.0f seeds/s), %llu failed; %llu versions committed, %llu faults at steps\n", number(done_), took,
                    static_cast<double>(done_) / std::max(0.001, took), number(failed_), number(committed_), number(faults_));
        return failed_ > 0 || (options_.steered && missed > 0) ? 1 : 0;
    }
    // Of the scenario of that place in the file.
    void add_steered(std::size_t place, const SeedResult& result) {
        const Steered& steered = (*options_.steered)[place];
        reached_[place] = result.saw.test(static_cast<std::size_t>(steered.situation));
        if (result.ok) return;
        ++failed_;
        std::printf("%s line %zu: %s\n  again: %s\n", options_.steered_file.c_str(), steered.line, result.failure.c_str(), again(program_, steered.scenario).c_str());
        std::fflush(stdout);
    }

  private:
    // How many situations that random seeds should reach none did.
    std::size_t tell_situations() const {
        std::size_t missed = 0;
        for (std::size_t i = 0; i < situations.size(); ++i) {
            if (situations[i].by != ReachedBy::seeds) continue;
            const bool lacks = saw_[i] == 0 && options_.steered;
            std::printf("%-60s %8llu  %5.1f %% of seeds%s\n", situations[i].text, number(saw_[i]), 100.0 * static_cast<double>(saw_[i]) / static_cast<double>(done_),
                        lacks ? "  NOT REACHED" : "");
            missed += lacks;
        }
        return missed;
    }
    std::size_t tell_steered() const {
        std::size_t missed = 0;
        std::printf("by %zu steered scenarios (%s), and how many random seeds came by it:\n", options_.steered->size(), options_.steered_file.c_str());
        for (std::size_t place = 0; place < options_.steered->size(); ++place) {
            const Steered& steered = (*options_.steered)[place];
            const auto situation = static_cast<std::size_t>(steered.situation);
            const auto found = reached_.find(place);
            const bool reached = found != reached_.end() && found->second;
            std::printf("%-60s %8llu  line %zu%s\n", situations[situation].text, number(saw_[situation]), steered.line, reached ? "" : "  NOT REACHED");
            missed += !reached;
        }
        return missed;
    }

    static unsigned long long number(std::uint64_t value) { return value; }

    void tell(std::uint64_t seed, const SeedResult& result) {
        ++done_;
        if (fingerprints_) std::fprintf(fingerprints_.get(), "%llu %016llx\n", number(seed), number(result.fingerprint));
        committed_ += result.committed;
        faults_ += result.faults;
        for (std::size_t i = 0; i < saw_.size(); ++i) saw_[i] += result.saw.test(i);
        if (result.ok) return;
        tell_progress(true);
        std::printf("seed %llu: %s\n  again: %s --seed %llu\n", number(seed), result.failure.c_str(), program_, number(seed));
        if (failed_++ < options_.shrink) tell_smallest(options_, program_, draw_scenario(seed), result.failure);
        std::fflush(stdout);
    }

    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };

    const Options& options_;
    const char* program_;
    std::unique_ptr<std::FILE, Close> fingerprints_;
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    std::map<std::uint64_t, SeedResult> waiting_;
    std::map<std::size_t, bool> reached_;  // by steered scenarios, by their places
    std::uint64_t next_, done_ = 0, failed_ = 0, committed_ = 0, faults_ = 0;
    std::array<std::uint64_t, situations.size()> saw_{};
};

int run_single(const Options& options, const char* program) {
    const SeedResult result = run_in_child(*options.single, options.children);
    std::printf("%s\n%s", to_text(*options.single).c_str(), result.story.c_str());
    if (!result.ok) std::printf("failed: %s\n", result.failure.c_str());
    if (!result.ok && options.shrink > 0 && !options.children.trace) tell_smallest(options, program, *options.single, result.failure);
    return result.ok ? 0 : 1;
}

// Looks for a seed that comes by the situation and finds no fault, and leaves out of it what is not needed for that.
int run_reach(const Options& options) {
    const auto begun = std::chrono::steady_clock::now();
    const std::string name = situations[*options.reach].name;
    ChildOptions silent = options.children;
    silent.silent = true;
    const auto reaches = [&](const SeedResult& result) { return result.ok && result.saw.test(*options.reach); };
    const auto again = [&](const Scenario& less) { return reaches(run_in_child(less, silent)) ? std::optional<std::string>("reached") : std::nullopt; };
    Children children(silent);
    std::optional<std::uint64_t> seed;
    for (std::uint64_t begin = 0; !seed && (begin < options.count || !children.none());) {
        while (!children.full() && begin < options.count) children.start(options.from + begin, draw_scenario(options.from + begin)), ++begin;
        std::uint64_t number = 0;
        SeedResult result;
        if (children.next(1000, number, result) && reaches(result)) seed = number;
    }
    if (!seed) return std::printf("%s: none of %llu seeds comes by it\n", name.c_str(), static_cast<unsigned long long>(options.count)), 1;
    const auto time_left = [&] { return seconds_since(begun) < static_cast<double>(options.shrink_s); };
    const Shrunk smallest = shrink(draw_scenario(*seed), "reached", again, time_left);
    std::printf("%s %s\n", name.c_str(), to_text(smallest.scenario).c_str());
    return 0;
}

int run_many(const Options& options, const char* program) {
    Report report(options, program);
    Children children(options.children);
    constexpr int look_ms = 500;
    const std::uint64_t steered = options.steered ? options.steered->size() : 0, all = options.count + steered;  // those come last
    std::uint64_t begun = 0;
    while (!report.enough() && (begun < all || !children.none())) {
        while (!children.full() && begun < all) {
            const std::uint64_t number = begun++;
            children.start(number, number < options.count ? draw_scenario(options.from + number) : (*options.steered)[number - options.count].scenario);
        }
        std::uint64_t number = 0;
        SeedResult result;
        if (children.next(look_ms, number, result)) {
            if (number < options.count) report.add(options.from + number, std::move(result));
            else report.add_steered(number - options.count, result);
        }
        report.tell_progress(false);
    }
    return report.end();
}

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (!std::strcmp(argv[i], "--help")) return std::fputs(usage, stdout), 0;
    const Result<Options> options = parse(argc, argv);
    if (!options.ok()) {
        std::fprintf(stderr, "cairn_seeds: %s\n", options.status().text().c_str());
        return 2;
    }
    if (options->reach) return run_reach(*options);
    return options->single ? run_single(*options, argv[0]) : run_many(*options, argv[0]);
}
