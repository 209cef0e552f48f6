// Fuzz target: headers of image slots.
#include "format/fuzz.hpp"
#include "format/image.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    const ByteView bytes = std::as_bytes(std::span(data, size));
    // Another encoder may have needed fewer bytes than ours: the places move, so that ours fits before them.
    const auto encode_moved = [](ImageHeader& header) {
        const std::uint64_t end = image_header_offset + encode_image_header(header).size();
        if (header.checksums_offset < end && header.data_offset < bytes_max - (1ull << 40)) {
            header.checksums_offset += round_up(end, 4096);
            header.data_offset += round_up(end, 4096);
        }
        return encode_image_header(header);
    };
    const auto try_bytes = [&](ByteView view) {
        auto value = decode_image_header(view);
        if (!value.ok())
            return fuzz::expect(value.code() == Code::corrupt || value.code() == Code::unsupported,
                                "refused with a wrong code");
        fuzz::comes_back(encode_moved(*value), encode_image_header, decode_image_header);
        fuzz::expect(decode_image_header(encode_moved(*value)).ok(), "what was read can not be read again");
    };
    try_bytes(bytes);
    try_bytes(frame(FrameKind::image, bytes));
    if (bytes.size() > frame_header_bytes) try_bytes(frame(FrameKind::image, bytes.subspan(frame_header_bytes)));
    return 0;
}
