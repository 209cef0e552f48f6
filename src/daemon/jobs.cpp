#include "daemon/jobs.hpp"

#include <utility>

#include "base/log.hpp"
#include "daemon/blocking.hpp"

namespace cairn {

Jobs::Jobs(World world, Node& node, JobFiles& files, std::string node_name, Nanos io_wait)
    : world_(world), node_(node), files_(files), node_name_(std::move(node_name)), io_wait_(io_wait), joined_(world.clock) {}

Task<Status> Jobs::join(Roster roster, NodeIndex self) {
    if (self >= roster.members.size() || roster.members[self].node != node_name_)
        co_return invalid_argument("the roster of " + roster.name + " does not name this node, " + node_name_ +
                                   ", at place " + std::to_string(self));
    const Id128 incarnation = roster.incarnation;
    while (joining_.count(incarnation)) co_await joined_.wait(world_.clock.in(io_wait_));
    roster.members[self].address = world_.network.self();
    const auto known = known_.find(incarnation);
    if (known == known_.end() || known->second.self != self || !(known->second.roster == roster)) {
        joining_.insert(incarnation);
        Known job{roster, self};
        const Status recorded = co_await put_on_record(&job);
        joining_.erase(incarnation);
        joined_.notify_all();
        if (!recorded.ok()) co_return recorded.within("job " + roster.name);
        known_[incarnation] = std::move(job);
    }
    co_return node_.join(std::make_shared<const Roster>(std::move(roster)), self);
}

// In scratch, or there is no job; under persistent, or it is told there later.
Task<Status> Jobs::put_on_record(Known* job) {
    Status recorded = co_await files_.keep(job->roster);
    if (recorded.ok()) {
        Status published = co_await files_.publish(job->roster, job->self);
        job->published = published.ok();
        if (published.code() == Code::unavailable)
            log_warning("job-not-on-record", {{"name", job->roster.name}, {"incarnation", job->roster.incarnation}, {"why", published}});
        else
            recorded = std::move(published);
    }
    // unavailable would say that this daemon is about to end, and the client would look for another.
    if (recorded.code() == Code::unavailable) recorded = Status(Code::io_error, recorded.text());
    co_return recorded;
}

// The others may have been started again, too: their newest addresses are under persistent; where none is, the one of
// the open stays.
Task<Status> Jobs::join_again(Id128 incarnation) {
    if (node_.knows(incarnation)) co_return Status();
    Roster roster;
    if (const auto found = found_.find(incarnation); found != found_.end()) {
        roster = found->second;
    } else {
        Result<Roster> published = co_await files_.read_published(incarnation);
        if (!published.ok()) co_return std::move(published).status();
        roster = std::move(published).value();
    }
    NodeIndex self = static_cast<NodeIndex>(roster.members.size());
    for (NodeIndex node = 0; node < roster.members.size(); ++node)
        if (roster.members[node].node == node_name_) self = node;
    Status joined = co_await join(std::move(roster), self);
    co_return joined;
}

void Jobs::found(std::vector<Roster> rosters) {
    for (Roster& roster : rosters) {
        const Id128 incarnation = roster.incarnation;
        found_.emplace(incarnation, std::move(roster));
    }
}

bool Jobs::coordinates(Id128 incarnation) const {
    const auto known = known_.find(incarnation);
    return known != known_.end() && known->second.self == coordinator_of(known->second.roster);
}

const Roster* Jobs::roster_of(Id128 incarnation) const {
    const auto known = known_.find(incarnation);
    return known == known_.end() ? nullptr : &known->second.roster;
}

std::vector<Id128> Jobs::known() const {
    std::vector<Id128> incarnations;
    for (const auto& [incarnation, job] : known_)
        if (!joining_.count(incarnation)) incarnations.push_back(incarnation);
    return incarnations;
}

Task<void> Jobs::publish_late(std::function<bool()> over) {
    while (!over()) {
        co_await world_.clock.sleep(try_again);
        std::vector<std::pair<Roster, NodeIndex>> late;
        for (const auto& [incarnation, known] : known_)
            if (!known.published) late.emplace_back(known.roster, known.self);
        for (const auto& [roster, self] : late) {
            const Status published = co_await files_.publish(roster, self);
            const auto known = known_.find(roster.incarnation);
            if (published.ok() && known != known_.end()) known->second.published = true;
        }
    }
}

}  // namespace cairn
