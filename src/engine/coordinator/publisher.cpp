#include "engine/coordinator/publisher.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "catalog/catalog.hpp"
#include "catalog/lineage.hpp"
#include "catalog/needed.hpp"
#include "catalog/roots.hpp"
#include "catalog/tensor_index.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "model/coverage.hpp"

namespace cairn::engine {

Publisher::Publisher(Common& c) : CoordinatorRole(c) {}

namespace {

// Somebody removed all of the series, and a newer job has begun it again and committed: nobody waits for what an older one left in scratch.
Task<bool> begun_again(World& world, const Layout& layout, std::string name, std::uint64_t epoch, const LineageRecords& records, Nanos wait) {
    if (std::none_of(records.opens.begin(), records.opens.end(), [&](const LineageEntry& entry) { return entry.open.epoch > epoch; })) co_return false;
    Result<std::vector<CatalogEntry>> versions = co_await list_versions(world, layout, std::move(name), world.clock.in(wait));
    co_return versions.ok() && std::any_of(versions->begin(), versions->end(),
                                           [&](const CatalogEntry& entry) { return entry.committed() && entry.manifest->epoch > epoch; });
}

// One that hangs or fails may be.
Task<void> look_whether_mounted(World& world, std::string root, Nanos deadline, bool* mounted) {
    const Result<bool> seen = co_await is_mounted(world, std::move(root), deadline);
    *mounted = !seen.ok() || *seen;
}

// What a manifest names in the version's own directories.
std::set<std::string> names_of(const Manifest& manifest) {
    std::set<std::string> names;
    for (const PartInfo& part : manifest.parts) {
        if (part.origin != 0) continue;
        names.insert(part.file);
        if (part.index_bytes != 0) names.insert(part_index_file_name(part.file));
    }
    return names;
}

// What a leader said that it wrote.
struct ExpectedFile {
    std::uint32_t root = 0;
    std::string file;
    std::uint64_t bytes = 0;
};

// Best effort.
Task<void> remove_all(World& world, std::vector<std::string> paths, Nanos deadline) {
    for (const std::string& path : paths) {
        const Status ignored = co_await world.storage.remove(path, deadline);
        (void)ignored;
    }
}

}  // namespace

// A new coordinator looks before it acts. ok: committed, and durably so; not_found: nobody has decided yet;
// superseded: given up.
Task<Status> Publisher::look(FlightPtr flight) {
    const TraceSpan span(world.clock, "coordinator", "look");
    // All of it: every node takes this one's word, and from then on may let its images go.
    Result<Manifest> manifest = co_await read_manifest(world, layout, flight->key, world.clock.in(settings.io_wait));
    if (manifest.code() == Code::not_found) {
        Status superseded = co_await check_superseded(flight);
        if (!superseded.ok()) co_return superseded;
    }
    if (!manifest.ok()) co_return std::move(manifest).status();
    Status on_record = co_await check_record(common, flight);
    if (!on_record.ok()) co_return on_record;
    // Whoever published may have died before the name was durable.
    Status synced = co_await world.storage.fsync_name(layout.manifest(flight->key), world.clock.in(settings.io_wait));
    if (!synced.ok()) co_return Status(Code::io_error, synced.text());
    std::set<std::string> named = names_of(*manifest);
    co_await clean_up(flight, manifest->abandoned, std::move(named));
    if (manifest->abandoned) co_return Status(Code::superseded, version_text(flight->key) + ": was given up");
    co_return Status();
}

// For other programs. Nobody of Cairn's reads it, so a version without it is committed all the same. Not of a version that the job went back behind: another one may have the name.
Task<void> Publisher::index_tensors(FlightPtr flight) {
    if (flight->job->roster->layout != FileLayout::tensors) co_return;
    const TraceSpan span(world.clock, "coordinator", "index of tensors");
    const Status current = co_await check_superseded(flight);
    if (!current.ok()) co_return;
    const Result<TensorIndexed> indexed = co_await write_tensor_index(world, layout, flight->key, settings.io_wait);
    if (!indexed.ok()) {
        log_warning("tensors-not-indexed", {{"name", flight->key.name}, {"version", flight->key.version}, {"why", indexed.status().text()}, {"lost", "other programs find its tensors only file by file"}});
    } else if (indexed->twice > 0 && !std::exchange(experience(*flight->job).has_told_twice, true)) {
        log_warning("tensors-of-one-name", {{"name", flight->key.name}, {"tensors", indexed->twice}, {"lost", "the index names one file for each, and several have it"},
                                            {"do", "give regions of different ranks different names, or ask for one file (flush.files = 1)"}});
    }
}

Task<Status> Publisher::give_up(FlightPtr flight) {
    Manifest tombstone;
    tombstone.abandoned = true;
    tombstone.roots = co_await roots_that_may_hold(flight);
    Status given_up = co_await publish(flight, tombstone);
    std::set<std::string> none;
    if (given_up.ok()) co_await clean_up(flight, true, std::move(none));
    co_return given_up;
}

// Roots that hold files of attempts at this version, or may: a tombstone that did not name one would be gone before they are. Not those that are not mounted
// and that this coordinator made nothing below: a tombstone might wait for these for ever.
Task<std::vector<std::string>> Publisher::roots_that_may_hold(FlightPtr flight) {
    const Nanos deadline = world.clock.in(settings.io_wait);
    std::map<std::string, bool> roots;
    for (const std::string& root : flight->job->roots) roots[root] = true;
    Gate looking(world.clock);
    for (auto& [root, may_hold] : roots)
        if (!side(*flight).made_below.count(root)) looking.spawn(look_whether_mounted(world, root, deadline, &may_hold));
    co_await looking.close();
    std::vector<std::string> named;
    for (const auto& [root, may_hold] : roots)
        if (may_hold) named.push_back(root);
    co_return named;
}

// Publishes a manifest, or a tombstone. ok: ours stands, or one of the same attempt. superseded: a tombstone stands. already_exists: a
// manifest of another attempt stands.
Task<Status> Publisher::publish(FlightPtr flight, Manifest manifest) {
    const Job& job = *flight->job;
    manifest.key = flight->key;
    manifest.epoch = job.roster->epoch;
    manifest.parent = job.roster->parent;
    manifest.ranks = job.roster->ranks;
    manifest.nodes = job.nodes_with_ranks();
    if (!manifest.abandoned) manifest.roots = job.roots;  // all of them: attempts that failed may have left something below any
    if (manifest.abandoned) {
        manifest.attempt_id = {flight->key.incarnation.high, world.random.next()};
        Status on_record = co_await check_record(common, flight);
        if (!on_record.ok()) co_return on_record;
        Status made = co_await make_directories(world.storage, layout.persistent, layout.version(flight->key), world.clock.in(settings.io_wait));
        if (!made.ok()) co_return made;
    }
    const std::string final_path = layout.manifest(flight->key);
    const std::string temporary = layout.temporary(flight->key, manifest.attempt_id);
    Bytes bytes = encode_manifest(manifest);
    Status wrote = co_await write_file(world.storage, temporary, std::move(bytes), 0644, world.clock.in(settings.io_wait));
    if (!wrote.ok()) {
        const Status taken = co_await world.storage.remove(temporary, world.clock.in(settings.io_wait));
        (void)taken;
        co_return std::move(wrote).within("writing the manifest");
    }
    if (!manifest.bases.empty()) {
        Status stand = co_await check_bases_stand(world, layout, manifest, settings.io_wait);
        if (!stand.ok()) {
            const Status taken = co_await world.storage.remove(temporary, world.clock.in(settings.io_wait));
            (void)taken;
            co_return unavailable(stand.text());  // of another attempt, which stands alone
        }
    }
    if (side(*flight).contest && !manifest.abandoned) side(*flight).contest->may_be_published = true;
    Status published = co_await world.storage.publish(temporary, final_path, world.clock.in(settings.io_wait));
    if (!published.ok() && published.code() != Code::already_exists) {
        // It may still be on its way; without the temporary name it comes to nothing, and the next attempt stands alone.
        const Status taken = co_await world.storage.remove(temporary, world.clock.in(settings.io_wait));
        (void)taken;
        co_return std::move(published).within("publishing the manifest");
    }
    Status ours;
    if (!published.ok()) {
        // All of it, as in look.
        Result<Manifest> standing = co_await read_manifest(world, layout, flight->key, world.clock.in(settings.io_wait));
        if (!standing.ok()) co_return std::move(standing).status();
        if (standing->attempt_id != manifest.attempt_id)
            ours = standing->abandoned ? Status(Code::superseded, version_text(flight->key) + ": was given up")
                                       : Status(Code::already_exists, version_text(flight->key) + ": was committed by another attempt");
    }
    Status synced = co_await world.storage.fsync_name(layout.manifest(flight->key), world.clock.in(settings.io_wait));
    if (!synced.ok()) co_return std::move(synced).within("making the manifest's name durable");
    // The temporary name is gone after a rename and still there after a link.
    const Status removed = co_await world.storage.remove(temporary, world.clock.in(settings.io_wait));
    (void)removed;
    Status on_record = co_await check_record(common, flight);  // what was published elsewhere counts for nothing
    if (!on_record.ok()) co_return on_record;
    co_return ours;
}

// Each leader reports the parts that it is the first leader of.
Status Publisher::name_parts(const Flight& flight, const Contest& contest, Manifest& manifest) const {
    std::size_t count = 0;
    for (const auto& [node, track] : contest.leaders) count += track.done->parts.size();
    const std::vector<const PartInfo*> reported = reported_parts(contest, *flight.job);
    for (std::size_t part = 0; part < reported.size(); ++part) {
        if (!reported[part]) return Status(Code::internal, "a leader reported fewer parts than its own");
        manifest.parts[part] = *reported[part];
    }
    if (count != manifest.parts.size()) return Status(Code::internal, "a leader reported other parts than its own");
    return {};
}

// All parts are durable: PartsDone of every leader is in.
Task<Status> Publisher::commit(FlightPtr flight) {
    CoordinatorSide& own = side(*flight);
    const TraceSpan span(world.clock, "coordinator", "commit");
    Status superseded = co_await check_superseded(flight);
    if (!superseded.ok()) co_return superseded;
    Manifest manifest;
    manifest.attempt_id = own.contest->attempt_id;
    manifest.parts.resize(flight->job->roster->files);
    std::uint64_t covered = 0;
    for (const auto& [node, track] : own.contest->leaders) {
        manifest.block_bytes = track.lead.block_bytes;
        covered += track.done->coverage;
        if (track.done->needs_base && manifest.bases.empty()) manifest.bases = std::vector<BaseVersion>(1, {track.lead.base, flight->key.incarnation});
    }
    Status named = name_parts(*flight, *own.contest, manifest);
    if (!named.ok()) co_return named;
    for (const auto& [node, sealed] : own.sealed)
        for (const ImageInfo& image : sealed.images) {
            manifest.image_bytes += image.bytes;
            covered -= coverage(image.rank, 0, image.bytes);
        }
    // Work went from hand to hand between three nodes: nothing is published unless all parts together hold every byte once.
    if (covered != 0) co_return Status(Code::internal, version_text(flight->key) + ": its parts do not hold every byte of every image once");
    manifest.wall_time_s = world.clock.wall_time_s();
    manifest.node_targets = own.contest->node_targets;
    const std::set<std::string> names = names_of(manifest);
    Result<Listed> listed = co_await list_roots(flight, manifest);
    if (!listed.ok()) co_return std::move(listed).status();
    Status seen = co_await check_parts(flight, manifest, *listed);
    if (!seen.ok()) co_return seen;
    Status published = co_await publish(flight, std::move(manifest));
    if (published.code() == Code::already_exists) {
        Status stands = co_await look(flight);
        co_return stands;
    }
    if (!published.ok()) co_return published;
    own.contest->stands = true;  // and not another's, of which we do not know what it depends on
    const Nanos deadline = world.clock.in(settings.io_wait);
    Gate removing(world.clock);
    for (const auto& [root, entries] : *listed) removing.spawn(remove_all(world, others(*flight, root, entries, names), deadline));
    co_await removing.close();
    co_return Status();
}

// Persistent, and the roots that hold its parts; another that does not answer need not keep anybody from the commit. One that fails is left out of the next attempt.
Task<Result<Publisher::Listed>> Publisher::list_roots(FlightPtr flight, const Manifest& manifest) {
    std::set<std::uint32_t> roots = {0};
    for (const PartInfo& part : manifest.parts) {
        if (part.root > flight->job->roots.size()) co_return Status(Code::internal, "a leader reported a part below a root that the job does not have");
        roots.insert(part.root);
    }
    Listed listed;
    for (const std::uint32_t root : roots) {
        const std::string directory = Layout::version_below(layout.root(flight->job->roots, root), flight->key);
        Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(directory, world.clock.in(settings.io_wait));
        if (!entries.ok()) {
            if (root != 0) avoid(*flight->job, flight->job->roots[root - 1], entries.status().text());
            co_return std::move(entries).status();
        }
        listed.emplace(root, std::move(entries).value());
    }
    co_return listed;
}

// Files in a version's directory that belong to attempts of its incarnation, and are not `named`: also those that another file took the place of.
std::vector<std::string> Publisher::others(const Flight& flight, std::uint32_t root, const std::vector<DirectoryEntry>& entries, const std::set<std::string>& named) const {
    const std::string directory = Layout::version_below(layout.root(flight.job->roots, root), flight.key);
    std::vector<std::string> paths;
    for (const DirectoryEntry& entry : entries) {
        const auto attempt_id = parse_attempt_of(entry.name);
        if (!attempt_id || attempt_id->high != flight.key.incarnation.high) continue;
        if (named.count(entry.name)) continue;
        paths.push_back(directory + "/" + entry.name);
    }
    return paths;
}

// A leader's parts lie where its own path led. A listing may be older than they are, so what it does not show as it should is asked for by name.
Task<Status> Publisher::check_parts(FlightPtr flight, const Manifest& manifest, const Listed& listed) {
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint64_t> bytes_of;
    for (const auto& [root, entries] : listed)
        for (const DirectoryEntry& entry : entries) bytes_of.emplace(std::pair(root, std::string_view(entry.name)), entry.bytes);
    std::vector<ExpectedFile> expected;
    for (const PartInfo& part : manifest.parts) {
        expected.push_back({part.root, part.file, part.bytes});
        if (part.index_bytes != 0) expected.push_back({part.root, part_index_file_name(part.file), part.index_bytes});
    }
    for (const ExpectedFile& part : expected) {
        const auto found = bytes_of.find({part.root, part.file});
        if (found != bytes_of.end() && found->second == part.bytes) continue;
        const std::string& root = layout.root(flight->job->roots, part.root);
        const std::string path = Layout::version_below(root, flight->key) + "/" + part.file;
        OpenOptions options;
        Result<FilePtr> file = co_await world.storage.open(path, options, world.clock.in(settings.io_wait));
        if (!file.ok() && part.root != 0) avoid(*flight->job, root, file.status().text());
        if (file.code() == Code::not_found)
            co_return unavailable(path + ": its leader has written it, but it is not to be seen from " + flight->job->node_name(flight->job->coordinator()) + ": is the same file system mounted at " +
                                  root + " on all nodes?");
        if (!file.ok()) co_return std::move(file).status();
        Result<std::uint64_t> bytes = co_await world.storage.file_bytes(*file, world.clock.in(settings.io_wait));
        if (!bytes.ok()) co_return std::move(bytes).status();
        if (*bytes != part.bytes)
            co_return unavailable(path + ": has " + std::to_string(*bytes) + " bytes here, and its leader wrote " + std::to_string(part.bytes));
    }
    co_return Status();
}

// The job went back behind this version and went on from there under a newer epoch: then this one must not appear any more.
Task<Status> Publisher::check_superseded(FlightPtr flight) {
    Result<LineageRecords> records = co_await read_lineage(world, layout, flight->key.name, world.clock.in(settings.io_wait));
    if (!records.ok()) co_return std::move(records).status();
    const std::uint64_t epoch = flight->job->roster->epoch;
    const auto is_own = [&](const LineageEntry& entry) { return entry.open.incarnation == flight->key.incarnation; };
    if (std::none_of(records->opens.begin(), records->opens.end(), is_own)) {
        Status on_record = co_await check_record(common, flight);
        bool over = on_record.code() == Code::unavailable;
        if (over) over = co_await begun_again(world, layout, flight->key.name, epoch, *records, settings.io_wait);
        if (over) co_return Status(Code::superseded, version_text(flight->key) + ": the series was removed, and a newer job has begun it again");
        if (!on_record.ok()) co_return on_record;
    }
    Status behind = went_back_behind(*records, {}, flight->key, epoch);
    if (behind.ok() || behind.code() == Code::superseded) co_return behind;
    // A record that can not be read: the manifests of who wrote it may say the same.
    Result<std::vector<CatalogEntry>> entries = co_await list_versions(world, layout, flight->key.name, world.clock.in(settings.io_wait));
    if (!entries.ok()) co_return std::move(entries).status();
    co_return went_back_behind(*records, *entries, flight->key, epoch);
}

// An attempt that failed before anything was published: only this coordinator knew what its manifest would have said, so the parts that
// leaders reported can never be named. They go at once, or every further attempt would need their room besides its own. Parts not yet
// reported are their leaders' to remove. Best effort: what stays goes after the commit.
Task<void> Publisher::remove_attempt(FlightPtr flight, const Contest& contest) {
    std::map<std::string, std::vector<std::string>> parts;  // by root
    for (const PartPlan& part : contest.plan) {
        const std::string& root = layout.root(flight->job->roots, flight->job->root_of(part.target));
        if (!contest.leaders.at(part.first_leader()).done) continue;
        parts[root].push_back(Layout::part_below(root, flight->key, flight->job->part_name(part, contest.attempt_id)));
        if (flight->job->roster->layout == FileLayout::tensors) parts[root].push_back(part_index_file_name(parts[root].back()));
    }
    const Nanos deadline = world.clock.in(settings.io_wait);
    Gate removing(world.clock);
    for (auto& [root, paths] : parts) removing.spawn(remove_all(world, std::move(paths), deadline));
    co_await removing.close();
}

// After a manifest stands, or a tombstone: parts of other attempts of this incarnation can never be named by one, and nothing unpublished can be published
// any more (a coordinator that died between the two names of its manifest leaves the first). Beside a tombstone parts that were committed before
// may be those of a version that depends on this one. Best effort; `cairn gc` does the rest.
Task<void> Publisher::clean_up(FlightPtr flight, bool is_tombstone, std::set<std::string> named) {
    if (is_tombstone) {
        const Status not_needed = co_await check_not_needed(world, layout, flight->key, settings.io_wait);
        if (!not_needed.ok()) co_return;
    }
    const std::vector<std::string>& roots = flight->job->roots;
    const Nanos deadline = world.clock.in(settings.io_wait);
    Gate cleaning(world.clock);
    for (std::uint32_t root = 0; root <= roots.size(); ++root) {
        if (root != 0 && is_avoided(*flight->job, roots[root - 1])) continue;  // it failed lately; the sweep looks again
        cleaning.spawn(clean_up_below(flight, root, named, deadline));
    }
    co_await cleaning.close();
}

Task<void> Publisher::clean_up_below(FlightPtr flight, std::uint32_t root, std::set<std::string> named, Nanos deadline) {
    const std::string directory = Layout::version_below(layout.root(flight->job->roots, root), flight->key);
    const Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(directory, deadline);
    if (!entries.ok()) co_return;
    std::vector<std::string> paths = others(*flight, root, *entries, named);
    co_await remove_all(world, std::move(paths), deadline);
}

// After attempts failed: a file system that lost a server for a while says of files on it that they are not there, and what failed attempts
// left on it outlasts the commit. Looked for again a few times; `cairn gc` does the rest.
Task<void> Publisher::sweep(FlightPtr flight) {
    for (const Nanos pause : {5 * second, 20 * second, 120 * second, 600 * second}) {
        co_await world.clock.sleep(pause);
        if (common.stopping) co_return;
        const Status ignored = co_await look(flight);
        (void)ignored;
    }
}

}  // namespace cairn::engine
