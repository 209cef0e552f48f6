// Names under persistent and in scratch, put together from format/names.
#include "catalog/layout.hpp"

#include <cstdio>

#include "base/checksum.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"

namespace cairn {

std::string Layout::part(const Manifest& manifest, std::size_t part) const {
    const PartInfo& info = manifest.parts[part];
    return version_below(root(manifest.roots, info.root), key_of(manifest, info)) + "/" + info.file;
}
std::string Layout::manifest(const VersionKey& key) const { return version(key) + "/" + manifest_file_name(key.incarnation); }
std::string Layout::safetensors_index(const VersionKey& key) const { return version(key) + "/" + std::string(safetensors_index_name); }
std::string Layout::temporary(const VersionKey& key, Id128 attempt_id) const { return version(key) + "/" + temporary_file_name(attempt_id); }
std::string Layout::lineage_open(const std::string& name, std::uint64_t epoch) const {
    return lineage(name) + "/" + lineage_open_name(epoch);
}
std::string Layout::lineage_from(const std::string& name, std::uint64_t epoch) const {
    return lineage(name) + "/" + lineage_from_name(epoch);
}

std::vector<std::string> roots_besides(const std::string& persistent, std::vector<std::string> roots) {
    std::erase(roots, persistent);
    return roots;
}

ScratchLayout ScratchLayout::of(const std::string& scratch, std::uint32_t uid, const std::string& node, const std::string& persistent) {
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(checksum(as_bytes(persistent))));
    return {scratch + "/cairn-" + std::to_string(uid) + "-" + node + "-" + hash};
}

}  // namespace cairn
