// Fuzz target: manifests.
#include "format/fuzz.hpp"
#include "format/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    const ByteView bytes = std::as_bytes(std::span(data, size));
    fuzz::record(FrameKind::manifest, bytes, encode_manifest, decode_manifest);
    return 0;
}
