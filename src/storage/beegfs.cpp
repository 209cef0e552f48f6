#include "storage/beegfs.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <sstream>

namespace cairn {

namespace {

constexpr std::uint64_t chunk_min = 64 << 10;  // STRIPEPATTERN_MIN_CHUNKSIZE

// Cells with two blanks or more between them: one may have a blank in it.
std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells;
    while (!line.empty()) {
        const std::size_t begin = line.find_first_not_of(" \t\r");
        if (begin == std::string_view::npos) break;
        line.remove_prefix(begin);
        const std::size_t end = std::min(line.find("  "), line.size());
        std::string cell(line.substr(0, end));
        while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\r')) cell.pop_back();
        cells.push_back(std::move(cell));
        line.remove_prefix(end);
    }
    return cells;
}

std::vector<std::string> words_of(std::string_view line) {
    std::istringstream stream{std::string(line)};
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

// "465.3GiB", "499615416320" or "465.3 GiB".
std::optional<std::uint64_t> bytes_of(std::string text) {
    std::erase(text, ' ');
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0) return std::nullopt;
    const std::string unit = text.substr(static_cast<std::size_t>(end - text.data()));
    constexpr std::array<std::string_view, 6> units = {"", "KiB", "MiB", "GiB", "TiB", "PiB"};
    const auto found = unit == "B" ? units.begin() : std::find(units.begin(), units.end(), unit);
    if (found == units.end()) return std::nullopt;
    for (auto i = found - units.begin(); i > 0; --i) number *= 1024;
    return number < 9e18 ? std::optional(static_cast<std::uint64_t>(number)) : std::nullopt;
}

bool is_id(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == ':'; });
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return text;
}

// Which column has which of the names; -1: none. A table of beegfs-ctl has several columns that are called "%", and none of ours.
struct Columns {
    std::ptrdiff_t id = -1, reachability = -1, consistency = -1, free = -1;
    bool complete() const { return id >= 0 && reachability >= 0 && consistency >= 0; }
};
Columns columns_of(const std::vector<std::string>& header) {
    Columns columns;
    for (std::size_t i = 0; i < header.size(); ++i) {
        const std::string name = lower(header[i]);
        const auto at = static_cast<std::ptrdiff_t>(i);
        if (name == "targetid" || name == "id") columns.id = at;
        if (name == "reachability") columns.reachability = at;
        if (name == "consistency") columns.consistency = at;
        if (name == "free" || name == "sfree") columns.free = at;
    }
    return columns;
}

std::optional<BeegfsTarget> target_of(const std::vector<std::string>& row, const Columns& columns) {
    const auto cell = [&row](std::ptrdiff_t column) { return column >= 0 && static_cast<std::size_t>(column) < row.size() ? row[static_cast<std::size_t>(column)] : std::string(); };
    BeegfsTarget target;
    target.room.name = cell(columns.id);
    if (!is_id(target.room.name)) return std::nullopt;
    target.takes_files = lower(cell(columns.reachability)) == "online" && lower(cell(columns.consistency)) == "good";
    target.room.free_bytes = target.takes_files ? bytes_of(cell(columns.free)).value_or(0) : 0;
    return target;
}

class BeeGfs final : public ParallelFileSystem {
  public:
    std::string_view name() const override { return "beegfs"; }

    Result<PlacementTargets> targets(Outside& outside, const std::string& directory, const std::vector<std::string>&) const override {
        TRY_ASSIGN(const std::vector<BeegfsTarget> found, look(outside, directory, looking_limit));
        PlacementTargets targets{"beegfs", {}, {}, "beegfs"};
        targets.spans = true;
        for (const BeegfsTarget& target : found)
            if (target.takes_files) targets.names.push_back(target.room.name);
        if (targets.names.size() < 2) return unavailable(directory + ": its BeeGFS has " + std::to_string(targets.names.size()) + " storage targets that take new files");
        return targets;
    }

    Result<std::vector<TargetRoom>> rooms(Outside& outside, const std::string& directory, Nanos limit) const override {
        TRY_ASSIGN(const std::vector<BeegfsTarget> found, look(outside, directory, limit));
        std::vector<TargetRoom> rooms;
        for (const BeegfsTarget& target : found) rooms.push_back(target.room);
        return rooms;
    }

    Status make(Outside& outside, const std::string& path, std::uint32_t permissions, const Placing& placing, Nanos limit) const override {
        const BeegfsOwner owner{::geteuid(), ::getegid()};
        const Result<std::string> done = outside.run(beegfs_create_words(BeegfsTool::beegfs, path, permissions, owner, placing), limit);
        if (done.code() != Code::unsupported) return done.status();
        return outside.run(beegfs_create_words(BeegfsTool::beegfs_ctl, path, permissions, owner, placing), limit).status();
    }

    std::vector<std::string> lies_on(Outside& outside, const std::string& path) const override {
        Result<std::string> printed = outside.run({"beegfs", "entry", "info", "--retro", "--verbose", path}, looking_limit);
        if (!printed.ok()) printed = outside.run({"beegfs-ctl", "--getentryinfo", "--verbose", path}, looking_limit);
        if (!printed.ok()) return {};
        std::vector<std::string> targets = targets_of_entry_info(*printed);
        for (std::string& target : targets) target = "target " + target;
        return targets;
    }

    std::string how() const override { return "a file is made with its storage target by beegfs entry create file --targets=ID (before version 8 beegfs-ctl --createfile), which root may do"; }

  private:
    static Result<std::vector<BeegfsTarget>> look(Outside& outside, const std::string& directory, Nanos limit) {
        BeegfsTool tool = BeegfsTool::beegfs;
        Result<std::string> printed = outside.run(beegfs_list_words(tool, directory), limit);
        if (printed.code() == Code::unsupported) {
            tool = BeegfsTool::beegfs_ctl;
            printed = outside.run(beegfs_list_words(tool, directory), limit);
        }
        if (!printed.ok()) return std::move(printed).status();
        return targets_of_beegfs_list(tool, *printed);
    }
};

}  // namespace

Words beegfs_list_words(BeegfsTool tool, const std::string& directory) {
    if (tool == BeegfsTool::beegfs) return {"beegfs", "target", "list", "--node-type", "storage", "--state", "--capacity"};
    return {"beegfs-ctl", "--listtargets", "--nodetype=storage", "--state", "--spaceinfo", "--mount=" + directory};
}

Result<std::vector<BeegfsTarget>> targets_of_beegfs_list(BeegfsTool tool, std::string_view printed) {
    std::optional<Columns> columns;
    std::vector<BeegfsTarget> targets;
    std::istringstream lines{std::string(printed)};
    for (std::string line; std::getline(lines, line);) {
        const std::vector<std::string> row = tool == BeegfsTool::beegfs ? cells_of(line) : words_of(line);
        if (!columns) {
            if (const Columns found = columns_of(row); found.complete()) columns = found;
        } else if (std::optional<BeegfsTarget> target = target_of(row, *columns)) {
            targets.push_back(std::move(*target));
        }
    }
    if (targets.empty()) return unavailable("BeeGFS names no storage target");
    std::sort(targets.begin(), targets.end(), [](const BeegfsTarget& a, const BeegfsTarget& b) {
        return a.room.name.size() != b.room.name.size() ? a.room.name.size() < b.room.name.size() : a.room.name < b.room.name;
    });
    const auto same = [](const BeegfsTarget& a, const BeegfsTarget& b) { return a.room.name == b.room.name; };
    if (std::adjacent_find(targets.begin(), targets.end(), same) != targets.end()) return unavailable("BeeGFS names a storage target twice");
    return targets;
}

Words beegfs_create_words(BeegfsTool tool, const std::string& path, std::uint32_t permissions, BeegfsOwner owner, const Placing& placing) {
    const bool is_new = tool == BeegfsTool::beegfs;
    Words words = is_new ? Words{"beegfs", "entry", "create", "file"} : Words{"beegfs-ctl", "--createfile"};
    const auto add = [&words](const char* option, const std::string& value) { words.push_back(std::string(option) + "=" + value); };
    std::string list;
    for (const std::string& target : placing.targets) list += (list.empty() ? "" : ",") + target;
    if (!list.empty()) add("--targets", list);
    else if (!is_new) add("--storagepoolid", "inherit");
    // A target holds one chunk file of a file: more stripes than targets it can not have.
    const std::size_t stripes = list.empty() ? placing.stripes : placing.targets.size();
    if (stripes != 0) add(is_new ? "--num-targets" : "--numtargets", std::to_string(stripes));
    if (placing.stripe_bytes != 0) add(is_new ? "--chunk-size" : "--chunksize", std::to_string(std::bit_ceil(std::max(placing.stripe_bytes, chunk_min)) >> 10) + (is_new ? "Ki" : "k"));
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", permissions & 07777);
    add(is_new ? "--permissions" : "--access", mode);
    add("--uid", std::to_string(owner.user));
    add("--gid", std::to_string(owner.group));
    words.push_back(path);
    return words;
}

std::vector<std::string> targets_of_entry_info(std::string_view printed) {
    std::vector<std::string> targets;
    bool is_list = false;
    std::istringstream lines{std::string(printed)};
    for (std::string line; std::getline(lines, line);) {
        const std::vector<std::string> words = words_of(line);
        const bool is_item = words.size() >= 4 && words[0] == "+" && words[2] == "@";  // "  + 1 @ node1 [ID: 1]"
        if (line.find("Storage targets:") != std::string::npos) is_list = true;
        else if (is_list && is_item) targets.push_back(words[1]);
        else is_list = false;
    }
    return targets;
}

const ParallelFileSystem& beegfs() {
    static const BeeGfs one;
    return one;
}

}  // namespace cairn
