// Messages between daemons, as bytes. Decoding never allocates more than a small multiple of what came in.
#pragma once

#include "base/status.hpp"
#include "model/messages.hpp"

namespace cairn {

// Texts beyond text_bytes_max are cut.
Bytes encode(const message::Message& message);
Result<message::Message> decode_message(ByteView bytes);

}  // namespace cairn
