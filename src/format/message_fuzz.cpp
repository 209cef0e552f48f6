// Fuzz target: messages between daemons.
#include "format/fuzz.hpp"
#include "format/message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    const ByteView bytes = std::as_bytes(std::span(data, size));
    fuzz::record(
        FrameKind::message, bytes, [](const message::Message& m) { return encode(m); }, decode_message);
    return 0;
}
