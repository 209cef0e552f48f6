// Finding sealed images: the state word first (nothing else in an unsealed slot means anything), then the header, then the mapping.
#include "copies/scratch.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "copies/room_for.hpp"
#include "format/limits.hpp"
#include "format/image.hpp"
#include "format/names.hpp"
#include "format/roster.hpp"
#include "model/checksum_units.hpp"
#include "world/gate.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t check_bytes_at_once = 8 << 20;

Task<Result<Bytes>> read_run(World& world, FilePtr file, std::uint64_t offset, std::uint64_t length, Nanos deadline) {
    Result<Bytes> room = room_for<Bytes>(length);
    if (!room.ok()) co_return std::move(room).status().within(file->path());
    auto buffer = std::make_shared<BytesBuffer>(std::move(room).value());
    Slice into{buffer, 0, length};
    Status status = co_await read_all(world.storage, std::move(file), offset, into, deadline);
    if (!status.ok()) co_return status;
    into.buffer.reset();
    co_return buffer->take();
}

std::uint64_t word_at(const Bytes& bytes, std::uint64_t offset) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
}

// Numbers from there on in the slot.
Task<Result<std::vector<std::uint64_t>>> read_numbers(World& world, FilePtr file, std::uint64_t offset, std::uint64_t count, Nanos deadline) {
    Result<std::vector<std::uint64_t>> room = room_for<std::vector<std::uint64_t>>(count);
    if (!room.ok()) co_return std::move(room).status().within(file->path());
    Result<Bytes> bytes = co_await read_run(world, std::move(file), offset, count * sizeof(std::uint64_t), deadline);
    if (!bytes.ok()) co_return std::move(bytes).status();
    if (count > 0) std::memcpy(room->data(), bytes->data(), bytes->size());
    co_return std::move(room).value();
}

// What stands between header and data: the cuts, and the checksums where they are made.
Task<Status> read_table(World& world, FilePtr file, Nanos deadline, LocalImage& image) {
    const std::uint64_t at = image.header.checksums_offset, units = image_units(image.header);
    if (image.header.checksummed && units > 0) {
        Result<std::vector<std::uint64_t>> checksums = co_await read_numbers(world, file, at, units, deadline);
        if (!checksums.ok()) co_return std::move(checksums).status();
        image.checksums = std::move(checksums).value();
    }
    if (image.header.image.cuts == 0) co_return Status();
    Result<std::vector<std::uint64_t>> cuts = co_await read_numbers(world, file, at + 8 * units, image.header.image.cuts, deadline);
    if (!cuts.ok()) co_return std::move(cuts).status();
    image.header.cuts = std::move(cuts).value();
    co_return check_cuts(image.header).within(image.path);
}

}  // namespace

Status check_not_lost(const LocalImage& image) {
    if (!image.data.buffer || !image.data.buffer->has_lost_bytes()) return {};
    return Status(Code::io_error, "the image of rank " + std::to_string(image.header.rank) + ", " + image.path +
                                      ": a part of it can not be read any more (the disk has lost it, or the file was made shorter): look after this node's scratch");
}

Task<Result<std::optional<LocalImage>>> read_image(World& world, std::string path, Nanos deadline, BufferPtr mapped) {
    constexpr std::uint64_t header_guess_bytes = 64u << 10;
    const std::optional<LocalImage> none;
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    Result<std::uint64_t> size = co_await world.storage.file_bytes(*file, deadline);
    if (!size.ok()) co_return std::move(size).status();
    if (*size <= image_header_offset) co_return none;
    // One read, front to back: a rank waits for the answer. The header says its own length; most fit.
    const Result<Bytes> front = co_await read_run(world, *file, 0, std::min(*size, image_header_offset + header_guess_bytes), deadline);
    if (!front.ok()) co_return front.status();
    if (word_at(*front, image_state_offset) != image_sealed_word) co_return none;
    Result<ImageHeader> header = decode_image_header(ByteView(*front).subspan(image_header_offset));
    if (!header.ok() && *size > front->size()) {
        const std::uint64_t more = std::min<std::uint64_t>(*size - image_header_offset, 64u << 20);
        const Result<Bytes> all = co_await read_run(world, *file, image_header_offset, more, deadline);
        if (!all.ok()) co_return all.status();
        header = decode_image_header(*all);
    }
    if (!header.ok()) co_return std::move(header).status().within(path);
    Status fits = check_image_fits(*header, *size);
    if (!fits.ok()) co_return std::move(fits).within(path);
    LocalImage image;
    image.path = path;
    image.header = std::move(header).value();
    image.header.checksummed = word_at(*front, image_checksummed_offset) == image_checksummed_word;
    image.proof = word_at(*front, image_proof_offset);
    CO_TRY(co_await read_table(world, *file, deadline, image));
    if (!mapped || mapped->size() != *size) {
        Result<BufferPtr> map = co_await world.storage.map(path, false, deadline);
        if (!map.ok()) co_return std::move(map).status();
        mapped = std::move(map).value();
    }
    if (mapped->size() < image.header.data_offset + image.header.image.bytes) co_return corrupt(path + ": shorter than its header says");
    image.data = {std::move(mapped), image.header.data_offset, image.header.image.bytes};
    std::optional<LocalImage> found(std::move(image));
    co_return found;
}

Status check_proof(const LocalImage& image) {
    if (image.header.image.bytes == 0) return {};  // the header has a checksum of its own
    if (image.checksums.empty()) return corrupt(image.path + ": no checksums were stored with it, to tell whether all of it reached the disk");
    if (image.proof != image_proof(image.header, image_table(image.header, image.checksums)))
        return corrupt(image.path + ": the checksums stored with it are not, or not all, of this image");
    return {};
}

Task<Status> check_data(World& world, const LocalImage& image, Nanos io_wait) {
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(image.path, options, world.clock.in(io_wait));
    if (!file.ok()) co_return std::move(file).status();
    const std::uint64_t block = image.header.block_bytes, bytes = image.header.image.bytes;
    const std::uint64_t step = std::max(block, check_bytes_at_once / block * block);
    for (std::uint64_t offset = 0; offset < bytes; offset += step) {
        const std::uint64_t length = std::min(step, bytes - offset);
        Result<Bytes> data = co_await read_run(world, *file, image.header.data_offset + offset, length, world.clock.in(io_wait));
        if (!data.ok()) co_return std::move(data).status().within(image.path);
        Slice slice = Slice::of(std::move(data).value());
        const std::vector<std::uint64_t> sums = co_await world.cpu.checksums(std::move(slice), {block, offset, cuts_within(image.header.cuts, offset, length)});
        const auto first = image.checksums.begin() + static_cast<std::ptrdiff_t>(unit_count(block, 0, image.header.cuts, offset));
        if (!std::equal(sums.begin(), sums.end(), first))
            co_return corrupt(image.path + ": bytes " + std::to_string(offset) + "+" + std::to_string(length) + " are not what was written there");
    }
    co_return Status();
}

namespace {

constexpr std::size_t looks_at_once = 8;  // and as many more as are late

Task<void> scan_file(World& world, std::string path, Nanos deadline, ScratchScan& scan) {
    Result<std::optional<LocalImage>> image = co_await read_image(world, path, deadline);
    if (image.code() == Code::deadline) ++scan.hang;
    if (!image.ok()) {
        if (image.code() != Code::not_found) scan.unread.push_back({std::move(path), std::move(image).status()});
    } else if (image->has_value()) {
        scan.images.push_back(std::move(**image));
    } else {
        scan.free_slots.push_back(std::move(path));
    }
}

Task<void> scan_file(World& world, std::string path, Nanos deadline, JobScan& scan) {
    Result<Bytes> bytes = co_await read_file(world.storage, path, roster_bytes_max, deadline);
    if (bytes.code() == Code::deadline) ++scan.hang;
    if (!bytes.ok()) {
        if (bytes.code() != Code::not_found) scan.unread.push_back({std::move(path), std::move(bytes).status()});
        co_return;
    }
    Result<Roster> roster = decode_roster(*bytes);  // a torn one is of a job that never opened
    if (roster.ok() && path.ends_with("/" + roster->incarnation.hex())) scan.rosters.push_back(std::move(roster).value());
}

// Those that are late go on, each to the common end, and others begin beside them.
template <class Scan>
Task<void> scan_files(World& world, std::vector<std::string> paths, Nanos io_wait, Scan& scan) {
    const Nanos end = world.clock.in(io_wait);
    std::size_t begun = 0, late = 0;
    Gate gate(world.clock);
    while (begun < paths.size() && scan.hang < Scan::hang_max && world.clock.now() < end) {
        const std::size_t places = std::min(looks_at_once + late, Scan::hang_max - scan.hang);
        const bool has_place = co_await gate.wait_active_at_most(places - 1, std::min(end, world.clock.in(io_wait / 8)));
        if (!has_place) late = gate.active();
        if (!has_place || world.clock.now() >= end) continue;
        std::string path = paths[begun++];
        gate.spawn(scan_file(world, std::move(path), end, scan));
    }
    co_await gate.close();
    for (; begun < paths.size(); ++begun)
        scan.unread.push_back({paths[begun], deadline_passed(paths[begun] + ": not looked at, since other files beside it did not come back"), false});
}

template <class Scan>
Task<void> scan_unread(World& world, Scan& scan, Nanos io_wait) {
    std::vector<Unread> unread = std::exchange(scan.unread, {});
    std::stable_partition(unread.begin(), unread.end(), [](const Unread& each) { return !each.tried; });
    std::vector<std::string> paths;
    for (Unread& each : unread) {
        if (may_pass(each.why) && scan.hang < Scan::hang_max) paths.push_back(std::move(each.path));
        else scan.unread.push_back(std::move(each));
    }
    co_await scan_files(world, std::move(paths), io_wait, scan);
}

// Those that hold images, or did. What only another release knows what to do with is told, whatever it holds.
std::vector<std::string> image_slots(std::vector<std::string> paths, ScratchScan& scan) {
    std::vector<std::string> slots;
    for (std::string& path : paths) {
        const auto name = parse_slot_file_name(std::string_view(path).substr(path.rfind('/') + 1));
        if (!name) {
            Status why(Code::unsupported, path + ": of a kind of slot that this Cairn does not know; it is left as it is. Start the release of Cairn that wrote it, "
                                                 "or remove the file when its jobs are over");
            scan.unread.push_back({std::move(path), std::move(why)});
            continue;
        }
        switch (row_of(name->kind).at_start) {
            case SlotAtStart::take_image: slots.push_back(std::move(path)); break;
        }
    }
    return slots;
}

void sort(ScratchScan& scan) {
    std::sort(scan.images.begin(), scan.images.end(), [](const LocalImage& a, const LocalImage& b) { return a.path < b.path; });
}

// Their paths. None where the directory is not there.
Task<Result<std::vector<std::string>>> files_in(World& world, std::string directory, Nanos io_wait) {
    std::vector<std::string> paths;
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(directory, world.clock.in(io_wait));
    if (!entries.ok() && entries.code() != Code::not_found) co_return std::move(entries).status();
    if (!entries.ok()) co_return paths;
    for (const DirectoryEntry& entry : *entries)
        if (!entry.is_directory) paths.push_back(directory + "/" + entry.name);
    co_return paths;
}

}  // namespace

Task<Result<ScratchScan>> scan_scratch(World& world, ScratchLayout layout, Nanos io_wait) {
    ScratchScan scan;
    Result<std::vector<std::string>> paths = co_await files_in(world, layout.images(), io_wait);
    if (!paths.ok()) co_return std::move(paths).status();
    std::vector<std::string> slots = image_slots(std::move(paths).value(), scan);
    co_await scan_files(world, std::move(slots), io_wait, scan);
    sort(scan);
    co_return scan;
}

Task<void> scan_again(World& world, ScratchScan& scan, Nanos io_wait) {
    co_await scan_unread(world, scan, io_wait);
    sort(scan);
}

Task<Result<JobScan>> scan_jobs(World& world, ScratchLayout layout, Nanos io_wait) {
    JobScan scan;
    Result<std::vector<std::string>> paths = co_await files_in(world, layout.jobs(), io_wait);
    if (!paths.ok()) co_return std::move(paths).status();
    std::erase_if(*paths, [](const std::string& path) {
        Id128 incarnation;
        return !Id128::parse(path.substr(path.rfind('/') + 1), incarnation);
    });
    co_await scan_files(world, std::move(paths).value(), io_wait, scan);
    co_return scan;
}

Task<void> scan_again(World& world, JobScan& scan, Nanos io_wait) { return scan_unread(world, scan, io_wait); }

}  // namespace cairn
