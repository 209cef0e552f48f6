// Chunks of a dataset, and where each is stored.
//
// Until 1.14 the library has no function that tells this of all chunks in reasonable time: H5Dget_chunk_info() and its like go through the whole index for each chunk. But
// H5Dread_chunk() looks a chunk up, and then reads it from its place, which the driver sees (hdf5_image.hpp). Nothing is read there.
#include <algorithm>

#include "describe/file.hpp"
#include "describer/hdf5_found.hpp"

namespace cairn {

namespace {

struct Chunks {
    Hdf5Found& found;
    const std::string& name;
    const Hdf5Number& number;
    std::vector<hsize_t> lengths;  // of a chunk, along each axis
    std::uint64_t bytes = 0;       // of one that no filter changed
    unsigned filters = 0;          // one bit each
    bool is_one = false;           // a chunk is all of the dataset

    void add(haddr_t address, std::uint64_t stored, unsigned skipped) {
        const bool is_plain = (filters & ~skipped) == 0;
        const std::size_t before = found.extents.size();
        if (is_plain && stored == bytes) found.add(name, number, lengths, address, stored);
        else found.add_bytes(name, address, stored);
        if (!is_one)
            for (std::size_t i = before; i < found.extents.size(); ++i) found.extents[i].axes = ExtentAxes::piece;
    }
};

#if H5_VERSION_GE(1, 14, 0)

int take_chunk(const hsize_t*, unsigned skipped, haddr_t address, hsize_t stored, void* to) noexcept {
    auto& chunks = *static_cast<Chunks*>(to);
    if (chunks.found.is_full()) return H5_ITER_STOP;
    try {
        chunks.add(address, stored, skipped);
    } catch (...) {
        return H5_ITER_ERROR;  // no memory; no exception goes through the library
    }
    return H5_ITER_CONT;
}

bool find_all(Chunks& chunks, hid_t dataset, const std::vector<hsize_t>&) { return H5Dchunk_iter(dataset, H5P_DEFAULT, take_chunk, &chunks) >= 0; }

#else

// How many chunks the shape has room for; more than `most`: most + 1.
std::uint64_t places(const std::vector<hsize_t>& shape, const std::vector<hsize_t>& lengths, std::uint64_t most) {
    std::uint64_t all = 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::uint64_t along = shape[axis] / lengths[axis] + (shape[axis] % lengths[axis] != 0);
        if (along == 0) return 0;
        if (along > most / all) return most + 1;
        all *= along;
    }
    return all;
}

bool find_all(Chunks& chunks, hid_t dataset, const std::vector<hsize_t>& shape) {
    Hdf5Found& found = chunks.found;
    hsize_t stored = 0;
    const Hdf5Id space(H5Dget_space(dataset));  // older ones do not know H5S_ALL here
    if (!space || H5Dget_num_chunks(dataset, space.get(), &stored) < 0) return false;
    const std::uint64_t all = places(shape, chunks.lengths, found.lookups_left);
    if (stored == 0 || all > found.lookups_left) return true;
    found.lookups_left -= all;
    std::vector<hsize_t> at(shape.size());
    std::byte nothing{};  // is what is written to it
    for (std::uint64_t i = 0; i < all && stored > 0 && !found.is_full(); ++i) {
        found.last_read = {true};
        std::uint32_t skipped = 0;
        const herr_t looked = H5Dread_chunk(dataset, H5P_DEFAULT, at.data(), &skipped, &nothing);
        found.last_read.is_watched = false;
        if (looked >= 0 && found.last_read.address != HADDR_UNDEF) {
            chunks.add(found.last_read.address, found.last_read.bytes, skipped);
            --stored;
        }
        for (std::size_t axis = at.size(); axis-- > 0;) {
            at[axis] += chunks.lengths[axis];
            if (at[axis] < shape[axis]) break;
            at[axis] = 0;
        }
    }
    return true;
}

#endif

}  // namespace

bool find_hdf5_chunks(Hdf5Found& found, hid_t dataset, hid_t properties, const std::string& name, const Hdf5Number& number, const std::vector<hsize_t>& shape) {
    Chunks chunks{found, name, number, std::vector<hsize_t>(shape.size())};
    const int axes = static_cast<int>(shape.size());
    const int filters = H5Pget_nfilters(properties);
    if (axes == 0 || filters < 0 || filters > 32 || H5Pget_chunk(properties, axes, chunks.lengths.data()) != axes) return false;
    if (std::find(chunks.lengths.begin(), chunks.lengths.end(), 0) != chunks.lengths.end()) return false;
    chunks.is_one = chunks.lengths == shape;
    chunks.filters = static_cast<unsigned>((std::uint64_t{1} << filters) - 1);
    std::vector<std::uint64_t> all(chunks.lengths.begin(), chunks.lengths.end());
    all.insert(all.end(), number.axes.begin(), number.axes.end());
    chunks.bytes = bytes_of(number.type, all).value_or(0);
    return find_all(chunks, dataset, shape);
}

}  // namespace cairn
