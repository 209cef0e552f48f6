// TextTable: aligned columns for people. Columns of numbers are flush right; the last column is not padded; widths
// count characters, not bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

class TextTable {
  public:
    enum class Align : std::uint8_t { left, right };
    struct Column {
        std::string title;
        Align align = Align::left;
    };

    explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
    // One cell a column; missing cells are empty.
    void add(std::vector<std::string> cells);
    // A line across the table before the next row.
    void rule() { rules_.push_back(rows_.size()); }
    std::size_t rows() const noexcept { return rows_.size(); }
    // Leaves out columns of `expendable`, by title, in that order, until the table is at most `width` characters wide
    // (0: as wide as it likes).
    void fit(std::size_t width, const std::vector<std::string_view>& expendable);
    // Title line, a rule, the rows; every line ends with a newline and has no trailing blanks. `indent` blanks before
    // each.
    std::string to_string(std::size_t indent = 0) const;

  private:
    std::vector<std::size_t> widths() const;
    std::size_t width() const;
    void leave_out(std::size_t column);

    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
    std::vector<std::size_t> rules_;
};

// Characters of UTF-8. Those of wide scripts take two columns of a terminal and count as one.
std::size_t characters(std::string_view text);

inline TextTable::Column left(std::string title) { return {std::move(title), TextTable::Align::left}; }
inline TextTable::Column right(std::string title) { return {std::move(title), TextTable::Align::right}; }

// "1 rank", "4 ranks".
std::string plural(std::uint64_t count, std::string_view singular);

// Control characters as '?': names come from files and must not drive a terminal.
std::string for_terminal(std::string_view text);

// Increasing numbers as people write them: "0-3, 7". Longer than `items_max` runs ends in "...".
std::string format_ranges(const std::vector<std::uint32_t>& numbers, std::size_t items_max = 16);

// "[########        ]" of `width` characters inside the brackets.
std::string format_bar(double share, std::size_t width);

}  // namespace cairn
