// What was promised, held against what daemons say and what is left (ARCHITECTURE.md, "The promise").
#include <algorithm>

#include "engine/scratch.hpp"
#include "engine/seed_run_sim.hpp"
#include "format/names.hpp"
#include "world/sim/network.hpp"

namespace cairn::testing {

// Remembers every version that any daemon called committed.
void SeedRun::note_states() {
    for (const Host& host : cluster_.hosts) {
        if (!host.daemon) continue;
        const NodeCounters& counters = host.daemon->counters();
        if (counters.taken_over_bytes > 0) see(Saw::work_moved);
        if (counters.attempts_failed > 0) see(Saw::attempt_failed);
        if (host.daemon->pace().counters().waited > 0) see(Saw::paced);
        for (const VersionKey& key : host.daemon->versions()) {
            const VersionState state = host.daemon->state(key);
            if (state.level == Level::committed && reported_.emplace(key, true).second) tell("committed: version ", key.version);
            const auto fenced = fenced_.find(key);
            const Nanos coordinates_since = cluster_.hosts[0].started;  // one that knew it from before may have said so to daemons that came later
            if (state.level == Level::committed && fenced != fenced_.end() && fenced->second < coordinates_since && coordinates_since <= host.started)
                fail("a daemon that came later calls a removed version committed: version " + std::to_string(key.version));
            if (state.level == Level::committed && given_up_.count(key)) fail("a version that was given up is called committed: version " + std::to_string(key.version));
            if (state.failure.code() == Code::internal) fail("a daemon finds a fault of its own: " + state.failure.to_string());
        }
        if (counters.attempts_failed > 0 && scenario_.only_messages_suffer()) fail("an attempt failed where only messages were lost or late");
    }
}

// A version that nobody needs: not the newest of its incarnation, and none that a job went on from.
std::optional<VersionKey> SeedRun::removable() {
    std::vector<VersionKey> found;
    for (const auto& [key, reported] : reported_) {
        const bool newer = std::any_of(reported_.begin(), reported_.end(), [&](const auto& other) {
            return other.first.incarnation == key.incarnation && other.first.version > key.version && !removed_.count(other.first);
        });
        const bool parent = std::any_of(chains_.begin(), chains_.end(), [&](const auto& chain) {
            return chain.second.incarnation == key.incarnation && chain.second.version == key.version;
        });
        if (newer && !parent && !removed_.count(key)) found.push_back(key);
    }
    if (found.empty()) return std::nullopt;
    return found[draw(found.size())];
}

bool SeedRun::in_chain(const VersionKey& key) const {
    Id128 at = cluster_.roster.incarnation;
    Version version_max = UINT64_MAX;
    for (std::size_t guard = 0; at && guard <= chains_.size(); ++guard) {
        if (key.incarnation == at && key.version <= version_max) return true;
        const auto found = chains_.find(at);
        if (found == chains_.end()) return false;
        version_max = std::min(version_max, found->second.version);
        at = found->second.incarnation;
    }
    return false;
}

// A restarting job never gets less than what was called committed in its lineage.
void SeedRun::check_newest(const Manifest& found) {
    const bool anchored = has_parent_ || std::any_of(reported_.begin(), reported_.end(), [&](const auto& entry) {
                              return entry.first.incarnation == cluster_.roster.incarnation;
                          });
    if (!anchored) return;
    if (!in_chain(found.key)) return fail("the newest version found, " + std::to_string(found.key.version) + ", is of another lineage");
    for (const auto& [key, reported] : reported_)
        if (in_chain(key) && key.version > found.key.version)
            return fail("version " + std::to_string(key.version) + " was called committed, but the newest found is " + std::to_string(found.key.version));
}

// A daemon that was started after the job had gone back behind a version must not decide on it any more. (One that ran before may have looked in time.)
void SeedRun::check_superseded(sim::Process& process, const std::string& manifest) {
    const std::size_t name = manifest.rfind('/') + 1;
    const std::optional<Id128> incarnation = parse_manifest_file_name(manifest.substr(name));
    const Version version = std::strtoull(manifest.c_str() + manifest.rfind('/', name - 2) + 1, nullptr, 10);
    for (const auto& [later, parent] : chains_) {
        const auto recorded = recorded_.find(later);
        const bool behind = incarnation && parent.incarnation == *incarnation && parent.version < version;
        if (behind && recorded != recorded_.end() && recorded->second < cluster_.hosts[process.node().id()].started)
            fail("version " + std::to_string(version) + " is published after the job went back to version " + std::to_string(parent.version));
    }
}

void SeedRun::settle() {
    tell("quiet");
    be_quiet();
    cluster_.sim.heal();
    for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node) {
        Host& host = cluster_.hosts[node];
        if (!host.node->alive()) cluster_.restart_node(node);
        if (host.process) host.process->resume();
        start(node);
        if (!scenario_.only_messages_suffer()) limit(node, false);
    }
    cluster_.sim.run_until(cluster_.sim.now() + second);
    note_states();
}

// Everything that was called committed is there, bit for bit, and so is everything that has a manifest.
void SeedRun::check_promise() {
    for (const auto& [key, reported] : reported_) {
        const Status status = cluster_.check_committed(key);
        const auto removed = removed_.find(key);
        if (removed == removed_.end()) {
            if (!status.ok()) return fail("a version was called committed, and can not be restored: version " + std::to_string(key.version) + ": " + status.to_string());
            continue;
        }
        // given up or not there; or whole, where it was not removed after all, or nothing keeps a daemon from committing it again
        if (!status.ok() && status.code() != Code::not_found)
            return fail("a version was removed, and is neither whole nor gone: version " + std::to_string(key.version) + ": " + status.to_string());
        if (status.ok() && removed->second) return fail("version " + std::to_string(key.version) + " was removed, and came back");
    }
    const auto newest = cluster_.newest_committed();
    if (!newest.ok()) return fail("the catalog can not be read: " + newest.status().to_string());
    if (*newest) {
        const Status status = cluster_.check_committed((*newest)->key);
        if (!status.ok()) return fail("the newest version is torn: version " + std::to_string((*newest)->key.version) + ": " + status.to_string());
        check_newest(**newest);
    } else if (!reported_.empty()) {
        bool any = false;
        for (const auto& [key, reported] : reported_) any |= in_chain(key);
        if (any) return fail("versions were called committed, but none is found");
    }
    for (const Host& host : cluster_.hosts)
        if (host.process && host.process->buffer_bytes_peak() > cluster_.options.settings.buffers * cluster_.options.settings.buffer_bytes)
            return fail("a daemon took more buffer memory than it was given");
}

// What looks like a sealed image in scratch is one, bit for bit: a daemon that starts takes it for that.
void SeedRun::check_scratch() {
    const auto check = [](World world, ScratchLayout place, const ClusterOptions* options, Status* out) -> Task<void> {
        Result<ScratchScan> scan = co_await scan_scratch(world, place, 60 * second);
        *out = scan.status();
        if (!scan.ok()) co_return;
        for (const Unread& unread : scan->unread) *out = unread.why;
        for (const LocalImage& image : scan->images) {
            const ImageHeader& header = image.header;
            if (header.image.bytes != options->image_bytes(header.rank, header.key.version)) *out = corrupt(image.path + ": of another size");
            const std::uint64_t seed = Cluster::content_seed(header.key.incarnation, header.key.version, header.rank);
            const ImageSink sink = [&](std::uint64_t offset, Slice data) {
                Slice expected = sim::describe(seed, data.length, offset);
                return sim::content_equal(data, expected) ? Status() : corrupt(image.path + ": other bytes than were captured");
            };
            const RestoreSettings settings;
            Status status = co_await restore_local(world, image, {}, sink, settings);
            if (!status.ok()) *out = std::move(status);
        }
    };
    for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node) {
        if (cluster_.is_io_node(node)) continue;
        sim::Process& process = cluster_.hosts[node].node->start_process("reader");
        Status status = deadline_passed("reading scratch");
        (void)cluster_.sim.run(check(process.world(), cluster_.scratch(node), &cluster_.options, &status), cluster_.sim.now() + 60 * second);
        process.kill();
        if (!status.ok()) return fail("an image in scratch is not what was sealed: " + status.to_string());
    }
}

// The coordinator takes a node that was down or cut off, and never said that it had sealed a version, for one that went past it, as soon as a newer
// one is committed (elect.cpp). That costs an old version, and no promise.
bool SeedRun::may_be_passed_over(const VersionKey& key) const {
    const VersionState state = cluster_.state(0, key.version);
    const bool newer = std::any_of(reported_.begin(), reported_.end(), [&](const auto& entry) {
        return entry.first.incarnation == key.incarnation && entry.first.version > key.version;
    });
    return newer && state.final && state.failure.code() == Code::superseded && !scenario_.only_messages_suffer();
}

// After the faults: what is sealed everywhere and still in scratch commits by itself, and so does a new version.
void SeedRun::check_liveness() {
    const bool intact = job_lives_ && !lost_scratch();
    if (intact) {
        for (const VersionKey& key : sealed_) {
            if (key.incarnation != cluster_.roster.incarnation || removed_.count(key) || let_go_.count(key)) continue;
            const bool done = cluster_.run_until_committed(key.version, 400 * second);
            note_states();
            if (!done && may_be_passed_over(key)) continue;
            if (!done) return fail("a sealed version did not commit after the faults ended: version " + std::to_string(key.version) + ": " +
                                   cluster_.state(0, key.version).failure.to_string());
        }
    } else {
        reopen();
        cluster_.sim.faults() = {};
    }
    if (result_.ok) check_last();
}

void SeedRun::check_last() {
    const Version version = next_version_;
    const Status captured = cluster_.capture_all(version);
    if (!captured.ok()) return fail("a capture without faults failed: " + captured.to_string());
    const bool done = cluster_.run_until_committed(version, 400 * second);
    note_states();
    if (!done) return fail("a new version did not commit after the faults ended: " + cluster_.state(0, version).failure.to_string());
    const Status status = cluster_.check_committed(cluster_.key(version));
    if (!status.ok()) return fail("the last version can not be restored: " + status.to_string());
    check_nothing_left_over();
    if (result_.ok) check_all_told();
    if (result_.ok) check_rest();
    result_.committed = static_cast<std::uint32_t>(reported_.size());
}

// Where nothing went wrong, nothing stays beside the manifest and the parts that it names.
void SeedRun::check_nothing_left_over() {
    const VersionKey key = cluster_.key(next_version_);
    cluster_.sim.run_until(cluster_.sim.now() + second);
    const auto newest = cluster_.newest_committed();
    if (!newest.ok() || !*newest || (*newest)->key != key) return fail("the last version is not the newest");
    const auto entries = cluster_.sim.persistent().list(cluster_.layout.version(key));
    if (!entries.ok()) return fail("the last version's directory: " + entries.status().to_string());
    for (const DirectoryEntry& entry : *entries) {
        const std::optional<Id128> attempt_id = parse_attempt_of(entry.name);
        const bool ours = attempt_id && attempt_id->high == key.incarnation.high;
        const bool named = std::any_of((*newest)->parts.begin(), (*newest)->parts.end(), [&](const PartInfo& part) { return part.file == entry.name; });
        if (ours && !named) return fail("something is left over beside the last version: " + entry.name);
    }
}

// A node that holds all it sealed of a version asks how it ended until it is told. What is published it could read for itself; that the job went back
// behind a version nobody publishes, and only the coordinator says so.
void SeedRun::check_all_told() {
    const Node& coordinator = *cluster_.hosts[0].daemon;
    const auto untold = [&]() -> std::optional<std::string> {
        for (NodeIndex node = 1; node < cluster_.hosts.size(); ++node) {
            if (cluster_.is_io_node(node)) continue;
            const Node& daemon = *cluster_.hosts[node].daemon;
            for (const VersionKey& key : daemon.versions()) {
                bool holds_all = true;
                for (Rank rank = 0; rank < cluster_.ranks(); ++rank) holds_all &= cluster_.node_of(rank) != node || daemon.image(key, rank) != nullptr;
                if (holds_all && coordinator.state(key).final && !daemon.state(key).final)
                    return "node " + std::to_string(node) + " was not told how a version ended: version " + std::to_string(key.version) + ": " +
                           coordinator.state(key).failure.to_string();
            }
        }
        return std::nullopt;
    };
    if (cluster_.sim.run_until([&] { return !untold(); }, cluster_.sim.now() + 60 * second)) return;
    if (const std::optional<std::string> who = untold()) fail(*who);
}

// All work comes to an end: nobody leads or flushes any more, what was asked for has come or is not waited for, and scratch can let go of what is
// committed. A buffer that waits for ever is a credit that is lost.
void SeedRun::check_rest() {
    const auto busy = [&]() -> std::optional<std::string> {
        for (const Host& host : cluster_.hosts) {
            if (!host.daemon) continue;
            if (host.process->network().postings_open() != 0) return "a buffer waits for data that nobody will send";
            if (host.daemon->pace().under_way_in() + host.daemon->pace().under_way_out() != 0) return "data that nobody moves counts as under way";
            if (!host.daemon->idle()) return "a daemon never comes to rest";
        }
        return std::nullopt;
    };
    (void)cluster_.sim.run_until([&] { return !busy(); }, cluster_.sim.now() + 120 * second);  // of a lost job something may be under way
    if (const std::optional<std::string> why = busy()) return fail(*why);
    const VersionKey last = cluster_.key(next_version_);
    for (const Host& host : cluster_.hosts)
        for (Rank rank = 0; host.daemon && rank < cluster_.ranks(); ++rank)
            if (const Status dropped = host.daemon->drop_image(last, rank); !dropped.ok()) return fail("scratch can not let go of a committed version: " + dropped.to_string());
}

// A node that crashed took sealed images with it.
bool SeedRun::lost_scratch() const {
    for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node) {
        const Host& host = cluster_.hosts[node];
        if (!cluster_.is_io_node(node) && (!host.daemon || !host.daemon->knows(cluster_.roster.incarnation))) return true;
    }
    return false;
}

// Where a part holds data.
std::optional<std::uint64_t> SeedRun::data_in(const std::string& path) {
    sim::Process& process = cluster_.hosts[0].node->start_process("reader");
    Result<Footer> footer(Status(Code::deadline, "not read"));
    const auto task = [](World w, std::string file, Result<Footer>* out) -> Task<void> {
        Result<Footer> read = co_await read_footer(w, std::move(file), nullptr, {});
        *out = std::move(read);
    };
    (void)cluster_.sim.run(task(process.world(), path, &footer), cluster_.sim.now() + 60 * second);
    process.kill();
    for (const Extent& extent : footer.ok() ? footer->extents : std::vector<Extent>())
        if (extent.length > 0) return extent.part_offset;
    return std::nullopt;
}

// A flipped bit is found on read.
void SeedRun::check_flipped_bit() {
    const VersionKey key = cluster_.key(next_version_);
    const auto newest = cluster_.newest_committed();
    if (!newest.ok() || !*newest || (*newest)->key != key) return fail("the last version is not the newest");
    for (const PartInfo& part : (*newest)->parts) {
        if (part.footer_offset == 0) continue;
        const std::string path = cluster_.layout.version(key) + "/" + part.file;
        const std::optional<std::uint64_t> at = data_in(path);  // a part may have gaps, also at its beginning
        if (!at) continue;
        (void)cluster_.sim.persistent().flip_bit(path, *at, static_cast<unsigned>(draw(8))).ok();
        const Status status = cluster_.check_committed(key);
        if (status.code() != Code::corrupt) return fail("a flipped bit was not found: " + part.file + ": " + status.to_string());
        return;
    }
}

}  // namespace cairn::testing
