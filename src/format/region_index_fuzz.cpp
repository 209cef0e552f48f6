// Fuzz target: the region index of an image.
#include "format/fuzz.hpp"
#include "format/region_index.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    constexpr std::uint64_t data_bytes = 1 << 20;
    const auto regions = decode_region_index(std::as_bytes(std::span(data, size)), data_bytes);
    if (!regions.ok()) {
        fuzz::expect(regions.code() == Code::corrupt, "refused with a wrong code");
        return 0;
    }
    const auto again = decode_region_index(encode_region_index(*regions).bytes, data_bytes);
    fuzz::expect(again.ok() && *again == *regions, "what was read does not come back");
    return 0;
}
