// Flush: the order of things from sealed images to a committed version.
//
//   coordinator (node 0)                         leader of shares of some parts                follower
//   gather: all nodes sealed        (elect.cpp)
//   look: is it committed already?  (commit.cpp)
//   plan, Lead to every leader (plan_flush.cpp) > lead: per part, at the same time
//                                                  open, sized by its first leader          (part.cpp)
//                                                  receive: Want for each free buffer  ----> serve: Chunk + payload  (ship.cpp)
//                                                  W x write_loop: received first, then local data            (write.cpp)
//   work changes hands (move.cpp) <------------> Progress, Shed, Take
//   Complete: all is begun  -------------------> fsync, shares to the first leader, its footer, fsync         (part.cpp)
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
// Between attempts, ever longer; a request to cancel that was not known ends the wait. So does that this daemon is to stop: the time that it has left may be
// shorter than the pause, and is for trying.
Task<void> wait_for_news(World& world, FlightPtr flight, bool knew_of_cancel, const std::optional<Nanos>& stopping, Nanos first_pause, Nanos& pause) {
    const bool knew_of_stop = stopping.has_value();
    if (knew_of_stop) pause = first_pause;
    const Nanos again = world.clock.in(pause);
    while ((knew_of_cancel || !flight->cancel) && knew_of_stop == stopping.has_value() && world.clock.now() < again) co_await flight->news.wait(again);
    pause = std::min(pause * 2, std::max(pause, 60 * second));
}
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
    bool any_failed = false;
    for (;;) {
        const bool knew = flight->cancel;  // a request that came meanwhile is seen to at once, one that failed like anything else
        // A new coordinator looks before it acts: what was decided before this daemon was started needs nobody's images.
        Status status = co_await look(flight);
        std::optional<std::string> given_up;  // by somebody's request, or for want of images: nothing that an operation returns can mean that
        if (status.code() == Code::not_found) {
            const bool gathered = co_await gather(flight);
            Result<char> turn = co_await job->turn.receive();
            if (!turn.ok()) co_return;
            if (!flight->cancel && gathered) {
                status = co_await attempt(flight);
                flight->sealed_heard = world.clock.now();  // meanwhile nobody had reason to say so
            }
            if (!status.ok() && (flight->cancel || flight->state.dead || !gathered)) given_up = why_never(*flight).value_or("its images left scratch before it was committed");
            job->turn.try_send(0);
        }
        if (given_up && !flight->cancel && !flight->state.dead) {
            const Status serves = co_await check_still_serves(flight);
            if (!serves.ok()) {  // nobody need hear of it: the other coordinates now
                co_await wait_for_news(world, flight, false, stopping, settings.retry_wait, pause);
                continue;
            }
        }
        bool decided = status.ok() || status.code() == Code::superseded;
        if (given_up) {
            Manifest tombstone;
            tombstone.abandoned = true;
            status = co_await publish(flight, tombstone);
            decided = status.ok() || status.code() == Code::superseded;
            if (status.ok()) co_await clean_up(flight, {});
            if (status.ok())
                status = flight->cancel ? Status(Code::cancelled, version_text(flight->key) + ": cancelled")
                                        : Status(Code::superseded, version_text(flight->key) + ": " + *given_up);
        }
        if (decided) {
            tell_all(*flight, {status.code(), status.text(), true});
            flight->sealed.clear();  // region tables of all ranks
            flight->none_missing_below = 0;
            if (any_failed) co_await sweep(flight);
            co_return;
        }
        any_failed = true;
        ++counters.attempts_failed;
        // A daemon that died is often started again at once, and finds its images in scratch: nobody needs to hear of it.
        const bool came_back = co_await wait_for_the_lost(flight);
        const bool again_at_once = std::exchange(flight->lost_io_node, false) || ++failures < settings.attempts_max;
        if (again_at_once && came_back && !knew) continue;  // at once: names are new, nothing is shared
        tell_all(*flight, {status.code(), status.text(), false});
        co_await wait_for_news(world, flight, knew, stopping, settings.retry_wait, pause);
        failures = 0;
        if (flight->complete()) flight->ended.reset();
    }
}

// True when all nodes' images are there, or are again within peer_wait.
Task<bool> Node::Impl::wait_for_the_lost(FlightPtr flight) {
    const Nanos give_up = world.clock.in(settings.peer_wait);
    while (!flight->complete() && !flight->cancel && !flight->state.final && world.clock.now() < give_up) {
        tell_missing(*flight);
        const Nanos next = std::min(give_up, world.clock.in(settings.heartbeat));
        while (!flight->complete() && !flight->cancel && !flight->state.final && world.clock.now() < next) co_await flight->news.wait(next);
    }
    co_return flight->complete();
}

// One attempt: ok when committed; otherwise why not. A node that was lost is taken off `sealed`, so that gather waits for it.
Task<Status> Node::Impl::attempt(FlightPtr flight) {
    Job& job = *flight->job;
    Contest contest;
    const TraceSpan span(world.clock, "coordinator", "attempt");
    contest.attempt = ++flight->attempts;
    // The first half names the incarnation, so that parts without a manifest can be told apart by whoever cleans up.
    contest.attempt_id = {flight->key.incarnation.high, world.random.next()};
    const Result<std::vector<NodeImages>> nodes = all_images(*flight, contest.block_bytes);
    if (!nodes.ok()) co_return nodes.status();
    contest.keep_own = settings.placement == Placement::append && leader_choice(job).keep_own();
    contest.plan = plan_flush(job, *nodes, contest);
    if (Status fits = check_sizes(contest.plan, *nodes, contest.block_bytes); !fits.ok()) co_return fits;
    contest.addresses = job.addresses;
    std::map<std::string, std::uint32_t> targets_seen;
    for (const PartPlan& part : contest.plan) {
        contest.part_ends.push_back(part.range_bytes());
        contest.targets.push_back(targets_seen.emplace(part.target, targets_seen.size()).first->second);
    }
    make_leads(contest, job, *nodes);
    Status made = co_await make_directories(world.storage, layout.persistent, layout.version(flight->key), world.clock.in(settings.io_wait));
    if (!made.ok()) co_return made;  // names the directory
    Status on_record = co_await check_record(flight);  // leaders find the directory where it was made, and nowhere else
    if (!on_record.ok()) co_return on_record;
    contest.begun = world.clock.now();
    const Nanos waited = pace.counters().waited;
    contest.open = contest.leaders.size();
    for (auto& [node, track] : contest.leaders) track.heard = contest.begun;
    flight->contest = std::move(contest);

    std::optional<Status> decided;
    for (Nanos next = 0; !decided; decided = contest_state(*flight)) {
        if (flight->cancel || flight->state.dead) { decided = Status(Code::cancelled, version_text(flight->key) + ": cancelled"); break; }
        if (world.clock.now() >= next) {
            repeat(*flight);
            next = world.clock.in(settings.heartbeat);
        }
        co_await flight->news.wait(next);
    }
    Status state = std::move(*decided);
    if (state.ok()) {
        std::uint64_t bytes = 0;
        for (const NodeImages& node : *nodes) bytes += node_bytes(node);
        const Nanos took = world.clock.now() - flight->contest->begun;
        if (pace.counters().waited - waited <= took / 20)  // one that gave way to the application says nothing about storage
            leader_choice(job).record(static_cast<std::uint32_t>(flight->contest->leaders.size()), bytes, static_cast<double>(took) / second);
        learn_from_cards(*flight);
        state = co_await commit(flight);
    }
    if (!state.ok())
        for (const auto& [node, track] : flight->contest->leaders) send(*flight, node, message::Leave{flight->contest->attempt_id});
    if (!state.ok() && !flight->contest->may_be_published) co_await remove_attempt(flight, *flight->contest);
    flight->contest.reset();
    co_return state;
}

// Every heartbeat: what was not answered is said once more. A Lead can be long, so ever more seldom: each one is kept until it is sent.
void Node::Impl::repeat(Flight& flight) {
    Contest& contest = *flight.contest;
    for (auto& [node, track] : contest.leaders) {
        if (track.answered || world.clock.now() < track.again) continue;
        if (flight.job->addresses.of(node) != contest.addresses.of(node)) {  // the one before may be at it, and another must not write under its names
            contest.restarted = node;
            if (!flight.job->has_ranks(node)) flight.lost_io_node = true;
            return;
        }
        track.pause = std::min(std::max(2 * track.pause, settings.heartbeat), settings.peer_wait / 4);
        track.again = world.clock.in(track.pause);
        send(flight, node, track.lead);
    }
    repeat_moves(flight);
    if (contest.finishing) finish(flight);
    else shift_soon(flight);
}

// ok: all parts are durable; nothing: still going on; anything else ends the attempt. Asked at every word of every leader, so it looks at all of
// them only once a heartbeat.
std::optional<Status> Node::Impl::contest_state(Flight& flight) {
    Contest& contest = *flight.contest;
    if (contest.failed) {
        const message::PartsDone done = *contest.leaders.at(*contest.failed).done;
        learn_from_failures(flight);
        return Status(done.code == Code::superseded ? Code::unavailable : done.code,
                      version_text(flight.key) + ": leader " + flight.job->node_name(*contest.failed) + ": " + done.text);
    }
    if (contest.open == 0) return Status();
    if (world.clock.now() - contest.looked >= settings.heartbeat / 2) {
        contest.looked = world.clock.now();
        if (std::optional<Status> silent = silent_leader(flight)) return silent;
    }
    if (contest.unsendable)
        return Status(Code::unsupported, version_text(flight.key) + ": what leader " + flight.job->node_name(*contest.unsendable) +
                                             " must know of its images is longer than a message can be: protect fewer regions, or ask for more files");
    if (contest.restarted)
        return unavailable(version_text(flight.key) + ": the daemon of " + flight.job->node_name(*contest.restarted) + " was started again");
    return std::nullopt;
}

std::optional<Status> Node::Impl::silent_leader(Flight& flight) {
    std::optional<NodeIndex> silent;
    for (const auto& [node, track] : flight.contest->leaders) {
        if (track.done || world.clock.now() - track.heard <= settings.peer_wait) continue;
        lose(flight, node);
        silent = node;
    }
    if (!silent) return std::nullopt;
    return unavailable(version_text(flight.key) + ": leader " + flight.job->node_name(*silent) + " fell silent");
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
    if (!flight.job->has_ranks(from)) send(flight, from, message::Noted{});  // others hear from here when they repeat what they sealed
    LeaderTrack& leader = track->second;
    if (progress.taken < leader.takes || progress.sequence <= leader.progress.sequence) return;  // it has not heard of all yet, or is old
    leader.progress = progress;
    leader.progress_known = true;
    double bytes_per_s = 0;
    bool any_idle = std::exchange(leader.declined, false);
    for (const message::PartProgress& part : progress.parts) {
        const bool idle = part.unstarted_bytes == 0;
        any_idle |= idle;
        if (!idle || part.begun_bytes > 0) bytes_per_s += static_cast<double>(part.bytes_per_s);
    }
    // What comes first fills buffers, and is no speed of a card.
    if (world.clock.now() - flight.contest->begun >= 3 * settings.heartbeat) leader.most_bytes_per_s = std::max(leader.most_bytes_per_s, bytes_per_s);
    if (any_idle) shift_soon(flight);
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
    if (!track->second.done) {
        --flight.contest->open;
        if (done.code != Code::ok) flight.contest->failed = from;
        track->second.done = std::move(done);
    }
    send(flight, from, acknowledged);
    flight.news.notify_all();
}

void Node::Impl::on_cancel(FlightPtr flight, NodeIndex from) {
    flight->cancel = true;
    if (flight->ended && flight->ended->final) send(*flight, from, *flight->ended);
    else if (!flight->coordinating && flight->job->self == 0) {
        flight->coordinating = true;
        gate.spawn(coordinate(flight));
    }
    flight->news.notify_all();
}

// ---- leader's side ----

bool RecentIds::insert(Id128 id) {
    if (!ids_.insert(id).second) return false;
    order_.push_back(id);
    if (order_.size() <= most_) return true;
    ids_.erase(order_.front());
    order_.pop_front();
    return true;
}

void RecentIds::erase(Id128 id) {
    if (ids_.erase(id) > 0) order_.erase(std::find(order_.begin(), order_.end(), id));
}

void Node::Impl::on_acknowledged(Flight& flight, const message::Acknowledged& acknowledged) {
    if (flight.leads(acknowledged.attempt_id)) flight.leading->acknowledged = true;
    flight.news.notify_all();
}

void Node::Impl::on_leave(Flight& flight, const message::Leave& leave) {
    if (flight.leads(leave.attempt_id)) {
        flight.leading->fail({Code::superseded, "the coordinator left this attempt"});
        flight.leading->left = true;
    }
    attempts_seen.insert(leave.attempt_id);  // its Lead may come yet, and would end the attempt after it
    flight.news.notify_all();
}

void Node::Impl::on_lead(FlightPtr flight, message::Lead lead) {
    // A daemon that is stopping still finishes what its own ranks sealed.
    if (flight->state.final || (stopping && !flight->job->has_ranks(flight->job->self))) return;
    // Once only: asked again while it runs, Progress is on its way; asked again later, it is a datagram that came late, and its part
    // names are taken.
    if (!attempts_seen.insert(lead.attempt_id)) return;
    if (const Status can = check_lead(*flight->job, lead); !can.ok()) {
        message::PartsDone refused;
        refused.attempt_id = lead.attempt_id;
        refused.code = can.code();
        refused.text = can.text();
        attempts_seen.erase(lead.attempt_id);  // the answer may be lost
        return send(*flight, 0, std::move(refused));
    }
    if (flight->leading) {
        flight->leading->fail({Code::superseded, "a newer attempt began"});
        flight->leading->left = true;
    }
    std::erase_if(flight->opened, [&](const auto& opened) { return opened.first != lead.attempt_id; });
    flight->leading = std::make_shared<Attempt>(world, flight, std::move(lead));
    flight->leading->pace = &pace;
    gate.spawn(this->lead(flight->leading));
}

Task<void> Node::Impl::lead(std::shared_ptr<Attempt> attempt) {
    Flight& flight = *attempt->flight;
    const auto count = static_cast<std::uint32_t>(attempt->parts.size());
    attempt->times.assign(settings.writers, {});
    const TraceSpan span(world.clock, "leader", "parts of " + version_text(flight.key));
    ++counters.leading;
    flight.state.node_written_bytes = 0;
    flight.state.node_expected_bytes = 0;
    for (const auto& part : attempt->parts)
        for (const NodeSources& node : part->share.nodes)
            for (const Source& source : node.sources) flight.state.node_expected_bytes += source.length;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto& part = attempt->parts[i];
        part->writers = std::max(1u, settings.writers / count);
        part->first_writer = i * part->writers;
        part->gate.spawn(write_part(*attempt, *part));
    }
    co_await report(attempt);
    // Writes that outlived the attempt end by their deadlines; the attempt's state stays until then.
    for (const auto& part : attempt->parts) co_await part->gate.close();
    if (!attempt->reported) co_await remove_parts(*attempt);
    if (flight.leading == attempt) flight.leading.reset();
    --counters.leading;
    changed.notify_all();  // idle, perhaps
}

// Only the coordinator says that no more work will come. One that never comes back must not keep a leader waiting for that word for ever.
void Node::Impl::watch_coordinator(Attempt& attempt) {
    const Nanos now = world.clock.now();
    if (attempt.finishing || !attempt.idle_told) attempt.busy = now;
    const Nanos silent = now - std::max(attempt.busy, attempt.flight->coordinator_heard);
    if (silent > settings.version_wait) attempt.fail(unavailable("the coordinator, " + attempt.flight->job->node_name(0) + ", fell silent"));
}

// Heartbeats while shares are written, then the report, until the coordinator has it or has no more use for it.
Task<void> Node::Impl::report(std::shared_ptr<Attempt> attempt) {
    Flight& flight = *attempt->flight;
    const auto all_done = [&] {
        return std::all_of(attempt->parts.begin(), attempt->parts.end(), [](const auto& part) { return part->durable; });
    };
    const auto newly_idle = [&] { return attempt->idle_parts() > attempt->idle_parts_told; };
    while (!attempt->left && attempt->failure.ok() && !all_done()) {
        watch_followers(*attempt);
        watch_coordinator(*attempt);
        for (const auto& part : attempt->parts) tell_opened(*attempt, *part);
        const Nanos next = world.clock.in(settings.heartbeat);
        do {
            tell_progress(*attempt);
            attempt->idle_parts_told = attempt->idle_parts();
            attempt->idle_told = attempt->idle_parts_told == attempt->parts.size();
            while (!attempt->over() && !all_done() && !newly_idle() && world.clock.now() < next) co_await attempt->work.wait(next);
        } while (!attempt->over() && newly_idle());
    }
    if (all_done()) {
        counters.writers = attempt->times;
        counters.last_flush_s = static_cast<double>(attempt->busy_span()) / second;
        counters.last_flush_bytes = attempt->written_bytes;
        counters.last_write_s = static_cast<double>(std::max(attempt->last_write, attempt->started) - attempt->started) / second;
    }
    message::PartsDone done;
    done.attempt_id = attempt->lead.attempt_id;
    done.code = attempt->failure.code();
    done.text = attempt->failure.text();
    done.has_lost = attempt->lost.has_value();
    done.lost = attempt->lost.value_or(0);
    done.has_failed_part = attempt->failed_part.has_value();
    done.failed_part = attempt->failed_part.value_or(0);
    done.coverage = attempt->coverage;
    done.card = attempt->card.seen();
    if (attempt->failure.ok())
        for (const auto& part : attempt->parts)
            if (part->done) done.parts.push_back(*part->done);
    attempt->reported = attempt->failure.ok() && !attempt->left;
    if (attempt->reported) flight.reported = done.attempt_id;
    // Reports are kept until acknowledged, for as long as a restarted coordinator may take to come back.
    const Nanos give_up = world.clock.in(settings.version_wait);
    for (Nanos pause = settings.heartbeat; !attempt->acknowledged && !attempt->left && !flight.state.final && world.clock.now() < give_up;) {
        send(flight, 0, done);
        // Often enough that the coordinator, which hears nothing else from here now, does not take a few lost ones for silence.
        pause = std::min(pause * 2, std::max(settings.heartbeat, settings.peer_wait / 4));
        const Nanos next = world.clock.in(pause);
        while (!attempt->acknowledged && !attempt->left && !flight.state.final && world.clock.now() < next)
            co_await flight.news.wait(next);
    }
}

}  // namespace cairn
