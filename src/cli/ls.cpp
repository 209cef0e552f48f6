// `cairn ls`: checkpoints, or the versions of one.
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/series.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string level_of(const Seen& seen) {
    const bool persistent = seen.state == SeenState::committed;
    if (seen.scratch_ranks.empty()) return persistent ? "persistent" : "-";
    const std::string scratch =
        seen.scratch_ranks.size() == seen.ranks
            ? "scratch"
            : "scratch " + std::to_string(seen.scratch_ranks.size()) + "/" + std::to_string(seen.ranks);
    return persistent ? scratch + " + persistent" : scratch;
}

std::string number_or_dash(std::uint64_t number) { return number == 0 ? "-" : std::to_string(number); }

std::size_t files_of(const Seen& seen) { return seen.entry.whole ? seen.entry.whole->parts.size() : 0; }
std::uint64_t time_of(const Seen& seen) { return seen.entry.manifest ? seen.entry.manifest->wall_time_s : 0; }

Json json_of(const Series& series, const Seen& seen) {
    Json row = {{"version", seen.key.version},
                {"incarnation", seen.key.incarnation.hex()},
                {"epoch", seen.epoch},
                {"state", state_name(seen)},
                {"current", seen.current && series.lineage.head.ok()},
                {"ranks", seen.ranks},
                {"files", files_of(seen)},
                {"image_bytes", seen.image_bytes},
                {"stored_bytes", seen.stored_bytes},
                {"scratch_ranks", seen.scratch_ranks},
                {"taken_s", time_of(seen)}};
    if (seen.parent.incarnation)
        row["parent"] = {{"incarnation", seen.parent.incarnation.hex()}, {"version", seen.parent.version}};
    if (seen.entry.damage) row["damage"] = seen.entry.damage->text();
    return row;
}

void print_versions(Console& console, const Series& series) {
    TextTable table({left(""), right("version"), left("state"), left("level"), right("ranks"), right("files"),
                     right("images"), right("stored"), left("taken"), left("incarnation")});
    bool other = false;
    for (const Seen& seen : series.versions) {
        const bool current = seen.current && series.lineage.head.ok();
        other |= !current;
        table.add({current && seen.state != SeenState::given_up ? "*" : "", std::to_string(seen.key.version),
                   std::string(state_name(seen)), level_of(seen), number_or_dash(seen.ranks),
                   number_or_dash(files_of(seen)), format_bytes(seen.image_bytes),
                   seen.entry.files.empty() ? "-" : format_bytes(seen.stored_bytes), format_time(time_of(seen)),
                   short_id(seen.key.incarnation)});
    }
    if (series.versions.empty()) {
        console.out << series.name << ": opened " << plural(series.opens.size(), "time") << ", no version yet\n";
        return;
    }
    console.out << table.to_string();
    if (series.lineage.head.ok())
        console.out << "\n* in the current lineage: what a restart finds"
                    << (other ? "; the others were left by going back, or by another start" : "") << ".\n";
    for (const Seen& seen : series.versions)
        if (seen.entry.damage)
            console.out << "version " << seen.key.version << ": " << for_terminal(seen.entry.damage->text()) << "\n";
}

void print_series(Console& console, const std::vector<Series>& all, const std::string& persistent) {
    TextTable table({left("checkpoint"), right("versions"), right("newest"), left("state"), right("ranks"),
                     right("files"), right("images"), right("stored in all"), left("taken")});
    for (const Series& series : all) {
        const Seen* newest = nullptr;
        std::uint64_t stored_bytes = 0;
        for (const Seen& seen : series.versions) {
            stored_bytes += seen.stored_bytes;
            if (seen.current && series.lineage.head.ok() && seen.state != SeenState::given_up && !seen.entry.unlisted()) newest = &seen;
        }
        if (!newest) {
            table.add({series.name, std::to_string(series.versions.size()), "-", "-", "-", "-", "-",
                       format_bytes(stored_bytes), "-"});
            continue;
        }
        table.add({series.name, std::to_string(series.versions.size()), std::to_string(newest->key.version),
                   std::string(state_name(*newest)), number_or_dash(newest->ranks),
                   number_or_dash(files_of(*newest)), format_bytes(newest->image_bytes), format_bytes(stored_bytes),
                   format_time(time_of(*newest))});
    }
    if (all.empty())
        console.out << "no checkpoints under " << persistent << "\n";
    else
        console.out << table.to_string();
}

Status run_ls(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    const ScratchView scratch = read_scratch(place);
    const bool one = arguments.given("NAME");
    std::vector<std::string> names = {arguments.text("NAME")};
    if (!one) {
        TRY_ASSIGN(names, series_names(place, scratch));
    }
    std::vector<Series> all;
    std::vector<Status> problems = scratch.problems;
    for (const std::string& name : names) {
        Result<Series> series = read_series(place, scratch, name, Manifests::whole);
        if (!series.ok() && one) return series.status();
        if (series.ok())
            all.push_back(std::move(series).value());
        else if (series.code() != Code::not_found)
            problems.push_back(series.status());  // a directory that is no checkpoint is not ours
    }
    for (const Status& problem : problems) console.err << "cairn ls: " << problem.text() << "\n";
    for (const Series& series : all) tell_lineage_problems(console, "ls", series);
    if (console.json) {
        Json document = {{"persistent", place.layout().persistent}, {"checkpoints", Json::array()}};
        for (const Series& series : all) {
            Json versions = Json::array();
            for (const Seen& seen : series.versions) versions.push_back(json_of(series, seen));
            Json checkpoint = {{"name", series.name}, {"versions", std::move(versions)}};
            for (const Status& problem : lineage_problems(series)) checkpoint["lineage_damage"].push_back(problem.text());
            document["checkpoints"].push_back(std::move(checkpoint));
        }
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
    } else if (one) {
        print_versions(console, all[0]);
    } else {
        print_series(console, all, place.layout().persistent);
    }
    return {};
}

}  // namespace

const Command ls_command = {
    "ls",
    "list checkpoints, or the versions of one",
    "Without a name, one line a checkpoint. With a name, one line a version: its state, the levels that hold it, and "
    "whether it belongs to the\n"
    "current lineage, which is what a restart looks at.\n\n"
    "States: committed (restorable from persistent), sealed (every rank's image is in this host's scratch), partial "
    "(some ranks' images are\n"
    "here; other nodes may hold the others), unfinished (parts without a manifest: being flushed, or left behind), "
    "given up (a tombstone:\n"
    "removed, or never to be committed), damaged (the manifest, or the directory, can not be read), unreadable (this user may not).\n\n"
    "Damaged records of the lineage are named. Where nothing else tells what they said, no version is marked: `cairn "
    "repair`.",
    {{"NAME", OptionKind::text, "", "The checkpoint to list."}},
    {{Code::not_found, "no checkpoint of this name, or no persistent directory"}},
    true,
    &run_ls,
};

}  // namespace cairn::cli
