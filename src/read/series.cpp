// Series: joins the catalog, the lineage and scratch by (version, incarnation), and answers which version a person means.
#include "read/series.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "catalog/roots.hpp"
#include "format/names.hpp"

namespace cairn {

namespace {

SeenState state_of(const Seen& seen) {
    if (seen.entry.damage) return SeenState::damaged;
    if (seen.entry.manifest) return seen.entry.manifest->abandoned ? SeenState::given_up : SeenState::committed;
    if (seen.scratch_ranks.empty()) return SeenState::unfinished;
    return seen.scratch_ranks.size() == seen.ranks ? SeenState::sealed : SeenState::partial;
}

Seen from_entry(CatalogEntry entry) {
    Seen seen;
    seen.key = entry.key;
    for (const DirectoryEntry& file : entry.files) seen.stored_bytes += file.bytes;
    for (const CatalogEntry::Below& below : entry.elsewhere)
        for (const DirectoryEntry& file : below.files) seen.stored_bytes += file.bytes;
    if (entry.whole && entry.elsewhere.empty())
        for (const PartInfo& part : entry.whole->parts) seen.stored_bytes += part.root == 0 || part.origin != 0 ? 0 : part.bytes + part.index_bytes;
    if (entry.manifest) {
        seen.ranks = entry.manifest->ranks;
        seen.epoch = entry.manifest->epoch;
        seen.parent = entry.manifest->parent;
        seen.image_bytes = entry.manifest->image_bytes;
    }
    seen.entry = std::move(entry);
    return seen;
}

void add_image(Seen& seen, const ScratchImage& image) {
    if (!seen.entry.manifest) {
        seen.key = image.key;
        seen.ranks = image.ranks;
        seen.epoch = image.epoch;
        seen.parent = image.parent;
        seen.image_bytes += image.bytes;
    }
    seen.scratch_ranks.push_back(image.rank);
}

std::string known_versions(const Series& series) {
    std::set<Version> numbers;
    for (const Seen& seen : series.versions)
        if (seen.state == SeenState::committed) numbers.insert(seen.key.version);
    if (numbers.empty()) return "none is committed";
    std::string text = "committed are ";
    std::size_t left = numbers.size();
    for (const Version version : numbers) {
        if (left-- > 10) continue;  // the newest ten
        text += (text.ends_with(' ') ? "" : ", ") + std::to_string(version);
    }
    return text;
}

}  // namespace

std::string_view state_name(const Seen& seen) {
    static constexpr std::array<std::string_view, 6> names = {"committed",  "sealed",   "partial",
                                                              "unfinished", "given up", "damaged"};
    if (seen.entry.damage && seen.entry.damage->code() == Code::permission) return "unreadable";
    return names[static_cast<std::size_t>(seen.state)];
}

Result<Series> join_series(const Layout& layout, const std::string& name, LineageRecords records, std::vector<CatalogEntry> entries,
                           const std::vector<ScratchImage>& images) {
    Series series;
    series.name = name;
    std::vector<SealedVersion> sealed;
    for (const ScratchImage& image : images)
        if (image.key.name == name)
            sealed.push_back({image.key.incarnation, image.epoch, image.key.version, image.parent});
    series.lineage = current_lineage(records, entries, sealed);
    series.opens = std::move(records.opens);

    // Parts alone tell the first half of their incarnation only (format/names).
    std::map<std::pair<Version, std::uint64_t>, Seen> joined;
    for (CatalogEntry& entry : entries) {
        const auto place_of = std::pair(entry.key.version, entry.key.incarnation.high);
        joined[place_of] = from_entry(std::move(entry));
    }
    for (const ScratchImage& image : images)
        if (image.key.name == name) add_image(joined[{image.key.version, image.key.incarnation.high}], image);
    for (auto& [where, seen] : joined) {
        for (const LineageEntry& open : series.opens)
            if (open.open.incarnation && open.open.incarnation.high == where.second && seen.epoch == 0) {
                seen.key.incarnation = open.open.incarnation;
                seen.epoch = open.open.epoch;
                seen.ranks = open.open.ranks;
            }
        std::sort(seen.scratch_ranks.begin(), seen.scratch_ranks.end());
        seen.scratch_ranks.erase(std::unique(seen.scratch_ranks.begin(), seen.scratch_ranks.end()),
                                 seen.scratch_ranks.end());
        seen.current = series.lineage.contains(seen.key.incarnation, seen.key.version);
        seen.state = state_of(seen);
        series.versions.push_back(std::move(seen));
    }
    std::stable_sort(series.versions.begin(), series.versions.end(), [](const Seen& a, const Seen& b) {
        return std::pair(a.key.version, a.epoch) < std::pair(b.key.version, b.epoch);
    });
    if (series.versions.empty() && series.opens.empty() && records.unlisted.ok())
        return not_found("no checkpoint is named " + name + " under " + layout.persistent +
                         " or in scratch; `cairn ls` lists all");
    return series;
}

Task<Result<Series>> load_series(World& world, Layout layout, std::string name, std::vector<ScratchImage> images, Roots roots, Manifests manifests, Nanos io_wait) {
    CO_TRY(check_name(name));
    Result<std::vector<CatalogEntry>> entries = co_await list_versions(world, layout, name, world.clock.in(io_wait), manifests);
    if (!entries.ok()) co_return std::move(entries).status();
    if (roots == Roots::all) co_await look_elsewhere(world, layout, name, *entries, io_wait);
    Result<LineageRecords> records = co_await read_lineage(world, layout, name, world.clock.in(io_wait));
    if (!records.ok()) co_return std::move(records).status();
    co_return join_series(layout, name, std::move(records).value(), std::move(entries).value(), images);
}

Result<Version> parse_version(const std::string& text) {
    Version version = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
    if (error != std::errc{} || end != text.data() + text.size() || version == 0 || version == UINT64_MAX)
        return invalid_argument("'" + text + "' is not a version: a number from 1, below 2^64 - 1, or newest");
    return version;
}

bool asks_for_newest(const std::string& text) { return text.empty() || text == "latest" || text == "newest"; }

std::vector<const Seen*> damaged_above(const Series& series, const Seen& picked) {
    std::vector<const Seen*> found;
    for (const Seen& seen : series.versions)
        if (seen.state == SeenState::damaged && seen.key.version > picked.key.version && series.may_be_current(seen)) found.push_back(&seen);
    return found;
}

std::vector<Status> lineage_problems(const Series& series) {
    std::vector<Status> problems = series.lineage.passed_over;
    for (const Status* doubt : {&series.lineage.head, &series.lineage.tail})
        if (!doubt->ok()) problems.push_back(*doubt);
    return problems;
}

Status Series::doubt_of_newest() const {
    Version newest = 0;
    for (const Seen& seen : versions)
        if (seen.current && (seen.state == SeenState::committed || in_scratch_only(seen))) newest = std::max(newest, seen.key.version);
    return lineage.doubt_of(newest);
}

namespace {

// not_found where none is committed.
Result<Seen> committed_of(const Series& series, const std::string& text, const std::string& incarnation) {
    const bool latest = asks_for_newest(text);
    Version version = 0;
    if (!latest) {
        TRY_ASSIGN(version, parse_version(text));
    }
    std::vector<const Seen*> found;
    const Seen* damaged = nullptr;
    for (const Seen& seen : series.versions) {
        if (!latest && seen.key.version != version) continue;
        if (!seen.key.incarnation.hex().starts_with(incarnation)) continue;
        if (seen.state == SeenState::damaged && !latest) damaged = &seen;
        if (seen.state == SeenState::committed && (!latest || seen.current || !incarnation.empty()))
            found.push_back(&seen);
    }
    if (latest && incarnation.empty()) TRY(series.doubt_of_newest());
    if (latest && !found.empty()) return *found.back();
    if (found.size() > 1 && series.lineage.head.ok())
        for (const Seen* seen : found)
            if (seen->current) return *seen;
    if (found.size() > 1)
        return invalid_argument("several incarnations committed " + version_text(found[0]->key) +
                                (series.lineage.head.ok() ? ", none in the current lineage" : ", and which is in the current lineage can not be told") + "; choose one with "
                                "--incarnation (`cairn ls " +
                                series.name + "` lists them)");
    if (found.size() == 1) return *found.front();
    if (damaged) return Status(*damaged->entry.damage);
    return not_found((latest ? series.name + " has no committed version in its current lineage"
                             : series.name + " has no committed version " + std::to_string(version)) +
                     (incarnation.empty() ? "" : " of incarnation " + incarnation) + "; " + known_versions(series));
}

// Nothing was found: where the newest was asked for, damage is why.
Status unless_damaged(const Series& series, const std::string& text, const std::string& incarnation, Status not_there) {
    const Seen* newest = nullptr;
    for (const Seen& seen : series.versions)
        if (seen.state == SeenState::damaged && series.may_be_current(seen) && seen.key.incarnation.hex().starts_with(incarnation)) newest = &seen;
    if (!asks_for_newest(text) || !newest) return not_there;
    return Status(*newest->entry.damage).within("no version of " + series.name + " can be read, and version " + std::to_string(newest->key.version) + " is " + std::string(state_name(*newest)));
}

}  // namespace

Result<Seen> pick_committed(const Series& series, const std::string& text, const std::string& incarnation) {
    Result<Seen> committed = committed_of(series, text, incarnation);
    if (committed.code() == Code::not_found) return unless_damaged(series, text, incarnation, committed.status());
    return committed;
}

bool in_scratch_only(const Seen& seen) { return seen.state == SeenState::sealed || seen.state == SeenState::partial; }

Result<Seen> pick_readable(const Series& series, const std::string& text, const std::string& incarnation) {
    Result<Seen> committed = committed_of(series, text, incarnation);
    if (committed.code() != Code::not_found) return committed;
    const bool latest = asks_for_newest(text);
    const Seen* found = nullptr;
    std::string where;
    for (const Seen& seen : series.versions) {
        if (!seen.key.incarnation.hex().starts_with(incarnation)) continue;
        if (latest ? !seen.current && incarnation.empty() : std::to_string(seen.key.version) != text) continue;
        if (in_scratch_only(seen) && (!found || latest || !found->current)) found = &seen;
        if (latest) continue;
        if (seen.state == SeenState::given_up) where = "; it was given up or removed, and does not come back";
        if (seen.state == SeenState::unfinished)
            where =
                "; parts of it are there without a manifest, and no image of it is in this host's scratch: it is being "
                "flushed (`cairn status` on its nodes), or was left behind (`cairn gc`)";
    }
    if (found) return *found;
    return unless_damaged(series, text, incarnation, not_found(committed.status().text() + where));
}

}  // namespace cairn
