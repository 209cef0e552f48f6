// Invariants shared by footers, manifests, image headers and messages (FORMAT.md, Limits).
#include "format/check.hpp"

#include <algorithm>

#include "format/part.hpp"
#include "format/region_index.hpp"

namespace cairn::check {

Status block_bytes(std::uint64_t bytes) {
    if (block_bytes_valid(bytes)) return {};
    return refuse("a block size of ", bytes, " bytes; it is a power of two from ", block_bytes_min, " to ",
                  block_bytes_max);
}

Status ranks(std::uint32_t count) {
    if (count >= 1 && count <= ranks_max) return {};
    return refuse(count, " ranks; there are 1 to ", ranks_max);
}

Status key(const VersionKey& key) {
    if (!valid_name(key.name)) return refuse("the checkpoint's name is not a valid one");
    if (key.version == 0) return refuse("version 0; versions count from 1");
    if (!key.incarnation) return refuse("no incarnation");
    return {};
}

Status parent(const Parent& parent) {
    if (static_cast<bool>(parent.incarnation) == (parent.version != 0)) return {};
    return refuse("a parent with an incarnation but no version, or the reverse");
}

namespace {

// Elements of a shape; false when they overflow.
bool shape_elements(const std::vector<std::uint64_t>& shape, std::uint64_t& elements) {
    elements = 1;
    bool any_zero = false;
    for (const std::uint64_t extent : shape) {
        if (extent == 0)
            any_zero = true;
        else if (__builtin_mul_overflow(elements, extent, &elements))
            return false;
    }
    if (any_zero) elements = 0;
    return true;
}

// That its block lies within the array of all ranks.
Status global_block(const Region& region, const std::string& of) {
    if (region.global_shape.empty() && region.global_offset.empty()) return {};
    if (region.kind != RegionKind::memory) return refuse(of, " is no memory, and yet a block of an array");
    if (region.global_shape.size() != region.shape.size() || region.global_offset.size() != region.shape.size())
        return refuse(of, " has ", region.shape.size(), " dimensions, and the array that it is a block of has others");
    std::uint64_t elements = 0;
    if (!shape_elements(region.global_shape, elements) || elements > bytes_max) return refuse(of, " is a block of an array larger than any can be");
    for (std::size_t i = 0; i < region.shape.size(); ++i)
        if (region.global_offset[i] > region.global_shape[i] || region.shape[i] > region.global_shape[i] - region.global_offset[i])
            return refuse(of, " is a block of ", region.shape[i], " at ", region.global_offset[i], " of ", region.global_shape[i], " in dimension ", i);
    return {};
}

}  // namespace

Status region(const Region& region, std::uint64_t data_bytes) {
    if (!valid_region_name(region.name)) return refuse("a region with an impossible name");
    const auto of = "region '" + region.name + "'";
    if (region.kind > RegionKind::file) return refuse(of, " is of unknown kind ", int(region.kind));
    if (region.type > data_type_last) return refuse(of, " is of unknown type ", int(region.type));
    if (region.length > data_bytes || region.offset > data_bytes - region.length)
        return refuse(of, " at ", region.offset, " with ", region.length, " bytes lies outside its image of ",
                      data_bytes);
    if (region.shape.size() > shape_dimensions_max)
        return refuse(of, " has ", region.shape.size(), " dimensions; at most ", shape_dimensions_max, " are allowed");
    if (region.kind != RegionKind::memory && (region.type != DataType::bytes || region.shape.size() != 1))
        return refuse(of, " is no memory, so it has type bytes and one dimension");
    std::uint64_t bytes = 0;
    if (!shape_elements(region.shape, bytes) || __builtin_mul_overflow(bytes, type_bytes(region.type), &bytes) ||
        bytes != region.length)
        return refuse(of, ": its shape and type do not make its ", region.length, " bytes");
    return global_block(region, of);
}

bool can_be(const DescribedArray& array) {
    if (array.type == DataType::bytes || array.type > data_type_last || !printable(array.name, described_name_bytes_max) || array.offset > bytes_max) return false;
    if (array.shape.empty() || array.shape.size() > shape_dimensions_max || std::count(array.shape.begin(), array.shape.end(), open_axis) > 1) return false;
    std::uint64_t bytes = type_bytes(array.type);
    for (const std::uint64_t extent : array.shape)
        if (extent != open_axis && (extent == 0 || __builtin_mul_overflow(bytes, extent, &bytes) || bytes > bytes_max)) return false;
    return true;
}

Status image(const ImageInfo& image) {
    const std::string of = "rank " + std::to_string(image.rank);
    if (image.rank >= ranks_max) return refuse(of, " is beyond the largest rank, ", ranks_max - 1);
    if (image.bytes > bytes_max) return refuse(of, ": an image of ", image.bytes, " bytes");
    if (image.naming_bytes > record_bytes_max) return refuse(of, ": ", image.naming_bytes, " bytes to name its tensors");
    if (image.cuts > image.bytes) return refuse(of, ": an image of ", image.bytes, " bytes, cut in ", image.cuts, " places");
    if (image.index_bytes != 0 && (image.index_bytes > image.bytes || image.index_bytes < region_index_end_bytes || image.index_bytes > record_bytes_max || (image.bytes - image.index_bytes) % region_index_align != 0))
        return refuse(of, ": an image of ", image.bytes, " bytes whose last ", image.index_bytes, " are its region index");
    std::vector<std::string_view> names;
    names.reserve(image.regions.size());
    for (const Region& r : image.regions) {
        TRY(region(r, image.bytes - image.index_bytes).within(of));
        names.push_back(r.name);
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) return refuse(of, ": two regions are named '", *twice, "'");
    return {};
}

Status increasing(const std::vector<Rank>& ranks, std::uint32_t ranks_total) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i] >= ranks_total) return refuse("rank ", ranks[i], " of ", ranks_total);
        if (i > 0 && ranks[i] <= ranks[i - 1]) return refuse("rank ", ranks[i], " after rank ", ranks[i - 1]);
    }
    return {};
}

Status efforts(const KeyEfforts& keys) {
    if (keys.size() > keys_max) return refuse(keys.size(), " keys");
    for (std::size_t i = 0; i < keys.size(); ++i)
        if (keys[i].key <= (i == 0 ? 0 : keys[i - 1].key)) return refuse("keys that are not in their order");
    return {};
}

Status part_info(const PartInfo& part) {
    if (!parse_part_file_name(part.file)) return refuse("a part whose file name is not a part's");
    const std::uint64_t end = part.index_bytes == 0 ? part.bytes : part.index_bytes;  // of the file that has the footer
    if (part.footer_offset > bytes_max || part.bytes > 2 * bytes_max || end > 2 * bytes_max || end <= part.footer_offset ||
        end - part.footer_offset <= part_trailer_bytes)
        return refuse(part.file, ": ", end, " bytes with a footer at ", part.footer_offset,
                      " leave no room for it");
    if (part.index_bytes != 0 && part.footer_offset != 0) return refuse(part.file, ": the file beside it is its footer alone, and that is not at ", part.footer_offset);
    if (part.root > roots_max) return refuse(part.file, " lies below root ", part.root, "; there are at most ", roots_max);
    return increasing(part.ranks, ranks_max).within(part.file);
}

namespace {

// Absolute, and spelled in one way only: nothing empty, `.` or `..` between its slashes.
bool is_root(const std::string& path) {
    if (path.size() < 2 || path.front() != '/' || !printable(path, root_bytes_max)) return false;
    for (std::size_t at = 1; at <= path.size();) {
        const std::size_t slash = std::min(path.find('/', at), path.size());
        const std::string_view name = std::string_view(path).substr(at, slash - at);
        if (name.empty() || name == "." || name == "..") return false;
        at = slash + 1;
    }
    return true;
}

}  // namespace

Status roots(const std::vector<std::string>& roots) {
    if (roots.size() > roots_max) return refuse(roots.size(), " roots; there are at most ", roots_max);
    for (const std::string& root : roots)
        if (!is_root(root)) return refuse("a root that is no absolute path, or not in its one spelling");
    std::vector<std::string_view> sorted(roots.begin(), roots.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) return refuse("root ", *twice, " is there twice");
    return {};
}

std::uint64_t encoded_bytes(const Region& region) {
    std::uint64_t bytes = 112 + region.name.size() + 8 * (region.shape.size() + region.global_shape.size() + region.global_offset.size());
    for (const DescribedArray& array : region.described) bytes += 72 + array.name.size() + 8 * array.shape.size();
    return bytes;
}

std::uint64_t encoded_bytes(const std::vector<ImageInfo>& images) {
    std::uint64_t bytes = 0;
    for (const ImageInfo& image : images) {
        bytes += 64;
        if (image.index_bytes != 0) continue;
        for (const Region& region : image.regions) bytes += encoded_bytes(region);
    }
    return bytes;
}

}  // namespace cairn::check
