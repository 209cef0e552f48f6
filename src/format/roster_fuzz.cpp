// Fuzz target: rosters, node records and those of I/O nodes.
#include "format/fuzz.hpp"
#include "format/roster.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    const ByteView bytes = std::as_bytes(std::span(data, size));
    fuzz::record(FrameKind::roster, bytes, encode_roster, decode_roster);
    fuzz::record(FrameKind::node, bytes, encode_node_record, decode_node_record);
    fuzz::record(FrameKind::io_node, bytes, encode_io_node_record, decode_io_node_record);
    return 0;
}
