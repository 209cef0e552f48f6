// cairn_exhaustive: all faults at every step of a small job, one by one, then two by two; `cairn_exhaustive --help` says how. Exit status 1 when any
// run failed, 2 when the command line is wrong.
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "proof/exhaustive.hpp"

using namespace cairn;
using namespace cairn::testing;

namespace {

constexpr const char* usage =
    "usage: cairn_exhaustive [--states N | --job 'K=2 L=2'] | --fault 'K=1 L=2 17:kill:0 o23:hang'\n"
    "Runs a small job of two nodes again and again, for K = 1 and 2 files and one and two that write, with every single fault at each of its steps and operations.\n"
    "  --states N      then with two of them, until so many distinct states were seen (0: none)\n"
    "  --job TEXT      of one job alone, its single faults\n"
    "  --from R.S      pairs from that slice of that round on (0.0)\n"
    "  --fault TEXT    this one run alone, told step by step\n"
    "  --jobs N        so many at the same time (one for each core)\n"
    "  --limit-s N     processor time for one run; then it counts as hanging (20)\n"
    "  --failures N    stop after so many failed (20)\n"
    "  --trace         every event on standard error; with --fault\n";


struct Options {
    std::uint64_t states = 0;
    std::optional<std::size_t> job;  // of job_cases; absent: all
    Round from;
    bool single = false;
    JobCase job_case;
    std::vector<Fault> faults;
    bool trace = false;
    Exploration each;
};

double seconds_since(std::chrono::steady_clock::time_point then) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

Status parse_fault_line(const std::string& text, Options& options) {
    for (const JobCase& each : job_cases) {
        const std::string begin = each.text();
        if (text.compare(0, begin.size(), begin) != 0) continue;
        options.single = true;
        options.job_case = each;
        Result<std::vector<Fault>> faults = parse_faults(text.substr(begin.size()));
        if (!faults.ok()) return std::move(faults).status().within("--fault");
        options.faults = std::move(faults).value();
        return {};
    }
    return invalid_argument("--fault: '" + text + "' does not begin with a job (as in " + job_cases[0].text() + ")");
}

Status parse_job(const std::string& text, Options& options) {
    for (std::size_t which = 0; which < job_cases.size(); ++which)
        if (job_cases[which].text() == text) options.job = which;
    return options.job ? Status() : invalid_argument("--job: '" + text + "' is no job (as in " + job_cases[0].text() + ")");
}

Status parse_round(const std::string& text, Round& round) {
    const char* end = text.data() + text.size();
    const auto [point, error] = std::from_chars(text.data(), end, round.round);
    if (error == std::errc() && point != end && *point == '.') {
        const auto [stop, wrong] = std::from_chars(point + 1, end, round.slice);
        if (wrong == std::errc() && stop == end && round.slice < Round::slices) return {};
    }
    return invalid_argument("--from: '" + text + "' is no round and slice (as in 0.17; a round has " + std::to_string(Round::slices) + " slices)");
}

Result<Options> parse(int argc, char** argv) {
    Options options;
    options.each.jobs = std::max(1u, std::thread::hardware_concurrency());
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (option == "--trace") { options.trace = true; continue; }
        if (i + 1 == argc) return invalid_argument("'" + option + "' is no option, or lacks its value (--help)");
        const char* text = argv[++i];
        const auto number = [&](auto& into, std::uint64_t least, std::uint64_t most) -> Status {
            std::uint64_t value = 0;
            const char* end = text + std::strlen(text);
            const auto [stop, error] = std::from_chars(text, end, value);
            if (error != std::errc() || stop != end || value < least || value > most)
                return invalid_argument(option + ": '" + text + "' is not a number from " + std::to_string(least) + " to " + std::to_string(most));
            into = static_cast<std::remove_reference_t<decltype(into)>>(value);
            return {};
        };
        if (option == "--states") TRY(number(options.states, 0, 1'000'000'000));
        else if (option == "--job") TRY(parse_job(text, options));
        else if (option == "--from") TRY(parse_round(text, options.from));
        else if (option == "--jobs") TRY(number(options.each.jobs, 1, 1024));
        else if (option == "--limit-s") TRY(number(options.each.limit_s, 1, 86'400));
        else if (option == "--failures") TRY(number(options.each.failures_max, 1, UINT64_MAX));
        else if (option == "--fault") TRY(parse_fault_line(text, options));
        else return invalid_argument("'" + option + "' is no option (--help)");
    }
    if (options.job && options.states > 0) return invalid_argument("--job is for single faults, --states for pairs of all jobs");
    if (options.trace && !options.single) return invalid_argument("--trace is for one run: give --fault, too");
    return options;
}

unsigned long long number(std::uint64_t value) { return value; }

class Progress {
  public:
    Progress(Shared& shared, std::string what) : shared_(shared), what_(std::move(what)) {}
    void look() {
        if (!::isatty(STDERR_FILENO)) return;
        const Shared::Counts& counts = shared_.counts();
        std::fprintf(stderr, "\r%s: %llu runs (%.0f/s), %llu failed, %llu states ", what_.c_str(), number(counts.runs),
                     static_cast<double>(counts.runs) / std::max(0.001, seconds_since(begun_)), number(counts.failed), number(counts.states));
        told_ = true;
    }
    ~Progress() {
        if (told_) std::fprintf(stderr, "\r%78s\r", "");
    }

  private:
    Shared& shared_;
    const std::string what_;
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    bool told_ = false;
};

class Exhaustive {
  public:
    Exhaustive(const Options& options, const std::string& program) : options_(options), program_(program), shared_(std::max<std::uint64_t>(options.states, 1 << 16)) {}

    int run() {
        for (std::size_t which = 0; which < job_cases.size(); ++which)
            if (!options_.job || options_.job == which) run_singles(which);
        if (options_.states > 0) run_pairs();
        return shared_.counts().failed > 0 ? 1 : 0;
    }

  private:
    bool enough() { return shared_.counts().failed >= options_.each.failures_max; }

    void run_singles(std::size_t which) {
        Exploration all = options_.each;
        all.job_case = which;
        all.count = options_.states > 0;
        Shared::Counts& counts = shared_.counts();
        const std::uint64_t runs = counts.runs, pairs = counts.pairs;
        const auto begun = std::chrono::steady_clock::now();
        Progress progress(shared_, job_cases[which].text() + ", single faults");
        explore(all, shared_, program_, [&] { progress.look(); });
        std::printf("%s: %llu single faults in %.0f s, %llu failed", job_cases[which].text().c_str(), number(counts.runs - runs), seconds_since(begun), number(counts.failed));
        if (all.count) std::printf("; of these first faults come %llu pairs; %llu distinct states so far", number(counts.pairs - pairs), number(counts.states));
        std::printf("\n");
        std::fflush(stdout);
    }

    void run_pairs() {
        Shared::Counts& counts = shared_.counts();
        const std::uint64_t singles = counts.runs;
        const auto begun = std::chrono::steady_clock::now();
        Round at = options_.from;
        for (bool any = true; any && !done(); ++at) any = run_slice(at, begun, singles) || at.slice > 0;
        const std::uint64_t run = counts.runs - singles;
        std::printf("%llu pairs in %.0f s, %.4f %% of all %llu; %llu distinct states; %llu failed; next is --from %llu.%llu\n", number(run), seconds_since(begun),
                    share(run), number(counts.pairs), number(counts.states), number(counts.failed), number(at.round), number(at.slice));
    }

    bool done() { return enough() || shared_.counts().states >= options_.states; }
    double share(std::uint64_t pairs) { return 100.0 * static_cast<double>(pairs) / static_cast<double>(std::max<std::uint64_t>(1, shared_.counts().pairs)); }

    // False: there was none.
    bool run_slice(const Round& at, std::chrono::steady_clock::time_point begun, std::uint64_t singles) {
        Shared::Counts& counts = shared_.counts();
        const std::uint64_t before = counts.runs;
        Progress progress(shared_, "round " + std::to_string(at.round) + ", slice " + std::to_string(at.slice));
        for (std::size_t which = 0; which < job_cases.size(); ++which) {
            Exploration some = options_.each;
            some.job_case = which;
            some.pairs = at;
            explore(some, shared_, program_, [&] { progress.look(); });
        }
        if (at.slice % 10 == 0)
            std::printf("up to %llu.%llu: %llu pairs in %.0f s (%.4f %%), %llu failed; %llu distinct states\n", number(at.round), number(at.slice), number(counts.runs - singles),
                        seconds_since(begun), share(counts.runs - singles), number(counts.failed), number(counts.states));
        std::fflush(stdout);
        return counts.runs > before;
    }

    const Options& options_;
    const std::string program_;
    Shared shared_;
};

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (!std::strcmp(argv[i], "--help")) return std::fputs(usage, stdout), 0;
    const Result<Options> options = parse(argc, argv);
    if (!options.ok()) {
        std::fprintf(stderr, "cairn_exhaustive: %s\n", options.status().text().c_str());
        return 2;
    }
    if (!options->single) return Exhaustive(*options, argv[0]).run();
    const SeedResult result = run_with(options->job_case, options->faults, options->trace);
    std::printf("%s", result.story.c_str());
    if (!result.ok) std::printf("failed: %s\n", result.failure.c_str());
    return result.ok ? 0 : 1;
}
