// Names of checkpoints, regions and files. A name that passes here can not leave its directory (rule 11).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "format/limits.hpp"
#include "model/slot_kinds.hpp"
#include "model/types.hpp"

namespace cairn {

// Checkpoint and node names: 1 to 128 of [A-Za-z0-9._-], not starting with '.'.
bool valid_name(std::string_view name) noexcept;
Status check_name(std::string_view name);  // invalid_argument that says what is wrong and what is allowed

// Region names, and the paths of routed files, which become files again on extraction: 1 to 512 bytes of UTF-8 without
// control characters, components separated by '/', none of them empty, "." or "..".
bool valid_region_name(std::string_view name) noexcept;
Status check_region_name(std::string_view name);

// UTF-8 without control characters, at most length_max bytes of it; may be empty. For addresses and host names.
bool printable(std::string_view text, std::size_t length_max) noexcept;

// The file names of a version's parts begin with these words, by its FileLayout.
inline constexpr std::string_view layout_words[] = {"part", "rank", "node", "tensors"};

// "part-0003-of-0016.<32 hex digits>", and ".2" behind it where it is the second that took the place of one on a target that had died; part counts from 0.
// Numbers of more than four digits are written in full. What is a safetensors file ends in ".safetensors", by which other programs know it.
struct PartFileName {
    std::uint32_t part = 0;
    std::uint32_t parts = 0;
    Id128 attempt_id;
    FileLayout layout = FileLayout::parts;
    std::uint32_t replacement = 0;  // 0: the first
    bool operator==(const PartFileName&) const = default;
};
std::string part_file_name(const PartFileName& name);
std::string part_file_name(std::uint32_t part, std::uint32_t parts, Id128 attempt_id);
std::optional<PartFileName> parse_part_file_name(std::string_view file);

// "<part>.index": a part's footer and trailer, where they do not end the part itself.
std::string part_index_file_name(std::string_view part_file);
std::optional<PartFileName> parse_part_index_file_name(std::string_view file);
// The path of a part, also under the name that it is made by so that it lands on a target (storage/targets.hpp).
bool is_part_path(std::string_view path);
// Either of the two: what a manifest may name, and nothing else of an attempt.
bool is_part_file(std::string_view file);

// The index of a version whose parts are safetensors files, as other programs call it.
inline constexpr std::string_view safetensors_index_name = "model.safetensors.index.json";

// "manifest.<32 hex digits>"
std::string manifest_file_name(Id128 incarnation);
std::optional<Id128> parse_manifest_file_name(std::string_view file);

// "7": the directory of a version.
std::string version_directory_name(Version version);
std::optional<Version> parse_version_directory_name(std::string_view directory);

// "0000000007.open" and "0000000007.from" in the lineage directory.
std::string lineage_open_name(std::uint64_t epoch);
std::string lineage_from_name(std::uint64_t epoch);
std::optional<std::uint64_t> parse_lineage_open_name(std::string_view file);
std::optional<std::uint64_t> parse_lineage_from_name(std::string_view file);
// "NAME.damaged-<32 hex digits>": what `cairn repair`, a removal or a daemon put aside, which nobody reads.
std::string aside_name(std::string_view name, Id128 unique);
bool is_aside_name(std::string_view name);
// The epoch that a name in the lineage directory says is taken: a record's, or that of one put aside.
std::optional<std::uint64_t> parse_epoch_taken(std::string_view file);

// ".tmp-<32 hex digits>": a file being written under a name nobody looks for, then published. Who finds an old one may
// remove it. In a version's directory `unique` is the attempt of a manifest, whose first half tells the incarnation:
// without this name that attempt can not publish any more.
std::string temporary_file_name(Id128 unique);
std::optional<Id128> parse_temporary_file_name(std::string_view file);

// "slot-1717171717171": a file of scratch's images/. The word is the kind's (model/slot_kinds.hpp), the number tells it from others of its kind. Nothing for
// what has another name: a kind of another release, or a stranger's file.
struct SlotFileName {
    SlotKind kind = SlotKind::image;
    std::uint64_t number = 0;
    bool operator==(const SlotFileName&) const = default;
};
std::string slot_file_name(SlotKind kind, std::uint64_t number);
std::optional<SlotFileName> parse_slot_file_name(std::string_view file);

// The attempt that a part, its index or an unpublished manifest of a version's directory belongs to.
std::optional<Id128> parse_attempt_of(std::string_view file);

}  // namespace cairn
