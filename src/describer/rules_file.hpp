// The user's rules (describe/rules.hpp), out of the file that the setting describe.rules or a command names.
#pragma once

#include <memory>
#include <string>

#include "describe/rules.hpp"

namespace cairn {

// Null: no path, no rules. invalid_argument names file, line and rule, and what is allowed; or the code of the failed read.
Result<std::shared_ptr<const FileRules>> load_file_rules(const std::string& path);

}  // namespace cairn
