// Sealed images in node-local scratch, as a daemon or a restarting rank finds them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/layout.hpp"
#include "copies/image_source.hpp"
#include "world/world.hpp"

namespace cairn {

// Whether the bytes of an image can be read as often as anybody likes (a slot in scratch), or each once only (memory that its owner takes back, a stream), or are
// asked of who has them (a rank that waits), again and again while it is there.
enum class Readable : std::uint8_t { again, once, asked };

// An image of this node that its source has begun to fill: what is known of it before it is sealed. A plan needs no more.
struct BegunImage {
    Rank rank = 0;
    std::uint64_t bytes = 0;
    std::uint64_t block_bytes = 0;
};

// An image of this node, as its source tells it: how many bytes it has (header.image.bytes), how far it is filled (`data`), and whether it can be read
// again. What is committed must be filled. Of a slot file that holds a sealed image `data` are its bytes, straight
// from the mapping; an image of another kind has no file, and `path` is what people know it by. Of one that is asked for, `data` has a length and no buffer.
struct LocalImage {
    ImageHeader header;
    std::string path;
    Slice data;
    Readable readable = Readable::again;
    std::shared_ptr<ImageSource> source = nullptr;  // Readable::asked
    std::uint64_t filled_bytes() const noexcept { return data.length; }
    std::vector<std::uint64_t> checksums;  // one a unit; empty while not made (image with bytes) or when there are no bytes
    std::uint64_t proof = 0;               // as it stands in the slot
};

// io_error, naming the image, where a page of its mapping is not to be had any more: what stands in its place is worth nothing. Asked after the bytes
// were used, before they are believed.
Status check_not_lost(const LocalImage& image);

// Whether the image is what its writer wrote although the machine may have lost any page of its slot: its checksums are its own (check_proof),
// and its bytes are what they say (check_data). corrupt says what is missing. check_data reads all of it, from the file, not from the mapping:
// each read has a bound of its own, and a page that the disk has lost is an error, not a SIGBUS.
Status check_proof(const LocalImage& image);
Task<Status> check_data(World& world, const LocalImage& image, Nanos io_wait);

// What one slot file holds: nullopt when it is not sealed (being written, recycled, torn). An unreadable or damaged header is corrupt.
// `mapped`: an earlier mapping of this very file, or null. It is used again while the file has kept its size: its pages are in place, where
// a new mapping takes a fault for every few of them.
Task<Result<std::optional<LocalImage>>> read_image(World& world, std::string path, Nanos deadline, BufferPtr mapped = nullptr);

// What could not be read. Where may_pass(why) it says nothing of what the file holds. Where it is unsupported another release wrote the file, and can read it.
struct Unread {
    std::string path;
    Status why;
    bool tried = true;  // false: there was no time or no thread left to look at it
};

// Every sealed image under images/; what can not be read, or is of no kind of slot that is known here (model/slot_kinds.hpp), is left out and told through `unread`. io_wait bounds the listing and then all files
// together, however many there are: they are looked at beside each other, and one that hangs takes nothing from the others, until so many hang
// that no more threads are to be given to them. The result fails when the directory itself can not be listed.
struct ScratchScan {
    std::vector<LocalImage> images;       // by path
    std::vector<std::string> free_slots;  // paths that hold nothing sealed
    std::vector<Unread> unread;
    std::size_t hang = 0;  // looks that did not come back, each with a thread that nobody has any more
    static constexpr std::size_t hang_max = 48;  // of those there is an end (WorkerPoolOptions), and captures need some, too
};
Task<Result<ScratchScan>> scan_scratch(World& world, ScratchLayout layout, Nanos io_wait);
// Once more those that could not be read because of something that may pass, in io_wait together.
Task<void> scan_again(World& world, ScratchScan& scan, Nanos io_wait);

// The job rosters kept in scratch, in the same way; damaged ones are of jobs that never opened and are left out.
struct JobScan {
    std::vector<Roster> rosters;
    std::vector<Unread> unread;
    std::size_t hang = 0;
    static constexpr std::size_t hang_max = 8;
};
Task<Result<JobScan>> scan_jobs(World& world, ScratchLayout layout, Nanos io_wait);
Task<void> scan_again(World& world, JobScan& scan, Nanos io_wait);

}  // namespace cairn
