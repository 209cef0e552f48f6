#include "describe/file.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "describe/formats.hpp"
#include "describe/hdf5_signature.hpp"

namespace cairn {

namespace {

struct Format {
    std::string_view name;
    bool (*is)(ByteView file);
    Result<std::vector<Extent>> (*describe)(ByteView file);
};
// The one without a magic number last.
constexpr std::array formats = {
    Format{"npy", is_npy, describe_npy},
    Format{"zip", is_zip, describe_zip},
    Format{"netcdf", is_netcdf, describe_netcdf},
    Format{"safetensors", is_safetensors, describe_safetensors},
};

std::vector<Extent> extents_of(std::span<const DescribedArray> described, std::uint64_t file_bytes) {
    std::vector<Extent> extents;
    for (const DescribedArray& array : described)
        if (std::optional<Extent> extent = extent_of(array, file_bytes)) extents.push_back(std::move(*extent));
    return sound(std::move(extents), file_bytes);
}

}  // namespace

Result<Description> describe_file(ByteView file) {
    for (const Format& format : formats) {
        if (!format.is(file)) continue;
        Result<std::vector<Extent>> extents = format.describe(file);
        if (!extents.ok()) return std::move(extents).status().within(std::string(format.name));
        return Description{format.name, sound(std::move(extents).value(), file.size())};
    }
    return Status(Code::unsupported, "no format that Cairn can describe");
}

Result<Description> describe_file(const FileToDescribe& file, const Describers& describers) {
    if (std::vector<Extent> told = extents_of(file.described, file.bytes.size()); !told.empty()) return Description{call_format, std::move(told)};
    if (describers.rules) {
        std::vector<Extent> extents = describe_by_rules(*describers.rules, file.name, file.bytes.size());
        if (!extents.empty()) return Description{rules_format, std::move(extents)};
    }
    if (!describers.elsewhere || !hdf5_begins(file.bytes)) return describe_file(file.bytes);
    return describers.elsewhere(file.path, file.offset, file.bytes.size());
}

std::vector<Extent> sound(std::vector<Extent> extents, std::uint64_t file_bytes) {
    std::erase_if(extents, [&](const Extent& extent) { return extent.length == 0 || extent.offset > file_bytes || extent.length > file_bytes - extent.offset; });
    std::stable_sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    std::uint64_t end = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < extents.size() && kept < extents_max; ++i) {
        if (extents[i].offset < end) continue;
        end = extents[i].offset + extents[i].length;
        if (kept != i) extents[kept] = std::move(extents[i]);
        ++kept;
    }
    extents.resize(kept);
    return extents;
}

std::optional<std::uint64_t> bytes_of(DataType type, const std::vector<std::uint64_t>& shape) {
    std::uint64_t bytes = type == DataType::bytes ? 1 : type_bytes(type);
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    for (const std::uint64_t length : shape)
        if (__builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
    return bytes;
}

}  // namespace cairn
