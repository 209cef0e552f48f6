// Write: chunks become extents of a leader's ranges of a part.
//
// fgcs24, Algorithm 5 (write loop) and Algorithm 4 (shared read of local data). W writers per leader share the write queue and the local
// data; received data goes first, so that its buffer is a credit again soon. Offsets are append-only in the leader's range and block
// aligned; where each extent went is kept apart, for the footer. A writer exits when no local data is left and the write queue is empty and
// the receiver is done - and the coordinator has said that no more work will change hands (move.cpp).
//
// How much is begun at a time follows what the target takes: half a second's worth, in chunks of at most a writer's part of that. On a fast
// one that is a buffer a writer; on a slow one a few blocks, so that a leader never sits on work that another could do.
//
// Placement (ispdc23, Section III-B) decides the offset of a chunk:
//   append       the next free block of the range (the paper's own way, and the default)
//   interleaved  received: base + S (t_id + n_passes t_count), equation 2 as its prose means it; S is the buffer size
//   contiguous   received: each writer a region of recv_total / t_count, equation 1; it waits for data of that region
// In the latter two local data lies first, end to end, and `base` is where it ends; they are for one leader a part, and no work moves.
//
// Local data is anybody's, chunk by chunk; or, with the paper's split (ispdc23, Section III-A), each image belongs to one writer.
#include <algorithm>
#include <utility>

#include "base/trace.hpp"
#include "engine/internal.hpp"

namespace cairn {

using namespace engine;

namespace engine {

void RateMeter::end(Nanos now, std::uint64_t bytes) {
    constexpr Nanos span = 250 * millisecond, first_span = 50 * millisecond;
    bytes_ += bytes;
    busy_ += now - since_;
    since_ = now;
    if (busy_ < (per_s_ == 0 ? first_span : span)) return;
    const double rate = static_cast<double>(bytes_) * second / static_cast<double>(busy_);
    per_s_ = per_s_ == 0 ? rate : (per_s_ + rate) / 2;
    busy_ = 0;
    bytes_ = 0;
}

double RateMeter::per_s(Nanos now, bool busy) const {
    // What is under way for long has become slow, though nothing ended that would say so.
    const Nanos elapsed = busy_ + (busy ? now - since_ : 0);
    if (per_s_ == 0 || elapsed < second) return per_s_;
    return std::min(per_s_, static_cast<double>(bytes_ + 1) * second / static_cast<double>(elapsed));
}

std::uint64_t PartState::unstarted_bytes() const {
    std::uint64_t sum = 0;
    for (const Run& run : local) sum += run.source.length;
    for (const auto& runs : remote)
        for (const Run& run : runs) sum += run.source.length;
    return sum;
}

std::uint64_t PartState::window_bytes(std::uint64_t block_bytes, Nanos now) const {
    const double per_s = rate.per_s(now, writing_bytes > 0);
    // What is written first may only have gone into somebody's buffers: no more is begun than was written so far, and a little.
    const std::uint64_t slow_start = written_bytes + 4 * block_bytes;
    if (per_s == 0) return slow_start;
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::min(per_s / 2, 1e15)), 2 * block_bytes, slow_start);
}

std::uint64_t PartState::next_chunk_bytes(std::uint64_t block_bytes, Nanos now) const {
    const std::uint64_t bytes = std::min(chunk_bytes_max, window_bytes(block_bytes, now) / writers);
    return std::max(block_bytes, bytes / block_bytes * block_bytes);
}

}  // namespace engine

namespace {

// ispdc23, Section III-A: the images of this node are dealt out to the writers, the largest first, so that each gets about as much.
void deal_out(PartState& part) {
    std::map<Rank, std::uint64_t> bytes;
    for (const Run& run : part.local) bytes[run.source.rank] += run.source.length;
    std::vector<Rank> ranks;
    for (const auto& [rank, length] : bytes) ranks.push_back(rank);
    std::stable_sort(ranks.begin(), ranks.end(), [&](Rank a, Rank b) { return bytes[a] > bytes[b]; });
    std::map<Rank, std::uint32_t> writers;
    for (std::uint32_t i = 0; i < ranks.size(); ++i) writers[ranks[i]] = i % part.writers;
    for (Run& run : part.local) run.writer = writers[run.source.rank];
}

// The share's sources as runs: local ones, and a queue for each follower (by writer's region when contiguous).
void lay_out(Attempt& attempt, PartState& part, NodeIndex self, const FlushSettings& settings, std::uint64_t buffer_bytes) {
    const std::uint64_t block = attempt.lead.block_bytes;
    part.chunk_bytes_max = chunk_bytes(buffer_bytes, block, part.share.bytes, part.writers);
    const bool whole = settings.placement == Placement::append;
    std::uint64_t received = 0;
    for (const NodeSources& node : part.share.nodes) {
        std::deque<Run> runs;
        std::uint64_t& position = node.node == self ? part.local_end : received;
        for (const Source& source : node.sources) {
            if (source.length == 0) part.extents.push_back({source.rank, 0, 0, 0, {}});
            for (std::uint64_t at = 0; at < source.length;) {
                const std::uint64_t length = whole ? source.length : std::min(part.chunk_bytes_max, source.length - at);
                runs.push_back({node.node, {source.rank, source.image_offset + at, length}, 0, position});
                position += round_up(length, block);
                at += length;
            }
        }
        if (node.node == self) part.local.insert(part.local.end(), runs.begin(), runs.end());
        else part.remote.push_back(std::move(runs));
    }
    if (settings.local_split == LocalSplit::files) deal_out(part);
    const bool contiguous = settings.placement == Placement::contiguous;
    part.write_queue.resize(contiguous ? part.writers : 1);
    part.passes.assign(part.writers, 0);
    if (!contiguous) return;
    std::vector<std::deque<Run>> regions(part.writers);
    for (const auto& runs : part.remote)
        for (const Run& run : runs) regions[std::min<std::uint64_t>(part.writers - 1, run.position * part.writers / received)].push_back(run);
    part.remote = std::move(regions);
}

// Algorithm 4: the next chunk of local data that this writer may take, first in first out; nothing while enough is being written.
std::optional<PendingChunk> shared_read(Attempt& attempt, PartState& part, std::uint32_t writer, Nanos now) {
    const std::uint64_t block = attempt.lead.block_bytes;
    const auto next = std::find_if(part.local.begin(), part.local.end(), [&](const Run& run) { return run.writer == any_writer || run.writer == writer; });
    if (next == part.local.end() || (part.writing_bytes > 0 && part.writing_bytes >= part.window_bytes(block, now))) return std::nullopt;
    Run& run = *next;
    PendingChunk chunk;
    chunk.source = {run.source.rank, run.source.image_offset, std::min(part.next_chunk_bytes(block, now), run.source.length)};
    chunk.range = run.range;
    chunk.position = run.position;
    run.source.image_offset += chunk.source.length;
    run.source.length -= chunk.source.length;
    run.position += round_up(chunk.source.length, block);
    if (run.source.length == 0) part.local.erase(next);
    return chunk;
}

// Algorithm 5, lines 10 to 12: where this chunk goes.
Result<std::uint64_t> place(const Attempt& attempt, PartState& part, const PendingChunk& chunk, std::uint32_t writer, const FlushSettings& settings) {
    Range& range = part.ranges[chunk.range];
    if (settings.placement == Placement::append) {
        const std::uint64_t offset = range.next;
        range.next += round_up(chunk.source.length, attempt.lead.block_bytes);
        if (range.next > range.end) return Status(Code::internal, "the coordinator's plan gives this range more data than it holds");
        return offset;
    }
    if (!chunk.received) return range.next + chunk.position;
    const std::uint64_t base = range.next + part.local_end;
    if (settings.placement == Placement::contiguous) return base + chunk.position;
    return base + part.chunk_bytes_max * (writer + part.passes[writer]++ * part.writers);
}

void trace_chunk(const PartState& part, std::uint32_t writer, const PendingChunk& chunk, Nanos begun, Nanos checksummed, Nanos ended) {
    if (!trace_is_open()) return;
    const std::string track = "part " + std::to_string(part.plan.part) + " writer " + std::to_string(writer);
    if (!chunk.received) trace_span(track, "checksums", begun, checksummed);
    trace_span(track, chunk.received ? "write received" : "write local", checksummed, ended,
               {{"rank", chunk.source.rank}, {"bytes", chunk.source.length}});
}

}  // namespace

Task<void> Node::Impl::write_part(Attempt& attempt, PartState& part) {
    Flight& flight = *attempt.flight;
    lay_out(attempt, part, flight.job->self, settings, ring.buffer_bytes());
    part.path = layout.part(flight.key, part.plan.part, attempt.lead.parts_total, attempt.lead.attempt_id);
    Status status = co_await open_part(attempt, part);
    if (status.ok()) {
        Gate workers(world.clock);
        workers.spawn(receive(attempt, part));
        for (std::uint32_t writer = 0; writer < part.writers; ++writer) workers.spawn(write_loop(attempt, part, writer));
        co_await workers.close();
        for (auto& queue : part.write_queue) queue.clear();  // of a failed attempt: its buffers are credits again
        status = Status(Code::cancelled, "attempt over");
        if (!attempt.over()) status = co_await finish_share(attempt, part);
    }
    const bool mine = part.first && part.file;
    part.file.reset();
    if (!status.ok()) {
        attempt.fail_part(std::move(status), part);
        // Never reported, so no manifest can name it: safe to remove. A part that was reported is left to the coordinator (commit.cpp).
        if (mine) {
            const Status ignored = co_await world.storage.remove(part.path, world.clock.in(settings.io_wait));
            (void)ignored;
        }
    }
    attempt.work.notify_all();
}

// In one write where nothing limits it, else in pieces that are admitted one by one. The waits of all of them together have a bound.
Task<Status> Node::Impl::write_paced(Attempt& attempt, FilePtr file, std::uint64_t offset, Slice data, bool received) {
    const std::function<bool()> over = [&attempt] { return attempt.over(); };
    const Pace::Step step = received ? Pace::Step::write_received : Pace::Step::write_local;
    const Nanos until = world.clock.in(pace.wait_max());
    Status status;
    while (status.ok() && data.length > 0) {
        const std::uint64_t bytes = std::min(data.length, pace.piece_bytes());
        const Pace::Pass pass = co_await pace.admit(step, bytes, over, until);
        if (attempt.over()) co_return Status();  // the caller sees that too
        Slice piece = data.part(0, bytes);
        status = co_await write_all(world.storage, file, offset, std::move(piece), world.clock.in(settings.io_wait));
        offset += bytes;
        data = data.part(bytes, data.length - bytes);
    }
    co_return status;
}

Task<void> Node::Impl::write_loop(Attempt& attempt, PartState& part, std::uint32_t writer) {
    const FlightPtr flight = attempt.flight;
    auto& queue = part.write_queue[part.write_queue.size() == 1 ? 0 : writer];
    while (!attempt.over()) {
        std::optional<PendingChunk> chunk;
        if (!queue.empty()) {
            chunk = std::move(queue.front());
            queue.pop_front();
        } else {
            chunk = shared_read(attempt, part, writer, world.clock.now());
        }
        if (!chunk) {
            if (part.receiver_done && part.local.empty()) co_return;
            co_await attempt.work.wait();
            continue;
        }
        const std::uint64_t length = chunk->source.length;
        if (part.writing_bytes == 0) part.rate.begin(world.clock.now());
        part.writing_bytes += length;
        const std::uint64_t of_local = chunk->received ? 0 : length;
        part.local_bytes += of_local;
        Status status = co_await write_chunk(attempt, part, writer, std::move(*chunk));
        part.writing_bytes -= length;
        part.local_bytes -= of_local;
        part.written_bytes += length;
        part.rate.end(world.clock.now(), length);
        attempt.last_write = world.clock.now();
        attempt.card.wrote(static_cast<double>(attempt.last_write) / second, length);
        if (!status.ok()) attempt.fail_part(std::move(status), part);
        attempt.work.notify_all();
    }
}

Task<Status> Node::Impl::write_chunk(Attempt& attempt, PartState& part, std::uint32_t writer, PendingChunk chunk) {
    const FlightPtr flight = attempt.flight;
    const std::uint64_t length = chunk.source.length;
    const Nanos begun = world.clock.now();
    HeldImage* held = nullptr;
    Status status;
    if (!chunk.received) {
        const auto found = flight->images.find(chunk.source.rank);
        if (found == flight->images.end()) {
            part.blameless = true;
            co_return not_found("the image of rank " + std::to_string(chunk.source.rank) + " has left scratch");
        }
        held = &found->second;
        ++held->users;
        Result<Slice> data = local_data(*held, chunk.source);
        if (data.ok()) {
            chunk.data = std::move(data).value();
            const std::function<bool()> over = [&attempt] { return attempt.over(); };
            Result<std::vector<std::uint64_t>> checksums = co_await checksums_of(flight, chunk.source, over);
            if (checksums.ok()) chunk.checksums = std::move(checksums).value();
            else status = std::move(checksums).status();
        } else {
            status = std::move(data).status();
        }
    }
    part.blameless |= !status.ok();
    const Result<std::uint64_t> offset = place(attempt, part, chunk, writer, settings);
    if (status.ok()) status = offset.status();
    const Nanos checksummed = world.clock.now();
    if (status.ok() && !attempt.over()) {
        Slice data = chunk.data;
        if (!part.first && part.sample.length == 0) {
            if (chunk.received) co_await keep_sample(part, data, *offset);
            else if (!std::exchange(part.sampling, true)) gate.spawn(keep_local_sample(flight->leading, part, *held, data, *offset));
        }
        status = co_await write_paced(attempt, part.file, *offset, std::move(data), chunk.received);
        if (held && status.ok()) {  // what was written may be zeros in the place of what its checksums are of
            status = check_not_lost(held->image);
            part.blameless |= !status.ok();
        }
    }
    if (held) --held->users;
    chunk.data = {};  // the buffer goes back to FQ
    if (chunk.received) part.ahead_bytes -= length;
    if (!status.ok() || attempt.over()) co_return status;
    trace_chunk(part, writer, chunk, begun, checksummed, world.clock.now());
    part.extents.push_back({chunk.source.rank, chunk.source.image_offset, length, *offset, std::move(chunk.checksums)});
    WriterTimes& times = attempt.times[(part.first_writer + writer) % attempt.times.size()];
    (chunk.received ? times.received_s : times.local_s) += static_cast<double>(world.clock.now() - begun) / second;
    (chunk.received ? times.received_bytes : times.local_bytes) += length;
    attempt.written_bytes += length;
    counters.written_bytes += length;
    flight->state.node_written_bytes += length;
    co_return Status();
}

}  // namespace cairn
