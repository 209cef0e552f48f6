// Fuzz target: the control protocol, requests and answers.
#include "format/control.hpp"
#include "format/fuzz.hpp"

namespace {

using namespace cairn;

// The control values have no equality; their encodings do.
template <class Decode>
void payload(ByteView bytes, Decode decode_value) {
    const auto value = decode_value(bytes);
    if (!value.ok()) return;
    const Bytes encoded = encode_control(7, *value);
    const auto again = decode_value(ByteView(encoded).subspan(control_header_bytes));
    fuzz::expect(again.ok(), "what was read can not be read again");
    fuzz::expect(encode_control(7, *again) == encoded, "what was read comes back otherwise");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const ByteView bytes = std::as_bytes(std::span(data, size));
    payload(bytes, decode_control_request);
    payload(bytes, decode_control_answer);
    if (size < control_header_bytes) return 0;
    const auto header = decode_control_header(bytes.first(control_header_bytes));
    if (header.ok())
        fuzz::expect(header->payload_bytes > 0 && header->payload_bytes <= control_payload_bytes_max, "payload length");
    payload(bytes.subspan(control_header_bytes), decode_control_request);
    payload(bytes.subspan(control_header_bytes), decode_control_answer);
    return 0;
}
