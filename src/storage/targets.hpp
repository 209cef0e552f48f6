// PlacementTargets: the storage targets of one directory, and how a file is made so that it lands on one of them. A
// plain value: it is detected (detect.hpp), and the driver of persistent (driver.hpp) uses it without knowing the file system.
#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"

namespace cairn {

struct PlacementTargets {
    std::string driver = "none";     // whose they are
    std::vector<std::string> names;  // in the order in which parts go round them; none: files go where they go
    std::string before_target;       // a file NAME made as NAME + before_target + target lies on that target, as NAME

    // Under which path the new file `path` is created so that it lies on `target`; by then its name is `path`, for
    // everybody. Without a target, or with one that is not known here (another node may have found others), or where the
    // name would become too long, it is `path`: placing is an improvement, never a condition.
    std::string create_path(const std::string& path, const std::string& target) const;

    // Only these, in this order; none named: all of them. invalid_argument when one is not there.
    Result<PlacementTargets> only(const std::vector<std::string>& wanted) const;

    bool operator==(const PlacementTargets&) const = default;
};

// "a, b, c"
std::string names_text(const std::vector<std::string>& names);

}  // namespace cairn
