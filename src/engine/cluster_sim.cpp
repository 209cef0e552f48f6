// The simulated cluster: daemons boot as real ones do, ranks write slots as the client library does.
#include "engine/cluster_sim.hpp"

#include <algorithm>

#include "engine/io_nodes.hpp"

namespace cairn::testing {

namespace {
constexpr Nanos io_span = 60 * second;
PlacementTargets targets_of(const sim::Model& model) {
    PlacementTargets targets{"sim", {}, std::string(sim::target_mark)};
    for (std::size_t target = 0; target < model.target_rates.size(); ++target) targets.names.push_back(std::to_string(target));
    return targets;
}
}  // namespace

Cluster::Cluster(ClusterOptions o) : sim(o.seed, o.model, o.faults), options(std::move(o)) {
    for (std::size_t i = 0; i < options.ranks_per_node.size(); ++i) {
        Host host;
        host.node = &sim.add_node();
        hosts.push_back(std::move(host));
    }
    for (NodeIndex node = 0; node < hosts.size(); ++node) start_daemon(node);
}

Cluster::~Cluster() {
    for (NodeIndex node = 0; node < hosts.size(); ++node) {
        kill_daemon(node);
        kill_formers(node);
    }
}

std::uint32_t Cluster::ranks() const {
    std::uint32_t sum = 0;
    for (std::uint32_t count : options.ranks_per_node) sum += count;
    return sum;
}

NodeIndex Cluster::node_of(Rank rank) const {
    for (NodeIndex node = 0;; ++node) {
        if (rank < options.ranks_per_node[node]) return node;
        rank -= options.ranks_per_node[node];
    }
}

ScratchLayout Cluster::scratch(NodeIndex node) const { return ScratchLayout::of("/scratch", 0, "n" + std::to_string(node), layout.persistent); }

void Cluster::start_daemon(NodeIndex node) {
    Host& host = hosts[node];
    CAIRN_CHECK(!host.process || !host.process->alive());
    host.process = &host.node->start_process("cairnd");
    host.booted = false;
    host.free_slots.clear();  // it does not know who may still have them mapped
    host.started = sim.now();
    host.daemon = std::make_unique<Node>(host.process->world(), layout, options.settings);
    if (is_io_node(node)) host.daemon->serve_as_io_node("n" + std::to_string(node));
    if (options.placed) host.daemon->set_targets(std::make_shared<const PlacementTargets>(targets_of(options.model)));
    World world = host.process->world();
    host.gate = std::make_unique<Gate>(world.clock);
    host.gate->spawn(boot(node, world));
}

void Cluster::kill_daemon(NodeIndex node) {
    Host& host = hosts[node];
    if (!host.process) return;
    host.process->kill();
    host.gate.reset();
    host.daemon.reset();
    host.process = nullptr;
}

void Cluster::succeed_daemon(NodeIndex node) {
    Host& host = hosts[node];
    host.process->pause();
    host.formers.push_back(std::move(static_cast<Daemon&>(host)));
    host.process = nullptr;
    start_daemon(node);
}

void Cluster::kill_formers(NodeIndex node) {
    for (Daemon& former : hosts[node].formers) {
        former.process->kill();
        former.gate.reset();
    }
    hosts[node].formers.clear();
}

void Cluster::crash_node(NodeIndex node) {
    hosts[node].node->crash();
    kill_daemon(node);
    kill_formers(node);
}

void Cluster::restart_node(NodeIndex node) { hosts[node].node->restart(); }

// Where this node's daemon is now.
Task<void> Cluster::record_address(World world, Id128 incarnation, NodeIndex node) {
    const std::string path = layout.job_node(incarnation, node);
    for (int tries = 0; tries < 20; ++tries) {
        const Nanos soon = world.clock.in(io_span);
        Bytes record = encode_node_record({incarnation, node, world.network.self()});
        const Status removed = co_await world.storage.remove(path, soon);
        (void)removed;
        const Status made = co_await make_directories(world.storage, layout.persistent, layout.job(incarnation), soon);
        (void)made;
        const Status wrote = co_await write_file(world.storage, path, std::move(record), 0600, soon);
        if (wrote.ok()) break;
        co_await world.clock.sleep(100 * millisecond);
    }
}

Task<void> Cluster::boot(NodeIndex node, World world) {
    Host& host = hosts[node];
    const ScratchLayout place = scratch(node);
    for (const std::string& directory : {place.root, place.jobs(), place.images()}) {
        for (;;) {  // a real daemon would end with an error here, and be started again
            const Status made = co_await world.storage.make_directory(directory, 0700, world.clock.in(io_span));
            if (made.ok() || made.code() == Code::already_exists) break;
            co_await world.clock.sleep(100 * millisecond);
        }
    }
    if (is_io_node(node)) {  // it learns of jobs when they call
        for (;;) {
            const IoNodeRecord record{"n" + std::to_string(node), world.network.self()};
            const Status published = co_await publish_io_node(world, layout, record, world.clock.in(io_span));
            if (published.ok()) break;
            co_await world.clock.sleep(100 * millisecond);
        }
        host.booted = true;
        co_return;
    }
    Result<JobScan> jobs = co_await scan_jobs(world, place, io_span);
    while (!jobs.ok() || !jobs->unread.empty()) {
        co_await world.clock.sleep(200 * millisecond);
        jobs = co_await scan_jobs(world, place, io_span);
    }
    if (jobs.ok()) {
        for (const Roster& job : jobs->rosters) {
            const Status joined = host.daemon->join(std::make_shared<const Roster>(job), node);
            (void)joined;
            co_await record_address(world, job.incarnation, node);
        }
    }
    // What can not be read now may be readable later; only what is corrupt never will be.
    for (bool again = true; again;) {
        again = false;
        Result<ScratchScan> scan = co_await scan_scratch(world, place, io_span);
        if (!scan.ok()) {
            again = true;
        } else {
            for (LocalImage& image : scan->images) {
                const Status added = host.daemon->add_image(std::move(image));
                (void)added;
            }
            for (const Unread& each : scan->unread) again |= each.why.code() != Code::corrupt;
        }
        if (again) co_await world.clock.sleep(200 * millisecond);
    }
    host.booted = true;
}

Task<void> Cluster::write_roster(World world, std::string path, bool& done) {
    Bytes bytes = encode_roster(roster);
    const std::string parent = path.substr(0, path.rfind('/'));
    if (parent == layout.job(roster.incarnation)) {
        const Status made = co_await make_directories(world.storage, layout.persistent, parent, world.clock.in(io_span));
        (void)made;
    }
    const Status wrote = co_await write_file(world.storage, path, std::move(bytes), 0600, world.clock.in(io_span));
    done = wrote.ok();
}

// In one step, as a daemon does: there is never none.
Task<void> Cluster::replace_roster(World world, std::string path, bool& done) {
    const std::string written = path + ".new";
    co_await write_roster(world, written, done);
    if (!done) co_return;
    const Status replaced = co_await world.storage.replace(written, path, world.clock.in(io_span));
    done = replaced.ok();
}

Status Cluster::open_job(Nanos limit) {
    const Nanos until = sim.now() + limit;
    if (!sim.run_until([&] { return std::all_of(hosts.begin(), hosts.end(), [](const Host& h) { return !h.process || h.booted; }); }, until))
        return deadline_passed("daemons did not boot");
    const auto living = std::find_if(hosts.begin(), hosts.end(), [](const Host& h) { return h.node->alive(); });
    if (living == hosts.end()) return unavailable("no node is alive");
    sim::Process& client = living->node->start_process("rank0");
    World world = client.world();
    Roster next;
    next.name = "series";
    next.incarnation = world.random.id();
    next.secret = world.random.id();
    next.ranks = ranks();
    next.files = options.files;
    Result<std::uint64_t> epoch(Status(Code::deadline, "claim"));
    const auto claim = [](World w, Layout l, std::string name, OpenRecord r, Result<std::uint64_t>& out) -> Task<void> {
        Result<std::uint64_t> claimed = co_await claim_epoch(w, l, name, r, 0, w.clock.in(io_span));
        out = std::move(claimed);
    };
    OpenRecord record;
    record.incarnation = next.incarnation;
    record.ranks = next.ranks;
    record.host = "sim";
    record.pid = 1;
    if (!sim.run(claim(world, layout, next.name, record, epoch), until - sim.now() > 0 ? until : sim.now())) return deadline_passed("claiming an epoch");
    client.kill();
    if (!epoch.ok()) return std::move(epoch).status();
    next.epoch = *epoch;
    Rank rank = 0;
    for (NodeIndex node = 0; node < hosts.size(); ++node) {
        Member member{"n" + std::to_string(node), hosts[node].process ? hosts[node].process->address() : "gone", {}};
        for (std::uint32_t i = 0; i < options.ranks_per_node[node]; ++i) member.ranks.push_back(rank++);
        next.members.push_back(std::move(member));
    }
    roster = std::move(next);
    for (NodeIndex node = 0; node < hosts.size(); ++node) {
        if (!hosts[node].process || is_io_node(node)) continue;
        std::vector<std::string> paths = {scratch(node).job(roster.incarnation)};
        const bool has_io_nodes = std::count(options.ranks_per_node.begin(), options.ranks_per_node.end(), 0u) > 0;
        if (node == 0 && has_io_nodes) paths.push_back(layout.job_roster(roster.incarnation));  // nobody else reads it in these tests
        for (const std::string& path : paths) {
            bool done = false;
            if (!sim.run(write_roster(hosts[node].process->world(), path, done), until) || !done) return unavailable("roster not written");
            if (!hosts[node].process) return unavailable("a daemon died");
        }
        TRY(hosts[node].daemon->join(std::make_shared<const Roster>(roster), node));
    }
    return {};
}

Status Cluster::name_parent(Parent parent, Nanos limit) {
    roster.parent = parent;
    for (NodeIndex node = 0; node < hosts.size(); ++node) {
        if (!hosts[node].process || is_io_node(node)) continue;
        bool done = false;
        if (!sim.run(replace_roster(hosts[node].process->world(), scratch(node).job(roster.incarnation), done), sim.now() + limit) || !done)
            return unavailable("roster not written");
        TRY(hosts[node].daemon->join(std::make_shared<const Roster>(roster), node));
    }
    return {};
}

std::uint64_t Cluster::content_seed(Id128 incarnation, Version version, Rank rank) {
    std::uint64_t seed = incarnation.low ^ (version * 0x9E3779B97F4A7C15ull) ^ ((rank + 1) * 0xC2B2AE3D27D4EB4Full);
    seed ^= seed >> 29;
    return seed * 0xBF58476D1CE4E5B9ull;
}

VersionState Cluster::state(NodeIndex node, Version version) const {
    return hosts[node].daemon ? hosts[node].daemon->state(key(version)) : VersionState{};
}

bool Cluster::run_until_committed(Version version, Nanos span) {
    return sim.run_until(
        [&] {
            for (NodeIndex node = 0; node < hosts.size(); ++node)
                if (hosts[node].daemon && !is_io_node(node) && state(node, version).level != Level::committed) return false;
            return true;
        },
        sim.now() + span);
}

std::vector<std::uint64_t> Cluster::bytes_on_targets(Version version) {
    std::vector<std::uint64_t> bytes(options.model.target_rates.size());
    const std::string directory = layout.version(key(version));
    const auto entries = sim.persistent().list(directory);
    CAIRN_CHECK(entries.ok());
    for (const DirectoryEntry& entry : *entries)
        if (const auto inode = sim.persistent().find(directory + "/" + entry.name); inode.ok() && (*inode)->target)
            bytes[*(*inode)->target] += (*inode)->content->stored_bytes();
    return bytes;
}

}  // namespace cairn::testing
