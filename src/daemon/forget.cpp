// Forget: what a daemon need not know of jobs that are over, while it lives; and what it takes away of them when it ends.
#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"
#include "daemon/daemon.hpp"

namespace cairn {

// ---- while it lives ----

// A daemon that always has some client outlives any number of jobs. One that nobody has had, and of which nothing was left to do, for as long as an idle
// daemon would have stayed is forgotten as that one's end would have done it: what its images and files say is what the next daemon would know, too. A rank
// that comes back joins again. What ended this very moment is not looked at yet by those who wait for that (retention, dead images).
void Daemon::forget_ended_jobs() {
    if (jobs_.is_looking() || !is_adopted_) return;  // an image may be found whose rank could not tell of it
    std::set<Id128> needed;
    for (const auto& [id, client] : clients_) needed.insert(client.jobs.begin(), client.jobs.end());
    for (const VersionKey& key : slots_.unfinished()) needed.insert(key.incarnation);
    for (const Id128 incarnation : jobs_.known()) {
        const Nanos since = left_.emplace(incarnation, world_.clock.now()).first->second;
        if (needed.count(incarnation)) left_.erase(incarnation);
        else if (world_.clock.now() - since >= options_.idle) forget_job(incarnation);
    }
}

void Daemon::forget_job(Id128 incarnation) {
    if (persistent_retention_.busy(incarnation) || epochs_.busy(incarnation) || !node_.forget(incarnation)) return;
    jobs_.let_go(incarnation);
    epochs_.forget(incarnation);
    persistent_retention_.forget(incarnation);
    left_.erase(incarnation);
    log_info("job-forgotten", {{"incarnation", incarnation}});
}

// ---- when it ends ----

Task<void> Jobs::forget(Id128 incarnation, Nanos deadline) {
    Result<Roster> roster = co_await find_roster(incarnation);
    ::unlink(scratch_.job(incarnation).c_str());
    if (!roster.ok()) co_return;
    // Each daemon takes its own record away, the coordinator's the roster, the last one the directory. What fails is
    // left for gc.
    for (NodeIndex node = 0; node < roster->members.size(); ++node) {
        if (roster->members[node].node != node_name_) continue;
        const Status record = co_await world_.storage.remove(layout_.job_node(incarnation, node), deadline);
        (void)record;
        if (node != coordinator_of(*roster)) continue;
        const Status removed = co_await world_.storage.remove(layout_.job_roster(incarnation), deadline);
        (void)removed;
    }
    const Status directory = co_await world_.storage.remove_directory(layout_.job(incarnation), deadline);
    (void)directory;
}

// Of jobs that this daemon has let go of only scratch tells.
Task<void> Jobs::find_let_go(std::map<Id128, Roster>* out, Nanos deadline) {
    const Nanos left = std::max<Nanos>(deadline - world_.clock.now(), 0);
    Result<JobScan> scan = co_await scan_jobs(world_, scratch_, left);
    if (!scan.ok()) log_warning("jobs-stay", {{"why", scan.status()}});
    for (std::size_t i = 0; scan.ok() && i < scan->rosters.size(); ++i)
        if (const Id128 incarnation = scan->rosters[i].incarnation; !joining_.count(incarnation)) out->emplace(incarnation, scan->rosters[i]);
}

Task<void> Jobs::forget_ended(Nanos deadline) {
    if (has_unread_) co_return;
    std::map<Id128, Roster> all;
    if (knows_images_) co_await find_let_go(&all, deadline);  // else some may have images that were not looked at
    for (const auto& [incarnation, known] : known_) all[incarnation] = known.roster;
    std::set<Id128> unfinished;
    for (const VersionKey& key : node_.versions()) {
        const VersionState state = node_.state(key);
        if (!state.final && state.level != Level::none) unfinished.insert(key.incarnation);
    }
    for (const VersionKey& key : slots_.unfinished()) unfinished.insert(key.incarnation);  // sealed after the end began, too
    for (const auto& [incarnation, roster] : all) {
        if (unfinished.count(incarnation)) continue;
        found_[incarnation] = roster;
        co_await forget(incarnation, deadline);
    }
}

}  // namespace cairn
