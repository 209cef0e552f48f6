// One run after the other, of whatever version: read, decoded with what it needs of a base, verified, delivered.
#include "copies/reading.hpp"

#include <algorithm>

#include "catalog/roots.hpp"
#include "codec/codec.hpp"
#include "copies/bases.hpp"
#include "copies/landing.hpp"
#include "copies/run_pieces.hpp"
#include "copies/shared_bases.hpp"
#include "copies/shared_reads.hpp"
#include "model/checksum_units.hpp"

namespace cairn {

namespace {

constexpr std::size_t buffers_lost_max = 16;  // of one restore or verification

// Of bytes of a piece, from there on in it.
Units units_of(const Reading& r, const PartRead& read, const StoredPiece& piece, std::uint64_t at, std::uint64_t length) {
    return {r.of.version.footers[read.footer].block_bytes, piece.image_offset + at, cuts_within(piece.cuts, piece.image_offset + at, length)};
}

// The checksums of so many units of a piece, from there on in it.
std::span<const std::uint64_t> expected_of(const StoredPiece& piece, std::uint64_t block_bytes, std::uint64_t at, std::size_t count) {
    const std::uint64_t first = unit_count(block_bytes, piece.image_offset, piece.cuts, at);
    return {piece.checksums.data() + first, count};
}

// The units of a piece that are not what they should be, of `data` from there on in it.
Task<std::vector<ImageRange>> damaged_units(Reading& r, const PartRead& read, const StoredPiece& piece, std::uint64_t at, Slice data) {
    const Units units = units_of(r, read, piece, at, data.length);
    const std::vector<std::uint64_t> ends = unit_ends(units, data.length), made = co_await r.of.world.cpu.checksums(std::move(data), units);
    co_return differing_units(made, expected_of(piece, units.block_bytes, at, made.size()), ends, at);
}

// The bytes of one piece, as far as they were read, unit by unit.
Task<Status> check_piece(Reading& r, const PartRead& read, const StoredPiece& piece, Slice raw, std::uint64_t raw_offset) {
    const std::uint64_t begin = std::max(piece.at, raw_offset), end = std::min(piece.at + piece.length, raw_offset + raw.length);
    Slice data = raw.part(begin - raw_offset, end - begin);
    const std::vector<ImageRange> damaged = co_await damaged_units(r, read, piece, begin - piece.at, data);
    for (const ImageRange& unit : damaged) CO_TRY(r.bad(read, piece, unit, corrupt("checksum differs")));
    if (damaged.empty()) co_return r.deliver(piece, begin - piece.at, std::move(data));
    co_return Status();
}

// What keeps the wanted pieces of a read from being had at all.
Status tell_all(Reading& r, const PartRead& read, const Status& why) {
    for (const std::uint32_t index : read.pieces) {
        const StoredPiece& piece = run_of(r.of.version, read).pieces[index];
        const ImageRange part = image_run_of(r.of.version, read, index);
        TRY(r.bad(read, piece, {part.offset - piece.image_offset, part.length}, Status(why)));
    }
    return {};
}

Status encoded_differ() { return corrupt("checksum of the encoded bytes differs"); }

// Whoever has room reads and decodes, each in a wait, and hands out. Who needs a base has its reads to wait for as well.
Nanos patience_of(const ReadSource& of) { return (of.version.bases.empty() ? 3 : 12) * of.settings.io_wait; }

// All or none: who waits for the second while it has the first may wait for ever.
struct EncodedMemory {
    Slice stored, raw;
    Slice older;  // raw bytes of the base
};
Task<Result<EncodedMemory>> take_memory(Reading& r, const PartRead& read, const BaseReads& base, BufferPtr buffer) {
    const std::uint64_t raw = raw_bytes(run_of(r.of.version, read));
    const std::uint64_t of_base = base.from ? round_up(raw, 4096) : 0, of_stored = read.length <= buffer->size() ? 0 : round_up(read.length, 4096);
    Result<EncodedRuns::Room> room = co_await r.of.encoded.take(round_up(raw, 4096) + of_base + of_stored, patience_of(r.of));
    if (!room.ok()) co_return std::move(room).status();
    EncodedMemory memory;
    memory.stored = Slice{std::move(buffer), 0, read.length};
    if (of_base != 0) {
        CO_TRY_ASSIGN(memory.older, r.of.encoded.allocate(r.of.encoded.split(*room, of_base), raw));
    }
    if (of_stored != 0) {
        CO_TRY_ASSIGN(memory.stored, r.of.encoded.allocate(r.of.encoded.split(*room, of_stored), read.length));
    }
    CO_TRY_ASSIGN(memory.raw, r.of.encoded.allocate(std::move(room).value(), raw));
    co_return memory;
}

// The buffer, where there is one of that size.
Task<Result<Slice>> memory_of(Reading& r, std::uint64_t bytes, BufferPtr buffer) {
    if (buffer && bytes <= buffer->size()) co_return Slice{std::move(buffer), 0, bytes};
    Result<EncodedRuns::Room> room = co_await r.of.encoded.take(round_up(bytes, 4096), patience_of(r.of));
    if (!room.ok()) co_return std::move(room).status();
    co_return r.of.encoded.allocate(*room, bytes);
}

std::string name_of(const Reading& r, const PartRead& read) {
    return r.of.version.manifest.parts[r.of.version.parts[read.footer]].file + ": run at " + std::to_string(run_of(r.of.version, read).part_offset);
}

// Says something of the run; all else is this machine's trouble.
bool is_of_the_run(const Status& status) { return status.code() == Code::corrupt || status.code() == Code::unsupported; }

// What was stored of a run that is encoded, into raw bytes.
Task<RunOutcome> decode(Reading& r, const PartRead& read, EncodedMemory memory) {
    const StoredRun& run = run_of(r.of.version, read);
    const Footer& footer = r.of.version.footers[read.footer];
    const CodecName& name = footer.codecs[run.codec - 1];
    const std::optional<Codec> codec = codec_of(name.name, name.parameters);
    if (!codec) co_return RunOutcome{{Code::unsupported, "it is encoded with " + name.name + ", which this Cairn does not know: read it with a newer one"}, true};
    if (run.base != 0 && !memory.older.buffer)
        co_return RunOutcome{{Code::unsupported, "it is encoded against a run of version " + std::to_string(footer.bases[run.base - 1].of.version) + ", which this Cairn can not do: read it with a newer one"}, true};
    const std::vector<std::uint64_t> made = co_await r.of.world.cpu.checksums(memory.stored, memory.stored.length);
    if (made.front() != run.checksum) co_return RunOutcome{encoded_differ(), true};
    const Nanos deadline = r.of.world.clock.in(r.of.settings.io_wait);
    Status status = co_await r.of.world.cpu.decode(*codec, std::move(memory.stored), std::move(memory.older), std::move(memory.raw), deadline);
    const bool is_told = is_of_the_run(status);
    co_return RunOutcome{std::move(status), is_told};
}

// What is stored of an encoded run, and no more: one whose codec this Cairn does not know is compared like any other.
Task<RunOutcome> check_own_stored(Reading& r, const PartRead& read, BufferPtr buffer) {
    const StoredRun& run = run_of(r.of.version, read);
    Result<Slice> stored = co_await memory_of(r, read.length, std::move(buffer));
    if (!stored.ok()) co_return RunOutcome{std::move(stored).status(), false};
    const Nanos deadline = r.of.world.clock.in(r.of.settings.io_wait);
    Status status = co_await read_all(r.of.world.storage, r.of.files.at(read.footer), run.part_offset, *stored, deadline);
    if (!status.ok()) co_return RunOutcome{std::move(status), true};
    const std::vector<std::uint64_t> made = co_await r.of.world.cpu.checksums(*stored, stored->length);
    if (made.front() != run.checksum) status = encoded_differ();
    co_return RunOutcome{std::move(status), true};
}

// What is stored of its base.
Task<RunOutcome> check_base(Reading& r, const PartRead& read, BufferPtr buffer) {
    Result<BaseReads> base = plan_base(r, read, buffer->size());
    if (!base.ok()) co_return RunOutcome{std::move(base).status(), true};
    if (!base->from) co_return RunOutcome{};
    RunOutcome older = co_await read_base(r, read, std::move(base).value(), std::move(buffer), std::nullopt);
    co_return older;
}

// A run of a base is looked at once, however many need it.
Task<Status> check_stored(Reading& r, const PartRead& read, BufferPtr buffer) {
    const auto known = r.of.stored.find({read.footer, read.run});
    RunOutcome found;
    if (known != r.of.stored.end()) {
        found = {Status(known->second), true};
    } else {
        found = co_await check_own_stored(r, read, buffer);
        if (r.of.base != 0 && (found.status.ok() || found.is_of_the_run)) r.of.stored.emplace(std::pair(read.footer, read.run), found.status);
    }
    if (found.status.ok() && r.of.base == 0) found = co_await check_base(r, read, std::move(buffer));
    if (!found.status.ok()) co_return found.is_of_the_run ? tell_all(r, read, found.status) : std::move(found.status).within(name_of(r, read));
    for (const std::uint32_t index : read.pieces) r.stored_is_right(image_run_of(r.of.version, read, index).length);
    co_return Status();
}

// What it needs of its base, then its own bytes, in one buffer after the other: as they were stored, decoded.
Task<RunOutcome> fill(Reading& r, const PartRead& read, BaseReads base, BufferPtr buffer, EncodedMemory memory) {
    RunOutcome made;
    if (base.from) made = co_await read_base(r, read, std::move(base), std::move(buffer), memory.older);
    if (!made.status.ok()) co_return made;
    const Nanos deadline = r.of.world.clock.in(r.of.settings.io_wait);
    made.status = co_await read_all(r.of.world.storage, r.of.files.at(read.footer), run_of(r.of.version, read).part_offset, memory.stored, deadline);
    made.is_of_the_run = !made.status.ok();
    if (made.status.ok()) made = co_await decode(r, read, std::move(memory));
    co_return made;
}

// Nothing: what is wrong with the run was told, and the reading goes on.
Task<Result<std::optional<Slice>>> decoded(Reading& r, const PartRead& read, BufferPtr buffer) {
    const std::string name = name_of(r, read);
    Result<BaseReads> base = plan_base(r, read, buffer->size());
    if (!base.ok()) {
        CO_TRY(tell_all(r, read, base.status()));
        co_return std::optional<Slice>();
    }
    Result<EncodedMemory> memory = co_await take_memory(r, read, *base, buffer);
    if (!memory.ok()) co_return std::move(memory).status().within(name);
    Slice raw = memory->raw;
    RunOutcome made = co_await fill(r, read, std::move(base).value(), std::move(buffer), std::move(memory).value());
    if (made.status.ok()) co_return std::optional<Slice>(std::move(raw));
    if (!made.is_of_the_run) co_return std::move(made.status).within(name);
    CO_TRY(tell_all(r, read, made.status));
    co_return std::optional<Slice>();
}

// Those of a base are shared by the runs that need them.
Task<Result<std::optional<Slice>>> raw_of(Reading& r, const PartRead& read, BufferPtr buffer) {
    const EncodedRuns::Which which{read.footer, read.run, r.of.base};
    Slice kept;
    if (r.of.base == 0) kept = r.of.encoded.take_kept(which);
    else kept = co_await r.of.encoded.share(which, patience_of(r.of));
    if (kept.buffer) co_return std::optional<Slice>(std::move(kept));
    Result<std::optional<Slice>> made = co_await decoded(r, read, std::move(buffer));
    if (r.of.base != 0) r.of.encoded.shared(which, made.ok() && *made ? **made : Slice());
    co_return made;
}

using Claim = const SharedRuns::Shared*;  // of a run that other ranks of the node have from here; null: none

Task<Status> read_encoded(Reading& r, const PartRead& read, BufferPtr buffer, Claim claim) {
    if (r.stored_is_right) {
        Status checked = co_await check_stored(r, read, std::move(buffer));
        co_return checked;
    }
    Result<std::optional<Slice>> raw = co_await raw_of(r, read, std::move(buffer));
    if (!raw.ok()) co_return std::move(raw).status();
    if (!*raw) co_return Status();
    if (claim) co_await r.of.encoded.node()->give(*claim, **raw);
    const StoredRun& run = run_of(r.of.version, read);
    for (const std::uint32_t index : read.pieces) CO_TRY(co_await check_piece(r, read, run.pieces[index], **raw, 0));
    if (r.of.base == 0 && read.is_wanted_again) r.of.encoded.keep({read.footer, read.run}, {std::move(**raw)});
    co_return Status();
}

// Stored as it is. What is kept must not lie in the reader's buffer.
Task<Status> read_plain(Reading& r, const PartRead& read, BufferPtr buffer, Claim claim) {
    const StoredRun& run = run_of(r.of.version, read);
    const EncodedRuns::Which which{read.footer, read.run};
    const bool is_whole = r.of.base == 0 && run.pieces.size() > 1 && read.length == run.stored_bytes, is_kept = is_whole && read.is_wanted_again;
    Slice into;
    if (is_whole) into = r.of.encoded.take_kept(which);
    if (!into.buffer) {
        if (is_kept) buffer = nullptr;
        Result<Slice> memory = co_await memory_of(r, read.length, std::move(buffer));
        if (!memory.ok()) co_return std::move(memory).status().within(name_of(r, read));
        into = std::move(memory).value();
        const Nanos deadline = r.of.world.clock.in(r.of.settings.io_wait);
        const Status status = co_await read_all(r.of.world.storage, r.of.files.at(read.footer), run.part_offset + read.offset, into, deadline);
        if (!status.ok()) co_return tell_all(r, read, status);
        if (claim) co_await r.of.encoded.node()->give(*claim, into);
    }
    for (const std::uint32_t index : read.pieces) CO_TRY(co_await check_piece(r, read, run.pieces[index], into, read.offset));
    if (is_kept) r.of.encoded.keep(which, {std::move(into)});
    co_return Status();
}

// Straight to where it goes. Nothing: not all of it has memory of its own, or this storage can not.
Task<std::optional<Status>> read_straight(Reading& r, const PartRead& read) {
    const StoredRun& run = run_of(r.of.version, read);
    if (!r.straight || r.of.settings.direct || read.is_wanted_again || read.pieces.size() != 1) co_return std::nullopt;
    const StoredPiece& piece = run.pieces[read.pieces.front()];
    if (read.offset < piece.at || read.offset + read.length > piece.at + piece.length) co_return std::nullopt;
    const std::uint64_t at = read.offset - piece.at;
    const Units units = units_of(r, read, piece, at, read.length);
    const std::vector<std::uint64_t> ends = unit_ends(units, read.length);
    std::optional<std::vector<Destination>> into = destinations_of(*r.straight, piece.rank, piece.image_offset + at, ends);
    if (!into) co_return std::nullopt;
    const Nanos deadline = r.of.world.clock.in(r.of.settings.io_wait);
    const Result<std::vector<std::uint64_t>> made =
        co_await r.of.world.storage.read_checksummed(r.of.files.at(read.footer), run.part_offset + read.offset, read.length, units, std::move(*into), deadline);
    if (made.code() == Code::unsupported) co_return std::nullopt;
    if (!made.ok()) co_return tell_all(r, read, made.status());
    const std::vector<ImageRange> damaged = differing_units(*made, expected_of(piece, units.block_bytes, at, made->size()), ends, at);
    if (damaged.empty()) r.straight->landed(piece.rank, piece.image_offset + at, read.length);
    for (const ImageRange& unit : damaged) {
        Status told = r.bad(read, piece, unit, corrupt("checksum differs"));
        if (!told.ok()) co_return told;
    }
    co_return Status();
}

Task<Status> read_claimed(Reading& r, const PartRead& read, BufferPtr buffer, Claim claim) {
    const bool is_encoded = run_of(r.of.version, read).codec != 0;
    if (!is_encoded && claim == nullptr) {
        std::optional<Status> read_there = co_await read_straight(r, read);
        if (read_there) co_return std::move(*read_there);
    }
    Task<Status> reading = is_encoded ? read_encoded(r, read, std::move(buffer), claim) : read_plain(r, read, std::move(buffer), claim);
    Status status = co_await reading;
    co_return status;
}

// What another rank of the node has read. Nothing is delivered before all of it is what it should be; false: it is not, or not here.
Task<Result<bool>> deliver_right(Reading& r, const PartRead& read, const RunBytes& bytes) {
    const StoredRun& run = run_of(r.of.version, read);
    for (const std::uint32_t index : read.pieces) {
        Slice data = bytes.piece(index, run.pieces[index]);
        if (!data.buffer) co_return false;
        const std::vector<ImageRange> damaged = co_await damaged_units(r, read, run.pieces[index], 0, std::move(data));
        if (!damaged.empty()) co_return false;
    }
    for (const std::uint32_t index : read.pieces) CO_TRY(r.deliver(run.pieces[index], 0, bytes.piece(index, run.pieces[index])));
    co_return true;
}

// Raw bytes of a run of a base, all of them. Nothing: what is wrong with it was told.
Task<Result<std::optional<Slice>>> whole_run(Reading& r, const PartRead& read, BufferPtr buffer) {
    const StoredRun& run = run_of(r.of.version, read);
    if (run.codec != 0) {
        Result<std::optional<Slice>> made = co_await decoded(r, read, std::move(buffer));
        co_return made;
    }
    Result<Slice> memory = co_await memory_of(r, read.length, nullptr);
    if (!memory.ok()) co_return std::move(memory).status().within(name_of(r, read));
    const Nanos deadline = r.of.world.clock.in(r.of.settings.io_wait);
    const Status status = co_await read_all(r.of.world.storage, r.of.files.at(read.footer), run.part_offset, *memory, deadline);
    if (status.ok()) co_return std::optional<Slice>(std::move(memory).value());
    CO_TRY(tell_all(r, read, status));
    co_return std::optional<Slice>();
}

// Where it is nobody's but this rank's to read.
Task<Status> read_for_node(Reading& r, const PartRead& read, SharedRuns& node, const SharedBases::Next& next, BufferPtr buffer) {
    const StoredRun& run = run_of(r.of.version, read);
    Result<std::optional<Slice>> raw = co_await whole_run(r, read, std::move(buffer));
    if (!raw.ok()) co_return std::move(raw).status();
    if (!*raw) co_return Status();
    if (next.turn == SharedRuns::Turn::mine) co_await node.give(next.run->shared, **raw);
    for (const std::uint32_t index : read.pieces) CO_TRY(co_await check_piece(r, read, run.pieces[index], **raw, 0));
    if (next.run->wanted > 1) r.of.encoded.keep(next.run->which, {std::move(**raw)});
    co_return Status();
}

}  // namespace

Task<Status> read_base_run(Reading& r, const PartRead& read, SharedBases& shared, SharedBases::Next next, BufferPtr buffer) {
    using Turn = SharedRuns::Turn;
    if (next.turn == Turn::ready) co_await shared.take(*next.run);
    const std::optional<RunBytes> kept = r.of.encoded.kept(next.run->which);
    if (kept) {
        const Result<bool> delivered = co_await deliver_right(r, read, *kept);
        if (!delivered.ok() || *delivered) co_return delivered.status();
        r.of.encoded.drop(next.run->which);
        next.run->is_alone = true;
    }
    if (next.turn != Turn::mine) ++shared.node().counts.alone;
    Status status = co_await read_for_node(r, read, shared.node(), next, std::move(buffer));
    if (next.turn == Turn::mine) shared.node().fail(next.run->shared);  // unless it was given
    co_return status;
}

// ok, or what `bad` made of a damaged block or of a failed read.
Task<Status> read_run(Reading& r, const PartRead& read, BufferPtr buffer) { return read_claimed(r, read, std::move(buffer), nullptr); }

namespace {

Task<Result<bool>> take_from_node(Reading& r, const PartRead& read, const SharedRuns::Shared& shared, BufferPtr buffer) {
    const RunPieces pieces(run_of(r.of.version, read), read.pieces, read.is_wanted_again);
    if (read.is_wanted_again) buffer = nullptr;
    Result<Slice> memory = co_await memory_of(r, pieces.bytes, std::move(buffer));
    if (!memory.ok()) co_return std::move(memory).status().within(name_of(r, read));
    const Status taken = co_await take_pieces(*r.of.encoded.node(), shared, pieces, *memory);
    if (!taken.ok()) co_return false;
    RunBytes bytes{std::move(memory).value(), pieces.places};
    Result<bool> delivered = co_await deliver_right(r, read, bytes);
    if (read.is_wanted_again && delivered.ok() && *delivered) r.of.encoded.keep({read.footer, read.run}, std::move(bytes));
    co_return delivered;
}

Task<Status> read_next(Reading& r, SharedReads::Next next, BufferPtr buffer) {
    using Turn = SharedRuns::Turn;
    SharedRuns* const node = r.of.encoded.node();
    const PartRead& read = r.reads[next.index];
    if (next.turn == Turn::ready) {
        const Result<bool> taken = co_await take_from_node(r, read, *next.run, buffer);
        if (!taken.ok()) co_return taken.status();
        node->counts.taken += *taken ? 1 : 0;
        if (*taken) co_return Status();
    }
    const bool is_mine = next.turn == Turn::mine;
    if (next.run && !is_mine && !r.of.encoded.keeps({read.footer, read.run})) ++node->counts.alone;
    Status status = co_await read_claimed(r, read, std::move(buffer), is_mine ? next.run : nullptr);
    if (is_mine) node->fail(*next.run);  // unless it was given
    co_return status;
}

std::uint64_t reader_buffer_bytes(const Reading& r) {
    std::uint64_t bytes = std::max(part_alignment, buffer_bytes_of_bases(r.of));
    for (const PartRead& read : r.reads)
        if (run_of(r.of.version, read).codec == 0 || read.length <= r.of.settings.buffer_bytes) bytes = std::max(bytes, read.length);
    return round_up(bytes, 4096);
}

Task<void> reader(Reading& r, SharedReads& order) {
    const std::uint64_t buffer_bytes = reader_buffer_bytes(r);
    Result<BufferPtr> buffer = r.of.world.storage.allocate(buffer_bytes);
    if (!buffer.ok()) {
        r.failure = std::move(buffer).status();
        co_return;
    }
    while (r.failure.ok()) {
        const std::optional<SharedReads::Next> next = co_await order.next(r.failure);
        if (!next) co_return;
        Status status = co_await read_next(r, *next, *buffer);
        order.ended(*next);
        if (r.of.shared) r.of.shared->has_been_read({r.reads[next->index].footer, r.reads[next->index].run});
        if (!status.ok() && r.failure.ok()) r.failure = std::move(status);
        if (buffer->use_count() == 1) continue;
        // A read outlived its deadline and holds the buffer. Whoever collects damage goes on, with so much more memory and no more.
        if (++r.buffers_lost > buffers_lost_max) co_return;
        buffer = r.of.world.storage.allocate(buffer_bytes);
        if (!buffer.ok()) co_return;
    }
}

}  // namespace

Task<Status> open_files(ReadSource& of, const std::vector<PartRead>& reads) {
    for (const PartRead& read : reads) {
        if (of.files.count(read.footer)) continue;
        OpenOptions options;
        options.direct = of.settings.direct;
        const std::uint32_t part = of.version.parts[read.footer];
        const std::string path = of.layout.part(of.version.manifest, part);
        Result<FilePtr> file = co_await of.world.storage.open(path, options, of.world.clock.in(of.settings.io_wait));
        if (file.code() == Code::not_found) {
            Status missing = co_await missing_part(of.world, of.layout, of.version.manifest, part, of.world.clock.in(of.settings.io_wait));
            co_return missing;
        }
        if (!file.ok()) co_return std::move(file).status();
        of.files.emplace(read.footer, std::move(file).value());
    }
    co_return Status();
}

Task<Status> read_runs(Reading& r) {
    Status opened = co_await open_files(r.of, r.reads);
    if (!opened.ok()) co_return opened;
    Gate gate(r.of.world.clock);
    const std::size_t readers = std::min<std::size_t>(r.of.settings.readers, r.reads.size());
    share_bases(r, reader_buffer_bytes(r));
    SharedReads order(r.of, r.reads);
    for (std::size_t i = 0; i < readers; ++i) gate.spawn(reader(r, order));
    co_await gate.close();
    if (r.failure.ok() && !order.is_empty())
        co_return deadline_passed("reads of its parts did not come back, and the rest was not looked at: try again when the file system answers");
    co_return r.failure;
}

// Of the part, as people count them.
std::uint64_t block_in_part(const OpenVersion& version, const PartRead& read, const StoredPiece& piece, ImageRange unit) {
    const StoredRun& run = run_of(version, read);
    return (run.part_offset + (run.codec == 0 ? piece.at + unit.offset : 0)) / version.footers[read.footer].block_bytes;
}

std::string region_of(const OpenVersion& version, const StoredPiece& piece, ImageRange unit) {
    return region_at(version.image(piece.rank), piece.image_offset + unit.offset, unit.length);
}

std::string place_text(const OpenVersion& version, const PartRead& read, const StoredPiece& piece, ImageRange unit) {
    const std::string region = region_of(version, piece, unit);
    return version.manifest.parts[version.parts[read.footer]].file + " block " + std::to_string(block_in_part(version, read, piece, unit)) + ", rank " + std::to_string(piece.rank) +
           (region.empty() ? "" : ", region " + region);
}

}  // namespace cairn
