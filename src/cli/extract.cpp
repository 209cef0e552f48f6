// `cairn extract`: an image, a region or routed files out of a committed version, every byte verified on the way.
#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/output_file.hpp"
#include "cli/series.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

// A run of one image that becomes one output.
struct Wanted {
    Rank rank = 0;
    std::string region;  // "": the whole image
    ImageRange range;
    std::string path;  // "-": standard output
};

// The part of a delivered run that lies in `range`, and where it goes in the output.
std::pair<std::uint64_t, ByteView> clip(const ImageRange& range, std::uint64_t image_offset, ByteView bytes) {
    const std::uint64_t from = std::max(range.offset, image_offset);
    const std::uint64_t end = std::min(range.offset + range.length, image_offset + bytes.size());
    if (from >= end) return {0, {}};
    return {from - range.offset, bytes.subspan(from - image_offset, end - from)};
}

class Extraction {
  public:
    Extraction(Console& console, Place& place, const OpenVersion& version, std::vector<Wanted> wanted, bool replace)
        : console_(console), place_(place), version_(version), wanted_(std::move(wanted)), replace_(replace) {}

    Status run() {
        std::uint64_t total_bytes = 0;
        for (const Wanted& one : wanted_) total_bytes += one.range.length;
        Progress progress(console_, "extract", total_bytes);
        progress_ = &progress;
        for (const Wanted& one : wanted_) {
            Status status = one.path == "-" ? to_stream(one) : to_file(one);
            if (!status.ok()) return status;
        }
        return {};
    }

  private:
    Status read(const Wanted& one, const ImageRange& range, const ImageSink& sink) {
        if (range.length == 0) return {};
        return place_.run(
            restore_image(place_.world(), place_.layout(), version_, one.rank, {range}, sink, place_.restore()));
    }

    Status to_file(const Wanted& one) {
        TRY_ASSIGN(OutputFile file, OutputFile::create(one.path, replace_));
        TRY(read(one, one.range, [&](std::uint64_t offset, const Slice& data) {
            const auto [at, bytes] = clip(one.range, offset, data.bytes());
            if (!bytes.empty()) progress_->set(done_bytes_ += bytes.size());
            return file.write_at(at, bytes);
        }));
        return file.commit(one.range.length);
    }

    // Runs arrive in the order of the parts, a stream wants the order of the image: so one window after the other.
    Status to_stream(const Wanted& one) {
        const std::uint64_t block_bytes = version_.manifest.block_bytes;
        const std::uint64_t window_bytes =
            std::max(block_bytes, place_.restore().buffer_bytes / block_bytes * block_bytes);
        const std::uint64_t end = one.range.offset + one.range.length;
        Bytes window;
        for (std::uint64_t at = one.range.offset; at < end;) {
            const std::uint64_t stop = std::min(end, at / block_bytes * block_bytes + window_bytes);
            const ImageRange range{at, stop - at};
            window.resize(range.length);
            TRY(read(one, range, [&](std::uint64_t offset, const Slice& data) {
                const auto [into, bytes] = clip(range, offset, data.bytes());
                if (!bytes.empty()) std::memcpy(window.data() + into, bytes.data(), bytes.size());
                return Status();
            }));
            console_.out.write(reinterpret_cast<const char*>(window.data()),
                               static_cast<std::streamsize>(window.size()));
            if (!console_.out) return Status(Code::io_error, "cannot write to standard output");
            progress_->set(done_bytes_ += range.length);
            at = stop;
        }
        return {};
    }

    Console& console_;
    Place& place_;
    const OpenVersion& version_;
    std::vector<Wanted> wanted_;
    bool replace_;
    Progress* progress_ = nullptr;
    std::uint64_t done_bytes_ = 0;
};

Status no_rank(const Manifest& manifest, std::uint64_t rank) {
    return not_found(what(manifest.key) + " has no rank " + std::to_string(rank) + "; it was taken by " +
                     plural(manifest.ranks, "rank") + ", 0 to " + std::to_string(manifest.ranks - 1));
}

Result<const ImageInfo*> image_of(const OpenVersion& version, Rank rank) {
    if (const ImageInfo* image = version.image(rank)) return image;
    return no_rank(version.manifest, rank);
}

Result<Wanted> region_of(const OpenVersion& version, Rank rank, const std::string& name) {
    TRY_ASSIGN(const ImageInfo* const image, image_of(version, rank));
    std::string known;
    for (const Region& region : image->regions) {
        if (region.name == name) return Wanted{rank, name, {region.offset, region.length}, {}};
        if (known.size() < 200) known += (known.empty() ? "" : ", ") + for_terminal(region.name);
    }
    return not_found("rank " + std::to_string(rank) + " of " + what(version.manifest.key) + " has no region " + name +
                     "; it has " + (known.empty() ? "none" : known));
}

// All routed files, each at its own path below `folder`. Two ranks may not have routed the same path.
Result<std::vector<Wanted>> files_of(const OpenVersion& version, const Arguments& arguments) {
    std::map<std::string, Wanted> files;
    const bool one_rank = arguments.given("rank");
    for (Rank rank = 0; rank < version.manifest.ranks; ++rank) {
        if (one_rank && rank != arguments.number("rank")) continue;
        TRY_ASSIGN(const ImageInfo* const image, image_of(version, rank));
        for (const Region& region : image->regions) {
            if (region.kind != RegionKind::file) continue;
            const std::string path =
                arguments.text("files") + "/" + region.name;  // format/names: it can not leave the folder
            const auto [found, fresh] =
                files.emplace(region.name, Wanted{rank, region.name, {region.offset, region.length}, path});
            if (!fresh)
                return Status(Code::already_exists, "ranks " + std::to_string(found->second.rank) + " and " +
                                                        std::to_string(rank) + " both routed " + region.name +
                                                        "; take one with --rank");
        }
    }
    if (files.empty())
        return not_found(what(version.manifest.key) + " holds no routed files; `cairn show` lists its regions");
    std::vector<Wanted> wanted;
    for (auto& [name, file] : files) wanted.push_back(std::move(file));
    return wanted;
}

Status check_usage(const Arguments& arguments) {
    if (arguments.given("files")) {
        if (arguments.given("region") || arguments.given("output"))
            return invalid_argument(
                "--files names the folder of all routed files; it does not go with --region or --output");
        return {};
    }
    if (!arguments.given("rank"))
        return invalid_argument("say which image: --rank N (or --files FOLDER for all routed files)");
    if (!arguments.given("output"))
        return invalid_argument("say where to: --output PATH, or --output - for standard output");
    return {};
}

Result<std::vector<Wanted>> wanted_of(const OpenVersion& version, const Arguments& arguments) {
    if (arguments.given("files")) return files_of(version, arguments);
    const Rank rank = static_cast<Rank>(arguments.number("rank"));
    TRY_ASSIGN(const ImageInfo* const image, image_of(version, rank));
    Wanted one{rank, {}, {0, image->bytes}, {}};
    if (arguments.given("region")) {
        TRY_ASSIGN(one, region_of(version, rank, arguments.text("region")));
    }
    one.path = arguments.text("output");
    return std::vector<Wanted>{one};
}

void tell(Console& console, const Manifest& manifest, const std::vector<Wanted>& wanted) {
    if (console.json) {
        Json files = Json::array();
        for (const Wanted& one : wanted)
            files.push_back(
                {{"path", one.path}, {"rank", one.rank}, {"region", one.region}, {"bytes", one.range.length}});
        const Json document = {{"checkpoint", manifest.key.name},
                               {"version", manifest.key.version},
                               {"incarnation", manifest.key.incarnation.hex()},
                               {"files", std::move(files)}};
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return;
    }
    std::uint64_t bytes = 0;
    for (const Wanted& one : wanted) bytes += one.range.length;
    console.out << what(manifest.key) << ": " << plural(wanted.size(), "file") << ", " << format_bytes(bytes)
                << ", every byte verified\n";
}

Status run_extract(Console& console, const Arguments& arguments) {
    TRY(check_usage(arguments));
    const bool stream = arguments.text("output") == "-";
    if (stream && console.json) return invalid_argument("--json and --output - both want standard output");
    TRY_ASSIGN(Place place, Place::open(arguments));
    TRY_ASSIGN(const Series series, read_series(place, read_scratch(place), arguments.text("NAME")));
    TRY_ASSIGN(const Seen seen, pick_committed(series, arguments.text("VERSION"), arguments.text("incarnation")));
    const Manifest& manifest = *seen.entry.manifest;
    if (arguments.number("rank") >= manifest.ranks) return no_rank(manifest, arguments.number("rank"));
    // Only the parts that hold the rank: damage elsewhere does not matter.
    const Rank rank = arguments.given("rank") ? static_cast<Rank>(arguments.number("rank")) : every_rank;
    TRY_ASSIGN(const OpenVersion version,
               place.run(open_version(place.world(), place.layout(), manifest, rank, place.restore())));
    TRY_ASSIGN(const std::vector<Wanted> wanted, wanted_of(version, arguments));
    TRY(Extraction(console, place, version, wanted, arguments.given("force")).run());
    if (!stream) tell(console, version.manifest, wanted);
    return {};
}

}  // namespace

const Command extract_command = {
    "extract",
    "take an image, a region or the routed files out of a committed version",
    "Every block is verified before it is written; a file appears whole or not at all. With --rank, the image of that "
    "rank, or one region of\n"
    "it. With --files, all files that the ranks routed, each at its own path below FOLDER.",
    {{"NAME", OptionKind::text, "", "The checkpoint.", true},
     {"VERSION", OptionKind::text, "", "The version, or newest (the default): the newest of the current lineage."},
     {"-r,--rank", OptionKind::number, "N", "The rank whose image is meant."},
     {"--region", OptionKind::text, "REGION", "Only this region of the image (a routed file is a region, too)."},
     {"-o,--output", OptionKind::text, "PATH", "Where to; - is standard output."},
     {"--files", OptionKind::text, "FOLDER", "All routed files (of all ranks, or of --rank), below FOLDER."},
     {"--force", OptionKind::flag, "", "Replace files that exist."},
     {"--incarnation", OptionKind::text, "HEX",
      "The incarnation (its first digits), where several committed this version."}},
    {{Code::not_found, "no such checkpoint, version, rank or region"},
     {Code::already_exists, "the output exists"},
     {Code::corrupt, "what was asked for is damaged; part, block, rank and region are named"}},
    true,
    &run_extract,
};

}  // namespace cairn::cli
