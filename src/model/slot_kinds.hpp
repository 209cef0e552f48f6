// Kinds of slots: what a file of scratch's images/ is for. Its name tells the kind, WORD-NUMBER (format/names.hpp makes and reads it); its bytes need not. A new
// kind is a row here, and whoever writes it. Daemons of other releases read the words: one that was given is never given again, for anything else. A file of a
// kind that is not here was left by another release: it stays as it is, and is told (copies/scratch.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cairn {

enum class SlotKind : std::uint8_t {
    image,  // one rank's image, as its own node captured it
};

// What a daemon that starts does with those that it finds.
enum class SlotAtStart : std::uint8_t {
    take_image,  // what is sealed is flushed on; what is not is removed: whoever wrote it may be alive, and still be writing
};

struct SlotKindRow {
    SlotKind kind;
    std::string_view word;  // lower-case letters
    SlotAtStart at_start;
};
inline constexpr std::array<SlotKindRow, 1> slot_kinds = {{
    {SlotKind::image, "slot", SlotAtStart::take_image},
}};

constexpr const SlotKindRow& row_of(SlotKind kind) { return slot_kinds[static_cast<std::size_t>(kind)]; }
constexpr bool slot_kinds_in_order() {
    for (std::size_t i = 0; i < slot_kinds.size(); ++i)
        if (static_cast<std::size_t>(slot_kinds[i].kind) != i) return false;
    return true;
}
static_assert(slot_kinds_in_order());

}  // namespace cairn
