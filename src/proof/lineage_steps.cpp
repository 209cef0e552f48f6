// A disk turns a bit of a record of the lineage. A restart then gets what it would have got, or an error that names the record; and the operator repairs.
#include <algorithm>

#include "proof/promise.hpp"
#include "catalog/repair.hpp"
#include "proof/steps.hpp"
#include "format/names.hpp"

namespace cairn::testing {

namespace {

std::vector<std::string> records(SeedRun& run) {
    std::vector<std::string> paths;
    const std::string directory = run.cluster.layout.lineage(run.cluster.roster.name);
    const auto entries = run.cluster.sim.persistent().list(directory);
    for (const DirectoryEntry& entry : entries.ok() ? *entries : std::vector<DirectoryEntry>())
        if (parse_lineage_open_name(entry.name) || parse_lineage_from_name(entry.name)) paths.push_back(directory + "/" + entry.name);
    return paths;
}

// A record of what an incarnation went on from is all that tells it, as far as the test knows: it has no version that was called committed and is there.
bool may_be_alone(const SeedRun& run, const std::string& path, Id128 incarnation) {
    const auto epoch = run.known.epochs.find(incarnation);
    if (epoch == run.known.epochs.end() || path != run.cluster.layout.lineage_from(run.cluster.roster.name, epoch->second)) return false;
    return !has_version(run, incarnation);
}

Task<void> repair(World world, Layout layout, std::string name, RepairOptions options, Result<Repair>* out) {
    Result<Repair> repaired = co_await repair_lineage(world, std::move(layout), std::move(name), {}, options);
    *out = std::move(repaired);
}

void flip_bit(SeedRun& run, const std::string& path) {
    const auto inode = run.cluster.sim.persistent().find(path);
    if (!inode.ok() || (*inode)->content->size() == 0) return;
    const std::uint64_t byte = run.draw((*inode)->content->size());
    (void)run.cluster.sim.persistent().flip_bit(path, byte, static_cast<unsigned>(run.draw(8))).ok();
    run.known.flipped.insert(path);
    run.see(Saw::record_flipped);
    run.tell("a bit turns in byte ", byte, " of ", path);
}

// A job that has gone on from a version and done nothing more: what it went on from stands in its record alone. It dies.
void flip_newest(SeedRun& run) {
    run.known.job_lives = false;
    reopen(run);
    const std::string open = run.cluster.layout.lineage_open(run.cluster.roster.name, run.cluster.roster.epoch);
    flip_bit(run, run.cluster.layout.lineage_from(run.cluster.roster.name, run.cluster.roster.epoch));
    if (run.chance(40)) flip_bit(run, open);
    if (run.chance(30)) pass(run);
    run.known.job_lives = false;
}

}  // namespace

void flip(SeedRun& run, NodeIndex) {
    if (run.chance(50)) return flip_newest(run);
    const std::vector<std::string> paths = records(run);
    if (!paths.empty()) flip_bit(run, paths[run.draw(paths.size())]);
}

// What was flipped twice may be whole again, so whether there is damage is not known here.
void repair(SeedRun& run) {
    if (run.known.flipped.empty()) return;
    sim::Process& process = run.cluster.hosts[run.cluster.reader()].node->start_process("repair");
    Result<Repair> repaired(Status(Code::deadline, "killed"));
    RepairOptions options;
    options.forget = true;
    (void)run.cluster.sim.run(repair(process.world(), run.cluster.layout, run.cluster.roster.name, options, &repaired), run.cluster.sim.now() + 600 * second);
    if (!repaired.ok()) return run.fail("a lineage can not be repaired with no faults: " + repaired.status().to_string());
    if (!repaired->left.empty()) return run.fail("a repair that may forget leaves damage: " + repaired->left.front().to_string());
    for (const Repair::Done& done : repaired->done) run.tell("repair: ", done.path, " ", done.how);
    Result<Repair> again(Status(Code::deadline, "killed"));
    (void)run.cluster.sim.run(repair(process.world(), run.cluster.layout, run.cluster.roster.name, options, &again), run.cluster.sim.now() + 600 * second);
    process.kill();
    if (!again.ok() || !again->done.empty()) return run.fail("a lineage is damaged still after its repair");
    for (const auto& [incarnation, epoch] : run.known.epochs)
        if (run.known.flipped.count(run.cluster.layout.lineage_open(run.cluster.roster.name, epoch))) run.known.nameless.insert(incarnation);
    for (const auto& [incarnation, parent] : run.known.chains) {
        const auto epoch = run.known.epochs.find(incarnation);
        const std::string path = epoch == run.known.epochs.end() ? "" : run.cluster.layout.lineage_from(run.cluster.roster.name, epoch->second);
        if (!run.known.flipped.count(path) || run.cluster.sim.persistent().find(path).ok()) continue;
        if (!may_be_alone(run, path, incarnation)) return run.fail("a repair forgot what versions tell: " + path);
        run.see(Saw::parent_forgotten);
        run.known.forgotten.insert(incarnation);
        run.known.recorded.erase(incarnation);
    }
    run.known.flipped.clear();
}

// Where a restart is refused, the record that it names is one that nothing else tells, and the operator goes on without it.
Result<RestorableSeries> look_for_restart(SeedRun& run) {
    Result<RestorableSeries> found = run.cluster.look_now();
    if (found.ok() || run.known.flipped.empty()) return found;
    run.see(Saw::restart_refused);
    run.tell("a restart is refused: ", found.status().to_string());
    bool is_named = false;
    for (const auto& [incarnation, parent] : run.known.chains)
        for (const std::string& path : run.known.flipped) is_named |= may_be_alone(run, path, incarnation) && found.status().text().find(path) != std::string::npos;
    if (!is_named) return found;
    repair(run);
    return run.cluster.look_now();
}

}  // namespace cairn::testing
