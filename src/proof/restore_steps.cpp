// A restart while storage is in trouble: whoever reads may fail, or take an older version and say which it passed over. It never gets other bytes than
// were captured, nor silently something older than was called committed.
#include <algorithm>

#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

struct Restart {
    Status looked{Code::deadline, "killed"};
    std::optional<VersionKey> got;
    std::map<VersionKey, Status> passed_over;  // named to the user, and why
    std::optional<std::string> wrong;
    bool any_away = false;
};

// As client/restore.cpp does it: the newest that is whole, and what can not be read is named.
Task<void> restart(const Cluster* cluster, World world, int tries, Restart* out) {
    Result<Cluster::Found> found(Status(Code::deadline, "not looked"));
    for (int i = 0; i < tries && !found.ok(); ++i) {
        Result<Cluster::Found> looked = co_await cluster->look(world, {});
        found = std::move(looked);
    }
    out->looked = found.status();
    if (!found.ok()) co_return;
    std::vector<CatalogEntry> entries = found->in_lineage();
    std::reverse(entries.begin(), entries.end());
    for (const CatalogEntry& entry : entries) {
        if (entry.damage) out->passed_over.emplace(entry.key, *entry.damage);
        if (!entry.committed()) continue;
        const VersionKey key = entry.key;
        Status status = co_await cluster->restore(world, key);
        if (status.ok()) out->got = key;
        if (status.code() == Code::internal) out->wrong = "version " + std::to_string(key.version) + ": " + status.text();
        if (status.ok() || out->wrong) co_return;
        out->any_away |= status.code() == Code::unavailable && status.text().find("holds part") != std::string::npos;
        out->passed_over.emplace(key, std::move(status));
    }
    out->looked = found->lineage.tail;
}

// More of what a reader meets than goes wrong otherwise.
void make_trouble(SeedRun& run) {
    sim::Faults& faults = run.cluster.sim.faults();
    for (const auto rate : {&sim::Faults::read_error, &sim::Faults::metadata_error, &sim::Faults::stale_read, &sim::Faults::other_read, &sim::Faults::hang_io,
                            &sim::Faults::short_transfer})
        if (run.chance(30)) faults.*rate = static_cast<double>(run.draw(300)) / 1000;
}

double reading_troubles(const sim::Faults& struck) {
    return struck.read_error + struck.metadata_error + struck.stale_read + struck.other_read + struck.hang_io + struck.slow_io + struck.short_transfer;
}

// The version itself, its directory, or one of a newer job, which may have gone back behind it: what that one was is not known.
bool is_named(const SeedRun& run, const Restart& restarted, const VersionKey& key) {
    const auto epoch = run.known.epochs.find(key.incarnation);
    return std::any_of(restarted.passed_over.begin(), restarted.passed_over.end(), [&](const auto& each) {
        const VersionKey& passed = each.first;
        const auto newer = run.known.epochs.find(passed.incarnation);
        const bool is_newer = newer != run.known.epochs.end() && epoch != run.known.epochs.end() && newer->second > epoch->second;
        return passed == key || passed == VersionKey{key.name, key.version, {}} || is_newer;
    });
}

}  // namespace

void restore(SeedRun& run, NodeIndex node) {
    if (!run.cluster.hosts[node].node->alive() || run.cluster.hosts[node].node->covered()) return;
    note_states(run);
    std::vector<VersionKey> told;
    for (const auto& [key, reported] : run.known.reported)
        if (in_chain(run, key) && !run.known.removed.count(key)) told.push_back(key);
    sim::Process& process = run.cluster.hosts[node].node->start_process("reader");
    const sim::Faults before = run.cluster.sim.faults();
    if (run.chance(70)) make_trouble(run);
    const double troubles = reading_troubles(run.cluster.sim.struck());
    Restart restarted;
    const int tries = 1 + static_cast<int>(run.draw(3));
    const bool is_over = run.cluster.sim.run(restart(&run.cluster, process.world(), tries, &restarted), run.cluster.sim.now() + 900 * second);
    process.kill();
    run.cluster.sim.faults() = before;
    run.tell("restore on node ", node, ": ", restarted.got ? "version " + std::to_string(restarted.got->version) : restarted.looked.to_string(), ", ",
             restarted.passed_over.size(), " passed over");
    if (restarted.wrong) return run.fail("a restore in trouble gave wrong bytes: " + *restarted.wrong);
    // Of many versions below a root that hangs each takes its own wait: what it would have named of the rest is not known.
    if (!is_over || !restarted.looked.ok()) return run.see(Saw::restore_failed);
    if (!restarted.passed_over.empty()) run.see(Saw::passed_over);
    if (restarted.any_away) run.see(Saw::read_away);
    if (restarted.got && reading_troubles(run.cluster.sim.struck()) > troubles) run.see(Saw::restored_in_trouble);
    for (const VersionKey& key : told) {
        const bool older = !restarted.got || restarted.got->version < key.version;
        if (older && !is_named(run, restarted, key))
            return run.fail("a restore in trouble silently passed over a committed version: " + std::to_string(key.version) + ", and took " +
                            (restarted.got ? std::to_string(restarted.got->version) : "none"));
    }
}

}  // namespace cairn::testing
