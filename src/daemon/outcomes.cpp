#include "daemon/outcomes.hpp"

#include <utility>

#include "catalog/catalog.hpp"

namespace cairn {

Task<Code> Outcomes::of(VersionKey key) {
    if (const auto seen = seen_.find(key); seen != seen_.end()) co_return seen->second;
    const Code code = co_await look(key);
    seen_.emplace(key, code);
    co_return code;
}

Task<Code> Outcomes::look(VersionKey key) {
    Result<Manifest> manifest = co_await read_manifest(world_, layout_, key, world_.clock.in(io_wait_));
    if (manifest.ok()) co_return manifest->abandoned ? Code::cancelled : Code::ok;
    if (manifest.code() != Code::not_found || rule_.last == 0) co_return manifest.code();
    if (!series_.count(key.name)) {
        Result<std::vector<CatalogEntry>> entries = co_await list_versions(world_, layout_, key.name, world_.clock.in(io_wait_));
        if (!entries.ok()) co_return Code::not_found;  // flushed in vain at worst
        series_.emplace(key.name, std::move(entries).value());
    }
    co_return rule_keeps(rule_, series_.at(key.name), key) ? Code::not_found : Code::ok;
}

}  // namespace cairn
