// Fuzz target: files of every format. Any bytes are refused, or described within themselves.
#include <cstdio>
#include <cstdlib>

#include "describe/file.hpp"
#include "describe/hdf5_signature.hpp"

namespace {

void expect(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    const ByteView file = std::as_bytes(std::span(data, size));
    hdf5_begins(file);
    const Result<Description> described = describe_file(file);
    if (!described.ok()) {
        expect(described.code() == Code::corrupt || described.code() == Code::unsupported, "refused with a wrong code");
        return 0;
    }
    std::uint64_t end = 0;
    expect(described->extents.size() <= extents_max, "more extents than are allowed");
    for (const Extent& extent : described->extents) {
        expect(extent.offset >= end && extent.length > 0 && extent.offset <= size && extent.length <= size - extent.offset, "an extent over another, or outside of the file");
        expect(bytes_of(extent.type, extent.shape) == extent.length, "a shape of another length");
        end = extent.offset + extent.length;
    }
    for (const NameRule rule : {NameRule::groups, NameRule::all, NameRule::exact}) arrays_of(described->extents, rule);
    return 0;
}
