// ConfigEdit: a few keys of a `cairn.toml` get new values, and all else stays as somebody wrote it: comments, order, other keys. Text to text; who
// calls reads and writes the file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"

namespace cairn {

// One key by its full name ("flush.writers") and its value as TOML has it (8, "append" with its quotes, true).
using ConfigChange = std::pair<std::string, std::string>;

// Where a key stands already its value is replaced, and a comment behind it stays; else it comes last in its section, which is made at the end when
// there is none. The result is read back: invalid_argument, and no text, when it does not say what it should (keys in inline tables, a file that is
// not TOML); then a person has to edit it.
Result<std::string> edit_config(const std::string& text, const std::vector<ConfigChange>& changes);

// Lines that differ, "- " before the old ones and "+ " before the new ones, each pair where it stands.
std::string config_difference(const std::string& before, const std::string& after);

}  // namespace cairn
