// `cairn rm`: committed versions off persistent.
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "catalog/needed.hpp"
#include "catalog/roots.hpp"
#include "cli/gc_collect.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

// A tombstone alone is what rm leaves.
bool removable(const Seen& seen) {
    const bool has_more = seen.entry.files.size() > 1 || !seen.entry.elsewhere.empty() || !seen.entry.away.empty();
    return seen.state == SeenState::committed || seen.state == SeenState::damaged || (seen.state == SeenState::given_up && has_more);
}

// The newest committed version of the current lineage is what a restart needs; where it can not be told which that is, of every lineage.
std::vector<const Seen*> needed(const Series& series) {
    std::map<Id128, const Seen*> newest;
    const bool is_told = series.doubt_of_newest().ok();
    for (const Seen& seen : series.versions) {
        const bool counts = seen.state == SeenState::committed && (seen.current || !is_told);
        if (counts) newest[is_told ? Id128() : seen.key.incarnation] = &seen;
    }
    std::vector<const Seen*> all;
    for (const auto& [incarnation, seen] : newest) all.push_back(seen);
    return all;
}

Result<std::vector<const Seen*>> chosen(const Series& series, const Arguments& arguments) {
    const std::string& incarnation = arguments.text("incarnation");
    std::vector<const Seen*> out;
    for (const std::string& text : arguments.texts("VERSION")) {
        TRY_ASSIGN(const Version version, parse_version(text));
        const std::size_t before = out.size();
        for (const Seen& seen : series.versions)
            if (seen.key.version == version && seen.entry.unlisted())
                return Status(seen.entry.damage->code(), seen.entry.damage->text() + ": nothing can be removed there; `cairn repair " + series.name + "` tells what can be done");
        for (const Seen& seen : series.versions)
            if (seen.key.version == version && removable(seen) && seen.key.incarnation.hex().starts_with(incarnation))
                out.push_back(&seen);
        if (out.size() == before)
            return not_found("nothing to remove: " + series.name + " has no committed version " + text +
                             (incarnation.empty() ? "" : " of incarnation " + incarnation) + "; `cairn ls " +
                             series.name + "`, and `cairn gc` for what is left behind");
        if (out.size() > before + 1)
            return invalid_argument("several incarnations have version " + text + " of " + series.name +
                                    "; choose one with --incarnation (`cairn ls " + series.name + "` lists them)");
    }
    std::sort(out.begin(), out.end(), std::greater<>());  // the newest first, before what it depends on
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

// By what is not removed with it.
Status check_none_needed(const Series& series, const std::vector<const Seen*>& versions) {
    std::vector<VersionKey> gone;
    for (const Seen* seen : versions) gone.push_back(seen->key);
    std::vector<Dependent> dependents;
    for (const Seen& seen : series.versions)
        if (const std::optional<Dependent> dependent = dependent_of(seen.entry)) dependents.push_back(*dependent);
    for (const VersionKey& key : gone)
        if (const Dependent* by = needed_by(dependents, key, gone))
            return Status(Code::permission, version_text(key) + " stays: " + needed_text(*by) + "; remove that one first, or both at once");
    return {};
}

Status remove(Place& place, const Seen& seen, Fence fence) {
    World& world = place.world();
    if (seen.entry.manifest) place.know_roots({seen.entry.manifest->roots.begin(), seen.entry.manifest->roots.end()});
    if (seen.state == SeenState::given_up)
        return place.run(clear_version(world, place.layout(), *seen.entry.manifest, fence, place.io_wait()));
    const Manifest tombstone = tombstone_of(seen.key, seen.epoch, seen.parent, seen.ranks, roots_of(seen.entry));
    return place.run(remove_version(world, place.layout(), tombstone, fence, place.io_wait()));
}

Status run_rm(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    TRY_ASSIGN(const Series series, read_series(place, read_scratch(place), arguments.text("NAME"), Manifests::whole, Roots::all));
    tell_lineage_problems(console, "rm", series);
    TRY_ASSIGN(const std::vector<const Seen*> versions, chosen(series, arguments));
    for (const Seen* last : needed(series))
        if (!arguments.given("force") && std::find(versions.begin(), versions.end(), last) != versions.end())
            return invalid_argument(
                version_text(last->key) + " is the newest committed one" + (series.doubt_of_newest().ok() ? ", which a restart would take" : " of its incarnation, and may be what a restart would take") +
                "; --force removes it nevertheless");
    TRY(check_none_needed(series, versions));
    TRY_ASSIGN(const Evidence evidence, Evidence::gather(place, 0));
    std::uint64_t freed_bytes = 0;
    std::size_t fenced = 0;
    Status failed;
    Json removed = Json::array();
    for (const Seen* seen : versions) {
        const bool lift = fence_can_go(series, *seen, evidence, versions);
        failed = remove(place, *seen, lift ? Fence::lift : Fence::keep).within("removing " + version_text(seen->key));
        if (!failed.ok()) break;
        tell_put_aside(place, console, "rm", place.layout().version(seen->key));
        if (!lift) ++fenced;
        freed_bytes += seen->stored_bytes;
        removed.push_back({{"version", seen->key.version},
                           {"incarnation", seen->key.incarnation.hex()},
                           {"bytes", seen->stored_bytes},
                           {"tombstone", !lift}});
        if (!console.json)
            console.out << "removed " << version_text(seen->key) << ", " << format_bytes(seen->stored_bytes) << "\n";
    }
    if (!removed.empty()) fill_reserve(place, console, "rm");
    if (fenced != 0)
        console.err
            << "cairn rm: note: " << plural(fenced, "tombstone")
            << " left, so that no daemon or restart takes what was removed out of scratch again; `cairn gc` takes "
            << (fenced == 1 ? "it" : "them") << " away when nobody could\n";
    if (console.json) {
        const Json document = {{"checkpoint", series.name}, {"removed", std::move(removed)}, {"bytes", freed_bytes}};
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
    }
    return failed;
}

}  // namespace

const Command rm_command = {
    "rm",
    "remove versions from persistent",
    "A tombstone takes the place of the manifest, in one step and durably, then the parts go: at every instant a "
    "version "
    "is whole or not there.\n"
    "The tombstone keeps daemons, and a restart, from taking the version out of scratch again. It goes with the rest "
    "when "
    "the job is over and a\n"
    "newer version is committed; else it stays (`cairn ls`: given up), and `cairn gc` takes it away when that is "
    "so.\n\n"
    "The newest committed version of the current lineage is only removed with --force. One on which a newer one depends is not removed before that.",
    {{"NAME", OptionKind::text, "", "The checkpoint.", true},
     {"VERSION", OptionKind::text, "", "The versions.", true, true},
     {"--force", OptionKind::flag, "", "Also the newest committed one."},
     {"--incarnation", OptionKind::text, "HEX",
      "The incarnation (its first digits), where several have this version."}},
    {{Code::invalid_argument, "the version is the newest committed one, or several incarnations have it"},
     {Code::permission, "a newer version depends on it: parts of it are parts of that one, too"},
     {Code::not_found, "no such checkpoint or version"}},
    true,
    &run_rm,
};

}  // namespace cairn::cli
