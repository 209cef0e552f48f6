// Scratch wants room, at any moment: single images or whole versions leave it, those in use must not, and the slots hold other images at once.
#include <algorithm>

#include "proof/promise.hpp"
#include "proof/steps.hpp"
#include "world/sim/operation.hpp"

namespace cairn::testing {

namespace {

// Of this daemon, into this file.
bool write_is_under_way(const Host& host, const std::string& path) {
    sim::InFlight& in_flight = host.node->in_flight;
    const auto tickets = in_flight.of(*host.process);
    return std::any_of(tickets.begin(), tickets.end(), [&](sim::InFlight::Ticket ticket) {
        const sim::Operation& operation = *in_flight.find(ticket);
        return operation.kind == sim::Operation::Kind::write && operation.path == path;
    });
}

}  // namespace

Status drop_image(SeedRun& run, Host& host, const VersionKey& key, Rank rank) {
    const LocalImage* image = host.daemon->image(key, rank);
    const std::string path = image ? image->path : "";
    const bool may_be_written = host.daemon->may_be_written(key, rank);
    TRY(host.daemon->drop_image(key, rank));
    host.left.emplace(key, path);
    if (may_be_written) run.see(Saw::let_go_late);
    else if (write_is_under_way(host, path)) run.fail("an image left scratch, and its slot may be written to still: version " + std::to_string(key.version));
    return {};
}

// Whatever the daemon of this node lets go of, but for the newest version while it is under way. True: something went.
static bool let_go_of_versions(SeedRun& run, Host& host) {
    bool any = false;
    for (const VersionKey& key : host.daemon->versions()) {
        const VersionState before = host.daemon->state(key);
        if (key == run.cluster.key(run.known.next_version - 1) && !before.final) continue;
        const bool single = run.chance(40);
        for (Rank rank = 0; rank < run.cluster.ranks(); ++rank) {
            const LocalImage* image = host.daemon->image(key, rank);
            if (!image || (single && run.chance(50))) continue;
            const std::string path = image->path;
            const bool may_be_written = host.daemon->may_be_written(key, rank);
            if (!drop_image(run, host, key, rank).ok()) {
                run.see(before.final ? Saw::image_in_use : Saw::image_under_way);
                continue;
            }
            if (!before.final && before.failure.ok()) run.fail("an image left scratch while its version was being flushed: version " + std::to_string(key.version));
            if (may_be_written || run.chance(30)) (void)host.node->scratch().remove(path, host.node->id()).ok();
            else run.cluster.free_slot(host, path);
            if (single) run.see(Saw::single_let_go);
            run.known.let_go.insert(key);
            any = true;
        }
    }
    return any;
}

// On one node, or on all.
void let_go_now(SeedRun& run, NodeIndex node) {
    const bool all = run.chance(50);
    bool any = false;
    for (NodeIndex each = 0; each < run.cluster.hosts.size(); ++each) {
        Host& host = run.cluster.hosts[each];
        const bool runs = host.daemon && !host.process->is_paused();
        if (runs && (all || each == node)) any |= let_go_of_versions(run, host);
    }
    if (any) run.see(Saw::let_go);
    run.tell(any ? "images leave" : "nothing can leave", " scratch of ", all ? "all nodes" : "node " + std::to_string(node));
}

void let_go(SeedRun& run, NodeIndex node) {
    if (run.chance(50)) {  // in the middle of a flush
        capture(run);
        run.cluster.sim.run_until(run.cluster.sim.now() + static_cast<Nanos>(run.draw(100)) * millisecond);
    }
    let_go_now(run, node);
    if (run.chance(50)) capture(run);
}

// Of a job that its daemon has forgotten scratch may let go of everything, and use it again.
static void free_slots(SeedRun& run, Host& host, const std::multimap<VersionKey, std::string>& paths) {
    std::set<VersionKey> kept;
    for (const auto& [key, path] : paths) {
        if (write_is_under_way(host, path)) return run.fail("a job was forgotten, and a slot of it may be written to still: version " + std::to_string(key.version));
        if (run.known.versions_forgotten.insert(key).second && run.chance(50)) kept.insert(key);
    }
    for (const auto& [key, path] : paths) {
        if (kept.count(key)) continue;
        host.left.emplace(key, path);
        run.cluster.free_slot(host, path);
        run.known.let_go.insert(key);
    }
}

static std::multimap<VersionKey, std::string> images_of(const SeedRun& run, const Node& daemon, Id128 incarnation) {
    std::multimap<VersionKey, std::string> paths;
    for (const VersionKey& key : daemon.versions())
        for (Rank rank = 0; key.incarnation == incarnation && rank < run.cluster.ranks(); ++rank)
            if (const LocalImage* image = daemon.image(key, rank)) paths.emplace(key, image->path);
    return paths;
}

// The present job's ranks come back, perhaps when the daemon has stood alone for a while: they join again, and that is all.
void forget(SeedRun& run, NodeIndex node) {
    if (run.chance(50)) {  // in the middle of a flush
        capture(run);
        run.cluster.sim.run_until(run.cluster.sim.now() + static_cast<Nanos>(run.draw(100)) * millisecond);
    } else if (run.chance(50)) {
        pass(run);
    }
    note_states(run);
    Host& host = run.cluster.hosts[node];
    if (!host.daemon || !host.booted || host.process->is_paused() || run.cluster.is_io_node(node)) return;
    bool any = false;
    for (const auto& [incarnation, epoch] : run.known.epochs) {
        const auto paths = images_of(run, *host.daemon, incarnation);
        if (!host.daemon->knows(incarnation) || !host.daemon->forget(incarnation)) continue;
        any = true;
        run.known.jobs_forgotten.emplace(node, host.started, incarnation);
        free_slots(run, host, paths);
    }
    run.tell(any ? "daemon " : "no job has ended on node ", node, any ? " forgets jobs that have ended" : "");
    if (any) run.see(Saw::job_forgotten);
    const bool is_left = run.known.job_lives && !host.daemon->knows(run.cluster.roster.incarnation);
    if (any && is_left && run.chance(40)) pass(run);
    // Who did not forget it, but never knew it, has its scratch to look at when ranks tell of it.
    if (!is_left || !host.daemon || !host.booted || run.known.jobs_forgotten.erase({node, host.started, run.cluster.roster.incarnation}) == 0) return;
    if (const Status joined = run.cluster.join_again(node); !joined.ok()) run.fail("a job that was forgotten can not join again: " + joined.to_string());
}

}  // namespace cairn::testing
