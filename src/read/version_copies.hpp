// VersionCopies: which copies of one version are open for reading, and of which ranks: images in scratch, and the parts on persistent. What is open
// says the sizes and regions of its images before a byte of them is read.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "copies/restore.hpp"
#include "read/series.hpp"

namespace cairn {

struct VersionCopies {
    VersionKey key;
    std::uint32_t ranks = 0;
    std::map<Rank, LocalImage> slots;  // in scratch; of a rank that is here, its image is read here
    std::map<Rank, Status> doubts;     // images in scratch that are not believed, or can not be read
    std::set<Rank> listed;             // whose images scratch held when it was looked at; one that is neither above has left it since
    std::optional<OpenVersion> parts;

    // Of the copy that is read; null where none is open.
    const ImageInfo* find(Rank rank) const;
    // The same, of a rank that was to be opened; not_found says why there is none here, and where it is, unavailable that it was here just now.
    Result<const ImageInfo*> image(Rank rank) const;
    void set_regions(Rank rank, std::vector<Region> regions);  // of the copy that is read
    std::uint64_t block_bytes() const;
    // Whether checksums are made of it; without them bytes of scratch can not be verified.
    bool is_verifiable(Rank rank) const;
};

Status no_rank(const VersionKey& key, std::uint64_t rank, std::uint32_t ranks);

// Of one rank, or every_rank: the parts of a committed version, else those of `images` that are of this version and still there. A slot that is not
// there any more, or can not be read, says nothing of another rank's.
Task<Result<VersionCopies>> open_copies(World& world, Layout layout, Seen seen, std::vector<ScratchImage> images, Rank rank, RestoreSettings settings);
// The second alone.
Task<VersionCopies> open_slots(World& world, Seen seen, std::vector<ScratchImage> images, Rank rank, RestoreSettings settings);
// One slot, as it is now; nothing where it does not hold that image any more.
Task<Result<std::optional<LocalImage>>> open_slot(World& world, std::string path, VersionKey key, Rank rank, Nanos deadline);

// A slot may be given to another image while it is read; then what was read means nothing. Asked afterwards. Of parts always ok.
Task<Status> check_settled(World& world, const VersionCopies& copies, Rank rank, Nanos deadline);
Task<bool> still_there(World& world, const LocalImage& image, Nanos deadline);

}  // namespace cairn
