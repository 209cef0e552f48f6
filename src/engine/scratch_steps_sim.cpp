// Scratch wants room, at any moment: single images or whole versions leave it, those in use must not, and the slots hold other images at once.
#include <algorithm>

#include "engine/promise_sim.hpp"
#include "engine/steps_sim.hpp"
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

}  // namespace cairn::testing
