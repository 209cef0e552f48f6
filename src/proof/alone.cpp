// An ending in which no rank lives any more: daemons are ended in the middle of what they do and started again, and nobody tells them of the job. What is sealed
// commits all the same, by what scratch holds.
#include "format/frame.hpp"
#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

// Its scratch says so, in one piece: a record that a daemon died writing is of a job that its ranks would have to tell of again.
bool has_record(const SeedRun& run, NodeIndex node) {
    const auto found = run.cluster.hosts[node].node->scratch().find(run.cluster.scratch(node).job(run.cluster.roster.incarnation));
    if (!found.ok()) return false;
    const sim::Content& content = *(*found)->content;
    return unframe(FrameKind::roster, sim::materialise(content.read(0, content.size()))).ok();
}

// Of this job's versions.
std::set<VersionKey> uncommitted(const SeedRun& run) {
    std::set<VersionKey> keys;
    for (const VersionKey& key : run.known.sealed)
        if (key.incarnation == run.cluster.roster.incarnation && !run.known.reported.count(key) && !run.known.removed.count(key) && !run.known.let_go.count(key)) keys.insert(key);
    return keys;
}

void start_again(SeedRun& run) {
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        if (run.cluster.hosts[node].gone || run.chance(10)) continue;
        note_states(run);
        run.cluster.kill_daemon(node);
        if (run.chance(20)) run.cluster.sim.run_until(run.cluster.sim.now() + static_cast<Nanos>(run.draw(3000)) * millisecond);
        start(run, node);
    }
    for (const Host& host : run.cluster.hosts)
        if (!host.gone && !run.cluster.sim.run_until([&] { return host.booted; }, run.cluster.sim.now() + 600 * second)) return run.fail("a daemon does not boot with no faults");
}

}  // namespace

void check_alone(SeedRun& run) {
    if (run.scenario.alone == 0 || !run.known.job_lives) return;
    run.see(Saw::alone);
    if (run.chance(70)) {
        capture(run);
        run.cluster.sim.run_until(run.cluster.sim.now() + static_cast<Nanos>(run.draw(run.chance(50) ? 20 : 400)) * millisecond);
    }
    note_states(run);
    run.tell("no rank lives any more, and daemons are started again");
    const std::set<VersionKey> open = uncommitted(run);
    start_again(run);
    bool all_hold_it = true;
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        const Host& host = run.cluster.hosts[node];
        if (run.cluster.is_io_node(node) || host.gone) continue;
        const bool holds_it = has_record(run, node);
        all_hold_it &= holds_it;
        if (run.result.ok && holds_it && !host.daemon->knows(run.cluster.roster.incarnation))
            run.fail("node " + std::to_string(node) + " does not know a job that its scratch holds, and no rank lives to tell of it");
    }
    if (run.result.ok && all_hold_it) check_sealed_commit(run);
    for (const VersionKey& key : open)
        if (run.known.reported.count(key)) run.see(Saw::alone_committed);
    run.known.job_lives = false;  // the next one goes on from there
}

}  // namespace cairn::testing
