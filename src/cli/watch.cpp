// `cairn watch`: checkpoints a program that knows nothing of Cairn, from the files it writes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "base/units.hpp"
#include "cli/place.hpp"
#include "cli/watch_loop.hpp"
#include "describer/rules_file.hpp"
#include "format/names.hpp"

namespace cairn::cli {

namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t settle_ms_preset = 500;
constexpr std::uint64_t found_ms = 500;
constexpr std::uint64_t files_max = 1'000'000, settle_ms_max = 86'400'000;

// SIGTERM and SIGINT become readable bytes; a second one ends the process at once, which loses nothing (what was
// captured is the daemon's).
int stop_pipe[2] = {-1, -1};

void tell(const char* what) {
    const int error = errno;
    static_cast<void>(!::write(stop_pipe[1], what, 1));
    errno = error;
}
extern "C" void tell_to_stop(int) { tell("s"); }
extern "C" void tell_of_child(int) { tell("c"); }

Status take_signals() {
    if (::pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return Status::from_errno(errno, "can not make a pipe for signals");
    struct sigaction action = {};
    action.sa_handler = &tell_to_stop;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    for (const int signal : {SIGTERM, SIGINT}) ::sigaction(signal, &action, nullptr);
    action.sa_handler = &tell_of_child;
    action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
    ::sigaction(SIGCHLD, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);  // nobody reads our lines any more: checkpoints go on
    std::signal(SIGIO, SIG_IGN);    // somebody wants to write while we ask who does (writers_of)
    return {};
}

// An option that is a number of things, with what is allowed.
Result<std::uint64_t> number_of(const Arguments& arguments, const char* key, std::uint64_t otherwise, std::uint64_t low,
                                std::uint64_t high) {
    const std::uint64_t number = arguments.number(key, otherwise);
    if (!arguments.given(key) || (number >= low && number <= high)) return number;
    return invalid_argument(std::string("--") + key + " " + std::to_string(number) +
                            " is out of range: " + std::to_string(low) + " to " + std::to_string(high));
}

Result<WatchOptions> options_of(const Arguments& arguments, const Settings& settings) {
    WatchOptions options;
    options.name = arguments.text("name");
    TRY(check_name(options.name).within("--name"));
    TRY_ASSIGN(const std::uint64_t watchers, number_of(arguments, "watchers", 1, 1, ranks_max));
    TRY_ASSIGN(const std::uint64_t index, number_of(arguments, "index", 0, 0, watchers - 1));
    options.watchers = static_cast<std::uint32_t>(watchers);
    options.index = static_cast<std::uint32_t>(index);
    const char* const variable = std::getenv("CAIRN_JOB");
    options.job = arguments.given("job") ? arguments.text("job") : watchers > 1 && variable ? variable : "";
    if (watchers > 1 && !arguments.given("index"))
        return invalid_argument("--watchers " + std::to_string(watchers) +
                                " needs --index, another one for each watcher, 0 to " + std::to_string(watchers - 1));
    if (watchers > 1 && options.job.empty())
        return invalid_argument(
            "several watchers find each other by a job id that they share and nobody else uses: --job, or CAIRN_JOB");
    if (!options.job.empty()) TRY(check_name(options.job).within("--job"));
    options.persistent = settings.paths.persistent;
    options.overrides = {"paths.persistent=" + settings.paths.persistent, "paths.scratch=" + settings.paths.scratch};
    if (arguments.given("files-max")) options.overrides.push_back("flush.files=" + arguments.text("files-max"));
    for (const std::string& each : arguments.texts("set")) {
        for (const auto& [option, key] : {std::pair{"persistent", "paths.persistent="}, {"scratch", "paths.scratch="}, {"files-max", "flush.files="}})
            if (each.starts_with(key) && arguments.given(option))
                return invalid_argument("--set " + each + ": --" + option + " says it already; leave one out");
        options.overrides.push_back(each);
    }
    return options;
}

Result<Completeness> completeness_of(const Arguments& arguments) {
    Completeness complete;
    complete.found_ms = found_ms;
    TRY_ASSIGN(const std::uint64_t files, number_of(arguments, "files", 0, 0, files_max));
    if (arguments.given("files")) complete.files = static_cast<std::int64_t>(files);
    TRY_ASSIGN(complete.settle_ms,
               number_of(arguments, "settle-ms", arguments.given("files") ? 0 : settle_ms_preset, 0, settle_ms_max));
    complete.last_file = arguments.text("last-file");
    if (arguments.given("last-file") && (complete.last_file.empty() || complete.last_file.find('/') != std::string::npos))
        return invalid_argument("--last-file '" + complete.last_file + "': the name of a file in the directory of the tree, not in one below it");
    if (complete.files < 0 && complete.settle_ms == 0)
        return invalid_argument("--settle-ms 0 needs --files: nothing else says when a version's files are all there");
    return complete;
}

Result<WatchRules> rules_of(const Arguments& arguments, const Settings& settings) {
    WatchRules rules;
    rules.no_files = arguments.given("files") && arguments.number("files") == 0;
    rules.keep_originals = arguments.number("delete-older");
    if (arguments.given("delete-older") && rules.keep_originals == 0)
        return invalid_argument(
            "--delete-older 0: say of how many of the newest committed versions the files stay, 1 or more");
    rules.until_commit_of = arguments.number("until-commit-of");
    rules.once = arguments.given("once");
    if (rules.once && arguments.given("COMMAND")) return invalid_argument("--once ends when it has taken what is there, and COMMAND would only begin; leave one out");
    if (arguments.given("idle-exit")) {
        const auto idle_ns = parse_duration(arguments.text("idle-exit"), 1'000'000'000);
        if (!idle_ns.ok()) return idle_ns.status().within("--idle-exit '" + arguments.text("idle-exit") + "'");
        rules.idle_exit = milliseconds(std::max<std::uint64_t>(*idle_ns / 1'000'000, 1));
    }
    rules.stop_wait = milliseconds(settings.daemon.stop_wait_ms);
    rules.once_wait = rules.older_wait = milliseconds(settings.deadlines.version_ms);
    return rules;
}

// The pattern's own folder is below --directory, unless it begins at the root.
std::string folder_of(const Arguments& arguments, const FilePattern& pattern) {
    const std::filesystem::path base(arguments.given("directory") ? arguments.text("directory") : ".");
    std::error_code error;
    std::string folder = std::filesystem::absolute(base / pattern.folder(), error).lexically_normal().string();
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    return folder;
}

Status run_watch(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(const Config config, load_settings(arguments));
    if (config.settings.capture.mode == Settings::CaptureMode::through)
        return invalid_argument("cairn watch needs scratch: the program goes on, and changes its files, while they are made durable. Set capture.mode = scratch (CAIRN_CAPTURE_MODE)");
    TRY_ASSIGN(WatchOptions options, options_of(arguments, config.settings));
    TRY(load_file_rules(config.settings.describe.rules).status());  // the daemon reads them; here somebody hears what is wrong
    TRY_ASSIGN(const Completeness complete, completeness_of(arguments));
    TRY_ASSIGN(const WatchRules rules, rules_of(arguments, config.settings));
    TRY_ASSIGN(const ContinueFrom from, ContinueFrom::parse(arguments.text("from")));
    TRY_ASSIGN(FilePattern pattern, FilePattern::parse(arguments.text("pattern")));
    const std::string folder = folder_of(arguments, pattern);
    TRY_ASSIGN(WatchedFiles watched, WatchedFiles::open(folder, std::move(pattern), complete));
    WatchBoard board(options.persistent, options.job);
    if (options.index == 0) TRY(board.clear());
    WatchReport report(console, options);
    TRY_ASSIGN(WatchSession session, WatchSession::open(options));
    report.notes(session.warnings());
    TRY_ASSIGN(const Version base, session.continue_from(from));
    report.notes(session.warnings());
    report.watching(folder, arguments.text("pattern"), base);
    TRY(take_signals());
    WatchLoop loop(session, watched, board, report, rules, options.index);
    const bool back = from.where == ContinueFrom::Where::version;
    WatchedCommand command;
    if (arguments.given("COMMAND")) TRY(command.start(arguments.texts("COMMAND"), console.json));
    TRY(loop.run(base, !back, stop_pipe[0], command));
    TRY(command.outcome());
    if (report.any_lost()) return Status(Code::cancelled, report.first_lost());
    return {};
}

}  // namespace

const Command watch_command = {
    "watch",
    "checkpoint a program that knows nothing of Cairn, from the files it writes",
    "Runs on each node beside the program and learns from the kernel (inotify) which files that match PATTERN are "
    "complete. The files of one\n"
    "version become the image of this watcher, each a region named by the file's name, and are committed in the "
    "background like any other\n"
    "checkpoint; `cairn extract NAME VERSION --rank INDEX --files FOLDER` brings them back. The last region of an "
    "image, \"watch\", is a text with\n"
    "mode, size and time of each file.\n\n"
    "A version is complete on a node when N files of it were closed after writing (--files, the safe way), or when "
    "none was written for a while\n"
    "(--settle-ms). What is there at the start is taken, too, when it is newer than the series. A file that changes "
    "while it is captured never gets\n"
    "into a version; one that comes after its version was captured makes the watcher give that version up, or say so. "
    "Versions are captured in\n"
    "increasing order. One that is not complete when a newer one is holds that up while it is written, for "
    "deadlines.version_ms at most, and is left\n"
    "out once it was not written for 5 s, even if somebody has it open. On a file system with coarse time stamps a "
    "version is captured a tick later.\n\n"
    "A directory whose name matches is a file of its version, with all that is in it: names, modes, owners, times, extended attributes, links,\n"
    "holes, empty directories, FIFOs, sockets and devices; `cairn extract --files` brings it back like that. It is complete when it is renamed to\n"
    "its name, or when its last file is closed (--last-file), and otherwise at the end: COMMAND has ended, told to end, --idle-exit, --once. One\n"
    "that is there at the start is complete when it is quiet. While a file of it is open for writing, or anything in it changes, it is not taken.\n"
    "Of a hard link the names in the tree are kept, and holes take room until a codec (flush.codec) stores them.\n\n"
    "Each watcher is one rank: --watchers of them, each with its --index, all with the same --job; CAIRN_NODE names "
    "virtual nodes. All must start\n"
    "within deadlines.open_ms. A watcher of a node where the program writes nothing says --files 0 and captures an "
    "empty image of each version.\n\n"
    "With a COMMAND (`cairn watch ... -- ./program 100`) the watcher runs it once the folder is watched, and when it has ended takes what is\n"
    "complete, waits for it to be committed (deadlines.version_ms), and ends. With --json what the command prints goes to standard error.\n\n"
    "SIGTERM or SIGINT: tells COMMAND, takes what is complete, waits for it to be committed (daemon.stop_wait_ms), and ends; twice: ends at once.\n"
    "kill -9 at any time loses nothing that was captured; the next watchers go on from there.\n\n"
    "Each version gives two lines, captured and committed; with --json these are JSON, one object a line.",
    {{"--name", OptionKind::text, "NAME", "Of the checkpoint.", true},
     {"--pattern", OptionKind::text, "PATTERN",
      "The files' names: a shell glob in which {version} stands for the number, as 'melt.restart.{version}.*'.", true},
     {"-d,--directory", OptionKind::text, "FOLDER", "Where the program writes them; the current folder if not given."},
     {"--index", OptionKind::number, "I", "Which watcher this is, from 0."},
     {"--watchers", OptionKind::number, "N", "How many watchers there are, one a node; 1 if not given."},
     {"--job", OptionKind::text, "ID",
      "What the watchers of this run share and nobody else uses, such as the batch job's number; else CAIRN_JOB."},
     {"--files", OptionKind::number, "N", "Exactly so many files make a version on this node."},
     {"--last-file", OptionKind::text, "NAME",
      "What a program closes last in the directory of a tree: a tree without it is not complete."},
     {"--settle-ms", OptionKind::number, "MS",
      "A version is complete when none of its files was written for so long; 500, or 0 with --files."},
     {"-k,--files-max", OptionKind::number, "K",
      "K, the number of files of a committed version, instead of flush.files."},
     {"--set", OptionKind::text, "KEY=VALUE",
      "A setting for this run, such as flush.writers=4. More than one may follow.", false, true},
     {"--from", OptionKind::text, "VERSION",
      "The series goes on after its newest version (newest), a given one (files that are there are left alone until "
      "written again), or begins anew (none)."},
     {"--delete-older", OptionKind::number, "N",
      "Remove the program's own files of a committed version when N newer ones are committed."},
     {"--until-commit-of", OptionKind::number, "VERSION", "End when this version or a newer one is committed."},
     {"--idle-exit", OptionKind::text, "TIME", "End when nothing was written for so long and all is committed."},
     {"--once", OptionKind::flag, "", "Take what is there, wait until it is committed, and end."},
     {"COMMAND", OptionKind::text, "", "After --: run this, with its arguments, and end when it has ended.", false, true}},
    {{Code::not_found, "the folder does not exist, or was removed; or COMMAND does not"},
     {Code::io_error, "COMMAND failed; what it left complete is committed all the same"},
     {Code::deadline,
      "a watcher never came, or versions were not committed in time; they are named and stay in scratch"},
     {Code::cancelled, "a version was given up or left out because its files were not whole on this node"}},
    true,
    &run_watch,
};

}  // namespace cairn::cli
