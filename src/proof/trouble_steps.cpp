// What goes wrong between two operations: daemons are killed or stand still, nodes crash or are cut off, the power goes, persistent is
// another tree for a while.
#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

void kill(SeedRun& run, NodeIndex node) {
    if (!run.cluster.hosts[node].process) return;
    run.tell("kill -9 daemon ", node);
    run.see(Saw::daemon_killed);
    if (node == run.cluster.coordinator()) run.see(Saw::coordinator_killed);
    run.cluster.kill_daemon(node);
    if (!run.chance(70)) return;
    pass(run);
    start(run, node);
}

void pause(SeedRun& run, NodeIndex node) {
    Host& host = run.cluster.hosts[node];
    if (!host.process) return;
    run.tell("pause daemon ", node);
    run.see(Saw::paused);
    host.process->pause();
    pass(run);
    if (!run.chance(70) || !host.process) return;
    host.process->resume();
    run.tell("resume daemon ", node);
}

void crash(SeedRun& run, NodeIndex node) {
    if (!run.cluster.hosts[node].node->alive()) return;
    run.tell("crash node ", node);
    run.see(Saw::node_crashed);
    run.cluster.crash_node(node);
    if (!run.cluster.is_io_node(node)) run.known.job_lives = false;
}

void lose_now(SeedRun& run, NodeIndex node) {
    if (run.cluster.hosts[node].gone) return;
    note_states(run);
    run.tell("node ", node, " is gone, and does not come back");
    run.see(Saw::node_gone);
    if (node == run.cluster.coordinator()) run.see(Saw::coordinator_gone);
    run.cluster.lose_node(node);
    if (!run.cluster.is_io_node(node)) run.known.job_lives = false;
}

// Nothing is left but what the shared file system was made to keep.
void power_loss(SeedRun& run) {
    run.tell("all nodes lose power");
    run.see(Saw::power_lost);
    note_states(run);
    if (run.known.only_sealed && !run.known.reported.count(*run.known.only_sealed)) run.see(Saw::parent_lost);
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node)
        if (run.cluster.hosts[node].node->alive()) run.cluster.crash_node(node);
    run.known.job_lives = false;
}

void partition(SeedRun& run) {
    std::set<sim::NodeId> island;
    for (NodeIndex i = 0; i < run.cluster.hosts.size(); ++i)
        if (run.chance(30)) island.insert(run.cluster.hosts[i].node->id());
    run.tell("partition off ", island.size(), " nodes");
    run.see(Saw::partitioned);
    run.cluster.sim.partition(island);
    pass(run);
    if (run.chance(70)) run.cluster.sim.heal();
}

void uncover(SeedRun& run) {
    bool any = false;
    for (Host& host : run.cluster.hosts) {
        any |= host.node->covered();
        host.node->cover(false);
    }
    if (any) run.tell("persistent is back");
}

void cover_all(SeedRun& run) {
    run.tell("persistent is another tree on all nodes");
    run.see(Saw::covered);
    for (Host& host : run.cluster.hosts) host.node->cover(true);
}

// What is done there meanwhile is not where a restart looks. The other tree may be an old copy: directories of versions, but no record of this job.
void cover(SeedRun& run, NodeIndex node) {
    if (run.chance(50)) {
        sim::FileSystem& other = run.cluster.sim.other_persistent();
        (void)other.make_directory(run.cluster.layout.series(run.cluster.roster.name), node).ok();
        for (Version ahead = 0; ahead < 4; ++ahead)
            (void)other.make_directory(run.cluster.layout.version(run.cluster.key(run.known.next_version + ahead)), node).ok();
    }
    if (run.chance(60)) {
        cover_all(run);
    } else {
        run.tell("persistent is another tree on node ", node);
        run.see(Saw::covered);
        run.cluster.hosts[node].node->cover(true);
    }
    if (run.chance(70)) capture(run);
    pass(run);
    if (run.chance(80)) uncover(run);
}

void spoil_root(SeedRun& run, NodeIndex node) {
    using Below = sim::Faults::Below;
    static const std::array names = {"fails", "is full", "is away", "hangs"};
    const std::vector<std::string>& roots = run.cluster.options.roots;
    if (roots.empty()) return;
    const std::uint64_t random = sim::mix(run.scenario.seed ^ static_cast<std::uint64_t>(run.cluster.sim.now()) ^ 0x6D696466);
    const bool in_mid_flush = random % 2 == 0;
    if (in_mid_flush) {
        capture(run);
        run.cluster.sim.run_until(run.cluster.sim.now() + static_cast<Nanos>(random / 2 % 500) * millisecond);
    }
    run.background.below = run.chance(20) ? "" : roots[run.draw(roots.size())];
    run.background.below_is = static_cast<Below>(run.draw(3));
    if (run.background.below_is == Below::fails && sim::mix(run.scenario.seed ^ static_cast<std::uint64_t>(run.cluster.sim.now())) % 3 == 0) run.background.below_is = Below::hangs;
    if (in_mid_flush && random / 1024 % 3 == 0) run.background.below_is = Below::hangs;
    run.cluster.sim.faults() = run.background;
    if (run.background.below.empty()) run.tell("all roots are well");
    else run.tell("root ", run.background.below, " ", names[static_cast<std::size_t>(run.background.below_is)]);
    if (run.chance(70) && !in_mid_flush) capture(run);
    if (run.chance(25)) restore(run, node);
    if (run.chance(20)) remove(run, node);
    pass(run);
}

}  // namespace cairn::testing
