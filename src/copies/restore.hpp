// Restore: from the parts of a committed version, or from an image in scratch, back to bytes. Reads are large and in offset order; every
// checksum unit is verified before anybody is told that it is there; what is damaged is named (part, block, rank, region).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "catalog/catalog.hpp"
#include "copies/encoded_runs.hpp"
#include "copies/scratch.hpp"
#include "copies/wanted.hpp"

namespace cairn {

struct RestoreSettings {
    std::uint64_t buffer_bytes = 64ull << 20;  // one read
    std::uint32_t readers = 4;                 // reads in flight
    std::uint64_t encoded_bytes = 256ull << 20;  // what encoded runs take beside the readers' buffers: two of the size that flushes make them; those of bases as much again
    bool direct = false;
    Nanos io_wait = 60 * second;
};

// Takes verified bytes of an image: `image_offset`, then the bytes. In order of arrival, every byte once.
using ImageSink = std::function<Status(std::uint64_t image_offset, Slice data)>;

// Footer of one part, verified against the manifest. not_found: whoever asked knows what that means (catalog/roots.hpp).
Task<Result<Footer>> read_footer(World& world, std::string path, const PartInfo* expected, RestoreSettings settings);

// What other programs read of it, and no image is: a restore does not ask.
Task<Status> check_prefix(World& world, std::string path, const Footer& footer, RestoreSettings settings);

// Where a piece of an image is: its footer in what is open, its run there, its place in the run.
struct PiecePlace {
    std::size_t footer = 0;
    std::size_t run = 0;
    std::uint32_t piece = 0;
};

struct OpenedBase;

// A committed version, opened for reading: its manifest and the footers of the parts that hold `rank` (all parts when every_rank).
class OpenVersion {
  public:
    Manifest manifest;
    std::vector<Footer> footers;       // parallel to parts
    std::vector<std::uint32_t> parts;  // indices into manifest.parts
    std::map<std::uint32_t, std::shared_ptr<const OpenedBase>> bases;  // that runs of the opened ranks are decoded with, by place in manifest.bases

    bool holds(std::size_t footer, Rank rank) const;  // for this version: a base's part has images of ranks that this one took anew, too
    void index();  // once the footers are there: what follows answers from it
    const ImageInfo* image(Rank rank) const;  // null when none of the footers has it
    std::vector<Rank> ranks() const;          // of which there is one, increasing
    void set_regions(Rank rank, std::vector<Region> regions);  // as its index says; of a rank that has an image
    const std::vector<PiecePlace>& pieces(Rank rank) const;  // by image offset
    const StoredRun& run(const PiecePlace& place) const { return footers[place.footer].runs[place.run]; }
    const StoredPiece& piece(const PiecePlace& place) const { return run(place).pieces[place.piece]; }

  private:
    std::unordered_map<Rank, std::pair<std::size_t, std::size_t>> images_;  // footer, image
    std::unordered_map<Rank, std::vector<PiecePlace>> pieces_;
};
// An older version whose images runs of another are decoded with. It has no bases.
struct OpenedBase {
    Status status;  // why it can not be read, naming it; whoever reads a run that needs it is told
    std::set<Rank> ranks;  // of which runs were opened that need it
    OpenVersion version;
};
// corrupt, naming them, where bytes of the rank's image are in no piece, or in two.
Status check_tiling(const OpenVersion& version, Rank rank);
inline constexpr Rank every_rank = UINT32_MAX;
// With the bases that it needs.
Task<Result<OpenVersion>> open_version(World& world, Layout layout, Manifest manifest, Rank rank, RestoreSettings settings);

// The footers of the parts of its manifest that hold any of these ranks (null: all parts).
Task<Status> open_parts(World& world, Layout layout, OpenVersion& version, const std::set<Rank>* ranks, RestoreSettings settings);

// What is wanted of one rank's image; no ranges: all of it.
struct WantedImage {
    Rank rank = 0;
    std::vector<ImageRange> ranges;
    bool operator==(const WantedImage&) const = default;
};
// One read of a part, of one run: whole units of its one piece, or the whole run, of which these pieces are wanted.
struct PartRead {
    std::size_t footer = 0;  // in OpenVersion::footers
    std::size_t run = 0;     // in the footer's runs
    std::vector<std::uint32_t> pieces;
    std::uint64_t offset = 0;  // in the run's stored bytes
    std::uint64_t length = 0;
    bool is_wanted_again = false;  // by another read with the same EncodedRuns
    bool operator==(const PartRead&) const = default;
};
// What a read gives of one of its pieces, as a run of that piece's image.
ImageRange image_run_of(const OpenVersion& version, const PartRead& read, std::uint32_t piece);
// Reads of up to a buffer that give what is wanted of any ranks, in the order of parts and of offsets; readers go round the parts (read_turns.hpp). Pure. not_found where no open part has a
// rank, corrupt where a rank's pieces are not its image.
// is_tiled: somebody has looked whether the images are all there (check_tiling), which takes a look at all their pieces.
Result<std::vector<PartRead>> plan_part_reads(const OpenVersion& version, const std::vector<WantedImage>& wanted, std::uint64_t buffer_bytes, bool is_tiled = false);
using RankSink = std::function<Status(Rank rank, std::uint64_t image_offset, Slice data)>;
// Who wants bytes of images. `take` gets verified bytes. Of units for which `memory` has room the bytes are read straight to there, right or wrong, and `landed` tells when they were right; who gets no
// ok in the end has neither.
struct Receiving {
    RankSink take;
    std::function<Slice(Rank rank, std::uint64_t image_offset, std::uint64_t length)> memory = nullptr;  // empty: not all of it goes to one place, or it is to be taken
    std::function<void(Rank rank, std::uint64_t image_offset, std::uint64_t length)> landed = nullptr;
    Receiving(RankSink sink) : take(std::move(sink)) {}
};
// corrupt names part, block, rank and region. `encoded`: for who reads piece by piece; null: of this reading alone. `bad`: what a rank's bytes can not be had for; ok
// goes on without them. None: the first ends the reading.
using OnBad = std::function<Status(Rank rank, Status why)>;
Task<Status> read_parts(World& world, Layout layout, const OpenVersion& version, std::vector<PartRead> reads, Receiving to,
                        RestoreSettings settings, EncodedRuns* encoded = nullptr, OnBad bad = {});
// Both, for ranges of one rank's image (all of it when empty).
Task<Status> restore_image(World& world, Layout layout, const OpenVersion& version, Rank rank, std::vector<ImageRange> ranges,
                           ImageSink sink, RestoreSettings settings);

// The same from a sealed image in scratch. An image whose checksums were never made (its daemon died first) has them made here
// from what scratch holds: nothing to compare with, which is scratch's limit (ARCHITECTURE.md, table of limits). corrupt, too, when the
// slot was taken for another image meanwhile: what the sink got is worth nothing then.
std::vector<ImageRange> plan_local_reads(const LocalImage& image, std::vector<ImageRange> ranges, std::uint64_t buffer_bytes);
Task<Status> read_local(World& world, const LocalImage& image, std::vector<ImageRange> reads, Receiving to, Nanos io_wait);
Task<Status> restore_local(World& world, const LocalImage& image, std::vector<ImageRange> ranges, ImageSink sink,
                           RestoreSettings settings);

// The regions that a run of an image touches, for people: "x, y", "a, b and 7 more" where they are very many, or "".
inline constexpr const char* region_index_name = "(the region index)";  // where that is touched
std::string region_at(const ImageInfo* image, std::uint64_t offset, std::uint64_t length);

// Every run of every part of a version. Calls `progress(bytes)` as it goes; collects all damage rather than stopping at the first.
struct Damage {
    std::string part;
    std::optional<std::uint64_t> block;  // in the part; of a manifest, a footer or an index there is none
    std::optional<Rank> rank;            // whose bytes they are; none where no single rank's: all that the part has are concerned
    std::string region;       // "" when between regions
    Status status;
    bool of_no_image = false;  // what a part has before its data: a restart does without
};
enum class VerifyDepth : std::uint8_t {
    stored,   // what lies on disk: of encoded runs the checksum of what is stored, which takes no codec; each unit of others
    decoded,  // and each unit of what encoded runs make
};
Task<Result<std::vector<Damage>>> verify_version(World& world, Layout layout, Manifest manifest, RestoreSettings settings,
                                                 std::function<void(std::uint64_t bytes)> progress, VerifyDepth depth = VerifyDepth::decoded);

// The same of a sealed image in scratch whose checksums are made: `part` is the slot's path, blocks are counted in the image.
Task<std::vector<Damage>> verify_local(World& world, const LocalImage& image, RestoreSettings settings,
                                       std::function<void(std::uint64_t bytes)> progress);

}  // namespace cairn
