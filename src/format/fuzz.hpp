// What every fuzz target of a framed record checks: any bytes are refused, or are a value that comes back the same.
// Each input is tried as it is, and as the body of a frame, so that the fuzzer need not guess checksums.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "format/frame.hpp"

namespace cairn::fuzz {

inline void expect(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

template <class Encode, class Decode>
void comes_back(ByteView bytes, Encode encode_value, Decode decode_value) {
    const auto value = decode_value(bytes);
    if (!value.ok())
        return expect(value.code() == Code::corrupt || value.code() == Code::unsupported, "refused with a wrong code");
    const auto again = decode_value(encode_value(*value));
    expect(again.ok(), "what was read can not be read again");
    expect(*again == *value, "what was read comes back otherwise");
}

template <class Encode, class Decode>
void record(FrameKind kind, ByteView bytes, Encode encode_value, Decode decode_value) {
    comes_back(bytes, encode_value, decode_value);
    comes_back(frame(kind, bytes), encode_value, decode_value);
    // A golden file as the seed: its body, whose header the fuzzer's changes made wrong.
    if (bytes.size() > frame_header_bytes)
        comes_back(frame(kind, bytes.subspan(frame_header_bytes)), encode_value, decode_value);
}

}  // namespace cairn::fuzz
