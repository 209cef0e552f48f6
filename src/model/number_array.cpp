#include "model/number_array.hpp"

#include <algorithm>

namespace cairn {

bool are_sound(const std::vector<NumberArray>& arrays, std::uint64_t bytes) {
    std::uint64_t end = 0;
    for (const NumberArray& array : arrays) {
        const bool is_width = array.width == 1 || array.width == 2 || array.width == 4 || array.width == 8;
        if (!is_width || array.offset < end || array.offset > bytes || array.length == 0 || array.length > bytes - array.offset || array.length % array.width != 0) return false;
        end = array.offset + array.length;
    }
    return true;
}

std::vector<NumberArray> within(const std::vector<NumberArray>& arrays, std::uint64_t offset, std::uint64_t length) {
    std::vector<NumberArray> found;
    const auto ends_before = [](const NumberArray& array, std::uint64_t at) { return array.offset + array.length <= at; };
    for (auto each = std::lower_bound(arrays.begin(), arrays.end(), offset, ends_before); each != arrays.end() && each->offset < offset + length; ++each) {
        std::uint64_t begin = std::max(each->offset, offset);
        begin += (each->width - (begin - each->offset) % each->width) % each->width;
        const std::uint64_t end = std::min(each->offset + each->length, offset + length);
        if (begin + each->width > end) continue;
        NumberArray part = *each;
        part.offset = begin - offset;
        part.length = (end - begin) / each->width * each->width;
        found.push_back(part);
    }
    return found;
}

}  // namespace cairn
