// `cairn gc`: versions beyond the retention rule, and what jobs left behind that are over.
//
// Order: a tombstone fences out whoever might still commit, then the parts go (catalog/removal.hpp). So even where it is
// wrong about a job, no version becomes torn: the job finds its version given up. What may be in flight is spared, and
// said (gc_collect.hpp).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <utility>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/gc_collect.hpp"
#include "format/names.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

// Seconds since 1970 by the clock of the file system of persistent; 0 when it can not be told.
std::int64_t file_system_now_s(Place& place) {
    const std::string probe = place.layout().persistent + "/" + temporary_file_name(place.world().random.id());
    const int descriptor = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat status {};
    if (descriptor < 0) {  // no room for a name: what is there already is touched
        const std::string jobs = place.layout().jobs();
        const bool touched = errno == ENOSPC && ::utimensat(AT_FDCWD, jobs.c_str(), nullptr, 0) == 0 && ::stat(jobs.c_str(), &status) == 0;
        return touched ? status.st_mtim.tv_sec : 0;
    }
    const bool ok = ::fstat(descriptor, &status) == 0;  // when it was made: a full file system has no room for a byte
    const int error = errno;
    ::close(descriptor);
    ::unlink(probe.c_str());
    errno = error;
    return ok ? status.st_mtim.tv_sec : 0;
}

Status carry_out(Place& place, const Leftover& leftover) {
    World& world = place.world();
    const Layout& layout = place.layout();
    switch (leftover.kind) {
        case Leftover::Kind::version:
            return place.run(remove_version(world, layout, leftover.tombstone, leftover.fence, place.io_wait()));
        case Leftover::Kind::give_up:
            // Gone where parts are left below another root only.
            TRY(place.run(make_directories(world.storage, layout.persistent, leftover.directory, place.deadline())));
            // already_exists: it was committed, or given up, meanwhile. Nothing has been touched.
            TRY(place.run(give_up_version(world, layout, leftover.tombstone, place.io_wait())));
            [[fallthrough]];
        case Leftover::Kind::tombstone:
            return place.run(clear_version(world, layout, leftover.tombstone, leftover.fence, place.io_wait()));
        case Leftover::Kind::files:
            break;
    }
    return place.run(remove_files(world, leftover.directory, leftover.files, place.io_wait(), layout.persistent));
}

std::string where(const Leftover& leftover) {
    if (leftover.key.version != 0) return version_text(leftover.key);
    return leftover.key.name.empty() ? leftover.directory : leftover.key.name + ": " + leftover.directory;
}

Json json_of(const std::vector<Leftover>& leftovers) {
    Json rows = Json::array();
    for (const Leftover& leftover : leftovers)
        rows.push_back({{"checkpoint", leftover.key.name},
                        {"version", leftover.key.version},
                        {"incarnation", leftover.key.incarnation.hex()},
                        {"why", leftover.why},
                        {"bytes", leftover.bytes}});
    return rows;
}

std::string table_of(const std::vector<Leftover>& leftovers) {
    TextTable table({left("checkpoint"), right("version"), left("incarnation"), right("bytes"), left("why")});
    for (const Leftover& leftover : leftovers)
        table.add({leftover.key.name.empty() ? "-" : for_terminal(leftover.key.name),
                   leftover.key.version == 0 ? "-" : std::to_string(leftover.key.version),
                   short_id(leftover.key.incarnation), format_bytes(leftover.bytes), leftover.why});
    return table.to_string();
}

void print(Console& console, const Collected& done, bool only_look) {
    std::uint64_t bytes = 0;
    for (const Leftover& leftover : done.take) bytes += leftover.bytes;
    if (console.json) {
        const Json document = {
            {"removed", json_of(done.take)}, {"spared", json_of(done.spare)}, {"bytes", bytes}, {"dry_run", only_look}};
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return;
    }
    if (done.take.empty())
        console.out << "nothing to remove\n";
    else
        console.out << table_of(done.take) << "\n"
                    << format_bytes(bytes) << (only_look ? " would be freed\n" : " freed\n");
    if (!done.spare.empty()) console.out << "\nspared:\n" << table_of(done.spare);
}

bool taken_up_again(const Leftover& leftover) {
    return leftover.before_s != 0 && std::any_of(leftover.files.begin(), leftover.files.end(), [&](const auto& file) {
               return !is_old(leftover.directory + "/" + file, leftover.before_s);
           });
}

bool needs_room(const Leftover& leftover) {
    return leftover.kind == Leftover::Kind::version || leftover.kind == Leftover::Kind::give_up;
}

struct Taking {
    bool only_look = false;
    Collected done;
    std::vector<Leftover> no_room;  // yet: what is carried out after them may give it
    Status failed;                  // the first failure is told, the rest goes on
};

void take(Place& place, std::vector<Leftover> leftovers, Taking& taking, bool again = false) {
    std::stable_partition(leftovers.begin(), leftovers.end(), [](const Leftover& leftover) { return !needs_room(leftover); });
    for (Leftover& leftover : leftovers) {
        if (taken_up_again(leftover)) continue;
        Status status = taking.only_look ? Status() : carry_out(place, leftover);
        if (status.code() == Code::already_exists && leftover.kind == Leftover::Kind::give_up) continue;
        if (status.ok())
            taking.done.take.push_back(std::move(leftover));
        else if (status.code() == Code::out_of_space && !again)
            taking.no_room.push_back(std::move(leftover));
        else if (taking.failed.ok())
            taking.failed = std::move(status).within("removing from " + where(leftover));
    }
}

// What one collection says is carried out before the next series is looked at.
void take(Place& place, Collected found, Taking& taking) {
    take(place, std::move(found.take), taking);
    std::move(found.spare.begin(), found.spare.end(), std::back_inserter(taking.done.spare));
}

void end_taking(Place& place, Console& console, Taking& taking) {
    take(place, std::exchange(taking.no_room, {}), taking, true);
    if (taking.only_look || taking.done.take.empty()) return;
    std::set<std::string> directories;
    for (const Leftover& leftover : taking.done.take) directories.insert(leftover.directory);
    for (const std::string& directory : directories) tell_put_aside(place, console, "gc", directory);
    fill_reserve(place, console, "gc");
}

Status run_gc(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    const std::string& age = arguments.text("age");
    const Result<std::uint64_t> age_ns = parse_duration(age.empty() ? "1 h" : age, 1'000'000'000);
    if (!age_ns.ok()) return age_ns.status().within("--age '" + age + "'");
    const bool only_look = arguments.given("dry-run"), all = !arguments.given("NAME");
    std::int64_t now_s = file_system_now_s(place);
    if (now_s == 0 && only_look) now_s = std::time(nullptr);  // who may not write may look
    if (now_s == 0)
        return Status::from_errno(errno,
                                  "cannot write to " + place.layout().persistent + ", so nothing can be removed");
    const auto age_s = static_cast<std::int64_t>(std::min<std::uint64_t>(*age_ns / 1'000'000'000, 1u << 30));
    const auto open_s = static_cast<std::int64_t>(place.settings().deadlines.open_ms / 1000 + 1);
    const CollectOptions options{now_s - age_s, now_s - std::max(age_s, open_s), arguments.given("other-lineages"),
                                 arguments.given("unknown")};
    TRY_ASSIGN(Evidence evidence, Evidence::gather(place, options.before_s));
    place.know_roots(evidence.roots());
    const ScratchView scratch = read_scratch(place);
    std::vector<std::string> names = {arguments.text("NAME")};
    if (all) {
        TRY_ASSIGN(names, series_names(place, scratch));
    }
    Taking taking;
    taking.only_look = only_look;
    Status& failed = taking.failed;
    for (const std::string& name : names) {
        const Result<Series> series = read_series(place, scratch, name, Manifests::whole, Roots::all);
        if (!series.ok() && series.code() == Code::not_found && all) continue;
        if (!series.ok() && !all) return series.status();
        if (!series.ok()) {
            if (failed.ok()) failed = series.status().within("looking into " + name);
            continue;
        }
        tell_lineage_problems(console, "gc", *series);
        if (!series->head_is_certain())
            console.err << "cairn gc: " << name << ": which version is the newest can not be told, so nothing goes that a restart may need\n";
        take(place, collect(place, *series, evidence, options), taking);
    }
    if (all) {
        take(place, collect_others(place, evidence, names, options), taking);
        take(place, collect_meetings(place, evidence, options), taking);
    }
    end_taking(place, console, taking);
    print(console, taking.done, only_look);
    return failed;
}

}  // namespace

const Command gc_command = {
    "gc",
    "remove versions beyond the retention rule, and what jobs left behind that are over",
    "Removes versions of the current lineage beyond retention.persistent_last and retention.persistent_every; with "
    "--other-lineages also what\n"
    "other lineages committed. Never the newest committed version of the current lineage.\n\n"
    "Removes leftovers: parts of attempts that lost; parts of versions that were given up or removed; parts without a "
    "manifest, when they are old,\n"
    "no image of them is in this host's scratch, no daemon of this host takes part in their job, and the job is over "
    "or "
    "left the current\n"
    "lineage; tombstones and job records that nobody needs any more; unpublished files and empty directories, when "
    "old; what ranks without MPI\n"
    "left where they met, when it is old and their job is over (without NAME).\n\n"
    "A job is over when its roster under persistent is gone (its coordinator's daemon takes it away when it ends with "
    "nothing left to\n"
    "finish). When a job was killed with its daemons, its roster stays until a newer job has committed a version and "
    "the "
    "roster is old.\n\n"
    "Before any part goes a tombstone is published, so that a daemon of another machine, of which nothing can be known "
    "here, loses the version\n"
    "rather than committing it torn. Parts of which nothing tells the incarnation can not be fenced in this way: they "
    "are only taken with\n"
    "--unknown. What is spared is listed with the reason.",
    {{"NAME", OptionKind::text, "", "The checkpoint; without it, all."},
     {"-n,--dry-run", OptionKind::flag, "", "Only show what would go."},
     {"--age", OptionKind::text, "TIME",
      "Old is what has not changed for so long, by the file system's clock; default \"1 h\"."},
     {"--other-lineages", OptionKind::flag, "", "Also committed versions that are not in the current lineage."},
     {"--unknown", OptionKind::flag, "",
      "Also old parts, and meeting places of ranks, whose incarnation nothing tells. Only when no job runs: nobody can "
      "be kept from committing them."}},
    {{Code::not_found, "no such checkpoint"}},
    true,
    &run_gc,
};

}  // namespace cairn::cli
