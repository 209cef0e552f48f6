#include "client/regions.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "client/guarded.hpp"
#include "format/limits.hpp"
#include "format/names.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t file_align_bytes = 4096;

std::string quoted(const std::string& name) { return "region \"" + name + "\""; }

std::string array_text(DataType type, const std::vector<std::uint64_t>& shape) {
    std::string text = type_name(type);
    text += "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + (shape[i] == open_axis ? "to the end" : std::to_string(shape[i]));
    return text + "]";
}

Status check_dimensions(const std::string& of, std::uint32_t ndim, const std::uint64_t* shape) {
    if (ndim != 0 && ndim <= shape_dimensions_max && shape) return {};
    return invalid_argument(of + ": " + std::to_string(ndim) + " dimensions; 1 to " + std::to_string(shape_dimensions_max) + " and their extents are needed");
}

// Where it ends in its region; with an open axis, behind all else.
std::uint64_t end_of(const DescribedArray& array) {
    std::uint64_t bytes = type_bytes(array.type);
    for (const std::uint64_t extent : array.shape) {
        if (extent == open_axis) return open_axis;
        bytes *= extent;  // which make_described() has seen to be a number
    }
    return array.offset + bytes;
}

// An array as cairn_describe is told of it. `of`: its region, for the texts.
Result<DescribedArray> make_described(const std::string& of, std::uint64_t offset, int type, std::uint32_t ndim, const std::uint64_t* shape, const char* name) {
    DescribedArray array;
    const int bare = type & ~CAIRN_BIG_ENDIAN;
    if (type < 0 || bare < CAIRN_I8 || bare > static_cast<int>(data_type_last))
        return invalid_argument(of + ": type " + std::to_string(type) + " is none of numbers; they are 1 (CAIRN_I8) to " + std::to_string(static_cast<int>(data_type_last)) +
                                " (CAIRN_C128), with | CAIRN_BIG_ENDIAN where their bytes lie so. What is no numbers needs no description");
    array.type = static_cast<DataType>(bare);
    array.is_big_endian = bare != type && type_bytes(array.type) > 1;
    TRY(check_dimensions(of, ndim, shape));
    array.shape.assign(shape, shape + ndim);
    array.offset = offset;
    if (name) array.name = name;
    std::uint64_t bytes = type_bytes(array.type);
    for (const std::uint64_t extent : array.shape) {
        if (extent == 0) return invalid_argument(of + ": an array of size zero can not lie in it: " + array_text(array.type, array.shape));
        if (extent != open_axis && (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > bytes_max))
            return invalid_argument(of + ": the array is larger than any can be: " + array_text(array.type, array.shape));
    }
    if (std::count(array.shape.begin(), array.shape.end(), open_axis) > 1)
        return invalid_argument(of + ": one extent at most can be CAIRN_TO_END: " + array_text(array.type, array.shape));
    if (offset > bytes_max) return invalid_argument(of + ": no region has a byte " + std::to_string(offset));
    if (!printable(array.name, described_name_bytes_max))
        return invalid_argument(of + ": an array's name has at most " + std::to_string(described_name_bytes_max) + " bytes of UTF-8 without control characters; NULL: none");
    return array;
}

const char* kind_name(RegionKind kind) {
    return kind == RegionKind::memory ? "memory" : kind == RegionKind::callback ? "a callback region" : "a routed file";
}

Result<std::uint64_t> size_now(const ProtectedRegion& region) {
    if (region.kind == RegionKind::memory) return region.bytes;
    if (region.kind == RegionKind::callback) {
        std::uint64_t bytes = 0;
        TRY(call_application(quoted(region.name) + ": its size callback", [&] { return region.size(region.context, &bytes); }));
        return bytes;
    }
    struct stat about = {};
    if (::stat(region.path.c_str(), &about) != 0)
        return Status::from_errno(errno, quoted(region.name) + ": routed file " + region.path);
    if (!S_ISREG(about.st_mode))
        return invalid_argument(quoted(region.name) + ": " + region.path + " is not a regular file");
    return static_cast<std::uint64_t>(about.st_size);
}

}  // namespace

Status RegionTable::check_new(const char* name) const {
    if (!name) return invalid_argument("a region needs a name");
    TRY(check_region_name(name));
    if (find(name)) return {Code::already_exists, quoted(name) + " is protected already; unprotect it first"};
    return {};
}

Result<ProtectedRegion> RegionTable::make_memory(const char* name, void* data, int type, std::uint32_t ndim, const std::uint64_t* shape) const {
    TRY(check_new(name));
    ProtectedRegion region;
    region.name = name;
    if (!data) return invalid_argument(quoted(name) + ": its memory is NULL");
    if (type < 0 || type > static_cast<int>(data_type_last))
        return invalid_argument(quoted(name) + ": there is no type " + std::to_string(type) +
                                "; they are 0 (CAIRN_BYTES) to " + std::to_string(static_cast<int>(data_type_last)) +
                                " (CAIRN_C128)");
    TRY(check_dimensions(quoted(name), ndim, shape));
    region.data = data;
    region.type = static_cast<DataType>(type);
    region.shape.assign(shape, shape + ndim);
    region.bytes = type_bytes(region.type);
    for (const std::uint64_t extent : region.shape) {
        if (extent == 0)
            return invalid_argument(quoted(name) + " has size zero: " + array_text(region.type, region.shape));
        if (__builtin_mul_overflow(region.bytes, extent, &region.bytes) || region.bytes > bytes_max)
            return invalid_argument(quoted(name) +
                                    " is larger than any memory: " + array_text(region.type, region.shape));
    }
    return region;
}

Status RegionTable::add_memory(const char* name, void* data, int type, std::uint32_t ndim, const std::uint64_t* shape) {
    TRY_ASSIGN(ProtectedRegion region, make_memory(name, data, type, ndim, shape));
    add(std::move(region));
    return {};
}

Status RegionTable::add_block(const char* name, void* data, int type, std::uint32_t ndim, const std::uint64_t* shape, const std::uint64_t* global_shape,
                              const std::uint64_t* global_offset) {
    TRY_ASSIGN(ProtectedRegion region, make_memory(name, data, type, ndim, shape));
    if (!global_shape || !global_offset) return invalid_argument(quoted(name) + ": a block needs the shape of its array, and its offset there");
    region.global_shape.assign(global_shape, global_shape + ndim);
    region.global_offset.assign(global_offset, global_offset + ndim);
    std::uint64_t elements = 1;
    for (std::uint32_t i = 0; i < ndim; ++i) {
        if (__builtin_mul_overflow(elements, global_shape[i], &elements) || elements > bytes_max)
            return invalid_argument(quoted(name) + " is a block of an array larger than any can be: " + array_text(region.type, region.global_shape));
        if (global_offset[i] > global_shape[i] || shape[i] > global_shape[i] - global_offset[i])
            return invalid_argument(quoted(name) + ": in dimension " + std::to_string(i) + " its " + std::to_string(shape[i]) + " elements from " +
                                    std::to_string(global_offset[i]) + " on go beyond the array's " + std::to_string(global_shape[i]));
    }
    add(std::move(region));
    return {};
}

Status RegionTable::add_callbacks(const char* name, cairn_size_function size, cairn_serialise_function serialise,
                                  cairn_deserialise_function deserialise, void* context) {
    TRY(check_new(name));
    if (!size || !serialise || !deserialise) return invalid_argument(quoted(name) + ": all three callbacks are needed");
    ProtectedRegion region;
    region.name = name;
    region.kind = RegionKind::callback;
    region.size = size;
    region.serialise = serialise;
    region.deserialise = deserialise;
    region.context = context;
    add(std::move(region));
    return {};
}

Status RegionTable::add_file(const char* name, const char* path) {
    TRY(check_new(name));
    if (!path || !*path) return invalid_argument(quoted(name) + ": a routed file needs a path");
    std::error_code error;
    const auto absolute = std::filesystem::absolute(path, error);
    if (error) return Status::from_errno(error.value(), quoted(name) + ": " + path);
    ProtectedRegion region;
    region.name = name;
    region.kind = RegionKind::file;
    region.path = absolute.lexically_normal().string();
    add(std::move(region));
    return {};
}

void RegionTable::add(ProtectedRegion region) {
    std::list<ProtectedRegion> one;  // where there is no memory for its name, it is not there at all
    one.push_back(std::move(region));
    by_name_.emplace(one.front().name, one.begin());
    regions_.splice(regions_.end(), one);
}

Status RegionTable::remove(const char* name) {
    if (!name) return invalid_argument("a region needs a name");
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return not_found("no " + quoted(name) + " is protected");
    const auto region = found->second;
    by_name_.erase(found);  // its key lies in the region
    regions_.erase(region);
    return {};
}

Status RegionTable::describe(const char* name, std::uint64_t offset, int type, std::uint32_t ndim, const std::uint64_t* shape, const char* array_name) {
    if (!name) return invalid_argument("a region needs a name");
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return not_found("no " + quoted(name) + " is protected: route its file or protect it first, then describe it");
    ProtectedRegion& region = *found->second;
    const std::string of = quoted(name);
    if (region.type != DataType::bytes) return invalid_argument(of + " is memory of type " + type_name(region.type) + ", whose type and shape are its description already");
    TRY_ASSIGN(DescribedArray array, make_described(of, offset, type, ndim, shape, array_name));
    if (region.described.size() == described_arrays_max)
        return invalid_argument(of + ": " + std::to_string(described_arrays_max) + " arrays of it are described, and no more can be; arrays of one type that lie side by side can be one");
    for (const DescribedArray& other : region.described)
        if (array.offset < end_of(other) && other.offset < end_of(array))
            return invalid_argument(of + ": from byte " + std::to_string(other.offset) + " on lies " + array_text(other.type, other.shape) +
                                    " by an earlier description, which this one would overlap; to describe it anew, unprotect the region first");
    region.described.push_back(std::move(array));
    return {};
}

const ProtectedRegion* RegionTable::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &*found->second;
}

namespace {
std::uint64_t align_of(const ProtectedRegion& region, bool is_dense) {
    if (region.kind == RegionKind::file) return file_align_bytes;
    return is_dense && region.kind == RegionKind::memory ? type_bytes(region.type) : memory_align_bytes;
}
}  // namespace

Result<std::vector<Region>> RegionTable::lay_out(const MemoryMap& map, bool is_dense, std::uint64_t& image_bytes) const {
    std::vector<Region> laid;
    laid.reserve(regions_.size());
    image_bytes = 0;
    for (const ProtectedRegion& each : regions_) {
        if (each.kind == RegionKind::memory && !map.readable(each.data, each.bytes))
            return invalid_argument(
                quoted(each.name) + " is not mapped memory (" + std::to_string(each.bytes) +
                " bytes): it was freed or is smaller than protected; unprotect it before freeing it");
        Region region;
        region.name = each.name;
        region.kind = each.kind;
        TRY_ASSIGN(region.length, size_now(each));
        if (region.length > bytes_max)
            return invalid_argument(quoted(each.name) + ": " + std::to_string(region.length) + " bytes can not be");
        region.type = each.type;
        region.shape = each.kind == RegionKind::memory ? each.shape : std::vector<std::uint64_t>{region.length};
        region.global_shape = each.global_shape;
        region.global_offset = each.global_offset;
        region.described = each.described;
        region.offset = round_up(image_bytes, align_of(each, is_dense));
        image_bytes = region.offset + region.length;
        if (image_bytes > bytes_max) return invalid_argument("all regions together are larger than an image can be");
        laid.push_back(std::move(region));
    }
    return laid;
}

namespace {

// A version that was taken without saying where its block lies is believed to be of the same one.
Status check_same_block(const ProtectedRegion& wanted, const Region& kept) {
    if (wanted.global_shape.empty() || kept.global_shape.empty()) return {};
    if (wanted.global_shape == kept.global_shape && wanted.global_offset == kept.global_offset) return {};
    return invalid_argument(quoted(wanted.name) + " is another block: the version holds the one at " + array_text(kept.type, kept.global_offset) + " of " +
                            array_text(kept.type, kept.global_shape) + ", protected is the one at " + array_text(wanted.type, wanted.global_offset) + " of " +
                            array_text(wanted.type, wanted.global_shape));
}

}  // namespace

Status check_fits(const ProtectedRegion& wanted, const Region& kept) {
    if (wanted.kind == RegionKind::memory && kept.kind == RegionKind::memory) {
        if (wanted.type == kept.type && wanted.shape == kept.shape) return check_same_block(wanted, kept);
        const char* why = wanted.type != kept.type     ? "another type"
                          : wanted.bytes < kept.length ? "too small"
                                                       : "another shape";
        return invalid_argument(quoted(wanted.name) + " is " + why + ": the version holds " +
                                array_text(kept.type, kept.shape) + ", protected is " +
                                array_text(wanted.type, wanted.shape));
    }
    // Bytes are bytes: a routed file may come back through a callback, and the reverse.
    if (wanted.kind != RegionKind::memory && kept.kind != RegionKind::memory) return {};
    return invalid_argument(quoted(wanted.name) + " is " + kind_name(kept.kind) + " in the version and protected as " +
                            kind_name(wanted.kind));
}

}  // namespace cairn
