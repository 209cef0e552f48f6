#include "read/array_slice.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>

namespace cairn {

namespace {

// A place along an axis, from its end where it is negative. `ends`: one behind the last is meant, and a place beyond it is that, as in Python.
std::optional<std::uint64_t> place_of(std::string_view text, std::uint64_t extent, bool ends) {
    const bool from_end = text.starts_with('-');
    std::uint64_t number = 0;
    if (from_end) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (from_end && number != 0) {  // -0 is 0
        if (number > extent) return ends ? std::optional<std::uint64_t>(0) : std::nullopt;
        return extent - number;
    }
    if (ends) return std::min(number, extent);
    return number < extent ? std::optional(number) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

std::optional<AxisRange> axis_range(std::string_view text, std::uint64_t extent) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) {
        const auto place = place_of(text, extent, false);
        if (!place) return std::nullopt;
        return AxisRange{*place, *place + 1};
    }
    const std::string_view from = trimmed(text.substr(0, colon)), to = trimmed(text.substr(colon + 1));
    const auto begin = from.empty() ? std::optional<std::uint64_t>(0) : place_of(from, extent, true);
    const auto end = to.empty() ? std::optional(extent) : place_of(to, extent, true);
    if (!begin || !end) return std::nullopt;
    return AxisRange{*begin, std::max(*begin, *end)};
}

}  // namespace

Result<std::vector<AxisRange>> parse_slice(std::string_view text, const std::vector<std::uint64_t>& shape) {
    std::vector<AxisRange> axes;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        const std::string_view word = trimmed(text.substr(at, comma - at));
        at = comma + 1;
        if (axes.size() == shape.size()) return invalid_argument("it names more axes than there are: " + std::to_string(shape.size()));
        const auto range = axis_range(word, shape[axes.size()]);
        if (!range)
            return invalid_argument("axis " + std::to_string(axes.size()) + ": '" + std::string(word) + "' is no place and no range of the " + std::to_string(shape[axes.size()]) + " that it has; write 3, -1, 3:7, 3: or : (steps are not had)");
        axes.push_back(*range);
    }
    for (std::size_t i = axes.size(); i < shape.size(); ++i) axes.push_back({0, shape[i]});
    return axes;
}

// A row: what of the last axis that is not taken whole lies together, with all of the axes behind it.
ArraySlice::ArraySlice(std::uint64_t element_bytes, const std::vector<std::uint64_t>& shape, const std::vector<AxisRange>& axes) {
    std::size_t last = shape.size() - 1;
    while (last > 0 && axes[last].begin == 0 && axes[last].end == shape[last]) --last;
    std::uint64_t stride = element_bytes;
    for (std::size_t i = last + 1; i < shape.size(); ++i) stride *= shape[i];
    row_bytes_ = (axes[last].end - axes[last].begin) * stride;
    first_ = axes[last].begin * stride;
    axes_.resize(last);
    for (std::size_t i = last; i-- > 0;) {
        stride *= shape[i + 1];
        axes_[i] = {stride, axes[i].begin, axes[i].end - axes[i].begin};
        rows_ *= axes_[i].count;
    }
    if (row_bytes_ == 0) rows_ = 0;
}

std::uint64_t ArraySlice::row_at(std::uint64_t row) const {
    std::uint64_t at = first_;
    for (std::size_t i = axes_.size(); i-- > 0;) {
        at += (axes_[i].begin + row % axes_[i].count) * axes_[i].stride;
        row /= axes_[i].count;
    }
    return at;
}

std::uint64_t ArraySlice::row_ending_after(std::uint64_t at) const {
    std::uint64_t low = 0, high = rows_;
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (row_at(middle) + row_bytes_ <= at) low = middle + 1;
        else high = middle;
    }
    return low;
}

std::uint64_t ArraySlice::before(std::uint64_t at) const {
    const std::uint64_t row = row_ending_after(at);
    if (row == rows_) return bytes();
    const std::uint64_t begin = row_at(row);
    return row * row_bytes_ + (at > begin ? at - begin : 0);
}

// Gaps along an axis are no shorter than those along the axes within it, so the innermost axes go together as far as their gaps are short.
std::vector<ImageRange> ArraySlice::ranges(std::uint64_t gap_bytes) const {
    std::uint64_t run_bytes = row_bytes_, rows_each = 1;
    for (std::size_t i = axes_.size(); i-- > 0 && rows_ > 0;) {
        if (axes_[i].count > 1 && axes_[i].stride - run_bytes >= gap_bytes) break;
        run_bytes += (axes_[i].count - 1) * axes_[i].stride;
        rows_each *= axes_[i].count;
    }
    std::vector<ImageRange> ranges;
    for (std::uint64_t row = 0; row < rows_; row += rows_each) ranges.push_back({row_at(row), run_bytes});
    return ranges;
}

void ArraySlice::cut(std::uint64_t at, ByteView data, std::byte* into) const {
    const std::uint64_t end = at + data.size();
    for (std::uint64_t row = row_ending_after(at); row < rows_; ++row) {
        const std::uint64_t begin = row_at(row);
        if (begin >= end) return;
        const std::uint64_t from = std::max(begin, at), length = std::min(begin + row_bytes_, end) - from;
        std::memcpy(into, data.data() + (from - at), length);
        into += length;
    }
}

}  // namespace cairn
