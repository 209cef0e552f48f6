// What Describer and cairn-describer say to each other over a socket: a head of 16 bytes, then as many bytes as it says. Both run on one machine, so numbers are as they are there.
//
// Pure. The program is believed in nothing: it may have lost its mind over a damaged file.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "describe/extent.hpp"

namespace cairn::describer {

struct Head {
    std::uint32_t code = 0;  // of an answer: Code
    std::uint64_t bytes = 0;
};
inline constexpr std::size_t head_bytes = 16;
inline constexpr std::uint64_t request_bytes_max = 8 << 10, answer_bytes_max = 32 << 20;

struct Request {
    std::string path;
    std::uint64_t offset = 0, length = 0;  // of the file in it
    std::uint64_t limit_ms = 0;
};

// With their heads.
Bytes request_bytes(const Request& request);
Bytes answer_bytes(const Result<std::vector<Extent>>& answer);

// corrupt: nonsense, or too long.
Result<Head> request_head(ByteView bytes);
Result<Head> answer_head(ByteView bytes);
Result<Request> read_request(ByteView body);
// Of an answer that says ok; of another one the body is a text.
Result<std::vector<Extent>> read_extents(ByteView body);

}  // namespace cairn::describer
