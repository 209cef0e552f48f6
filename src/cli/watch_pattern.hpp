// FilePattern: which files of a folder belong to which version, as `cairn watch --pattern` says it.
#pragma once

#include <optional>
#include <string>

#include "base/status.hpp"
#include "model/types.hpp"

namespace cairn::cli {

// "[folder/]melt.restart.{version}.*": {version}, once, stands for a decimal number, the rest of the file's name is a
// shell glob. Where several readings of a name fit, the longest number counts, then the leftmost.
class FilePattern {
  public:
    static Result<FilePattern> parse(const std::string& text);

    // What stands before the last '/'; empty: nothing.
    const std::string& folder() const noexcept { return folder_; }
    const std::string& text() const noexcept { return text_; }
    // The version that a file of this name belongs to; 0 is returned like any other number.
    std::optional<Version> match(const std::string& name) const;

  private:
    FilePattern() = default;
    std::string text_, folder_, before_, after_;
};

}  // namespace cairn::cli
