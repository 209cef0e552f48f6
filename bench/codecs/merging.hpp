// The four ways in which mcrEngine merges the checkpoints of several processes (SC12, Section III-B), as pure functions: from what lies where in the files to what lies where in the
// merged streams, and from streams back to files.
//
// agnostic: whole files one after the other, in the order of ranks. agnostic-block: blocks of one size of each file in turn. aware: the arrays that have one key, in the order of ranks;
// what is in no array is a key of its own. aware-block: the same, blocks of each array in turn.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace cairn::bench {

enum class Scheme : std::uint8_t { agnostic = 0, agnostic_block = 1, aware = 2, aware_block = 3 };
inline constexpr Scheme schemes[] = {Scheme::agnostic, Scheme::agnostic_block, Scheme::aware, Scheme::aware_block};
const char* scheme_name(Scheme scheme);
inline bool is_aware(Scheme scheme) { return scheme == Scheme::aware || scheme == Scheme::aware_block; }
inline bool is_blocked(Scheme scheme) { return scheme == Scheme::agnostic_block || scheme == Scheme::aware_block; }

struct ArrayPlace {
    std::uint64_t offset = 0, length = 0;  // in its file, bytes; by offset, none over another
    std::uint32_t key = 0;                 // which of the keys of all files
    bool operator==(const ArrayPlace&) const = default;
};
struct FilePlace {
    std::uint64_t bytes = 0;
    std::vector<ArrayPlace> arrays;
    bool operator==(const FilePlace&) const = default;
};

// All that is needed to put the files together again, beside the streams. `block_bytes` counts for the schemes with blocks; `is_padded`: the last block of each array is filled up with zeros.
struct Layout {
    Scheme scheme = Scheme::agnostic;
    std::uint64_t block_bytes = 0;
    bool is_padded = false;
    std::vector<FilePlace> files;
    bool operator==(const Layout&) const = default;
};

inline constexpr std::uint32_t no_array = UINT32_MAX;
struct Piece {
    std::uint32_t file = 0, array = no_array;  // which array of the file it is of; no_array: of none, or of a whole file
    std::uint64_t file_offset = 0, length = 0, stream_offset = 0;
};
struct StreamPlan {
    bool is_skeleton = false;
    std::uint32_t key = 0;
    std::uint64_t bytes = 0;
    std::vector<Piece> pieces;
};
std::vector<StreamPlan> plan_of(const Layout& layout);

// Of all streams, with their padding.
std::uint64_t merged_bytes(const std::vector<StreamPlan>& plan);

Bytes encode_layout(const Layout& layout);
std::optional<Layout> decode_layout(ByteView bytes);  // believed in nothing

// All streams, one behind the other; `into` has merged_bytes() and is zero where padding will be.
void merge(const std::vector<StreamPlan>& plan, std::span<const ByteView> files, std::span<std::byte> into);
// Nothing where the streams are not as long as the layout says.
std::optional<std::vector<Bytes>> split(const Layout& layout, std::span<const ByteView> streams);

}  // namespace cairn::bench
