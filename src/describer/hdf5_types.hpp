// What an HDF5 type is to a codec.
#pragma once

#include <optional>
#include <vector>

#include "describer/hdf5_id.hpp"
#include "model/types.hpp"

namespace cairn {

struct Hdf5Number {
    DataType type = DataType::bytes;  // bytes: a record without a number. One with numbers is words: of their type where they have one, else integers
    bool is_big_endian = false;
    std::vector<std::uint64_t> axes;  // of each element: behind those of its dataset. A record's: how many words it has
    bool is_record = false;
};

// Nothing: no number, and no record of a fixed length.
std::optional<Hdf5Number> hdf5_number(hid_t type);

}  // namespace cairn
