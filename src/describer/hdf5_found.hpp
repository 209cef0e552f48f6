// What was found in an HDF5 file so far, within the limits.
#pragma once

#include <string>
#include <vector>

#include "describe/extent.hpp"
#include "describer/hdf5_image.hpp"
#include "describer/hdf5_types.hpp"

namespace cairn {

struct Hdf5Found {
    std::uint64_t begin = 0;  // in the file: of what the library sees of it
    Hdf5Read& last_read;
    std::uint64_t lookups_left;  // of chunks
    std::vector<Extent> extents;
    bool is_full() const;
    // Nothing happens where `bytes` are not those of the shape.
    void add(const std::string& name, const Hdf5Number& number, const std::vector<hsize_t>& shape, haddr_t address, std::uint64_t bytes);
    void add_bytes(const std::string& name, haddr_t address, std::uint64_t bytes);
};

// Each stored chunk of a dataset. False: the library can not read where they are.
bool find_hdf5_chunks(Hdf5Found& found, hid_t dataset, hid_t properties, const std::string& name, const Hdf5Number& number, const std::vector<hsize_t>& shape);

}  // namespace cairn
