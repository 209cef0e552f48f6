#include "describer/rules_file.hpp"

#include "base/config.hpp"

namespace cairn {

Result<std::shared_ptr<const FileRules>> load_file_rules(const std::string& path) {
    if (path.empty()) return std::shared_ptr<const FileRules>();
    TRY_ASSIGN(const std::string text, read_settings_text(path));
    TRY_ASSIGN(FileRules rules, parse_file_rules(text, path));
    return std::make_shared<const FileRules>(std::move(rules));
}

}  // namespace cairn
