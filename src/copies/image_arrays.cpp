#include "copies/image_arrays.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "describe/regions.hpp"
#include "format/region_index.hpp"

namespace cairn {

namespace {

constexpr int late_max = 3;  // who encodes has waited long enough for this image then
constexpr auto patience = std::chrono::milliseconds(100);  // a file takes a millisecond, and a large one some more

std::vector<Region> regions_of(const ImageInfo& info, const Slice& data) {
    if (data.length == 0 || info.index_bytes == 0) return info.regions;  // version 1 of the format; else none
    if (!data.buffer->data()) return {};  // simulated: it is described, and nobody reads it
    const Slice index = data.part(data.length - info.index_bytes, info.index_bytes);
    Result<std::vector<Region>> read = decode_region_index(index.bytes(), info.bytes - info.index_bytes);
    return read.ok() ? std::move(read).value() : std::vector<Region>();
}

}  // namespace

template <class Read>
bool ImageArrays::Once::is_ready(Read read) {
    std::unique_lock lock(mutex_);
    if (state_ == State::unread) {
        state_ = State::reading;
        lock.unlock();
        read();
        lock.lock();
        state_ = State::ready;
        read_.notify_all();
        return true;
    }
    return read_.wait_for(lock, patience, [this] { return state_ == State::ready; });
}

ImageArrays::ImageArrays(const LocalImage& image, Describers describers)
    : info_(image.header.image), path_(image.path), data_offset_(image.header.data_offset), describers_(std::move(describers)) {
    const bool is_known = image.readable == Readable::again && info_.index_bytes <= std::min(index_bytes_max, image.data.length);
    if (is_known) data_ = image.data;
    else info_.regions.clear();
}

// Regions lie side by side, so no array lies over another one.
void ImageArrays::read_index() {
    try {
        std::vector<Region> regions = regions_of(info_, data_);
        of_regions_ = arrays_of(describe_regions(regions), describers_.names);
        extents_ = of_regions_.size();
        std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.offset < b.offset; });
        for (Region& region : regions)
            if (describes_itself(region) && region.offset <= data_.length && region.length <= data_.length - region.offset) files_.emplace_back(std::move(region));
    } catch (const std::bad_alloc&) {
        of_regions_.clear();
        files_.clear();
    }
    info_.regions.clear();
}

// Where it fails it is all skeleton.
void ImageArrays::describe(File& file) {
    const Region& region = file.region;
    if (late_ >= late_max || !data_.buffer->data()) return;
    try {
        Result<Description> described = describe_file({region.name, data_.part(region.offset, region.length).bytes(), path_, data_offset_ + region.offset, region.described}, describers_);
        if (described.code() == Code::deadline || described.code() == Code::unavailable) ++late_;
        if (!described.ok() || (extents_ += described->extents.size()) > extents_max) return;
        for (Extent& extent : described->extents) extent.offset += region.offset;
        file.arrays = arrays_of(described->extents, describers_.names);
    } catch (const std::bad_alloc&) {
        file.arrays.clear();
    }
}

std::vector<NumberArray> ImageArrays::in(const Source& source) {
    if (!index_.is_ready([this] { read_index(); })) return {};
    const std::uint64_t begin = source.image_offset, end = begin + source.length;
    std::vector<NumberArray> found = within(of_regions_, begin, source.length);
    const auto ends_before = [](const File& file, std::uint64_t offset) { return file.region.offset + file.region.length <= offset; };
    for (auto file = std::lower_bound(files_.begin(), files_.end(), begin, ends_before); file != files_.end() && file->region.offset < end; ++file) {
        if (!file->once.is_ready([&] { describe(*file); })) continue;
        const std::vector<NumberArray> here = within(file->arrays, begin, source.length);
        found.insert(found.end(), here.begin(), here.end());
    }
    std::sort(found.begin(), found.end(), [](const NumberArray& a, const NumberArray& b) { return a.offset < b.offset; });
    return found;
}

}  // namespace cairn
