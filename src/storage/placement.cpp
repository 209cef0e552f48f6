#include "storage/placement.hpp"

#include <algorithm>
#include <functional>

#include "base/status.hpp"

namespace cairn {

namespace {

// floor(blocks * numerator / denominator), without a product that could overflow. Both below 2^32.
std::uint64_t portion(std::uint64_t blocks, std::uint64_t numerator, std::uint64_t denominator) {
    return blocks / denominator * numerator + blocks % denominator * numerator / denominator;
}

}  // namespace

std::vector<PartShare> share_parts(std::uint64_t blocks, std::uint32_t parts, std::uint32_t targets,
                                   std::uint64_t turn) {
    CAIRN_CHECK(parts > 0);
    std::vector<PartShare> shares(parts);
    const std::uint64_t first = targets == 0 ? 0 : turn % targets * parts % targets;
    for (std::uint32_t part = 0; part < parts; ++part) {
        PartShare& share = shares[part];
        if (targets != 0) share.target = static_cast<std::uint32_t>((first + part) % targets);
        // The blocks are laid end to end, first what the first target of this turn gets, then the second's, and cut.
        std::uint64_t cut = part, cuts = parts;
        if (parts >= targets && targets != 0) {
            const std::uint64_t place = part % targets;
            const std::uint64_t on_target = (parts - place - 1) / targets + 1;
            cut = place * on_target + part / targets;
            cuts = on_target * targets;
        }
        share.blocks = portion(blocks, cut + 1, cuts) - portion(blocks, cut, cuts);
    }
    return shares;
}

Stripe spread(std::uint32_t files, std::uint32_t targets, std::uint64_t file_bytes) {
    if (files == 0 || files >= targets) return {};
    const std::uint64_t most = std::min<std::uint64_t>({stripes_max, targets, std::max<std::uint64_t>(1, file_bytes / stripe_least)});
    Stripe best;
    double best_fill = 0;
    for (std::uint32_t count = 1; count <= most && best_fill < 0.98; ++count) {
        const std::uint64_t stripes = std::uint64_t{files} * count, on_fullest = (stripes + targets - 1) / targets;
        const double fill = static_cast<double>(stripes) / static_cast<double>(on_fullest * targets);
        if (fill > best_fill) best_fill = fill, best.count = count;
    }
    return best.count > 1 ? best : Stripe{};
}

std::vector<std::uint32_t> stripe_targets(std::uint32_t first, std::uint32_t stripes, std::uint32_t targets) {
    std::vector<std::uint32_t> on;
    for (std::uint32_t i = 0; i < stripes; ++i) on.push_back(static_cast<std::uint32_t>((first + std::uint64_t{i} * targets / stripes) % targets));
    return on;
}

std::uint32_t root_of(const std::vector<std::string>& roots, const std::string& target) {
    const auto found = std::find(roots.begin(), roots.end(), target);
    return found == roots.end() ? 0 : static_cast<std::uint32_t>(found - roots.begin()) + 1;
}

std::vector<std::string> with_room(const std::vector<TargetRoom>& targets, std::uint64_t bytes, std::uint32_t parts) {
    std::vector<std::uint64_t> most_first;
    for (const TargetRoom& target : targets) most_first.push_back(target.free_bytes);
    std::sort(most_first.begin(), most_first.end(), std::greater<>());
    std::size_t count = targets.size();
    std::uint64_t needed = 0;
    for (; count > 0; --count) {
        const std::uint64_t share = bytes / std::min<std::uint64_t>(parts, count);
        needed = share + share / 64 + (64u << 10);  // with what describes it
        if (most_first[count - 1] >= needed) break;
    }
    std::vector<std::string> names;
    for (const TargetRoom& target : targets)
        if (count == 0 || target.free_bytes >= needed) names.push_back(target.name);
    return names;
}

}  // namespace cairn
