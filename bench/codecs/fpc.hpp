// FPC, from its publication: M. Burtscher and P. Ratanaworabhan, "FPC: A High-Speed Compressor for Double-Precision Floating-Point Data", IEEE Transactions on Computers 58 (1), 2009.
// A reference to measure against, and nothing that Cairn stores.
//
// Each double is predicted twice, from what followed the last time that values (FCM) or their differences (DFCM) looked like the latest ones. The better prediction is XORed to it, and of the
// result the leading zero bytes are left out. Four bits a double say which prediction it was, and how many bytes were left out: 0 to 3 or 5 to 8, since 4 are rare.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"

namespace cairn::bench {

// Tables of 2^level entries each. Appends to `into`; what is no whole double at the end stays as it is.
void encode_fpc(ByteView raw, unsigned level, Bytes& into);
// All of `into`, from what encode_fpc() made; false where that makes other than so many bytes.
bool decode_fpc(ByteView stored, std::span<std::byte> into);

}  // namespace cairn::bench
