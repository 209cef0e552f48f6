// Source: where `cairn extract` reads a version from: its parts on persistent, or, as long as it is not committed, the
// images that this host's scratch holds.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/series.hpp"

namespace cairn::cli {

class Source {
  public:
    virtual ~Source() = default;
    virtual const VersionKey& key() const = 0;
    virtual std::uint32_t ranks() const = 0;
    virtual std::uint64_t block_bytes() const = 0;
    // not_found says why there is none here, and where it is.
    virtual Result<const ImageInfo*> image(Rank rank) const = 0;
    // Verified bytes. From scratch they are only good when settled() says so afterwards.
    virtual Status read(Rank rank, const ImageRange& range, const ImageSink& sink) = 0;
    // Whether checksums are made for it; without them bytes of scratch can not be verified.
    virtual bool has_checksums(Rank rank) const = 0;
    // A slot of scratch may be given to another image while it is read; then what was read means nothing.
    virtual Status settled(Rank rank) = 0;
};

// Of one rank, or every_rank.
Result<std::unique_ptr<Source>> open_source(Place& place, const ScratchView& scratch, const Seen& seen, Rank rank);

Status no_rank(const VersionKey& key, std::uint64_t rank, std::uint32_t ranks);

// The sealed images of one version that this host's scratch holds, by rank; those that left it since `scratch` was read
// are not there.
struct LocalImages {
    std::map<Rank, LocalImage> images;
    std::map<Rank, Status> doubts;  // of those that are not believed
};
Result<LocalImages> local_images(Place& place, const ScratchView& scratch, const VersionKey& key);
// Whether the slot still holds that image.
bool still_there(Place& place, const LocalImage& image);

}  // namespace cairn::cli
