// `cairn gc`: versions beyond the retention rule, and what abandoned attempts left behind.
//
// Order: a tombstone fences out whoever might still commit, then the parts go (rule 3). What may still be in flight is
// spared: everything without a manifest in the current lineage, and everything changed lately by the file system's own
// clock.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/series.hpp"
#include "engine/removal.hpp"
#include "format/names.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Removal {
    VersionKey key;
    std::string why;
    std::uint64_t bytes = 0;
    enum class Kind { version, give_up, files } kind = Kind::version;
    const Seen* seen = nullptr;
    std::vector<std::string> files;  // Kind::files
};

// Seconds since 1970 by the clock of the file system that holds `directory`; 0 when it can not be told.
std::int64_t file_system_now_s(const std::string& directory) {
    std::string probe = directory + "/.cairn-clock-XXXXXX";
    const int descriptor = ::mkostemp(probe.data(), O_CLOEXEC);
    if (descriptor < 0) return 0;
    struct stat status {};
    const bool ok = ::write(descriptor, "x", 1) == 1 && ::fstat(descriptor, &status) == 0;
    ::close(descriptor);
    ::unlink(probe.c_str());
    return ok ? status.st_mtim.tv_sec : 0;
}

bool is_old(const std::string& path, std::int64_t before_s) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && status.st_mtim.tv_sec < before_s;
}

class Collector {
  public:
    Collector(Place& place, const Series& series, std::int64_t before_s, bool other_lineages)
        : place_(place), series_(series), before_s_(before_s), other_lineages_(other_lineages) {}

    std::vector<Removal> collect() {
        by_retention();
        for (const Seen& seen : series_.versions) {
            if (seen.state == SeenState::committed) other_attempts(seen);
            if (seen.state == SeenState::unfinished && !seen.current) left_behind(seen);
            if (seen.state == SeenState::given_up) tombstone_parts(seen);
            if (seen.state == SeenState::committed && !seen.current && other_lineages_)
                add(seen, Removal::Kind::version, "of another lineage", seen.stored_bytes);
        }
        temporary_files();
        return std::move(removals_);
    }

  private:
    void add(const Seen& seen, Removal::Kind kind, std::string why, std::uint64_t bytes,
             std::vector<std::string> files = {}) {
        removals_.push_back({seen.key, std::move(why), bytes, kind, &seen, std::move(files)});
    }

    void by_retention() {
        std::vector<const Seen*> committed;
        std::vector<Version> versions;
        for (const Seen& seen : series_.versions)
            if (seen.current && seen.state == SeenState::committed) {
                committed.push_back(&seen);
                versions.push_back(seen.key.version);
            }
        const Settings::Retention& rule = place_.settings().retention;
        for (const std::size_t i : beyond_retention(versions, rule.persistent_last, rule.persistent_every))
            add(*committed[i], Removal::Kind::version, "beyond the retention rule", committed[i]->stored_bytes);
    }

    // Parts of attempts of this incarnation that lost: no manifest can name them any more.
    void other_attempts(const Seen& seen) {
        std::vector<std::string> files;
        std::uint64_t bytes = 0;
        for (const DirectoryEntry& file : seen.entry.files) {
            const auto part = parse_part_file_name(file.name);
            if (!part || part->attempt_id == seen.entry.manifest->attempt_id) continue;
            files.push_back(file.name);
            bytes += file.bytes;
        }
        if (!files.empty())
            add(seen, Removal::Kind::files, "parts of attempts that did not commit", bytes, std::move(files));
    }

    void tombstone_parts(const Seen& seen) {
        std::vector<std::string> files;
        std::uint64_t bytes = 0;
        for (const DirectoryEntry& file : seen.entry.files)
            if (parse_part_file_name(file.name)) {
                files.push_back(file.name);
                bytes += file.bytes;
            }
        if (!files.empty())
            add(seen, Removal::Kind::files, "parts of a version that was given up", bytes, std::move(files));
    }

    void left_behind(const Seen& seen) {
        const std::string directory = place_.layout().version(seen.key);
        for (const DirectoryEntry& file : seen.entry.files)
            if (!is_old(directory + "/" + file.name, before_s_)) return;
        add(seen, Removal::Kind::give_up, "left behind by an older incarnation", seen.stored_bytes);
    }

    // Names that a crash left between writing and publishing.
    void temporary_files() {
        Version done = 0;
        for (const Seen& seen : series_.versions) {
            if (seen.key.version == done || seen.entry.files.empty()) continue;
            done = seen.key.version;
            const std::string directory = place_.layout().version(seen.key);
            const auto entries = place_.run(place_.world().storage.list(directory, place_.deadline()));
            if (!entries.ok()) continue;
            std::vector<std::string> files;
            std::uint64_t bytes = 0;
            for (const DirectoryEntry& entry : *entries) {
                const bool temporary = entry.name.starts_with("manifest.") && entry.name.ends_with(".tmp");
                if (!temporary || !is_old(directory + "/" + entry.name, before_s_)) continue;
                files.push_back(entry.name);
                bytes += entry.bytes;
            }
            if (!files.empty()) add(seen, Removal::Kind::files, "unpublished manifests", bytes, std::move(files));
        }
    }

    Place& place_;
    const Series& series_;
    std::int64_t before_s_;
    bool other_lineages_;
    std::vector<Removal> removals_;
};

Status carry_out(Place& place, const Removal& removal) {
    World& world = place.world();
    const std::string directory = place.layout().version(removal.key);
    if (removal.kind == Removal::Kind::files)
        return place.run(remove_files(world, directory, removal.files, place.io_wait()));
    if (removal.kind == Removal::Kind::give_up && removal.seen->epoch != 0) {
        Manifest tombstone;
        tombstone.key = removal.key;
        tombstone.epoch = removal.seen->epoch;
        tombstone.ranks = removal.seen->ranks;
        tombstone.nodes = 1;
        tombstone.parent = removal.seen->parent;
        TRY(place.run(give_up_version(world, place.layout(), std::move(tombstone), place.io_wait())));
    }
    return place.run(remove_version(world, place.layout(), removal.seen->entry, place.io_wait()));
}

void print(Console& console, const std::vector<Removal>& removals, bool only_look) {
    std::uint64_t bytes = 0;
    for (const Removal& removal : removals) bytes += removal.bytes;
    if (console.json) {
        Json document = {{"removed", Json::array()}, {"bytes", bytes}, {"dry_run", only_look}};
        for (const Removal& removal : removals)
            document["removed"].push_back({{"checkpoint", removal.key.name},
                                           {"version", removal.key.version},
                                           {"incarnation", removal.key.incarnation.hex()},
                                           {"why", removal.why},
                                           {"bytes", removal.bytes}});
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return;
    }
    if (removals.empty()) {
        console.out << "nothing to remove\n";
        return;
    }
    TextTable table({left("checkpoint"), right("version"), left("incarnation"), right("bytes"), left("why")});
    for (const Removal& removal : removals)
        table.add({removal.key.name, std::to_string(removal.key.version), short_id(removal.key.incarnation),
                   format_bytes(removal.bytes), removal.why});
    console.out << table.to_string() << "\n" << format_bytes(bytes) << (only_look ? " would be freed\n" : " freed\n");
}

Status run_gc(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    const std::string& age = arguments.text("age");
    const Result<std::uint64_t> age_ns = parse_duration(age.empty() ? "1 h" : age, 1'000'000'000);
    if (!age_ns.ok()) return age_ns.status().within("--age '" + age + "'");
    const std::int64_t now_s = file_system_now_s(place.layout().persistent);
    if (now_s == 0)
        return Status::from_errno(errno,
                                  "cannot write to " + place.layout().persistent + ", so nothing can be removed");
    const std::int64_t before_s =
        now_s - static_cast<std::int64_t>(std::min<std::uint64_t>(*age_ns / 1'000'000'000, 1u << 30));
    const ScratchView scratch = read_scratch(place);
    std::vector<std::string> names = {arguments.text("NAME")};
    if (!arguments.given("NAME")) {
        TRY_ASSIGN(names, series_names(place, scratch));
    }
    std::vector<Removal> done;
    std::vector<Series> kept;  // removals refer to it
    kept.reserve(names.size());
    Status failed;
    for (const std::string& name : names) {
        Result<Series> series = read_series(place, scratch, name);
        if (!series.ok() && series.code() == Code::not_found && !arguments.given("NAME")) continue;
        if (!series.ok()) return series.status();
        kept.push_back(std::move(series).value());
        for (Removal& removal : Collector(place, kept.back(), before_s, arguments.given("other-lineages")).collect()) {
            Status status = arguments.given("dry-run") ? Status() : carry_out(place, removal);
            if (status.ok())
                done.push_back(std::move(removal));
            else if (failed.ok())
                failed = std::move(status).within("removing from " + what(removal.key));
        }
    }
    print(console, done, arguments.given("dry-run"));
    return failed;
}

}  // namespace

const Command gc_command = {
    "gc",
    "remove versions beyond the retention rule, and leftovers of abandoned attempts",
    "Applies retention.persistent_last and retention.persistent_every to the committed versions of the current "
    "lineage, and removes what no manifest\n"
    "can name any more: parts of attempts that did not commit, of versions that were given up, and of older "
    "incarnations that left the current\n"
    "lineage. What may still be in flight is spared. Versions that other lineages committed stay unless "
    "--other-lineages is given.",
    {{"NAME", OptionKind::text, "", "The checkpoint; without it, all."},
     {"-n,--dry-run", OptionKind::flag, "", "Only show what would go."},
     {"--age", OptionKind::text, "TIME",
      "Leftovers younger than this are spared, by the file system's clock; default \"1 h\"."},
     {"--other-lineages", OptionKind::flag, "", "Also committed versions that are not in the current lineage."}},
    {{Code::not_found, "no such checkpoint"}},
    true,
    &run_gc,
};

}  // namespace cairn::cli
