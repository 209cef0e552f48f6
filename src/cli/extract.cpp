// `cairn extract`: an image, a region, a slice of an array or routed files out of a version, every byte verified on the way.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/extract_array.hpp"
#include "cli/extract_output.hpp"
#include "cli/rows.hpp"
#include "cli/series.hpp"
#include "read/regions.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

// A slice that was asked for, and what its bytes are.
struct Sliced {
    Extent array;
    std::vector<std::uint64_t> shape;  // of the slice
};

Status take_slice(Console& console, Place& place, const VersionCopies& copies, const Region& region, const Arguments& arguments, Wanted& one, std::optional<Sliced>& sliced, ReadCost& cost) {
    if (!arguments.given("slice") && !arguments.given("array")) return {};
    const std::string name = arguments.text("array") == "-" ? "" : arguments.text("array");
    TRY_ASSIGN(Extent array, find_array(console, place, copies, one.rank, region, arguments.given("array") ? &name : nullptr, cost));
    one.range = {region.offset + array.offset, array.length};
    sliced = Sliced{std::move(array), {}};
    const std::vector<std::uint64_t>& shape = sliced->array.shape;
    one.slice = ArraySlice::whole(one.range.length);
    sliced->shape = shape;
    if (!arguments.given("slice")) return {};
    const std::string text = arguments.text("slice");
    if (shape.empty()) return invalid_argument("--slice '" + for_terminal(text) + "': it is a single number, which has no axes; leave --slice out");
    const Result<std::vector<AxisRange>> axes = parse_slice(text, shape);
    if (!axes.ok()) return invalid_argument("--slice '" + for_terminal(text) + "': " + axes.status().text());
    one.slice = ArraySlice(type_bytes(sliced->array.type), shape, *axes);
    for (std::size_t i = 0; i < shape.size(); ++i) sliced->shape[i] = (*axes)[i].end - (*axes)[i].begin;
    return {};
}

Result<Wanted> region_of(Console& console, Place& place, VersionCopies& copies, Rank rank, const Arguments& arguments, std::optional<Sliced>& sliced, ReadCost& cost) {
    const std::string name = arguments.text("region");
    TRY_ASSIGN(FoundRegion found, place.run(find_region(place.world(), place.layout(), copies, rank, name, place.restore())));
    if (found.region) {
        Wanted one{rank, name, {found.region->offset, found.region->length}, {}};
        copies.set_regions(rank, {*found.region});  // so that damage is told with its name
        TRY(take_slice(console, place, copies, *found.region, arguments, one, sliced, cost));
        return one;
    }
    TRY(place.run(load_regions(place.world(), place.layout(), copies, {rank}, place.restore())));
    TRY_ASSIGN(const ImageInfo* const image, copies.image(rank));
    std::string known;
    for (const Region& region : image->regions)
        if (known.size() < 200) known += (known.empty() ? "" : ", ") + for_terminal(region.name);
    return not_found("rank " + std::to_string(rank) + " of " + version_text(copies.key) + " has no region " + name +
                     "; it has " + (known.empty() ? "none" : known));
}

Status both_routed(Rank a, Rank b, const std::string& name) {
    return Status(Code::already_exists, "ranks " + std::to_string(a) + " and " + std::to_string(b) + " both routed " + name + "; take one with --rank");
}

using FilesByName = std::map<std::string, Wanted>;

// The files of a tree are not among the others, and nothing else stands where it will.
Status add_tree(const FoundTree& found, std::size_t number, const std::string& folder, FilesByName& files, std::vector<Wanted>& of_trees) {
    for (std::size_t i = 0; i < found.regions.size(); ++i) {
        if (!found.regions[i]) continue;
        const Region& region = *found.regions[i];
        if (const auto other = files.find(region.name); other != files.end() && other->second.rank == found.rank) files.erase(other);
        of_trees.push_back({found.rank, region.name, {region.offset, region.length}, folder + "/" + found.tree.name + "/" + found.tree.entries[i].path, number, i});
    }
    const auto inside = files.lower_bound(found.tree.name + "/"), same = files.find(found.tree.name);
    if (same != files.end()) return both_routed(same->second.rank, found.rank, found.tree.name);
    if (inside != files.end() && inside->first.starts_with(found.tree.name + "/")) return both_routed(inside->second.rank, found.rank, inside->first);
    return {};
}

// All routed files, each at its own path below the folder, and the trees that some of them make. Two ranks may not have routed the same path.
Result<Output> files_of(Place& place, const VersionCopies& copies, const Arguments& arguments) {
    Output output{{}, {}, arguments.text("files")};
    FilesByName files;
    std::vector<FoundTree> trees;
    const bool one_rank = arguments.given("rank");
    for (Rank rank = 0; rank < copies.ranks; ++rank) {
        if (one_rank && rank != arguments.number("rank")) continue;
        TRY_ASSIGN(const ImageInfo* const image, copies.image(rank));
        for (const Region& region : image->regions) {
            if (region.kind != RegionKind::file) continue;
            const std::string path = output.folder + "/" + region.name;  // format/names: it can not leave the folder
            const auto [found, fresh] =
                files.emplace(region.name, Wanted{rank, region.name, {region.offset, region.length}, path});
            if (!fresh) return both_routed(found->second.rank, rank, region.name);
        }
        TRY_ASSIGN(std::vector<FoundTree> of_rank, trees_of(place, copies, rank));
        std::move(of_rank.begin(), of_rank.end(), std::back_inserter(trees));
    }
    std::vector<Wanted> of_trees;
    for (FoundTree& found : trees) {
        const auto same = std::find_if(output.trees.begin(), output.trees.end(), [&](const Tree& tree) { return tree.name == found.tree.name; });
        if (same != output.trees.end()) return both_routed(trees[static_cast<std::size_t>(same - output.trees.begin())].rank, found.rank, found.tree.name);
        TRY(add_tree(found, output.trees.size(), output.folder, files, of_trees));
        output.trees.push_back(std::move(found.tree));
    }
    if (files.empty() && output.trees.empty()) return not_found(version_text(copies.key) + " holds no routed files; `cairn show` lists its regions");
    for (auto& [name, file] : files) output.runs.push_back(std::move(file));
    std::move(of_trees.begin(), of_trees.end(), std::back_inserter(output.runs));
    return output;
}

Status check_usage(const Arguments& arguments) {
    if (arguments.given("files")) {
        for (const char* const other : {"region", "output", "array", "slice"})
            if (arguments.given(other)) return invalid_argument("--files names the folder of all routed files; it does not go with --" + std::string(other));
        return {};
    }
    if (!arguments.given("rank"))
        return invalid_argument("say which image: --rank N (or --files FOLDER for all routed files)");
    if (!arguments.given("output"))
        return invalid_argument("say where to: --output PATH, or --output - for standard output");
    if ((arguments.given("array") || arguments.given("slice")) && !arguments.given("region"))
        return invalid_argument("say which region (a routed file is one, too): --region NAME; `cairn show` lists them");
    return {};
}

Result<Output> wanted_of(Console& console, Place& place, VersionCopies& copies, const Arguments& arguments, std::optional<Sliced>& sliced, ReadCost& cost) {
    if (arguments.given("files")) {
        std::vector<Rank> ranks;  // none: all. Others than the one that is asked for may lie in parts that are not open
        if (arguments.given("rank")) ranks.push_back(static_cast<Rank>(arguments.number("rank")));
        TRY(place.run(load_regions(place.world(), place.layout(), copies, std::move(ranks), place.restore())));
        return files_of(place, copies, arguments);
    }
    const Rank rank = static_cast<Rank>(arguments.number("rank"));
    TRY_ASSIGN(const ImageInfo* const image, copies.image(rank));
    Wanted one{rank, {}, {0, image->bytes - image->index_bytes}, {}};
    if (arguments.given("region")) {
        TRY_ASSIGN(one, region_of(console, place, copies, rank, arguments, sliced, cost));
    }
    one.path = arguments.text("output");
    return Output{{one}, {}, {}};
}

Json json_of(const Sliced& sliced) {
    return {{"array", sliced.array.name}, {"type", type_name(sliced.array.type)}, {"big_endian", sliced.array.is_big_endian}, {"shape", sliced.shape}, {"of", sliced.array.shape}};
}

void tell(Console& console, const VersionCopies& copies, bool from_scratch, const std::vector<Wanted>& wanted, const std::vector<std::string>& trees, const std::optional<Sliced>& sliced, const ReadCost& cost) {
    std::uint64_t bytes = 0;
    bool verified = true;
    for (const Wanted& one : wanted) {
        bytes += one.bytes();
        verified &= copies.is_verifiable(one.rank);
    }
    if (console.json) {
        Json files = Json::array();
        for (const Wanted& one : wanted)
            files.push_back({{"path", one.path},
                             {"rank", one.rank},
                             {"region", one.region},
                             {"bytes", one.bytes()},
                             {"verified", copies.is_verifiable(one.rank)}});
        Json document = {{"checkpoint", copies.key.name},
                         {"version", copies.key.version},
                         {"incarnation", copies.key.incarnation.hex()},
                         {"level", from_scratch ? "scratch" : "persistent"},
                         {"files", std::move(files)}};
        if (!trees.empty()) document["trees"] = trees;
        if (sliced) document["slice"] = json_of(*sliced);
        if (!from_scratch) document["read"] = {{"stored_bytes", cost.read_bytes}, {"decoded_bytes", cost.decoded_bytes}, {"base_bytes", cost.base_bytes}};
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return;
    }
    console.out << version_text(copies.key) << ": " << (trees.empty() ? "" : plural(trees.size(), "directory tree") + ", ") << plural(wanted.size(), "file") << ", " << format_bytes(bytes)
                << (verified ? ", every byte verified\n" : ", not verified: no checksums yet\n");
    if (sliced)
        console.out << type_name(sliced->array.type) << (sliced->array.is_big_endian ? ", big-endian, " : ", ") << axes_text(sliced->shape) << " of " << axes_text(sliced->array.shape)
                    << (from_scratch ? "" : "; read " + format_bytes(cost.read_bytes + cost.base_bytes) + " of the files, which made " + format_bytes(cost.decoded_bytes) + " when decoded") << "\n";
}

void note_scratch(Console& console, const VersionCopies& copies, const std::vector<Wanted>& wanted) {
    std::vector<Rank> unverified;
    for (const Wanted& one : wanted)
        if (!copies.is_verifiable(one.rank) && (unverified.empty() || unverified.back() != one.rank))
            unverified.push_back(one.rank);
    console.err << "cairn extract: note: " << version_text(copies.key) << " is not committed; taken from this host's scratch";
    if (!unverified.empty())
        console.err << "; its daemon has not made checksums of " << (unverified.size() == 1 ? "rank " : "ranks ")
                    << format_ranges(unverified) << " yet, so these bytes can not be verified";
    console.err << "\n";
}

Status run_extract(Console& console, const Arguments& arguments) {
    TRY(check_usage(arguments));
    const bool stream = arguments.text("output") == "-";
    if (stream && console.json) return invalid_argument("--json and --output - both want standard output");
    TRY_ASSIGN(Place place, Place::open(arguments));
    const ScratchView scratch = read_scratch(place);
    TRY_ASSIGN(const Series series, read_series(place, scratch, arguments.text("NAME"), Manifests::heads));
    tell_lineage_problems(console, "extract", series);
    TRY_ASSIGN(const Seen seen, pick_readable(series, arguments.text("VERSION"), arguments.text("incarnation")));
    if (asks_for_newest(arguments.text("VERSION"))) tell_damage_above(console, "extract", series, seen);
    if (arguments.number("rank") >= seen.ranks) return no_rank(seen.key, arguments.number("rank"), seen.ranks);
    // Only the parts that hold the rank: damage elsewhere does not matter.
    const Rank rank = arguments.given("rank") ? static_cast<Rank>(arguments.number("rank")) : every_rank;
    TRY_ASSIGN(VersionCopies copies, place.run(open_copies(place.world(), place.layout(), seen, scratch.images, rank, place.restore())));
    std::optional<Sliced> sliced;
    ReadCost cost;
    TRY_ASSIGN(Output output, wanted_of(console, place, copies, arguments, sliced, cost));
    const bool from_scratch = in_scratch_only(seen);
    if (from_scratch) note_scratch(console, copies, output.runs);
    std::vector<std::string> trees;
    for (const Tree& tree : output.trees) trees.push_back(tree.name);
    Status extracted = extract(console, place, copies, output, arguments.given("force"), cost);
    if (extracted.code() == Code::corrupt && output.runs.size() > 1)
        return {Code::corrupt, extracted.text() + "; the other files are to be had one by one: --rank N --region NAME --output PATH (`cairn show` lists them)"};
    TRY(std::move(extracted));
    if (!stream) tell(console, copies, from_scratch, output.runs, trees, sliced, cost);
    return {};
}

}  // namespace

const Command extract_command = {
    "extract",
    "take an image, a region, a slice of an array or the routed files out of a version",
    "Every block is verified before it is written; a file appears whole or not at all. With --rank, the image of that rank (its regions as they\n"
    "lie in it), or one region of it, or with --slice what of its array is in a range of places along each axis, the last axis changing fastest: no\n"
    "more is read and decoded than the blocks and runs that hold it. --array names an array that lies in the region, as `cairn describe` names it: one that the\n"
    "application or a rule (describe.rules) tells of, or one of a routed file that describes itself. Of .npy and safetensors files the front is read to find it; other\n"
    "files are read as a whole first, into the folder that TMPDIR names, and that is said. A record of a netCDF variable is an array by itself, as u[17].\n\n"
    "With --files, all files that the ranks routed, each at its own path below FOLDER; a directory tree that\n"
    "`cairn watch` took appears as a whole, with modes, owners, times, extended attributes, links and holes. What this user may not restore\n"
    "(owners and devices need root) is said once a tree, and the rest comes back.\n\n"
    "A committed version is read from persistent. One that is not committed is read from this host's scratch, as far "
    "as "
    "its images are here, and\n"
    "that is said; images whose daemon has not made checksums yet come out unverified, and that is said, too.",
    {{"NAME", OptionKind::text, "", "The checkpoint.", true},
     {"VERSION", OptionKind::text, "", "The version, or newest (the default): the newest of the current lineage."},
     {"-r,--rank", OptionKind::number, "N", "The rank whose image is meant."},
     {"--region", OptionKind::text, "REGION", "Only this region of the image (a routed file is a region, too)."},
     {"--array", OptionKind::text, "ARRAY", "Of the region this array alone; - is one without a name, as that of an .npy file."},
     {"--slice", OptionKind::text, "SLICE", "Of the array, or the region, this: 3:7,:,-1 as Python writes it, without steps; of axes that are not named all."},
     {"-o,--output", OptionKind::text, "PATH", "Where to; - is standard output."},
     {"--files", OptionKind::text, "FOLDER", "All routed files (of all ranks, or of --rank), below FOLDER."},
     {"--force", OptionKind::flag, "", "Replace files that exist."},
     {"--incarnation", OptionKind::text, "HEX",
      "The incarnation (its first digits), where several committed this version."}},
    {{Code::not_found, "no such checkpoint, version, rank or region, or not on this host"},
     {Code::already_exists, "the output exists"},
     {Code::unsupported, "the array does not lie in its file in one piece and in the order of its axes"},
     {Code::corrupt, "what was asked for is damaged; part, block, rank and region are named"}},
    true,
    &run_extract,
};

}  // namespace cairn::cli
