// Fuzz target: the index of an image's directory trees.
#include "format/fuzz.hpp"
#include "format/tree_index.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    fuzz::record(FrameKind::trees, std::as_bytes(std::span(data, size)), encode_tree_index, decode_tree_index);
    return 0;
}
