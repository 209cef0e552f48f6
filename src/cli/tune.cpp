// `cairn tune`: which [flush] settings are fastest on this file system, from one node; or which codec, turns and blocks suit a set of files.
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <ostream>
#include <sstream>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/command.hpp"
#include "cli/output_file.hpp"
#include "cli/place.hpp"
#include "cli/tune_codecs.hpp"
#include "cli/tune_report.hpp"

namespace cairn::cli {

namespace {

using tune::Factor;

constexpr std::uint32_t followers_max = 64, local_files_max = 256;
constexpr double budget_least_s = 1;

volatile std::sig_atomic_t told_to_stop = 0;

extern "C" void tune_told_to_stop(int) { told_to_stop = 1; }

// A second one ends the process at once; the next run removes what that leaves.
void take_signals() {
    struct sigaction action = {};
    action.sa_handler = &tune_told_to_stop;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        struct sigaction before = {};
        ::sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup's stays
    }
}

// ---- options ----

struct LevelOption {
    Factor factor;
    const char* option;
    const char* key;  // whose values are allowed
};
constexpr LevelOption level_options[] = {
    {Factor::writers, "writers", "flush.writers"},        {Factor::placement, "placement", "flush.placement"},
    {Factor::local_split, "split", "flush.local_split"},  {Factor::files, "files", "flush.files"},
    {Factor::buffer_bytes, "buffer", "flush.buffer_bytes"}, {Factor::block_bytes, "block", "flush.block_bytes"},
    {Factor::direct, "direct", "flush.direct"},           {Factor::uring, "io", "flush.io"},
};

// One value of a list as the setting reads it.
Result<std::uint64_t> level_of(const LevelOption& option, const std::string& text) {
    const ConfigKey& key = *find_config_key(option.key);
    const std::string what = std::string("--") + option.option + " '" + text + "'";
    if (option.factor == Factor::uring && text != "uring" && text != "threads") return invalid_argument(what + ": uring or threads");
    const Result<ConfigValue> value = key.parse(text);
    Status status = value.status();
    if (status.ok()) status = key.check(*value);
    if (!status.ok()) return invalid_argument(what + ": " + status.text() + "; allowed is " + key.allowed());
    if (option.factor == Factor::direct) return std::uint64_t{std::get<bool>(*value)};
    const std::uint64_t number = std::get<std::uint64_t>(*value);
    if (option.factor == Factor::uring) return std::uint64_t{number == static_cast<std::uint64_t>(Settings::Io::uring)};
    if (option.factor == Factor::files && number == 0) return invalid_argument(what + ": a leader writes one file at least");
    return number;
}

Result<std::vector<std::uint32_t>> counts_of(const Arguments& arguments, const char* option, std::uint32_t most) {
    const Result<std::vector<std::string>> texts = parse_list(arguments.text(option));
    if (!texts.ok()) return texts.status().within(std::string("--") + option);
    if (texts->empty()) return invalid_argument(std::string("--") + option + " names nothing");
    std::vector<std::uint32_t> counts;
    for (const std::string& text : *texts) {
        const bool digits = !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
        const std::uint64_t count = digits ? std::stoull(text) : 0;
        if (count < 1 || count > most)
            return invalid_argument(std::string("--") + option + " '" + text + "': a whole number from 1 to " + std::to_string(most));
        counts.push_back(static_cast<std::uint32_t>(count));
    }
    return counts;
}

Status read_levels(const Arguments& arguments, tune::Levels& levels) {
    for (const LevelOption& option : level_options) {
        if (!arguments.given(option.option)) continue;
        const Result<std::vector<std::string>> texts = parse_list(arguments.text(option.option));
        if (!texts.ok()) return texts.status().within(std::string("--") + option.option);
        if (texts->empty()) return invalid_argument(std::string("--") + option.option + " names nothing");
        for (const std::string& text : *texts) {
            TRY_ASSIGN(const std::uint64_t value, level_of(option, text));
            levels[option.factor].push_back(value);
        }
    }
    return {};
}

Result<tune::TuneOptions> options_of(const Arguments& arguments, const Settings& settings) {
    tune::TuneOptions options;
    options.settings = settings;
    options.target = settings.paths.persistent;
    options.scratch = settings.paths.scratch;
    if (arguments.given("budget")) {
        const Result<std::uint64_t> budget = parse_duration(arguments.text("budget"), second);
        if (!budget.ok()) return budget.status().within("--budget '" + arguments.text("budget") + "'");
        options.budget = static_cast<Nanos>(std::min<std::uint64_t>(*budget, static_cast<std::uint64_t>(never) / 4));
        if (static_cast<double>(options.budget) < budget_least_s * second) return invalid_argument("--budget '" + arguments.text("budget") + "': a second at least");
    }
    if (arguments.given("size")) {
        const Result<std::uint64_t> size = parse_bytes(arguments.text("size"));
        if (!size.ok()) return size.status().within("--size '" + arguments.text("size") + "'");
        options.file_bytes = *size;
        if (*size < 4096 || *size > 1ull << 44) return invalid_argument("--size '" + arguments.text("size") + "': from 4 KiB to 16 TiB");
    }
    if (arguments.given("local-files")) {
        TRY_ASSIGN(const std::vector<std::uint32_t> files, counts_of(arguments, "local-files", local_files_max));
        if (files.size() > 1) return invalid_argument("--local-files '" + arguments.text("local-files") + "': one number");
        options.files_local = files.front();
    }
    if (arguments.given("followers")) {
        TRY_ASSIGN(options.followers, counts_of(arguments, "followers", followers_max));
    }
    if (const std::string& metric = arguments.text("metric"); !metric.empty()) {
        if (metric != "durable" && metric != "written") return invalid_argument("--metric '" + metric + "': durable or written");
        options.durable = metric == "durable";
    }
    TRY(read_levels(arguments, options.levels));
    options.figures = arguments.given("plot");
    options.seed = arguments.number("seed", 1);
    options.stop = [] { return told_to_stop != 0; };
    return options;
}

// ---- progress ----

// One line on a terminal, drawn a few times a second; nothing else is on `err` meanwhile.
class TuneProgress {
  public:
    explicit TuneProgress(Console& console) : console_(console) {}
    TuneProgress(const TuneProgress&) = delete;
    ~TuneProgress() {
        if (visible_) console_.err << "\r\x1b[K" << std::flush;
    }
    void tell(const std::string& what, double share, double left_s) {
        if (!console_.terminal || console_.json) return;
        if (!what.empty()) what_ = what;
        const std::optional<TerminalSize> size = terminal_size(STDERR_FILENO);
        if (!size) return;
        visible_ = true;
        const std::string bar = "tune  " + format_bar(share, 24) + "  at most " + format_duration(left_s) + " left";
        std::string line = bar + "  " + what_;
        if (characters(line) >= size->columns) line = characters(bar) < size->columns ? bar : "tune";
        console_.err << "\r" + line + "\x1b[K" << std::flush;
    }

  private:
    Console& console_;
    std::string what_;
    bool visible_ = false;
};

// ---- what remains ----

// Whether the settings, read as every part of Cairn reads them, are these.
Status check_settings(const std::string& text, const std::string& path, const std::vector<ConfigChange>& changes) {
    const int memory = ::memfd_create("cairn.toml", MFD_CLOEXEC);
    if (memory < 0) return Status::from_errno(errno, "checking the new settings");
    const ssize_t wrote = ::write(memory, text.data(), text.size());
    ConfigSources sources;
    sources.variables = {{"CAIRN_CONFIG", "/proc/self/fd/" + std::to_string(memory)}};
    sources.directory = "/";
    const Result<Config> read = wrote == static_cast<ssize_t>(text.size()) ? load_config(sources) : Result<Config>(Status(Code::io_error, "could not be written"));
    ::close(memory);
    if (!read.ok()) return read.status().within(path + " would not be right with the new settings, and is left as it is");
    for (const auto& [name, value] : changes) {
        const ConfigKey& key = *find_config_key(name);
        const std::string bare = value.starts_with("\"") ? value.substr(1, value.size() - 2) : value;
        const Result<ConfigValue> wanted = key.parse(bare);
        if (!wanted.ok() || *wanted != key.get(read->settings)) return Status(Code::internal, path + ": " + name + " would not come out as " + value);
    }
    return {};
}

std::string settings_path(const Config& config) {
    return config.file.empty() ? absolute_path(ConfigSources::of_process().directory, "cairn.toml") : config.file;
}

// What would stop --write at its end: said before the budget is spent.
Status check_writable(const Config& config, const Arguments& arguments) {
    const std::string path = settings_path(config);
    if (arguments.given("plot") && is_same_file(arguments.text("plot"), path)) return invalid_argument("--plot " + path + ": that is the settings file");
    TRY(check_output(path).within("--write"));
    std::stringstream before;
    if (std::ifstream file(path, std::ios::binary); file) before << file.rdbuf();
    return edit_config(before.str(), {{"flush.writers", "1"}}).status().within("--write: " + path);
}

Status write_settings(Console& console, const Config& config, const std::vector<ConfigChange>& changes) {
    std::ostream& out = console.json ? console.err : console.out;
    if (changes.empty()) {
        out << "--write: nothing to change\n";
        return {};
    }
    const std::string path = settings_path(config);
    std::stringstream before;
    if (std::ifstream file(path, std::ios::binary); file) before << file.rdbuf();
    const Result<std::string> after = edit_config(before.str(), changes);
    if (!after.ok()) return after.status().within(path + " is left as it is");
    TRY(check_settings(*after, path, changes));
    TRY(put_file(path, *after));
    out << path << ":\n" << config_difference(before.str(), *after);
    for (const auto& [name, value] : changes) {
        const auto row = static_cast<std::size_t>(find_config_key(name) - config_keys().data());
        if (config.origins[row].from == ConfigOrigin::From::environment)
            out << "note: " << config.origins[row].variable << " is set, and wins over the file\n";
    }
    return {};
}

Status run_tune(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(const Config config, load_settings(arguments));
    if (arguments.given("storage") && !arguments.given("codecs")) return invalid_argument("--storage goes with --codecs: else storage is measured");
    for (const char* option : {"sample", "ranks"})
        if (arguments.given(option) && !arguments.given("codecs")) return invalid_argument(std::string("--") + option + " goes with --codecs");
    if (arguments.given("codecs")) {
        for (const char* option : {"plot", "budget", "seed", "metric"})
            if (arguments.given(option)) return invalid_argument(std::string("--") + option + " does not go with --codecs, which measures no file system");
        if (arguments.given("write")) TRY(check_writable(config, arguments));
        TRY_ASSIGN(const std::vector<ConfigChange> changes, tune_codecs(console, arguments, config.settings));
        return arguments.given("write") ? write_settings(console, config, changes) : Status();
    }
    TRY_ASSIGN(tune::TuneOptions options, options_of(arguments, config.settings));
    if (arguments.given("plot")) TRY(check_output(arguments.text("plot")).within("--plot"));
    if (arguments.given("write")) TRY(check_writable(config, arguments));
    take_signals();
    Result<tune::TuneReport> report = [&] {
        TuneProgress progress(console);
        options.tell = [&](const std::string& what, double share, double left_s) { progress.tell(what, share, left_s); };
        return tune::tune(options);
    }();
    if (!report.ok()) return std::move(report).status();
    if (console.json) console.document(tune_json(*report, options).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    else console.out << tune_text(*report, options);
    if (arguments.given("plot")) TRY(put_file(arguments.text("plot"), tune_figures(*report, options)));
    if (arguments.given("write")) TRY(write_settings(console, config, recommended_changes(*report)));
    return {};
}

}  // namespace

const Command tune_command = {
    "tune",
    "measure which settings write fastest on this file system, and say how sure that is",
    "Flushes made-up images from this node to --persistent again and again, with the daemon's own code: local files in --scratch, and what "
    "followers would\n"
    "send, prepared in memory. First every setting by itself (screening), then the best by themselves and together (contenders), then the best "
    "against the\n"
    "present settings in pairs, in random order; only these make the answer. Where the difference lies within noise the present settings stay.\n\n"
    "Two figures are shown: received bytes by the time until the last writer ended (the metric of ispdc23), and by the time until all was durable, "
    "which a page\n"
    "cache does not flatter and which settings are compared by.\n\n"
    "Runs write to directories of their own (.cairn-tune-...), which never mix with checkpoints and are gone at the end; what a killed run left, the "
    "next one\n"
    "removes. A run needs room for twice what it writes, with a tenth of the file system left. Lists have commas between; the present setting is always "
    "tried.\n\n"
    "With --codecs it tries settings on files of a real checkpoint instead, and writes nothing to the file system: each flush.codec, and with --storage\n"
    "what auto reaches variable by variable; with the best of them, where each file is a rank's image (--ranks), several flush.merge_ranks and merge_bytes;\n"
    "then flush.block_bytes. Runs are cut as a flush cuts them. It says what is stored, how fast, and how soon that is durable where storage takes\n"
    "--storage bytes a second of one node. What would not gain 2 % stays as it is set. Without --storage the codec is auto, as the daemons find that out\n"
    "themselves, or off where nothing gets shorter.\n"
    "Of files that have more than --sample together it looks at stretches of each. It takes up to some 300 MiB of memory, however large they are.",
    {{"--budget", OptionKind::text, "TIME", "No longer than this, and one run; default \"2 min\"."},
     {"--size", OptionKind::text, "SIZE", "Mean size of a local file; default: so that enough runs fit into the budget, at most 1 GiB."},
     {"--local-files", OptionKind::text, "N", "Local files, and files of each follower; default 8."},
     {"--followers", OptionKind::text, "LIST", "Followers: the first is what is tuned for, all are in the figures; default 1,2,4."},
     {"--writers", OptionKind::text, "LIST", "Default: 1, 2, 4 and so on beyond the cores."},
     {"--placement", OptionKind::text, "LIST", "append, interleaved, contiguous; default all."},
     {"--split", OptionKind::text, "LIST", "Local data by chunks or by files; default both."},
     {"--files", OptionKind::text, "LIST", "Files of one leader: the first is what settings are tuned for; default 1,4,8."},
     {"--buffer", OptionKind::text, "LIST", "Sizes of a buffer, which is the largest chunk; default \"4 MiB,16 MiB,64 MiB\"."},
     {"--block", OptionKind::text, "LIST", "Block sizes; default \"256 KiB,1 MiB,4 MiB\"."},
     {"--direct", OptionKind::text, "LIST", "true, false; default both, where the file system does what it says."},
     {"--io", OptionKind::text, "LIST", "uring, threads; default both, where there are both."},
     {"--metric", OptionKind::text, "NAME", "What settings are compared by: durable (default), or written, until the last writer ended."},
     {"--codecs", OptionKind::text, "FILE", "Files of a checkpoint, on which codecs are tried: one image, as cairn watch makes it of a node's.", false, true},
     {"--ranks", OptionKind::flag, "", "With --codecs: each file is the image of a rank, all of them on one node."},
     {"--sample", OptionKind::text, "SIZE", "With --codecs: look at no more of the files than this; default 1 GiB."},
     {"--storage", OptionKind::text, "RATE", "With --codecs: bytes a second that storage takes of one node."},
     {"--seed", OptionKind::number, "N", "Of sizes and order; default 1."},
     {"--write", OptionKind::flag, "", "Puts what is recommended into the settings file in use, else into a new ./cairn.toml, and shows the difference."},
     {"--plot", OptionKind::text, "FILE", "Figures 1 to 3 of ispdc23 on this machine, as SVG; takes half of the budget."}},
    {{Code::not_found, "the target or the scratch directory does not exist"},
     {Code::out_of_space, "no room for a run; nothing was written"},
     {Code::cancelled, "interrupted; nothing is left"},
     {Code::unsupported, "direct I/O or io_uring was asked for and is not to be had"}},
    true,
    &run_tune,
};

}  // namespace cairn::cli
