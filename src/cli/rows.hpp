// Long tables: rows beyond some forty are counted, not printed, unless all are asked for.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "base/text_table.hpp"
#include "base/units.hpp"
#include "cli/console.hpp"

namespace cairn::cli {

class Rows {
  public:
    Rows(Console& console, TextTable table, bool all) : console_(console), table_(std::move(table)), all_(all) {}
    void add(std::vector<std::string> cells) {
        if (all_ || table_.rows() < rows_shown)
            table_.add(std::move(cells));
        else
            ++left_out_;
    }
    void print(const char* otherwise) {
        if (table_.rows() == 0)
            console_.out << otherwise << "\n";
        else
            console_.out << table_.to_string();
        if (left_out_ != 0) console_.out << "... and " << plural(left_out_, "more row") << "; --all shows them\n";
    }

  private:
    static constexpr std::size_t rows_shown = 40;
    Console& console_;
    TextTable table_;
    bool all_;
    std::size_t left_out_ = 0;
};

// "48 x 48 x 24"; of a single number "1".
inline std::string axes_text(const std::vector<std::uint64_t>& shape) {
    std::string text;
    for (const std::uint64_t length : shape) text += (text.empty() ? "" : " x ") + std::to_string(length);
    return text.empty() ? "1" : text;
}

}  // namespace cairn::cli
