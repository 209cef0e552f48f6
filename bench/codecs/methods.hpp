// What can be done to the bytes of one merged stream, and undone: the compressors of the paper, what has come since, and nothing of Cairn's own.
// Each tells in its bytes all that its way back needs, but how many bytes come out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "model/types.hpp"

namespace cairn::bench {

// Consecutive arrays of one shape: `fields` of them, x changing fastest.
struct Grid {
    std::uint64_t x = 0, y = 1, z = 1, fields = 1;
    std::uint64_t count() const { return x * y * z * fields; }
};

struct StreamView {
    ByteView bytes;
    DataType type = DataType::bytes;  // of all of it; bytes: of no known type, or of several
    bool is_whole_files = false;      // of the agnostic schemes
    std::uint64_t largest_array = 0;  // of one process, bytes
    std::vector<Grid> grids;          // of f32 and f64: together they are all of it
};

enum class Method : std::uint8_t { raw, gzip, lz4, zstd, fpc_2, fpc_16, fpzip_line, fpzip_shape, shuffle_lz4, shuffle_zstd, difference_shuffle_zstd };
inline constexpr std::size_t method_count = 11;
// The library that it takes and this program was built without; else nothing.
const char* lacks(Method method);

// Appends; false where it can not.
bool encode(Method method, const StreamView& stream, Bytes& into);
bool decode(Method method, ByteView stored, std::span<std::byte> into);

Bytes gzip_6(ByteView raw);
bool gunzip(ByteView stored, Bytes& raw);  // raw has the size already

}  // namespace cairn::bench
