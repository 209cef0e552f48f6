#include "base/roff.hpp"

#include <algorithm>

namespace cairn {

std::string roff(std::string_view text) {
    std::string out;
    bool line_start = true;
    for (const char c : text) {
        if (line_start && (c == '.' || c == '\'')) out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
        line_start = c == '\n';
    }
    return out;
}

std::string roff_paragraphs(std::string_view text) {
    std::string out;
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t end = std::min(text.find("\n\n", from), text.size());
        out += ".PP\n" + roff(text.substr(from, end - from)) + "\n";
        from = end + 2;
    }
    return out;
}

}  // namespace cairn
