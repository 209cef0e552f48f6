// Reasons: why somebody asks a follower for a range of an image. The follower serves all of them in the same way; the reason decides how far that gives way to the
// application, and whether anybody wants the bytes once the version has ended. A new one is a number and a row here, and whoever asks for it. Numbers travel between daemons (Want), so one that was given is never given again.
// A daemon that does not know a number says so in its answer (follower/serve.cpp).
#pragma once

#include <array>
#include <cstdint>

#include "model/pace_step.hpp"

namespace cairn {

enum class Reason : std::uint8_t {
    flush = 0,    // a leader writes it into a part
    restart = 1,  // a rank on another node restores it, and the application waits
};

struct ReasonRow {
    Reason reason;
    PaceStep pace;
    bool ends_with_version;
};
inline constexpr std::array<ReasonRow, 2> reasons = {{
    {Reason::flush, PaceStep::serve, true},
    {Reason::restart, PaceStep::serve_at_once, false},
}};

// Null: not known here.
constexpr const ReasonRow* row_of(Reason reason) {
    const auto number = static_cast<std::size_t>(reason);
    return number < reasons.size() ? &reasons[number] : nullptr;
}
constexpr bool reasons_in_order() {
    for (std::size_t i = 0; i < reasons.size(); ++i)
        if (static_cast<std::size_t>(reasons[i].reason) != i) return false;
    return true;
}
static_assert(reasons_in_order());

}  // namespace cairn
