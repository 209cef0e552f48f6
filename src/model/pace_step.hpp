// What is done with bytes that move. It decides which limits they come under and whether they wait for them (engine/pace.hpp).
#pragma once

#include <cstdint>

namespace cairn {

enum class PaceStep : std::uint8_t {
    fetch,
    gather,  // into a buffer, of this node's own images: nothing of it goes through the card
    serve,
    serve_at_once,  // for whom the application waits: it counts against the limits, and waits for none
    write_received,
    write_local,
};

}  // namespace cairn
