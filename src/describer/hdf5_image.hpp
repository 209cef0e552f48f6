// A file driver of libhdf5 for a file that is in memory: it copies only what the library looks at. The library's own driver for that ("core") copies all, or asks for a
// writable buffer of its own; and it does not tell where it reads, which is the way to learn where a chunk lies (hdf5_chunks.cpp).
#pragma once

#include "base/bytes.hpp"
#include "describer/hdf5_id.hpp"

namespace cairn {

// What the library reads of data while it is watched, as opposed to what it reads to find them. Then it is not copied: nobody here wants any. (Otherwise it is: heaps, which
// names and the like may lie in, are data to a driver.)
struct Hdf5Read {
    bool is_watched = false;
    haddr_t address = HADDR_UNDEF;
    std::size_t bytes = 0;
};

// Opened for reading. `image` begins with the superblock; both have to stay until the file is closed. `last_read`: of data, while it is watched.
Hdf5Id open_hdf5_image(ByteView image, Hdf5Read& last_read);

}  // namespace cairn
