// `cairn show`: what one committed version is made of.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/rows.hpp"
#include "cli/series.hpp"
#include "copies/regions.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "read/alone.hpp"
#include "read/version_copies.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Shown {
    Manifest manifest;
    OpenVersion open;
    std::map<Rank, ImageInfo> images;
};

std::string_view kind_name(RegionKind kind) {
    switch (kind) {
        case RegionKind::memory:
            return "memory";
        case RegionKind::callback:
            return "callback";
        case RegionKind::file:
            return "file";
    }
    return "?";
}

std::string shape_text(const Region& region) {
    const std::string text = axes_text(region.shape) + (region.described.empty() ? "" : ", described as " + plural(region.described.size(), "array"));
    if (region.global_shape.empty()) return text;
    std::string at, of;
    for (const std::uint64_t offset : region.global_offset) at += (at.empty() ? "" : ", ") + std::to_string(offset);
    for (const std::uint64_t length : region.global_shape) of += (of.empty() ? "" : " x ") + std::to_string(length);
    return text + " at " + at + " of " + of;
}

Json described_json(const Region& region) {
    Json arrays = Json::array();
    for (const DescribedArray& array : region.described) {
        Json shape = Json::array();
        for (const std::uint64_t extent : array.shape) shape.push_back(extent == open_axis ? Json(-1) : Json(extent));
        arrays.push_back({{"name", array.name}, {"type", type_name(array.type)}, {"big_endian", array.is_big_endian}, {"shape", std::move(shape)}, {"offset", array.offset}});
    }
    return arrays;
}

std::string alone_text(const AloneRead& alone) {
    char times[32];
    std::snprintf(times, sizeof times, "%.2f", alone.factor());
    const std::string base = alone.base_bytes == 0 ? "" : ", and " + format_bytes(alone.base_bytes) + " of its base";
    return "reads at most " + std::string(times) + " times what is stored of it (rank " + std::to_string(alone.rank) + ": " + format_bytes(alone.read_bytes) + base + ")";
}

// Of the images, beyond what runs have of raw bytes: what shares a place with other pieces.
std::uint64_t stored_once_bytes(const OpenVersion& version) {
    std::uint64_t bytes = 0;
    for (const Footer& footer : version.footers)
        for (const StoredRun& run : footer.runs) {
            for (const StoredPiece& piece : run.pieces) bytes += piece.length;
            bytes -= raw_bytes(run);
        }
    return bytes;
}

// As setting flush.layout has it.
const char* layout_name(const Manifest& manifest) {
    const auto name = manifest.parts.empty() ? std::nullopt : parse_part_file_name(manifest.parts.front().file);
    const FileLayout layout = name ? name->layout : FileLayout::parts;
    constexpr std::array<const char*, 4> names = {"aggregated", "file-per-rank", "file-per-node", "safetensors"};
    return names[static_cast<std::size_t>(layout)];
}

// "ost-0 (nodes 0 2), ost-1 (nodes 1 3)"
std::string targets_text(const Manifest& manifest) {
    std::map<std::string, std::vector<std::uint32_t>> nodes;
    for (std::uint32_t node = 0; node < manifest.node_targets.size(); ++node) nodes[manifest.node_targets[node]].push_back(node);
    std::string text;
    for (const auto& [target, of] : nodes) text += (text.empty() ? "" : ", ") + for_terminal(target) + (of.size() == 1 ? " (node " : " (nodes ") + format_ranges(of) + ")";
    return text;
}

void print_head(Console& console, const Shown& shown, const Seen& seen) {
    const Manifest& m = shown.manifest;
    std::uint64_t part_bytes = 0;
    std::size_t own = 0;
    for (const PartInfo& part : m.parts)
        if (part.origin == 0) ++own, part_bytes += part.bytes + part.index_bytes;
    const auto row = [&](const char* name, const std::string& value) {
        console.out << name << std::string(14 - std::string_view(name).size(), ' ') << value << "\n";
    };
    row("checkpoint", m.key.name);
    row("version",
        std::to_string(m.key.version) + (seen.current ? ", in the current lineage" : ", not in the current lineage"));
    row("incarnation", m.key.incarnation.hex() + ", epoch " + std::to_string(m.epoch));
    row("parent", m.parent.incarnation ? m.parent.incarnation.hex() + ", version " + std::to_string(m.parent.version)
                                       : "none: a fresh start");
    row("taken", format_time(m.wall_time_s));
    row("images", plural(m.ranks, "rank") + " on " + plural(m.nodes, "node") + ", " + format_bytes(m.image_bytes) +
                      " (" + plural(m.image_bytes, "byte") + ")");
    row("files", plural(own, "part") + " (" + layout_name(m) + "), " + format_bytes(part_bytes) + ", blocks of " +
                     format_bytes_exact(m.block_bytes));
    if (const std::uint64_t once = stored_once_bytes(shown.open); once > 0) row("stored once", format_bytes(once) + " of the images take no room: they are the same as other bytes of theirs");
    if (!m.node_targets.empty()) row("targets", targets_text(m));
    if (const std::optional<AloneRead> alone = costliest_alone(shown.open)) row("one rank", alone_text(*alone));
    for (const BaseVersion& base : m.bases) row("depends on", "version " + std::to_string(base.version) + " of incarnation " + base.incarnation.hex());
}

void print_parts(Console& console, const Shown& shown) {
    TextTable table({left("part"), right("bytes"), right("runs"), right("ranks"), left("which")});
    for (std::size_t i = 0; i < shown.manifest.parts.size(); ++i) {
        const PartInfo& part = shown.manifest.parts[i];
        const VersionKey of = key_of(shown.manifest, part);
        const std::string below = part.origin == 0 ? "" : std::to_string(of.version) + "/";
        const std::string where = part.root == 0 ? below : Layout::version_below(shown.manifest.roots[part.root - 1], of) + "/";
        table.add({for_terminal(where + part.file), format_bytes(part.bytes),
                   std::to_string(shown.open.footers[i].runs.size()), std::to_string(part.ranks.size()),
                   format_ranges(part.ranks)});
    }
    console.out << "\n" << table.to_string();
}

void print_regions(Console& console, const Shown& shown, bool all) {
    console.out << "\n";
    Rows rows(console,
              TextTable({right("rank"), left("region"), left("kind"), left("type"), left("shape"), right("bytes"),
                         right("at")}),
              all);
    for (const auto& [rank, image] : shown.images)
        for (const Region& region : image.regions)
            rows.add({std::to_string(rank), for_terminal(region.name), std::string(kind_name(region.kind)),
                      type_name(region.type), shape_text(region), format_bytes(region.length),
                      std::to_string(region.offset)});
    rows.print("no regions");
}

std::string stored_as(const Footer& footer, const StoredRun& run) { return run.codec == 0 ? "raw" : footer.codecs[run.codec - 1].name; }

std::string from_text(const Footer& footer, const StoredRun& run) { return run.base == 0 ? "" : " from version " + std::to_string(footer.bases[run.base - 1].of.version); }

// Of a run that is encoded nobody can say where a piece lies in it.
std::uint64_t place_of(const StoredRun& run, const StoredPiece& piece) { return run.part_offset + (run.codec == 0 ? piece.at : 0); }

void print_pieces(Console& console, const Shown& shown, bool all) {
    console.out << "\n";
    Rows rows(console,
              TextTable({right("rank"), right("from byte of image"), right("bytes"), right("part"),
                         right("at byte of part"), right("checksums"), left("stored as")}),
              all);
    for (std::size_t i = 0; i < shown.open.footers.size(); ++i)
        for (const StoredRun& run : shown.open.footers[i].runs)
            for (const StoredPiece& piece : run.pieces)
                rows.add({std::to_string(piece.rank), std::to_string(piece.image_offset), std::to_string(piece.length), std::to_string(i),
                          std::to_string(place_of(run, piece)), std::to_string(piece.checksums.size()), for_terminal(stored_as(shown.open.footers[i], run) + from_text(shown.open.footers[i], run))});
    rows.print("no pieces: all images are empty");
}

Json runs_json(const Footer& footer) {
    Json runs = Json::array();
    for (const StoredRun& run : footer.runs) {
        Json pieces = Json::array();
        for (const StoredPiece& piece : run.pieces)
            pieces.push_back({{"rank", piece.rank}, {"image_offset", piece.image_offset}, {"length", piece.length}, {"at", piece.at}});
        runs.push_back({{"part_offset", run.part_offset}, {"stored_bytes", run.stored_bytes}, {"codec", stored_as(footer, run)}, {"pieces", std::move(pieces)}});
        if (run.base != 0) runs.back()["base_version"] = footer.bases[run.base - 1].of.version;
    }
    return runs;
}

void print_json(Console& console, const Layout& layout, const Shown& shown, const Seen& seen) {
    const Manifest& m = shown.manifest;
    Json document = {{"checkpoint", m.key.name},
                     {"version", m.key.version},
                     {"incarnation", m.key.incarnation.hex()},
                     {"epoch", m.epoch},
                     {"current", seen.current},
                     {"attempt", m.attempt_id.hex()},
                     {"taken_s", m.wall_time_s},
                     {"ranks", m.ranks},
                     {"nodes", m.nodes},
                     {"image_bytes", m.image_bytes},
                     {"stored_once_bytes", stored_once_bytes(shown.open)},
                     {"block_bytes", m.block_bytes},
                     {"layout", layout_name(m)},
                     {"node_targets", m.node_targets}};
    if (m.parent.incarnation)
        document["parent"] = {{"incarnation", m.parent.incarnation.hex()}, {"version", m.parent.version}};
    document["depends_on"] = Json::array();
    for (const BaseVersion& base : m.bases) document["depends_on"].push_back({{"version", base.version}, {"incarnation", base.incarnation.hex()}});
    document["parts"] = Json::array();
    for (std::size_t i = 0; i < m.parts.size(); ++i) {
        document["parts"].push_back({{"file", m.parts[i].file},
                                     {"version", key_of(m, m.parts[i]).version},
                                     {"incarnation", key_of(m, m.parts[i]).incarnation.hex()},
                                     {"root", layout.root(m.roots, m.parts[i].root)},
                                     {"bytes", m.parts[i].bytes},
                                     {"ranks", m.parts[i].ranks},
                                     {"runs", runs_json(shown.open.footers[i])}});
    }
    document["images"] = Json::array();
    for (const auto& [rank, image] : shown.images) {
        Json regions = Json::array();
        for (const Region& region : image.regions) {
            regions.push_back({{"name", region.name},
                               {"kind", kind_name(region.kind)},
                               {"type", type_name(region.type)},
                               {"shape", region.shape},
                               {"offset", region.offset},
                               {"length", region.length}});
            if (!region.described.empty()) regions.back()["described"] = described_json(region);
            if (region.global_shape.empty()) continue;
            regions.back()["global_shape"] = region.global_shape;
            regions.back()["global_offset"] = region.global_offset;
        }
        const AloneRead alone = alone_read(shown.open, rank);
        document["images"].push_back({{"rank", rank}, {"bytes", image.bytes}, {"read_bytes_alone", alone.read_bytes}, {"base_bytes_alone", alone.base_bytes}, {"regions", std::move(regions)}});
    }
    console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
}

Status run_show(Console& console, const Arguments& arguments) {
    TRY_ASSIGN(Place place, Place::open(arguments));
    TRY_ASSIGN(const Series series, read_series(place, read_scratch(place), arguments.text("NAME"), Manifests::heads));
    tell_lineage_problems(console, "show", series);
    TRY_ASSIGN(const Seen seen, pick_committed(series, arguments.text("VERSION"), arguments.text("incarnation")));
    if (asks_for_newest(arguments.text("VERSION"))) tell_damage_above(console, "show", series, seen);
    TRY_ASSIGN(VersionCopies copies, place.run(open_copies(place.world(), place.layout(), seen, {}, every_rank, place.restore())));
    Shown shown{copies.parts->manifest, std::move(*copies.parts), {}};
    const std::map<Rank, Status> unknown = place.run(load_what_can_be(place.world(), place.layout(), shown.open, place.restore()));
    for (const auto& [rank, why] : unknown) console.err << "cairn show: note: the regions of rank " << rank << " are not known: " << for_terminal(why.text()) << "\n";
    for (const Footer& footer : shown.open.footers)
        for (const ImageInfo& image : footer.images) shown.images.emplace(image.rank, image);
    if (console.json) {
        print_json(console, place.layout(), shown, seen);
        return {};
    }
    print_head(console, shown, seen);
    print_parts(console, shown);
    print_regions(console, shown, arguments.given("all"));
    if (arguments.given("pieces")) print_pieces(console, shown, arguments.given("all"));
    return {};
}

}  // namespace

const Command show_command = {
    "show",
    "show what a committed version is made of: parts, regions, pieces",
    "Prints identity, parts and regions of a version that is committed. With --pieces also where each piece of each "
    "image lies, and how it is stored.",
    {{"NAME", OptionKind::text, "", "The checkpoint.", true},
     {"VERSION", OptionKind::text, "", "The version, or newest (the default): the newest of the current lineage."},
     {"--pieces", OptionKind::flag, "", "Also list where the pieces of images lie."},
     {"--all", OptionKind::flag, "", "All rows, however many."},
     {"--incarnation", OptionKind::text, "HEX",
      "The incarnation (its first digits), where several committed this version."}},
    {{Code::not_found, "no such checkpoint, or not such a committed version"},
     {Code::corrupt, "the manifest or a footer is damaged"}},
    true,
    &run_show,
};

}  // namespace cairn::cli
