// Restorable: which versions of a lineage can be gone back to, from persistent or from the scratch of all ranks.
#pragma once

#include <string>
#include <vector>

#include "catalog/lineage.hpp"

namespace cairn {

struct RestorableVersion {
    VersionKey key;
    std::uint64_t epoch = 0;
    std::uint32_t ranks = 0;  // 0: not committed
    std::uint64_t bytes = 0;  // of all ranks; 0: not committed
    bool committed = false;
    bool sealed = false;  // in the scratch of every rank
    Status damage;        // its manifest, or its directory, can not be read
    bool can_be_had() const { return committed || sealed; }
};

// What persistent and scratch together hold of a lineage, by version; of damaged ones, too, so that whoever passes them over can name them.
std::vector<RestorableVersion> restorable_versions(const Lineage& lineage, const std::vector<CatalogEntry>& entries,
                                                   const std::vector<SealedVersion>& sealed);
Version newest_of(const std::vector<RestorableVersion>& versions);  // 0: none can be had

// The same, of what is on persistent now, for an open of `incarnation` that has done nothing yet. An error where what a restart should take can not be told.
struct RestorableSeries {
    std::vector<RestorableVersion> versions;
    std::vector<Status> passed_over;  // records that can not be read and decide nothing
    Status tail;                      // not ok: there may be older versions, and which can not be told (Lineage::tail)
};
Task<Result<RestorableSeries>> load_restorable(World& world, Layout layout, std::string name, std::vector<SealedVersion> sealed,
                                               Id128 incarnation, Nanos deadline);

}  // namespace cairn
