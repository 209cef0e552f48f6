// The control protocol as bytes: what clients and their daemon say over the daemon's socket (model/control.hpp).
//
// A frame is a header of 12 bytes, the payload's length (u32) and the request's number (u64, little-endian), then the
// payload (FlatBuffers). The answer carries the number of its request. A length above control_payload_bytes_max, or a
// payload that does not decode, ends the connection: after it nothing on the stream can be trusted.
#pragma once

#include "base/status.hpp"
#include "format/names.hpp"
#include "model/control.hpp"

namespace cairn {

inline constexpr std::size_t control_header_bytes = 12;
inline constexpr std::uint32_t control_payload_bytes_max = 64u << 20;
inline constexpr std::size_t control_path_bytes_max = 4095;  // PATH_MAX without its NUL

struct ControlHeader {
    std::uint32_t payload_bytes = 0;
    std::uint64_t number = 0;
};
// corrupt when the length is zero or above the bound. `header` has control_header_bytes.
Result<ControlHeader> decode_control_header(ByteView header);

// Whole frames, header and payload. Texts beyond text_bytes_max are cut. A payload above the bound is a programmer's
// error.
Bytes encode_control(std::uint64_t number, const control::Request& request);
Bytes encode_control(std::uint64_t number, const control::Answer& answer);

// Payloads, without their header. corrupt says which field is not what it may be.
Result<control::Request> decode_control_request(ByteView payload);
Result<control::Answer> decode_control_answer(ByteView payload);

}  // namespace cairn
