// Records, manifests and images of a series "melt" with ranks 0 and 1, as the catalog and scratch would tell them.
#pragma once

#include "read/series.hpp"

namespace cairn::testing {

inline const Id128 first_job{1, 1}, second_job{2, 2};

inline LineageEntry opened(Id128 incarnation, std::uint64_t epoch, std::optional<Parent> from = std::nullopt) {
    LineageEntry entry;
    entry.open.incarnation = incarnation;
    entry.open.epoch = epoch;
    entry.open.ranks = 2;
    if (from) entry.from = FromRecord{incarnation, *from};
    return entry;
}

inline CatalogEntry committed(Id128 incarnation, std::uint64_t epoch, Version version, Parent parent = {}) {
    CatalogEntry entry;
    entry.key = {"melt", version, incarnation};
    entry.manifest.emplace();
    entry.manifest->key = entry.key;
    entry.manifest->epoch = epoch;
    entry.manifest->parent = parent;
    entry.manifest->ranks = 2;
    entry.manifest->image_bytes = 1000;
    return entry;
}

inline CatalogEntry given_up(Id128 incarnation, std::uint64_t epoch, Version version) {
    CatalogEntry entry = committed(incarnation, epoch, version);
    entry.manifest->abandoned = true;
    return entry;
}

inline ScratchImage image(Id128 incarnation, std::uint64_t epoch, Version version, Rank rank, Parent parent = {}) {
    return {{"melt", version, incarnation}, epoch, parent, rank, 2, 500, "/scratch/slot-" + std::to_string(rank), {}};
}

}  // namespace cairn::testing
