#include "storage/targets.hpp"

#include <algorithm>

namespace cairn {

namespace {

constexpr std::size_t name_bytes_max = 255;  // NAME_MAX

bool holds(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string PlacementTargets::create_path(const std::string& path, const std::string& target) const {
    if (!holds(names, target)) return path;
    const std::size_t name_bytes = path.size() - (path.rfind('/') + 1);  // npos + 1 is 0
    if (name_bytes + before_target.size() + target.size() > name_bytes_max) return path;
    return path + before_target + target;
}

Result<PlacementTargets> PlacementTargets::only(const std::vector<std::string>& wanted) const {
    if (wanted.empty()) return *this;
    for (const std::string& name : wanted)
        if (!holds(names, name))
            return invalid_argument("there is no storage target " + name + " (placement.targets); there are " +
                                    names_text(names));
    PlacementTargets chosen = *this;
    chosen.names = wanted;
    return chosen;
}

std::string names_text(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

}  // namespace cairn
