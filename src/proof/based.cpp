#include "proof/based.hpp"

#include <algorithm>

#include "catalog/manifest_lookup.hpp"

namespace cairn::testing {

Status check_based(SeedRun& run, Kept& kept, const OpenVersion& version) {
    const Manifest& manifest = version.manifest;
    if (run.known.dependents.count(manifest.key)) return {};  // it has all its parts of an older one
    bool needs = false;
    for (const Footer& footer : version.footers)
        for (const StoredRun& stored : footer.runs) needs |= stored.base != 0;
    if (needs != !manifest.bases.empty()) return corrupt(needs ? "bytes of it need a version that it does not name" : "it names a version that no byte of it needs");
    if (!needs) return {};
    run.see(Saw::based);
    if (run.cluster.has_come_encoded()) run.see(Saw::based_before_ship);
    const BaseVersion& base = manifest.bases.front();
    if (manifest.bases.size() != 1 || base.incarnation != manifest.key.incarnation || base.version >= manifest.key.version) return corrupt("it depends on another than one older version of its job");
    const VersionKey key(manifest.key.name, base.version, base.incarnation);
    const Result<Manifest> standing = kept.run(read_manifest(kept.world(), run.cluster.layout, key, never));
    if (!standing.ok()) return standing.status().within("the version that it depends on");
    if (standing->abandoned || !standing->bases.empty()) return corrupt(standing->abandoned ? "it depends on one that was given up" : "it depends on one that depends on another");
    run.known.based_on[key].insert(manifest.key.version);
    if (run.known.based_on[key].size() >= run.scenario.full_every) return corrupt("more versions depend on one than the job asked for");
    return {};
}

}  // namespace cairn::testing
