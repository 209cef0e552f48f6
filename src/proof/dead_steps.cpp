// What nobody can need any more leaves scratch: each daemon looks as a real one does (dead.hpp), and what it gives up, or does not, is held against what the
// run knows. Once faults stopped, before and after the present job has committed.
#include "engine/router/dead_images.hpp"

#include <algorithm>

#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

// A node's images, as daemon/slots.cpp holds them. Nobody has taken hold of any: the ranks have restored long ago.
class HostScratch final : public DeadImages::Scratch {
  public:
    HostScratch(SeedRun& run, Host& host) : run_(run), host_(host) {}
    std::vector<Held> undecided() override { return {}; }  // whose job the daemon does not know, it does not adopt here
    void let_go(const VersionKey& key) override {
        gone.push_back(key);
        for (Rank rank = 0; rank < run_.cluster.ranks(); ++rank) {
            const LocalImage* image = host_.daemon->image(key, rank);
            if (!image) continue;
            const std::string path = image->path;
            const bool may_be_written = host_.daemon->may_be_written(key, rank);
            if (!drop_image(run_, host_, key, rank).ok()) continue;  // it is read: later
            run_.see(Saw::dead_freed);
            if (run_.cluster.hosts[run_.cluster.coordinator(key.incarnation)].gone) run_.see(Saw::orphan_freed);
            if (may_be_written) (void)host_.node->scratch().remove(path, host_.node->id()).ok();
            else run_.cluster.free_slot(host_, path);
        }
    }
    std::vector<VersionKey> gone;

  private:
    SeedRun& run_;
    Host& host_;
};

Task<void> look(World world, const Cluster* cluster, Node* node, DeadImages::Scratch* scratch, const std::vector<VersionKey>* gone, Status* out) {
    const std::vector<Undecided> before = node->undecided();
    DeadImages dead(world, cluster->layout, *node, *scratch, 60 * second);
    const bool all = co_await dead.look(world.clock.in(60 * second));
    (void)all;
    for (const Undecided& each : before) {
        if (std::find(gone->begin(), gone->end(), each.key) == gone->end()) continue;
        Undecided version = each;
        Status cleared = co_await clear_dead(world, cluster->layout, std::move(version), 60 * second);
        if (!cleared.ok()) *out = std::move(cleared);
    }
}

std::uint64_t epoch_of(const SeedRun& run, Id128 incarnation) {
    const auto found = run.known.epochs.find(incarnation);
    return found == run.known.epochs.end() ? 0 : found->second;
}

// As whoever looks sees it: of one that somebody tried to give up or to remove only that tells how it ended.
bool is_committed(SeedRun& run, const VersionKey& key) {
    const Result<Manifest> manifest = run.cluster.manifest_now(key);
    return manifest.ok() && !manifest->abandoned;
}

// A commit decides as soon as it can be seen, which is before any daemon tells of it.
bool has_commit(SeedRun& run, Id128 incarnation) {
    return std::any_of(run.known.published.begin(), run.known.published.end(), [&](const VersionKey& key) {
        if (key.incarnation != incarnation) return false;
        return run.known.removed.count(key) ? is_committed(run, key) : run.cluster.sim.persistent().find(run.cluster.layout.manifest(key)).ok();
    });
}

Id128 head_seen(SeedRun& run) {
    Id128 newest = head(run);
    for (const auto& [incarnation, epoch] : run.known.epochs)
        if (epoch > epoch_of(run, newest) && has_commit(run, incarnation)) newest = incarnation;
    return newest;
}

void check_gone(SeedRun& run, NodeIndex node, const VersionKey& key) {
    const std::string text = "node " + std::to_string(node) + " gave an image up as dead: version " + std::to_string(key.version) + " of epoch " + std::to_string(epoch_of(run, key.incarnation)) + ", ";
    run.tell("node ", node, " gives up version ", key.version, ", which nobody can need");
    const Id128 newest = head_seen(run);
    if (in_chain(run, newest, key)) return run.fail(text + "which is in the lineage");
    if (run.known.reported.count(key) && !run.known.removed.count(key)) return run.fail(text + "which was called committed");
    const auto whole = run.known.whole.find(newest);
    if (whole != run.known.whole.end() && whole->second.count(key) && !has_commit(run, newest)) run.fail(text + "which was whole, and no newer job has committed");
}

// The lineage can be followed to its beginning: else nobody knows what is beside it, and nothing goes.
bool reaches_the_beginning(const SeedRun& run, Id128 at) {
    for (std::size_t guard = 0; at && guard <= run.known.chains.size(); ++guard) {
        if (run.known.nameless.count(at) && !has_version(run, at)) return false;
        const auto found = run.known.chains.find(at);
        at = found == run.known.chains.end() ? Id128() : found->second.incarnation;
    }
    return true;
}

bool lacks_any(const SeedRun& run, NodeIndex node, const VersionKey& key) {
    bool lacks = false;
    for (Rank rank = 0; rank < run.cluster.ranks(); ++rank)
        lacks |= run.cluster.node_of(rank, key.incarnation) == node && run.cluster.hosts[node].daemon->image(key, rank) == nullptr;
    return lacks;
}

// Its daemon was started again since, and has yet to hear of it. Where that lost images that could be read once only, nobody asks: what is left of them a daemon
// looks up when it finds it in scratch (daemon/outcomes.hpp).
void check_told_of_commit(SeedRun& run, NodeIndex node, const VersionKey& key) {
    if (run.cluster.has_unslotted(key.version) && lacks_any(run, node, key)) return;
    const auto told = [&] { return run.cluster.hosts[node].daemon->state(key).final; };
    if (run.cluster.sim.run_until(told, run.cluster.sim.now() + calm_span(run))) return;
    run.fail("node " + std::to_string(node) + " holds an image of a committed version, and does not find out: version " + std::to_string(key.version) + " of epoch " +
             std::to_string(epoch_of(run, key.incarnation)));
}

// In the lineage, of an older job: it commits, or its node finds out that nobody will say how it ended, so that scratch need not keep it (daemon/retention.cpp).
void check_can_go(SeedRun& run, NodeIndex node, const VersionKey& key) {
    const auto can_go = [&] {
        const VersionState state = run.cluster.hosts[node].daemon->state(key);
        // A rank whose image is in no slot tells its daemon when it ends (daemon/asked.hpp); here a daemon loses such images by its own end, and no rank has more.
        const bool is_lost = run.cluster.has_unslotted(key.version) && !state.failure.ok();
        return state.final || state.failure.code() == Code::deadline || is_lost;
    };
    if (run.cluster.sim.run_until(can_go, run.cluster.sim.now() + 2 * calm_span(run) + run.cluster.options.settings.version_wait)) return;  // a pause between attempts, one that fails, and the deadline
    run.fail("node " + std::to_string(node) + " keeps an image of an older job for ever: version " + std::to_string(key.version) + " of epoch " +
             std::to_string(epoch_of(run, key.incarnation)) + ": " + run.cluster.hosts[node].daemon->state(key).failure.to_string());
}

void check_stays(SeedRun& run, NodeIndex node, const VersionKey& key) {
    const Id128 newest = head(run);
    if (has_version(run, newest) && in_chain(run, key) && epoch_of(run, key.incarnation) < epoch_of(run, newest)) return check_can_go(run, node, key);
    if (!has_version(run, newest) || in_chain(run, key) || epoch_of(run, key.incarnation) >= epoch_of(run, newest) || !run.known.flipped.empty()) return;
    if (!reaches_the_beginning(run, newest)) return;
    if (is_committed(run, key)) return check_told_of_commit(run, node, key);
    run.fail("node " + std::to_string(node) + " holds an image that nobody can need: version " + std::to_string(key.version) + " of epoch " + std::to_string(epoch_of(run, key.incarnation)));
}

}  // namespace

std::set<VersionKey> whole_in_scratch(const SeedRun& run) {
    std::map<VersionKey, std::set<Rank>> found;
    for (const Host& host : run.cluster.hosts) {
        if (!host.daemon) continue;
        for (const VersionKey& key : host.daemon->versions())
            for (Rank rank = 0; rank < run.cluster.ranks(); ++rank)
                if (host.daemon->image(key, rank)) found[key].insert(rank);
    }
    std::set<VersionKey> whole;
    for (const auto& [key, held] : found)
        if (held.size() == run.cluster.ranks()) whole.insert(key);
    return whole;
}

void check_dead(SeedRun& run) {
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        Host& host = run.cluster.hosts[node];
        if (run.cluster.is_io_node(node) || !host.daemon || !host.booted) continue;
        HostScratch scratch(run, host);
        Status cleared;
        if (!run.cluster.sim.run(look(host.process->world(), &run.cluster, host.daemon.get(), &scratch, &scratch.gone, &cleared), run.cluster.sim.now() + 600 * second))
            return run.fail("a look for dead images does not end");
        if (!cleared.ok()) run.fail("parts of a dead version stay: " + cleared.to_string());
        for (const VersionKey& key : scratch.gone) check_gone(run, node, key);
        for (const VersionKey& key : host.daemon->versions())  // not what the daemon itself takes for undecided, which may lack some
            if (!host.daemon->state(key).final && holds_any(run, host, key)) check_stays(run, node, key);
    }
}

}  // namespace cairn::testing
