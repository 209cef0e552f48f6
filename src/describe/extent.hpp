// An extent: a stretch of a file's bytes of which the file itself says that it is one variable, or a piece of one. What lies in no extent is skeleton.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/name_rule.hpp"
#include "model/number_array.hpp"
#include "model/types.hpp"

namespace cairn {

// What an extent's shape says to a person. Codecs look at bytes and strides alone.
enum class ExtentAxes : std::uint8_t {
    as_named,   // they are the array's, as its file says them
    reordered,  // the array's numbers lie in another order than its axes: Fortran's, or of a transposed tensor; the shape is that of the bytes
    piece,      // of a part of the array: a chunk
    records,    // of words of records of several fields, which are no numbers of the array's
};
inline constexpr ExtentAxes extent_axes_last = ExtentAxes::records;

struct Extent {
    std::string name;                  // with the groups above it, "/" between them
    DataType type = DataType::bytes;   // bytes: known to be data, and in no way that tells anything of the next byte (compressed by the format itself, records of several types)
    bool is_big_endian = false;
    std::vector<std::uint64_t> shape;  // the axis that changes slowest first; the numbers of the type that it holds make `length`
    std::uint64_t offset = 0, length = 0;  // in the file, bytes
    ExtentAxes axes = ExtentAxes::as_named;
    bool operator==(const Extent&) const = default;
};

// What a file is, and what lies in it.
struct Description {
    std::string_view format;  // a static name: "npy"
    std::vector<Extent> extents;  // by offset, none over another, none empty
    std::uint64_t described_bytes() const;
};

// What a user says lies in a file, of which there are so many bytes: as many along the open axis as it has; along the first where it has fewer than is said. Nothing where there is not one.
std::optional<Extent> extent_of(const DescribedArray& array, std::uint64_t file_bytes);

// For codecs, by offset: those of a type of numbers. Bytes have no neighbours. `rule`: of which names two are alike (similarity.hpp).
std::vector<NumberArray> arrays_of(const std::vector<Extent>& extents, NameRule rule);

}  // namespace cairn
