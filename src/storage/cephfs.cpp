#include "storage/cephfs.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

namespace cairn {

namespace {

constexpr std::uint64_t unit_min = 64 << 10, unit_max = 64 << 20;  // CEPH_MIN_STRIPE_UNIT; half of osd_max_object_size
constexpr std::uint64_t object_usual = 4 << 20;
constexpr std::string_view pool_attribute = "ceph.file.layout.pool";

// Of an unknown pool, and of one that is another file system's or nobody's, it says the same: EINVAL.
Status explained(Status refused, const std::string& name, const std::string& value) {
    if (refused.code() == Code::permission) return std::move(refused).within("this client may set no layout: that takes the flag p in its capabilities");
    const bool is_unknown = refused.code() == Code::invalid_argument || refused.code() == Code::not_found;
    if (is_unknown && name == pool_attribute) return std::move(refused).within(value + " (placement.targets) is no data pool of this file system");
    return refused;
}

class CephFs final : public ParallelFileSystem {
  public:
    std::string_view name() const override { return "cephfs"; }

    Result<PlacementTargets> targets(Outside&, const std::string& directory, const std::vector<std::string>& wanted) const override {
        if (wanted.empty()) return unavailable(directory + " is on CephFS, whose data pools can be targets: placement.targets names them");
        return PlacementTargets{"cephfs", wanted, {}, "cephfs"};
    }

    Status make(Outside& outside, const std::string& path, std::uint32_t permissions, const Placing& placing, Nanos) const override {
        TRY(outside.make_file(path, permissions));
        for (const auto& [name, value] : cephfs_attributes(placing)) {
            Status set = outside.set_attribute(path, name, value);
            if (!set.ok()) return explained(std::move(set), name, value);
        }
        return {};
    }

    Result<std::uint64_t> block_bytes(Outside& outside, const std::string& directory) const override {
        const Result<std::string> text = outside.attribute(directory, "ceph.dir.layout.stripe_unit");  // there where somebody has set one
        std::uint64_t bytes = 0;
        if (text.ok() && std::from_chars(text->data(), text->data() + text->size(), bytes).ec == std::errc{} && bytes != 0) return bytes;
        return outside.block_bytes(directory);
    }

    std::vector<std::string> lies_on(Outside& outside, const std::string& path) const override {
        Result<std::string> pool = outside.attribute(path, std::string(pool_attribute));
        if (!pool.ok() || pool->empty()) return {};
        return {"pool " + *pool};
    }

    std::string how() const override { return "an empty file gets the attribute ceph.file.layout.pool; its objects lie in that data pool"; }
};

}  // namespace

std::vector<std::pair<std::string, std::string>> cephfs_attributes(const Placing& placing) {
    std::vector<std::pair<std::string, std::string>> attributes;
    const auto set = [&attributes](const char* field, const std::string& value) { attributes.emplace_back(std::string("ceph.file.layout.") + field, value); };
    if (!placing.targets.empty()) set("pool", placing.targets.front());
    if (placing.stripe_bytes != 0) {
        const std::uint64_t unit = std::bit_ceil(std::clamp(placing.stripe_bytes, unit_min, unit_max));
        if (unit > object_usual) set("object_size", std::to_string(unit));
        set("stripe_unit", std::to_string(unit));
    }
    if (placing.stripes > 1) set("stripe_count", std::to_string(placing.stripes));
    return attributes;
}

const ParallelFileSystem& cephfs() {
    static const CephFs one;
    return one;
}

}  // namespace cairn
