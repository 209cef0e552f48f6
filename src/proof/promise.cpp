// What was promised, held against what daemons say while it runs, and against what persistent storage holds at the end.
#include "proof/promise.hpp"
#include "copies/once.hpp"

#include <algorithm>

namespace cairn::testing {

namespace {

void note_forgotten(SeedRun& run, NodeIndex node, const Daemon& daemon, const std::vector<VersionKey>& versions) {
    if (versions.empty()) return;
    const auto [oldest, first] = run.known.oldest.emplace(std::pair(node, daemon.started), versions.front());
    if (!first && oldest->second != versions.front()) run.see(Saw::forgotten);
    oldest->second = versions.front();
}

// What was used up is given up by name, and nobody commits it afterwards.
void note_once(SeedRun& run, const VersionKey& key, const VersionState& state) {
    if (run.scenario.once == 0 || !run.cluster.has_unslotted(key.version)) return;
    if (state.level == Level::committed) run.see(Saw::once_committed);
    if (!state.final || state.failure.text().find("read once only") == std::string::npos) return;
    run.see(Saw::once_used_up);
    run.known.given_up.insert(key);
}

// A rank that gives gives again, as often as attempts fail: only one that has left ends its version.
void note_given(SeedRun& run, const VersionKey& key, const VersionState& state) {
    if (run.scenario.asked == 0) return;
    bool any = false, left = false, again = false;
    for (auto it = run.cluster.giving.lower_bound({key, 0}); it != run.cluster.giving.end() && it->first.first == key; ++it) {
        any = true;
        left |= it->second->is_gone;
        again |= it->second->was_asked_again;
    }
    if (any && state.level == Level::committed) run.see(Saw::asked_committed);
    if (again && state.level == Level::committed) run.see(Saw::asked_again);
    if (!any || !state.final || state.failure.text().find("gives when it is asked") == std::string::npos) return;
    if (!left) run.fail("a version was given up for want of ranks that were there to give their images: version " + std::to_string(key.version) + ": " + state.failure.to_string());
    run.see(Saw::asked_left);
    run.known.given_up.insert(key);
}

void note_daemon(SeedRun& run, NodeIndex node, const Daemon& host) {
    const NodeCounters& counters = host.daemon->counters();
    if (counters.taken_over_bytes > 0) run.see(Saw::work_moved);
    if (counters.attempts_failed > 0) run.see(Saw::attempt_failed);
    if (counters.planned_ahead > 0) run.see(Saw::planned_ahead);
    if (counters.planned_in_vain > 0) run.see(Saw::planned_in_vain);
    if (counters.planned_by_key > 0) run.see(Saw::by_key);
    if (host.daemon->pace().counters().waited > 0) run.see(Saw::paced);
    const std::vector<VersionKey> versions = host.daemon->versions();
    note_forgotten(run, node, host, versions);
    for (const VersionKey& key : versions) {
        const VersionState state = host.daemon->state(key);
        note_once(run, key, state);
        note_given(run, key, state);
        if (state.level == Level::committed && run.known.reported.emplace(key, true).second) run.tell("committed: version ", key.version);
        const auto fenced = run.known.fenced.find(key);
        // A coordinator that knew it from before, and may have stood still meanwhile, may say so to daemons that came later.
        const Host& coordinator = run.cluster.hosts[run.cluster.coordinator(key.incarnation)];
        const bool is_new = fenced != run.known.fenced.end() && !coordinator.was_succeeded && fenced->second < coordinator.started && coordinator.started <= host.started;
        if (state.level == Level::committed && is_new)
            run.fail("a daemon that came later calls a removed version committed: version " + std::to_string(key.version));
        if (state.level == Level::committed && run.known.given_up.count(key)) run.fail("a version that was given up is called committed: version " + std::to_string(key.version));
        if (state.level == Level::sealed && run.cluster.sealing[key].size() < run.cluster.ranks())
            run.fail("a daemon says that every rank has sealed a version, and not every one has: version " + std::to_string(key.version));
        if (state.failure.code() == Code::internal) run.fail("a daemon finds a fault of its own: " + state.failure.to_string());
    }
    if (counters.attempts_failed > 0 && run.scenario.only_messages_suffer()) run.fail("an attempt failed where only messages were lost or late");
    if (counters.attempts_failed > 0 && run.scenario.only_limits_hold()) run.fail("an attempt failed by limits alone");
}

}  // namespace

// Remembers every version that any daemon called committed.
void note_states(SeedRun& run) {
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        const Host& host = run.cluster.hosts[node];
        if (host.slots_reused > 0) run.see(Saw::slot_reused);
        if (host.daemon) note_daemon(run, node, host);
        for (const Daemon& former : host.formers) note_daemon(run, node, former);
    }
    check_waiters(run);
}

// A version that nobody needs: not the newest of its incarnation, and none that a job went on from.
std::optional<VersionKey> removable(SeedRun& run) {
    std::vector<VersionKey> found;
    for (const auto& [key, reported] : run.known.reported) {
        const bool newer = std::any_of(run.known.reported.begin(), run.known.reported.end(), [&](const auto& other) {
            return other.first.incarnation == key.incarnation && other.first.version > key.version && !run.known.removed.count(other.first);
        });
        const bool parent = std::any_of(run.known.chains.begin(), run.known.chains.end(), [&](const auto& chain) {
            return chain.second.incarnation == key.incarnation && chain.second.version == key.version;
        });
        if (newer && !parent && !run.known.removed.count(key)) found.push_back(key);
    }
    if (found.empty()) return std::nullopt;
    return found[run.draw(found.size())];
}

bool has_version(const SeedRun& run, Id128 incarnation) {
    return std::any_of(run.known.reported.begin(), run.known.reported.end(), [&](const auto& entry) {
        return entry.first.incarnation == incarnation && !run.known.removed.count(entry.first);
    });
}

Id128 head(const SeedRun& run) {
    Id128 newest;
    std::uint64_t newest_epoch = 0;
    for (const auto& [incarnation, epoch] : run.known.epochs) {
        const bool reported = std::any_of(run.known.reported.begin(), run.known.reported.end(), [&](const auto& entry) { return entry.first.incarnation == incarnation; });
        // Of a job that died while it named its parent only the file system knows whether it did.
        const std::string parent = run.cluster.layout.lineage_from(run.cluster.roster.name, epoch);
        const bool counts = reported || run.known.recorded.count(incarnation) || run.cluster.sim.persistent().find(parent).ok();
        if (!counts || epoch < newest_epoch) continue;
        newest = incarnation;
        newest_epoch = epoch;
    }
    return newest;
}

bool in_chain(const SeedRun& run, const VersionKey& key) { return in_chain(run, head(run), key); }

bool in_chain(const SeedRun& run, Id128 at, const VersionKey& key) {
    Version version_max = UINT64_MAX;
    for (std::size_t guard = 0; at && guard <= run.known.chains.size(); ++guard) {
        if (key.incarnation == at && key.version <= version_max) return true;
        const auto found = run.known.chains.find(at);
        if (found == run.known.chains.end() || (run.known.forgotten.count(at) && !has_version(run, at))) return false;
        version_max = std::min(version_max, found->second.version);
        at = found->second.incarnation;
    }
    return false;
}

// A restarting job never gets less than what was called committed in its lineage.
void check_newest(SeedRun& run, const VersionKey& found, const std::map<VersionKey, bool>& told_before) {
    const auto epoch = run.known.epochs.find(found.incarnation), newest = run.known.epochs.find(head(run));
    const bool told = newest != run.known.epochs.end() && (epoch == run.known.epochs.end() || epoch->second <= newest->second);
    if (!told) return;  // committed by a job of which nobody could know before
    if (!in_chain(run, found)) return run.fail("the newest version found, " + std::to_string(found.version) + ", is of another lineage");
    for (const auto& [key, reported] : told_before)
        if (in_chain(run, key) && key.version > found.version)
            return run.fail("version " + std::to_string(key.version) + " was called committed, but the newest found is " + std::to_string(found.version));
}

// Everything that was called committed is there, bit for bit, and so is everything that has a manifest.
void check_promise(SeedRun& run) {
    for (const auto& [key, reported] : run.known.reported) {
        const Status status = run.cluster.check_committed(key);
        const auto removed = run.known.removed.find(key);
        if (removed == run.known.removed.end()) {
            if (!status.ok()) return run.fail("a version was called committed, and can not be restored: version " + std::to_string(key.version) + ": " + status.to_string());
            continue;
        }
        // given up or not there; or whole, where it was not removed after all, or nothing keeps a daemon from committing it again
        if (!status.ok() && status.code() != Code::not_found)
            return run.fail("a version was removed, and is neither whole nor gone: version " + std::to_string(key.version) + ": " + status.to_string());
        if (status.ok() && removed->second) return run.fail("version " + std::to_string(key.version) + " was removed, and came back");
    }
    check_dependents(run);
    if (const std::optional<VersionKey> newest = check_catalog(run)) {
        const Status status = run.cluster.check_committed(*newest);
        if (!status.ok()) return run.fail("the newest version is torn: version " + std::to_string(newest->version) + ": " + status.to_string());
    }
    const FlushSettings& given = run.cluster.options.settings;
    const std::uint64_t buffers_most = given.buffers + given.encode_buffers + (run.scenario.once != 0 || run.scenario.asked != 0 ? OnceReads::buffers_most : 0);
    for (const Host& host : run.cluster.hosts)
        if (host.process && host.process->buffer_bytes_peak() > buffers_most * given.buffer_bytes)
            return run.fail("a daemon took more buffer memory than it was given");
}

}  // namespace cairn::testing
