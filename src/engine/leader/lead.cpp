// Lead: an attempt's life at one of its leaders, from the coordinator's Lead until the coordinator has its report.
#include "engine/leader/leader.hpp"

#include <algorithm>

#include "base/trace.hpp"
#include "engine/leader/check.hpp"

namespace cairn::engine {

namespace {
constexpr Nanos long_version = second;  // beside it a trial's milliseconds are nothing
}

void Leader::on_acknowledged(Flight& flight, const message::Acknowledged& acknowledged) {
    if (side(flight).leads(acknowledged.attempt_id)) side(flight).leading->acknowledged = true;
    flight.news.notify_all();
}

void Leader::on_leave(Flight& flight, const message::Leave& leave) {
    LeaderSide& own = side(flight);
    if (own.leads(leave.attempt_id)) {
        own.leading->fail({Code::superseded, "the coordinator left this attempt"});
        own.leading->left = true;
    }
    attempts_seen_.insert(leave.attempt_id);  // its Lead may come yet, and would end the attempt after it
    flight.news.notify_all();
}

void Leader::on_lead(FlightPtr flight, message::Lead lead) {
    LeaderSide& own = side(*flight);
    // A daemon that is stopping still finishes what its own ranks sealed.
    if (flight->state.final || (common.stopping && !flight->job->has_ranks(flight->job->self))) return;
    // Once only: asked again while it runs, Progress is on its way; asked again later, it is a datagram that came late, and its part
    // names are taken.
    if (!attempts_seen_.insert(lead.attempt_id)) return;
    if (const Status can = check_lead(*flight->job, lead, ring.buffer_bytes(), settings.placement); !can.ok()) {
        message::PartsDone refused;
        refused.attempt_id = lead.attempt_id;
        refused.code = can.code();
        refused.text = can.text();
        attempts_seen_.erase(lead.attempt_id);  // the answer may be lost
        send_to_coordinator(*flight, std::move(refused));
        return;
    }
    if (own.leading) {
        own.leading->fail({Code::superseded, "a newer attempt began"});
        own.leading->left = true;
    }
    std::erase_if(own.opened, [&](const auto& opened) { return opened.first != lead.attempt_id; });
    own.leading = std::make_shared<Attempt>(world, flight, std::move(lead));
    own.leading->pace = &pace;
    gate.spawn(this->lead(own.leading));
}

Task<void> Leader::lead(std::shared_ptr<Attempt> attempt) {
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
    const std::uint32_t at_a_time = !has_owners(flight.job->roster->layout) || settings.slots == 0 ? count : std::min(count, settings.slots);
    if (at_a_time < count) attempt->slots = Slots(at_a_time);
    attempt->writers_each = std::max(1u, settings.writers / at_a_time);
    for (std::uint32_t i = 0; i < count; ++i) begin_part(*attempt, i);  // all of them: the coordinator hears of what is not begun
    co_await report(attempt);
    if (attempt->reported && !attempt->parts.empty()) trial_.begin(*attempt, *attempt->parts.front());
    // Writes that outlived the attempt end by their deadlines; the attempt's state stays until then.
    for (const auto& part : attempt->parts) co_await part->gate.close();
    if (!attempt->reported) co_await part_file_.remove_complete(*attempt);
    if (side(flight).leading == attempt) side(flight).leading.reset();
    --counters.leading;
    common.changed.notify_all();  // idle, perhaps
}

// `place`: among the attempt's parts, as in write_part.
void Leader::begin_part(Attempt& attempt, std::size_t place) {
    PartState& part = *attempt.parts[place];
    part.writers = attempt.writers_each;
    part.first_writer = static_cast<std::uint32_t>(place) * part.writers;
    writer_.lay_out(attempt, part);
    part.gate.spawn(write_part(attempt, part, place));
}

// A file that takes the place of another has no turn: what was to be staged after that one need not wait for it.
Task<void> Leader::write_part(Attempt& attempt, PartState& part, std::size_t place) {
    Flight& flight = *attempt.flight;
    part.root = layout.root(flight.job->roots, flight.job->root_of(part.plan.target));
    part.path = Layout::part_below(part.root, flight.key, flight.job->part_name(part.plan, attempt.lead.attempt_id));
    const bool has_turn = part.plan.replacement == 0;
    bool has_left = false;
    while (has_turn && !attempt.over() && !attempt.slots.may_stage(place)) co_await attempt.work.wait();
    if (has_turn) attempt.slots.stage();
    Status status(Code::cancelled, "attempt over");
    if (!attempt.over(part)) status = co_await part_file_.open(attempt, part);
    while (has_turn && !attempt.over() && !attempt.slots.may_flush(place)) co_await attempt.work.wait();
    if (has_turn) attempt.slots.flush();
    attempt.work.notify_all();  // the next one may be staged
    if (status.ok() && attempt.over(part)) status = Status(Code::cancelled, "attempt over");
    if (status.ok()) {
        Gate workers(world.clock);
        workers.spawn(receiver_.receive(attempt, part));
        for (std::uint32_t writer = 0; writer < part.writers; ++writer) workers.spawn(writer_.write_loop(attempt, part, writer));
        co_await workers.close();
        for (auto& queue : part.write_queue) queue.clear();  // of a failed attempt: its buffers are credits again
        has_left = has_turn && settings.direct;  // what comes now is a short write and waits, beside which the next file's data go on
        if (has_left) attempt.slots.leave();
        attempt.work.notify_all();
        status = Status(Code::cancelled, "attempt over");
        if (world.clock.now() - attempt.started >= long_version) trial_.begin(attempt, part);
        if (!attempt.over(part)) status = co_await part_file_.finish_share(attempt, part);
        if (status.ok() && part.dropped) status = Status(Code::cancelled, "dropped");
    }
    const bool mine = part.first && part.file;
    part.file.reset();
    if (has_turn && !has_left) attempt.slots.leave();  // the file's own end may hang
    attempt.work.notify_all();
    if (!status.ok()) {
        attempt.fail_part(std::move(status), part);
        // Never reported, so no manifest can name it: safe to remove. A part that was reported is left to the coordinator (coordinator/publisher.cpp). So is one at which a call hangs: the
        // kernel holds the directory of a file that is removed until the call has ended, and with it all that this version still has to make there.
        if (mine && part.why.code() != Code::deadline) co_await part_file_.remove(part);
    }
    attempt.work.notify_all();
}

// Only the coordinator says that no more work will come, and what comes in the place of a part that failed. One that never comes back must not keep a leader waiting for that word for ever.
void Leader::watch_coordinator(Attempt& attempt) {
    const Nanos now = world.clock.now();
    const bool awaits_file = std::any_of(attempt.parts.begin(), attempt.parts.end(), [](const auto& part) { return part->dropped && !part->settled; });
    if (!awaits_file && (attempt.finishing || !attempt.idle_told)) attempt.busy = now;
    const Nanos silent = now - std::max(attempt.busy, attempt.flight->coordinator_heard);
    if (silent > settings.version_wait) attempt.fail(unavailable("the coordinator, " + attempt.flight->job->node_name(attempt.flight->job->coordinator()) + ", fell silent"));
}

// Heartbeats while shares are written, then the report, until the coordinator has it or has no more use for it.
Task<void> Leader::report(std::shared_ptr<Attempt> attempt) {
    Flight& flight = *attempt->flight;
    const auto all_done = [&] { return attempt->all_done(); };
    const auto has_news = [&] { return attempt->idle_parts() > attempt->idle_parts_told || has_untold_failure(*attempt); };
    while (!attempt->left && attempt->failure.ok() && !all_done()) {
        receiver_.watch_followers(*attempt);
        watch_coordinator(*attempt);
        for (const auto& part : attempt->parts) part_file_.tell_opened(*attempt, *part);
        const Nanos next = world.clock.in(settings.heartbeat);
        do {
            tell_progress(*attempt);
            tell_failures(*attempt);
            attempt->idle_parts_told = attempt->idle_parts();
            attempt->idle_told = attempt->idle_parts_told == attempt->parts.size();
            while (!attempt->over() && !all_done() && !has_news() && world.clock.now() < next) co_await attempt->work.wait(next);
        } while (!attempt->over() && has_news());
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
    done.card = attempt->card.seen();
    done.codecs = trial_.seen(*attempt);
    done.encoders = trial_.encoders(*attempt);
    if (attempt->failure.ok() && !attempt->left) done.keys = attempt->flight->job->keys_seen.take();
    for (const auto& part : attempt->parts)
        if (part->equal_pages && !part->dropped) done.equal_bytes += part->equal_pages->shared_bytes();
    done.storage_busy_ns = static_cast<std::uint64_t>(attempt->storage.busy());
    if (attempt->failure.ok())
        for (const auto& part : attempt->parts) {
            if (!part->done || part->dropped) continue;
            done.parts.push_back(*part->done);
            done.coverage += part->coverage;
            done.needs_base |= part->needs_base;
        }
    attempt->reported = attempt->failure.ok() && !attempt->left;
    if (attempt->reported) side(flight).reported = done.attempt_id;
    // Reports are kept until acknowledged, for as long as a restarted coordinator may take to come back.
    const Nanos give_up = world.clock.in(settings.version_wait);
    for (Nanos pause = settings.heartbeat; !attempt->acknowledged && !attempt->left && !flight.state.final && world.clock.now() < give_up;) {
        send_to_coordinator(flight, done);
        // Often enough that the coordinator, which hears nothing else from here now, does not take a few lost ones for silence.
        pause = std::min(pause * 2, std::max(settings.heartbeat, settings.peer_wait / 4));
        const Nanos next = world.clock.in(pause);
        while (!attempt->acknowledged && !attempt->left && !flight.state.final && world.clock.now() < next)
            co_await flight.news.wait(next);
    }
}

void Leader::tell_progress(Attempt& attempt) {
    message::Progress progress{attempt.lead.attempt_id, ++attempt.progress_sequence, attempt.written_bytes, {}, static_cast<std::uint32_t>(attempt.taken.size())};
    for (const auto& part : attempt.parts) {
        if (part->dropped) continue;
        const double rate = part->rate.per_s(world.clock.now(), part->writing_bytes > 0);
        progress.parts.push_back({part->plan.part, part->work.unstarted_bytes(), part->begun_bytes(), static_cast<std::uint64_t>(rate)});
    }
    send_to_coordinator(*attempt.flight, std::move(progress));
}

}  // namespace cairn::engine
