// Local: a node's own images, read from scratch where they are mapped. Checksums are made at the first read, whoever wants the bytes.
//
// To read mapped memory is to touch it, on a thread that nobody can call back: where scratch does not give a page, that thread stays
// there. So nobody waits for a read itself, only for news of it, with a bound; and bytes that are being read are not read a second time beside it,
// which would only cost another thread. A version whose image scratch does not give back fails by that name, attempt by attempt, and leaves its
// turn to later ones.
//
// The bound is on progress: reads are done in the order in which they began, so one is only late from when all before it were done. And
// it is counted in heartbeats of this loop: while the daemon stood still (SIGSTOP, a suspended machine) no read could end either.
#include <algorithm>
#include <utility>

#include "engine/internal.hpp"
#include "format/image.hpp"

namespace cairn {

using namespace engine;

// The first run of blocks in [first, end) of whose checksums nobody knows or is making any; empty: there is none.
static LocalRead next_to_read(const std::map<std::uint64_t, LocalRead>& reads, const HeldImage& held, std::size_t first, std::size_t end) {
    const auto open = [&](std::size_t block) {
        return !held.known[block] && std::none_of(reads.begin(), reads.end(), [&](const auto& entry) { return entry.second.covers(held, block); });
    };
    while (first < end && !open(first)) ++first;
    LocalRead read{&held, first, first};
    while (read.end < end && open(read.end)) ++read.end;
    return read;
}

// Checksums of a run of blocks of a local image, made at most once. Ends early when nobody wants them any more (`over`).
Task<Result<std::vector<std::uint64_t>>> Node::Impl::checksums_of(FlightPtr flight, Source source, std::function<bool()> over) {
    const auto found = flight->images.find(source.rank);
    if (found == flight->images.end()) co_return not_found("the image of rank " + std::to_string(source.rank) + " has left scratch");
    HeldImage& held = found->second;
    const std::uint64_t block = held.image.header.block_bytes;
    const std::size_t first = source.image_offset / block, end = first + div_up(source.length, block);
    const auto all_known = [&] { return std::all_of(held.known.begin() + first, held.known.begin() + end, [](bool k) { return k; }); };
    Status status = check_not_lost(held.image);
    ++held.users;
    while (status.ok() && !all_known()) {
        for (LocalRead read = next_to_read(local_reads, held, first, end); read.first < end; read = next_to_read(local_reads, held, first, end))
            gate.spawn(make_checksums(flight, source.rank, read));
        status = check_local_reads(held, first, end);
        if (status.ok() && over()) status = Status(Code::cancelled, "nobody waits for it");
        if (!status.ok() || all_known()) continue;
        const auto theirs = std::find_if(local_reads.begin(), local_reads.end(), [&](const auto& entry) {
            return entry.second.of == &held && entry.second.first < end && first < entry.second.end;
        });
        const std::shared_ptr<Event> ended = theirs->second.ended;  // somebody reads what is not known
        co_await ended->wait(world.clock.in(settings.heartbeat));
        status = check_not_lost(held.image);
    }
    --held.users;
    if (!status.ok()) co_return status;
    std::vector<std::uint64_t> result(held.checksums.begin() + first, held.checksums.begin() + end);
    co_return result;
}

// One read. It outlives whoever wanted it, and keeps the image where it is for as long as it takes.
Task<void> Node::Impl::make_checksums(FlightPtr flight, Rank rank, LocalRead read) {
    HeldImage& held = flight->images.at(rank);
    const std::uint64_t number = ++local_reads_begun, block = held.image.header.block_bytes, offset = read.first * block;
    read.ended = std::make_shared<Event>(world.clock);
    local_reads.emplace(number, read);
    if (!std::exchange(local_reads_watched, true)) gate.spawn(watch_local_reads());
    ++held.users;
    Slice data = held.image.data.part(offset, std::min(read.end * block, held.image.data.length) - offset);
    const std::vector<std::uint64_t> made = co_await world.cpu.checksums(std::move(data), block);
    --held.users;
    local_reads.erase(number);
    for (auto later = local_reads.upper_bound(number); later != local_reads.end(); ++later) later->second.waited = 0;
    if (!check_not_lost(held.image).ok()) co_return read.ended->notify_all();
    std::copy(made.begin(), made.end(), held.checksums.begin() + read.first);
    std::fill(held.known.begin() + read.first, held.known.begin() + read.end, true);
    held.unknown -= read.end - read.first;
    if (held.unknown == 0) gate.spawn(keep_checksums(flight, rank));
    read.ended->notify_all();
}

Task<void> Node::Impl::watch_local_reads() {
    do {
        const Nanos before = world.clock.now();
        co_await world.clock.sleep(settings.heartbeat);
        const Nanos passed = std::min(world.clock.now() - before, 2 * settings.heartbeat);
        for (auto& [number, read] : local_reads) read.waited += passed;
    } while (!local_reads.empty());
    local_reads_watched = false;
}

Status Node::Impl::check_local_reads(const HeldImage& held, std::size_t first, std::size_t end) const {
    for (const auto& [number, read] : local_reads) {
        if (read.of != &held || read.end <= first || read.first >= end || read.waited < settings.io_wait) continue;
        const std::uint64_t block = held.image.header.block_bytes, offset = read.first * block;
        return deadline_passed("the image of rank " + std::to_string(held.image.header.rank) + ", " + held.image.path + ": bytes " +
                               std::to_string(offset) + "+" + std::to_string((read.end - read.first) * block) +
                               " were not read in " + std::to_string(settings.io_wait / millisecond) +
                               " ms (deadlines.io_ms): look after this node's scratch; the version is tried again as long as its images are there");
    }
    return {};
}

// Once all are made they are kept beside the image in scratch, so that a restart from scratch is verified too.
Task<void> Node::Impl::keep_checksums(FlightPtr flight, Rank rank) {
    HeldImage& held = flight->images.at(rank);
    ++held.users;
    const Nanos deadline = world.clock.in(settings.io_wait);
    OpenOptions options;
    options.mode = OpenMode::write;
    options.sole_name = true;
    Result<FilePtr> file = co_await world.storage.open(held.image.path, options, deadline);
    if (file.ok()) {
        Bytes table(held.checksums.size() * sizeof(std::uint64_t));
        std::memcpy(table.data(), held.checksums.data(), table.size());
        const std::uint64_t words[] = {image_checksummed_word, image_proof(held.image.header, table)};
        static_assert(image_proof_offset == image_checksummed_offset + sizeof words[0]);
        Slice data = Slice::of(std::move(table));
        Status status = co_await write_all(world.storage, *file, held.image.header.checksums_offset, std::move(data), deadline);
        if (status.ok()) {
            Bytes flag(sizeof words);
            std::memcpy(flag.data(), words, sizeof words);
            Slice mark = Slice::of(std::move(flag));
            status = co_await write_all(world.storage, *file, image_checksummed_offset, std::move(mark), deadline);
        }
        held.may_be_written = status.code() == Code::deadline;  // it goes on, whenever scratch answers
    }
    --held.users;
}

}  // namespace cairn
