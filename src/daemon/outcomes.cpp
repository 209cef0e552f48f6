#include "daemon/outcomes.hpp"

#include <utility>

#include "catalog/catalog.hpp"

namespace cairn {

Task<Code> Outcomes::of(VersionKey key, Rank rank) {
    const auto seen = seen_.find(key);
    if (seen != seen_.end() && (!seen->second.of_rank || seen->second.of_rank == rank)) co_return seen->second.code;
    const Look now = co_await look(key, rank);
    seen_.insert_or_assign(key, now);
    co_return now.code;
}

// The image may be the only other copy, so a head does not do; and a long manifest need not be read whole by every node.
Task<Outcomes::Look> Outcomes::look(VersionKey key, Rank rank) {
    Result<Manifest> manifest = co_await read_manifest_of(world_, layout_, key, rank, world_.clock.in(io_wait_));
    Look seen;
    seen.code = manifest.code();
    if (manifest.ok()) {
        if (manifest->abandoned) seen.code = Code::cancelled;
        seen.of_rank = manifest->of_rank;
        co_return seen;
    }
    if (seen.code == Code::corrupt) seen.of_rank = rank;  // the damage may be of its records alone
    if (seen.code != Code::not_found || rule_.last == 0) co_return seen;
    if (!series_.count(key.name)) {
        // As the rule counts that took it away (persistent_retention.cpp).
        Result<std::vector<CatalogEntry>> entries = co_await list_versions(world_, layout_, key.name, world_.clock.in(io_wait_), Manifests::whole);
        if (!entries.ok()) co_return seen;  // flushed in vain at worst
        series_.emplace(key.name, std::move(entries).value());
    }
    if (!rule_keeps(rule_, series_.at(key.name), key)) seen.code = Code::ok;
    co_return seen;
}

}  // namespace cairn
