// `cairn extract`: an image, a region or routed files out of a version, every byte verified on the way.
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/extract_trees.hpp"
#include "cli/output_file.hpp"
#include "cli/series.hpp"
#include "read/plan.hpp"
#include "read/regions.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t no_tree = static_cast<std::size_t>(-1);

// A run of one image that becomes one output.
struct Wanted {
    Rank rank = 0;
    std::string region;  // "": the whole image
    ImageRange range;
    std::string path;  // "-": standard output
    std::size_t tree = no_tree, entry = 0;  // whose file it is, which
};

// What is to be written: runs, and the trees that some of them are files of.
struct Output {
    std::vector<Wanted> runs;
    std::vector<Tree> trees;
    std::string folder;  // of the trees
};

std::string what_of(const Wanted& one) { return one.region.empty() ? "the image" : "region " + one.region; }

constexpr std::size_t open_of_trees = 256;  // files, of all trees together

// As many as this user may have.
void allow_descriptors() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
    files.rlim_cur = files.rlim_max;
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &files));
}

class Extraction {
  public:
    // Its trees are used up.
    Extraction(Console& console, Place& place, const VersionCopies& copies, Output& output, bool replace)
        : console_(console), place_(place), copies_(copies), output_(output), wanted_(output.runs), replace_(replace) {}

    Status run() {
        std::uint64_t total_bytes = 0;
        for (const Wanted& one : wanted_) total_bytes += one.range.length;
        Progress progress(console_, "extract", total_bytes);
        progress_ = &progress;
        return !wanted_.empty() && wanted_.front().path == "-" ? to_stream(wanted_.front()) : to_files();
    }

  private:
    // All of them in one pass over the parts, since what a few files have of them lies in one place, and all others would wait. Where it fails none of them appears.
    Status to_files() {
        OutputFiles files(replace_);
        std::vector<std::unique_ptr<TreeOutput>> trees;
        allow_descriptors();  // each tree has two, whatever it has open
        const std::size_t open_each = std::max<std::size_t>(4, open_of_trees / std::max<std::size_t>(1, output_.trees.size()));
        for (Tree& tree : output_.trees) {
            TRY_ASSIGN(trees.emplace_back(), TreeOutput::create(output_.folder, std::move(tree), replace_, open_each));
        }
        HandOut out;
        std::vector<const Wanted*> of_files;
        for (const Wanted& one : wanted_) {
            TreeOutput* const tree = one.tree == no_tree ? nullptr : trees[one.tree].get();
            if (!tree) TRY(files.add(one.path));
            if (!tree) of_files.push_back(&one);
            out.add(one.rank, one.range, what_of(one), [this, &files, &one, tree, i = of_files.size() - 1](std::uint64_t at, const Slice& data) {
                progress_->set(done_bytes_ += data.length);
                return tree ? tree->write_at(one.entry, at, data.bytes()) : files.write_at(i, at, data.bytes());
            });
        }
        if (!wanted_.empty()) {
            TRY_ASSIGN(ReadPlan plan, plan_reads(copies_, out.wanted(), place_.restore().buffer_bytes));
            TRY(read_by_plan(place_, copies_, std::move(plan), out));
        }
        for (std::size_t i = 0; i < of_files.size(); ++i) TRY(files.commit(i, of_files[i]->range.length));
        for (const auto& tree : trees) {
            TRY(tree->commit());
            for (const std::string& told : tree->not_restored()) console_.err << "cairn extract: note: " << for_terminal(told) << "\n";
        }
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
            TRY(read_by_plan(place_, copies_, std::move(piece.plan), out, &encoded));
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
    Output& output_;
    const std::vector<Wanted>& wanted_;
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

Result<Output> wanted_of(Place& place, VersionCopies& copies, const Arguments& arguments) {
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
        TRY_ASSIGN(one, region_of(place, copies, rank, arguments.text("region")));
    }
    one.path = arguments.text("output");
    return Output{{one}, {}, {}};
}

void tell(Console& console, const VersionCopies& copies, bool from_scratch, const std::vector<Wanted>& wanted, const std::vector<std::string>& trees) {
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
        Json document = {{"checkpoint", copies.key.name},
                         {"version", copies.key.version},
                         {"incarnation", copies.key.incarnation.hex()},
                         {"level", from_scratch ? "scratch" : "persistent"},
                         {"files", std::move(files)}};
        if (!trees.empty()) document["trees"] = trees;
        console.document(document.dump(2, ' ', false, Json::error_handler_t::replace));
        return;
    }
    console.out << version_text(copies.key) << ": " << (trees.empty() ? "" : plural(trees.size(), "directory tree") + ", ") << plural(wanted.size(), "file") << ", " << format_bytes(bytes)
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
    TRY_ASSIGN(Output output, wanted_of(place, copies, arguments));
    const bool from_scratch = in_scratch_only(seen);
    if (from_scratch) note_scratch(console, copies, output.runs);
    std::vector<std::string> trees;
    for (const Tree& tree : output.trees) trees.push_back(tree.name);
    Status extracted = Extraction(console, place, copies, output, arguments.given("force")).run();
    if (extracted.code() == Code::corrupt && output.runs.size() > 1)
        return {Code::corrupt, extracted.text() + "; the other files are to be had one by one: --rank N --region NAME --output PATH (`cairn show` lists them)"};
    TRY(std::move(extracted));
    if (!stream) tell(console, copies, from_scratch, output.runs, trees);
    return {};
}

}  // namespace

const Command extract_command = {
    "extract",
    "take an image, a region or the routed files out of a version",
    "Every block is verified before it is written; a file appears whole or not at all. With --rank, the image of that rank (its regions as they\n"
    "lie in it), or one region of it. With --files, all files that the ranks routed, each at its own path below FOLDER; a directory tree that\n"
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
