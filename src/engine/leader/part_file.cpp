#include "engine/leader/part_file.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "base/trace.hpp"
#include "engine/leader/stored_runs.hpp"
#include "engine/leader/tensor_file.hpp"
#include "format/limits.hpp"
#include "format/names.hpp"
#include "format/part.hpp"
#include "model/checksum_units.hpp"
#include "model/coverage.hpp"

namespace cairn::engine {

PartFile::PartFile(Common& c, BufferRing& r) : LeaderRole(c, r) {}

constexpr std::uint64_t sample_bytes = 4096;  // the smallest block_bytes

namespace {

// A part that several leaders write must never grow under their writes: some file systems then lose one of two nodes' bytes. Looked at before anybody else
// writes, since work that moves can fill a file whose sizing was lost to exactly the size it should have had; and again at the end.
Task<Status> check_sized(World& world, const PartState& part, Nanos wait) {
    Result<std::uint64_t> size = co_await world.storage.file_bytes(part.file, world.clock.in(wait));
    if (!size.ok()) co_return std::move(size).status();
    if (*size != part.plan.sized_bytes)
        co_return Status(Code::io_error, "is " + std::to_string(*size) + " bytes, not the " + std::to_string(part.plan.sized_bytes) +
                                             " it was sized to: the file system, or somebody else, changed it");
    co_return Status();
}

}  // namespace

// The coordinator made the directory before it asked for a part there.
Task<Status> PartFile::create(const Attempt& attempt, PartState& part) {
    const Job& job = *attempt.flight->job;
    NewFile asked;
    asked.root = part.root;
    asked.path = part.path;
    asked.target = part.plan.target;
    asked.bytes_max = part.plan.sized_bytes;
    asked.direct = settings.direct;
    asked.directory_made_by = "the coordinator, " + job.node_name(job.coordinator());
    const std::unique_ptr<StorageDriver> driver = common.storage_driver(job);
    const std::uint64_t bytes = part.plan.sized_bytes != 0 ? part.plan.sized_bytes / 2 : part.plan.range_bytes();
    const bool may_span = !has_owners(job.roster->layout) && part.plan.replacement == 0;  // one that takes another's place keeps to its target: the one that failed is among them all
    if (may_span && driver->spans_targets()) asked.stripe = spread(job.roster->files, static_cast<std::uint32_t>(driver->targets().size()), bytes);
    PlacedFile placed;
    Status made = co_await driver->create(std::move(asked), placed, path_wait(attempt, part));
    part.file = std::move(placed.file);
    if (!made.ok()) co_return made;
    part.root = std::move(placed.root);
    part.path = std::move(placed.path);
    co_return Status();
}

Task<Status> PartFile::open(Attempt& attempt, PartState& part) {
    Flight& flight = *attempt.flight;
    if (part.first) {
        CO_TRY(co_await create(attempt, part));
        if (part.plan.sized_bytes == 0) co_return Status();
        Status sized = co_await world.storage.resize(part.file, part.plan.sized_bytes, world.clock.in(part_wait(attempt, part)));
        if (!sized.ok()) co_return std::move(sized).within("sizing a part");
        CO_TRY(co_await check_sized(world, part, part_wait(attempt, part)));
        side(flight).opened.insert({attempt.lead.attempt_id, part.plan.part});
        tell_opened(attempt, part);
        co_return Status();
    }
    OpenOptions options;
    options.direct = settings.direct;
    options.mode = OpenMode::write;
    const Nanos give_up = world.clock.in(2 * settings.io_wait + settings.peer_wait);  // it creates and sizes
    while (!side(flight).opened.count({attempt.lead.attempt_id, part.plan.part})) {
        if (attempt.over(part)) co_return Status(Code::cancelled, "attempt over");
        part.blameless = world.clock.now() >= give_up;
        if (part.blameless)
            co_return unavailable("its first leader, " + flight.job->node_name(part.plan.first_leader()) + ", did not make it");
        co_await attempt.work.wait(give_up);
    }
    Result<FilePtr> file = co_await world.storage.open(part.path, options, world.clock.in(path_wait(attempt, part)));
    if (!file.ok()) co_return std::move(file).status().within("opening a part that several nodes write");
    part.file = std::move(file).value();
    co_return Status();
}

// To the leaders whose share is still to come; also a sign of life.
void PartFile::tell_opened(Attempt& attempt, PartState& part) {
    if (!part.first || !side(*attempt.flight).opened.count({attempt.lead.attempt_id, part.plan.part})) return;
    for (const Share& share : part.plan.shares) {
        if (share.leader == attempt.flight->job->self) continue;
        const auto gathered = part.gathered.find(share.leader);
        const bool in = gathered != part.gathered.end() && gathered->second.runs.size() == gathered->second.pieces;
        if (!in) send_to(*attempt.flight, share.leader, attempt.addresses[share.leader], message::Opened{attempt.lead.attempt_id, part.plan.part});
    }
}

void PartFile::on_opened(Flight& flight, const message::Opened& opened) {
    LeaderSide& own = side(flight);
    own.opened.insert({opened.attempt_id, opened.part});
    if (own.leading) own.leading->work.notify_all();
}

// All of this leader's data of the part are written. ok: durable, and the first leader knows.
Task<Status> PartFile::finish_share(Attempt& attempt, PartState& part) {
    if (part.equal_pages) CO_TRY(part.equal_pages->attach(part.runs));
    part.sync_begun = world.clock.now();
    attempt.storage.begin(part.sync_begun);
    const bool alone = part.first && part.plan.shares.size() == 1;
    if (!alone) {  // else one fsync does for data and footer
        const TraceSpan span(world.clock, "leader", "fsync of a share of part " + std::to_string(part.plan.part));
        Status synced = co_await world.storage.fsync(part.file, world.clock.in(sync_wait(attempt, part)));
        attempt.storage.end(world.clock.now());
        if (!synced.ok()) co_return synced;
        part.sync_ended = world.clock.now();
    }
    Status status;
    if (part.first) {
        status = co_await gather_shares(attempt, part);
        if (status.ok()) status = co_await write_footer(attempt, part);
    } else {
        status = co_await report_share(attempt, part);
    }
    part.durable = status.ok() && !part.dropped;  // dropped with another part of its target, it may be made durable yet
    if (alone) {
        part.sync_ended = world.clock.now();
        attempt.storage.end(part.sync_ended);
    }
    co_return status;
}

// The beginning of what is about to be written, unless it is all zeros.
Task<void> PartFile::keep_sample(PartState& part, Slice data, std::uint64_t offset) {
    static const std::uint64_t zeros = checksum(Bytes(sample_bytes));
    if (data.length < sample_bytes) co_return;
    const std::vector<std::uint64_t> made = co_await world.cpu.checksums(data.part(0, sample_bytes), sample_bytes);
    if (made.front() != zeros) part.sample = {offset, sample_bytes, made.front()};
}

// Of mapped memory, which may never come back: nobody waits for it, and where it is late there is no sample (sample_of).
Task<void> PartFile::keep_local_sample(std::shared_ptr<Attempt> attempt, PartState& part, HeldImage& held, Slice data, std::uint64_t offset) {
    ++held.users;
    co_await keep_sample(part, std::move(data), offset);
    --held.users;
    part.sampling = false;
    attempt->work.notify_all();
}

Task<Status> PartFile::report_share(Attempt& attempt, PartState& part) {
    const std::uint64_t block = attempt.lead.block_bytes;
    join_runs(part.runs, block);
    const std::vector<std::vector<StoredRun>> pieces = cut_for_messages(std::move(part.runs), block, settings.limits);
    const NodeIndex first = part.plan.first_leader();
    const Nanos give_up = world.clock.in(settings.version_wait);
    Nanos pause = settings.heartbeat;
    while (!attempt.over(part) && part.kept.size() < pieces.size() && world.clock.now() < give_up) {
        for (std::uint32_t i = 0; i < pieces.size(); ++i) {
            if (part.kept.count(i)) continue;
            message::ShareDone done{attempt.lead.attempt_id, part.plan.part, i, static_cast<std::uint32_t>(pieces.size()), block, pieces[i], {}, part.sample};
            if (i == 0) done.empty_ranks = part.empty_ranks;
            send_to(*attempt.flight, first, attempt.addresses[first], std::move(done));
        }
        const Nanos next = world.clock.in(pause);
        while (!attempt.over(part) && part.kept.size() < pieces.size() && world.clock.now() < next) co_await attempt.work.wait(next);
        pause = std::min(pause * 2, settings.peer_wait);
    }
    if (attempt.over(part)) co_return Status(Code::cancelled, "attempt over");
    part.blameless = part.kept.size() < pieces.size();
    if (part.blameless)
        co_return unavailable("its first leader, " + attempt.flight->job->node_name(first) + ", did not take this node's share");
    co_return Status();
}

void PartFile::on_share_done(Flight& flight, NodeIndex from, message::ShareDone done) {
    LeaderSide& own = side(flight);
    const message::ShareKept kept{done.attempt_id, done.part, done.piece};
    if (!own.leads(done.attempt_id)) {
        // That this leader is done with its parts says that it had all pieces; only its answer got lost.
        if (own.reported == done.attempt_id) send(flight, from, kept);
        return;
    }
    Attempt& attempt = *own.leading;
    PartState* part = attempt.part(done.part);
    if (!part || !part->first) return;
    PartState::Gathered& gathered = part->gathered[from];
    if (gathered.pieces == 0) gathered.pieces = done.pieces;
    if (done.piece >= gathered.pieces) return;
    if (gathered.runs.emplace(done.piece, std::move(done.runs)).second) gathered.empty_ranks.insert(gathered.empty_ranks.end(), done.empty_ranks.begin(), done.empty_ranks.end());
    gathered.sample = done.sample;
    send(flight, from, kept);
    attempt.work.notify_all();
}

void PartFile::on_share_kept(Flight& flight, const message::ShareKept& kept) {
    LeaderSide& own = side(flight);
    PartState* part = own.leads(kept.attempt_id) ? own.leading->part(kept.part) : nullptr;
    if (part && part->kept.insert(kept.piece).second) own.leading->work.notify_all();
}

// The coordinator watches all leaders, and ends the attempt when one falls silent.
Task<Status> PartFile::gather_shares(Attempt& attempt, PartState& part) {
    const auto missing = [&] {
        return std::find_if(part.plan.shares.begin(), part.plan.shares.end(), [&](const Share& share) {
            if (share.leader == attempt.flight->job->self) return false;
            const auto found = part.gathered.find(share.leader);
            return found == part.gathered.end() || found->second.runs.size() < found->second.pieces;
        });
    };
    const Nanos give_up = world.clock.in(settings.version_wait);
    while (!attempt.over(part) && missing() != part.plan.shares.end() && world.clock.now() < give_up) co_await attempt.work.wait(give_up);
    if (attempt.over(part)) co_return Status(Code::cancelled, "attempt over");
    part.blameless = missing() != part.plan.shares.end();
    if (part.blameless)
        co_return unavailable("the share of " + attempt.flight->job->node_name(missing()->leader) + " did not come");
    CO_TRY(co_await check_shares(attempt, part));
    for (auto& [leader, gathered] : part.gathered) {
        part.empty_ranks.insert(part.empty_ranks.end(), gathered.empty_ranks.begin(), gathered.empty_ranks.end());
        for (auto& [piece, runs] : gathered.runs) {
            part.runs.insert(part.runs.end(), std::make_move_iterator(runs.begin()), std::make_move_iterator(runs.end()));
            runs.clear();
        }
    }
    co_return Status();
}

namespace {

// Where something of another leader's share should be.
struct Look {
    NodeIndex leader = 0;
    message::Sample sample;
};

// A block of a piece that a hole would not do for; nothing where it would.
std::optional<message::Sample> sample_in(const StoredRun& run, const StoredPiece& piece, std::uint64_t block, std::uint64_t zeros) {
    if ((run.part_offset + piece.at) % part_alignment != 0) return std::nullopt;  // direct I/O reads from there on
    const std::vector<std::uint64_t> ends = unit_ends({block, piece.image_offset, piece.cuts}, piece.length);
    for (std::size_t i = 0; i < ends.size() && i < piece.checksums.size(); ++i) {
        const std::uint64_t at = i == 0 ? 0 : ends[i - 1], length = ends[i] - at;
        const bool is_cut = length != block && i != 0 && i + 1 != ends.size();  // zeros of each such length would be made and summed here, on the loop
        if (is_cut || (run.part_offset + piece.at + at) % part_alignment != 0) continue;
        if (piece.checksums[i] != (length == block ? zeros : checksum(Bytes(length)))) return message::Sample{run.part_offset + piece.at + at, length, piece.checksums[i]};
    }
    return std::nullopt;
}

// The sample it sent; else something that is not all zeros, as a hole would be; nothing of a share that a hole would do for. What is encoded is no zeros.
message::Sample sample_of(const PartState::Gathered& gathered, std::uint64_t block) {
    if (gathered.sample.length > 0 && gathered.sample.length <= block) return gathered.sample;
    const std::uint64_t zeros = checksum(Bytes(block));
    for (const auto& [message, runs] : gathered.runs)
        for (const StoredRun& run : runs) {
            if (run.codec != 0 && run.stored_bytes <= block) return {run.part_offset, run.stored_bytes, run.checksum};
            for (const StoredPiece& piece : run.pieces)
                if (run.codec != 0) continue;
                else if (const auto sample = sample_in(run, piece, block, zeros)) return *sample;
        }
    return {};
}

// What the readers of one check share.
struct Looks {
    World& world;
    const Attempt& attempt;
    const PartState& part;
    FilePtr file;
    Nanos io_wait;
    std::vector<Look> looks;
    std::size_t next = 0;
    Status failure;
    std::optional<NodeIndex> torn;  // whose data are not there
};

Task<Status> look_at(Looks& looks, const Look& look, Slice into) {
    CO_TRY(co_await read_all(looks.world.storage, looks.file, look.sample.part_offset, into, looks.world.clock.in(looks.io_wait)));
    const std::vector<std::uint64_t> made = co_await looks.world.cpu.checksums(into, look.sample.length);
    if (made.front() != look.sample.checksum) looks.torn = look.leader;
    co_return Status();
}

Task<void> look_around(Looks& looks, Slice room) {
    while (!looks.attempt.over(looks.part) && looks.failure.ok() && !looks.torn && looks.next < looks.looks.size()) {
        const Look& look = looks.looks[looks.next++];
        Status status = co_await look_at(looks, look, room.part(0, look.sample.length));
        if (!status.ok()) looks.failure = std::move(status);
    }
}

}  // namespace

// Reads through this leader's own descriptor, several at a time in one buffer.
Task<Status> PartFile::check_shares(Attempt& attempt, PartState& part) {
    const std::uint64_t block = attempt.lead.block_bytes;
    Looks looks{world, attempt, part, part.file, part_wait(attempt, part), {}, 0, {}, {}};
    for (const auto& [leader, gathered] : part.gathered)
        if (const message::Sample sample = sample_of(gathered, block); sample.length > 0) looks.looks.push_back({leader, sample});
    if (looks.looks.empty()) co_return Status();
    const TraceSpan span(world.clock, "leader", "a look at every share of part " + std::to_string(part.plan.part));
    Result<BufferPtr> buffer = co_await ring.take(world.clock.in(settings.version_wait));
    part.blameless = !buffer.ok();
    if (part.blameless) co_return std::move(buffer).status();
    Gate reading(world.clock);
    constexpr std::uint64_t readers_max = 16;
    const std::uint64_t readers = std::min<std::uint64_t>({readers_max, ring.buffer_bytes() / block, looks.looks.size()});
    for (std::uint64_t i = 0; i < readers; ++i) reading.spawn(look_around(looks, {*buffer, i * block, block}));
    co_await reading.close();
    CO_TRY(std::move(looks.failure).within("reading what other nodes wrote"));
    if (!looks.torn) co_return Status();
    co_return Status(Code::io_error, "what " + attempt.flight->job->node_name(*looks.torn) + " wrote and made durable is not in the file that " +
                                         attempt.flight->job->node_name(attempt.flight->job->self) +
                                         " made: the file system gave them two files of one name");
}

namespace {

// Everything but the bytes: what the footer of this part says. A piece whose image nobody told of is a programming error, told as such.
Result<Footer> make_footer(Attempt& attempt, PartState& part) {
    const message::Lead& lead = attempt.lead;
    Footer footer;
    footer.key = attempt.flight->key;
    footer.attempt = lead.attempt;
    footer.attempt_id = lead.attempt_id;
    footer.part = part.plan.number();
    footer.parts = lead.parts_total;
    footer.ranks = lead.ranks_total;
    footer.block_bytes = lead.block_bytes;
    std::set<Rank> ranks(part.empty_ranks.begin(), part.empty_ranks.end());
    join_runs(part.runs, lead.block_bytes);
    for (const StoredRun& run : part.runs) {
        footer.data_bytes = std::max(footer.data_bytes, round_up(run.part_offset + run.stored_bytes, part_alignment));
        for (const StoredPiece& piece : run.pieces) {
            ranks.insert(piece.rank);
            part.coverage += coverage(piece.rank, piece.image_offset, piece.length);
        }
    }
    if (std::any_of(part.runs.begin(), part.runs.end(), [](const StoredRun& run) { return run.codec != 0; })) footer.codecs = {{lead.codec, ""}};
    if (std::any_of(part.runs.begin(), part.runs.end(), [](const StoredRun& run) { return run.base != 0; })) footer.bases = {{{lead.base, footer.key.incarnation}, 0, 0}};
    part.needs_base = !footer.bases.empty();
    footer.runs = std::move(part.runs);
    for (Rank rank : ranks) {
        const auto image = attempt.images.find(rank);
        if (image == attempt.images.end()) return Status(Code::internal, "nothing is known of the image of rank " + std::to_string(rank));
        footer.images.push_back(image->second);
        footer.images.back().naming_bytes = 0;  // it has its room
    }
    if (part.places) {
        footer.prefix_bytes = part.places->prefix_bytes;
        footer.data_bytes = part.places->end;
    }
    Status whole = check_footer(footer);
    if (!whole.ok()) return Status(Code::internal, whole.text());
    return footer;
}

// What was made durable is the directory that holds the part, and not one of that name in a file system that was mounted over it meanwhile. Only an attempt's own directory holds
// that name; seen before and after.
Task<Status> check_in_its_directory(World& world, PartState& part, Nanos io_wait) {
    const Result<FilePtr> there = co_await world.storage.open(part.path, OpenOptions(), world.clock.in(io_wait));
    if (there.code() != Code::not_found) co_return there.status();
    part.blameless = true;
    co_return unavailable("is not in its directory any more: was another file system mounted there?");
}

}  // namespace

// Footer after all data, then one fsync: nothing refers to this part before the report, and the report comes after the fsync.
Task<Status> PartFile::write_footer(Attempt& attempt, PartState& part) {
    const TraceSpan span(world.clock, "leader", "footer and fsync of part " + std::to_string(part.plan.part));
    const Flight& flight = *attempt.flight;
    const Nanos wait = part_wait(attempt, part);
    if (part.plan.sized_bytes != 0) CO_TRY(co_await check_sized(world, part, wait));
    Result<Footer> footer = make_footer(attempt, part);
    if (!footer.ok()) co_return std::move(footer).status();
    if (part.places) CO_TRY(co_await write_tensors_header(world, part, *footer, wait));
    Bytes tail = encode_footer(*footer, part.places ? IndexPlace::beside : IndexPlace::end_of_part);
    PartInfo info;
    info.file = part_file_name(flight.job->part_name(part.plan, attempt.lead.attempt_id));
    info.footer_checksum = footer_checksum(tail);
    info.root = flight.job->root_of(part.root);
    for (const ImageInfo& image : footer->images) info.ranks.push_back(image.rank);
    if (part.places) {
        info.bytes = footer->data_bytes;
        info.index_bytes = tail.size();
        CO_TRY(co_await write_file(world.storage, part_index_file_name(part.path), std::move(tail), 0644, world.clock.in(wait)));
    } else {
        info.bytes = footer->data_bytes + tail.size();
        info.footer_offset = footer->data_bytes;
        Slice data = Slice::of(std::move(tail));
        CO_TRY(co_await write_all(world.storage, part.file, info.footer_offset, std::move(data), world.clock.in(wait)));
    }
    if (part.places || part.plan.sized_bytes > info.bytes) CO_TRY(co_await world.storage.resize(part.file, info.bytes, world.clock.in(wait)));
    CO_TRY(co_await world.storage.fsync(part.file, world.clock.in(sync_wait(attempt, part))));
    Result<std::uint64_t> size = co_await world.storage.file_bytes(part.file, world.clock.in(wait));
    if (!size.ok()) co_return std::move(size).status();
    if (*size != info.bytes) co_return Status(Code::io_error, "is " + std::to_string(*size) + " bytes, not the " + std::to_string(info.bytes) + " written");
    CO_TRY(co_await check_in_its_directory(world, part, path_wait(attempt, part)));
    CO_TRY(co_await world.storage.fsync_directory(part.path.substr(0, part.path.rfind('/')), world.clock.in(path_wait(attempt, part))));
    CO_TRY(co_await check_in_its_directory(world, part, path_wait(attempt, part)));
    part.done = std::move(info);
    co_return Status();
}

// Of an attempt that failed elsewhere: parts that were complete here, and never reported, are in no manifest and in nobody's books.
Task<void> PartFile::remove_complete(Attempt& attempt) {
    for (const auto& part : attempt.parts) {
        if (part->first && part->done) co_await remove(*part);
    }
}

Task<void> PartFile::remove(const PartState& part) {
    Status ignored = co_await world.storage.remove(part.path, world.clock.in(settings.io_wait));
    if (part.places) ignored = co_await world.storage.remove(part_index_file_name(part.path), world.clock.in(settings.io_wait));
    (void)ignored;  // the sweep after the commit will find it
}

}  // namespace cairn::engine
