// `cairn layout`: where a directory's files can lie, how Cairn would lay a version out there, and where the files of a finished version do lie.
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/rows.hpp"
#include "cli/series.hpp"
#include "format/limits.hpp"
#include "storage/detect.hpp"
#include "storage/expected_layout.hpp"
#include "storage/glusterfs.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

// ---- of a directory ----

struct SeenTarget {
    std::string name;
    std::optional<std::uint64_t> free_bytes;  // nothing: nobody says
};

struct SeenDirectory {
    std::string path;
    std::string file_system, mounted_at;
    std::uint64_t block_bytes = 0, free_bytes = 0, all_bytes = 0;
    std::string driver;  // as src/storage/driver.hpp has them
    std::string why;     // why no target can be chosen, or how one is
    std::string warning;
    std::vector<SeenTarget> targets;
    bool spans = false;  // a file can lie on several of them
};

std::optional<std::uint64_t> free_bytes_of(const std::string& directory) {
    struct statvfs room = {};
    if (::statvfs(directory.c_str(), &room) != 0) return std::nullopt;
    return std::uint64_t{room.f_bavail} * room.f_frsize;
}

// Of a file system whose files are placed by a call.
void see_told_targets(SeenDirectory& seen, const PlacementTargets& found) {
    const ParallelFileSystem* const system = file_system_named(found.by);
    if (!system) return;
    seen.why = system->how();
    seen.warning = system->warning();
    seen.spans = found.spans;
    const Result<std::string> there = existing_directory(seen.path);
    if (!there.ok()) return;
    if (const Result<std::uint64_t> bytes = system->block_bytes(this_machine(), *there); bytes.ok()) seen.block_bytes = *bytes;
    const Result<std::vector<TargetRoom>> rooms = system->rooms(this_machine(), *there, looking_limit);
    for (const std::string& name : found.names) {
        seen.targets.push_back({name, std::nullopt});
        if (!rooms.ok()) continue;
        for (const TargetRoom& room : *rooms)
            if (room.name == name) seen.targets.back().free_bytes = room.free_bytes;
    }
}

void see_targets(SeenDirectory& seen, const Settings& settings, bool is_persistent) {
    const std::vector<std::string> roots = is_persistent ? storage_directories(settings) : std::vector<std::string>();
    if (!roots.empty()) {
        seen.driver = "directories";
        seen.why = "each directory of storage.directories is a target";
        for (const std::string& root : roots) seen.targets.push_back({root, free_bytes_of(root)});
        return;
    }
    const std::vector<std::string> only = is_persistent ? parse_list(settings.placement.targets).value_or({}) : std::vector<std::string>();
    const Result<PlacementTargets> found = detect_targets(settings.placement.driver, only, seen.path);
    const bool is_told = found.ok() && !found->by.empty();
    seen.driver = found.ok() && (is_told || !found->names.empty()) ? found->driver : "plain";
    if (is_told) return see_told_targets(seen, *found);
    if (!found.ok()) seen.why = found.status().text();
    else if (settings.placement.driver == Settings::TargetsDriver::none) seen.why = "placement.driver is none: the file system puts files where it likes";
    else if (found->names.empty()) seen.why = "Cairn knows no way to choose where on " + seen.file_system + " a file lies; storage.directories can name several file systems";
    else seen.why = "a file is made as NAME" + found->before_target + "TARGET, and lies there as NAME";
    if (found.ok())
        for (const std::string& name : found->names) seen.targets.push_back({name, std::nullopt});
}

Result<SeenDirectory> look_at(const std::string& path, const Settings& settings, bool is_persistent) {
    TRY_ASSIGN(const std::string there, existing_directory(path));
    TRY_ASSIGN(const MountInfo mount, mount_of(there));
    struct stat about = {};
    struct statvfs room = {};
    if (::stat(there.c_str(), &about) != 0 || ::statvfs(there.c_str(), &room) != 0) return Status::from_errno(errno, "can not look at " + there);
    SeenDirectory seen;
    seen.path = path;
    seen.file_system = mount.type;
    seen.mounted_at = mount.point;
    seen.block_bytes = static_cast<std::uint64_t>(about.st_blksize);
    seen.free_bytes = std::uint64_t{room.f_bavail} * room.f_frsize;
    seen.all_bytes = std::uint64_t{room.f_blocks} * room.f_frsize;
    see_targets(seen, settings, is_persistent);
    return seen;
}

void print_row(Console& console, std::string_view name, const std::string& value) { console.out << name << std::string(14 - std::min<std::size_t>(name.size(), 13), ' ') << value << "\n"; }

void print_directory(Console& console, const SeenDirectory& seen) {
    print_row(console, "directory", for_terminal(seen.path));
    print_row(console, "file system", for_terminal(seen.file_system + (seen.mounted_at.empty() ? "" : ", mounted at " + seen.mounted_at)) + ", blocks of " + format_bytes_exact(seen.block_bytes) + ", " +
                                          format_bytes(seen.free_bytes) + " of " + format_bytes(seen.all_bytes) + " free");
    print_row(console, "driver", seen.driver + ", " + (seen.targets.empty() ? "no storage target" : plural(seen.targets.size(), "storage target")) + ": " + for_terminal(seen.why));
    if (!seen.warning.empty()) print_row(console, "warning", for_terminal(seen.warning));
    if (seen.targets.empty()) return;
    TextTable table({left("target"), right("free")});
    for (const SeenTarget& target : seen.targets) table.add({for_terminal(target.name), target.free_bytes ? format_bytes(*target.free_bytes) : "-"});
    console.out << "\n" << table.to_string();
}

// Of the settings, as flush.layout has them.
constexpr std::array layout_settings = {"aggregated", "file-per-rank", "file-per-node"};

std::string share_above(std::uint64_t bytes, std::uint64_t mean_bytes) {
    const std::uint64_t tenths = mean_bytes == 0 || bytes < mean_bytes ? 0 : static_cast<std::uint64_t>(1000.0 * static_cast<double>(bytes - mean_bytes) / static_cast<double>(mean_bytes));
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

void print_expected(Console& console, const ExpectedLayout& expected, const LayoutQuestion& question) {
    console.out << "\n" << plural(question.nodes, "node") << ", " << plural(question.ranks, "rank") << ", " << format_bytes(question.bytes) << " a version, with the settings as they are:\n\n";
    print_row(console, "layout", std::string(layout_settings[static_cast<std::size_t>(question.layout)]) + ", " + plural(expected.files, "file") + " of " + format_bytes(question.bytes / expected.files));
    print_row(console, "why", expected.why);
    if (expected.stripes > 1) print_row(console, "stripes", std::to_string(expected.stripes) + " a file, on as many targets: there are fewer files than targets");
    if (question.targets != 0)
        print_row(console, "targets", std::to_string(expected.targets_filled) + " of " + std::to_string(question.targets) + " get files; the fullest " + format_bytes(expected.fullest_bytes) + ", " +
                                          share_above(expected.fullest_bytes, expected.mean_bytes) + " above the mean of all");
    for (const std::string& hint : expected.hints) print_row(console, "better", hint);
}

Json directory_json(const SeenDirectory& seen) {
    Json targets = Json::array();
    for (const SeenTarget& target : seen.targets) {
        targets.push_back({{"name", target.name}});
        if (target.free_bytes) targets.back()["free_bytes"] = *target.free_bytes;
    }
    return {{"directory", seen.path}, {"file_system", seen.file_system}, {"mounted_at", seen.mounted_at}, {"block_bytes", seen.block_bytes}, {"free_bytes", seen.free_bytes},
            {"bytes", seen.all_bytes}, {"driver", seen.driver}, {"why", seen.why}, {"warning", seen.warning}, {"targets", std::move(targets)}};
}

Json expected_json(const ExpectedLayout& expected, const LayoutQuestion& question) {
    return {{"nodes", question.nodes}, {"ranks", question.ranks}, {"bytes", question.bytes}, {"layout", layout_settings[static_cast<std::size_t>(question.layout)]}, {"files", expected.files}, {"stripes", expected.stripes}, {"why", expected.why},
            {"targets_filled", expected.targets_filled}, {"fullest_bytes", expected.fullest_bytes}, {"mean_bytes", expected.mean_bytes}, {"hints", expected.hints}};
}

Result<LayoutQuestion> question_of(const Arguments& arguments, const Settings& settings, const SeenDirectory& seen) {
    LayoutQuestion question;
    question.layout = static_cast<FileLayout>(settings.flush.layout);
    question.files = settings.flush.files;
    question.targets = static_cast<std::uint32_t>(seen.targets.size());
    question.spans = seen.spans;
    question.block_bytes = settings.flush.block_bytes;
    const std::uint64_t nodes = arguments.number("nodes", 1), ranks = arguments.number("ranks", nodes);
    if (nodes == 0 || ranks < nodes || ranks > ranks_max) return invalid_argument("--nodes is 1 or more, and --ranks from as many to " + std::to_string(ranks_max));
    question.nodes = static_cast<std::uint32_t>(nodes);
    question.ranks = static_cast<std::uint32_t>(ranks);
    if (arguments.given("bytes")) {
        TRY_ASSIGN(question.bytes, parse_bytes(arguments.text("bytes")));
    } else {
        question.bytes = std::uint64_t{question.ranks} << 30;
    }
    return question;
}

Status show_directory(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(const Config config, load_settings(arguments));
    const bool is_persistent = !arguments.given("DIRECTORY");
    std::error_code error;
    const std::string path = is_persistent ? config.settings.paths.persistent : absolute_path(std::filesystem::current_path(error).string(), arguments.text("DIRECTORY"));
    TRY_ASSIGN(const SeenDirectory seen, look_at(path, config.settings, is_persistent));
    TRY_ASSIGN(const LayoutQuestion question, question_of(arguments, config.settings, seen));
    const ExpectedLayout expected = expected_layout(question);
    if (console.json) {
        Json document = directory_json(seen);
        document["expected"] = expected_json(expected, question);
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return {};
    }
    print_directory(console, seen);
    print_expected(console, expected, question);
    return {};
}

// ---- of a version ----

struct SeenFile {
    std::string path;
    std::uint64_t bytes = 0;
    std::string where;  // the targets, the brick, or the root
};

// File systems with targets say; elsewhere a root is all that can be told.
std::string where_it_lies(const std::string& path, const std::string& root, const ParallelFileSystem& system) {
    const std::vector<std::string> targets = system.lies_on(this_machine(), path);
    if (!targets.empty()) return names_text(targets);
    const Result<std::vector<std::string>> bricks = glusterfs_bricks_of(path);
    return bricks.ok() && !bricks->empty() ? names_text(*bricks) : root;
}

void print_places(Console& console, const std::vector<SeenFile>& files, bool all) {
    Rows rows(console, TextTable({left("file"), right("bytes"), left("lies on")}), all);
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> targets;  // files and bytes
    std::uint64_t sum = 0, fullest = 0;
    for (const SeenFile& file : files) {
        rows.add({for_terminal(file.path.substr(file.path.rfind('/') + 1)), format_bytes(file.bytes), for_terminal(file.where)});
        auto& [count, bytes] = targets[file.where];
        ++count, bytes += file.bytes, sum += file.bytes;
        fullest = std::max(fullest, bytes);
    }
    rows.print("no files");
    TextTable table({left("target"), right("files"), right("bytes")});
    for (const auto& [target, held] : targets) table.add({for_terminal(target), std::to_string(held.first), format_bytes(held.second)});
    console.out << "\n" << table.to_string() << "\nthe fullest target has " << share_above(fullest, sum / std::max<std::size_t>(1, targets.size())) << " more than the mean of those that have files\n";
}

Status explain(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    TRY_ASSIGN(const Series series, read_series(place, read_scratch(place), arguments.text("explain"), Manifests::heads));
    tell_lineage_problems(console, "layout", series);
    TRY_ASSIGN(const Seen seen, pick_committed(series, arguments.text("version"), ""));
    TRY_ASSIGN(const Manifest manifest, place.run(read_manifest(place.world(), place.layout(), seen.key, place.deadline())));
    TRY_ASSIGN(const Config config, load_settings(arguments));
    const Settings::TargetsDriver driver = config.settings.placement.driver;
    std::vector<SeenFile> files;
    for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
        const std::string path = place.layout().part(manifest, i);
        const std::string& root = place.layout().root(manifest.roots, manifest.parts[i].root);
        const Result<const ParallelFileSystem*> system = file_system_at(driver, path.substr(0, path.rfind('/')));
        files.push_back({path, manifest.parts[i].bytes, where_it_lies(path, root, system.ok() ? **system : plain_file_system())});
    }
    if (console.json) {
        Json rows = Json::array();
        for (const SeenFile& file : files) rows.push_back({{"path", file.path}, {"bytes", file.bytes}, {"lies_on", file.where}});
        const Json document = {{"checkpoint", seen.key.name}, {"version", seen.key.version}, {"node_targets", manifest.node_targets}, {"files", std::move(rows)}};
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return {};
    }
    print_places(console, files, arguments.given("all"));
    return {};
}

Status run_layout(Console& console, const Arguments& arguments) {
    if (!arguments.given("explain")) return show_directory(console, arguments);
    if (arguments.given("DIRECTORY")) return invalid_argument("--explain is of a version, and takes no DIRECTORY: --persistent names where it lies");
    return explain(console, arguments);
}

}  // namespace

const Command layout_command = {
    "layout",
    "show where files can lie, how a version would be laid out, and where one lies",
    "Of a directory (persistent, if none is given): its file system, the storage targets among which Cairn can choose there, what they still take, and how the files of a version of "
    "so many nodes and bytes would lie with the settings as they are: how many, why, how evenly, and which setting would be more even.\n\n"
    "With --explain NAME: where the files of a committed version do lie, asked of the file system (the brick, OST, pool or server; else the directory below which a file is), and how even that is.",
    {{"DIRECTORY", OptionKind::text, "", "Instead of persistent; then storage.directories and placement.targets count for nothing."},
     {"--nodes", OptionKind::number, "N", "Nodes of the job; 1."},
     {"--ranks", OptionKind::number, "N", "Its ranks; one a node."},
     {"--bytes", OptionKind::text, "BYTES", "Of all images together, as 64GiB; 1 GiB a rank."},
     {"--explain", OptionKind::text, "NAME", "The checkpoint of which the files are looked up."},
     {"--version", OptionKind::text, "VERSION", "Of it: a version, or newest (the default)."},
     {"--all", OptionKind::flag, "", "All rows, however many."}},
    {{Code::not_found, "no such directory, checkpoint or committed version"}},
    true,
    &run_layout,
};

}  // namespace cairn::cli
