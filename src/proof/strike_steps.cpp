// A fault in the middle of something: at a chosen operation of a daemon its node fails, or that operation does.
#include <algorithm>

#include "format/names.hpp"
#include "proof/promise.hpp"
#include "proof/steps.hpp"

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

// From when its manifest is written beside until that is published and durable.
void aim_at_commit(SeedRun& run, Strike& strike) {
    constexpr std::array<std::pair<const char*, const char*>, 4> moments = {
        std::pair{"create", "/.tmp-"}, std::pair{"publish", "/manifest."}, std::pair{"publish", "/manifest."}, std::pair{"fsync_directory", "/series/"}};
    const auto [operation, on] = moments[run.draw(moments.size())];
    strike.operation = operation;
    strike.on = on;
    strike.fails = run.chance(50);
}

// Of the version in whose directory something is done.
std::optional<VersionKey> version_at(const SeedRun& run, const std::string& path) {
    const std::string series = run.cluster.layout.series(run.cluster.roster.name) + "/";
    if (path.compare(0, series.size(), series) != 0) return std::nullopt;
    const Version version = std::strtoull(path.c_str() + series.size(), nullptr, 10);
    for (const VersionKey& key : run.known.sealed)
        if (key.version == version && !run.known.reported.count(key) && !run.known.removed.count(key)) return key;
    return std::nullopt;
}

void ask_to_give_up(SeedRun& run, const Strike& strike, const std::string& path) {
    const std::optional<VersionKey> key = version_at(run, path);
    if (!key) return;
    const bool is_cancel = strike.kind == Strike::Kind::cancel;
    const bool begun = is_cancel ? begin_cancel(run, strike.where, *key, 20 * second) : begin_give_up(run, strike.where, *key);
    if (begun) run.see(is_cancel ? Saw::cancel_at_commit : Saw::gc_at_commit);
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
    static const std::array kinds = {Kind::kill, Kind::pause, Kind::crash,   Kind::power,  Kind::power, Kind::fail,
                                     Kind::hang, Kind::trouble, Kind::trouble, Kind::cancel, Kind::give_up, Kind::let_go, Kind::cover};
    Strike next;
    next.operation = operations[run.draw(operations.size())];
    next.kind = kinds[run.draw(kinds.size())];
    next.where = node;
    const bool at_publication = next.kind == Kind::trouble || next.kind == Kind::cancel || next.kind == Kind::give_up;
    if (at_publication) next.operation = "publish";
    if (next.kind == Kind::cancel || next.kind == Kind::give_up) aim_at_commit(run, next);
    if (next.kind == Kind::cover) next.lasts = static_cast<Nanos>(run.draw(run.chance(50) ? 20 : 4'000)) * millisecond;
    next.before = next.operation == "publish" ? run.draw(2) : run.chance(60) ? run.draw(3) : run.draw(30);
    if (!next.on.empty()) next.before = 0;
    next.delay = run.chance(40) ? 0 : static_cast<Nanos>(run.draw(5'000)) * microsecond;
    be_quiet(run);  // an earlier one is over
    run.cluster.sim.faults() = run.background;
    run.strikes.armed = next;
    if (run.chance(70)) capture(run);
    pass(run);
    run.strikes.armed.reset();
    end_errands(run, 20 * second);
    if (run.chance(10)) return power_loss(run);  // what others made of it meanwhile must last
    if (!run.chance(70)) return;
    if (run.cluster.hosts[node].process) run.cluster.hosts[node].process->resume();
    start(run, node);
}

// A node does not come back, mostly the one that coordinates: what it alone knew of its versions nobody tells any more. Between two operations, or at one of a commit.
void lose(SeedRun& run, NodeIndex node) {
    if (run.chance(70)) node = run.cluster.coordinator();
    if (run.chance(50)) {
        Strike next;
        next.kind = Strike::Kind::lose;
        next.where = node;
        aim_at_commit(run, next);
        next.delay = run.chance(40) ? 0 : static_cast<Nanos>(run.draw(5'000)) * microsecond;
        be_quiet(run);
        run.cluster.sim.faults() = run.background;
        run.strikes.armed = next;
    }
    if (run.chance(70)) capture(run);
    pass(run);
    run.strikes.armed.reset();
    lose_now(run, node);
}

void observe(SeedRun& run, sim::Process& process, const std::string& what, const std::string& detail) {
    if (what == "denied") return run.see(detail.find("/manifest.") == std::string::npos ? Saw::denied : Saw::commit_denied);
    if (what == "decode") ++run.decoded[process.node().id()];
    check_operation(run, process, what, detail);
    if (what == "published") return;  // no operation, like "denied": the end of one
    if (run.strikes.after_this) {
        run.cluster.sim.faults() = *run.strikes.after_this;
        run.strikes.after_this.reset();
    }
    if (process.name() != "cairnd") return;
    const NodeIndex node = process.node().id();
    const bool of_part = is_part_path(detail);
    if (what == "create" && of_part && run.cluster.is_io_node(node)) run.see(Saw::io_node_led);
    if (what == "resize" && of_part) run.see(Saw::several_leaders);
    if (!run.strikes.armed || what != run.strikes.armed->operation || detail.find(run.strikes.armed->on) == std::string::npos) return;
    if (run.strikes.armed->before-- > 0) return;
    const Strike strike = *run.strikes.armed;
    run.strikes.armed.reset();
    run.see(Saw::struck);
    run.tell("strikes node ", node, " at ", what, " ", detail, ", kind ", static_cast<int>(strike.kind));
    sim::Faults& faults = run.cluster.sim.faults();
    if (strike.kind == Strike::Kind::trouble) return begin_trouble(run);
    if (strike.kind == Strike::Kind::fail || strike.kind == Strike::Kind::hang || strike.fails) {
        run.strikes.after_this = faults;
        if (strike.kind == Strike::Kind::hang) faults.hang_io = 1;
        else faults.read_error = faults.write_error = faults.metadata_error = faults.fsync_error = 1;
        if (!strike.fails) return;
    }
    run.cluster.sim.at(run.cluster.sim.now() + strike.delay, [&run, node, strike, path = detail, kind = strike.kind, mine = run.strikes.count] {
        Host& host = run.cluster.hosts[node];
        if (mine == run.strikes.count && (kind == Strike::Kind::cancel || kind == Strike::Kind::give_up)) return ask_to_give_up(run, strike, path);
        if (mine == run.strikes.count && kind == Strike::Kind::let_go) return let_go_now(run, strike.where);
        if (mine == run.strikes.count && kind == Strike::Kind::lose) return lose_now(run, strike.where);
        if (mine == run.strikes.count && kind == Strike::Kind::cover) {
            cover_all(run);
            return run.cluster.sim.at(run.cluster.sim.now() + strike.lasts, [&run] { uncover(run); });
        }
        if (mine != run.strikes.count || !host.process) return;
        note_states(run);
        if (kind == Strike::Kind::kill) run.cluster.kill_daemon(node);
        else if (kind == Strike::Kind::pause) host.process->pause();
        else if (kind == Strike::Kind::crash) crash(run, node);
        else power_loss(run);
    });
}

}  // namespace cairn::testing
