// Ranks of one node that restore at the same time: whatever one of them has from another is right, nobody waits for one that is killed for ever, and where nothing goes wrong a run is decoded once.
#include <algorithm>

#include "proof/promise.hpp"

namespace cairn::testing {

namespace {

// With the footers of all parts.
Result<OpenVersion> open_now(SeedRun& run, const Manifest& manifest) {
    sim::Process& process = run.cluster.hosts[run.cluster.reader()].node->start_process("reader");
    Result<OpenVersion> version(Status(Code::deadline, "opening it"));
    const auto open = [](World world, Layout layout, Manifest its, RestoreSettings settings, Result<OpenVersion>* out) -> Task<void> {
        Result<OpenVersion> opened = co_await open_version(world, std::move(layout), std::move(its), every_rank, settings);
        *out = std::move(opened);
    };
    (void)run.cluster.sim.run(open(process.world(), run.cluster.layout, manifest, run.cluster.options.restore, &version), run.cluster.sim.now() + 600 * second);
    process.kill();
    return version;
}

// What a node decodes at most, if each run is decoded once.
std::uint64_t encoded_runs(const OpenVersion& version, const std::set<Rank>& ranks) {
    std::uint64_t count = 0;
    for (const Footer& footer : version.footers)
        for (const StoredRun& stored : footer.runs)
            count += stored.codec != 0 && std::any_of(stored.pieces.begin(), stored.pieces.end(), [&](const StoredPiece& piece) { return ranks.count(piece.rank) != 0; });
    for (const auto& [place, base] : version.bases) count += encoded_runs(base->version, ranks);
    return count;
}

std::vector<ImagePlaces> places_on(SeedRun& run, NodeIndex node, const VersionKey& key, sim::Prng& prng) {
    std::vector<ImagePlaces> places;
    const Host& host = run.cluster.hosts[node];
    const bool has_slots = prng.next() % 4 == 0;
    for (Rank rank = 0; rank < run.cluster.ranks(); ++rank) {
        if (run.cluster.node_of(rank, {}) != node) continue;
        ImagePlaces& each = places.emplace_back(ImagePlaces{key, rank, "", true});
        const LocalImage* const image = has_slots && host.daemon ? host.daemon->image(key, rank) : nullptr;
        if (image && image->readable == Readable::again && prng.next() % 2 == 0) each.slot_path = image->path;
    }
    return places;
}

struct Together {
    SeedRun& run;
    NodeIndex node;
    const OpenVersion& version;
    std::vector<ImagePlaces> places;
    std::string who() const { return "version " + std::to_string(version.manifest.key.version) + " on node " + std::to_string(node) + ", by its ranks together"; }
};

// How long it took.
Nanos check_all_well(const Together& of) {
    SeedRun& run = of.run;
    const std::uint64_t before = run.decoded[of.node];
    const Nanos begun = run.cluster.sim.now();
    const std::vector<Fetched> fetched = run.cluster.fetch_together(of.node, of.places, content_of(run, of.version.manifest.key));
    std::set<Rank> ranks;
    for (std::size_t i = 0; i < fetched.size(); ++i) {
        if (!fetched[i].status.ok()) run.fail(of.who() + ": rank " + std::to_string(of.places[i].rank) + ": " + fetched[i].status.to_string());
        if (fetched[i].shared.taken > 0) run.see(Saw::shared);
        if (fetched[i].shared.taken_of_bases > 0) run.see(Saw::shared_base);
        if (of.places[i].slot_path.empty()) ranks.insert(of.places[i].rank);
    }
    // Runs of bases have half of the shelves, and of one shelf none.
    const bool is_shared = of.version.manifest.bases.empty() || run.scenario.share > 1 || ranks.size() < 2;
    const std::uint64_t runs = encoded_runs(of.version, ranks), decoded = run.decoded[of.node] - before;
    if (is_shared && decoded > runs) run.fail(of.who() + ": " + std::to_string(decoded) + " runs were decoded, and they have " + std::to_string(runs));
    return run.cluster.sim.now() - begun;
}

void check_one_killed(const Together& of, Cluster::Killed killed) {
    SeedRun& run = of.run;
    const std::vector<Fetched> fetched = run.cluster.fetch_together(of.node, of.places, content_of(run, of.version.manifest.key), killed);
    std::uint64_t alone = 0, taken = 0;
    for (std::size_t i = 0; i < fetched.size(); ++i) {
        const Status& status = fetched[i].status;
        const bool is_right = i == killed.at ? status.code() != Code::internal : status.ok();
        if (!is_right) run.fail(of.who() + ", one of which is killed: rank " + std::to_string(of.places[i].rank) + ": " + status.to_string());
        alone += fetched[i].shared.alone;
        taken += fetched[i].shared.taken;
    }
    if (taken > 0 && fetched[killed.at].status.code() == Code::deadline) run.see(Saw::shared_killed);
    if (alone > 0) run.see(Saw::shared_late);
}

void check_node(const Together& of, sim::Prng& prng) {
    const Nanos span = check_all_well(of);
    if (!of.run.result.ok || of.places.size() < 2 || prng.next() % 2 == 0) return;
    check_one_killed(of, {prng.next() % of.places.size(), static_cast<Nanos>(prng.next() % static_cast<std::uint64_t>(span + 1))});
}

std::set<NodeIndex> nodes_with_ranks(const SeedRun& run) {
    std::set<NodeIndex> nodes;
    for (Rank rank = 0; rank < run.cluster.ranks(); ++rank) nodes.insert(run.cluster.node_of(rank, {}));
    return nodes;
}

}  // namespace

void check_together(SeedRun& run, const VersionKey& key) {
    if (run.scenario.share == 0 || !run.result.ok) return;
    const Result<Manifest> manifest = run.cluster.manifest_now(key);
    if (!manifest.ok()) return run.fail("a version that is committed has no manifest: " + manifest.status().to_string());
    const Result<OpenVersion> version = open_now(run, *manifest);
    if (!version.ok()) return run.fail("a version that is committed can not be opened: " + version.status().to_string());
    sim::Prng prng(sim::mix(run.scenario.seed ^ key.version ^ 0x746F6765));
    for (const NodeIndex node : nodes_with_ranks(run))
        if (run.result.ok && run.cluster.hosts[node].node->alive()) check_node({run, node, *version, places_on(run, node, key, prng)}, prng);
}

// A damaged run is nobody's but of those whose pieces are damaged, and each of them says so itself.
void check_damage_together(SeedRun& run, const VersionKey& key, const std::string& part, const std::set<Rank>& hit) {
    if (run.scenario.share == 0 || !run.result.ok) return;
    sim::Prng prng(1);
    for (const NodeIndex node : nodes_with_ranks(run)) {
        if (!run.cluster.hosts[node].node->alive()) continue;
        std::vector<ImagePlaces> places = places_on(run, node, key, prng);
        for (ImagePlaces& each : places) each.slot_path.clear();
        const std::vector<Fetched> fetched = run.cluster.fetch_together(node, places, content_of(run, key));
        std::size_t told = 0;
        for (std::size_t i = 0; i < places.size(); ++i) {
            const Rank rank = places[i].rank;
            const Status& status = fetched[i].status;
            if (hit.count(rank) == 0 && status.ok()) continue;
            const bool is_named = status.code() == Code::corrupt && status.text().find(part) != std::string::npos && status.text().find("rank " + std::to_string(rank)) != std::string::npos;
            if (hit.count(rank) == 0 || !is_named) return run.fail("ranks that restore together from a damaged part: rank " + std::to_string(rank) + ": " + status.to_string());
            ++told;
        }
        if (told > 1) run.see(Saw::shared_damage);
    }
}

}  // namespace cairn::testing
