// Where an HDF5 file begins: the one thing that is known of the format without its library.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"

namespace cairn {

// How many bytes of its user stand before the superblock, which has the signature: 0, or 512 and its doubles. Nothing: no HDF5 (netCDF-4 is). The first 8 bytes of a file
// are enough for nearly all of them.
std::optional<std::uint64_t> hdf5_begins(ByteView file);

}  // namespace cairn
