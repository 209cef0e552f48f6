#include "engine/router/dead_images.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "catalog/removal.hpp"
#include "format/names.hpp"

namespace cairn {

namespace {

constexpr Nanos soonest = 2 * second;  // after a look that left some
constexpr Nanos seldom = 60 * second;
constexpr Nanos settle_down = 20 * millisecond;  // many changes at once are one

}  // namespace

DeadImages::DeadImages(World world, Layout layout, Node& node, Scratch& scratch, Nanos io_wait)
    : world_(world), layout_(std::move(layout)), node_(node), scratch_(scratch), io_wait_(io_wait), news_(world.clock) {}

void DeadImages::look_soon() {
    wanted_ = true;
    news_.notify_all();
}

Task<void> DeadImages::run() {
    for (Nanos pause = soonest;;) {
        wanted_ = false;
        const bool done = co_await look(world_.clock.in(io_wait_));
        const bool cleared = co_await clear();
        pause = done && cleared ? seldom : pause == seldom ? soonest : std::min(2 * pause, seldom);
        const Nanos next = world_.clock.in(pause);
        while (!wanted_ && world_.clock.now() < next) co_await news_.wait(next);
        co_await world_.clock.sleep(settle_down);
    }
}

// The head's first commit decides on what waits for it.
Task<void> DeadImages::watch_commits() {
    for (;;) {
        co_await node_.changed().wait();
        co_await world_.clock.sleep(settle_down);
        for (const VersionKey& key : node_.versions()) {
            if (node_.state(key).level != Level::committed) continue;
            std::uint64_t& newest = committed_[key.name];
            const std::uint64_t epoch = node_.epoch_of(key.incarnation);
            if (epoch <= newest) continue;
            newest = epoch;
            look_soon();
        }
    }
}

// The node's own flights, and what of scratch did not come to it.
std::map<VersionKey, DeadImages::Scratch::Held> DeadImages::undecided() {
    std::map<VersionKey, Scratch::Held> all;
    for (Undecided& each : node_.undecided()) {
        const VersionKey key = each.key;
        all[key].version = std::move(each);
    }
    for (Scratch::Held& each : scratch_.undecided()) {
        const VersionKey key = each.version.key;
        all[key] = std::move(each);
    }
    return all;
}

Task<bool> DeadImages::look(Nanos deadline) {
    std::set<std::string> names;
    for (const auto& [key, held] : undecided()) names.insert(key.name);
    bool done = true;
    for (const std::string& name : names) {
        const bool looked = co_await look_at(name, deadline);
        done &= looked;
    }
    co_return done;
}

Task<bool> DeadImages::look_at(std::string name, Nanos deadline) {
    const std::map<VersionKey, Scratch::Held> before = undecided();
    std::uint64_t oldest = UINT64_MAX;
    for (const auto& [key, held] : before)
        if (key.name == name) oldest = std::min(oldest, held.version.epoch);
    Result<bool> newer = co_await opened_since(name, oldest, deadline);
    if (!newer.ok()) co_return false;
    if (!*newer) co_return true;  // the usual case: these are the running job's
    Result<LineageRecords> records = co_await read_lineage(world_, layout_, name, deadline);
    if (!records.ok()) co_return false;
    Result<std::vector<CatalogEntry>> entries = co_await list_versions(world_, layout_, name, deadline);
    if (!entries.ok()) co_return false;
    std::map<VersionKey, std::string> dead;
    for (const auto& [key, held] : before)
        if (const auto why = key.name == name ? why_dead(*records, *entries, key, held.version.epoch) : std::nullopt) dead.emplace(key, *why);
    if (dead.empty()) co_return true;
    const Status durable = co_await make_durable(*records, *entries, deadline);
    if (!durable.ok()) co_return false;
    bool done = true;
    for (const auto& [key, now] : undecided()) {
        const auto why = dead.find(key);
        if (why == dead.end()) continue;
        const Scratch::Held& was = before.at(key);
        if (was.in_use || now.in_use || was.taken != now.taken) done = false;
        else end(now.version, why->second);
    }
    co_return done;
}

// Who named the parent, or published the commit that decides, may have died before that name was durable; without it another lineage is the current one.
Task<Status> DeadImages::make_durable(const LineageRecords& records, const std::vector<CatalogEntry>& entries, Nanos deadline) {
    if (records.opens.empty()) co_return unavailable(layout_.lineage(records.name) + ": its records are away");
    const LineageEntry& last = records.opens.back();
    const std::string record = last.from || last.from_damage ? layout_.lineage_from(records.name, last.open.epoch) : layout_.lineage_open(records.name, last.open.epoch);
    Status synced = co_await world_.storage.fsync_name(record, deadline);
    const Id128 head = current_lineage(records, entries, {}).links.front().incarnation;
    const auto commit = std::find_if(entries.begin(), entries.end(), [&](const CatalogEntry& entry) { return entry.committed() && entry.key.incarnation == head; });
    if (synced.ok() && commit != entries.end()) {
        Status also = co_await world_.storage.fsync_name(layout_.manifest(commit->key), deadline);
        synced = std::move(also);
    }
    co_return synced;
}

// Every open has a record, so one list tells, and most looks end there.
Task<Result<bool>> DeadImages::opened_since(std::string name, std::uint64_t epoch, Nanos deadline) {
    Result<std::vector<DirectoryEntry>> records = co_await world_.storage.list(layout_.lineage(name), deadline);
    if (records.code() == Code::not_found) co_return false;
    if (!records.ok()) co_return std::move(records).status();
    co_return std::any_of(records->begin(), records->end(), [&](const DirectoryEntry& record) {
        const std::optional<std::uint64_t> taken = parse_lineage_open_name(record.name);
        return taken && *taken > epoch;
    });
}

void DeadImages::end(const Undecided& version, const std::string& why) {
    const VersionKey& key = version.key;
    log_info("version-dead", {{"name", key.name}, {"version", key.version}, {"incarnation", key.incarnation}, {"why", why}});
    node_.give_up(key, Status(Code::superseded, version_text(key) + ": given up: " + why));
    scratch_.let_go(key);
    to_clear_.emplace(key, version);
}

Task<bool> DeadImages::clear() {
    const std::map<VersionKey, Undecided> now = to_clear_;
    for (const auto& [key, version] : now) {
        Undecided dead = version;
        const Status cleared = co_await clear_dead(world_, layout_, std::move(dead), io_wait_);
        if (cleared.ok()) to_clear_.erase(key);
        else log_warning("parts-of-dead-version-stay", {{"name", key.name}, {"version", key.version}, {"why", cleared}});
    }
    co_return to_clear_.empty();
}

}  // namespace cairn
