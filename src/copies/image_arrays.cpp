#include "copies/image_arrays.hpp"

#include <algorithm>
#include <new>

#include "describe/regions.hpp"
#include "format/region_index.hpp"

namespace cairn {

ImageArrays::ImageArrays(const LocalImage& image) : info_(image.header.image) {
    const bool is_known = image.readable == Readable::again && info_.index_bytes <= std::min(index_bytes_max, image.data.length);
    if (!is_known) info_.regions.clear();
    else if (info_.index_bytes != 0) index_ = image.data.part(image.data.length - info_.index_bytes, info_.index_bytes);
}

std::vector<Region> ImageArrays::regions() const {
    if (index_.length == 0) return info_.regions;  // version 1 of the format; else none
    Result<std::vector<Region>> read = decode_region_index(index_.bytes(), info_.bytes - info_.index_bytes);
    return read.ok() ? std::move(read).value() : std::vector<Region>();
}

std::vector<NumberArray> ImageArrays::in(const Source& source) {
    State unread = State::unread;
    if (state_.compare_exchange_strong(unread, State::reading)) {
        try {
            arrays_ = describe_regions(regions());
        } catch (const std::bad_alloc&) {
            arrays_.clear();
        }
        index_ = {};
        info_.regions.clear();
        state_ = State::ready;
    }
    return state_ == State::ready ? within(arrays_, source.image_offset, source.length) : std::vector<NumberArray>();
}

}  // namespace cairn
