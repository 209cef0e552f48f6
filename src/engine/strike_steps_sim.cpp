// A fault in the middle of something: at a chosen operation of a daemon its node fails, or that operation does.
#include <algorithm>

#include "engine/promise_sim.hpp"
#include "engine/steps_sim.hpp"

namespace cairn::testing {

namespace {

// The operation comes back when nobody waits for it any more, if ever, and what else is asked of names until then fails often.
void begin_trouble(SeedRun& run) {
    sim::Faults& faults = run.cluster.sim.faults();
    run.strikes.after_this = faults;
    run.strikes.after_this->metadata_error = std::max(faults.metadata_error, 0.6);
    faults.hang_io = 1;
    faults.hang_io_max = 12 * second;
    run.cluster.sim.at(run.cluster.sim.now() + 5 * second, [&run, mine = run.strikes.count] {
        if (mine == run.strikes.count) run.cluster.sim.faults() = run.background;
    });
}

}  // namespace

void be_quiet(SeedRun& run) {
    run.strikes.armed.reset();
    ++run.strikes.count;
    run.strikes.after_this.reset();
    run.cluster.sim.faults() = {};
}

// A flush, mostly, in which something happens at a chosen operation of a daemon.
void strike(SeedRun& run, NodeIndex node) {
    static const std::array operations = {"publish", "publish", "publish", "publish", "publish", "fsync", "fsync",   "fsync_directory", "fsync_directory", "create",
                                          "resize",  "remove",  "write",   "open",    "stat",    "list",  "mkdir",   "send",            "payload",         "checksums"};
    using Kind = Strike::Kind;
    static const std::array kinds = {Kind::kill, Kind::pause, Kind::crash, Kind::power, Kind::power, Kind::fail, Kind::hang, Kind::trouble, Kind::trouble};
    Strike next;
    next.operation = operations[run.draw(operations.size())];
    next.kind = kinds[run.draw(kinds.size())];
    if (next.kind == Kind::trouble) next.operation = "publish";
    next.before = next.operation == "publish" ? run.draw(2) : run.chance(60) ? run.draw(3) : run.draw(30);
    next.delay = run.chance(40) ? 0 : static_cast<Nanos>(run.draw(5'000)) * microsecond;
    be_quiet(run);  // an earlier one is over
    run.cluster.sim.faults() = run.background;
    run.strikes.armed = next;
    if (run.chance(70)) capture(run);
    pass(run);
    run.strikes.armed.reset();
    if (run.chance(10)) return power_loss(run);  // what others made of it meanwhile must last
    if (!run.chance(70)) return;
    if (run.cluster.hosts[node].process) run.cluster.hosts[node].process->resume();
    start(run, node);
}

void observe(SeedRun& run, sim::Process& process, const std::string& what, const std::string& detail) {
    if (what == "denied") return run.see(Saw::denied);
    if (run.strikes.after_this) {
        run.cluster.sim.faults() = *run.strikes.after_this;
        run.strikes.after_this.reset();
    }
    if (process.name() != "cairnd") return;
    const NodeIndex node = process.node().id();
    const bool of_part = detail.find("/part-") != std::string::npos;
    if (what == "create" && of_part && run.cluster.is_io_node(node)) run.see(Saw::io_node_led);
    if (what == "resize" && of_part) run.see(Saw::several_leaders);
    if (what == "publish" && detail.find("/manifest.") != std::string::npos) check_superseded(run, process, detail);
    if (!run.strikes.armed || what != run.strikes.armed->operation || run.strikes.armed->before-- > 0) return;
    const Strike strike = *run.strikes.armed;
    run.strikes.armed.reset();
    run.see(Saw::struck);
    run.tell("strikes node ", node, " at ", what, " ", detail, ", kind ", static_cast<int>(strike.kind));
    sim::Faults& faults = run.cluster.sim.faults();
    if (strike.kind == Strike::Kind::trouble) return begin_trouble(run);
    if (strike.kind == Strike::Kind::fail || strike.kind == Strike::Kind::hang) {
        run.strikes.after_this = faults;
        if (strike.kind == Strike::Kind::hang) faults.hang_io = 1;
        else faults.read_error = faults.write_error = faults.metadata_error = faults.fsync_error = 1;
        return;
    }
    run.cluster.sim.at(run.cluster.sim.now() + strike.delay, [&run, node, kind = strike.kind, mine = run.strikes.count] {
        Host& host = run.cluster.hosts[node];
        if (mine != run.strikes.count || !host.process) return;
        note_states(run);
        if (kind == Strike::Kind::kill) run.cluster.kill_daemon(node);
        else if (kind == Strike::Kind::pause) host.process->pause();
        else if (kind == Strike::Kind::crash) crash(run, node);
        else power_loss(run);
    });
}

}  // namespace cairn::testing
