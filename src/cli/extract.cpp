// `cairn extract`: an image, a region or routed files out of a version, every byte verified on the way.
#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/output_file.hpp"
#include "cli/series.hpp"
#include "read/plan.hpp"
#include "read/regions.hpp"

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

std::string what_of(const Wanted& one) { return one.region.empty() ? "the image" : "region " + one.region; }

class Extraction {
  public:
    Extraction(Console& console, Place& place, const VersionCopies& copies, std::vector<Wanted> wanted, bool replace)
        : console_(console), place_(place), copies_(copies), wanted_(std::move(wanted)), replace_(replace) {}

    Status run() {
        std::uint64_t total_bytes = 0;
        for (const Wanted& one : wanted_) total_bytes += one.range.length;
        Progress progress(console_, "extract", total_bytes);
        progress_ = &progress;
        return wanted_.front().path == "-" ? to_stream(wanted_.front()) : to_files();
    }

  private:
    // Bytes of scratch are only good when it says afterwards that they were.
    Status read(ReadPlan plan, HandOut& out, EncodedRuns* encoded = nullptr) {
        std::set<Rank> of_scratch;
        for (const SlotRead& each : plan.slots) of_scratch.insert(each.rank);
        const Status status = place_.run(read_planned(place_.world(), place_.layout(), copies_, std::move(plan), out, place_.restore(), encoded));
        for (const Rank rank : of_scratch) TRY(place_.run(check_settled(place_.world(), copies_, rank, place_.deadline())));
        return copies_.parts ? status : status.within(version_text(copies_.key));
    }

    // All of them in one pass over the parts, since what a few files have of them lies in one place, and all others would wait. Where it fails none of them appears.
    Status to_files() {
        OutputFiles files(replace_);
        HandOut out;
        for (std::size_t i = 0; i < wanted_.size(); ++i) {
            TRY(files.add(wanted_[i].path));
            out.add(wanted_[i].rank, wanted_[i].range, what_of(wanted_[i]), [this, &files, i](std::uint64_t at, const Slice& data) {
                progress_->set(done_bytes_ += data.length);
                return files.write_at(i, at, data.bytes());
            });
        }
        TRY_ASSIGN(ReadPlan plan, plan_reads(copies_, out.wanted(), place_.restore().buffer_bytes));
        TRY(read(std::move(plan), out));
        for (std::size_t i = 0; i < wanted_.size(); ++i) TRY(files.commit(i, wanted_[i].range.length));
        return {};
    }

    // Runs arrive in the order of the parts, a stream wants the order of the image: so one piece of it after the other.
    Status to_stream(const Wanted& one) {
        if (one.range.length == 0) return {};
        const std::uint64_t block_bytes = copies_.block_bytes(), buffer_bytes = place_.restore().buffer_bytes;
        const std::uint64_t window_bytes = std::max(block_bytes, buffer_bytes / block_bytes * block_bytes);
        const std::uint64_t end = one.range.offset + one.range.length;
        TRY_ASSIGN(ReadPlan plan, plan_reads(copies_, {{one.rank, {one.range}}}, buffer_bytes));
        std::uint64_t at = one.range.offset;
        Bytes window;
        EncodedRuns encoded(place_.world(), place_.restore().encoded_bytes);
        for (PlanPiece& piece : in_image_order(copies_, std::move(plan), window_bytes)) {
            window.resize(std::min(end, piece.range.offset + piece.range.length) - at);
            HandOut out;
            out.add(one.rank, {at, window.size()}, what_of(one), [&](std::uint64_t into, const Slice& data) {
                std::memcpy(window.data() + into, data.data(), data.length);
                return Status();
            });
            TRY(read(std::move(piece.plan), out, &encoded));
            console_.out.write(reinterpret_cast<const char*>(window.data()),
                               static_cast<std::streamsize>(window.size()));
            if (!console_.out) return Status(Code::io_error, "cannot write to standard output");
            progress_->set(done_bytes_ += window.size());
            at += window.size();
        }
        return at == end ? Status() : Status(Code::internal, what_of(one) + " was written only up to byte " + std::to_string(at) + " of the image; a defect in Cairn, please report it");
    }

    Console& console_;
    Place& place_;
    const VersionCopies& copies_;
    std::vector<Wanted> wanted_;
    bool replace_;
    Progress* progress_ = nullptr;
    std::uint64_t done_bytes_ = 0;
};

Result<Wanted> region_of(Place& place, VersionCopies& copies, Rank rank, const std::string& name) {
    TRY_ASSIGN(FoundRegion found, place.run(find_region(place.world(), place.layout(), copies, rank, name, place.restore())));
    if (found.region) {
        const ImageRange range{found.region->offset, found.region->length};
        copies.set_regions(rank, {std::move(*found.region)});  // so that damage is told with its name
        return Wanted{rank, name, range, {}};
    }
    TRY(place.run(load_regions(place.world(), place.layout(), copies, {rank}, place.restore())));
    TRY_ASSIGN(const ImageInfo* const image, copies.image(rank));
    std::string known;
    for (const Region& region : image->regions)
        if (known.size() < 200) known += (known.empty() ? "" : ", ") + for_terminal(region.name);
    return not_found("rank " + std::to_string(rank) + " of " + version_text(copies.key) + " has no region " + name +
                     "; it has " + (known.empty() ? "none" : known));
}

// All routed files, each at its own path below `folder`. Two ranks may not have routed the same path.
Result<std::vector<Wanted>> files_of(const VersionCopies& copies, const Arguments& arguments) {
    std::map<std::string, Wanted> files;
    const bool one_rank = arguments.given("rank");
    for (Rank rank = 0; rank < copies.ranks; ++rank) {
        if (one_rank && rank != arguments.number("rank")) continue;
        TRY_ASSIGN(const ImageInfo* const image, copies.image(rank));
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
    if (files.empty()) return not_found(version_text(copies.key) + " holds no routed files; `cairn show` lists its regions");
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

Result<std::vector<Wanted>> wanted_of(Place& place, VersionCopies& copies, const Arguments& arguments) {
    if (arguments.given("files")) {
        std::vector<Rank> ranks;  // none: all. Others than the one that is asked for may lie in parts that are not open
        if (arguments.given("rank")) ranks.push_back(static_cast<Rank>(arguments.number("rank")));
        TRY(place.run(load_regions(place.world(), place.layout(), copies, std::move(ranks), place.restore())));
        return files_of(copies, arguments);
    }
    const Rank rank = static_cast<Rank>(arguments.number("rank"));
    TRY_ASSIGN(const ImageInfo* const image, copies.image(rank));
    Wanted one{rank, {}, {0, image->bytes - image->index_bytes}, {}};
    if (arguments.given("region")) {
        TRY_ASSIGN(one, region_of(place, copies, rank, arguments.text("region")));
    }
    one.path = arguments.text("output");
    return std::vector<Wanted>{one};
}

void tell(Console& console, const VersionCopies& copies, bool from_scratch, const std::vector<Wanted>& wanted) {
    std::uint64_t bytes = 0;
    bool verified = true;
    for (const Wanted& one : wanted) {
        bytes += one.range.length;
        verified &= copies.is_verifiable(one.rank);
    }
    if (console.json) {
        Json files = Json::array();
        for (const Wanted& one : wanted)
            files.push_back({{"path", one.path},
                             {"rank", one.rank},
                             {"region", one.region},
                             {"bytes", one.range.length},
                             {"verified", copies.is_verifiable(one.rank)}});
        const Json document = {{"checkpoint", copies.key.name},
                               {"version", copies.key.version},
                               {"incarnation", copies.key.incarnation.hex()},
                               {"level", from_scratch ? "scratch" : "persistent"},
                               {"files", std::move(files)}};
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return;
    }
    console.out << version_text(copies.key) << ": " << plural(wanted.size(), "file") << ", " << format_bytes(bytes)
                << (verified ? ", every byte verified\n" : ", not verified: no checksums yet\n");
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
    TRY_ASSIGN(const std::vector<Wanted> wanted, wanted_of(place, copies, arguments));
    const bool from_scratch = in_scratch_only(seen);
    if (from_scratch) note_scratch(console, copies, wanted);
    TRY(Extraction(console, place, copies, wanted, arguments.given("force")).run());
    if (!stream) tell(console, copies, from_scratch, wanted);
    return {};
}

}  // namespace

const Command extract_command = {
    "extract",
    "take an image, a region or the routed files out of a version",
    "Every block is verified before it is written; a file appears whole or not at all. With --rank, the image of that "
    "rank (its regions as they lie in it), or one\n"
    "region of it. With --files, all files that the ranks routed, each at its own path below FOLDER.\n\n"
    "A committed version is read from persistent. One that is not committed is read from this host's scratch, as far "
    "as "
    "its images are here, and\n"
    "that is said; images whose daemon has not made checksums yet come out unverified, and that is said, too.",
    {{"NAME", OptionKind::text, "", "The checkpoint.", true},
     {"VERSION", OptionKind::text, "", "The version, or newest (the default): the newest of the current lineage."},
     {"-r,--rank", OptionKind::number, "N", "The rank whose image is meant."},
     {"--region", OptionKind::text, "REGION", "Only this region of the image (a routed file is a region, too)."},
     {"-o,--output", OptionKind::text, "PATH", "Where to; - is standard output."},
     {"--files", OptionKind::text, "FOLDER", "All routed files (of all ranks, or of --rank), below FOLDER."},
     {"--force", OptionKind::flag, "", "Replace files that exist."},
     {"--incarnation", OptionKind::text, "HEX",
      "The incarnation (its first digits), where several committed this version."}},
    {{Code::not_found, "no such checkpoint, version, rank or region, or not on this host"},
     {Code::already_exists, "the output exists"},
     {Code::corrupt, "what was asked for is damaged; part, block, rank and region are named"}},
    true,
    &run_extract,
};

}  // namespace cairn::cli
