// Flush: the order of things from sealed images to a committed version.
//
//   coordinator (node 0)                         leader of some parts                        follower
//   gather: all nodes sealed        (elect.cpp)
//   look: is it committed already?  (commit.cpp)
//   plan, Lead to every leader  ---------------> lead: per part, at the same time
//                                                  receive: Want for each free buffer  ----> serve: Chunk + payload  (ship.cpp)
//                                                  W x write_loop: received first, then local data            (write.cpp)
//                                                  footer, fsync
//   commit: one manifest        <--------------- PartsDone, until acknowledged
//   Ended to every node
//
// Every arrow can be lost and is asked again. A leader that falls silent, or fails, ends the attempt: the next one writes under new
// names (rule 2), and what the old one may still write is looked at by nobody.
#include <algorithm>

#include "base/trace.hpp"
#include "engine/internal.hpp"

namespace cairn {

using namespace engine;

namespace {
std::string version_text(const VersionKey& key) { return key.name + " version " + std::to_string(key.version); }
}  // namespace

void Node::Impl::tell_all(Flight& flight, const message::Ended& ended) {
    flight.ended = ended;
    for (NodeIndex node = 0; node < flight.job->nodes(); ++node) send(flight, node, ended);
}

// ---- coordinator's side ----

Task<void> Node::Impl::coordinate(FlightPtr flight) {
    const std::shared_ptr<Job> job = flight->job;
    Nanos pause = settings.retry_wait;
    std::uint32_t failures = 0;
    for (;;) {
        // A new coordinator looks before it acts: what was decided before this daemon was started needs nobody's images.
        Status status = co_await look(flight);
        if (status.code() == Code::not_found) {
            const bool gathered = co_await gather(flight);
            Result<char> turn = co_await job->turn.receive();
            if (!turn.ok()) co_return;
            if (flight->cancel || !gathered) status = Status(Code::cancelled, version_text(flight->key) + ": cancelled");
            else status = co_await attempt(flight);
            job->turn.try_send(0);
        }
        if (status.code() == Code::cancelled) {
            Manifest tombstone;
            tombstone.abandoned = true;
            status = co_await publish(flight, tombstone);
            if (status.ok())
                status = flight->cancel ? Status(Code::cancelled, version_text(flight->key) + ": cancelled")
                                        : Status(Code::superseded, version_text(flight->key) + ": its images left scratch before it was committed");
        }
        if (status.ok() || status.code() == Code::cancelled || status.code() == Code::superseded) {
            tell_all(*flight, {status.code(), status.text(), true});
            co_return;
        }
        ++counters.attempts_failed;
        if (++failures < settings.attempts_max && flight->complete()) continue;  // at once: names are new, nothing is shared
        tell_all(*flight, {status.code(), status.text(), false});
        const Nanos again = world.clock.in(pause);
        while (!flight->cancel && world.clock.now() < again) co_await flight->news.wait(again);
        pause = std::min(pause * 2, std::max(pause, 60 * second));
        failures = 0;
        if (flight->complete()) flight->ended.reset();
    }
}

namespace {
// What a leader must know of a node: its address and the images of its sources, each once however many parts they are in.
void add_node(message::Lead& lead, const NodeSources& sources, const NodeImages& node, const Address& address) {
    const bool known = std::any_of(lead.addresses.begin(), lead.addresses.end(), [&](const auto& a) { return a.node == node.node; });
    if (!known) lead.addresses.push_back({node.node, address});
    for (const ImageInfo& image : node.images) {
        const auto is_it = [&](const auto& other) { return other.rank == image.rank; };
        const bool wanted = std::any_of(sources.sources.begin(), sources.sources.end(), is_it);
        if (wanted && std::none_of(lead.images.begin(), lead.images.end(), is_it)) lead.images.push_back(image);
    }
}
}  // namespace

// One attempt: ok when committed; otherwise why not. A node that was lost is taken off `sealed`, so that gather waits for it.
Task<Status> Node::Impl::attempt(FlightPtr flight) {
    Job& job = *flight->job;
    Contest contest;
    const TraceSpan span(world.clock, "coordinator", "attempt");
    contest.attempt = ++flight->attempts;
    // The first half names the incarnation, so that parts without a manifest can be told apart by whoever cleans up.
    contest.attempt_id = {flight->key.incarnation.high, world.random.next()};
    std::vector<NodeImages> nodes;
    std::uint64_t block_bytes = 0;
    for (const auto& [node, sealed] : flight->sealed) {
        nodes.push_back({node, sealed.images});
        if (block_bytes == 0) block_bytes = sealed.block_bytes;
        if (sealed.block_bytes != block_bytes)
            co_return invalid_argument(version_text(flight->key) + ": " + job.node_name(node) + " captured with flush.block_bytes = " +
                                       std::to_string(sealed.block_bytes) + ", node 0 with " + std::to_string(block_bytes) +
                                       "; give all nodes the same");
    }
    const std::vector<PartPlan> plan = make_plan(nodes, job.roster.files, block_bytes);
    for (const PartPlan& part : plan) {
        message::Lead& lead = contest.leaders[part.leader].lead;
        lead.attempt = contest.attempt;
        lead.attempt_id = contest.attempt_id;
        lead.parts_total = job.roster.files;
        lead.ranks_total = job.roster.ranks;
        lead.block_bytes = block_bytes;
        lead.parts.push_back(part);
        for (const NodeSources& sources : part.nodes) add_node(lead, sources, nodes[sources.node], job.addresses[sources.node]);
    }
    Status made = co_await make_directories(world.storage, layout.persistent, layout.version(flight->key), world.clock.in(settings.io_wait));
    if (!made.ok()) co_return std::move(made).within("making " + layout.version(flight->key));
    for (auto& [node, track] : contest.leaders) track.heard = world.clock.now();
    flight->contest = std::move(contest);

    std::optional<Status> decided;
    for (Nanos next = 0; !decided; decided = contest_state(*flight)) {
        if (flight->cancel) { decided = Status(Code::cancelled, version_text(flight->key) + ": cancelled"); break; }
        if (world.clock.now() >= next) {
            for (auto& [node, track] : flight->contest->leaders)
                if (!track.answered) send(*flight, node, track.lead);
            next = world.clock.in(settings.heartbeat);
        }
        co_await flight->news.wait(next);
    }
    Status state = std::move(*decided);
    const bool can_not_commit = !state.ok();  // ever: its manifest was never written
    if (state.ok()) state = co_await commit(flight);
    if (!state.ok())
        for (const auto& [node, track] : flight->contest->leaders) send(*flight, node, message::Leave{flight->contest->attempt_id});
    if (can_not_commit) co_await remove_attempt(flight, *flight->contest);
    flight->contest.reset();
    co_return state;
}

// ok: all parts are durable; nothing: still going on; anything else ends the attempt.
std::optional<Status> Node::Impl::contest_state(Flight& flight) {
    bool all = true;
    for (auto& [node, track] : flight.contest->leaders) {
        if (track.done && track.done->code != Code::ok) {
            if (track.done->has_lost) flight.sealed.erase(track.done->lost);
            return Status(track.done->code == Code::superseded ? Code::unavailable : track.done->code,
                          version_text(flight.key) + ": leader " + flight.job->node_name(node) + ": " + track.done->text);
        }
        if (track.done) continue;
        all = false;
        if (world.clock.now() - track.heard > settings.peer_wait) {
            flight.sealed.erase(node);
            return unavailable(version_text(flight.key) + ": leader " + flight.job->node_name(node) + " fell silent");
        }
    }
    if (!all) return std::nullopt;
    return Status();
}

void Node::Impl::on_progress(Flight& flight, NodeIndex from, const message::Progress& progress) {
    if (flight.job->self != 0) return;
    if (!flight.contest || flight.contest->attempt_id != progress.attempt_id) {
        // A leader of an attempt that this coordinator does not run: an older one, or one from before this daemon was started again.
        if (!flight.ended || !flight.ended->final) send(flight, from, message::Leave{progress.attempt_id});
        else send(flight, from, *flight.ended);
        return;
    }
    const auto track = flight.contest->leaders.find(from);
    if (track == flight.contest->leaders.end()) return;
    track->second.answered = true;
    track->second.heard = world.clock.now();
}

void Node::Impl::on_parts_done(Flight& flight, NodeIndex from, message::PartsDone done) {
    if (flight.job->self != 0) return;
    if (!flight.contest || flight.contest->attempt_id != done.attempt_id) {
        send(flight, from, message::Acknowledged{done.attempt_id});  // nothing more to do for it: decided already, or left
        return;
    }
    const auto track = flight.contest->leaders.find(from);
    if (track == flight.contest->leaders.end()) return;
    track->second.answered = true;
    track->second.heard = world.clock.now();
    const message::Acknowledged acknowledged{done.attempt_id};
    if (!track->second.done) track->second.done = std::move(done);
    send(flight, from, acknowledged);
    flight.news.notify_all();
}

// ---- leader's side ----

void Node::Impl::on_lead(FlightPtr flight, message::Lead lead) {
    if (flight->state.final || stopping) return;
    // Once only: asked again while it runs, Progress is on its way; asked again later, it is a datagram that came late, and its part
    // names are taken.
    if (!flight->attempts_seen.insert(lead.attempt_id).second) return;
    if (flight->leading) {
        flight->leading->fail({Code::superseded, "a newer attempt began"});
        flight->leading->left = true;
    }
    flight->leading = std::make_shared<Attempt>(world, flight, std::move(lead));
    gate.spawn(this->lead(flight->leading));
}

Task<void> Node::Impl::lead(std::shared_ptr<Attempt> attempt) {
    Flight& flight = *attempt->flight;
    const auto count = static_cast<std::uint32_t>(attempt->parts.size());
    attempt->times.assign(settings.writers, {});
    const TraceSpan span(world.clock, "leader", "parts of " + version_text(flight.key));
    flight.state.node_written_bytes = 0;
    flight.state.node_expected_bytes = 0;
    for (const auto& part : attempt->parts)
        for (const NodeSources& node : part->plan.nodes)
            for (const Source& source : node.sources) flight.state.node_expected_bytes += source.length;
    for (const auto& part : attempt->parts) {
        part->writers = std::max(1u, settings.writers / count);
        part->gate.spawn(write_part(*attempt, *part));
    }
    co_await report(attempt);
    // Writes that outlived the attempt end by their deadlines; the attempt's state stays until then.
    for (const auto& part : attempt->parts) co_await part->gate.close();
    if (flight.leading == attempt) flight.leading.reset();
}

// Heartbeats while parts are written, then the report, until the coordinator has it or has no more use for it.
Task<void> Node::Impl::report(std::shared_ptr<Attempt> attempt) {
    Flight& flight = *attempt->flight;
    const auto all_done = [&] {
        return std::all_of(attempt->parts.begin(), attempt->parts.end(), [](const auto& part) { return part->done.has_value(); });
    };
    while (!attempt->left && attempt->failure.ok() && !all_done()) {
        watch_followers(*attempt);
        send(flight, 0, message::Progress{attempt->lead.attempt_id, attempt->written_bytes});
        const Nanos next = world.clock.in(settings.heartbeat);
        while (!attempt->over() && !all_done() && world.clock.now() < next) co_await attempt->work.wait(next);
    }
    if (all_done()) {
        counters.writers = attempt->times;
        counters.last_flush_s = static_cast<double>(world.clock.now() - attempt->started) / second;
        counters.last_flush_bytes = attempt->written_bytes;
    }
    message::PartsDone done;
    done.attempt_id = attempt->lead.attempt_id;
    done.code = attempt->failure.code();
    done.text = attempt->failure.text();
    done.has_lost = attempt->lost.has_value();
    done.lost = attempt->lost.value_or(0);
    if (attempt->failure.ok())
        for (const auto& part : attempt->parts)
            if (part->done) done.parts.push_back(*part->done);
    // Reports are kept until acknowledged, for as long as a restarted coordinator may take to come back.
    const Nanos give_up = world.clock.in(settings.version_wait);
    for (Nanos pause = settings.heartbeat; !attempt->acknowledged && !attempt->left && !flight.state.final && world.clock.now() < give_up;) {
        send(flight, 0, done);
        pause = std::min(pause * 2, settings.peer_wait);
        const Nanos next = world.clock.in(pause);
        while (!attempt->acknowledged && !attempt->left && !flight.state.final && world.clock.now() < next)
            co_await flight.news.wait(next);
    }
}

}  // namespace cairn
