// `cairn rm`: committed versions off persistent.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/series.hpp"
#include "engine/removal.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

bool removable(const Seen& seen) {
    return seen.state == SeenState::committed || seen.state == SeenState::given_up || seen.state == SeenState::damaged;
}

// The newest committed version of the current lineage is what a restart needs.
const Seen* needed(const Series& series) {
    const Seen* newest = nullptr;
    for (const Seen& seen : series.versions)
        if (seen.current && seen.state == SeenState::committed) newest = &seen;
    return newest;
}

Result<std::vector<const Seen*>> chosen(const Series& series, const Arguments& arguments) {
    const std::string& incarnation = arguments.text("incarnation");
    std::vector<const Seen*> out;
    for (const std::string& text : arguments.texts("VERSION")) {
        TRY_ASSIGN(const Version version, parse_version(text));
        const std::size_t before = out.size();
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
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

Status run_rm(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    TRY_ASSIGN(const Series series, read_series(place, read_scratch(place), arguments.text("NAME")));
    TRY_ASSIGN(const std::vector<const Seen*> versions, chosen(series, arguments));
    const Seen* last = needed(series);
    if (!arguments.given("force") && std::find(versions.begin(), versions.end(), last) != versions.end())
        return invalid_argument(
            what(last->key) +
            " is the newest committed one, which a restart would take; --force removes it nevertheless");
    std::uint64_t freed_bytes = 0;
    Json removed = Json::array();
    for (const Seen* seen : versions) {
        if (!seen->scratch_ranks.empty())
            console.err << "cairn rm: note: images of " << what(seen->key)
                        << " are in this host's scratch; a daemon started anew commits them again\n";
        TRY(place.run(remove_version(place.world(), place.layout(), seen->entry, place.io_wait()))
                .within("removing " + what(seen->key)));
        freed_bytes += seen->stored_bytes;
        removed.push_back({{"version", seen->key.version},
                           {"incarnation", seen->key.incarnation.hex()},
                           {"bytes", seen->stored_bytes}});
        if (!console.json)
            console.out << "removed " << what(seen->key) << ", " << format_bytes(seen->stored_bytes) << "\n";
    }
    if (console.json) {
        const Json document = {{"checkpoint", series.name}, {"removed", std::move(removed)}, {"bytes", freed_bytes}};
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
    }
    return {};
}

}  // namespace

const Command rm_command = {
    "rm",
    "remove versions from persistent",
    "Removes the manifest first, durably, then the parts, so that a version is whole or not there at every instant. "
    "The newest committed version\n"
    "of the current lineage is only removed with --force.",
    {{"NAME", OptionKind::text, "", "The checkpoint.", true},
     {"VERSION", OptionKind::text, "", "The versions.", true, true},
     {"--force", OptionKind::flag, "", "Also the newest committed one."},
     {"--incarnation", OptionKind::text, "HEX",
      "The incarnation (its first digits), where several have this version."}},
    {{Code::invalid_argument, "the version is the newest committed one, or several incarnations have it"},
     {Code::not_found, "no such checkpoint or version"}},
    true,
    &run_rm,
};

}  // namespace cairn::cli
