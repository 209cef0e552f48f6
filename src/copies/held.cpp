#include "copies/held.hpp"

#include <algorithm>
#include <utility>

#include "base/units.hpp"
#include "format/image.hpp"
#include "model/checksum_units.hpp"

namespace cairn {

HeldImage held_image(LocalImage image, Describers describers) {
    HeldImage held;
    held.unit_ends = unit_ends({image.header.block_bytes, 0, image.header.cuts}, image.header.image.bytes);
    const std::size_t units = held.unit_ends.size();
    const bool made = image.checksums.size() == units;
    held.checksums = made ? std::move(image.checksums) : std::vector<std::uint64_t>(units);
    held.is_told = made;
    held.known.assign(units, false);
    held.unknown = units;
    image.checksums.clear();
    if (image.readable != Readable::again) held.once = std::make_shared<OnceState>(OnceState{std::vector<bool>(units), image.source});
    held.arrays = std::make_shared<ImageArrays>(image, std::move(describers));
    held.image = std::move(image);
    return held;
}

namespace {

// The unit that begins there; the number of units at the end of the image.
std::size_t unit_at(const HeldImage& held, std::uint64_t offset) {
    return static_cast<std::size_t>(std::upper_bound(held.unit_ends.begin(), held.unit_ends.end(), offset) - held.unit_ends.begin());
}
std::uint64_t begin_of(const HeldImage& held, std::size_t unit) { return unit == 0 ? 0 : held.unit_ends[unit - 1]; }

// What was told of it holds, as far as it was read.
Status check_whole(const HeldImage& held) {
    TRY(check_not_lost(held.image));
    if (!held.damaged) return {};
    return corrupt("the image of rank " + std::to_string(held.image.header.rank) + ", " + held.image.path + ": bytes " + std::to_string(held.damaged->first) + "+" +
                   std::to_string(held.damaged->second - held.damaged->first) + " are not those that were captured: scratch, or who writes there, damaged them. This version can not be committed; take another one");
}

}  // namespace

Result<Slice> held_bytes(const HeldImage& held, const Source& source) {
    const std::uint64_t bytes = held.image.data.length;
    const auto divides = [&](std::uint64_t offset) { return begin_of(held, unit_at(held, offset)) == offset; };
    if (source.image_offset > bytes || source.length > bytes - source.image_offset || !divides(source.image_offset) || !divides(source.image_offset + source.length))
        return invalid_argument("rank " + std::to_string(source.rank) + ": bytes outside its image were asked for");
    return held.image.data.part(source.image_offset, source.length);
}

std::optional<UnitChecksums> known_checksums(const HeldImage& held, const Source& source) {
    const std::size_t first = unit_at(held, source.image_offset), end = unit_at(held, source.image_offset + source.length);
    UnitChecksums found;
    for (std::size_t unit = first; unit < end; ++unit) {
        if (!held.known[unit] && !held.is_told) return std::nullopt;
        found.checksums.push_back(held.checksums[unit]);
    }
    found.cuts = cuts_within(held.image.header.cuts, source.image_offset, source.length);
    return found;
}

FindArrays arrays_of(const HeldImage& held, const Source& source) {
    return [arrays = held.arrays, source] { return arrays->in(source); };
}

bool is_used_up(const HeldImage& held, const Source& source) {
    return held.once && held.once->is_any_used(unit_at(held, source.image_offset), unit_at(held, source.image_offset + source.length));
}

HeldReads::HeldReads(World& world, Gate& gate, Nanos heartbeat, Nanos io_wait, std::uint64_t buffer_bytes)
    : world_(world), gate_(gate), heartbeat_(heartbeat), io_wait_(io_wait), once_(world, heartbeat, io_wait, buffer_bytes) {}

Task<Result<HeldBytes>> HeldReads::bytes_of(HeldImagesPtr images, Source source, WantedFor use, std::function<bool()> over) {
    const auto found = images->find(source.rank);
    if (found == images->end()) co_return not_found("the image of rank " + std::to_string(source.rank) + " has left scratch");
    HeldImage& held = found->second;
    Result<Slice> data = held_bytes(held, source);
    if (!data.ok()) co_return std::move(data).status();
    if (held.once) {
        OnceReads::Range range{held.once, source.rank, source.image_offset, unit_at(held, source.image_offset), unit_at(held, source.image_offset + source.length),
                               std::move(data).value(), {held.image.header.block_bytes, source.image_offset, cuts_within(held.image.header.cuts, source.image_offset, source.length)}};
        ++held.users;
        Result<HeldBytes> read = co_await once_.take(std::move(range), use, std::move(over));
        --held.users;
        co_return read;
    }
    Result<UnitChecksums> sums = co_await checksums_of(images, source, std::move(over));
    if (!sums.ok()) co_return std::move(sums).status();
    co_return HeldBytes{std::move(data).value(), std::move(sums).value()};
}

// The first run of units in [first, end) of whose checksums nobody knows or is making any; empty: there is none.
HeldReads::Read HeldReads::next_to_read(const HeldImage& held, std::size_t first, std::size_t end) const {
    const auto open = [&](std::size_t unit) {
        return !held.known[unit] && std::none_of(reads_.begin(), reads_.end(), [&](const auto& entry) { return entry.second.covers(held, unit); });
    };
    while (first < end && !open(first)) ++first;
    Read read{&held, first, first};
    while (read.end < end && open(read.end)) ++read.end;
    return read;
}

// Checksums of a run of units of a local image, made at most once. Ends early when nobody wants them any more (`over`).
Task<Result<UnitChecksums>> HeldReads::checksums_of(HeldImagesPtr images, Source source, std::function<bool()> over) {
    const auto found = images->find(source.rank);
    if (found == images->end()) co_return not_found("the image of rank " + std::to_string(source.rank) + " has left scratch");
    HeldImage& held = found->second;
    const std::size_t first = unit_at(held, source.image_offset), end = unit_at(held, source.image_offset + source.length);
    const auto all_known = [&] { return std::all_of(held.known.begin() + first, held.known.begin() + end, [](bool k) { return k; }); };
    Status status = check_whole(held);
    ++held.users;
    while (status.ok() && !all_known()) {
        for (Read read = next_to_read(held, first, end); read.first < end; read = next_to_read(held, first, end))
            gate_.spawn(make(images, source.rank, read));
        status = check(held, first, end);
        if (status.ok() && over()) status = Status(Code::cancelled, "nobody waits for it");
        if (!status.ok() || all_known()) continue;
        const auto theirs = std::find_if(reads_.begin(), reads_.end(), [&](const auto& entry) {
            return entry.second.of == &held && entry.second.first < end && first < entry.second.end;
        });
        const std::shared_ptr<Event> ended = theirs->second.ended;  // somebody reads what is not known
        co_await ended->wait(world_.clock.in(heartbeat_));
        status = check_whole(held);
    }
    --held.users;
    if (!status.ok()) co_return status;
    UnitChecksums result;
    result.checksums.assign(held.checksums.begin() + first, held.checksums.begin() + end);
    result.cuts = cuts_within(held.image.header.cuts, source.image_offset, source.length);
    co_return result;
}

// One read. It outlives whoever wanted it, and keeps the image where it is for as long as it takes.
Task<void> HeldReads::make(HeldImagesPtr images, Rank rank, Read read) {
    HeldImage& held = images->at(rank);
    const std::uint64_t number = ++begun_, offset = begin_of(held, read.first);
    read.ended = std::make_shared<Event>(world_.clock);
    reads_.emplace(number, read);
    if (!std::exchange(watched_, true)) gate_.spawn(watch());
    ++held.users;
    Slice data = held.image.data.part(offset, begin_of(held, read.end) - offset);
    const Units units(held.image.header.block_bytes, offset, cuts_within(held.image.header.cuts, offset, data.length));
    const std::vector<std::uint64_t> made = co_await world_.cpu.checksums(std::move(data), units);
    --held.users;
    reads_.erase(number);
    for (auto later = reads_.upper_bound(number); later != reads_.end(); ++later) later->second.waited = 0;
    if (!check_not_lost(held.image).ok()) co_return read.ended->notify_all();
    if (held.is_told && !std::equal(made.begin(), made.end(), held.checksums.begin() + read.first)) {
        const auto differs = std::mismatch(made.begin(), made.end(), held.checksums.begin() + read.first).first - made.begin();
        const std::size_t unit = read.first + static_cast<std::size_t>(differs);
        held.damaged = std::pair(begin_of(held, unit), held.unit_ends[unit]);
        co_return read.ended->notify_all();
    }
    std::copy(made.begin(), made.end(), held.checksums.begin() + read.first);
    std::fill(held.known.begin() + read.first, held.known.begin() + read.end, true);
    held.unknown -= read.end - read.first;
    if (held.unknown == 0 && !held.is_told) gate_.spawn(keep(images, rank));
    read.ended->notify_all();
}

Task<void> HeldReads::watch() {
    do {
        const Nanos before = world_.clock.now();
        co_await world_.clock.sleep(heartbeat_);
        const Nanos passed = std::min(world_.clock.now() - before, 2 * heartbeat_);
        for (auto& [number, read] : reads_) read.waited += passed;
    } while (!reads_.empty());
    watched_ = false;
}

Status HeldReads::check(const HeldImage& held, std::size_t first, std::size_t end) const {
    for (const auto& [number, read] : reads_) {
        if (read.of != &held || read.end <= first || read.first >= end || read.waited < io_wait_) continue;
        const std::uint64_t offset = begin_of(held, read.first);
        return deadline_passed("the image of rank " + std::to_string(held.image.header.rank) + ", " + held.image.path + ": bytes " +
                               std::to_string(offset) + "+" + std::to_string(begin_of(held, read.end) - offset) +
                               " were not read in " + std::to_string(io_wait_ / millisecond) +
                               " ms (deadlines.io_ms): look after this node's scratch; the version is tried again as long as its images are there");
    }
    return {};
}

// Once all are made they are kept beside the image in scratch, so that a restart from scratch is verified too.
Task<void> HeldReads::keep(HeldImagesPtr images, Rank rank) {
    HeldImage& held = images->at(rank);
    ++held.users;
    const Nanos deadline = world_.clock.in(io_wait_);
    OpenOptions options;
    options.mode = OpenMode::write;
    options.sole_name = true;
    Result<FilePtr> file = co_await world_.storage.open(held.image.path, options, deadline);
    if (file.ok()) {
        const Bytes table = image_table(held.image.header, held.checksums);
        const std::uint64_t words[] = {image_checksummed_word, image_proof(held.image.header, table)};
        static_assert(image_proof_offset == image_checksummed_offset + sizeof words[0]);
        Slice data = Slice::of(table);
        Status status = co_await write_all(world_.storage, *file, held.image.header.checksums_offset, std::move(data), deadline);
        if (status.ok()) {
            Bytes flag(sizeof words);
            std::memcpy(flag.data(), words, sizeof words);
            Slice mark = Slice::of(std::move(flag));
            status = co_await write_all(world_.storage, *file, image_checksummed_offset, std::move(mark), deadline);
        }
        held.may_be_written = status.code() == Code::deadline;  // it goes on, whenever scratch answers
    }
    --held.users;
}

}  // namespace cairn
