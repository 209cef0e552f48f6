// TextTable: two passes, widths then lines.
#include "base/text_table.hpp"

#include <algorithm>
#include <cmath>

#include "base/units.hpp"

namespace cairn {

std::size_t characters(std::string_view text) {  // every byte but the continuation bytes
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void TextTable::add(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    rows_.push_back(std::move(cells));
}

std::vector<std::size_t> TextTable::widths() const {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t width = characters(columns_[c].title);
        for (const auto& row : rows_) width = std::max(width, characters(row[c]));
        widths.push_back(width);
    }
    return widths;
}

std::size_t TextTable::width() const {
    if (columns_.empty()) return 0;
    std::size_t all = 2 * (columns_.size() - 1);
    for (const std::size_t one : widths()) all += one;
    return all;
}

void TextTable::leave_out(std::size_t column) {
    const auto at = static_cast<std::ptrdiff_t>(column);
    columns_.erase(columns_.begin() + at);
    for (auto& row : rows_) row.erase(row.begin() + at);
}

void TextTable::fit(std::size_t width, const std::vector<std::string_view>& expendable) {
    for (const std::string_view title : expendable) {
        if (width == 0 || this->width() <= width) return;
        for (std::size_t c = 0; c < columns_.size(); ++c)
            if (columns_[c].title == title) leave_out(c--);
    }
}

std::string TextTable::to_string(std::size_t indent) const {
    const std::vector<std::size_t> widths = this->widths();
    std::string out;
    const auto line = [&](const auto& cell_of) {
        std::string text(indent, ' ');
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const std::string cell = cell_of(c);
            const std::string pad(widths[c] - characters(cell), ' ');
            text += c == 0 ? "" : "  ";
            text += columns_[c].align == Align::right ? pad + cell : cell + pad;
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + "\n";
    };
    const auto across = [&] { line([&](std::size_t c) { return std::string(widths[c], '-'); }); };
    line([&](std::size_t c) { return columns_[c].title; });
    across();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        if (std::find(rules_.begin(), rules_.end(), r) != rules_.end()) across();
        line([&](std::size_t c) { return rows_[r][c]; });
    }
    return out;
}

std::string plural(std::uint64_t count, std::string_view singular) {
    return format_count(count) + " " + std::string(singular) + (count == 1 ? "" : "s");
}

std::string for_terminal(std::string_view text) {
    std::string out(text);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto c = static_cast<unsigned char>(out[i]);
        if (c < ' ' || c == 0x7f) out[i] = '?';
        // U+0080 to U+009F: some terminals take these for the escape sequences that they stand for.
        const bool is_c1 = c == 0xC2 && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xA0;
        if (is_c1) out[i] = out[i + 1] = '?';
    }
    return out;
}

std::string format_ranges(const std::vector<std::uint32_t>& numbers, std::size_t items_max) {
    std::string out;
    std::size_t items = 0;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t end = i + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
        if (!out.empty()) out += ", ";
        if (items++ == items_max) return out + "...";
        out += std::to_string(numbers[i]);
        if (end - i > 1) out += (end - i > 2 ? "-" : ", ") + std::to_string(numbers[end - 1]);
        i = end;
    }
    return out;
}

std::string format_bar(double share, std::size_t width) {
    const double bounded = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
    const auto full = static_cast<std::size_t>(bounded * static_cast<double>(width));
    return "[" + std::string(full, '#') + std::string(width - full, ' ') + "]";
}

}  // namespace cairn
