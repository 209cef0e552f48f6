#include "describe/extent.hpp"

#include <algorithm>

#include "describe/similarity.hpp"

namespace cairn {

namespace {

// A number of each type; a complex one is two, side by side.
struct Numbers {
    std::uint8_t width = 0;  // 0: none
    bool is_float = false;
    std::uint8_t in_each = 1;
};
Numbers numbers_of(DataType type) {
    switch (type) {
        case DataType::i8:
        case DataType::u8: return {1};
        case DataType::i16:
        case DataType::u16: return {2};
        case DataType::i32:
        case DataType::u32: return {4};
        case DataType::i64:
        case DataType::u64: return {8};
        case DataType::f16:
        case DataType::bf16: return {2, true};
        case DataType::f32: return {4, true};
        case DataType::f64: return {8, true};
        case DataType::c64: return {4, true, 2};
        case DataType::c128: return {8, true, 2};
        case DataType::bytes: break;
    }
    return {};
}

// How far neighbours along the axis lie apart, in numbers: all that later axes hold. 0: there is no such axis, or it is longer than anybody reads at once.
std::uint32_t stride_of(const std::vector<std::uint64_t>& shape, std::size_t from_end, std::uint64_t numbers) {
    std::uint64_t stride = 1;
    if (from_end >= shape.size()) return 0;
    for (std::size_t axis = shape.size() - from_end; axis < shape.size() && stride < numbers; ++axis) stride *= shape[axis];
    return stride > 1 && stride < numbers && stride < UINT32_MAX ? static_cast<std::uint32_t>(stride) : 0;
}

}  // namespace

std::uint64_t Description::described_bytes() const {
    std::uint64_t bytes = 0;
    for (const Extent& extent : extents) bytes += extent.length;
    return bytes;
}

std::optional<Extent> extent_of(const DescribedArray& array, std::uint64_t file_bytes) {
    if (array.offset >= file_bytes || array.shape.empty() || array.type == DataType::bytes) return std::nullopt;
    const auto open = std::find(array.shape.begin(), array.shape.end(), open_axis);
    const auto axis = static_cast<std::size_t>(open == array.shape.end() ? 0 : open - array.shape.begin());
    std::uint64_t each = type_bytes(array.type);  // bytes, of one along that axis
    for (std::size_t i = 0; i < array.shape.size(); ++i)
        if (i != axis && __builtin_mul_overflow(each, array.shape[i], &each)) return std::nullopt;
    if (each == 0) return std::nullopt;
    const std::uint64_t count = std::min((file_bytes - array.offset) / each, array.shape[axis]);  // an open axis is longer than any
    if (count == 0) return std::nullopt;
    Extent extent{array.name, array.type, array.is_big_endian, array.shape, array.offset, count * each};
    extent.shape[axis] = count;
    return extent;
}

std::vector<NumberArray> arrays_of(const std::vector<Extent>& extents, NameRule rule) {
    std::vector<NumberArray> arrays;
    for (const Extent& extent : extents) {
        const Numbers numbers = numbers_of(extent.type);
        if (numbers.width == 0 || extent.length < numbers.width) continue;
        NumberArray array{extent.offset, extent.length / numbers.width * numbers.width, numbers.width, numbers.is_float, extent.is_big_endian && numbers.width > 1};
        std::vector<std::uint64_t> shape = extent.shape;
        std::erase(shape, 1);  // there are no neighbours along it
        if (numbers.in_each > 1) shape.push_back(numbers.in_each);
        const std::uint64_t count = extent.length / numbers.width;
        array.row = stride_of(shape, 1, count);
        array.plane = array.row == 0 ? 0 : stride_of(shape, 2, count);
        array.key = similarity_number(extent, rule);
        arrays.push_back(array);
    }
    std::sort(arrays.begin(), arrays.end(), [](const NumberArray& a, const NumberArray& b) { return a.offset < b.offset; });
    return arrays;
}

}  // namespace cairn
