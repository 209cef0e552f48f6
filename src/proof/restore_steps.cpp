// A restart while storage is in trouble: whoever reads may fail, or take an older version and say which it passed over. It never gets other bytes than
// were captured, nor silently something older than was called committed.
#include <algorithm>

#include "proof/promise.hpp"
#include "proof/steps.hpp"

namespace cairn::testing {

namespace {

struct Restart {
    Status looked{Code::deadline, "killed"};
    std::optional<VersionKey> got;
    std::map<VersionKey, Status> passed_over;  // named to the user, and why
    std::optional<std::pair<VersionKey, Status>> refused;  // what it does not go back behind, and why
    std::optional<std::string> wrong;
    std::uint64_t taken = 0;  // runs that one rank had from another
};
using Slots = std::map<std::pair<VersionKey, Rank>, std::string>;

std::vector<ImagePlaces> all_places(const Cluster& cluster, const RestorableVersion& version, const Slots& slots) {
    std::vector<ImagePlaces> places;
    for (Rank rank = 0; rank < cluster.ranks(); ++rank) {
        const auto slot = slots.find({version.key, rank});
        places.push_back({version.key, rank, slot == slots.end() ? std::string() : slot->second, version.committed});
    }
    return places;
}

// All ranks, one after the other in one process; those of this node find their images in its scratch.
Task<Fetched> fetch_all(const Cluster* cluster, World world, std::vector<ImagePlaces> places) {
    Fetched fetched;
    for (std::size_t i = 0; i < places.size() && fetched.status.ok(); ++i) {
        Fetched got = co_await cluster->fetch(world, places[i], places[i].key);
        fetched = std::move(got);
    }
    co_return fetched;
}

Task<void> fetch_one(const Cluster* cluster, World world, ImagePlaces places, Fetched* out) {
    const VersionKey key = places.key;
    Fetched got = co_await cluster->fetch(world, std::move(places), key);
    *out = std::move(got);
}

// At the same time, as if all of them ran on this node.
Task<Fetched> fetch_together(const Cluster* cluster, World world, NodeIndex node, std::vector<ImagePlaces> places) {
    cluster->share(node, places);
    std::vector<Fetched> all(places.size());
    Gate gate(world.clock);
    for (std::size_t i = 0; i < places.size(); ++i) gate.spawn(fetch_one(cluster, world, places[i], &all[i]));
    co_await gate.close();
    Fetched fetched;
    std::uint64_t taken = 0;
    for (Fetched& each : all) {
        taken += each.shared.taken;
        // Wrong bytes are told before anything else.
        const bool counts = fetched.status.ok() || (each.status.code() == Code::internal && fetched.status.code() != Code::internal);
        if (counts) fetched = std::move(each);
    }
    fetched.shared.taken = taken;
    co_return fetched;
}

// Which versions there are, and each rank's bytes, come from `read`, as for the library. The loop is told again: that of the library (RestoreRun::newest in
// client/restore.cpp) belongs to a rank that talks to the others.
Task<void> restart(const Cluster* cluster, World world, NodeIndex node, int tries, const Slots* slots, Restart* out) {
    Result<RestorableSeries> found(Status(Code::deadline, "not looked"));
    for (int i = 0; i < tries && !found.ok(); ++i) {
        Result<RestorableSeries> looked = co_await cluster->look(world, {});
        found = std::move(looked);
    }
    out->looked = found.status();
    if (!found.ok()) co_return;
    std::reverse(found->versions.begin(), found->versions.end());
    for (const RestorableVersion& each : found->versions) {
        Fetched fetched;
        fetched.status = each.damage;
        if (each.can_be_had()) {
            std::vector<ImagePlaces> places = all_places(*cluster, each, *slots);
            Task<Fetched> fetching = cluster->options.share != 0 ? fetch_together(cluster, world, node, std::move(places)) : fetch_all(cluster, world, std::move(places));
            Fetched got = co_await fetching;
            fetched = std::move(got);
            out->taken += fetched.shared.taken;
        }
        const Status& status = fetched.status;
        if (status.ok()) out->got = each.key;
        if (status.code() == Code::internal) out->wrong = "version " + std::to_string(each.key.version) + ": " + status.text();
        if (status.ok() || out->wrong) co_return;
        if (fetched.refused || !another_may_do(status)) {
            out->looked = status;
            out->refused = std::pair(each.key, status);
            co_return;
        }
        out->passed_over.emplace(each.key, status);
    }
    out->looked = found->tail;
}

Slots slots_of(const Host& host, std::uint32_t ranks) {
    Slots slots;
    for (const VersionKey& key : host.daemon ? host.daemon->versions() : std::vector<VersionKey>())
        for (Rank rank = 0; rank < ranks; ++rank)
            if (const LocalImage* image = host.daemon->image(key, rank); image && image->readable == Readable::again) slots[{key, rank}] = image->path;
    return slots;
}

// More of what a reader meets than goes wrong otherwise.
void make_trouble(SeedRun& run) {
    sim::Faults& faults = run.cluster.sim.faults();
    for (const auto rate : {&sim::Faults::read_error, &sim::Faults::metadata_error, &sim::Faults::stale_read, &sim::Faults::other_read, &sim::Faults::hang_io,
                            &sim::Faults::short_transfer})
        if (run.chance(30)) faults.*rate = static_cast<double>(run.draw(300)) / 1000;
}

double reading_troubles(const sim::Faults& struck) {
    return struck.read_error + struck.metadata_error + struck.stale_read + struck.other_read + struck.hang_io + struck.slow_io + struck.short_transfer;
}

// A version that is whole is refused where a root of its parts is in trouble, or where there was no memory for its base, and nowhere else.
void check_refused(SeedRun& run, const Restart& restarted) {
    if (!restarted.refused) return;
    const auto& [key, status] = *restarted.refused;
    if (status.code() == Code::unavailable && status.text().find("holds part") != std::string::npos) run.see(Saw::read_away);
    const bool had_no_memory = status.code() == Code::out_of_space && run.cluster.sim.struck().encode_error > 0;
    if (run.cluster.options.roots.empty() && !had_no_memory) run.fail("a restore in trouble refuses version " + std::to_string(key.version) + ": " + status.to_string());
}

// The version itself, its directory, or one of a newer job, which may have gone back behind it: what that one was is not known.
bool is_named(const SeedRun& run, const Restart& restarted, const VersionKey& key) {
    const auto epoch = run.known.epochs.find(key.incarnation);
    return std::any_of(restarted.passed_over.begin(), restarted.passed_over.end(), [&](const auto& each) {
        const VersionKey& passed = each.first;
        const auto newer = run.known.epochs.find(passed.incarnation);
        const bool is_newer = newer != run.known.epochs.end() && epoch != run.known.epochs.end() && newer->second > epoch->second;
        return passed == key || passed == VersionKey{key.name, key.version, {}} || is_newer;
    });
}

}  // namespace

void restore(SeedRun& run, NodeIndex node) {
    if (!run.cluster.hosts[node].node->alive() || run.cluster.hosts[node].node->covered()) return;
    note_states(run);
    std::vector<VersionKey> told;
    for (const auto& [key, reported] : run.known.reported)
        if (in_chain(run, key) && !run.known.removed.count(key)) told.push_back(key);
    sim::Process& process = run.cluster.hosts[node].node->start_process("reader");
    const sim::Faults before = run.cluster.sim.faults();
    if (run.chance(70)) make_trouble(run);
    const double troubles = reading_troubles(run.cluster.sim.struck());
    Restart restarted;
    const int tries = 1 + static_cast<int>(run.draw(3));
    const Slots slots = slots_of(run.cluster.hosts[node], run.cluster.ranks());
    const bool is_over = run.cluster.sim.run(restart(&run.cluster, process.world(), node, tries, &slots, &restarted), run.cluster.sim.now() + 900 * second);
    process.kill();
    run.cluster.sim.faults() = before;
    run.tell("restore on node ", node, ": ", restarted.got ? "version " + std::to_string(restarted.got->version) : restarted.looked.to_string(), ", ",
             restarted.passed_over.size(), " passed over");
    check_refused(run, restarted);
    if (restarted.wrong) return run.fail("a restore in trouble gave wrong bytes: " + *restarted.wrong);
    // Of many versions below a root that hangs each takes its own wait: what it would have named of the rest is not known.
    if (!is_over || !restarted.looked.ok()) return run.see(Saw::restore_failed);
    if (!restarted.passed_over.empty()) run.see(Saw::passed_over);
    const bool is_struck = reading_troubles(run.cluster.sim.struck()) > troubles;
    if (restarted.got && is_struck) run.see(Saw::restored_in_trouble);
    if (restarted.taken > 0 && is_struck) run.see(Saw::shared_in_trouble);
    for (const VersionKey& key : told)
        if (const auto passed = restarted.passed_over.find(key); passed != restarted.passed_over.end() && !is_struck)
            return run.fail("a restore passed over a committed version, and nothing was wrong: " + std::to_string(key.version) + ": " + passed->second.to_string());
    for (const VersionKey& key : told) {
        const bool older = !restarted.got || restarted.got->version < key.version;
        if (older && !is_named(run, restarted, key))
            return run.fail("a restore in trouble silently passed over a committed version: " + std::to_string(key.version) + ", and took " +
                            (restarted.got ? std::to_string(restarted.got->version) : "none"));
    }
}

}  // namespace cairn::testing
