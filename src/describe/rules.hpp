// Rules: what a user says of files that no format describes. Each says of which files it speaks, from where on numbers lie in them, of which type, and in which shape. Pure.
//
// A rule that is wrong is an error, with its line and what is allowed; a file that a rule does not fit is none: it is described as far as it goes, or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "describe/extent.hpp"

namespace cairn {

struct FileRule {
    std::string files;  // pattern of the file's name, as of a shell; without a "/" of its last part
    std::uint64_t offset = 0;
    DataType type = DataType::bytes;
    bool is_big_endian = false;
    std::vector<std::int64_t> shape = {-1};  // as an extent's; -1, at most once: as many as there are
    std::string name;
    bool operator==(const FileRule&) const = default;
};
using FileRules = std::vector<FileRule>;

inline constexpr std::size_t file_rules_max = 1000;
inline constexpr std::string_view rules_format = "rule";  // of a Description that they make

// A file in TOML: [[rule]] with files, type and, where it is not what stands above, offset, shape and name. `path` is for the texts.
Result<FileRules> parse_file_rules(std::string_view text, const std::string& path);

// What the rules say of a file of so many bytes. Empty: none speaks of it, or fits.
std::vector<Extent> describe_by_rules(const FileRules& rules, const std::string& name, std::uint64_t file_bytes);

}  // namespace cairn
