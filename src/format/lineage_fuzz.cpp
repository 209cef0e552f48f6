// Fuzz target: records of the lineage directory.
#include "format/fuzz.hpp"
#include "format/lineage.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    const ByteView bytes = std::as_bytes(std::span(data, size));
    fuzz::record(FrameKind::open, bytes, encode_open_record, decode_open_record);
    fuzz::record(FrameKind::from, bytes, encode_from_record, decode_from_record);
    return 0;
}
