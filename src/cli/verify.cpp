// `cairn verify`: reads every block of committed versions, and of images in scratch that are not committed yet, and
// compares checksums: of what is stored, and with --decode also of what that decodes to.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <tuple>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/series.hpp"
#include "read/verify.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

// What stands in a checkpoint's lineage, and can not be read.
struct LineageDamage {
    std::string name;
    Status status;
};

std::string ranks_text(const std::vector<Rank>& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + format_ranges(ranks);
}

// What was not read, or not understood (no right, no memory, no thread, no time, a root that is away, a newer format or codec), is no damage; but whoever asked did not learn that
// it is whole.
bool is_unread(const Status& status) { return status.code() != Code::corrupt; }

std::string verdict_text(const Verdict& verdict) {
    const auto unread = static_cast<std::size_t>(
        std::count_if(verdict.damage.begin(), verdict.damage.end(), [](const Damage& damage) { return is_unread(damage.status); }));
    std::string text = verdict.damage.empty()             ? "whole"
                       : unread == verdict.damage.size() ? "can not be read"
                                                          : "damaged in " + plural(verdict.damage.size() - unread, "place");
    if (!verdict.from_scratch) return text;
    const std::size_t checked = verdict.ranks - verdict.unchecked.size() - verdict.absent.size();
    if (verdict.damage.empty() && !verdict.whole())
        text = checked == 0 ? "not checked"
                            : "no damage in " + plural(checked, "image") + " of " + std::to_string(verdict.ranks);
    if (!verdict.unchecked.empty()) text += "; no checksums yet: " + ranks_text(verdict.unchecked);
    if (!verdict.absent.empty()) text += "; not on this host: " + ranks_text(verdict.absent);
    return text;
}

std::string where_of(const Damage& damage) {
    std::string text = damage.part.empty() || damage.status.text().find(damage.part) != std::string::npos ? "" : damage.part + ": ";
    text += damage.status.text();
    return for_terminal(text);
}

template <class Number>
std::string number_text(const std::optional<Number>& number) {
    return number ? std::to_string(*number) : "-";
}

template <class Number>
Json number_json(const std::optional<Number>& number) {
    return number ? Json(*number) : Json(nullptr);
}

void print_lineage(Console& console, const std::vector<LineageDamage>& lineage) {
    TextTable list({left("checkpoint"), left("what is wrong with its lineage")});
    for (const LineageDamage& damage : lineage) list.add({damage.name, for_terminal(damage.status.text())});
    if (list.rows() != 0) console.out << "\n" << list.to_string();
}

// Whether several incarnations of a job took one of these versions: then name and number do not say which is meant.
bool has_namesakes(const std::vector<Verdict>& verdicts) {
    std::set<std::pair<std::string, Version>> seen;
    return std::any_of(verdicts.begin(), verdicts.end(), [&](const Verdict& verdict) { return !seen.emplace(verdict.key.name, verdict.key.version).second; });
}

void print(Console& console, const std::vector<Verdict>& verdicts, const std::vector<LineageDamage>& lineage) {
    const bool several = has_namesakes(verdicts);
    const auto with = [several](auto cells, auto incarnation) {  // behind the version
        if (several) cells.insert(cells.begin() + 2, std::move(incarnation));
        return cells;
    };
    using Columns = std::vector<TextTable::Column>;
    using Cells = std::vector<std::string>;
    TextTable summary(with(Columns{left("checkpoint"), right("version"), left("level"), right("images"), left("verdict")}, left("incarnation")));
    TextTable list(with(Columns{left("checkpoint"), right("version"), left("part"), right("block"), right("rank"), left("region"), left("what is wrong")}, left("incarnation")));
    for (const Verdict& verdict : verdicts) {
        const std::string version = std::to_string(verdict.key.version), incarnation = short_id(verdict.key.incarnation);
        summary.add(with(Cells{verdict.key.name, version, verdict.from_scratch ? "scratch" : "persistent", format_bytes(verdict.bytes), verdict_text(verdict)}, incarnation));
        for (const Damage& damage : verdict.damage)
            list.add(with(Cells{verdict.key.name, version, damage.part.empty() ? "-" : for_terminal(damage.part), number_text(damage.block), number_text(damage.rank),
                                damage.region.empty() ? "-" : for_terminal(damage.region), for_terminal(damage.status.text())},
                          incarnation));
    }
    console.out << summary.to_string();
    if (list.rows() != 0) console.out << "\n" << list.to_string();
    print_lineage(console, lineage);
}

void print_json(Console& console, const std::vector<Verdict>& verdicts, const std::vector<LineageDamage>& lineage, VerifyDepth depth) {
    Json document = {{"decoded", depth == VerifyDepth::decoded}, {"versions", Json::array()}, {"lineage_damage", Json::array()}};
    for (const LineageDamage& damage : lineage)
        document["lineage_damage"].push_back({{"checkpoint", damage.name}, {"code", code_name(damage.status.code())}, {"text", damage.status.text()}});
    for (const Verdict& verdict : verdicts) {
        Json damages = Json::array();
        for (const Damage& damage : verdict.damage)
            damages.push_back({{"part", damage.part},
                               {"block", number_json(damage.block)},
                               {"rank", number_json(damage.rank)},
                               {"region", damage.region},
                               {"code", code_name(damage.status.code())},
                               {"text", damage.status.text()}});
        document["versions"].push_back({{"checkpoint", verdict.key.name},
                                        {"version", verdict.key.version},
                                        {"incarnation", verdict.key.incarnation.hex()},
                                        {"level", verdict.from_scratch ? "scratch" : "persistent"},
                                        {"image_bytes", verdict.bytes},
                                        {"whole", verdict.whole()},
                                        {"unchecked_ranks", verdict.unchecked},
                                        {"absent_ranks", verdict.absent},
                                        {"damage", std::move(damages)}});
    }
    console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
}

bool can_be_verified(const Seen& seen) {
    return seen.state == SeenState::committed || seen.state == SeenState::damaged || in_scratch_only(seen);
}

// The versions to look at: one, or all that are committed, damaged, or in this host's scratch.
// A checkpoint of several that can not be read is told through `failed`.
Result<std::vector<Seen>> chosen(Place& place, const ScratchView& scratch, const Arguments& arguments, std::vector<LineageDamage>& lineage, Status& failed) {
    const bool one_name = arguments.given("NAME");
    std::vector<std::string> names = {arguments.text("NAME")};
    if (!one_name) {
        TRY_ASSIGN(names, series_names(place, scratch));
    }
    const std::string& asked = arguments.text("VERSION");
    std::vector<Seen> versions;
    for (const std::string& name : names) {
        Result<Series> series = read_series(place, scratch, name, Manifests::heads);
        if (!series.ok() && !one_name && series.code() == Code::not_found) continue;
        if (!series.ok() && one_name) return series.status();
        if (!series.ok()) {
            if (failed.ok()) failed = series.status().within(name + " can not be read");
            continue;
        }
        for (Status& problem : lineage_problems(*series)) lineage.push_back({name, std::move(problem)});
        if (!asked.empty() && asks_for_newest(asked)) {
            TRY_ASSIGN(Seen latest, pick_readable(*series, asked, {}));
            series->versions = {std::move(latest)};
        } else if (!asked.empty()) {
            TRY_ASSIGN(const Version version, parse_version(asked));
            const auto is_it = [&](const Seen& seen) { return seen.key.version == version && can_be_verified(seen); };
            if (std::none_of(series->versions.begin(), series->versions.end(), is_it))
                return pick_readable(*series, asked, {}).status();
            std::erase_if(series->versions, [&](const Seen& seen) { return seen.key.version != version; });
        }
        for (Seen& seen : series->versions)
            if (can_be_verified(seen)) versions.push_back(std::move(seen));
    }
    if (versions.empty() && one_name)
        return not_found(arguments.text("NAME") +
                         " has no version that is committed or in this host's scratch; `cairn ls " +
                         arguments.text("NAME") + "`");
    return versions;
}

Status failure_of(const std::vector<Verdict>& verdicts, std::size_t count) {
    const Verdict* where = nullptr;
    const Damage* worst = nullptr;  // the first damage, else the first that can not be read
    for (const Verdict& verdict : verdicts)
        for (const Damage& damage : verdict.damage) {
            if (worst && (!is_unread(worst->status) || is_unread(damage.status))) continue;
            where = &verdict;
            worst = &damage;
        }
    const std::string of = std::to_string(count) + " of " + plural(verdicts.size(), "version");
    const std::string whose = has_namesakes(verdicts) ? " of incarnation " + short_id(where->key.incarnation) : "";
    const std::string first = "; the first is " + version_text(where->key) + whose + ": " + where_of(*worst);
    if (is_unread(worst->status)) return Status(worst->status.code(), of + " can not be read" + first);
    const auto is_of_no_image = [](const Damage& damage) { return damage.of_no_image || is_unread(damage.status); };
    const bool is_restored = std::all_of(verdicts.begin(), verdicts.end(), [&](const Verdict& verdict) { return std::all_of(verdict.damage.begin(), verdict.damage.end(), is_of_no_image); });
    return corrupt(of + " damaged" + first + (is_restored ? "\nA restart does without what is damaged: it is of no image" : "\nA restart passes damaged versions over and takes the next older one that is whole"));
}

Status failure_of(const std::vector<LineageDamage>& lineage) {
    const LineageDamage* worst = nullptr;
    for (const LineageDamage& damage : lineage)
        if (!worst || (is_unread(worst->status) && !is_unread(damage.status))) worst = &damage;
    if (!worst) return {};
    const std::string text = "no version is damaged, but the lineage of " + worst->name + (is_unread(worst->status) ? " can not be read: " : " is: ") + worst->status.text();
    return is_unread(worst->status) ? Status(worst->status.code(), text) : corrupt(text);
}

// Of a version of which nothing can be said; the others are looked at all the same.
Verdict verdict_of(const Seen& seen, Status status) {
    Verdict verdict;
    verdict.key = seen.key;
    verdict.bytes = seen.image_bytes;
    verdict.ranks = seen.ranks;
    verdict.from_scratch = in_scratch_only(seen);
    verdict.damage.emplace_back().status = std::move(status);
    return verdict;
}

// Of a run that several images share by turns each turn is told, and many say the same.
void tell_once(std::vector<Damage>& damages) {
    std::set<std::tuple<std::string, std::optional<std::uint64_t>, std::optional<Rank>, std::string, std::string>> told;
    std::erase_if(damages, [&](const Damage& damage) { return !told.emplace(damage.part, damage.block, damage.rank, damage.region, damage.status.text()).second; });
}

Status run_verify(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    const ScratchView scratch = read_scratch(place);
    Status failed;
    std::vector<LineageDamage> lineage;
    Result<std::vector<Seen>> looked_for = chosen(place, scratch, arguments, lineage, failed);
    if (!looked_for.ok())
        for (const LineageDamage& damage : lineage) console.err << "cairn verify: " << for_terminal(damage.status.text()) << "\n";
    TRY_ASSIGN(const std::vector<Seen> versions, std::move(looked_for));
    for (const Status& problem : scratch.problems) console.err << "cairn verify: " << problem.text() << "\n";
    const VerifyDepth depth = arguments.given("decode") ? VerifyDepth::decoded : VerifyDepth::stored;
    std::uint64_t total_bytes = 0;
    for (const Seen& seen : versions) total_bytes += seen.image_bytes;
    std::vector<Verdict> verdicts;
    std::size_t damaged = 0;
    {
        Progress progress(console, "verify", total_bytes);
        std::uint64_t done_bytes = 0;
        const auto advance = [&](std::uint64_t bytes) { progress.set(done_bytes += bytes); };
        for (const Seen& seen : versions) {
            Result<Verdict> verdict = place.run(verify_seen(place.world(), place.layout(), seen, scratch.images, place.restore(), advance, depth));
            verdicts.push_back(verdict.ok() ? std::move(verdict).value() : verdict_of(seen, std::move(verdict).status()));
            tell_once(verdicts.back().damage);
            damaged += verdicts.back().damage.empty() ? 0 : 1;
        }
    }
    if (console.json)
        print_json(console, verdicts, lineage, depth);
    else if (verdicts.empty()) {
        console.out << "nothing is committed under " << place.layout().persistent
                    << ", and nothing is in this host's scratch\n";
        print_lineage(console, lineage);
    } else
        print(console, verdicts, lineage);
    // Of one version that was asked for by name no lineage decides.
    const Status of_lineage = arguments.given("VERSION") ? Status() : failure_of(lineage);
    if (damaged == 0 && of_lineage.ok()) return failed;
    if (!failed.ok()) console.err << "cairn verify: " << failed.text() << "\n";
    return damaged == 0 ? of_lineage : failure_of(verdicts, damaged);
}

}  // namespace

const Command verify_command = {
    "verify",
    "read every block of committed versions, and of images in scratch, and check it",
    "Reads manifests, footers and every block of data, and names what is damaged: part, block, rank and region. All "
    "damage is listed, not only\n"
    "the first. On a terminal a bar shows how far it is.\n\n"
    "Of what was stored encoded (flush.codec) the stored bytes are compared with their checksum: that finds what storage did to them, as fast as it reads, and takes no codec.\n"
    "--decode also decodes each run and compares what comes out with the checksums that were made of the image before it was encoded, as a restart does. It takes a processor's time, and finds\n"
    "as well what went wrong before the bytes were stored. Without a codec both are the same.\n\n"
    "A version that is not committed is checked as far as its images are in this host's scratch and its daemon has "
    "made "
    "their checksums (it does\n"
    "when it first reads them); the other ranks are named, and are no damage. An image on a scratch disk that the "
    "machine's restart may have torn, and that\n"
    "can not prove itself, is damage, as it is for the daemon.\n\n"
    "Damaged records of the lineage are named, too, and are damage, but where one VERSION is asked for: they cost no version, and `cairn repair` writes them anew.",
    {{"NAME", OptionKind::text, "", "The checkpoint; without it, all."},
     {"VERSION", OptionKind::text, "",
      "The version, or newest; without it, all that are committed or in this host's scratch."},
     {"--decode", OptionKind::flag, "", "Decode what is encoded, and compare also what comes out."}},
    {{Code::corrupt, "something is damaged"},
     {Code::permission, "nothing is damaged as far as it can be read, but not all may be read"},
     {Code::unsupported, "the same, but something is in a newer format, or, with --decode, encoded in a way that this Cairn does not know"},
     {Code::not_found, "no such checkpoint or version, or neither committed nor on this host"}},
    true,
    &run_verify,
};

}  // namespace cairn::cli
