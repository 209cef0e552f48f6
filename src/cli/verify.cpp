// `cairn verify`: reads every block of committed versions and compares checksums.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/series.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Verdict {
    VersionKey key;
    std::uint64_t bytes = 0;
    std::vector<Damage> damage;
};

std::string where_of(const Damage& damage) {
    std::string text = damage.part.empty() ? "" : damage.part + ": ";
    text += damage.status.text();
    return for_terminal(text);
}

// Damage of a manifest or a footer names no block.
bool names_block(const Damage& damage) {
    return damage.block != 0 || damage.rank != 0 || !damage.region.empty() ||
           damage.status.text() == "checksum differs";
}

void print(Console& console, const std::vector<Verdict>& verdicts) {
    TextTable summary({left("checkpoint"), right("version"), right("images"), left("verdict")});
    TextTable list({left("checkpoint"), right("version"), left("part"), right("block"), right("rank"), left("region"),
                    left("what is wrong")});
    for (const Verdict& verdict : verdicts) {
        const std::string version = std::to_string(verdict.key.version);
        summary.add({verdict.key.name, version, format_bytes(verdict.bytes),
                     verdict.damage.empty() ? "whole" : "damaged in " + plural(verdict.damage.size(), "place")});
        for (const Damage& damage : verdict.damage) {
            const bool block = names_block(damage);
            list.add({verdict.key.name, version, damage.part.empty() ? "-" : for_terminal(damage.part),
                      block ? std::to_string(damage.block) : "-", block ? std::to_string(damage.rank) : "-",
                      damage.region.empty() ? "-" : for_terminal(damage.region), for_terminal(damage.status.text())});
        }
    }
    console.out << summary.to_string();
    if (list.rows() != 0) console.out << "\n" << list.to_string();
}

void print_json(Console& console, const std::vector<Verdict>& verdicts) {
    Json document = {{"versions", Json::array()}};
    for (const Verdict& verdict : verdicts) {
        Json damages = Json::array();
        for (const Damage& damage : verdict.damage)
            damages.push_back({{"part", damage.part},
                               {"block", damage.block},
                               {"rank", damage.rank},
                               {"region", damage.region},
                               {"code", code_name(damage.status.code())},
                               {"text", damage.status.text()}});
        document["versions"].push_back({{"checkpoint", verdict.key.name},
                                        {"version", verdict.key.version},
                                        {"incarnation", verdict.key.incarnation.hex()},
                                        {"image_bytes", verdict.bytes},
                                        {"whole", verdict.damage.empty()},
                                        {"damage", std::move(damages)}});
    }
    console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
}

// The versions to look at: one, or all committed and damaged ones.
Result<std::vector<Seen>> chosen(Place& place, const Arguments& arguments) {
    const ScratchView no_scratch;
    std::vector<std::string> names = {arguments.text("NAME")};
    if (!arguments.given("NAME")) {
        TRY_ASSIGN(names, series_names(place, no_scratch));
    }
    std::vector<Seen> versions;
    for (const std::string& name : names) {
        Result<Series> series = read_series(place, no_scratch, name);
        if (!series.ok() && !arguments.given("NAME") && series.code() == Code::not_found) continue;
        if (!series.ok()) return series.status();
        if (const std::string& asked = arguments.text("VERSION");
            arguments.given("VERSION") && asked != "latest" && asked != "newest") {
            TRY_ASSIGN(const Version version, parse_version(arguments.text("VERSION")));
            std::erase_if(series->versions, [&](const Seen& seen) { return seen.key.version != version; });
        } else if (arguments.given("VERSION")) {
            TRY_ASSIGN(Seen latest, pick_committed(*series, "latest", {}));
            series->versions = {std::move(latest)};
        }
        for (Seen& seen : series->versions)
            if (seen.state == SeenState::committed || seen.state == SeenState::damaged)
                versions.push_back(std::move(seen));
    }
    if (versions.empty() && arguments.given("NAME"))
        return not_found(arguments.text("NAME") + " has no committed version" +
                         (arguments.given("VERSION") ? " " + arguments.text("VERSION") : "") + "; `cairn ls " +
                         arguments.text("NAME") + "`");
    return versions;
}

Status run_verify(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    TRY_ASSIGN(const std::vector<Seen> versions, chosen(place, arguments));
    std::uint64_t total_bytes = 0, done_bytes = 0;
    for (const Seen& seen : versions) total_bytes += seen.image_bytes;
    std::vector<Verdict> verdicts;
    std::size_t damaged = 0;
    {
        Progress progress(console, "verify", total_bytes);
        for (const Seen& seen : versions) {
            Verdict verdict{seen.key, seen.image_bytes, {}};
            if (seen.entry.manifest) {
                TRY_ASSIGN(verdict.damage, place.run(verify_version(
                                               place.world(), place.layout(), *seen.entry.manifest, place.restore(),
                                               [&](std::uint64_t bytes) { progress.set(done_bytes += bytes); })));
            } else {
                Damage damage;
                damage.status = *seen.entry.damage;
                verdict.damage.push_back(std::move(damage));
            }
            damaged += verdict.damage.empty() ? 0 : 1;
            verdicts.push_back(std::move(verdict));
        }
    }
    if (console.json)
        print_json(console, verdicts);
    else if (verdicts.empty())
        console.out << "nothing is committed under " << place.layout().persistent << "\n";
    else
        print(console, verdicts);
    if (damaged == 0) return {};
    const Verdict& first =
        *std::find_if(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return !v.damage.empty(); });
    return corrupt(std::to_string(damaged) + " of " + plural(versions.size(), "version") + " damaged; the first is " +
                   what(first.key) + ": " + where_of(first.damage.front()) +
                   "\nA restart passes damaged versions over and takes the next older one");
}

}  // namespace

const Command verify_command = {
    "verify",
    "read every block of committed versions and check it",
    "Reads manifests, footers and every block of data, and names what is damaged: part, block, rank and region. All "
    "damage is listed, not only\n"
    "the first. On a terminal a bar shows how far it is.",
    {{"NAME", OptionKind::text, "", "The checkpoint; without it, all."},
     {"VERSION", OptionKind::text, "", "The version, or latest; without it, all that are committed."}},
    {{Code::corrupt, "something is damaged"}, {Code::not_found, "no such checkpoint or version"}},
    true,
    &run_verify,
};

}  // namespace cairn::cli
