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
    if (attempt.lead.equal_pages && attempt.lead.base == 0) look_for_equal_pages(attempt, part);
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

void Writer::look_for_equal_pages(const Attempt& attempt, PartState& part) const {
    const std::uint64_t block = attempt.lead.block_bytes, leaders = part.plan.shares.size();
    const FlushLimits& limits = settings.limits;
    const std::uint64_t run_bytes_max = std::max(block, merged_run_bytes_max / block * block);
    part.chunk_bytes_max = std::min(part.chunk_bytes_max, run_bytes_max);
    part.encoded_chunk_bytes_max = std::min(part.encoded_chunk_bytes_max, run_bytes_max);
    part.least_chunk_bytes = std::min(part.chunk_bytes_max, 4 * limits.equal_stretch_bytes);
    part.equal_pages.emplace(block, EqualPagesLimits{limits.equal_stretch_bytes, limits.equal_units / attempt.parts.size(), equal_pieces_max / leaders, limits.message_units, limits.message_pieces});
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
        Task<Status> writing = chunk->received ? write_chunk(attempt, part, writer, std::move(*chunk), nullptr, world.clock.now()) : write_local(attempt, part, writer, std::move(*chunk));
        Status status = co_await writing;
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

// Of what came, and of this node's own images in a pack.
FindArrays arrays_in(const Flight& flight, const PendingChunk& chunk) {
    std::vector<std::pair<std::uint64_t, FindArrays>> found;
    for (const StoredPiece& piece : chunk.packed) {
        const auto image = flight.images.find(piece.rank);
        if (image != flight.images.end()) found.emplace_back(piece.at, arrays_of(image->second, {piece.rank, piece.image_offset, piece.length}));
    }
    return [found = std::move(found), told = chunk.arrays] {
        std::vector<NumberArray> all = told;
        for (const auto& [at, arrays_at] : found)
            for (NumberArray& array : arrays_at()) {
                array.offset += at;
                all.push_back(array);
            }
        std::sort(all.begin(), all.end(), [](const NumberArray& a, const NumberArray& b) { return a.offset < b.offset; });
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
    FindArrays arrays = held ? arrays_of(*held, chunk.source) : arrays_in(*attempt.flight, chunk);
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

// Of bytes that look the same: whether they are.
Task<bool> Writer::is_same(Attempt& attempt, PartState& part, const PendingChunk& chunk, const std::vector<EqualPages::Match>& matches) {
    Cpu::Pairs pairs;
    std::vector<HeldImage*> images;
    std::uint64_t bytes = 0;
    for (const EqualPages::Match& match : matches) {
        const EqualPages::Held from = part.equal_pages->held(match);
        const auto image = attempt.flight->images.find(from.rank);
        if (image == attempt.flight->images.end() || image->second.once || image->second.image.data.buffer.get() != from.memory) co_return false;
        const Result<Slice> there = held_bytes(image->second, {from.rank, from.image_offset, match.length});
        if (!there.ok()) co_return false;
        pairs.emplace_back(*there, chunk.data.part(match.offset, match.length));
        images.push_back(&image->second);
        bytes += match.length;
    }
    for (HeldImage* image : images) ++image->users;
    const std::function<bool()> over = [&attempt, &part] { return attempt.over(part); };
    const Pace::Pass pass = co_await pace.admit(Pace::Step::gather, bytes, over);
    bool same = false;
    if (!attempt.over(part)) {
        const Result<bool> compared = co_await world.cpu.equal(std::move(pairs), world.clock.in(settings.io_wait));
        same = compared.ok() && *compared;
        if (!compared.ok()) part.equal_pages->forget();
    }
    bool is_there = true;  // zeros stand for what is lost, and zeros are the same
    for (HeldImage* image : images) {
        --image->users;
        is_there &= check_not_lost(image->image).ok();
    }
    co_return same && is_there;
}

// What of a chunk is to be written. The rest is the same as what this leader writes elsewhere in the part, and shares its place.
Task<std::vector<PendingChunk>> Writer::without_equal(Attempt& attempt, PartState& part, PendingChunk chunk, const HeldImage& held) {
    const OwnBytes own{chunk.source.rank, chunk.source.image_offset, chunk.source.length, chunk.checksums, chunk.cuts};
    std::vector<EqualPages::Stretch> stretches = part.equal_pages->look_through(own);
    for (EqualPages::Stretch& stretch : stretches) {
        if (stretch.matches.empty()) continue;
        bool same = co_await is_same(attempt, part, chunk, stretch.matches);
        same = same && check_not_lost(held.image).ok() && part.equal_pages->share(stretch.matches, own);
        if (same) note_progress(attempt, stretch.length);
        else stretch.matches.clear();
    }
    std::vector<PendingChunk> left;
    for (const EqualPages::Stretch& stretch : EqualPages::joined(std::move(stretches))) {
        if (!stretch.matches.empty()) continue;
        PendingChunk& one = left.emplace_back();
        one.source = {chunk.source.rank, chunk.source.image_offset + stretch.offset, stretch.length};
        one.range = chunk.range;
        one.data = chunk.data.part(stretch.offset, stretch.length);
        const auto first = chunk.checksums.begin() + static_cast<std::ptrdiff_t>(stretch.first_unit);
        one.checksums.assign(first, first + static_cast<std::ptrdiff_t>(stretch.units));
        one.cuts = cuts_within(chunk.cuts, one.source.image_offset, stretch.length);
        one.kept_as = part.equal_pages->keep({one.source.rank, one.source.image_offset, one.source.length, one.checksums, one.cuts}, held.image.data.buffer.get());
    }
    co_return left;
}

// A chunk of this node's own.
Task<Status> Writer::write_local(Attempt& attempt, PartState& part, std::uint32_t writer, PendingChunk chunk) {
    const Nanos begun = world.clock.now();
    const auto found = attempt.flight->images.find(chunk.source.rank);
    if (found == attempt.flight->images.end()) {
        part.blameless = true;
        co_return not_found("the image of rank " + std::to_string(chunk.source.rank) + " has left scratch");
    }
    HeldImage& held = found->second;
    ++held.users;
    const bool may_be_equal = part.equal_pages && !held.once;
    if (!part.equal_pages) rooms_.ask_early(attempt, part, chunk, chunk.bytes());
    Status status = co_await read_local(attempt, held, chunk);
    part.blameless |= !status.ok();
    std::vector<PendingChunk> left;
    if (status.ok() && may_be_equal) left = co_await without_equal(attempt, part, std::move(chunk), held);
    else if (status.ok()) left.push_back(std::move(chunk));
    for (std::size_t i = 0; i < left.size() && status.ok() && !attempt.over(part); ++i)
        status = co_await write_chunk(attempt, part, writer, std::move(left[i]), &held, i == 0 ? begun : world.clock.now());
    --held.users;
    co_return status;
}

// `held`: its image, where it is this node's own and the chunk was not received.
Task<Status> Writer::write_chunk(Attempt& attempt, PartState& part, std::uint32_t writer, PendingChunk chunk, HeldImage* held, Nanos begun) {
    const FlightPtr flight = attempt.flight;
    const std::uint64_t length = chunk.bytes();
    ChunkTimes times{begun, 0, 0, 0};
    trial_.offer(attempt, chunk, held);
    Stored stored = co_await encoded(attempt, chunk, held);
    const std::uint64_t stored_bytes = stored.data.length;
    times.checksummed = world.clock.now();
    std::uint64_t offset = 0;
    Status status;
    if (!attempt.over(part)) {
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
    stored.data = {};
    chunk.let_go();
    if (chunk.received) part.ahead_bytes -= length;
    if (!status.ok() || attempt.over(part)) co_return status;
    times.ended = world.clock.now();
    trace_chunk(part, writer, chunk, times);
    note_written(attempt, part, writer, std::move(chunk), {offset, stored_bytes, stored.codec, stored.checksum, {}, stored.needs_base}, times.ended - times.begun);
    co_return Status();
}

void Writer::note_progress(Attempt& attempt, std::uint64_t bytes) {
    attempt.written_bytes += bytes;
    counters.written_bytes += bytes;
    attempt.flight->state.node_written_bytes += bytes;
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
    if (chunk.kept_as) part.equal_pages->written(*chunk.kept_as, part.runs.size());
    part.runs.push_back(std::move(run));
    WriterTimes& times = attempt.times[(part.first_writer + writer) % attempt.times.size()];
    (chunk.received ? times.received_s : times.local_s) += static_cast<double>(took) / second;
    (chunk.received ? times.received_bytes : times.local_bytes) += length;
    note_progress(attempt, length);
}

}  // namespace cairn::engine
