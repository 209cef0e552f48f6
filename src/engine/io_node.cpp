// Dedicated I/O nodes: members of a job that run none of its ranks and lead its flushes (model/plan).
//
// Nobody waits for one. The coordinator calls them when a version begins to be sealed; those that answer before all of it is sealed, or
// within a heartbeat, lead; the others are absent, and from then on only called. One that falls silent as a leader ends that attempt, and the
// next one does without it (flush.cpp).
//
// No application introduces a job to them: the first call does, and what it says is believed only as far as the job's roster under persistent
// bears it out. So one that was killed and started again needs no memory: it is called at the address that it has published since.
#include <algorithm>

#include "base/log.hpp"
#include "engine/internal.hpp"
#include "catalog/io_nodes.hpp"
#include "catalog/record.hpp"
#include "catalog/removal.hpp"
#include "format/limits.hpp"
#include "format/roster.hpp"

namespace cairn {

using namespace engine;

namespace {
constexpr Nanos look_again = second;     // for the roster of one job
constexpr std::uint32_t looking_max = 8; // at the same time
constexpr Nanos forget_pause = 30 * second;
}  // namespace

// ---- coordinator's side ----

void Node::Impl::call_io_nodes(FlightPtr flight) {
    const message::Noted call{flight->first_missing()};
    for (const NodeIndex node : flight->job->io_nodes()) {
        send(*flight, node, call);
        if (flight->job->absent.count(node)) gate.spawn(read_io_address(flight, node));  // it may be elsewhere now
    }
}

Task<void> Node::Impl::read_io_address(FlightPtr flight, NodeIndex node) {
    const std::string name = flight->job->roster->members[node].node;
    Result<IoNodeRecord> record = co_await read_io_node(world, layout, name, world.clock.in(settings.peer_wait));
    if (!record.ok() || record->address == flight->job->addresses.of(node)) co_return;
    flight->job->addresses.set(node, record->address);
    send(*flight, node, message::Noted{flight->first_missing()});
}

// Who did not answer since then, and is not known to be absent, has one heartbeat more.
Task<void> Node::Impl::hear_io_nodes(FlightPtr flight, Nanos since) {
    Job& job = *flight->job;
    const auto silent = [&] {
        std::vector<NodeIndex> found;
        for (const NodeIndex node : job.io_nodes())
            if (job.last_heard(node) < since && !job.absent.count(node)) found.push_back(node);
        return found;
    };
    const Nanos give_up = world.clock.in(settings.heartbeat);
    while (world.clock.now() < give_up && !flight->cancel && !flight->state.final) {
        const std::vector<NodeIndex> called = silent();
        if (called.empty()) co_return;
        for (const NodeIndex node : called) send(*flight, node, message::Noted{flight->first_missing()});
        const Nanos next = std::min(give_up, world.clock.in(settings.heartbeat / 4));
        while (world.clock.now() < next && !silent().empty()) co_await flight->news.wait(next);
    }
    for (const NodeIndex node : silent()) {
        job.absent.insert(node);
        log_warning("io-node-absent", {{"name", job.roster->name}, {"node", job.roster->members[node].node}});
    }
}

// ---- its own side ----

void Node::serve_as_io_node(std::string name) {
    CAIRN_CHECK(impl_->io_node.empty() && !name.empty());
    impl_->io_node = std::move(name);
    impl_->gate.spawn(impl_->forget_ended_jobs());
}

void Node::Impl::on_stranger(message::Message message) {
    if (io_node.empty() || stopping || looking >= looking_max) return;
    const Id128 incarnation = message.key.incarnation;
    const auto looked = looked_for.find(incarnation);
    if (looked != looked_for.end() && world.clock.now() < looked->second + look_again) return;
    if (looked == looked_for.end() && looked_for.size() >= settings.limits.strangers)
        looked_for.erase(std::min_element(looked_for.begin(), looked_for.end(), [](const auto& a, const auto& b) { return a.second < b.second; }));
    looked_for[incarnation] = world.clock.now();
    gate.spawn(learn(std::move(message)));
}

Task<void> Node::Impl::learn(message::Message message) {
    const Id128 incarnation = message.key.incarnation;
    ++looking;
    Result<Bytes> bytes = co_await read_record(world, layout.job_roster(incarnation), FrameKind::roster, roster_bytes_max, world.clock.in(settings.io_wait));
    --looking;
    if (!bytes.ok() || stopping || jobs.count(incarnation)) co_return;
    Result<Roster> roster = decode_roster(*bytes);
    if (!roster.ok() || roster->incarnation != incarnation || roster->secret != message.secret) co_return;
    const auto self = std::find_if(roster->members.begin(), roster->members.end(),
                                   [&](const Member& member) { return member.node == io_node && member.ranks.empty(); });
    if (self == roster->members.end()) co_return;
    std::map<Nanos, Id128> guests;  // by when they last spoke
    for (const auto& [known, job] : jobs)
        if (!job->has_ranks(job->self)) guests.emplace(job->last_heard_of_any(), known);
    if (guests.size() >= settings.limits.guests && !forget(guests.begin()->second)) co_return;
    log_info("io-node-joined", {{"name", roster->name}, {"incarnation", incarnation}, {"ranks", roster->ranks}});
    self->address = world.network.self();
    const auto index = static_cast<NodeIndex>(self - roster->members.begin());
    jobs[incarnation] = std::make_shared<Job>(world, std::make_shared<const Roster>(std::move(roster).value()), index);
    handle(std::move(message));
}

// A job is over when its coordinator's daemon has taken its roster away (or `cairn gc` has).
Task<void> Node::Impl::forget_ended_jobs() {
    while (!stopping) {
        co_await world.clock.sleep(forget_pause);
        std::vector<Id128> guests;
        for (const auto& [incarnation, job] : jobs)
            if (!job->has_ranks(job->self)) guests.push_back(incarnation);
        for (const Id128 incarnation : guests) {
            const Result<bool> on_record = co_await job_on_record(world, layout, incarnation, world.clock.in(settings.io_wait));
            if (on_record.ok() && !*on_record && !stopping) forget(incarnation);
        }
    }
}

}  // namespace cairn
