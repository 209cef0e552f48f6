#include "copies/image_arrays.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "describe/regions.hpp"
#include "format/region_index.hpp"

namespace cairn {

namespace {
constexpr int late_max = 3;
}

ImageArrays::ImageArrays(const LocalImage& image, Describers describers)
    : info_(image.header.image), path_(image.path), data_offset_(image.header.data_offset), describers_(std::move(describers)) {
    const bool is_known = image.readable == Readable::again && info_.index_bytes <= std::min(index_bytes_max, image.data.length);
    if (is_known) data_ = image.data;
    else info_.regions.clear();
}

std::vector<Region> ImageArrays::regions() const {
    if (data_.length == 0 || info_.index_bytes == 0) return info_.regions;  // version 1 of the format; else none
    const Slice index = data_.part(data_.length - info_.index_bytes, info_.index_bytes);
    Result<std::vector<Region>> read = decode_region_index(index.bytes(), info_.bytes - info_.index_bytes);
    return read.ok() ? std::move(read).value() : std::vector<Region>();
}

// One over another there are none: regions lie side by side, and what a file says of itself lies within it. Files that lie elsewhere are not looked at.
std::vector<Extent> ImageArrays::extents(std::uint64_t begin, std::uint64_t end) const {
    const std::vector<Region> regions = this->regions();
    std::vector<Extent> extents = describe_regions(regions);
    int late = 0;
    for (const Region& region : regions) {
        if (!describes_itself(region) || region.offset > data_.length || region.length > data_.length - region.offset) continue;
        if (region.offset >= end || region.offset + region.length <= begin) continue;
        Result<Description> described = describe_file({region.name, data_.part(region.offset, region.length).bytes(), path_, data_offset_ + region.offset, region.described}, describers_);
        const bool is_late = described.code() == Code::deadline || described.code() == Code::unavailable;
        if (is_late && ++late == late_max) return extents;  // who encodes has waited long enough for this image
        if (!described.ok()) continue;                      // all skeleton
        for (Extent& extent : described->extents) {
            if (extents.size() >= extents_max) return extents;
            extent.offset += region.offset;
            extents.push_back(std::move(extent));
        }
    }
    return extents;
}

std::vector<NumberArray> ImageArrays::in(const Source& source) {
    State unread = State::unread;
    if (state_.compare_exchange_strong(unread, State::reading)) {
        try {
            arrays_ = arrays_of(extents(0, data_.length));
        } catch (const std::bad_alloc&) {
            arrays_.clear();
        }
        data_ = {};
        describers_ = {};
        info_.regions.clear();
        state_ = State::ready;
    }
    return known_in(source);
}

std::vector<NumberArray> ImageArrays::found_in(const Source& source) {
    State unread = State::unread;
    if (!state_.compare_exchange_strong(unread, State::reading)) return known_in(source);
    std::vector<NumberArray> found;
    try {
        found = within(arrays_of(extents(source.image_offset, source.image_offset + source.length)), source.image_offset, source.length);
    } catch (const std::bad_alloc&) {
        found.clear();
    }
    state_ = State::unread;
    return found;
}

std::vector<NumberArray> ImageArrays::known_in(const Source& source) const {
    return state_ == State::ready ? within(arrays_, source.image_offset, source.length) : std::vector<NumberArray>();
}

}  // namespace cairn
