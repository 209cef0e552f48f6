#include "daemon/ended_jobs.hpp"

#include <utility>

#include "base/log.hpp"

namespace cairn {

// What ended this very moment is not looked at yet by those who wait for that (retention, dead images): its time begins with the look after.
std::vector<Id128> EndedJobs::left_for(Nanos span, std::set<Id128> had) {
    for (const VersionKey& key : slots_.unfinished()) had.insert(key.incarnation);
    std::vector<Id128> left;
    for (const Id128 incarnation : jobs_.known()) {
        const Nanos since = left_.emplace(incarnation, world_.clock.now()).first->second;
        if (had.count(incarnation)) left_.erase(incarnation);
        else if (world_.clock.now() - since >= span) left.push_back(incarnation);
    }
    return left;
}

// Of jobs that this daemon has let go of only scratch tells.
Task<std::vector<Roster>> EndedJobs::let_go(Nanos deadline) {
    std::vector<Roster> rosters;
    Result<JobScan> scan = co_await files_.scan(deadline);
    if (!scan.ok()) log_warning("jobs-stay", {{"why", scan.status()}});
    for (std::size_t i = 0; scan.ok() && i < scan->rosters.size(); ++i)
        if (Roster& roster = scan->rosters[i]; !jobs_.is_joining(roster.incarnation) && !jobs_.roster_of(roster.incarnation)) rosters.push_back(std::move(roster));
    co_return rosters;
}

std::set<Id128> EndedJobs::unfinished() const {
    std::set<Id128> incarnations;
    for (const VersionKey& key : node_.versions()) {
        const VersionState state = node_.state(key);
        if (!state.final && state.level != Level::none) incarnations.insert(key.incarnation);
    }
    for (const VersionKey& key : slots_.unfinished()) incarnations.insert(key.incarnation);  // sealed after the end began, too
    return incarnations;
}

Task<void> EndedJobs::remove_files(bool knows_images, Nanos deadline) {
    std::vector<Roster> ended;
    if (knows_images) ended = co_await let_go(deadline);
    for (const Id128 incarnation : jobs_.known()) ended.push_back(*jobs_.roster_of(incarnation));
    const std::set<Id128> kept = unfinished();
    for (Roster& roster : ended)
        if (!kept.count(roster.incarnation)) co_await files_.remove(std::move(roster), node_name_, deadline);
}

}  // namespace cairn
