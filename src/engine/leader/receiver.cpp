#include "engine/leader/receiver.hpp"

#include <algorithm>

#include "base/trace.hpp"
#include "format/limits.hpp"
#include "model/checksum_units.hpp"

namespace cairn::engine {

Receiver::Receiver(Common& c, BufferRing& r, Rooms& rooms) : LeaderRole(c, r), rooms_(rooms), next_tag_(c.world.random.next() & 0xFFFFFFFFFFFFull) {}

namespace {

constexpr int tries = 3;

PendingChunk chunk_of(const WorkList::Remote& next, const PartState& part) {
    PendingChunk chunk;
    chunk.received = true;
    chunk.source = next.piece.source;
    chunk.range = next.piece.range;
    chunk.position = next.piece.position;
    chunk.region = part.write_queue.size() == 1 ? 0 : next.queue;
    return chunk;
}

}  // namespace

// No more is asked for than will be written soon: what waits here can not be given to a faster leader.
Task<void> Receiver::receive(Attempt& attempt, PartState& part) {
    const TraceSpan span(world.clock, "receiver of part " + std::to_string(part.plan.part), "receive");
    while (!attempt.over(part) && !(attempt.finishing && !part.work.has_remote() && part.fetching == 0)) {
        const Nanos now = world.clock.now();
        const bool enough = part.ahead_bytes > 0 && part.ahead_bytes >= part.window_bytes(attempt.lead.block_bytes, now);
        if (enough || !part.work.has_remote()) {
            co_await attempt.work.wait();
            continue;
        }
        const std::uint64_t written_before = counters.written_bytes;
        Result<BufferRing::Use> buffer = co_await ring.take_to_receive(attempt.codec != Codec::none, world.clock.in(settings.io_wait));
        if (attempt.over(part)) break;
        if (!buffer.ok() && counters.written_bytes != written_before) continue;  // slow, but not stuck
        if (buffer.code() == Code::deadline && pace.holds_back()) continue;  // the application goes first, that is all
        if (buffer.code() == Code::deadline && !attempt.credits.empty()) continue;  // of this attempt, and what is asked for has a deadline of its own
        if (!buffer.ok()) {
            attempt.fail(std::move(buffer).status().within("no buffer became free (flush.buffers x flush.buffer_bytes)"));
            break;
        }
        const auto next = part.work.take_remote(part.next_chunk_bytes(attempt.lead.block_bytes, world.clock.now()));
        if (!next) continue;  // given away while we waited
        PendingChunk chunk = chunk_of(*next, part);
        chunk.use = std::move(buffer).value();
        chunk.data = {chunk.use.buffer, 0, next->piece.bytes()};
        part.ahead_bytes += next->piece.bytes();
        ++part.fetching;
        rooms_.ask_early(attempt, part, chunk, next->piece.bytes());
        if (next->piece.packed.empty()) part.gate.spawn(fetch(attempt, part, next->piece.node, std::move(chunk)));
        else part.gate.spawn(fetch_pack(attempt, part, next->piece.packed, std::move(chunk)));
    }
    part.receiver_done = true;
    attempt.work.notify_all();
}

// What arrives damaged is asked for again, a few times. So is what does not arrive, where nothing is on its way into the buffer any more: what comes late would be
// written over what came then. Of a buffer that many fill (a pack) nobody knows that.
Task<Status> Receiver::fetch_tries(Attempt& attempt, NodeIndex from, PendingChunk& chunk) {
    constexpr long own_references = 2;  // chunk.use and chunk.data
    Status status;
    for (int i = 0; i < tries && !attempt.over(); ++i) {
        status = co_await fetch_once(attempt, from, chunk);
        if (status.ok() || status.code() == Code::not_found) break;
        const bool is_let_go = chunk.use.buffer && chunk.use.buffer.use_count() == own_references;
        if (status.code() != Code::corrupt && !is_let_go) break;
    }
    co_return status;
}

void Receiver::tell_missing(Attempt& attempt, NodeIndex from, const Source& source, Status why) {
    if (attempt.over()) return;
    const std::string what = "rank " + std::to_string(source.rank) + " from " + attempt.flight->job->node_name(from);
    const bool own = from == attempt.flight->job->self;  // what is wrong with its own image, a leader lives to say
    attempt.fail(std::move(why).within(what), own ? std::nullopt : std::optional(from));
}

// Of an attempt that is over it is not queued, and its buffer is a credit again: the frame of who fetched stays until its gate looks, and the receiver may wait
// for the last buffer.
void Receiver::queue(Attempt& attempt, PartState& part, PendingChunk& chunk) {
    --part.fetching;
    if (!attempt.over(part)) {
        counters.received_bytes += chunk.data.length;
        if (chunk.codec != 0) counters.came_encoded_bytes += chunk.data.length;
        part.write_queue[chunk.region].push_back(std::move(chunk));
    }
    chunk.let_go();
    attempt.work.notify_all();
}

// One chunk into one buffer and onto the write queue.
Task<void> Receiver::fetch(Attempt& attempt, PartState& part, NodeIndex from, PendingChunk chunk) {
    chunk.may_come_encoded = attempt.lead.encode_at_follower && attempt.codec != Codec::none && chunk.source.length <= encoded_run_bytes_max;
    Status ended = co_await fetch_tries(attempt, from, chunk);
    if (!ended.ok()) tell_missing(attempt, from, chunk.source, std::move(ended));
    queue(attempt, part, chunk);
}

struct Receiver::PackFetch {
    Attempt& attempt;
    const Pack& pack;
    PendingChunk& chunk;
    std::size_t next = 0;
    std::optional<std::size_t> missing = std::nullopt;  // one that could not be had, and why
    Status why = {};
};

void keep_piece(PendingChunk& pack, StoredPiece& piece, PendingChunk one) {
    piece.checksums = std::move(one.checksums);
    piece.cuts = std::move(one.cuts);
    for (NumberArray& array : one.arrays) {
        array.offset += piece.at;
        pack.arrays.push_back(array);
    }
}

// One after the other of a pack, beside others who do the same.
Task<void> Receiver::fetch_next(PackFetch& fetch) {
    while (!fetch.attempt.over() && !fetch.missing && fetch.next < fetch.pack.size()) {
        const std::size_t index = fetch.next++;
        StoredPiece& piece = fetch.chunk.packed[index];
        if (!piece.checksums.empty()) continue;
        PendingChunk one;
        one.source = fetch.pack[index].source;
        one.data = fetch.chunk.data.part(piece.at, piece.length);
        Status got = co_await fetch_tries(fetch.attempt, fetch.pack[index].node, one);
        if (got.ok()) keep_piece(fetch.chunk, piece, std::move(one));
        else if (!fetch.missing) fetch.missing = index, fetch.why = std::move(got);
    }
}

// What could not be had is asked for again, in another buffer.
Task<void> Receiver::fetch_pack(Attempt& attempt, PartState& part, Pack pack, PendingChunk chunk) {
    constexpr std::size_t at_a_time = 16;
    std::uint64_t at = 0;
    for (const NodeSource& each : pack) {
        chunk.packed.push_back({each.source.rank, each.source.image_offset, each.source.length, at, {}, {}});
        at += each.source.length;
    }
    for (int left = tries; left > 0 && !attempt.over(); --left) {
        PackFetch fetch{attempt, pack, chunk};
        Gate gate(world.clock);
        for (std::size_t i = 0; i < std::min(at_a_time, pack.size()); ++i) gate.spawn(fetch_next(fetch));
        co_await gate.close();
        if (!fetch.missing) break;
        const bool may_come = left > 1 && fetch.why.code() != Code::not_found && fetch.why.code() != Code::corrupt;
        Status taken = fetch.why;
        if (may_come) taken = co_await take_another(attempt, chunk);
        if (!taken.ok()) tell_missing(attempt, pack[*fetch.missing].node, pack[*fetch.missing].source, std::move(fetch.why));
    }
    queue(attempt, part, chunk);
}

// What is still on its way comes into the buffer that the chunk had, which is a credit again when that is over. What of it is there is not asked for again: it may have been there once only.
Task<Status> Receiver::take_another(Attempt& attempt, PendingChunk& chunk) {
    const Nanos deadline = world.clock.in(settings.io_wait);
    Result<BufferRing::Use> buffer = co_await ring.take_to_receive(attempt.codec != Codec::none, deadline);
    if (!buffer.ok()) co_return std::move(buffer).status();
    const Slice data{buffer->buffer, 0, chunk.data.length};
    for (const StoredPiece& piece : chunk.packed) {
        if (piece.checksums.empty()) continue;
        Slice there = chunk.data.part(piece.at, piece.length), into = data.part(piece.at, piece.length);
        const Result<Encoded> copied = co_await world.cpu.encode(Coding(Codec::none), std::move(there), BaseBytes(), nothing_known, std::move(into), deadline);
        if (!copied.ok()) co_return copied.status();
    }
    chunk.data = data;
    chunk.use = std::move(buffer).value();
    co_return Status();
}

// Checksums that came with a chunk's bytes, once the bytes have proved to be those; corrupt: they are not.
Task<Status> Receiver::keep_checksums(Attempt& attempt, PendingChunk& chunk, UnitChecksums told) {
    const std::uint64_t block = attempt.lead.block_bytes, offset = chunk.source.image_offset;
    if (!cuts_valid(told.cuts, offset, chunk.source.length, block)) co_return corrupt("its units can not be cut so");
    const std::vector<std::uint64_t> made = co_await world.cpu.checksums(chunk.data, {block, offset, told.cuts});
    if (made != told.checksums) co_return corrupt("checksum differs");
    chunk.checksums = std::move(told.checksums);
    chunk.cuts = std::move(told.cuts);
    co_return Status();
}

// What came under a tag, `bytes` long, with its answer.
Task<Status> Receiver::keep_received(Attempt& attempt, PendingChunk& chunk, message::Chunk answer, std::uint64_t bytes) {
    const std::string what = "image bytes " + std::to_string(chunk.source.image_offset) + "+" + std::to_string(chunk.source.length);
    if (answer.stored_bytes != 0) {
        Status kept = co_await keep_encoded(attempt, chunk, std::move(answer), bytes);
        co_return std::move(kept).within(what);
    }
    if (bytes != chunk.source.length) co_return corrupt("a payload of another length than asked for");
    if (are_sound(answer.arrays, bytes)) chunk.arrays = std::move(answer.arrays);  // else it is encoded without: a wrong word of it costs room, and no bit
    UnitChecksums told{std::move(answer.checksums), std::move(answer.cuts)};
    Status same = co_await keep_checksums(attempt, chunk, std::move(told));
    co_return same.ok() ? same : corrupt(what + ": checksum differs after the network");
}

// The checksums of its raw bytes are the follower's word, as those of a leader's own data are: both are compared by whoever decodes it.
Task<Status> Receiver::keep_encoded(Attempt& attempt, PendingChunk& chunk, message::Chunk answer, std::uint64_t bytes) {
    const std::uint64_t block = attempt.lead.block_bytes, offset = chunk.source.image_offset, length = chunk.source.length;
    if (!chunk.may_come_encoded || answer.stored_bytes >= length) co_return corrupt("it came encoded, and longer than it may be or not asked for so");
    if (answer.needs_base && attempt.lead.base == 0) co_return corrupt("it came encoded as what changed since a version that was not asked for");
    if (bytes != answer.stored_bytes) co_return corrupt("a payload of another length than told");
    if (!cuts_valid(answer.cuts, offset, length, block)) co_return corrupt("its units can not be cut so");
    if (answer.checksums.size() != unit_count(block, offset, answer.cuts, length)) co_return corrupt("it has not a checksum for each unit");
    Slice stored = chunk.data.part(0, bytes);
    const std::vector<std::uint64_t> made = co_await world.cpu.checksums(stored, bytes);
    if (made.size() != 1 || made.front() != answer.stored_checksum) co_return corrupt("checksum differs after the network, encoded as it came");
    chunk.data = std::move(stored);
    chunk.codec = 1;
    chunk.checksum = answer.stored_checksum;
    chunk.needs_base = answer.needs_base;
    chunk.checksums = std::move(answer.checksums);
    chunk.cuts = std::move(answer.cuts);
    co_return Status();
}

// An image of this node.
Task<Status> Receiver::fetch_own(Attempt& attempt, PendingChunk& chunk) {
    const HeldImagesPtr images = images_of(attempt.flight);
    const auto found = images->find(chunk.source.rank);
    if (found == images->end()) co_return not_found("the image has left scratch");
    HeldImage& held = found->second;
    const std::function<bool()> over = [&attempt] { return attempt.over(); };
    ++held.users;
    const Pace::Pass pass = co_await pace.admit(Pace::Step::gather, chunk.source.length, over);
    Result<HeldBytes> made = co_await common.reads.bytes_of(images, chunk.source, WantedFor::sending, over);
    Status status = made.status();
    if (status.code() == Code::not_found && is_used_up(held, chunk.source)) tell_used_up(attempt, status);
    if (status.ok()) {
        const Result<Encoded> copied = co_await world.cpu.encode(Coding(Codec::none), std::move(made->data), BaseBytes(), nothing_known, chunk.data, world.clock.in(settings.io_wait));
        status = copied.status();
        if (status.ok()) status = check_not_lost(held.image);
    }
    --held.users;
    if (!status.ok()) co_return status;
    Status same = co_await keep_checksums(attempt, chunk, std::move(made->sums));
    co_return same.ok() ? same : corrupt("bytes of its image differ after they were copied");
}

Task<Status> Receiver::fetch_once(Attempt& attempt, NodeIndex from, PendingChunk& chunk) {
    if (from == attempt.flight->job->self) {
        Status own = co_await fetch_own(attempt, chunk);
        co_return own;
    }
    const std::function<bool()> over = [&attempt] { return attempt.over(); };
    Pace::Pass pass = co_await pace.admit(Pace::Step::fetch, chunk.source.length, over);
    if (attempt.over()) co_return Status(Code::cancelled, "attempt over");
    const std::uint64_t tag = ++next_tag_;
    if (Status posted = world.network.post_payload(tag, chunk.data); !posted.ok()) {
        attempt.fail(std::move(posted).within("posting a buffer"));  // this node's trouble: no other is lost
        co_return Status(Code::cancelled, "attempt over");
    }
    auto credit = std::make_shared<Credit>(world.clock);
    credit->node = from;
    credit->want = {tag, chunk.source, Reason::flush, chunk.may_come_encoded ? attempt.lead.codec : "", chunk.may_come_encoded ? attempt.lead.base : 0, chunk.may_come_encoded ? attempt.lead.keys : KeyEfforts(), wants_arrays(attempt.codec)};
    attempt.credits[tag] = credit;
    send_to(*attempt.flight, from, attempt.addresses[from], credit->want);
    const Nanos deadline = world.clock.in(settings.io_wait);
    while (!credit->answer && !attempt.over() && world.clock.now() < deadline) co_await credit->answered.wait(deadline);
    Status status;
    if (attempt.over()) status = Status(Code::cancelled, "attempt over");
    else if (!credit->answer) status = deadline_passed("no answer to a request for data");
    else if (credit->answer->code != Code::ok) status = Status(credit->answer->code, credit->answer->text);
    if (credit->answer && credit->answer->used_up && !attempt.over()) tell_used_up(attempt, status);
    // Without an answer worth waiting for, a wait of no length withdraws the posting.
    Result<std::uint64_t> got = co_await world.network.wait_payload(tag, status.ok() ? world.clock.in(settings.io_wait) : world.clock.now());
    attempt.credits.erase(tag);
    if (!status.ok()) co_return status;
    if (!got.ok()) co_return std::move(got).status();
    attempt.flight->job->heard[from] = world.clock.now();  // data is a sign of life; on some transports messages wait behind it
    pace.give_back(pass, chunk.source.length - *got);
    message::Chunk answer = std::move(*credit->answer);
    Status kept = co_await keep_received(attempt, chunk, std::move(answer), *got);
    co_return kept;
}

void Receiver::on_chunk(Flight& flight, message::Chunk chunk) {
    LeaderSide& own = side(flight);
    if (!own.leading) return;
    const auto credit = own.leading->credits.find(chunk.tag);
    if (credit == own.leading->credits.end() || credit->second->answer) return;
    credit->second->answer = std::move(chunk);
    credit->second->answered.notify_all();
}

// Every heartbeat: a follower that owes something is asked once more (which also shows that it lives) and given up after peer_wait. Its
// silence counts from when it first owed: before that nobody asked it for a word.
void Receiver::watch_followers(Attempt& attempt) {
    std::set<NodeIndex> asked;
    Job& job = *attempt.flight->job;
    for (const auto& [tag, credit] : attempt.credits) {
        if (!asked.insert(credit->node).second) continue;
        const Nanos heard = std::max(job.last_heard(credit->node), credit->since);  // credits by tag: its oldest
        if (world.clock.now() - heard > settings.peer_wait) {
            attempt.fail(unavailable(job.node_name(credit->node) + " fell silent while it sent its data"), credit->node);
            return;
        }
        // Heard since: it is where it spoke from. Else the coordinator, who told us at the start, knows better than we do.
        if (job.last_heard(credit->node) > attempt.started) attempt.addresses[credit->node] = job.addresses.of(credit->node);
        send_to(*attempt.flight, credit->node, attempt.addresses[credit->node], credit->want);
    }
}

}  // namespace cairn::engine
