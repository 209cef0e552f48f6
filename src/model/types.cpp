// Sizes and names of data types, and how versions are named.
#include "model/types.hpp"

#include <algorithm>

namespace cairn {

namespace {
struct TypeRow { const char* name; std::uint64_t bytes; };
constexpr TypeRow rows[] = {{"bytes", 1}, {"i8", 1}, {"u8", 1}, {"i16", 2}, {"u16", 2}, {"i32", 4}, {"u32", 4}, {"i64", 8},
                            {"u64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"c64", 8}, {"c128", 16}};
}  // namespace

std::uint64_t type_bytes(DataType type) noexcept { return rows[static_cast<std::size_t>(type)].bytes; }
const char* type_name(DataType type) noexcept { return rows[static_cast<std::size_t>(type)].name; }

std::uint64_t raw_bytes(const StoredRun& run) noexcept {
    std::uint64_t end = 0;
    for (const StoredPiece& piece : run.pieces) end = std::max(end, piece.at + piece.length);
    return end;
}

NodeIndex coordinator_of(const Roster&) { return 0; }
std::string version_text(const std::string& name, Version version) { return name + " version " + std::to_string(version); }
std::string image_text(const VersionKey& key, Rank rank) { return version_text(key) + " rank " + std::to_string(rank); }

}  // namespace cairn
