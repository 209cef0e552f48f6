// `cairn simulate`: how a flush would go on a cluster that is described in a file, by Cairn's own engine and by models of other strategies.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <string>
#include <utility>

#include "base/text_table.hpp"
#include "base/trace.hpp"
#include "base/units.hpp"
#include "cli/command.hpp"
#include "cli/output_file.hpp"
#include "daemon/memory.hpp"
#include "simulate/report.hpp"

namespace cairn::cli {

namespace {

using simulate::Answer;
using simulate::Cluster;
using simulate::Question;
using simulate::Strategy;

constexpr double limit_s_max = 1e9;  // thirty years; simulated nanoseconds fit into 64 bits

std::string strategy_names() {
    std::string text;
    for (const Strategy strategy : simulate::strategies) text += (text.empty() ? "" : ", ") + std::string(name_of(strategy));
    return text;
}

Result<std::vector<Strategy>> strategies_of(const Arguments& arguments) {
    std::vector<Strategy> chosen;
    for (const std::string& name : arguments.texts("strategy")) {
        if (name == "all") {
            chosen.assign(std::begin(simulate::strategies), std::end(simulate::strategies));
            continue;
        }
        const auto strategy = simulate::strategy_of(name);
        if (!strategy) return invalid_argument("--strategy " + name + ": there is none of that name; allowed: all, " + strategy_names());
        chosen.push_back(*strategy);
    }
    if (chosen.empty()) chosen.push_back(Strategy::cairn);
    return chosen;
}

Result<std::vector<std::uint32_t>> files_of(const Arguments& arguments, const Cluster& cluster) {
    std::vector<std::uint32_t> all;
    for (const std::string& text : arguments.texts("files")) {
        const bool digits = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
        const unsigned long number = digits ? std::stoul(text) : 0;
        if (number == 0 || number > cluster.ranks())
            return invalid_argument("--files " + text + ": a whole number from 1 to the number of ranks, " + std::to_string(cluster.ranks()));
        all.push_back(static_cast<std::uint32_t>(number));
    }
    if (all.empty()) all.push_back(cluster.files);
    return all;
}

Result<Cluster> cluster_of(const Arguments& arguments) {
    TRY_ASSIGN(Cluster cluster, simulate::read_cluster(arguments.text("CLUSTER")));
    for (const std::string& assignment : arguments.texts("set")) TRY(set_key(cluster, assignment));
    TRY(check_cluster(cluster));
    return cluster;
}

Result<Question> question_of(const Arguments& arguments) {
    Question question;
    question.seed = arguments.number("seed", 1);
    const std::string& sharing = arguments.text("sharing");
    if (sharing == "exact") question.sharing = sim::Bandwidth::Sharing::exact;
    else if (sharing == "queued") question.sharing = sim::Bandwidth::Sharing::queued;
    else if (!sharing.empty()) return invalid_argument("--sharing " + sharing + ": allowed are exact and queued");
    if (arguments.given("limit-s") && arguments.number("limit-s") == 0) return invalid_argument("--limit-s 0: a second at least");
    if (arguments.given("limit-s")) question.limit_s = std::min(limit_s_max, static_cast<double>(arguments.number("limit-s")));
    return question;
}

// ---- files that are written ----

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

// Signals that end the process wait: what is written meanwhile is whole when they come.
class HeldSignals {
  public:
    HeldSignals() {
        sigset_t held;
        sigemptyset(&held);
        for (const int signal : ending_signals) sigaddset(&held, signal);
        ::pthread_sigmask(SIG_BLOCK, &held, &before_);
    }
    HeldSignals(const HeldSignals&) = delete;
    ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

// Nothing is left of an interrupted trace; then the signal ends the process as if it had not been caught.
extern "C" void simulate_interrupted(int signal) {
    trace_remove_unfinished();
    ::raise(signal);  // its handler is the default again, and comes when this one returns
}

// The trace while it is written: closed, or nothing is left of it.
class TraceFile {
  public:
    TraceFile() = default;
    TraceFile(const TraceFile&) = delete;
    ~TraceFile() {
        const HeldSignals held;
        if (opened_) trace_discard();
    }
    Status open(const std::string& path, std::uint32_t nodes) {
        const HeldSignals held;
        TRY(trace_open_simulated(path, nodes + 1));
        opened_ = true;
        struct sigaction action = {};
        action.sa_handler = &simulate_interrupted;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        for (const int signal : ending_signals) {
            struct sigaction before = {};
            ::sigaction(signal, nullptr, &before);
            if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup's stays
        }
        return {};
    }
    Status close() {
        const HeldSignals held;
        return std::exchange(opened_, false) ? trace_close() : Status();
    }

  private:
    bool opened_ = false;
};

// No output in place of the cluster's file, or of another output; and said before hours of simulation, not after.
Status check_outputs(const Arguments& arguments) {
    std::vector<std::pair<std::string, std::string>> names = {{"the cluster's file", arguments.text("CLUSTER")}};
    for (const char* option : {"plot", "trace"}) {
        if (!arguments.given(option)) continue;
        const std::string what = std::string("--") + option, path = arguments.text(option);
        for (const auto& [of, name] : names)
            if (is_same_file(name, path)) return invalid_argument(what + " " + path + ": that is " + of);
        names.emplace_back("the file of " + what, path);
        TRY(check_output(path).within(what));
    }
    return {};
}

Status check_memory(const Cluster& cluster, Strategy strategy) {
    const std::uint64_t needed = simulate::heap_bytes_of(cluster, strategy);
    const Result<std::uint64_t> available = available_memory_bytes();
    if (!available.ok() || needed <= *available) return {};
    return {Code::out_of_space, "simulating " + format_count(cluster.nodes) + " nodes with " + format_count(cluster.ranks()) + " ranks takes about " + format_bytes(needed) +
                                    " of memory, and this host has " + format_bytes(*available) + " free; fewer of them, smaller images or larger flush.block_bytes take less"};
}

Result<Answer> ask(Console& console, const Cluster& cluster, Question question) {
    using Time = std::chrono::steady_clock;
    const Time::time_point begun = Time::now();
    TRY(check_memory(cluster, question.strategy));
    Answer answer;
    answer.cluster = cluster;
    std::uint64_t total = 0;
    for (std::uint32_t version = 1; version <= cluster.versions + cluster.restart; ++version)  // what is read again goes over the same targets
        for (std::uint32_t rank = 0; rank < cluster.ranks(); ++rank) total += image_bytes_of(cluster, question.seed, rank, std::min(version, cluster.versions));
    Progress progress(console, "simulate " + std::string(name_of(question.strategy)) + ", " + plural(cluster.files, "file"), total);
    question.progress = [&](double, std::uint64_t bytes, std::uint64_t) {
        progress.set(bytes);
        return trace_status().ok();  // hours more would be for nothing
    };
    auto outcome = simulate::simulate(cluster, question);
    TRY(trace_status());
    TRY(outcome.status());
    answer.outcome = std::move(outcome).value();
    answer.real_s = std::chrono::duration<double>(Time::now() - begun).count();
    return answer;
}

Status run_simulate(Console& console, const Arguments& arguments) {
    if (arguments.given("keys")) {
        console.out << simulate::cluster_markdown();
        return {};
    }
    if (!arguments.given("CLUSTER")) return invalid_argument("name a cluster file, such as examples/clusters/frontier.toml; --keys lists what it may say");
    TRY_ASSIGN(const Cluster cluster, cluster_of(arguments));
    TRY_ASSIGN(const std::vector<Strategy> strategies, strategies_of(arguments));
    TRY_ASSIGN(const std::vector<std::uint32_t> files, files_of(arguments, cluster));
    TRY_ASSIGN(Question question, question_of(arguments));
    TRY(check_outputs(arguments));
    TraceFile trace;
    if (arguments.given("trace")) {
        if (strategies.size() * files.size() > 1 || strategies[0] != Strategy::cairn)
            return invalid_argument("--trace is of one flush by the engine: without --strategy, and with one --files at most");
        TRY(trace.open(arguments.text("trace"), static_cast<std::uint32_t>(std::min<std::uint64_t>(arguments.number("trace-nodes", 16), cluster.nodes + cluster.io_nodes))));
    }
    std::vector<Answer> answers;
    for (const std::uint32_t count : files)
        for (const Strategy strategy : strategies) {
            Cluster one = cluster;
            one.files = count;
            question.strategy = strategy;
            TRY_ASSIGN(Answer answer, ask(console, one, question));
            answers.push_back(std::move(answer));
        }
    TRY(trace.close());
    if (arguments.given("plot")) {
        const HeldSignals held;
        TRY(put_file(arguments.text("plot"), simulate::picture(answers)));
    }
    if (console.json) console.document(simulate::json_text(answers));
    else console.out << simulate::tables(answers, arguments.given("verbose"));
    return {};
}

}  // namespace

const Command simulate_command = {
    "simulate",
    "how a flush would go on a cluster described in a file",
    "Runs the production engine, a daemon for each node and a capture for each rank, in virtual time on modelled cards, servers and targets: "
    "from a few nodes to 65,536. Beside it models of\n"
    "how others write: two_phase (collective MPI-IO), at_offset (GenericIO, independent MPI-IO), every_node (ADIOS2), file_per_rank, vertical and\norchestrated (ORCHECK).\n\n"
    "With job.restart = 1 the job starts again after its last version, and every rank reads its image back.\n\n"
    "The same cluster and seed give the same result to the byte. Up to 128 nodes bandwidth is shared exactly (max-min fair), beyond by fair queues, "
    "whose cost does not grow with the\n"
    "square of the nodes. Nothing of this host but memory and one core is used.",
    {{"CLUSTER", OptionKind::text, "", "The cluster file (TOML); examples/clusters has some. --keys lists what it may say."},
     {"--strategy", OptionKind::text, "NAME", "cairn (the default), two_phase, at_offset, every_node, file_per_rank, vertical, orchestrated, or all; several may be given.", false, true},
     {"--files", OptionKind::text, "K", "Instead of job.files; several may be given.", false, true},
     {"--set", OptionKind::text, "KEY=VALUE", "Another value for a key of the file: job.nodes=128. Several may be given.", false, true},
     {"--seed", OptionKind::number, "N", "Sizes of images and differences between nodes are drawn from it; 1 unless given."},
     {"--sharing", OptionKind::text, "HOW", "exact or queued, whatever the number of nodes."},
     {"--limit-s", OptionKind::number, "SECONDS", "Of simulated time; an error when it is not over by then. 100000 unless given."},
     {"--plot", OptionKind::text, "FILE", "Throughput, blocked time and leaders as a picture (SVG)."},
     {"--trace", OptionKind::text, "FILE", "A Chrome trace of the flush, which opens in Perfetto; of one answer, by the engine."},
     {"--trace-nodes", OptionKind::number, "N", "Only the first N nodes are traced; 16 unless given."},
     {"--verbose", OptionKind::flag, "", "Leaders, bounds and targets of each answer, also where several are compared."},
     {"--keys", OptionKind::flag, "", "Lists the keys of a cluster file as a table in Markdown, and does nothing else."}},
    {{Code::deadline, "the flush was not over within --limit-s"}},
    false,
    &run_simulate,
};

}  // namespace cairn::cli
