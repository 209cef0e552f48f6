// PlacementTargets: the storage targets of one directory, and how a file is made so that it lands on one of them. A
// plain value: it is detected (detect.hpp), and the driver of persistent (driver.hpp) uses it without knowing the file system.
#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "storage/placement.hpp"

namespace cairn {

struct PlacementTargets {
    std::string driver = "none";     // whose they are
    std::vector<std::string> names;  // in the order in which parts go round them; none: files go where they go
    std::string before_target;       // a file NAME made as NAME + before_target + target lies on that target, as NAME
    std::string by;                  // set: a file is laid on one by a call of this driver (world/placing.hpp), and not by its name
    Stripe unasked;                  // with `by`: how files lie for which nobody asks for a target or stripes
    bool spans = false;              // with `by`: a file can lie on several of them
    std::string warning;             // what a user must know of this file system

    // Under which path the new file `path` is created so that it lies on `target`; by then its name is `path`, for
    // everybody. Without a target, or with one that is not known here (another node may have found others), or where the
    // name would become too long, it is `path`: placing is an improvement, never a condition.
    std::string create_path(const std::string& path, const std::string& target) const;

    // What is to be asked of that call: the target and, if there are to be several stripes, the others on which they lie (stripe_targets). Nothing (by is empty) where a file's name says it, or where nobody asks for anything.
    Placing placing(const std::string& target, const Stripe& stripe) const;

    // Only these, in this order; none named: all of them. invalid_argument when one is not there.
    Result<PlacementTargets> only(const std::vector<std::string>& wanted) const;

    bool operator==(const PlacementTargets&) const = default;
};

// "a, b, c"
std::string names_text(const std::vector<std::string>& names);

}  // namespace cairn
