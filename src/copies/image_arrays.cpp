#include "copies/image_arrays.hpp"

#include "describe/regions.hpp"
#include "format/region_index.hpp"

namespace cairn {

ImageArrays::ImageArrays(const LocalImage& image) : info_(image.header.image) {
    if (image.readable == Readable::once || info_.index_bytes > image.data.length) return;
    if (info_.index_bytes != 0) index_ = image.data.part(image.data.length - info_.index_bytes, info_.index_bytes);
}

std::vector<NumberArray> ImageArrays::in(const Source& source) {
    std::call_once(once_, [this] {
        if (index_.length != 0) {
            Result<std::vector<Region>> regions = decode_region_index(index_.bytes(), info_.bytes - info_.index_bytes);
            if (regions.ok()) arrays_ = describe_regions(*regions);
        } else {
            arrays_ = describe_regions(info_.regions);  // version 1 of the format
        }
        index_ = {};
    });
    return within(arrays_, source.image_offset, source.length);
}

}  // namespace cairn
