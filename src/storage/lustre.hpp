// Lustre: a file gets its layout when it is made, by liblustreapi, which is loaded when it is there, else by the command `lfs`. A target is an OST, by the name that `lfs df` has for it,
// "testfs-OST000a": the number behind it is its index, in hex.
//
// Vertical: one stripe on one OST. Several stripes lie on OSTs that are named one by one; more stripes than OSTs are overstriped. A file for which nobody asks for a target or
// stripes is made with open(2): the directory's own layout, progressive or not, holds. A directory that takes its files from a pool offers the pool's OSTs only.
//
// Manual pages: lfs-setstripe(1), lfs-df(1), lfs-getstripe(1), llapi_layout(7), llapi_layout_file_create(3), llapi_layout_ost_index_set(3), llapi_layout_pattern_set(3).
#pragma once

#include <optional>
#include <string_view>

#include "storage/parallel_file_system.hpp"

namespace cairn {

struct LustreLayout {
    std::uint64_t stripes = 0;         // 0: as the directory has it
    bool overstriped = false;          // an OST may hold several of them
    std::uint64_t stripe_bytes = 0;    // a multiple of 64 KiB; 0: as the directory has it
    std::vector<std::uint32_t> osts;   // by index; none: any; one: the first of them; as many as stripes: these
    bool operator==(const LustreLayout&) const = default;
};
// invalid_argument: a target that is no OST.
Result<LustreLayout> lustre_layout(const Placing& placing);
Words lustre_create_words(const std::string& path, const LustreLayout& layout);
std::optional<std::uint32_t> ost_index(std::string_view name);

struct Ost {
    TargetRoom room;
    bool takes_files = true;
    bool operator==(const Ost&) const = default;
};
// What `lfs df` prints of one file system.
Result<std::vector<Ost>> osts_of_df(std::string_view printed);
// What `lfs getstripe --yaml` prints of a file: the indices, each once.
std::vector<std::uint32_t> osts_of_getstripe(std::string_view printed);
// What `lfs getstripe --directory --pool` prints: empty where it has none, or several (a progressive layout).
std::string pool_of_getstripe(std::string_view printed);

}  // namespace cairn
