// What can be told from the operations of daemons, at the moment of each: that a name is made once, who publishes what, and whether that is whole.
#include <algorithm>
#include <set>

#include "proof/based.hpp"
#include "proof/kept.hpp"
#include "proof/promise.hpp"
#include "proof/tensors.hpp"
#include "format/names.hpp"
#include "read/plan.hpp"
#include "storage/placement.hpp"
#include "world/sim/encoding.hpp"

namespace cairn::testing {

namespace {

struct Published {
    VersionKey key;
    std::string path;
};

// Of a manifest's path.
std::optional<Published> parse_manifest_path(const SeedRun& run, const std::string& path) {
    const std::size_t name = path.rfind('/') + 1;
    const std::optional<Id128> incarnation = parse_manifest_file_name(path.substr(name));
    if (!incarnation) return std::nullopt;
    return Published{{run.cluster.roster.name, std::strtoull(path.c_str() + path.rfind('/', name - 2) + 1, nullptr, 10), *incarnation}, path};
}

std::string text_of(const VersionKey& key) { return "version " + std::to_string(key.version); }

// The job went back behind a version, and others can know it: then only he publishes it who looked just before that. From his look to the publication there are
// two operations, each within io_wait, unless he stood still.
void check_superseded(SeedRun& run, sim::Process& process, const Published& published) {
    const auto begun = run.known.publishing.find({process.id(), published.path});
    if (begun == run.known.publishing.end()) return;
    const Nanos span = 2 * run.cluster.options.settings.io_wait;
    const std::vector<Nanos>& looks = run.known.looked[process.id()];
    for (const auto& [later, parent] : run.known.chains) {
        if (parent.incarnation != published.key.incarnation || parent.version >= published.key.version || !run.known.recorded.count(later)) continue;
        const Nanos shown = run.known.shown.at(run.known.epochs.at(later));
        const bool in_time = std::any_of(looks.begin(), looks.end(), [&](Nanos look) {
            return look <= shown && (begun->second - look <= span || process.resumed_at() >= look);
        });
        if (!in_time) run.fail(text_of(published.key) + " is published after the job went back to version " + std::to_string(parent.version));
    }
}

// What the pieces of a run have in the images of its base.
sim::Runs base_of(const SeedRun& run, const OpenVersion& version, const Footer& footer, const StoredRun& stored) {
    sim::Runs older;
    if (stored.base == 0) return older;
    const BaseVersion& of = footer.bases[stored.base - 1].of;
    const VersionKey base{version.manifest.key.name, of.version, of.incarnation};
    const VersionKey& key = content_of(run, base);
    for (const StoredPiece& piece : stored.pieces) {
        const std::uint64_t seed = Cluster::content_seed(run.cluster.options, key, piece.rank);
        for (sim::Run& each : sim::runs_of_description(seed, piece.image_offset, piece.length)) older.push_back(std::move(each));
    }
    return older;
}

// Where footers say that images lie, there are their bytes.
Status check_bytes(const SeedRun& run, Kept& kept, const OpenVersion& version) {
    const VersionKey& key = content_of(run, version.manifest.key);
    for (std::size_t i = 0; i < version.footers.size(); ++i) {
        const std::string path = run.cluster.layout.part(version.manifest, version.parts[i]);
        for (const StoredRun& stored : version.footers[i].runs) {
            Result<Slice> there = kept.bytes_of(path, stored.part_offset, stored.stored_bytes);
            if (!there.ok()) return there.status();
            if (stored.codec != 0) {
                const std::optional<sim::Runs> raw = sim::decode_runs(sim::runs_of(*there), base_of(run, version, version.footers[i], stored), raw_bytes(stored));
                if (!raw) return corrupt(path + ": at " + std::to_string(stored.part_offset) + " are not the bytes that were encoded");
                there = sim::slice_of(*raw);
            }
            for (const StoredPiece& piece : stored.pieces) {
                const std::uint64_t seed = Cluster::content_seed(run.cluster.options, key, piece.rank);
                if (!sim::content_equal(there->part(piece.at, piece.length), sim::describe(seed, piece.length, piece.image_offset)))
                    return corrupt(path + ": at " + std::to_string(stored.part_offset + piece.at) + " are not the bytes of rank " + std::to_string(piece.rank));
            }
        }
    }
    return {};
}

// Several of its pieces are the same bytes of it.
bool is_shared(const StoredRun& stored) {
    std::uint64_t end = 0, begins_again = 0;
    for (const StoredPiece& piece : stored.pieces) begins_again += piece.at < end ? 1 : 0, end = std::max(end, piece.at + piece.length);
    return begins_again > 0;
}

// An image has more than one place in it.
bool has_turns(const StoredRun& stored) {
    std::set<Rank> seen;
    if (is_shared(stored)) return false;
    return std::any_of(stored.pieces.begin(), stored.pieces.end(), [&](const StoredPiece& piece) { return !seen.insert(piece.rank).second; });
}

// A part takes no more than its runs, each from a multiple of part_alignment on, where offsets are not fixed beforehand. Where ranges are planned, small ends of
// images that change hands are packed anew, into less: within a hundredth and 64 KiB a leader. Leaders are the nodes whose daemons wrote in the part: one whose range
// was taken over whole left no end in it.
Status check_space(SeedRun& run, const OpenVersion& version) {
    if (run.cluster.options.settings.placement != Placement::append) return {};
    const bool may_be_planned = version.footers.size() == 1 && run.cluster.has_moved_work();
    for (std::size_t i = 0; i < version.footers.size(); ++i) {
        const Footer& footer = version.footers[i];
        std::uint64_t end = footer.prefix_bytes, nothing = 0;
        const auto is_encoded = [](const StoredRun& stored) { return stored.codec != 0; };
        const auto encoded = std::count_if(footer.runs.begin(), footer.runs.end(), is_encoded);
        if (encoded > 0) run.see(Saw::encoded);
        if (encoded > 0 && run.scenario.codec == 2) run.see(Saw::codec_chosen);
        if (encoded > 0 && run.cluster.has_come_encoded()) run.see(Saw::encoded_before_ship);
        if (encoded > 0 && encoded < static_cast<std::ptrdiff_t>(footer.runs.size())) run.see(Saw::encoded_some);
        for (const StoredRun& stored : footer.runs) {
            if (is_shared(stored)) run.see(Saw::equal_pages);
            if (is_shared(stored) && stored.codec != 0) run.see(Saw::equal_encoded);
            if (is_shared(stored) && run.cluster.has_moved_work()) run.see(Saw::equal_moved);
            if (is_shared(stored) && run.scenario.equal == 0) return corrupt("pages are stored once of a job that did not ask for it");
            if (stored.pieces.size() > 1 && !is_shared(stored)) run.see(Saw::packed);
            if (has_turns(stored)) run.see(Saw::merged);
            if (has_turns(stored) && run.scenario.merge_ranks == 0) run.see(Saw::merged_by_trial);
            if (has_turns(stored) && run.cluster.has_moved_work()) run.see(Saw::merged_moved);
            if (stored.part_offset - end >= part_alignment) nothing += stored.part_offset - end;
            end = stored.part_offset + stored.stored_bytes;
        }
        const auto wrote = run.known.writers.find(run.cluster.layout.part(version.manifest, version.parts[i]));
        const std::uint64_t leaders = wrote == run.known.writers.end() ? 0 : wrote->second.size();
        const bool is_planned = may_be_planned && (run.scenario.codec == 0 || (run.scenario.codec == 2 && encoded == 0));  // chosen may be none
        const std::uint64_t most = is_planned ? end / 100 + leaders * (64ull << 10) : 0;
        if (nothing > most) return corrupt("part " + std::to_string(footer.part) + " has " + std::to_string(nothing) + " bytes of nothing in its " + std::to_string(end));
        if (footer.data_bytes - end >= part_alignment) return corrupt("part " + std::to_string(footer.part) + " has bytes of nothing before its footer");
    }
    return {};
}

// A rank's image as the footers have it: its size, and every byte of it once. `look`: a reader also asks for a range of it alone, as for one of several
// regions, whatever runs that lies in, and gets all of that and nothing else.
Status check_image(SeedRun& run, Kept& kept, const VersionCopies& copies, Rank rank, bool look) {
    const ClusterOptions& options = run.cluster.options;
    const OpenVersion& version = *copies.parts;
    const ImageInfo* image = version.image(rank);
    const VersionKey& key = content_of(run, version.manifest.key);
    const std::uint64_t bytes = options.image_bytes(rank, key.version);
    if (!image || image->bytes != bytes) return corrupt("the footers tell of no image of rank " + std::to_string(rank) + ", or one of another size");
    const bool any = look && bytes > 0;
    const std::uint64_t random = sim::mix(version.manifest.attempt_id.low);
    ImageRange range{bytes, 0};
    if (any) range.offset = random % bytes;
    if (any) range.length = std::min(1 + sim::mix(random) % (4 * options.block_bytes), bytes - range.offset);
    std::uint64_t got = 0;
    const std::uint64_t seed = Cluster::content_seed(run.cluster.options, key, rank);
    HandOut out;
    out.add(rank, range, "a range", [&](std::uint64_t at, const Slice& data) {
        got += data.length;
        return sim::content_equal(data, sim::describe(seed, data.length, range.offset + at)) ? Status() : corrupt("a range of rank " + std::to_string(rank) + " has other bytes");
    });
    TRY_ASSIGN(ReadPlan plan, plan_reads(copies, out.wanted(), options.restore.buffer_bytes));
    TRY(kept.run(read_planned(kept.world(), run.cluster.layout, copies, std::move(plan), out, options.restore)));
    if (got != range.length) return corrupt("a range of rank " + std::to_string(rank) + " is not given whole");
    return {};
}

// What `cairn verify` says of it: nothing is damaged, and it has looked at every byte.
Status check_verified(const SeedRun& run, Kept& kept, const Manifest& manifest) {
    std::uint64_t looked = 0;
    const auto progress = [&](std::uint64_t bytes) { looked += bytes; };
    const Result<std::vector<Damage>> damage = kept.run(verify_version(kept.world(), run.cluster.layout, manifest, run.cluster.options.restore, progress));
    if (!damage.ok()) return damage.status().within("it can not be verified");
    if (!damage->empty()) return damage->front().status.within("verification finds damage in " + damage->front().part);
    if (looked != manifest.image_bytes) return corrupt("verification looks at " + std::to_string(looked) + " of " + std::to_string(manifest.image_bytes) + " bytes");
    return {};
}

std::uint32_t replacement_of(const PartInfo& part) { return parse_part_file_name(part.file).value_or(PartFileName()).replacement; }

void see_roots(SeedRun& run, const Manifest& manifest) {
    std::set<std::uint32_t> used;
    for (const PartInfo& part : manifest.parts) used.insert(part.root);
    if (used.size() > 1 || !used.count(0)) run.see(Saw::on_roots);
    if (used.size() > 1 && used.count(0)) run.see(Saw::persistent_too);
    const sim::Faults& faults = run.cluster.sim.faults();
    for (const PartInfo& part : manifest.parts) {
        const std::uint32_t replacement = replacement_of(part);
        if (replacement == 0 || part.origin != 0) continue;
        run.see(Saw::replaced);
        if (replacement > 1) run.see(Saw::replaced_again);
        if (!faults.below.empty() && faults.below_is == sim::Faults::Below::hangs) run.see(Saw::replaced_hung);
        if (run.cluster.has_moved_work()) run.see(Saw::replaced_moved);
        if (has_owners(run.cluster.options.layout)) run.see(Saw::replaced_file);
        if (run.cluster.options.layout == FileLayout::tensors) run.see(Saw::replaced_tensors);
    }
    const auto spoiled = std::find(manifest.roots.begin(), manifest.roots.end(), faults.below);
    if (spoiled == manifest.roots.end() || used.count(static_cast<std::uint32_t>(spoiled - manifest.roots.begin()) + 1)) return;
    const std::array saw = {Saw::left_out_failing, Saw::left_out_full, Saw::left_out_away, Saw::left_out_hanging};
    run.see(saw[static_cast<std::size_t>(faults.below_is)]);
}

// A file a rank, or a node: whose images it has, that all of a node lie below one root, the one that the manifest says its node writes to, but for those whose storage failed in mid-flush, and that one
// node alone wrote it, since no such work moves.
Status check_layout(SeedRun& run, const Manifest& manifest) {
    if (!has_owners(run.cluster.options.layout) || manifest.parts.front().origin != 0) return {};
    const bool is_by_node = run.cluster.options.layout == FileLayout::nodes;
    std::uint32_t part = 0;
    std::size_t node = 0;
    for (const std::vector<Rank>& ranks : run.cluster.ranks_by_node(manifest.key.incarnation)) {
        std::set<std::uint32_t> roots;
        std::set<NodeIndex> writers;
        if (!manifest.node_targets.empty()) roots.insert(root_of(manifest.roots, manifest.node_targets[node]));
        ++node;
        for (std::size_t i = 0; i < (is_by_node ? 1 : ranks.size()); ++i) {
            const PartInfo& info = manifest.parts[part];
            if (info.ranks != (is_by_node ? ranks : std::vector<Rank>(1, ranks[i]))) return corrupt(info.file + " has the images of other ranks");
            const auto wrote = run.known.writers.find(run.cluster.layout.part(manifest, part++));
            if (wrote != run.known.writers.end()) writers.insert(wrote->second.begin(), wrote->second.end());
            if (replacement_of(info) == 0) roots.insert(info.root);
        }
        if (roots.size() > 1) return corrupt("the files of one node lie below several roots, or not where the manifest says");
        if (writers.size() > 1) return corrupt("several nodes wrote the files of one");
    }
    run.see(is_by_node ? Saw::file_per_node : Saw::file_per_rank);
    return {};
}

// What becomes visible now is what readers take, and would be if all nodes lost power now.
void check_published(SeedRun& run, sim::Process& process, const Published& published) {
    Kept kept(process, published.path);
    const Layout& layout = run.cluster.layout;
    const auto bad = [&](const Status& why) { run.fail("what is published does not pass its reader's check: " + text_of(published.key) + ": " + why.to_string()); };
    Result<Manifest> manifest = kept.run(read_manifest(kept.world(), layout, published.key, never));
    if (!manifest.ok()) return bad(manifest.status());
    if (manifest->abandoned) return;
    const bool is_new = run.known.published.insert(published.key).second;
    if (is_new || process.name() != "rm") check_superseded(run, process, published);  // a removal that fails puts back what it moved aside
    const auto chain = run.known.chains.find(published.key.incarnation);
    if (chain != run.known.chains.end() && !(chain->second == manifest->parent)) return bad(corrupt("it names another parent than its job has"));
    if (manifest->parts.size() != run.cluster.files(content_of(run, manifest->key).incarnation) || manifest->ranks != run.cluster.ranks()) return bad(corrupt("not K parts, or not all ranks"));
    if (const Status status = check_layout(run, *manifest); !status.ok()) return bad(status);
    Result<OpenVersion> opened = kept.run(open_version(kept.world(), layout, *manifest, every_rank, run.cluster.options.restore));
    if (!opened.ok()) return bad(opened.status());
    VersionCopies copies;
    copies.key = published.key;
    copies.ranks = manifest->ranks;
    const OpenVersion& version = copies.parts.emplace(std::move(opened).value());
    if (const Status status = check_bytes(run, kept, version); !status.ok()) return bad(status);
    if (const Status status = check_space(run, version); !status.ok()) return bad(status);
    if (const Status status = check_tensors(run, kept, version); !status.ok()) return bad(status);
    if (const Status status = check_based(run, kept, version); !status.ok()) return bad(status);
    std::uint64_t bytes = 0;
    for (Rank rank = 0; rank < manifest->ranks; ++rank) {
        const bool look = rank == sim::mix(manifest->attempt_id.low) % manifest->ranks;
        if (const Status status = check_image(run, kept, copies, rank, look); !status.ok()) return bad(status);
        bytes += version.image(rank)->bytes;
    }
    if (bytes != manifest->image_bytes) return bad(corrupt("its images have other sizes than it says"));
    if (sim::mix(manifest->attempt_id.low ^ 0x76726679) % 2 == 0)  // a tenth of all that a run takes, if it were each
        if (const Status status = check_verified(run, kept, *manifest); !status.ok()) return bad(status);
    if (run.scenario.old_format != 0) run.see(Saw::old_format);
    for (const Footer& footer : version.footers)
        for (const StoredRun& stored : footer.runs)
            for (const StoredPiece& piece : stored.pieces)
                if (!piece.cuts.empty()) run.see(Saw::units_cut);
    see_roots(run, *manifest);
}

}  // namespace

void check_operation(SeedRun& run, sim::Process& process, const std::string& what, const std::string& path) {
    Known& known = run.known;
    const Nanos now = run.cluster.sim.now();
    const auto holds = [&](const char* text) { return path.find(text) != std::string::npos; };
    if (what == "create") {
        if (is_part_path(path) && !known.parts.insert(path).second) run.fail("a part is made twice: " + path);
    } else if (what == "write") {
        if (process.name() == "cairnd" && is_part_path(path)) known.writers[path].insert(process.node().id());
    } else if (what == "list") {
        if (path == run.cluster.layout.lineage(run.cluster.roster.name)) known.looked[process.id()].push_back(now);
    } else if (what == "publish") {
        if (holds("/manifest.")) known.publishing.emplace(std::pair(process.id(), path), now);
    } else if (what == "published") {
        if (const auto epoch = parse_lineage_from_name(path.substr(path.rfind('/') + 1))) known.shown[*epoch] = now;
        // What is published in another tree (persistent was covered between the look and this) counts for nothing, as its writer sees when it looks again.
        const auto published = process.node().covered() ? std::nullopt : parse_manifest_path(run, path);
        if (published) check_published(run, process, *published);
    }
}

}  // namespace cairn::testing
