// For manual pages in roff (man macros).
#pragma once

#include <string>
#include <string_view>

namespace cairn {

// Text as roff shows it: no accidental requests, escapes or hyphens that can not be copied.
std::string roff(std::string_view text);
// Paragraphs, separated by an empty line, each with its request.
std::string roff_paragraphs(std::string_view text);

}  // namespace cairn
