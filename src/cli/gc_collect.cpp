#include "cli/gc_collect.hpp"

#include <algorithm>
#include <ostream>

#include "catalog/reserve.hpp"
#include "catalog/roots.hpp"
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

GcVersion facts_of(const Seen& seen) {
    return {seen.key, seen.state == SeenState::committed, seen.current, !seen.scratch_ranks.empty(), false};
}

GcSeries facts_of(const Series& series) {
    GcSeries facts;
    for (const Seen& seen : series.versions) {
        facts.versions.push_back(facts_of(seen));
        if (const std::optional<Dependent> dependent = dependent_of(seen.entry)) facts.dependents.push_back(*dependent);
    }
    if (!series.lineage.links.empty()) facts.head = series.lineage.links.front().incarnation;
    facts.head_is_certain = series.head_is_certain();
    facts.lineage_is_certain = series.lineage.is_certain();
    facts.head_is_on_record = std::any_of(series.opens.begin(), series.opens.end(), [&](const LineageEntry& open) {
        return facts.head && open.open.incarnation == facts.head && (open.from || open.from_damage);
    });
    return facts;
}

class Collector {
  public:
    Collector(Place& place, const Series& series, Evidence& evidence, const CollectOptions& options)
        : place_(place), series_(series), facts_(facts_of(series)), evidence_(evidence), options_(options) {}

    Collected run() {
        records();
        by_retention();
        // What depends on others is always newer than they, so it is looked at, and goes, before them.
        for (auto each = series_.versions.rbegin(); each != series_.versions.rend(); ++each) {
            const Seen& seen = *each;
            if (seen.state == SeenState::committed) other_attempts(seen);
            if (seen.state == SeenState::unfinished) unfinished(seen);
            if (seen.state == SeenState::given_up) given_up(seen);
            if (seen.state == SeenState::committed && !seen.current && options_.other_lineages)
                other_lineage(seen);
        }
        temporaries(place_, series_.name, place_.layout().lineage(series_.name), "unpublished records",
                    options_.before_s, collected_);
        empty_directories(place_.layout().series(series_.name));
        for (const std::string& root : place_.layout().roots) empty_directories(root + "/" + series_.name);
        return std::move(collected_);
    }

  private:
    Leftover leftover(const Seen& seen, Kind kind, std::string why) const {
        Leftover out;
        out.kind = kind;
        out.key = seen.key;
        out.why = std::move(why);
        out.bytes = seen.stored_bytes;
        out.tombstone = tombstone_of(seen.key, seen.epoch, seen.parent, seen.ranks, roots_of(seen.entry));
        out.directory = place_.layout().version(seen.key);
        return out;
    }

    void take_files(const Seen& seen, std::string why, std::string directory, const std::vector<const DirectoryEntry*>& files) {
        if (files.empty()) return;
        Leftover out = leftover(seen, Kind::files, std::move(why));
        out.directory = std::move(directory);
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
        const auto all_old = [&](const std::string& root, const std::vector<DirectoryEntry>& files) {
            const std::string directory = Layout::version_below(root, seen.key);
            return std::all_of(files.begin(), files.end(), [&](const auto& file) { return is_old(directory + "/" + file.name, options_.before_s); });
        };
        return all_old(place_.layout().persistent, seen.entry.files) &&
               std::all_of(seen.entry.elsewhere.begin(), seen.entry.elsewhere.end(), [&](const auto& below) { return all_old(below.root, below.files); });
    }

    // As an answer says; what is spared is listed without a way to take it.
    void act(const Seen& seen, GcAnswer answer, Kind fenced) {
        answer = unless_needed(std::move(answer), facts_, seen.key, gone_);
        if (answer.act == GcAnswer::Act::nothing) return;
        if (answer.act == GcAnswer::Act::spare) return spare(seen, std::move(answer.why));
        const bool is_fenced = answer.act == GcAnswer::Act::take;
        if (fenced == Kind::version) gone_.push_back(seen.key);
        Leftover out = leftover(seen, is_fenced ? fenced : Kind::files, std::move(answer.why));
        out.fence = answer.fence;
        if (!is_fenced) {
            for (const DirectoryEntry& file : seen.entry.files) out.files.push_back(file.name);
            for (const CatalogEntry::Below& below : seen.entry.elsewhere) take_files(seen, out.why, Layout::version_below(below.root, seen.key), pointers(below.files));
        }
        collected_.take.push_back(std::move(out));
    }

    static std::vector<const DirectoryEntry*> pointers(const std::vector<DirectoryEntry>& files) {
        std::vector<const DirectoryEntry*> out;
        for (const DirectoryEntry& file : files) out.push_back(&file);
        return out;
    }

    void other_lineage(const Seen& seen) {
        act(seen, judge_other_lineage(facts_, facts_of(seen), {evidence_.over(seen.key.incarnation), false}), Kind::version);
    }

    void records() {
        for (const LineageEntry& open : series_.opens) {
            const Id128 incarnation = open.open.incarnation;  // zero: of a damaged record, and there is no such job
            const auto found = evidence_.records().find(incarnation);
            if (found == evidence_.records().end()) continue;
            const Evidence::Record& record = found->second;
            if (!record_can_go(record.is_young, record.has_roster, is_superseded(facts_, incarnation))) continue;
            if (evidence_.served_here(incarnation)) continue;
            collected_.take.push_back(record_of(place_, series_.name, incarnation, record));
            evidence_.dismiss(incarnation);
        }
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
        std::vector<std::size_t> beyond = beyond_retention(versions, rule.persistent_last, rule.persistent_every);
        std::reverse(beyond.begin(), beyond.end());
        for (const std::size_t i : beyond)
            act(*committed[i], judge_beyond_retention(facts_, facts_of(*committed[i]), {evidence_.over(committed[i]->key.incarnation), false}), Kind::version);
    }

    // By a part's number: its last replacement, of the attempt that committed. Those before it failed, and the manifest names none of them.
    using Replacements = std::map<std::uint32_t, std::uint32_t>;
    static std::optional<PartFileName> committed_part(const Seen& seen, const std::string& file) {
        std::optional<PartFileName> name = parse_part_file_name(file);
        if (!name) name = parse_part_index_file_name(file);
        if (name && name->attempt_id != seen.entry.manifest->attempt_id) name.reset();
        return name;
    }
    static Replacements replacements(const Seen& seen) {
        Replacements last;
        const auto look = [&](const std::vector<DirectoryEntry>& files) {
            for (const DirectoryEntry& file : files)
                if (const auto name = committed_part(seen, file.name)) last[name->part] = std::max(last[name->part], name->replacement);
        };
        look(seen.entry.files);
        for (const CatalogEntry::Below& below : seen.entry.elsewhere) look(below.files);
        return last;
    }
    static bool is_left_over(const Seen& seen, const Replacements& last, const DirectoryEntry& file) {
        if (parse_attempt_of(file.name) != seen.entry.manifest->attempt_id) return true;
        const auto name = committed_part(seen, file.name);
        return name && name->replacement < last.at(name->part);
    }

    // Of attempts of this incarnation that lost, and parts of the one that won which others took the place of: no manifest can name them, nor be published, any more.
    void other_attempts(const Seen& seen) {
        std::vector<const DirectoryEntry*> parts, manifests;
        const std::string directory = place_.layout().version(seen.key);
        const Replacements last = replacements(seen);
        for (const DirectoryEntry& file : seen.entry.files) {
            if (is_part_file(file.name) && is_left_over(seen, last, file)) parts.push_back(&file);
            if (parse_temporary_file_name(file.name) && is_old(directory + "/" + file.name, options_.before_s))
                manifests.push_back(&file);
        }
        take_files(seen, "parts of attempts that did not commit", directory, parts);
        take_files(seen, "unpublished manifests", directory, manifests);
        for (const CatalogEntry::Below& below : seen.entry.elsewhere) {
            parts.clear();
            for (const DirectoryEntry& file : below.files)
                if (is_left_over(seen, last, file)) parts.push_back(&file);
            take_files(seen, "parts of attempts that did not commit", Layout::version_below(below.root, seen.key), parts);
        }
    }

    // Who is young is not asked about: its daemon may be busy.
    void unfinished(Seen seen) {
        const bool is_old = old(seen);
        if (is_old && !seen.key.incarnation.low) identify(seen);
        GcVersion version = facts_of(seen);
        version.is_old = is_old;
        act(seen, judge_unfinished(facts_, version, is_old ? job_of(seen.key.incarnation) : GcJob(), options_.unknown), Kind::give_up);
    }

    GcJob job_of(Id128 incarnation) { return {evidence_.over(incarnation), evidence_.served_here(incarnation)}; }

    // Parts tell the first half of their incarnation only; their footers, if they got that far, tell all of it.
    void identify(Seen& seen) {
        if (const auto id = evidence_.whole_id(seen.key.incarnation.high)) seen.key.incarnation = *id;
        identify_by(seen, place_.layout().persistent, seen.entry.files);
        for (const CatalogEntry::Below& below : seen.entry.elsewhere) identify_by(seen, below.root, below.files);
    }

    void identify_by(Seen& seen, const std::string& root, const std::vector<DirectoryEntry>& files) {
        for (const DirectoryEntry& file : files) {
            if (seen.key.incarnation.low) return;
            if (!is_part_file(file.name)) continue;  // the index beside a part has its footer
            const std::string path = Layout::version_below(root, seen.key) + "/" + file.name;
            const auto footer = place_.run(read_footer(place_.world(), path, nullptr, place_.restore()));
            if (!footer.ok() || footer->key.incarnation.high != seen.key.incarnation.high) continue;
            seen.key.incarnation = footer->key.incarnation;
            seen.ranks = footer->ranks;
        }
    }

    void given_up(const Seen& seen) {
        if (!seen.entry.away.empty()) return spare(seen, "removed, but for what may lie where nothing can be done now: " + seen.entry.away.front().text());
        std::uint64_t parts_bytes = 0;
        bool has_parts = !seen.entry.elsewhere.empty();
        for (const CatalogEntry::Below& below : seen.entry.elsewhere)
            for (const DirectoryEntry& file : below.files) parts_bytes += file.bytes;
        for (const DirectoryEntry& file : seen.entry.files)
            if (parse_attempt_of(file.name)) {
                has_parts = true;
                parts_bytes += file.bytes;
            }
        GcVersion version = facts_of(seen);
        version.is_old = old(seen);
        const std::size_t before = collected_.take.size();
        act(seen, judge_given_up(facts_, version, version.is_old ? job_of(seen.key.incarnation) : GcJob(), has_parts), Kind::tombstone);
        if (collected_.take.size() > before && collected_.take.back().fence == Fence::keep) collected_.take.back().bytes = parts_bytes;
    }

    void empty_directories(const std::string& series) {
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
    const GcSeries facts_;
    Evidence& evidence_;
    CollectOptions options_;
    std::vector<VersionKey> gone_;  // committed ones that are taken
    Collected collected_;
};

}  // namespace

bool fence_can_go(const Series& series, const Seen& seen, const Evidence& evidence,
                  const std::vector<const Seen*>& gone) {
    std::vector<VersionKey> keys;
    for (const Seen* each : gone) keys.push_back(each->key);
    return fence_can_go(facts_of(series), facts_of(seen), {evidence.over(seen.key.incarnation), false}, keys);
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
