// What a seed draws, in this order: the cluster, the background faults, then event after event (capture, kill, pause, crash, partition, reopen,
// going back, removal, limits on what may move), then quiet: everything heals, limits are bearable, and what was promised must be there.
#include "engine/seeds_sim.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "engine/cluster_sim.hpp"
#include "engine/removal.hpp"
#include "format/manifest.hpp"

namespace cairn::testing {

namespace {

class Scenario {
  public:
    explicit Scenario(std::uint64_t seed, bool trace) : draw_(seed * 2654435761u + 1), cluster_(draw_cluster(seed)) {
        cluster_.sim.set_trace(trace);
    }

    SeedResult run() {
        if (!open(true)) return finish("the first open failed");
        for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node)
            if (chance(20)) limit(node, false);
        const std::uint64_t events = 3 + draw(12);
        for (std::uint64_t i = 0; i < events && result_.ok; ++i) event();
        settle();
        if (result_.ok) check_promise();
        if (result_.ok) check_liveness();
        if (result_.ok) check_flipped_bit();
        return finish("");
    }

  private:
    std::uint64_t draw(std::uint64_t below) { return below == 0 ? 0 : draw_.next() % below; }
    bool chance(unsigned percent) { return draw(100) < percent; }
    double rate(unsigned percent, double most) { return chance(percent) ? most * static_cast<double>(draw(1000)) / 1000.0 : 0; }

    template <class... Parts>
    void tell(const Parts&... parts) {
        std::ostringstream line;
        line << static_cast<double>(cluster_.sim.now()) / second << " s: ";
        (line << ... << parts);
        story_ += line.str() + "\n";
    }

    ClusterOptions draw_cluster(std::uint64_t seed) {
        ClusterOptions options;
        options.seed = seed;
        const std::uint64_t nodes = chance(10) ? 1 + draw(64) : 1 + draw(6);
        options.ranks_per_node.clear();
        std::uint32_t ranks = 0;
        for (std::uint64_t i = 0; i < nodes; ++i) {
            options.ranks_per_node.push_back(static_cast<std::uint32_t>(1 + draw(nodes > 8 ? 2 : 4)));
            ranks += options.ranks_per_node.back();
        }
        if (chance(25))
            for (std::uint64_t i = 1 + draw(3); i > 0; --i) options.ranks_per_node.push_back(0);
        options.files = static_cast<std::uint32_t>(1 + draw(ranks));
        options.block_bytes = 4096u << draw(3);
        const std::uint64_t scale = 1 + draw(chance(20) && nodes <= 8 ? 3'000'000 : 200'000), salt = draw_.next();
        options.image_bytes = [scale, salt](Rank rank, Version version) -> std::uint64_t {
            std::uint64_t h = (rank * 31 + version) * 0x9E3779B97F4A7C15ull ^ salt;
            h ^= h >> 31;
            return h % 7 == 0 ? 0 : h % scale;
        };
        FlushSettings& s = options.settings;
        s.writers = static_cast<std::uint32_t>(1 + draw(8));
        s.buffer_bytes = options.block_bytes << draw(5);
        s.buffers = static_cast<std::uint32_t>(1 + draw(6));
        s.placement = static_cast<Placement>(chance(50) ? 0 : draw(3));
        s.leaders = chance(50) ? 0 : static_cast<std::uint32_t>(1 + draw(nodes));
        s.heartbeat = 100 * millisecond;
        s.peer_wait = 2 * second;
        s.io_wait = 4 * second;
        s.version_wait = 20 * second;
        s.retry_wait = 1 * second;
        options.model.persistent_rate = chance(50) ? 1e6 + static_cast<double>(draw(5'000'000)) : 1e9;
        options.model.nic_rate = chance(30) ? 1e6 + static_cast<double>(draw(5'000'000)) : 1e9;
        if (chance(40))  // storage targets of very different speed, so that work changes hands
            for (std::uint64_t n = 1 + draw(4); n > 0; --n) options.model.target_rates.push_back(1e5 * static_cast<double>(nodes * (1 + draw(chance(50) ? 3 : 100))));
        background_ = draw_faults();
        options.placed = chance(50);
        return options;
    }

    sim::Faults draw_faults() {
        sim::Faults f;
        if (chance(30)) return f;
        f.short_transfer = rate(50, 0.3);
        f.read_error = rate(20, 0.01);
        f.write_error = rate(30, 0.02);
        f.metadata_error = rate(30, 0.02);
        f.out_of_space = rate(20, 0.02);
        f.fsync_error = rate(30, 0.2);
        f.slow_io = rate(30, 0.1);
        f.hang_io = rate(20, 0.01);
        f.hang_io_max = 20 * second;
        f.message_loss = rate(50, 0.3);
        f.message_repeat = rate(50, 0.3);
        f.message_delay = rate(50, 0.3);
        f.message_delay_max = 3 * second;
        f.payload_loss = rate(30, 0.1);
        f.payload_delay = rate(30, 0.2);
        f.send_error = rate(30, 0.1);
        f.peer_loss_told = 0.5;
        f.publish_renames = chance(50);
        f.twin_open = rate(20, 0.3);
        return f;
    }

    // ---- the job ----

    // A job opens, goes on from `parent` (nothing: a fresh start).
    bool open(bool quiet) {
        if (quiet) cluster_.sim.faults() = {};
        Status status;
        for (int i = 0; i < 5; ++i) {
            status = cluster_.open_job(120 * second);
            if (status.ok()) break;
        }
        tell("open: ", status.to_string(), ", epoch ", cluster_.roster.epoch);
        job_lives_ = status.ok();
        next_version_ = 1;
        has_parent_ = false;
        if (job_lives_) chains_[cluster_.roster.incarnation] = {};
        cluster_.sim.faults() = background_;
        return job_lives_;
    }

    // The job is dead; another one opens, from the newest version it finds, or from an older one.
    void reopen() {
        for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node) {
            if (!cluster_.hosts[node].node->alive()) cluster_.restart_node(node);
            if (cluster_.hosts[node].process) cluster_.hosts[node].process->resume();
            else cluster_.start_daemon(node);
        }
        cluster_.sim.heal();
        const sim::Faults kept = std::exchange(cluster_.sim.faults(), {});
        const auto newest = cluster_.newest_committed();
        if (!newest.ok()) return fail("a restarting job can not read the catalog: " + newest.status().to_string());
        std::optional<Manifest> from = *newest;
        note_states();
        if (from) check_newest(*from);
        if (!open(true)) return fail("reopen failed with no faults");
        cluster_.sim.faults() = {};
        if (from && chance(25)) {  // go back to an older one that is still in the lineage
            std::vector<VersionKey> older;
            for (const auto& [key, reported] : reported_)
                if (key.incarnation == from->key.incarnation && key.version < from->key.version && !removed_.count(key)) older.push_back(key);
            if (!older.empty()) from->key = older[draw(older.size())];
        }
        if (from) {
            cluster_.roster.parent = {from->key.incarnation, from->key.version};
            chains_[cluster_.roster.incarnation] = cluster_.roster.parent;
            has_parent_ = record(cluster_.roster.parent);
            for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node)
                if (!cluster_.is_io_node(node)) (void)cluster_.hosts[node].daemon->join(std::make_shared<const Roster>(cluster_.roster), node).ok();
            next_version_ = from->key.version + 1;
            tell("goes on from version ", from->key.version);
        }
        cluster_.sim.faults() = kept;
    }

    bool record(Parent parent) {
        sim::Process& process = cluster_.hosts[0].node->start_process("rank0");
        Status status(Code::deadline, "");
        const auto task = [](World w, Layout l, std::string name, std::uint64_t epoch, FromRecord r, Status* out) -> Task<void> {
            Status recorded = co_await record_parent(w, l, name, epoch, r, w.clock.in(60 * second));
            *out = std::move(recorded);
        };
        const FromRecord from{cluster_.roster.incarnation, parent};
        (void)cluster_.sim.run(task(process.world(), cluster_.layout, cluster_.roster.name, cluster_.roster.epoch, from, &status), cluster_.sim.now() + 120 * second);
        process.kill();
        return status.ok();
    }

    // ---- events ----

    void event() {
        note_states();
        const NodeIndex node = static_cast<NodeIndex>(draw(cluster_.hosts.size()));
        Host& host = cluster_.hosts[node];
        ++result_.faults;
        switch (draw(14)) {
            case 0: case 1: case 2: case 3: capture(); --result_.faults; break;
            case 4: case 5:
                if (!host.process) break;
                tell("kill -9 daemon ", node);
                cluster_.kill_daemon(node);
                if (chance(70)) { pass(); start(node); }
                break;
            case 6:
                if (!host.process) break;
                tell("pause daemon ", node);
                host.process->pause();
                pass();
                if (chance(70) && host.process) { host.process->resume(); tell("resume daemon ", node); }
                break;
            case 7:
                if (!host.node->alive()) break;
                tell("crash node ", node);
                cluster_.crash_node(node);
                pass();
                if (!cluster_.is_io_node(node)) job_lives_ = false;
                break;
            case 8: {
                std::set<sim::NodeId> island;
                for (NodeIndex i = 0; i < cluster_.hosts.size(); ++i)
                    if (chance(30)) island.insert(cluster_.hosts[i].node->id());
                tell("partition off ", island.size(), " nodes");
                cluster_.sim.partition(island);
                pass();
                if (chance(70)) cluster_.sim.heal();
                break;
            }
            case 9: case 10:
                tell("the job dies and comes back");
                job_lives_ = false;
                break;
            case 11: remove(node); --result_.faults; break;
            case 12: limit(node, chance(20)); --result_.faults; break;
            default: start(node); break;
        }
        pass();
        if (!job_lives_ && result_.ok) reopen();
    }

    void start(NodeIndex node) {
        Host& host = cluster_.hosts[node];
        if (host.process || !host.node->alive()) return;
        tell("start daemon ", node);
        cluster_.start_daemon(node);
    }

    // The application comes and goes. `hard`: hardly anything may move, which delays and must not fail anything.
    void limit(NodeIndex node, bool hard) {
        Host& host = cluster_.hosts[node];
        if (!host.daemon) return;
        const auto bytes_s = [&] { return chance(40) ? 0.0 : hard ? 1.0 + static_cast<double>(draw(1000)) : 1e6 + static_cast<double>(draw(5'000'000)); };
        PaceLimits limits;
        limits.in_bytes_s = bytes_s();
        limits.out_bytes_s = bytes_s();
        limits.memory_bytes_s = bytes_s() * 3;
        limits.cores = chance(30) ? 0.5 : 0;
        limits.under_way_bytes = chance(40) ? cluster_.options.block_bytes * draw(20) : 0;
        limits.closed = hard && chance(30);
        host.daemon->pace().set_limits(limits);
        host.daemon->pace().spent_cpu(static_cast<Nanos>(draw(2'000)) * millisecond);
        tell("limits of node ", node, ": in ", limits.in_bytes_s, ", out ", limits.out_bytes_s, ", memory ", limits.memory_bytes_s, ", under way ",
             limits.under_way_bytes, limits.closed ? ", closed" : "");
    }

    void capture() {
        if (!job_lives_) return;
        const Status status = cluster_.capture_all(next_version_, chance(20) ? static_cast<Nanos>(draw(2'000'000)) : 60 * second);
        tell("capture version ", next_version_, ": ", status.to_string());
        if (status.ok()) sealed_.insert(cluster_.key(next_version_));
        ++next_version_;
    }

    // A version that nobody needs: not the newest of its incarnation, and none that a job went on from.
    std::optional<VersionKey> removable() {
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

    // By hand from any node, which keeps the fence; or by the coordinator's retention, which lifts it. It may be killed at any moment.
    void remove(NodeIndex node) {
        const std::optional<VersionKey> key = removable();
        if (!key) return;
        const VersionState state = cluster_.hosts[0].daemon ? cluster_.hosts[0].daemon->state(*key) : VersionState{};
        const bool lift = chance(50) && cluster_.hosts[0].node->alive() && state.final;
        sim::SimNode& where = *cluster_.hosts[lift ? 0 : node].node;
        if (!where.alive()) return;
        sim::Process& process = where.start_process("rm");
        Status status(Code::deadline, "killed");
        const auto task = [](World w, Layout l, VersionKey k, std::uint64_t epoch, Fence fence, Status* out) -> Task<void> {
            const Manifest tombstone = tombstone_of(k, epoch, {}, 1);
            Status removed = co_await remove_version(w, l, tombstone, fence, 4 * second);
            *out = std::move(removed);
        };
        const Nanos span = chance(50) ? static_cast<Nanos>(draw(4'000)) * microsecond : 30 * second;
        (void)cluster_.sim.run(task(process.world(), cluster_.layout, *key, cluster_.roster.epoch, lift ? Fence::lift : Fence::keep, &status),
                               cluster_.sim.now() + span);
        process.kill();
        tell("remove version ", key->version, lift ? ", lifting the fence: " : ": ", status.to_string());
        removed_[*key] = status.ok() && !lift;
    }

    void pass() {
        const Nanos span = chance(50) ? static_cast<Nanos>(draw(200)) * millisecond : static_cast<Nanos>(draw(8000)) * millisecond;
        const Nanos until = cluster_.sim.now() + span;
        // stop now and then to see what daemons say, for a promise once made must hold
        while (cluster_.sim.now() < until) {
            cluster_.sim.run_until(std::min(until, cluster_.sim.now() + 50 * millisecond));
            note_states();
        }
    }

    // ---- what was promised ----

    // Remembers every version that any daemon called committed.
    void note_states() {
        for (const Host& host : cluster_.hosts) {
            if (!host.daemon) continue;
            for (const VersionKey& key : host.daemon->versions())
                if (host.daemon->state(key).level == Level::committed && reported_.emplace(key, true).second) tell("committed: version ", key.version);
        }
    }

    bool in_chain(const VersionKey& key) const {
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
    void check_newest(const Manifest& found) {
        const bool anchored = has_parent_ || std::any_of(reported_.begin(), reported_.end(), [&](const auto& entry) {
                                  return entry.first.incarnation == cluster_.roster.incarnation;
                              });
        if (!anchored) return;
        if (!in_chain(found.key)) return fail("the newest version found, " + std::to_string(found.key.version) + ", is of another lineage");
        for (const auto& [key, reported] : reported_)
            if (in_chain(key) && key.version > found.key.version)
                return fail("version " + std::to_string(key.version) + " was called committed, but the newest found is " + std::to_string(found.key.version));
    }

    void settle() {
        tell("quiet");
        cluster_.sim.faults() = {};
        cluster_.sim.heal();
        for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node) {
            Host& host = cluster_.hosts[node];
            if (!host.node->alive()) cluster_.restart_node(node);
            if (host.process) host.process->resume();
            start(node);
            limit(node, false);
        }
        cluster_.sim.run_until(cluster_.sim.now() + second);
        note_states();
    }

    void check_promise() {
        // everything that was called committed is there, bit for bit, and so is everything that has a manifest
        for (const auto& [key, reported] : reported_) {
            const Status status = cluster_.check_committed(key);
            const auto removed = removed_.find(key);
            if (removed == removed_.end()) {
                if (!status.ok()) return fail("version " + std::to_string(key.version) + " was called committed: " + status.to_string());
                continue;
            }
            // given up or not there; or whole, where it was not removed after all, or nothing keeps a daemon from committing it again
            if (!status.ok() && status.code() != Code::not_found)
                return fail("version " + std::to_string(key.version) + " was removed, and is neither whole nor gone: " + status.to_string());
            if (status.ok() && removed->second) return fail("version " + std::to_string(key.version) + " was removed, and came back");
        }
        const auto newest = cluster_.newest_committed();
        if (!newest.ok()) return fail("the catalog can not be read: " + newest.status().to_string());
        if (*newest) {
            const Status status = cluster_.check_committed((*newest)->key);
            if (!status.ok()) return fail("the newest version, " + std::to_string((*newest)->key.version) + ", is torn: " + status.to_string());
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

    // After the faults: what is sealed everywhere and still in scratch commits by itself, and so does a new version.
    void check_liveness() {
        const bool intact = job_lives_ && !lost_scratch();
        if (intact) {
            for (const VersionKey& key : sealed_) {
                if (key.incarnation != cluster_.roster.incarnation || removed_.count(key)) continue;
                const bool done = cluster_.run_until_committed(key.version, 400 * second);
                if (!done) return fail("sealed version " + std::to_string(key.version) + " did not commit after the faults ended: " +
                                       cluster_.state(0, key.version).failure.to_string());
                note_states();
            }
        } else {
            reopen();
            cluster_.sim.faults() = {};
            if (!result_.ok) return;
        }
        const Version version = next_version_;
        const Status captured = cluster_.capture_all(version);
        if (!captured.ok()) return fail("a capture without faults failed: " + captured.to_string());
        if (!cluster_.run_until_committed(version, 400 * second))
            return fail("a new version did not commit after the faults ended: " + cluster_.state(0, version).failure.to_string());
        note_states();
        const Status status = cluster_.check_committed(cluster_.key(version));
        if (!status.ok()) return fail("the last version: " + status.to_string());
        result_.committed = static_cast<std::uint32_t>(reported_.size());
    }

    // A node that crashed took sealed images with it.
    bool lost_scratch() const {
        for (NodeIndex node = 0; node < cluster_.hosts.size(); ++node) {
            const Host& host = cluster_.hosts[node];
            if (!cluster_.is_io_node(node) && (!host.daemon || !host.daemon->knows(cluster_.roster.incarnation))) return true;
        }
        return false;
    }

    // Where a part holds data.
    std::optional<std::uint64_t> data_in(const std::string& path) {
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
    void check_flipped_bit() {
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
            if (status.code() != Code::corrupt) return fail("a flipped bit in " + part.file + " was not found: " + status.to_string());
            return;
        }
    }

    void fail(std::string text) {
        result_.ok = false;
        result_.failure = std::move(text);
    }

    SeedResult finish(std::string failure) {
        if (!failure.empty()) fail(std::move(failure));
        result_.story = std::move(story_);
        result_.fingerprint = cluster_.sim.fingerprint();
        for (const Host& host : cluster_.hosts)
            if (host.daemon) result_.taken_over_bytes += host.daemon->counters().taken_over_bytes;
        return result_;
    }

    sim::Prng draw_;
    std::string story_;
    sim::Faults background_;
    Cluster cluster_;
    SeedResult result_;
    bool job_lives_ = false;
    bool has_parent_ = false;
    Version next_version_ = 1;
    std::map<Id128, Parent> chains_;       // where each incarnation came from, as the test knows it
    std::map<VersionKey, bool> reported_;  // called committed by some daemon at some time
    std::map<VersionKey, bool> removed_;   // tried to remove; true: done, with a fence that stays
    std::set<VersionKey> sealed_;          // sealed by every rank
};

}  // namespace

SeedResult run_seed(std::uint64_t seed, bool trace) {
    Scenario scenario(seed, trace);
    return scenario.run();
}

}  // namespace cairn::testing
