// Where the variables of an HDF5 file lie (and of a netCDF-4 file, which is one), as libhdf5 says. It runs in cairn-describer only: damaged files crash the library and hang it
// (ARCHITECTURE.md, "HDF5 is read by a child").
#pragma once

#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "describe/extent.hpp"

namespace cairn {

// One extent for what a dataset has in one piece, and one for each chunk that is stored. Records are words (hdf5_types.hpp), and what a filter made is bytes. In the order in which they are found, and
// not yet sound (describe/file.hpp). Nothing of: strings, references, what has no fixed length, what lies in an object's header or in another file.
// corrupt: no HDF5, damaged, or newer than the library. `file` is not copied, and read only where the library looks.
Result<std::vector<Extent>> describe_hdf5(ByteView file);

// As many lookups of chunks as one file may cost: a dataset whose chunks would take more of them is skeleton.
inline constexpr std::uint64_t chunk_lookups_max = 1 << 18;

}  // namespace cairn
