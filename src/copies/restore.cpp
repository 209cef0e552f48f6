// Restore, in this order: footers of the parts that hold the rank (open_version.cpp); the rank's pieces must tile its image; reads of up to a buffer in part
// and offset order, a few in flight; every unit verified; then the sink.
//
// A run of one piece is read unit by unit, as far as it is wanted. One of several pieces is small, and is read whole: what is wanted of it is verified alone,
// so that damage elsewhere in the run costs nobody anything. So is an encoded one, of whatever size: what all of them take has a bound (encoded_runs.hpp).
#include "copies/restore.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "catalog/roots.hpp"
#include "codec/codec.hpp"
#include "copies/regions.hpp"
#include "model/checksum_units.hpp"
#include "format/manifest.hpp"
#include "format/part.hpp"

namespace cairn {

namespace {

constexpr std::size_t buffers_lost_max = 16;  // of one restore or verification

const StoredRun& run_of(const OpenVersion& version, const PartRead& read) { return version.footers[read.footer].runs[read.run]; }

// The reads of one version, as they are planned.
class ReadList {
  public:
    ReadList(const OpenVersion& version, std::uint64_t buffer_bytes) : version_(version), buffer_bytes_(buffer_bytes) {}

    void add(const PiecePlace& place, const Wanted& wanted) {
        const StoredRun& run = version_.run(place);
        const StoredPiece& piece = version_.piece(place);
        if (!wanted.touches(piece.image_offset, piece.length)) return;
        const std::uint64_t block_bytes = version_.footers[place.footer].block_bytes;
        const std::uint64_t bytes_max = std::max(block_bytes, buffer_bytes_ / block_bytes * block_bytes);
        if (run.codec != 0 || (run.pieces.size() > 1 && run.stored_bytes <= bytes_max)) return add_whole(place, run);
        for (const ImageRange& units : wanted.units_in({block_bytes, piece.image_offset, piece.cuts}, piece.length, bytes_max))
            reads_.push_back({place.footer, place.run, {place.piece}, piece.at + units.offset - piece.image_offset, units.length, false});
    }

    // Front to back in one part after the other.
    std::vector<PartRead> take() {
        const auto place = [&](const PartRead& read) { return std::pair(read.footer, run_of(version_, read).part_offset + read.offset); };
        std::sort(reads_.begin(), reads_.end(), [&](const PartRead& a, const PartRead& b) { return place(a) < place(b); });
        return std::move(reads_);
    }

  private:
    void add_whole(const PiecePlace& place, const StoredRun& run) {
        const auto [found, fresh] = whole_.emplace(std::pair(place.footer, place.run), reads_.size());
        if (fresh) reads_.push_back({place.footer, place.run, {}, 0, run.stored_bytes, false});
        reads_[found->second].pieces.push_back(place.piece);
    }

    const OpenVersion& version_;
    std::uint64_t buffer_bytes_;
    std::vector<PartRead> reads_;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> whole_;  // runs that are read whole: in reads_
};

// What the readers of one restore share.
struct Reading {
    World& world;
    RestoreSettings settings;
    const OpenVersion& version;
    std::map<std::size_t, FilePtr> files;  // by footer
    std::vector<PartRead> reads;
    std::size_t next = 0;
    Status failure;
    std::function<Status(const StoredPiece&, std::uint64_t at, Slice)> deliver;  // verified bytes, from there on in the piece
    // A unit of a piece, from there on in it, that is not what it should be; ok: go on.
    std::function<Status(const PartRead&, const StoredPiece&, ImageRange unit, Status)> bad;
    EncodedRuns& encoded;
    std::size_t buffers_lost = 0;  // to reads that did not come back
    // Where encoded runs are not decoded: their stored bytes are right, and stand for so many bytes of a piece. Null: they are decoded.
    std::function<void(std::uint64_t raw)> stored_is_right = nullptr;
};

// The bytes of one piece, as far as they were read, unit by unit.
Task<Status> check_piece(Reading& r, const PartRead& read, const StoredPiece& piece, Slice raw, std::uint64_t raw_offset) {
    const std::uint64_t block_bytes = r.version.footers[read.footer].block_bytes;
    const std::uint64_t begin = std::max(piece.at, raw_offset), end = std::min(piece.at + piece.length, raw_offset + raw.length);
    const std::uint64_t at = begin - piece.at, first = unit_count(block_bytes, piece.image_offset, piece.cuts, at);
    Slice data = raw.part(begin - raw_offset, end - begin);
    const Units units(block_bytes, piece.image_offset + at, cuts_within(piece.cuts, piece.image_offset + at, end - begin));
    const std::vector<std::uint64_t> made = co_await r.world.cpu.checksums(data, units), ends = unit_ends(units, end - begin);
    bool whole = true;
    for (std::size_t i = 0; i < made.size(); ++i) {
        if (made[i] == piece.checksums[first + i]) continue;
        whole = false;
        const std::uint64_t unit = i == 0 ? 0 : ends[i - 1];
        Status told = r.bad(read, piece, {at + unit, ends[i] - unit}, corrupt("checksum differs"));
        if (!told.ok()) co_return told;
    }
    if (whole) co_return r.deliver(piece, begin - piece.at, std::move(data));
    co_return Status();
}

// What keeps the wanted pieces of a read from being had at all.
Status tell_all(Reading& r, const PartRead& read, const Status& why) {
    for (const std::uint32_t index : read.pieces) {
        const StoredPiece& piece = run_of(r.version, read).pieces[index];
        const ImageRange part = image_run_of(r.version, read, index);
        TRY(r.bad(read, piece, {part.offset - piece.image_offset, part.length}, Status(why)));
    }
    return {};
}

Status encoded_differ() { return corrupt("checksum of the encoded bytes differs"); }

// What was stored of a run that is encoded, into raw bytes.
Task<Status> decode(Reading& r, const PartRead& read, Slice stored, Slice raw) {
    const StoredRun& run = run_of(r.version, read);
    const Footer& footer = r.version.footers[read.footer];
    const CodecName& name = footer.codecs[run.codec - 1];
    if (run.base != 0)
        co_return Status(Code::unsupported, "it is encoded against a run of version " + std::to_string(footer.bases[run.base - 1].of.version) + ", which this Cairn can not do: read it with a newer one");
    const std::optional<Codec> codec = codec_of(name.name, name.parameters);
    if (!codec) co_return Status(Code::unsupported, "it is encoded with " + name.name + ", which this Cairn does not know: read it with a newer one");
    const std::vector<std::uint64_t> made = co_await r.world.cpu.checksums(stored, stored.length);
    if (made.front() != run.checksum) co_return encoded_differ();
    Status status = co_await r.world.cpu.decode(*codec, std::move(stored), std::move(raw), r.world.clock.in(r.settings.io_wait));
    co_return status;
}

// Both or none: who waits for the second while it has the first may wait for ever.
struct EncodedMemory {
    Slice stored, raw;
};
Task<Result<EncodedMemory>> take_memory(Reading& r, const PartRead& read, BufferPtr buffer) {
    const std::uint64_t raw = raw_bytes(run_of(r.version, read));
    const bool is_in_buffer = read.length <= buffer->size();
    // Whoever has room reads and decodes, each in a wait, and hands out.
    const std::uint64_t bytes = round_up(raw, 4096) + (is_in_buffer ? 0 : round_up(read.length, 4096));
    Result<EncodedRuns::Room> room = co_await r.encoded.take(bytes, 3 * r.settings.io_wait);
    if (!room.ok()) co_return std::move(room).status();
    Result<Slice> of_raw = r.encoded.allocate(*room, raw);
    if (!of_raw.ok()) co_return std::move(of_raw).status();
    if (is_in_buffer) co_return EncodedMemory{Slice{std::move(buffer), 0, read.length}, std::move(of_raw).value()};
    Result<Slice> of_stored = r.encoded.allocate(*room, read.length);
    if (!of_stored.ok()) co_return std::move(of_stored).status();
    co_return EncodedMemory{std::move(of_stored).value(), std::move(of_raw).value()};
}

Task<Result<Slice>> memory_of_stored(Reading& r, const PartRead& read, BufferPtr buffer) {
    if (read.length <= buffer->size()) co_return Slice{std::move(buffer), 0, read.length};
    Result<EncodedRuns::Room> room = co_await r.encoded.take(round_up(read.length, 4096), 3 * r.settings.io_wait);
    if (!room.ok()) co_return std::move(room).status();
    co_return r.encoded.allocate(*room, read.length);
}

std::string name_of(const Reading& r, const PartRead& read) {
    return r.version.manifest.parts[r.version.parts[read.footer]].file + ": run at " + std::to_string(run_of(r.version, read).part_offset);
}

// What is stored of an encoded run, and no more: one whose codec this Cairn does not know is compared like any other.
Task<Status> check_stored(Reading& r, const PartRead& read, BufferPtr buffer) {
    const StoredRun& run = run_of(r.version, read);
    Result<Slice> stored = co_await memory_of_stored(r, read, std::move(buffer));
    if (!stored.ok()) co_return std::move(stored).status().within(name_of(r, read));
    const Nanos deadline = r.world.clock.in(r.settings.io_wait);
    Status status = co_await read_all(r.world.storage, r.files.at(read.footer), run.part_offset, *stored, deadline);
    if (!status.ok()) co_return tell_all(r, read, status);
    const std::vector<std::uint64_t> made = co_await r.world.cpu.checksums(*stored, stored->length);
    if (made.front() != run.checksum) co_return tell_all(r, read, encoded_differ());
    for (const std::uint32_t index : read.pieces) r.stored_is_right(image_run_of(r.version, read, index).length);
    co_return Status();
}

// Says something of the run; all else is this machine's trouble.
bool is_of_the_run(const Status& status) { return status.code() == Code::corrupt || status.code() == Code::unsupported; }

// Nothing: what is wrong with the run was told, and the reading goes on.
Task<Result<std::optional<Slice>>> decoded(Reading& r, const PartRead& read, BufferPtr buffer) {
    const std::uint64_t part_offset = run_of(r.version, read).part_offset;
    const std::string name = name_of(r, read);
    Result<EncodedMemory> memory = co_await take_memory(r, read, std::move(buffer));
    if (!memory.ok()) co_return std::move(memory).status().within(name);
    const Nanos deadline = r.world.clock.in(r.settings.io_wait);
    Status status = co_await read_all(r.world.storage, r.files.at(read.footer), part_offset, memory->stored, deadline);
    bool is_told = !status.ok();
    if (status.ok()) {
        status = co_await decode(r, read, std::move(memory->stored), memory->raw);
        is_told = is_of_the_run(status);
    }
    if (status.ok()) co_return std::optional<Slice>(std::move(memory->raw));
    if (!is_told) co_return std::move(status).within(name);
    CO_TRY(tell_all(r, read, status));
    co_return std::optional<Slice>();
}

Task<Status> read_encoded(Reading& r, const PartRead& read, BufferPtr buffer) {
    if (r.stored_is_right) {
        Status checked = co_await check_stored(r, read, std::move(buffer));
        co_return checked;
    }
    const EncodedRuns::Which which{read.footer, read.run};
    Slice raw = r.encoded.take_kept(which);
    if (!raw.buffer) {
        Result<std::optional<Slice>> made = co_await decoded(r, read, std::move(buffer));
        if (!made.ok()) co_return std::move(made).status();
        if (!*made) co_return Status();
        raw = std::move(**made);
    }
    const StoredRun& run = run_of(r.version, read);
    for (const std::uint32_t index : read.pieces) CO_TRY(co_await check_piece(r, read, run.pieces[index], raw, 0));
    if (read.is_wanted_again) r.encoded.keep(which, std::move(raw));
    co_return Status();
}

// ok, or what `bad` made of a damaged block or of a failed read.
Task<Status> read_run(Reading& r, const PartRead& read, BufferPtr buffer) {
    const StoredRun& run = run_of(r.version, read);
    if (run.codec != 0) {
        Status encoded = co_await read_encoded(r, read, std::move(buffer));
        co_return encoded;
    }
    Slice into{buffer, 0, read.length};
    const Nanos deadline = r.world.clock.in(r.settings.io_wait);
    const Status status = co_await read_all(r.world.storage, r.files.at(read.footer), run.part_offset + read.offset, into, deadline);
    if (!status.ok()) co_return tell_all(r, read, status);
    for (const std::uint32_t index : read.pieces) CO_TRY(co_await check_piece(r, read, run.pieces[index], into, read.offset));
    co_return Status();
}

Task<void> reader(Reading& r) {
    std::uint64_t buffer_bytes = part_alignment;
    for (const PartRead& read : r.reads)
        if (run_of(r.version, read).codec == 0 || read.length <= r.settings.buffer_bytes) buffer_bytes = std::max(buffer_bytes, read.length);
    Result<BufferPtr> buffer = r.world.storage.allocate(round_up(buffer_bytes, 4096));
    if (!buffer.ok()) {
        r.failure = std::move(buffer).status();
        co_return;
    }
    while (r.failure.ok() && r.next < r.reads.size()) {
        const PartRead& read = r.reads[r.next++];
        Status status = co_await read_run(r, read, *buffer);
        if (!status.ok() && r.failure.ok()) r.failure = std::move(status);
        if (buffer->use_count() == 1) continue;
        // A read outlived its deadline and holds the buffer. Whoever collects damage goes on, with so much more memory and no more.
        if (++r.buffers_lost > buffers_lost_max) co_return;
        buffer = r.world.storage.allocate(round_up(buffer_bytes, 4096));
        if (!buffer.ok()) co_return;
    }
}

// Only parts of which something is read are opened.
Task<Status> read_runs(Reading& r, Layout layout) {
    for (const PartRead& read : r.reads) {
        if (r.files.count(read.footer)) continue;
        OpenOptions options;
        options.direct = r.settings.direct;
        const std::uint32_t part = r.version.parts[read.footer];
        const std::string path = layout.part(r.version.manifest, part);
        Result<FilePtr> file = co_await r.world.storage.open(path, options, r.world.clock.in(r.settings.io_wait));
        if (file.code() == Code::not_found) {
            Status missing = co_await missing_part(r.world, layout, r.version.manifest, part, r.world.clock.in(r.settings.io_wait));
            co_return missing;
        }
        if (!file.ok()) co_return std::move(file).status();
        r.files.emplace(read.footer, std::move(file).value());
    }
    Gate gate(r.world.clock);
    const std::size_t readers = std::min<std::size_t>(r.settings.readers, r.reads.size());
    for (std::size_t i = 0; i < readers; ++i) gate.spawn(reader(r));
    co_await gate.close();
    if (r.failure.ok() && r.next < r.reads.size())
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

}  // namespace

ImageRange image_run_of(const OpenVersion& version, const PartRead& read, std::uint32_t index) {
    const StoredRun& run = run_of(version, read);
    const StoredPiece& piece = run.pieces[index];
    const std::uint64_t raw_length = run.codec == 0 ? read.length : raw_bytes(run);
    const std::uint64_t begin = std::max(piece.at, read.offset), end = std::min(piece.at + piece.length, read.offset + raw_length);
    return {piece.image_offset + (begin - piece.at), end - begin};
}

Result<std::vector<PartRead>> plan_part_reads(const OpenVersion& version, const std::vector<WantedImage>& wanted, std::uint64_t buffer_bytes) {
    const std::string what = version_text(version.manifest.key);
    ReadList list(version, buffer_bytes);
    for (const WantedImage& each : wanted) {
        if (!version.image(each.rank))
            return not_found(what + " has no image of rank " + std::to_string(each.rank) + "; it was taken by " + std::to_string(version.manifest.ranks) + " ranks");
        TRY(check_tiling(version, each.rank).within(what));
        const Wanted of_rank(each.ranges);
        for (const PiecePlace& place : version.pieces(each.rank)) list.add(place, of_rank);
    }
    return list.take();
}

Task<Status> read_parts(World& world, Layout layout, const OpenVersion& version, std::vector<PartRead> reads, RankSink sink,
                        RestoreSettings settings, EncodedRuns* encoded, OnBad bad) {
    EncodedRuns own(world, settings.encoded_bytes);
    Reading r{world, settings, version, {}, std::move(reads), 0, {}, {}, {}, encoded ? *encoded : own};
    r.deliver = [&](const StoredPiece& piece, std::uint64_t at, Slice data) { return sink(piece.rank, piece.image_offset + at, std::move(data)); };
    r.bad = [&](const PartRead& read, const StoredPiece& piece, ImageRange unit, Status status) {
        const std::string region = region_of(version, piece, unit);
        Status named = std::move(status).within(version_text(version.manifest.key) + ": " + version.manifest.parts[version.parts[read.footer]].file + " block " +
                                                std::to_string(block_in_part(version, read, piece, unit)) + ", rank " + std::to_string(piece.rank) +
                                                (region.empty() ? "" : ", region " + region));
        return bad ? bad(piece.rank, std::move(named)) : named;
    };
    Status status = co_await read_runs(r, layout);
    co_return status;
}

Task<Status> restore_image(World& world, Layout layout, const OpenVersion& version, Rank rank, std::vector<ImageRange> ranges,
                           ImageSink sink, RestoreSettings settings) {
    std::vector<WantedImage> wanted;
    wanted.push_back({rank, std::move(ranges)});
    Result<std::vector<PartRead>> reads = plan_part_reads(version, wanted, settings.buffer_bytes);
    if (!reads.ok()) co_return std::move(reads).status();
    const RankSink of_rank = [&sink](Rank, std::uint64_t offset, Slice data) { return sink(offset, std::move(data)); };
    Status status = co_await read_parts(world, layout, version, std::move(reads).value(), of_rank, settings);
    co_return status;
}

namespace {

Damage damage_of(std::string part, Status status, std::optional<Rank> rank = std::nullopt) {
    Damage damage;
    damage.part = std::move(part);
    damage.rank = rank;
    damage.status = std::move(status);
    return damage;
}

// Every piece of every run that is this version's, of whatever rank.
std::vector<PartRead> all_reads(const OpenVersion& version, std::uint64_t buffer_bytes) {
    ReadList list(version, buffer_bytes);
    const Wanted everything({});
    for (std::size_t footer = 0; footer < version.footers.size(); ++footer)
        for (std::size_t run = 0; run < version.footers[footer].runs.size(); ++run)
            for (std::size_t piece = 0; piece < version.footers[footer].runs[run].pieces.size(); ++piece)
                if (version.holds(footer, version.footers[footer].runs[run].pieces[piece].rank)) list.add({footer, run, static_cast<std::uint32_t>(piece)}, everything);
    return list.take();
}

// Whether something was told of a rank; then an index of it that can not be read is no news.
bool is_damaged(const std::vector<Damage>& damages, Rank rank) {
    return std::any_of(damages.begin(), damages.end(), [&](const Damage& damage) { return damage.rank == rank; });
}

}  // namespace

Task<Result<std::vector<Damage>>> verify_version(World& world, Layout layout, Manifest manifest, RestoreSettings settings,
                                                 std::function<void(std::uint64_t bytes)> progress, VerifyDepth depth) {
    std::vector<Damage> damages, prefixes;  // the latter are of no image, and hide nothing of one
    if (manifest.abandoned) co_return damages;
    OpenVersion whole;  // what could be opened; damage in one part does not hide damage in another
    whole.manifest = manifest;
    for (std::uint32_t i = 0; i < manifest.parts.size(); ++i) {
        const std::string path = layout.part(manifest, i);
        Result<Footer> footer = co_await read_footer(world, path, &manifest.parts[i], settings);
        Status status = footer.status();
        if (status.code() == Code::not_found) status = co_await missing_part(world, layout, manifest, i, world.clock.in(settings.io_wait));
        if (status.ok()) status = check_part_of(manifest, i, *footer).within(path);
        if (!status.ok()) {
            damages.push_back(damage_of(manifest.parts[i].file, std::move(status)));
            continue;
        }
        if (Status prefix = co_await check_prefix(world, path, *footer, settings); !prefix.ok()) {
            prefixes.push_back(damage_of(manifest.parts[i].file, std::move(prefix)));
            prefixes.back().of_no_image = true;
        }
        whole.footers.push_back(std::move(footer).value());
        whole.parts.push_back(i);
    }
    whole.index();
    if (damages.empty())
        for (Rank rank = 0; rank < manifest.ranks; ++rank)
            if (Status tiles = check_tiling(whole, rank); !tiles.ok()) damages.push_back(damage_of("", std::move(tiles), rank));
    // So that damage is told with the region that it is in.
    const std::map<Rank, Status> unknown = co_await load_what_can_be(world, layout, whole, settings);
    EncodedRuns encoded(world, settings.encoded_bytes);
    Reading r{world, settings, whole, {}, all_reads(whole, settings.buffer_bytes), 0, {}, {}, {}, encoded};
    r.deliver = [&](const StoredPiece&, std::uint64_t, Slice data) {
        if (progress) progress(data.length);
        return Status();
    };
    if (depth == VerifyDepth::stored)
        r.stored_is_right = [&](std::uint64_t raw) {
            if (progress) progress(raw);
        };
    r.bad = [&](const PartRead& read, const StoredPiece& piece, ImageRange unit, Status status) {
        Damage damage = damage_of(manifest.parts[whole.parts[read.footer]].file, std::move(status));
        damage.block = block_in_part(whole, read, piece, unit);
        damage.rank = piece.rank;
        damage.region = region_of(whole, piece, unit);
        damages.push_back(std::move(damage));
        return Status();
    };
    Status read = co_await read_runs(r, layout);
    if (!read.ok() && damages.empty() && prefixes.empty()) co_return read;  // nothing can be said; else damage that was found is told before what ended the look
    if (!read.ok()) damages.push_back(damage_of("", std::move(read)));
    for (const auto& [rank, why] : unknown) {  // every checksum holds, and nobody can restore it
        if (why.code() != Code::corrupt || is_damaged(damages, rank)) continue;
        damages.push_back(damage_of("", Status(why), rank));
        damages.back().region = region_index_name;
    }
    std::move(prefixes.begin(), prefixes.end(), std::back_inserter(damages));
    co_return damages;
}

}  // namespace cairn
