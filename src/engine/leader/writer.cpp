#include "engine/leader/writer.hpp"

#include <algorithm>
#include <utility>

#include "base/trace.hpp"
#include "engine/base_use.hpp"
#include "format/limits.hpp"

namespace cairn::engine {

namespace {

// Algorithm 4: the next chunk of local data that this writer may take, first in first out; nothing while enough is being written.
std::optional<PendingChunk> shared_read(Attempt& attempt, PartState& part, std::uint32_t writer, Nanos now) {
    const std::uint64_t block = attempt.lead.block_bytes;
    if (part.writing_bytes > 0 && part.writing_bytes >= part.window_bytes(block, now)) return std::nullopt;
    const std::optional<Piece> piece = part.work.take_local(writer, part.next_chunk_bytes(block, now));
    if (!piece) return std::nullopt;
    PendingChunk chunk;
    chunk.source = piece->source;
    chunk.range = piece->range;
    chunk.position = piece->position;
    return chunk;
}

// Algorithm 5, lines 10 to 12: where this chunk goes.
Result<std::uint64_t> place(const Attempt& attempt, PartState& part, const PendingChunk& chunk, std::uint32_t writer, const FlushSettings& settings) {
    if (part.places) return part.places->begins.at(chunk.source.rank) + chunk.source.image_offset;
    Range& range = part.ranges[chunk.range];
    if (settings.placement == Placement::append) {
        const std::uint64_t offset = range.next;
        range.next += space_of(chunk.bytes(), {attempt.lead.block_bytes, attempt.lead.pack_bytes});
        if (range.next > range.end) return Status(Code::internal, "the coordinator's plan gives this range more data than it holds");
        return offset;
    }
    if (!chunk.received) return range.next + chunk.position;
    const std::uint64_t base = range.next + part.work.local_end();
    if (settings.placement == Placement::contiguous) return base + chunk.position;
    return base + part.chunk_bytes_max * (writer + part.passes[writer]++ * part.writers);
}

struct ChunkTimes {
    Nanos begun = 0, checksummed = 0, placed = 0, ended = 0;
};

void trace_chunk(const PartState& part, std::uint32_t writer, const PendingChunk& chunk, const ChunkTimes& times) {
    if (!trace_is_open()) return;
    const std::string track = "part " + std::to_string(part.plan.part) + " writer " + std::to_string(writer);
    if (!chunk.received) trace_span(track, "checksums", times.begun, times.checksummed);
    if (times.placed > times.checksummed) trace_span(track, "wait for its place", times.checksummed, times.placed);
    trace_span(track, chunk.received ? "write received" : "write local", times.placed, times.ended,
               {{"rank", chunk.source.rank}, {"bytes", chunk.bytes()}});
}

}  // namespace

Writer::Writer(Common& c, BufferRing& r, PartFile& part_file, Rooms& rooms, Trial& trial) : LeaderRole(c, r), part_file_(part_file), rooms_(rooms), trial_(trial) {}

void Writer::lay_out(Attempt& attempt, PartState& part) const {
    const std::uint64_t block = attempt.lead.block_bytes;
    part.chunk_bytes_max = chunk_bytes(ring.buffer_bytes(), block, part.share.bytes, part.writers);
    if (attempt.codec != Codec::none) part.encoded_chunk_bytes_max = std::min(ring.buffer_bytes() / block * block, encoded_run_bytes_max);
    WorkPolicy policy{settings.placement, settings.local_split, part.writers, block, part.chunk_bytes_max, attempt.lead.pack_bytes};
    policy.merge = as_chosen(attempt.lead.merge_ranks, attempt.lead.merge_bytes, std::min(part.encoded_chunk_bytes_max, merged_run_bytes_max), block);
    policy.merges_own_only = attempt.lead.encode_at_follower;
    part.work = WorkList(part.share, attempt.flight->job->self, policy);
    for (const NodeSources& node : part.share.nodes)
        for (const Source& source : node.sources)
            if (source.length == 0) part.empty_ranks.push_back(source.rank);
    if (attempt.flight->job->roster->layout == FileLayout::tensors) part.places = tensor_places(part.share.nodes, attempt.images);
    part.write_queue.resize(settings.placement == Placement::contiguous ? part.writers : 1);
    part.passes.assign(part.writers, 0);
}

// In one write where nothing limits it, else in pieces that are admitted one by one. The waits of all of them together have a bound.
Task<Status> Writer::write_paced(Attempt& attempt, const PartState& part, std::uint64_t offset, Slice data, bool received) {
    const std::function<bool()> over = [&attempt, &part] { return attempt.over(part); };
    const FilePtr file = part.file;
    const Pace::Step step = received ? Pace::Step::write_received : Pace::Step::write_local;
    const Nanos until = world.clock.in(pace.wait_max());
    Status status;
    while (status.ok() && data.length > 0) {
        const std::uint64_t bytes = std::min(data.length, pace.piece_bytes());
        const Pace::Pass pass = co_await pace.admit(step, bytes, over, until);
        if (attempt.over(part)) co_return Status();  // the caller sees that too
        Slice piece = data.part(0, bytes);
        status = co_await write_all(world.storage, file, offset, std::move(piece), world.clock.in(part_wait(attempt, part)));
        offset += bytes;
        data = data.part(bytes, data.length - bytes);
    }
    co_return status;
}

Task<void> Writer::write_loop(Attempt& attempt, PartState& part, std::uint32_t writer) {
    const FlightPtr flight = attempt.flight;
    auto& queue = part.write_queue[part.write_queue.size() == 1 ? 0 : writer];
    while (!attempt.over(part)) {
        std::optional<PendingChunk> chunk;
        if (!queue.empty()) {
            chunk = std::move(queue.front());
            queue.pop_front();
        } else {
            chunk = shared_read(attempt, part, writer, world.clock.now());
        }
        if (!chunk) {
            if (part.receiver_done && !part.work.has_local()) co_return;
            co_await attempt.work.wait();
            continue;
        }
        const std::uint64_t length = chunk->bytes();
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
        if (!status.ok()) attempt.fail_part(std::move(status), part);
        attempt.work.notify_all();
    }
}

// What is written of a chunk.
struct Writer::Stored {
    Slice data;
    std::uint32_t codec = 0;  // 1: that of the attempt
    std::uint64_t checksum = 0;
    BufferRing::Use encoding = {};  // whose buffer it is
    bool needs_base = false;
};

FindArrays arrays_in_pack(const Flight& flight, const PendingChunk& chunk) {
    std::vector<std::pair<std::uint64_t, FindArrays>> found;
    for (const StoredPiece& piece : chunk.packed) {
        const auto image = flight.images.find(piece.rank);
        if (image != flight.images.end()) found.emplace_back(piece.at, arrays_of(image->second, {piece.rank, piece.image_offset, piece.length}));
    }
    return [found = std::move(found)] {
        std::vector<NumberArray> all;
        for (const auto& [at, arrays_at] : found)
            for (NumberArray& array : arrays_at()) {
                array.offset += at;
                all.push_back(array);
            }
        return all;
    };
}

// A sixteenth less is worth it: whoever reads any of a run that is encoded decodes all of it.
Task<Writer::Stored> Writer::encoded(Attempt& attempt, PendingChunk& chunk, const HeldImage* held) {
    if (chunk.codec != 0) co_return Stored{chunk.data, chunk.codec, chunk.checksum, std::move(chunk.use), chunk.needs_base};
    Stored raw{chunk.data, 0, 0, {}, false};
    const std::uint64_t block = attempt.lead.block_bytes, bytes = chunk.bytes();
    bool may_shrink = chunk.packed.empty() && world.cpu.may_shrink(attempt.codec, chunk.checksums, bytes, block);
    for (const StoredPiece& piece : chunk.packed) may_shrink |= world.cpu.may_shrink(attempt.codec, piece.checksums, piece.length, block);
    if (!may_shrink || bytes > encoded_run_bytes_max || ring.buffers() < 2) co_return raw;  // of one buffer receivers leave none
    Result<BufferRing::Use> encoding = co_await ring.take_to_encode(world.clock.in(settings.io_wait));
    if (!encoding.ok() || attempt.over()) co_return raw;
    Slice into{encoding->buffer, 0, bytes - bytes / 16};
    FindArrays arrays = held ? arrays_of(*held, chunk.source) : arrays_in_pack(*attempt.flight, chunk);
    BaseUse base = held ? base_of(*attempt.flight->job, attempt.lead.base, chunk.source, *held) : BaseUse();
    Coding coding(attempt.codec, attempt.keys);
    const Result<Encoded> made = co_await world.cpu.encode(std::move(coding), chunk.data, base.bytes(), std::move(arrays), into, world.clock.in(settings.io_wait));
    if (made.ok()) note_encoded(*attempt.flight->job, attempt.codec, bytes, *made);
    if (!made.ok() || made->bytes == 0 || !base.is_there()) co_return raw;  // nothing that a codec does fails a flush: memory that does not come back is the write's to tell
    co_return Stored{into.part(0, made->bytes), 1, made->checksum, std::move(encoding).value(), made->needs_base};
}

// What a local chunk's bytes and checksums are.
Task<Status> Writer::read_local(Attempt& attempt, HeldImage& held, PendingChunk& chunk) {
    const std::function<bool()> over = [&attempt] { return attempt.over(); };
    Result<HeldBytes> made = co_await common.reads.bytes_of(images_of(attempt.flight), chunk.source, WantedFor::writing, over);
    if (made.code() == Code::not_found && is_used_up(held, chunk.source)) tell_used_up(attempt, made.status());
    if (!made.ok()) co_return std::move(made).status();
    chunk.data = std::move(made->data);
    chunk.checksums = std::move(made->sums.checksums);
    chunk.cuts = std::move(made->sums.cuts);
    co_return Status();
}

Task<Status> Writer::write_chunk(Attempt& attempt, PartState& part, std::uint32_t writer, PendingChunk chunk) {
    const FlightPtr flight = attempt.flight;
    const std::uint64_t length = chunk.bytes();
    ChunkTimes times{world.clock.now(), 0, 0, 0};
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
        rooms_.ask_early(attempt, part, chunk, length);
        status = co_await read_local(attempt, *held, chunk);
    }
    Stored stored;
    if (status.ok()) {
        trial_.offer(attempt, chunk, held);
        Stored made = co_await encoded(attempt, chunk, held);
        stored = std::move(made);
    }
    part.blameless |= !status.ok();
    const std::uint64_t stored_bytes = stored.data.length;
    times.checksummed = world.clock.now();
    std::uint64_t offset = 0;
    if (status.ok() && !attempt.over(part)) {
        if (stored.codec != 0) chunk.let_go();
        Result<std::uint64_t> placed = 0;
        if (are_handed_out(attempt, settings.placement)) placed = co_await rooms_.take(attempt, part, chunk, stored_bytes);
        else placed = place(attempt, part, chunk, writer, settings);
        if (attempt.over(part)) placed = 0;
        status = placed.status();
        if (status.ok()) offset = *placed;
    }
    times.placed = world.clock.now();
    if (status.ok() && !attempt.over(part)) {
        if (!part.first && part.sample.length == 0) {
            if (chunk.received || stored.codec != 0) co_await part_file_.keep_sample(part, stored.data, offset);
            else if (!std::exchange(part.sampling, true)) gate.spawn(part_file_.keep_local_sample(side(*flight).leading, part, *held, stored.data, offset));
        }
        attempt.storage.begin(world.clock.now());
        status = co_await write_paced(attempt, part, offset, std::move(stored.data), chunk.received);
        attempt.storage.end(world.clock.now());
        if (held && status.ok()) {  // what was written may be zeros in the place of what its checksums are of
            status = check_not_lost(held->image);
            part.blameless |= !status.ok();
        }
    }
    if (held) --held->users;
    stored.data = {};
    chunk.let_go();
    if (chunk.received) part.ahead_bytes -= length;
    if (!status.ok() || attempt.over(part)) co_return status;
    times.ended = world.clock.now();
    trace_chunk(part, writer, chunk, times);
    note_written(attempt, part, writer, std::move(chunk), {offset, stored_bytes, stored.codec, stored.checksum, {}, stored.needs_base}, times.ended - times.begun);
    co_return Status();
}

void Writer::note_written(Attempt& attempt, PartState& part, std::uint32_t writer, PendingChunk chunk, StoredRun run, Nanos took) {
    const std::uint64_t length = chunk.bytes();
    attempt.card.wrote(static_cast<double>(world.clock.now()) / second, run.stored_bytes);
    if (run.codec != 0) {
        part.encoded_raw_bytes += length;
        part.encoded_stored_bytes += run.stored_bytes;
    }
    run.pieces = std::move(chunk.packed);
    if (run.pieces.empty()) run.pieces.push_back({chunk.source.rank, chunk.source.image_offset, length, 0, std::move(chunk.checksums), std::move(chunk.cuts)});
    part.runs.push_back(std::move(run));
    WriterTimes& times = attempt.times[(part.first_writer + writer) % attempt.times.size()];
    (chunk.received ? times.received_s : times.local_s) += static_cast<double>(took) / second;
    (chunk.received ? times.received_bytes : times.local_bytes) += length;
    attempt.written_bytes += length;
    counters.written_bytes += length;
    attempt.flight->state.node_written_bytes += length;
}

}  // namespace cairn::engine
