// Finding sealed images: the state word first (nothing else in an unsealed slot means anything), then the header, then the mapping.
#include "engine/scratch.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/image.hpp"
#include "format/roster.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t check_bytes_at_once = 8 << 20;
constexpr std::uint64_t roster_bytes_max = 1ull << 30;

Task<Result<Bytes>> read_run(World& world, FilePtr file, std::uint64_t offset, std::uint64_t length, Nanos deadline) {
    auto buffer = std::make_shared<BytesBuffer>(Bytes(length));
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

}  // namespace

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
    const std::uint64_t blocks = div_up(image.header.image.bytes, image.header.block_bytes);
    if (image.header.checksummed && blocks > 0) {
        Result<Bytes> table = co_await read_run(world, *file, image.header.checksums_offset, blocks * sizeof(std::uint64_t), deadline);
        if (!table.ok()) co_return std::move(table).status();
        image.checksums.resize(blocks);
        std::memcpy(image.checksums.data(), table->data(), table->size());
    }
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
    if (image.proof != image_proof(image.header, std::as_bytes(std::span(image.checksums))))
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
        const std::vector<std::uint64_t> sums = co_await world.cpu.checksums(std::move(slice), block);
        if (!std::equal(sums.begin(), sums.end(), image.checksums.begin() + static_cast<std::ptrdiff_t>(offset / block)))
            co_return corrupt(image.path + ": bytes " + std::to_string(offset) + "+" + std::to_string(length) + " are not what was written there");
    }
    co_return Status();
}

namespace {

Task<void> scan_slot(World& world, std::string path, Nanos io_wait, ScratchScan& scan) {
    Result<std::optional<LocalImage>> image = co_await read_image(world, path, world.clock.in(io_wait));
    if (!image.ok()) {
        if (image.code() != Code::not_found) scan.unread.push_back({std::move(path), std::move(image).status()});
    } else if (image->has_value()) {
        scan.images.push_back(std::move(**image));
    } else {
        scan.free_slots.push_back(std::move(path));
    }
}

// None where the directory is not there.
Task<Result<std::vector<std::string>>> files_in(World& world, std::string directory, Nanos io_wait) {
    std::vector<std::string> names;
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(directory, world.clock.in(io_wait));
    if (!entries.ok() && entries.code() != Code::not_found) co_return std::move(entries).status();
    if (!entries.ok()) co_return names;
    for (DirectoryEntry& entry : *entries)
        if (!entry.is_directory) names.push_back(std::move(entry.name));
    co_return names;
}

}  // namespace

Task<Result<ScratchScan>> scan_scratch(World& world, ScratchLayout layout, Nanos io_wait) {
    ScratchScan scan;
    Result<std::vector<std::string>> names = co_await files_in(world, layout.images(), io_wait);
    if (!names.ok()) co_return std::move(names).status();
    for (const std::string& name : *names) {
        std::string path = layout.images() + "/" + name;
        co_await scan_slot(world, std::move(path), io_wait, scan);
    }
    co_return scan;
}

Task<void> scan_again(World& world, ScratchScan& scan, Nanos io_wait) {
    for (Unread& each : std::exchange(scan.unread, {})) {
        Unread one = std::move(each);
        if (may_pass(one.why))
            co_await scan_slot(world, std::move(one.path), io_wait, scan);
        else
            scan.unread.push_back(std::move(one));
    }
}

Task<Result<JobScan>> scan_jobs(World& world, ScratchLayout layout, Nanos io_wait) {
    JobScan scan;
    Result<std::vector<std::string>> names = co_await files_in(world, layout.jobs(), io_wait);
    if (!names.ok()) co_return std::move(names).status();
    for (const std::string& name : *names) {
        Id128 incarnation;
        if (!Id128::parse(name, incarnation)) continue;
        const std::string path = layout.jobs() + "/" + name;
        Result<Bytes> bytes = co_await read_file(world.storage, path, roster_bytes_max, world.clock.in(io_wait));
        if (!bytes.ok()) {
            if (bytes.code() != Code::not_found) scan.unread.push_back({path, std::move(bytes).status()});
            continue;
        }
        Result<Roster> roster = decode_roster(*bytes);  // a torn one is of a job that never opened
        if (roster.ok() && roster->incarnation == incarnation) scan.rosters.push_back(std::move(roster).value());
    }
    co_return scan;
}

}  // namespace cairn
