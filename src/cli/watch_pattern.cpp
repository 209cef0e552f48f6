#include "cli/watch_pattern.hpp"

#include <fnmatch.h>

#include <charconv>

namespace cairn::cli {

namespace {

constexpr std::string_view mark = "{version}";

bool digit(char c) { return c >= '0' && c <= '9'; }

bool fits(const std::string& glob, const std::string& text) { return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0; }

}  // namespace

Result<FilePattern> FilePattern::parse(const std::string& text) {
    const std::string what = "--pattern '" + text + "'";
    FilePattern pattern;
    pattern.text_ = text;
    const std::size_t slash = text.rfind('/');
    if (slash != std::string::npos) pattern.folder_ = slash == 0 ? "/" : text.substr(0, slash);
    const std::string name = slash == std::string::npos ? text : text.substr(slash + 1);
    if (pattern.folder_.find_first_of("*?[") != std::string::npos || pattern.folder_.find(mark) != std::string::npos)
        return invalid_argument(what + ": only the file's name may vary, not the folder; all files are in one folder");
    const std::size_t at = name.find(mark);
    if (at == std::string::npos)
        return invalid_argument(what +
                                " has no {version} in the file's name: write it where the number of the "
                                "checkpoint stands, as in 'melt.restart.{version}.*'");
    pattern.before_ = name.substr(0, at);
    pattern.after_ = name.substr(at + mark.size());
    if (pattern.after_.find(mark) != std::string::npos) return invalid_argument(what + " has {version} twice");
    return pattern;
}

std::optional<Version> FilePattern::match(const std::string& name) const {
    std::optional<Version> best;
    std::size_t best_length = 0;
    for (std::size_t from = 0; from < name.size(); ++from) {
        if (!digit(name[from]) || !fits(before_, name.substr(0, from))) continue;
        std::size_t end = from;
        while (end < name.size() && digit(name[end])) ++end;
        for (; end - from > best_length; --end) {
            if (!fits(after_, name.substr(end))) continue;
            Version version = 0;
            if (std::from_chars(name.data() + from, name.data() + end, version).ec == std::errc{}) {
                best = version;
                best_length = end - from;
            }
            break;
        }
    }
    return best;
}

}  // namespace cairn::cli
