// Levels: how far a version is, and so where it can be had from. They are in the order in which a version reaches them. A new one (a copy on another node) is
// a number and a row here, and the step that reaches it; on disk there are none, so numbers may move with the protocol between a program and its daemon.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cairn {

enum class Level : std::uint8_t {
    none,       // not heard of
    captured,   // sealed by some or all ranks of this node
    sealed,     // sealed by every rank of the job
    committed,  // its manifest is durable
};

struct LevelRow {
    Level level;
    std::string_view name;     // as commands print it
    std::string_view reached;  // "version 7 is not yet ..."
};
inline constexpr std::array<LevelRow, 4> levels = {{
    {Level::none, "none", "known"},
    {Level::captured, "captured", "captured"},
    {Level::sealed, "sealed", "sealed by all ranks"},
    {Level::committed, "committed", "committed"},
}};
inline constexpr Level highest_level = levels.back().level;

constexpr const LevelRow& row_of(Level level) { return levels[static_cast<std::size_t>(level)]; }
constexpr std::optional<Level> level_of(std::uint64_t number) {
    if (number >= levels.size()) return std::nullopt;
    return levels[number].level;
}
constexpr bool levels_in_order() {
    for (std::size_t i = 0; i < levels.size(); ++i)
        if (static_cast<std::size_t>(levels[i].level) != i) return false;
    return true;
}
static_assert(levels_in_order());

}  // namespace cairn
