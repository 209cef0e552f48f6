// Sealed images in node-local scratch, as a daemon or a restarting rank finds them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/layout.hpp"
#include "world/world.hpp"

namespace cairn {

// One slot file that holds a sealed image. `data` are the image's bytes, straight from the mapping.
struct LocalImage {
    ImageHeader header;
    std::string path;
    Slice data;
    std::vector<std::uint64_t> checksums;  // one a block; empty while not made (image with bytes) or when there are no bytes
    std::uint64_t proof = 0;               // as it stands in the slot
};

// Whether the image is what its writer wrote although the machine may have lost any page of its slot: its checksums are its own (check_proof),
// and its bytes are what they say (check_data). corrupt says what is missing. check_data reads all of it, from the file, not from the mapping:
// each read has a bound of its own, and a page that the disk has lost is an error, not a SIGBUS.
Status check_proof(const LocalImage& image);
Task<Status> check_data(World& world, const LocalImage& image, Nanos io_wait);

// What one slot file holds: nullopt when it is not sealed (being written, recycled, torn). An unreadable or damaged header is corrupt.
// `mapped`: an earlier mapping of this very file, or null. It is used again while the file has kept its size: its pages are in place, where
// a new mapping takes a fault for every few of them.
Task<Result<std::optional<LocalImage>>> read_image(World& world, std::string path, Nanos deadline, BufferPtr mapped = nullptr);

// Every sealed image under images/; what can not be read is left out and told through `problems`.
struct ScratchScan {
    std::vector<LocalImage> images;
    std::vector<std::string> free_slots;  // paths that hold nothing sealed
    std::vector<Status> problems;
};
Task<Result<ScratchScan>> scan_scratch(World& world, ScratchLayout layout, Nanos deadline);

// The job rosters kept in scratch; damaged ones are of jobs that never opened and are left out.
Task<Result<std::vector<Roster>>> scan_jobs(World& world, ScratchLayout layout, Nanos deadline);

}  // namespace cairn
