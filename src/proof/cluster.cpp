// The simulated cluster: daemons boot as real ones do, ranks write slots as the client library does.
#include "proof/cluster.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "catalog/io_nodes.hpp"
#include "format/frame.hpp"

namespace cairn::testing {

namespace {
PlacementTargets targets_of(const sim::Model& model) {
    PlacementTargets targets{"sim", {}, std::string(sim::target_mark)};
    for (std::size_t target = 0; target < model.target_rates.size(); ++target) targets.names.push_back(std::to_string(target));
    return targets;
}
}  // namespace

Cluster::Cluster(ClusterOptions o) : sim(o.seed, o.model, o.faults), options(std::move(o)) {
    layout.roots = options.roots;
    for (const std::string& root : options.roots) {
        const std::string parent = root.substr(0, root.rfind('/'));
        const Status made = sim.persistent().make_directory(parent, 0);
        CAIRN_CHECK(made.ok() || made.code() == Code::already_exists);
        CAIRN_CHECK(sim.persistent().make_directory(root, 0).ok());
        for (const std::string& each : {layout.persistent, parent}) CAIRN_CHECK(sim.persistent().fsync_directory(each).ok());
    }
    for (const std::uint32_t ranks : options.ranks_per_node) {
        Host& host = hosts.emplace_back();
        host.node = &sim.add_node();
        host.is_io_node = ranks == 0;
        seats_.push_back({static_cast<NodeIndex>(hosts.size() - 1), ranks});
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

const std::vector<Seat>& Cluster::seats_of(Id128 incarnation) const {
    const auto found = seated_.find(incarnation);
    return found == seated_.end() ? seats_ : found->second;
}

NodeIndex Cluster::node_of(Rank rank, Id128 incarnation) const {
    for (const Seat& seat : seats_of(incarnation)) {
        if (rank < seat.ranks) return seat.host;
        rank -= seat.ranks;
    }
    CAIRN_CHECK(!"a rank that the cluster has");
    return 0;
}

std::vector<std::vector<Rank>> Cluster::ranks_by_node(Id128 incarnation) const {
    std::vector<std::vector<Rank>> nodes;
    Rank rank = 0;
    for (const Seat& seat : seats_of(incarnation)) {
        if (seat.ranks == 0) continue;
        nodes.emplace_back();
        for (std::uint32_t i = 0; i < seat.ranks; ++i) nodes.back().push_back(rank++);
    }
    return nodes;
}

std::uint32_t Cluster::files(Id128 incarnation) const {
    if (!has_owners(options.layout)) return options.files;
    return options.layout == FileLayout::ranks ? ranks() : static_cast<std::uint32_t>(ranks_by_node(incarnation).size());
}

std::vector<Rank> Cluster::ranks_on(NodeIndex node) const {
    const NodeIndex place = place_in(roster, node);
    return place < roster.members.size() ? roster.members[place].ranks : std::vector<Rank>();
}

NodeIndex Cluster::reader() const {
    const auto there = std::find_if(hosts.begin(), hosts.end(), [](const Host& host) { return !host.gone; });
    CAIRN_CHECK(there != hosts.end());
    return static_cast<NodeIndex>(there - hosts.begin());
}

NodeIndex Cluster::place_in(const Roster& job, NodeIndex node) {
    NodeIndex place = 0;
    while (place < job.members.size() && job.members[place].node != name_of(node)) ++place;
    return place;
}

ScratchLayout Cluster::scratch(NodeIndex node) const { return ScratchLayout::of("/scratch", 0, name_of(node), layout.persistent); }

void Cluster::start_daemon(NodeIndex node) {
    Host& host = hosts[node];
    CAIRN_CHECK(!host.process || !host.process->alive());
    host.process = &host.node->start_process("cairnd");
    host.booted = false;
    host.taken_in.clear();
    host.free_slots.clear();  // it does not know who may still have them mapped
    host.left.clear();
    host.started = sim.now();
    FlushSettings settings = options.settings;
    if (is_io_node(node) && options.io_node_buffer_bytes != 0) settings.buffer_bytes = options.io_node_buffer_bytes;
    host.daemon = std::make_unique<Node>(host.process->world(), layout, std::move(settings));
    if (is_io_node(node)) host.daemon->serve_as_io_node(name_of(node));
    host.unseen = std::make_shared<Daemon::Unseen>();
    host.daemon->set_unseen_images([unseen = host.unseen](Id128 incarnation) { return unseen->all || unseen->jobs.count(incarnation) > 0; });
    if (options.placed) host.daemon->set_targets(std::make_shared<const PlacementTargets>(targets_of(options.model)));
    World world = host.process->world();
    host.gate = std::make_unique<Gate>(world.clock);
    host.gate->spawn(boot(node, world));
}

void Cluster::kill_daemon(NodeIndex node) {
    Host& host = hosts[node];
    if (!host.process) return;
    moved_work_ = has_moved_work();
    host.process->kill();
    host.gate.reset();
    host.daemon.reset();
    host.process = nullptr;
}

bool Cluster::has_moved_work() const {
    const auto moved = [](const Daemon& each) { return each.daemon && each.daemon->counters().taken_over_bytes > 0; };
    return moved_work_ || std::any_of(hosts.begin(), hosts.end(), [&](const Host& host) {
        return moved(host) || std::any_of(host.formers.begin(), host.formers.end(), moved);
    });
}

bool Cluster::has_come_encoded() const {
    return std::any_of(hosts.begin(), hosts.end(), [](const Host& host) { return host.daemon && host.daemon->counters().came_encoded_bytes > 0; });
}

void Cluster::succeed_daemon(NodeIndex node) {
    Host& host = hosts[node];
    host.process->pause();
    host.was_succeeded = true;
    host.formers.push_back(std::move(static_cast<Daemon&>(host)));
    host.process = nullptr;
    start_daemon(node);
}

void Cluster::kill_formers(NodeIndex node) {
    moved_work_ = has_moved_work();
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

void Cluster::restart_node(NodeIndex node) {
    CAIRN_CHECK(!hosts[node].gone);
    hosts[node].node->restart();
}

void Cluster::lose_node(NodeIndex node) {
    crash_node(node);
    hosts[node].gone = true;
}

NodeIndex Cluster::add_node() {
    const auto node = static_cast<NodeIndex>(hosts.size());
    hosts.emplace_back().node = &sim.add_node();
    start_daemon(node);
    return node;
}

// Where this node's daemon is now. False: it could not be told, or persistent is another file system than the job's. Whoever can not see that it is the job's
// writes nothing there: as daemon/job_files.cpp does it.
Task<bool> Cluster::record_address(World world, Roster job, NodeIndex place) {
    const std::string path = layout.job_node(job.incarnation, place);
    for (int tries = 0; tries < 20; ++tries) {
        const Nanos soon = world.clock.in(io_span);
        const Status on_record = co_await check_on_record(world, layout, job.name, job.epoch, job.incarnation, soon);
        if (on_record.code() == Code::unavailable) co_return false;
        if (on_record.ok()) {
            Bytes record = encode_node_record({job.incarnation, place, world.network.self()});
            const Status removed = co_await world.storage.remove(path, soon);
            (void)removed;
            const Status made = co_await make_directories(world.storage, layout.persistent, layout.job(job.incarnation), soon);
            (void)made;
            const Status wrote = co_await write_file(world.storage, path, std::move(record), 0600, soon);
            if (wrote.ok()) co_return true;
        }
        co_await world.clock.sleep(100 * millisecond);
    }
    co_return false;
}

Task<void> Cluster::record_address_late(World world, Roster job, NodeIndex place) {
    for (;;) {
        const bool recorded = co_await record_address(world, job, place);
        if (recorded) co_return;
        co_await world.clock.sleep(2 * second);
    }
}

// The frame alone: the body means the same in format 1.
Bytes Cluster::as_left(Bytes framed) const {
    if (!options.old_format) return framed;
    put_u32(&framed[8], 1);
    put_u64(&framed[32], checksum(ByteView(framed).first(32)));
    return framed;
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
            const IoNodeRecord record{name_of(node), world.network.self()};
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
            const NodeIndex seat = place_in(job, node);
            const Status joined = host.daemon->join(std::make_shared<const Roster>(job), seat);
            (void)joined;
            const bool recorded = co_await record_address(world, job, seat);
            if (!recorded) host.gate->spawn(record_address_late(world, job, seat));  // nobody waits for it
        }
    }
    // What can not be read now may be readable later; only what is corrupt never will be.
    for (bool again = true; again;) {
        again = false;
        Result<ScratchScan> scan = co_await scan_scratch(world, place, io_span);
        if (!scan.ok()) {
            again = true;
        } else {
            for (LocalImage& image : scan->images) give_found(host, *host.daemon, std::move(image));
            for (const Unread& each : scan->unread) again |= each.why.code() != Code::corrupt;
        }
        if (again) co_await world.clock.sleep(200 * millisecond);
    }
    host.unseen->all = false;
    host.booted = true;
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
