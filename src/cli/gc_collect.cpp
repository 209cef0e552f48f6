#include "cli/gc_collect.hpp"

#include <algorithm>
#include <ostream>

#include "catalog/reserve.hpp"
#include "format/names.hpp"

namespace cairn::cli {

namespace {

using Kind = Leftover::Kind;

Leftover record_of(Place& place, const std::string& name, Id128 incarnation, const Evidence::Record& record) {
    Leftover leftover;
    leftover.key = {name, 0, incarnation};
    leftover.why = "record of a job that is over";
    leftover.bytes = record.bytes;
    leftover.directory = place.layout().job(incarnation);
    leftover.files = record.files;
    // The roster last: while it is there the job counts as alive.
    std::stable_partition(leftover.files.begin(), leftover.files.end(),
                          [](const auto& file) { return file != "roster"; });
    return leftover;
}

// Old files in `directory` that were never given their names.
void temporaries(Place& place, const std::string& name, const std::string& directory, const char* why,
                 std::int64_t before_s, Collected& collected) {
    const auto entries = place.run(place.world().storage.list(directory, place.deadline()));
    if (!entries.ok()) return;
    Leftover out;
    out.key = {name, 0, {}};
    out.why = why;
    out.directory = directory;
    for (const DirectoryEntry& entry : *entries) {
        if (!parse_temporary_file_name(entry.name) || !is_old(directory + "/" + entry.name, before_s)) continue;
        out.files.push_back(entry.name);
        out.bytes += entry.bytes;
    }
    if (!out.files.empty()) collected.take.push_back(std::move(out));
}

class Collector {
  public:
    Collector(Place& place, const Series& series, Evidence& evidence, const CollectOptions& options)
        : place_(place), series_(series), evidence_(evidence), options_(options) {}

    Collected run() {
        records();
        by_retention();
        for (const Seen& seen : series_.versions) {
            if (seen.state == SeenState::committed) other_attempts(seen);
            if (seen.state == SeenState::unfinished) unfinished(seen);
            if (seen.state == SeenState::given_up) given_up(seen);
            if (seen.state == SeenState::committed && !seen.current && options_.other_lineages)
                other_lineage(seen);
        }
        temporaries(place_, series_.name, place_.layout().lineage(series_.name), "unpublished records",
                    options_.before_s, collected_);
        empty_directories();
        return std::move(collected_);
    }

  private:
    Leftover leftover(const Seen& seen, Kind kind, std::string why) const {
        Leftover out;
        out.kind = kind;
        out.key = seen.key;
        out.why = std::move(why);
        out.bytes = seen.stored_bytes;
        out.tombstone = tombstone_of(seen.key, seen.epoch, seen.parent, seen.ranks);
        out.directory = place_.layout().version(seen.key);
        return out;
    }

    void take_files(const Seen& seen, std::string why, const std::vector<const DirectoryEntry*>& files) {
        if (files.empty()) return;
        Leftover out = leftover(seen, Kind::files, std::move(why));
        out.bytes = 0;
        for (const DirectoryEntry* file : files) {
            out.files.push_back(file->name);
            out.bytes += file->bytes;
        }
        collected_.take.push_back(std::move(out));
    }

    void spare(const Seen& seen, std::string why) {
        collected_.spare.push_back(leftover(seen, Kind::files, std::move(why)));
    }

    bool old(const Seen& seen) const {
        const std::string directory = place_.layout().version(seen.key);
        return std::all_of(seen.entry.files.begin(), seen.entry.files.end(),
                           [&](const auto& file) { return is_old(directory + "/" + file.name, options_.before_s); });
    }

    // An open that a newer one has gone on from, or left behind, and that committed: nobody waits for the older one's
    // unfinished versions.
    bool superseded(Id128 incarnation) const {
        const std::vector<LineageLink>& links = series_.lineage.links;
        if (!series_.head_is_certain() || links.empty() || links.front().incarnation == incarnation) return false;
        const Id128 head = links.front().incarnation;
        return std::any_of(series_.versions.begin(), series_.versions.end(), [&](const Seen& seen) {
            return seen.state == SeenState::committed && seen.key.incarnation == head;
        });
    }

    // The head is there for sure, and not only a manifest of it that can not be read.
    bool head_is_whole() const {
        if (series_.lineage.links.empty()) return false;
        const Id128 head = series_.lineage.links.front().incarnation;
        return std::any_of(series_.versions.begin(), series_.versions.end(), [&](const Seen& seen) {
                   return seen.key.incarnation == head && (seen.state == SeenState::committed || !seen.scratch_ranks.empty());
               }) ||
               std::any_of(series_.opens.begin(), series_.opens.end(), [&](const LineageEntry& open) { return open.open.incarnation == head && (open.from || open.from_damage); });
    }

    void other_lineage(const Seen& seen) {
        if (series_.may_be_current(seen)) return spare(seen, "it may be in the current lineage, which can not be told: `cairn repair`");
        if (head_is_whole()) return version(seen, "of another lineage");
        spare(seen, "a manifest of the newest lineage can not be read, so that this one may be the current one: `cairn verify` names it");
    }

    void records() {
        for (const LineageEntry& open : series_.opens) {
            const Id128 incarnation = open.open.incarnation;  // zero: of a damaged record, and there is no such job
            const auto found = evidence_.records().find(incarnation);
            if (found == evidence_.records().end() || found->second.is_young) continue;
            if (found->second.has_roster && !superseded(incarnation)) continue;
            if (evidence_.served_here(incarnation)) continue;
            collected_.take.push_back(record_of(place_, series_.name, incarnation, found->second));
            evidence_.dismiss(incarnation);
        }
    }

    void version(const Seen& seen, std::string why) {
        Leftover out = leftover(seen, Kind::version, std::move(why));
        out.fence = fence_can_go(series_, seen, evidence_, {}) ? Fence::lift : Fence::keep;
        collected_.take.push_back(std::move(out));
    }

    void by_retention() {
        if (!series_.head_is_certain()) return;
        std::vector<const Seen*> committed;
        std::vector<Version> versions;
        for (const Seen& seen : series_.versions)
            if (seen.current && seen.state == SeenState::committed) {
                committed.push_back(&seen);
                versions.push_back(seen.key.version);
            }
        const Settings::Retention& rule = place_.settings().retention;
        for (const std::size_t i : beyond_retention(versions, rule.persistent_last, rule.persistent_every))
            version(*committed[i], "beyond the retention rule");
    }

    // Of attempts of this incarnation that lost: no manifest can name their parts, nor be published, any more.
    void other_attempts(const Seen& seen) {
        std::vector<const DirectoryEntry*> parts, manifests;
        const std::string directory = place_.layout().version(seen.key);
        for (const DirectoryEntry& file : seen.entry.files) {
            const auto part = parse_part_file_name(file.name);
            if (part && part->attempt_id != seen.entry.manifest->attempt_id) parts.push_back(&file);
            if (parse_temporary_file_name(file.name) && is_old(directory + "/" + file.name, options_.before_s))
                manifests.push_back(&file);
        }
        take_files(seen, "parts of attempts that did not commit", parts);
        take_files(seen, "unpublished manifests", manifests);
    }

    // Parts without a manifest, and no image of it in this host's scratch: being flushed, or left behind.
    void unfinished(Seen seen) {
        if (!old(seen)) return spare(seen, "changed lately: it may be in flight");
        if (!seen.key.incarnation.low) identify(seen);
        if (!seen.key.incarnation.low && !options_.unknown)
            return spare(seen,
                         "nothing tells whose it is, so nobody can be kept from committing it; --unknown takes it");
        if (evidence_.served_here(seen.key.incarnation)) return spare(seen, "a daemon of its job runs on this host");
        if (series_.may_be_current(seen) && !evidence_.over(seen.key.incarnation))
            return spare(seen, seen.current ? "its job is on record and in the current lineage: it may be in flight"
                                            : "its job is on record, and may be in the current lineage, which can not be told");
        const bool known = seen.key.incarnation.low != 0;
        Leftover out =
            leftover(seen, known ? Kind::give_up : Kind::files,
                     known ? "left behind by a job that is over or superseded" : "of an unknown incarnation");
        if (known && fence_can_go(series_, seen, evidence_, {})) out.fence = Fence::lift;
        if (!known)
            for (const DirectoryEntry& file : seen.entry.files) out.files.push_back(file.name);
        collected_.take.push_back(std::move(out));
    }

    // Parts tell the first half of their incarnation only; their footers, if they got that far, tell all of it.
    void identify(Seen& seen) {
        if (const auto id = evidence_.whole_id(seen.key.incarnation.high)) seen.key.incarnation = *id;
        for (const DirectoryEntry& file : seen.entry.files) {
            if (seen.key.incarnation.low) return;
            if (!parse_part_file_name(file.name)) continue;
            const std::string path = place_.layout().version(seen.key) + "/" + file.name;
            const auto footer = place_.run(read_footer(place_.world(), path, nullptr, place_.restore()));
            if (!footer.ok() || footer->key.incarnation.high != seen.key.incarnation.high) continue;
            seen.key.incarnation = footer->key.incarnation;
            seen.ranks = footer->ranks;
        }
    }

    // A tombstone stands: nothing beside it can be named. It goes itself when nobody needs it.
    void given_up(const Seen& seen) {
        std::uint64_t bytes = 0;
        bool more = false;
        for (const DirectoryEntry& file : seen.entry.files)
            if (parse_attempt_of(file.name)) {
                more = true;
                bytes += file.bytes;
            }
        const bool lift =
            old(seen) && fence_can_go(series_, seen, evidence_, {}) && !evidence_.served_here(seen.key.incarnation);
        if (!more && !lift) return;
        Leftover out =
            leftover(seen, Kind::tombstone,
                     more ? "parts of a version that was given up or removed" : "tombstone of a job that is over");
        if (!lift) out.bytes = bytes;
        out.fence = lift ? Fence::lift : Fence::keep;
        collected_.take.push_back(std::move(out));
    }

    void empty_directories() {
        const std::string series = place_.layout().series(series_.name);
        const auto entries = place_.run(place_.world().storage.list(series, place_.deadline()));
        if (!entries.ok()) return;
        for (const DirectoryEntry& entry : *entries) {
            const auto version = parse_version_directory_name(entry.name);
            const std::string path = series + "/" + entry.name;
            if (!version || !entry.is_directory || !is_old(path, options_.before_s)) continue;
            const auto files = place_.run(place_.world().storage.list(path, place_.deadline()));
            if (!files.ok() || !files->empty()) continue;
            Leftover out;
            out.key = {series_.name, *version, {}};
            out.why = "an empty directory";
            out.directory = path;
            collected_.take.push_back(std::move(out));
        }
    }

    Place& place_;
    const Series& series_;
    Evidence& evidence_;
    CollectOptions options_;
    Collected collected_;
};

}  // namespace

bool fence_can_go(const Series& series, const Seen& seen, const Evidence& evidence,
                  const std::vector<const Seen*>& gone) {
    if (!evidence.over(seen.key.incarnation) || !seen.scratch_ranks.empty() || !series.head_is_certain()) return false;
    if (!series.may_be_current(seen)) return true;
    return std::any_of(series.versions.begin(), series.versions.end(), [&](const Seen& other) {
        return other.current && other.state == SeenState::committed && other.key.version > seen.key.version &&
               std::find(gone.begin(), gone.end(), &other) == gone.end();
    });
}

Collected collect(Place& place, const Series& series, Evidence& evidence, const CollectOptions& options) {
    return Collector(place, series, evidence, options).run();
}

Collected collect_others(Place& place, Evidence& evidence, const std::vector<std::string>& names,
                         const CollectOptions& options) {
    Collected collected;
    for (const auto& [incarnation, record] : evidence.records()) {
        const bool nameless = record.name.empty() && record.has_roster;
        const bool has_series = std::find(names.begin(), names.end(), record.name) != names.end();
        if (record.is_young || nameless || has_series || evidence.dismissed(incarnation)) continue;
        if (evidence.served_here(incarnation)) continue;
        collected.take.push_back(record_of(place, record.name, incarnation, record));
    }
    temporaries(place, "", place.layout().persistent, "temporary files", options.before_s, collected);
    temporaries(place, "", place.layout().io_nodes(), "temporary files", options.before_s, collected);
    return collected;
}

void fill_reserve(Place& place, Console& console, const char* command) {
    const Status kept = place.run(keep_reserve(place.world(), place.layout(), place.deadline()));
    if (kept.code() == Code::corrupt) console.err << "cairn " << command << ": note: " << kept.text() << "\n";
}

void tell_put_aside(Place& place, Console& console, const char* command, const std::string& directory) {
    const auto entries = place.run(place.world().storage.list(directory, place.deadline()));
    if (!entries.ok()) return;
    for (const DirectoryEntry& entry : *entries)
        if (entry.is_directory && is_aside_name(entry.name))
            console.err << "cairn " << command << ": note: " << directory << "/" << entry.name
                        << " is left: a directory that is not empty stood in the place of one of Cairn's files\n";
}

}  // namespace cairn::cli
