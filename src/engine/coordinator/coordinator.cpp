#include "engine/coordinator/coordinator.hpp"

#include <algorithm>

#include "base/trace.hpp"
#include "catalog/roots.hpp"

namespace cairn::engine {

Coordinator::Coordinator(Common& c) : CoordinatorRole(c), gatherer_(c), planner_(c), target_maps_(c), mover_(c), replacer_(c), publisher_(c) {}

void Coordinator::hear(const FlightPtr& flight, NodeIndex from, message::ForCoordinator body) {
    std::visit(Hears{
                   [&](message::Sealed& sealed) { on_sealed(flight, from, std::move(sealed)); },
                   [&](message::Noted&) { gatherer_.on_noted(*flight, from); },
                   [&](message::Progress& progress) { on_progress(*flight, from, progress); },
                   [&](message::Given& given) { mover_.on_given(*flight, from, std::move(given)); },
                   [&](message::Taken& taken) { mover_.on_taken(*flight, taken); },
                   [&](message::PartFailed& failed) { replacer_.on_part_failed(flight, from, failed); },
                   [&](message::PartsDone& done) { on_parts_done(*flight, from, std::move(done)); },
                   [&](message::Cancel& m) { on_cancel(flight, from, std::move(m)); },
               },
               body);
}

void Coordinator::hear_ahead(const JobPtr& job, Version version, NodeIndex from, message::ForCoordinatorAhead body) {
    std::visit(Hears{
                   [&](message::Begun& begun) { on_begun(job, version, from, std::move(begun)); },
               },
               body);
}

bool Coordinator::is_coordinating(const Flight& flight) const { return flight.coordinator && flight.coordinator->coordinating; }
bool Coordinator::has_all(const Flight& flight) const { return flight.coordinator && flight.coordinator->complete(*flight.job); }

// Between attempts, ever longer; a request to cancel that was not known ends the wait. So does that this daemon is to stop: the time that it has left may be
// shorter than the pause, and is for trying.
Task<void> Coordinator::wait_for_news(FlightPtr flight, bool knew_of_cancel, Nanos& pause) {
    const bool knew_of_stop = common.stopping.has_value();
    if (knew_of_stop) pause = settings.retry_wait;
    const Nanos again = world.clock.in(pause);
    while ((knew_of_cancel || !side(*flight).cancel) && knew_of_stop == common.stopping.has_value() && world.clock.now() < again) co_await flight->news.wait(again);
    pause = std::min(pause * 2, std::max(pause, 60 * second));
}

std::string Coordinator::why_given_up(const Flight& flight, const Status& failed_before) const {
    const std::string& used_up = side(flight).cancel_text;
    if (!used_up.empty()) return "given up: " + used_up + (failed_before.ok() ? "" : " by an attempt that failed: " + failed_before.to_string());
    return gatherer_.why_never(flight).value_or("its images left scratch before it was committed");
}

Task<void> Coordinator::coordinate(FlightPtr flight) {
    CoordinatorSide& own = side(*flight);
    const std::shared_ptr<Job> job = flight->job;
    Nanos pause = settings.retry_wait;
    std::uint32_t failures = 0;
    Status failed;  // the last attempt that did
    for (;;) {
        const bool knew = own.cancel;  // a request that came meanwhile is seen to at once, one that failed like anything else
        // A new coordinator looks before it acts: what was decided before this daemon was started needs nobody's images.
        Status status = co_await publisher_.look(flight);
        std::optional<std::string> given_up;  // by somebody's request, or for want of images: nothing that an operation returns can mean that
        if (status.code() == Code::not_found) {
            const bool gathered = co_await gatherer_.gather(flight);
            Result<char> turn = co_await experience(*job).turn.receive();
            if (!turn.ok()) co_return;
            if (!own.cancel && gathered) {
                status = co_await attempt(flight);
                own.sealed_heard = world.clock.now();  // meanwhile nobody had reason to say so
            }
            if (!status.ok() && (own.cancel || flight->state.dead || !gathered)) given_up = why_given_up(*flight, failed);
            experience(*job).turn.try_send(0);
        }
        const bool is_asked_for = own.cancel && own.cancel_text.empty();  // by the application, whoever coordinates
        if (given_up && !is_asked_for && !flight->state.dead) {
            const Status serves = co_await gatherer_.check_still_serves(flight);
            if (!serves.ok()) {  // nobody need hear of it: the other coordinates now
                co_await wait_for_news(flight, own.cancel, pause);
                continue;
            }
        }
        bool decided = status.ok() || status.code() == Code::superseded;
        if (given_up) {
            status = co_await publisher_.give_up(flight);
            decided = status.ok() || status.code() == Code::superseded;
            if (status.ok())
                status = is_asked_for ? Status(Code::cancelled, version_text(flight->key) + ": cancelled")
                                                               : Status(Code::superseded, version_text(flight->key) + ": " + *given_up);
        }
        if (decided) {
            if (status.ok()) co_await publisher_.index_tensors(flight);
            gatherer_.tell_all(*flight, {status.code(), status.text(), true, status.ok() ? experience(*job).base : 0});
            own.sealed.clear();  // region tables of all ranks
            own.none_missing_below = 0;
            if (!failed.ok() || own.leaves_files) co_await publisher_.sweep(flight);
            co_return;
        }
        failed = status;
        ++counters.attempts_failed;
        // A daemon that died is often started again at once, and finds its images in scratch: nobody needs to hear of it.
        const bool came_back = co_await gatherer_.wait_for_the_lost(flight);
        const bool again_at_once = std::exchange(own.lost_io_node, false) || ++failures < settings.attempts_max;
        if (again_at_once && came_back && !knew) continue;  // at once: names are new, nothing is shared
        gatherer_.tell_all(*flight, {status.code(), status.text(), false, 0});
        co_await wait_for_news(flight, knew, pause);
        failures = 0;
        if (own.complete(*flight->job)) own.ended.reset();
    }
}

// One attempt: ok when committed; otherwise why not. A node that was lost is taken off `sealed`, so that gather waits for it.
Task<Status> Coordinator::attempt(FlightPtr flight) {
    CoordinatorSide& own = side(*flight);
    Contest contest;
    const TraceSpan span(world.clock, "coordinator", "attempt");
    contest.attempt = ++own.attempts;
    // The first half names the incarnation, so that parts without a manifest can be told apart by whoever cleans up.
    contest.attempt_id = {flight->key.incarnation.high, world.random.next()};
    FreeSpace& free_space = planner_.free_space();
    if (!free_space.is_known(*flight->job)) co_await free_space.look(*flight->job);
    co_await free_space.look_again_where_full(flight);
    co_await target_maps_.learn(flight->job);
    const Result<std::vector<NodeImages>> nodes = planner_.plan(*flight, contest);
    if (!nodes.ok()) co_return nodes.status();
    Status made = co_await make_directories(world.storage, layout.persistent, layout.version(flight->key), world.clock.in(settings.io_wait));
    if (!made.ok()) co_return made;  // names the directory
    made = co_await make_below_roots(flight, contest.plan);
    if (!made.ok()) co_return made;
    Status on_record = co_await check_record(common, flight);  // leaders find the directory where it was made, and nowhere else
    if (!on_record.ok()) co_return on_record;
    Status named;
    Gate naming(world.clock);
    naming.spawn(sync_names(flight, contest.plan, &named));
    contest.begun = world.clock.now();
    const Nanos waited = pace.counters().waited;
    contest.open = contest.leaders.size();
    for (auto& [node, track] : contest.leaders) track.heard = contest.begun;
    own.contest = std::move(contest);

    std::optional<Status> decided;
    for (Nanos next = 0; !decided; decided = contest_state(*flight)) {
        if (own.cancel || flight->state.dead) { decided = Status(Code::cancelled, version_text(flight->key) + ": cancelled"); break; }
        if (world.clock.now() >= next) {
            repeat(*flight);
            next = world.clock.in(settings.heartbeat);
        }
        co_await flight->news.wait(next);
    }
    Status state = std::move(*decided);
    if (state.ok()) {
        const Nanos took = world.clock.now() - own.contest->begun;
        const bool held_back = pace.counters().waited - waited > took / 20 || !own.contest->replaced.empty();  // a target that did not answer says nothing of the others
        planner_.learn_from_success(*flight, *nodes, took, held_back);
        co_await naming.close();
        state = std::move(named);
    }
    if (state.ok()) state = co_await publisher_.commit(flight);
    if (own.contest->stands) {
        planner_.learn_of_base(*flight);
        target_maps_.keep(*flight);
    } else if (own.contest->base != 0) experience(*flight->job).base = 0;  // perhaps it was removed: the next attempt stands alone
    if (!state.ok())
        for (const auto& [node, track] : own.contest->leaders) send(*flight, node, message::Leave{own.contest->attempt_id});
    if (!state.ok() && !own.contest->may_be_published) co_await publisher_.remove_attempt(flight, *own.contest);
    own.contest.reset();
    co_return state;
}

namespace {
Task<void> make_below(World& world, std::string root, VersionKey key, Nanos deadline, Status* made) {
    Status done = co_await make_version_below(world, std::move(root), std::move(key), deadline);
    *made = std::move(done);
}
}  // namespace

namespace {
Task<void> sync_name(World& world, std::string directory, Nanos deadline, Status* first_bad) {
    Status synced = co_await world.storage.fsync_directory(std::move(directory), deadline);
    if (!synced.ok() && first_bad->ok()) *first_bad = std::move(synced);
}
}  // namespace

// The names of the version's directories, once more. They were synced when they were made, perhaps in another file system that lay over this one just then: since then the job's record was seen.
// Beside the writing, so that it costs no time; before the commit.
Task<void> Coordinator::sync_names(FlightPtr flight, std::vector<PartPlan> plan, Status* first_bad) {
    std::set<std::string> directories = {layout.version(flight->key)};
    for (const PartPlan& part : plan)
        if (flight->job->root_of(part.target) != 0) directories.insert(Layout::version_below(part.target, flight->key));
    const Nanos deadline = world.clock.in(settings.io_wait);
    Gate syncing(world.clock);
    for (const std::string& directory : directories) syncing.spawn(sync_name(world, directory.substr(0, directory.rfind('/')), deadline, first_bad));
    co_await syncing.close();
}

// The version's directory below every root that gets a part, all at once: several that hang take the time of one. A root that fails is left out of the next plan.
Task<Status> Coordinator::make_below_roots(FlightPtr flight, const std::vector<PartPlan>& plan) {
    std::map<std::string, Status> roots;
    for (const PartPlan& part : plan)
        if (flight->job->root_of(part.target) != 0) roots[part.target];
    const Nanos deadline = world.clock.in(settings.io_wait);
    Gate making(world.clock);
    for (auto& [root, made] : roots) making.spawn(make_below(world, root, flight->key, deadline, &made));
    co_await making.close();
    Status failed;
    for (auto& [root, made] : roots) {
        if (made.ok()) {
            side(*flight).made_below.insert(root);
            continue;
        }
        avoid(*flight->job, root, made.text());
        if (failed.ok()) failed = std::move(made).within("setting storage.directories");
    }
    co_return failed;
}

// Every heartbeat: what was not answered is said once more. A Lead can be long, so ever more seldom: each one is kept until it is sent.
void Coordinator::repeat(Flight& flight) {
    Contest& contest = *side(flight).contest;
    for (auto& [node, track] : contest.leaders) {
        if (track.answered || world.clock.now() < track.again) continue;
        if (flight.job->addresses.of(node) != contest.addresses.of(node)) {  // the one before may be at it, and another must not write under its names
            contest.restarted = node;
            if (!flight.job->has_ranks(node)) side(flight).lost_io_node = true;
            return;
        }
        track.pause = std::min(std::max(2 * track.pause, settings.heartbeat), settings.peer_wait / 4);
        track.again = world.clock.in(track.pause);
        send(flight, node, track.lead);
    }
    replacer_.repeat(flight);
    mover_.repeat(flight);
}

// ok: all parts are durable; nothing: still going on; anything else ends the attempt. Asked at every word of every leader, so it looks at all of
// them only once a heartbeat.
std::optional<Status> Coordinator::contest_state(Flight& flight) {
    Contest& contest = *side(flight).contest;
    if (contest.failed) {
        const message::PartsDone done = *contest.leaders.at(*contest.failed).done;
        planner_.learn_from_failures(flight);
        return Status(done.code == Code::superseded ? Code::unavailable : done.code,
                      version_text(flight.key) + ": leader " + flight.job->node_name(*contest.failed) + ": " + done.text);
    }
    if (contest.irreplaceable) return unavailable(version_text(flight.key) + ": " + contest.replaced.at(*contest.irreplaceable).why + ", and no other storage target can take it");
    if (contest.open == 0) return Status();
    if (world.clock.now() - contest.looked >= settings.heartbeat / 2) {
        contest.looked = world.clock.now();
        if (std::optional<Status> silent = silent_leader(flight)) return silent;
    }
    if (contest.unsendable)
        return Status(Code::unsupported, version_text(flight.key) + ": what leader " + flight.job->node_name(*contest.unsendable) +
                                             " must know of its images is longer than a message can be: ask for more files (flush.files)");
    if (contest.restarted)
        return unavailable(version_text(flight.key) + ": the daemon of " + flight.job->node_name(*contest.restarted) + " was started again");
    return std::nullopt;
}

std::optional<Status> Coordinator::silent_leader(Flight& flight) {
    std::optional<NodeIndex> silent;
    for (const auto& [node, track] : side(flight).contest->leaders) {
        if (track.done || world.clock.now() - track.heard <= settings.peer_wait) continue;
        planner_.lose(flight, node);
        silent = node;
    }
    if (!silent) return std::nullopt;
    return unavailable(version_text(flight.key) + ": leader " + flight.job->node_name(*silent) + " fell silent");
}

void Coordinator::on_begun(const JobPtr& job, Version version, NodeIndex from, message::Begun begun) {
    if (planner_.note_begun(*job, version, from, std::move(begun))) gate.spawn(planner_.plan_ahead(job, version));
}

void Coordinator::on_sealed(FlightPtr flight, NodeIndex from, message::Sealed sealed) {
    CoordinatorSide& own = side(*flight);
    if (!flight->job->coordinates() || !flight->job->has_ranks(from)) return;
    if (own.ended && own.ended->final) { send(*flight, from, *own.ended); return; }
    bool news = !own.sealed.count(from);
    own.sealed[from] = std::move(sealed);
    own.once_sealed.insert(from);
    own.lacking.erase(from);
    own.sealed_heard = world.clock.now();
    if (own.contest && !own.contest->restarted && flight->job->addresses.of(from) != own.contest->addresses.of(from)) {
        own.contest->restarted = from;
        news = true;
    }
    if (!own.coordinating) {
        own.coordinating = true;
        gate.spawn(coordinate(flight));
    }
    if (news) flight->news.notify_all();
    if (own.ended) { send(*flight, from, *own.ended); return; }
    message::Noted noted{own.first_missing(*flight->job)};
    send(*flight, from, std::move(noted));
}

void Coordinator::on_progress(Flight& flight, NodeIndex from, const message::Progress& progress) {
    CoordinatorSide& own = side(flight);
    if (!flight.job->coordinates()) return;
    if (!own.contest || own.contest->attempt_id != progress.attempt_id) {
        // A leader of an attempt that this coordinator does not run: an older one, or one from before this daemon was started again.
        if (!own.ended || !own.ended->final) send(flight, from, message::Leave{progress.attempt_id});
        else send(flight, from, *own.ended);
        return;
    }
    const auto track = own.contest->leaders.find(from);
    if (track == own.contest->leaders.end()) return;
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
    if (world.clock.now() - own.contest->begun >= 3 * settings.heartbeat) leader.most_bytes_per_s = std::max(leader.most_bytes_per_s, bytes_per_s);
    if (any_idle) mover_.shift_soon(flight);
}

void Coordinator::on_parts_done(Flight& flight, NodeIndex from, message::PartsDone done) {
    CoordinatorSide& own = side(flight);
    if (!flight.job->coordinates()) return;
    if (!own.contest || own.contest->attempt_id != done.attempt_id) {
        send(flight, from, message::Acknowledged{done.attempt_id});  // nothing more to do for it: decided already, or left
        return;
    }
    const auto track = own.contest->leaders.find(from);
    if (track == own.contest->leaders.end()) return;
    track->second.answered = true;
    track->second.heard = world.clock.now();
    const message::Acknowledged acknowledged{done.attempt_id};
    if (!track->second.done) {
        --own.contest->open;
        if (done.code != Code::ok) own.contest->failed = from;
        track->second.done = std::move(done);
    }
    send(flight, from, acknowledged);
    flight.news.notify_all();
}

void Coordinator::on_cancel(FlightPtr flight, NodeIndex from, message::Cancel cancel) {
    CoordinatorSide& own = side(*flight);
    const bool is_over = own.ended && own.ended->final;
    const bool is_of_this_attempt = own.contest && own.contest->attempt_id == cancel.attempt_id;
    // Used up for another attempt, by this one perhaps.
    if (!is_over && !cancel.text.empty() && !is_of_this_attempt) return send(*flight, from, message::Leave{cancel.attempt_id});
    if (!std::exchange(own.cancel, true)) own.cancel_text = std::move(cancel.text);
    if (is_over) send(*flight, from, *own.ended);
    else if (!own.coordinating && flight->job->coordinates()) {
        own.coordinating = true;
        gate.spawn(coordinate(flight));
    }
    flight->news.notify_all();
}

}  // namespace cairn::engine
