// Plain values: what a checkpoint is made of. No behaviour but equality; no I/O, no encoding.
// The words are the glossary's (ARCHITECTURE.md): checkpoint, version, incarnation, attempt, image, region, run, part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace cairn {

using Rank = std::uint32_t;
using NodeIndex = std::uint32_t;  // position of a node in its job's roster, 0..C-1
using Version = std::uint64_t;    // 1 and up

enum class DataType : std::uint8_t {
    bytes = 0, i8 = 1, u8 = 2, i16 = 3, u16 = 4, i32 = 5, u32 = 6, i64 = 7, u64 = 8,
    f16 = 9, bf16 = 10, f32 = 11, f64 = 12, c64 = 13, c128 = 14,
};
inline constexpr DataType data_type_last = DataType::c128;
std::uint64_t type_bytes(DataType type) noexcept;
const char* type_name(DataType type) noexcept;

// How the bytes of a region came about.
enum class RegionKind : std::uint8_t { memory = 0, callback = 1, file = 2 };

// What the application says of a region that Cairn can not see into: an array of numbers lies there. Codecs make use of it, and nobody else.
inline constexpr std::uint64_t open_axis = UINT64_MAX;
struct DescribedArray {
    std::string name;                 // may be empty
    DataType type = DataType::bytes;  // of numbers
    bool is_big_endian = false;
    std::vector<std::uint64_t> shape;  // row-major; open_axis, at most once: as many as there are
    std::uint64_t offset = 0;          // in the region, bytes
    bool operator==(const DescribedArray&) const = default;
};

// A named, typed piece of one image. `shape` is row-major; callback and file regions have type bytes and one dimension.
struct Region {
    std::string name;
    RegionKind kind = RegionKind::memory;
    DataType type = DataType::bytes;
    std::vector<std::uint64_t> shape;
    std::uint64_t offset = 0;  // in the image, bytes
    std::uint64_t length = 0;  // bytes
    // Of a block of an array that all ranks have together; else both are empty. As many dimensions as the shape, in elements.
    std::vector<std::uint64_t> global_shape;
    std::vector<std::uint64_t> global_offset;  // where the block begins in it
    std::vector<DescribedArray> described;     // of a region of bytes, in the order in which it was said
    bool operator==(const Region&) const = default;
};

// How a version's images are put together in files. One layout for all parts of a version.
enum class FileLayout : std::uint8_t {
    parts,  // as many as were asked for
    ranks,  // one a rank, which has its number
    nodes,  // one a node that has ranks, which has its number
    tensors,  // as many as were asked for, each with whole images, and each a safetensors file
};
// Whether a file has one owner, the rank's node or the node, whose images it holds and no others.
constexpr bool has_owners(FileLayout layout) noexcept { return layout == FileLayout::ranks || layout == FileLayout::nodes; }

// What names one version of one series in one lineage. Everything Cairn stores or sends carries it (rule 1, identity).
struct VersionKey {
    std::string name;
    Version version = 0;
    Id128 incarnation;
    auto operator<=>(const VersionKey&) const = default;
};
// As messages to people name it: "melt version 3", and "melt version 3 rank 2" of one rank's image.
std::string version_text(const std::string& name, Version version);
inline std::string version_text(const VersionKey& key) { return version_text(key.name, key.version); }
std::string image_text(const VersionKey& key, Rank rank);

// Where an incarnation came from: none for a fresh start.
struct Parent {
    Id128 incarnation;
    Version version = 0;
    bool operator==(const Parent&) const = default;
};

// One rank's bytes in one version, without the bytes.
struct ImageInfo {
    Rank rank = 0;
    std::uint64_t bytes = 0;
    std::vector<Region> regions;
    std::uint64_t cuts = 0;  // how many there are besides its blocks (checksum_units.hpp)
    std::uint64_t index_bytes = 0;  // its last bytes are its region index (format/region_index.hpp): `regions` are empty until somebody has read it. 0: they are told beside the image
    std::uint64_t naming_bytes = 0;  // of a job whose parts are safetensors files: what its tensors take in the header of one, at most (format/safetensors.hpp)
    bool operator==(const ImageInfo&) const = default;
};

// Raw bytes of one image that a stored run holds: whole checksum units (checksum_units.hpp).
struct StoredPiece {
    Rank rank = 0;
    std::uint64_t image_offset = 0;
    std::uint64_t length = 0;
    std::uint64_t at = 0;                  // in the run's raw bytes
    std::vector<std::uint64_t> checksums;  // one a unit, of the raw bytes
    std::vector<std::uint64_t> cuts;       // where its units end besides blocks: in the image, within the piece
    bool operator==(const StoredPiece&) const = default;
};

// A run of a part: bytes of one or more images laid end to end, stored as they are or encoded as one.
struct StoredRun {
    std::uint64_t part_offset = 0;  // a multiple of part_alignment, or where the run before it ends
    std::uint64_t stored_bytes = 0;
    std::uint32_t codec = 0;     // 0: the raw bytes; else 1 + place in the footer's codecs
    std::uint64_t checksum = 0;  // of the stored bytes; 0 with codec 0, where those of the pieces are all that is needed
    std::vector<StoredPiece> pieces;
    std::uint32_t base = 0;  // 0: it stands alone; else 1 + place in the footer's bases, without which it can not be decoded
    bool operator==(const StoredRun&) const = default;
};
inline constexpr std::uint64_t part_alignment = 4096;  // of runs in a part: what direct I/O needs, and the smallest block

std::uint64_t raw_bytes(const StoredRun& run) noexcept;

// How a run was encoded: a name and what belongs to it, as its writer said.
struct CodecName {
    std::string name;
    std::string parameters;
    bool operator==(const CodecName&) const = default;
};

// An older version of the same series, some of whose parts a newer one needs: it is not removed before that one.
struct BaseVersion {
    Version version = 0;
    Id128 incarnation;
    bool operator==(const BaseVersion&) const = default;
};

// What a run is encoded against: with part and part_offset 0 the bytes that its pieces have in the images of an older version; no codec is known that takes a run of one.
struct BaseRun {
    BaseVersion of;
    std::uint32_t part = 0;
    std::uint64_t part_offset = 0;
    bool operator==(const BaseRun&) const = default;
};

// The tail of a part: everything needed to list, verify and extract it on its own.
struct Footer {
    VersionKey key;
    std::uint32_t attempt = 0;
    Id128 attempt_id;
    std::uint32_t part = 0;   // 0..parts-1
    std::uint32_t parts = 0;  // K
    std::uint32_t ranks = 0;  // of the whole version
    std::uint64_t block_bytes = 0;
    std::uint64_t prefix_bytes = 0;     // the first of the part, which are of no image: what another format begins with
    std::uint64_t prefix_checksum = 0;  // of these; 0 where there are none
    std::uint64_t data_bytes = 0;       // prefix and runs: up to the footer, which starts on a multiple of part_alignment, or all of the part where that is beside it
    std::vector<ImageInfo> images;  // of every rank with a piece here, and of those with zero bytes assigned here
    std::vector<CodecName> codecs;  // of its runs
    std::vector<BaseRun> bases;     // of its runs
    std::vector<StoredRun> runs;    // by part_offset
    bool operator==(const Footer&) const = default;
};

// What a manifest says of one part.
struct PartInfo {
    std::string file;  // name within its version's directory below its root
    std::uint64_t bytes = 0;
    std::uint64_t footer_offset = 0;  // in the file that has the footer
    std::uint64_t footer_checksum = 0;
    std::vector<Rank> ranks;  // with pieces or images here that are this version's, increasing
    std::uint32_t root = 0;   // persistent; else 1 + place in the manifest's roots
    std::uint32_t origin = 0;  // whose part it is: this version's; else 1 + place in the manifest's bases
    std::uint64_t index_bytes = 0;  // of the file beside it that has the footer; 0: the part ends in it
    bool operator==(const PartInfo&) const = default;
};

// What a manifest says but for its parts: who reads no more of it needs only its start.
struct ManifestFacts {
    VersionKey key;
    std::uint64_t epoch = 0;
    Parent parent;
    Id128 attempt_id;
    bool abandoned = false;
    std::uint32_t ranks = 0;
    std::uint32_t nodes = 0;
    std::uint64_t image_bytes = 0;  // all ranks together
    std::uint64_t block_bytes = 0;
    std::uint64_t wall_time_s = 0;  // since 1970, for people; nothing depends on it
    std::vector<BaseVersion> bases;
    std::vector<std::string> roots;  // besides persistent, where files of this incarnation's attempts at it may lie; a tombstone names some of them (FORMAT.md)
    std::vector<std::string> node_targets;  // the storage target that the files of each node with ranks were meant for, where each rank or node has one; none: nobody chose
    bool operator==(const ManifestFacts&) const = default;
};

// The commit record of one version. An abandoned one is a tombstone: it fences a late publisher out (rule 3).
struct Manifest : ManifestFacts {
    std::vector<PartInfo> parts;  // its own, in order; then those of its bases
    std::optional<Rank> of_rank;  // of that rank are its parts; none: it is whole
    bool operator==(const Manifest&) const = default;
};

// The header of an image in scratch. Invalid while being written; sealed last.
struct ImageHeader {
    VersionKey key;
    std::uint64_t epoch = 0;
    Parent parent;
    Rank rank = 0;
    std::uint32_t ranks = 0;
    std::uint64_t block_bytes = 0;
    std::uint64_t data_offset = 0;      // in the slot file, where byte 0 of the image lies
    std::uint64_t checksums_offset = 0; // in the slot file: one u64 a unit, valid when checksummed; behind them the cuts
    bool checksummed = false;
    ImageInfo image;
    std::vector<std::uint64_t> cuts;    // image.cuts of them; the slot keeps them beside the header, not in it
    bool operator==(const ImageHeader&) const = default;
};

// A node of a job, as the roster names it.
struct Member {
    std::string node;     // host name, or CAIRN_NODE
    std::string address;  // of its daemon, as the network prints it
    std::vector<Rank> ranks;
    bool operator==(const Member&) const = default;
};

// Who takes part in one incarnation of one series; kept in scratch and under persistent (mode 0600: it holds the secret).
struct Roster {
    std::string name;
    Id128 incarnation;
    Id128 secret;
    std::uint64_t epoch = 0;
    Parent parent;
    std::uint32_t ranks = 0;
    std::uint32_t files = 0;  // K
    std::vector<Member> members;
    std::uint32_t format = 1;  // of the files and messages of this job: what all its members knew when it was opened
    std::vector<std::string> roots = {};  // below which its parts go, each a target; none: they go below persistent
    FileLayout layout = FileLayout::parts;
    bool operator==(const Roster&) const = default;
};

// The node whose daemon plans a job's versions and publishes their manifests. A version can not be committed without that node's images anyway, so there is
// nothing to win from choosing another one when it is away. Nobody else names a node by its number.
NodeIndex coordinator_of(const Roster& roster);

// A version of which a node knows something, and not yet how it ends.
struct Undecided {
    VersionKey key;
    std::uint64_t epoch = 0;  // of the open that took it
    Parent parent;
    std::uint32_t ranks = 0;
};

}  // namespace cairn
