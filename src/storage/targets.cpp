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
    if (!by.empty() || !holds(names, target)) return path;
    const std::size_t name_bytes = path.size() - (path.rfind('/') + 1);  // npos + 1 is 0
    if (name_bytes + before_target.size() + target.size() > name_bytes_max) return path;
    return path + before_target + target;
}

Placing PlacementTargets::placing(const std::string& target, const Stripe& stripe) const {
    const auto first = std::find(names.begin(), names.end(), target);
    const Stripe asked = first == names.end() && stripe.count == 0 ? unasked : stripe;
    Placing told;
    if (by.empty() || (first == names.end() && asked.count == 0)) return told;
    told.by = by;
    told.stripe_bytes = asked.bytes;
    told.stripes = asked.count;
    if (first == names.end()) return told;
    const bool is_listed = spans && asked.count <= names.size();
    for (const std::uint32_t i : stripe_targets(static_cast<std::uint32_t>(first - names.begin()), is_listed ? std::max(1u, asked.count) : 1, static_cast<std::uint32_t>(names.size())))
        told.targets.push_back(names[i]);
    return told;
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
