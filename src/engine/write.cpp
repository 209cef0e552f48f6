// Write: chunks become extents of a part.
//
// fgcs24, Algorithm 5 (write loop) and Algorithm 4 (shared read of local data). W writers per leader share the write queue and the local
// data; received data goes first, so that its buffer is a credit again soon. Offsets are append-only and block aligned; where each extent
// went is kept apart, for the footer. A writer exits when no local data is left and the write queue is empty and the receiver is done.
//
// Placement (ispdc23, Section III-B) decides the offset of a chunk:
//   append       the next free block (the paper's own way, and the default)
//   interleaved  received: base + S (t_id + n_passes t_count), equation 2 as its prose means it; S is the buffer size
//   contiguous   received: each writer a region of recv_total / t_count, equation 1; it waits for data of that region
// In the latter two local data lies first, end to end, and `base` is where it ends.
#include <algorithm>

#include "base/trace.hpp"
#include "engine/internal.hpp"
#include "format/names.hpp"
#include "format/part.hpp"

namespace cairn {

using namespace engine;

namespace {

// The part's sources as local data and as chunks to ask for, round robin over followers (by region when contiguous).
void lay_out(Attempt& attempt, PartState& part, NodeIndex self, const FlushSettings& settings, std::uint64_t buffer_bytes) {
    const std::uint64_t block = attempt.lead.block_bytes;
    std::uint64_t bytes = 0;
    for (const NodeSources& node : part.plan.nodes)
        for (const Source& source : node.sources) bytes += source.length;
    part.chunk_bytes = chunk_bytes(buffer_bytes, block, bytes, part.writers);
    std::vector<std::deque<std::pair<NodeIndex, PendingChunk>>> queues;
    std::uint64_t received = 0;
    for (const NodeSources& node : part.plan.nodes) {
        if (node.node == self) {
            for (const Source& source : node.sources) {
                if (source.length == 0) continue;
                part.local.push_back(source);
                part.local_end += round_up(source.length, block);
            }
            continue;
        }
        queues.emplace_back();
        for (const Source& source : node.sources)
            for (std::uint64_t at = 0; at < source.length;) {
                PendingChunk chunk;
                chunk.received = true;
                chunk.source = {source.rank, source.image_offset + at, std::min(part.chunk_bytes, source.length - at)};
                chunk.position = received;
                received += round_up(chunk.source.length, block);
                at += chunk.source.length;
                queues.back().emplace_back(node.node, std::move(chunk));
            }
    }
    const bool contiguous = settings.placement == Placement::contiguous;
    if (contiguous) {
        std::vector<std::deque<std::pair<NodeIndex, PendingChunk>>> regions(part.writers);
        for (auto& queue : queues)
            for (auto& entry : queue) {
                entry.second.region = static_cast<std::uint32_t>(std::min<std::uint64_t>(part.writers - 1, entry.second.position * part.writers / received));
                regions[entry.second.region].push_back(std::move(entry));
            }
        queues = std::move(regions);
    }
    part.write_queue.resize(contiguous ? part.writers : 1);
    part.passes.assign(part.writers, 0);
    for (bool any = true; any;) {
        any = false;
        for (auto& queue : queues) {
            if (queue.empty()) continue;
            part.remote.push_back(std::move(queue.front()));
            queue.pop_front();
            any = true;
        }
    }
}

// Algorithm 4: the next chunk of local data, first in first out.
std::optional<PendingChunk> shared_read(Attempt& attempt, PartState& part) {
    if (part.local_at == part.local.size()) return std::nullopt;
    const Source& source = part.local[part.local_at];
    PendingChunk chunk;
    chunk.source = {source.rank, source.image_offset + part.local_offset, std::min(part.chunk_bytes, source.length - part.local_offset)};
    chunk.position = part.local_position;
    part.local_position += round_up(chunk.source.length, attempt.lead.block_bytes);
    part.local_offset += chunk.source.length;
    if (part.local_offset == source.length) {
        ++part.local_at;
        part.local_offset = 0;
    }
    return chunk;
}

// Algorithm 5, lines 10 to 12: where this chunk goes.
std::uint64_t place(const Attempt& attempt, PartState& part, const PendingChunk& chunk, std::uint32_t writer, const FlushSettings& settings) {
    const std::uint64_t block = attempt.lead.block_bytes;
    std::uint64_t offset = 0;
    if (settings.placement == Placement::append) {
        offset = part.append_offset;
        part.append_offset += round_up(chunk.source.length, block);
    } else if (!chunk.received) {
        offset = chunk.position;
    } else if (settings.placement == Placement::contiguous) {
        offset = part.local_end + chunk.position;
    } else {
        offset = part.local_end + part.chunk_bytes * (writer + part.passes[writer]++ * part.writers);
    }
    part.data_bytes = std::max(part.data_bytes, offset + round_up(chunk.source.length, block));
    return offset;
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
    OpenOptions options;
    options.mode = OpenMode::create;
    options.direct = settings.direct;
    Result<FilePtr> file = co_await world.storage.open(part.path, options, world.clock.in(settings.io_wait));
    if (!file.ok()) {
        attempt.fail(std::move(file).status().within("creating a part"));
        co_return;
    }
    part.file = std::move(file).value();
    Gate workers(world.clock);
    workers.spawn(receive(attempt, part));
    for (std::uint32_t writer = 0; writer < part.writers; ++writer) workers.spawn(write_loop(attempt, part, writer));
    co_await workers.close();
    for (auto& queue : part.write_queue) queue.clear();  // of a failed attempt: its buffers are credits again
    Status status(Code::cancelled, "attempt over");
    if (!attempt.over()) status = co_await finish_part(attempt, part);
    part.file.reset();
    if (!status.ok()) {
        attempt.fail(std::move(status).within(part.path));
        // Never reported, so no manifest can name it: safe to remove. A part that was reported is left to the coordinator (commit.cpp).
        const Status ignored = co_await world.storage.remove(part.path, world.clock.in(settings.io_wait));
        (void)ignored;
    }
    attempt.work.notify_all();
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
            chunk = shared_read(attempt, part);
        }
        if (!chunk) {
            if (part.receiver_done) co_return;
            co_await attempt.work.wait();
            continue;
        }
        const Nanos begun = world.clock.now();
        HeldImage* held = nullptr;
        if (!chunk->received) {
            const auto found = flight->images.find(chunk->source.rank);
            if (found == flight->images.end()) {
                attempt.fail(not_found("the image of rank " + std::to_string(chunk->source.rank) + " has left scratch"));
                co_return;
            }
            held = &found->second;
            ++held->users;
            chunk->data = held->image.data.part(chunk->source.image_offset, chunk->source.length);
            Result<std::vector<std::uint64_t>> checksums = co_await checksums_of(flight, chunk->source);
            if (checksums.ok()) chunk->checksums = std::move(checksums).value();
            else attempt.fail(std::move(checksums).status());
        }
        Status status;
        const std::uint64_t offset = place(attempt, part, *chunk, writer, settings);
        const Nanos checksummed = world.clock.now();
        if (!attempt.over()) {
            Slice data = chunk->data;
            status = co_await write_all(world.storage, part.file, offset, std::move(data), world.clock.in(settings.io_wait));
        }
        if (held) --held->users;
        chunk->data = {};  // the buffer goes back to FQ
        if (!status.ok()) attempt.fail(std::move(status));
        if (attempt.over()) co_return;
        const std::uint64_t length = chunk->source.length;
        trace_chunk(part, writer, *chunk, begun, checksummed, world.clock.now());
        part.extents.push_back({chunk->source.rank, chunk->source.image_offset, length, offset, std::move(chunk->checksums)});
        WriterTimes& times = attempt.times[writer % attempt.times.size()];
        (chunk->received ? times.received_s : times.local_s) += static_cast<double>(world.clock.now() - begun) / second;
        (chunk->received ? times.received_bytes : times.local_bytes) += length;
        attempt.written_bytes += length;
        counters.written_bytes += length;
        flight->state.node_written_bytes += length;
    }
}

// Footer after all data, then one fsync for both: nothing refers to this part before the report, and the report comes after the fsync.
Task<Status> Node::Impl::finish_part(Attempt& attempt, PartState& part) {
    const TraceSpan span(world.clock, "leader", "footer and fsync of part " + std::to_string(part.plan.part));
    const Flight& flight = *attempt.flight;
    Footer footer;
    footer.key = flight.key;
    footer.attempt = attempt.lead.attempt;
    footer.attempt_id = attempt.lead.attempt_id;
    footer.part = part.plan.part;
    footer.parts = attempt.lead.parts_total;
    footer.ranks = attempt.lead.ranks_total;
    footer.block_bytes = attempt.lead.block_bytes;
    footer.data_bytes = part.data_bytes;
    std::set<Rank> ranks;
    for (const NodeSources& node : part.plan.nodes)
        for (const Source& source : node.sources) ranks.insert(source.rank);
    for (Rank rank : ranks)
        if (const ImageInfo* info = attempt.image(rank)) footer.images.push_back(*info);
    std::sort(part.extents.begin(), part.extents.end(), [](const Extent& a, const Extent& b) { return a.part_offset < b.part_offset; });
    footer.extents = std::move(part.extents);
    Bytes tail = encode_footer(footer);
    PartInfo info;
    info.file = part_file_name(part.plan.part, attempt.lead.parts_total, attempt.lead.attempt_id);
    info.bytes = part.data_bytes + tail.size();
    info.footer_offset = part.data_bytes;
    info.footer_checksum = footer_checksum(tail);
    info.ranks.assign(ranks.begin(), ranks.end());
    Slice data = Slice::of(std::move(tail));
    Status wrote = co_await write_all(world.storage, part.file, part.data_bytes, std::move(data), world.clock.in(settings.io_wait));
    if (!wrote.ok()) co_return wrote;
    Status synced = co_await world.storage.fsync(part.file, world.clock.in(settings.io_wait));
    if (!synced.ok()) co_return synced;
    Result<std::uint64_t> size = co_await world.storage.file_bytes(part.file, world.clock.in(settings.io_wait));
    if (!size.ok()) co_return std::move(size).status();
    if (*size != info.bytes) co_return Status(Code::io_error, "is " + std::to_string(*size) + " bytes, not the " + std::to_string(info.bytes) + " written");
    Status named = co_await world.storage.fsync_directory(layout.version(flight.key), world.clock.in(settings.io_wait));
    if (!named.ok()) co_return named;
    part.done = std::move(info);
    co_return Status();
}

}  // namespace cairn
