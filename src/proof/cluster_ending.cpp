// The simulated cluster's daemons that end in order, and ranks that find the next one: as daemon/daemon.cpp and daemon/ended_jobs.cpp do it.
#include <algorithm>
#include <set>

#include "proof/cluster.hpp"
#include "catalog/io_nodes.hpp"

namespace cairn::testing {

namespace {
constexpr Nanos tidy_span = 10 * second;
}  // namespace

void Cluster::stop_daemon(NodeIndex node, Nanos wait, std::shared_ptr<Ended> out) {
    Host& host = hosts[node];
    host.gate->spawn(finish_daemon(node, host.process->world(), wait, std::move(out)));
}

Task<void> Cluster::finish_daemon(NodeIndex node, World world, Nanos wait, std::shared_ptr<Ended> out) {
    Node* const daemon = hosts[node].daemon.get();
    if (is_io_node(node)) {
        const IoNodeRecord record{name_of(node), world.network.self()};
        const Status withdrawn = co_await withdraw_io_node(world, layout, record, world.clock.in(tidy_span));
        (void)withdrawn;
    }
    std::vector<VersionKey> unfinished = co_await daemon->stop(world.clock.in(wait));
    // What was sealed since the end began is in scratch alone.
    const Result<ScratchScan> scan = co_await scan_scratch(world, scratch(node), tidy_span);
    const Result<JobScan> jobs = co_await scan_jobs(world, scratch(node), tidy_span);
    std::set<Id128> needed;
    for (const VersionKey& key : unfinished) needed.insert(key.incarnation);
    for (std::size_t i = 0; scan.ok() && i < scan->images.size(); ++i)
        if (const VersionKey& key = scan->images[i].header.key; !daemon->state(key).final) needed.insert(key.incarnation);
    const bool all_read = scan.ok() && scan->unread.empty() && jobs.ok() && jobs->unread.empty();
    for (std::size_t i = 0; all_read && i < jobs->rosters.size(); ++i) {
        Roster job = jobs->rosters[i];
        if (!needed.count(job.incarnation)) co_await forget_job(world, std::move(job), node);
    }
    out->unfinished = std::move(unfinished);
    out->done = true;
    sim.at(sim.now(), [this, node, process = hosts[node].process] {
        if (hosts[node].process == process) kill_daemon(node);
    });
}

// Each daemon takes its own record away, the coordinator's the roster, the last one the directory.
Task<void> Cluster::forget_job(World world, Roster job, NodeIndex node) {
    std::vector<std::string> files = {scratch(node).job(job.incarnation), layout.job_node(job.incarnation, place_in(job, node))};
    if (place_in(job, node) == 0) files.push_back(layout.job_roster(job.incarnation));
    for (const std::string& file : files) {
        const Status removed = co_await world.storage.remove(file, world.clock.in(tidy_span));
        (void)removed;
    }
    const Status directory = co_await world.storage.remove_directory(layout.job(job.incarnation), world.clock.in(tidy_span));
    (void)directory;
}

Task<void> Cluster::introduce(World world, NodeIndex node) {
    Host& host = hosts[node];
    const Id128 incarnation = roster.incarnation;
    if (!host.daemon || host.daemon->knows(incarnation)) co_return;
    if (host.taken_in.insert(incarnation).second) host.gate->spawn(take_in(host.process->world(), roster, node));
    const Nanos give_up = world.clock.in(io_span);
    while (host.daemon && !host.daemon->knows(incarnation) && world.clock.now() < give_up) co_await world.clock.sleep(millisecond);
}

// By the daemon: the rank that spoke of it may be killed meanwhile.
Task<void> Cluster::take_in(World world, Roster job, NodeIndex node) {
    Node* const daemon = hosts[node].daemon.get();
    bool kept = false;
    for (int tries = 0; tries < 20 && !kept; ++tries) {
        const std::string path = scratch(node).job(job.incarnation);
        const Status removed = co_await world.storage.remove(path, world.clock.in(io_span));
        (void)removed;
        co_await write_roster(world, job, path, kept);
    }
    hosts[node].taken_in.erase(job.incarnation);
    if (!kept) co_return;
    const std::shared_ptr<Daemon::Unseen> unseen = hosts[node].unseen;
    unseen->jobs.insert(job.incarnation);
    const Status joined = daemon->join(std::make_shared<const Roster>(job), place_in(job, node));
    (void)joined;
    co_await adopt(world, daemon, node, job.incarnation);
    unseen->jobs.erase(job.incarnation);
    co_await record_address_late(world, job, place_in(job, node));
}

Status Cluster::join_again(NodeIndex node) { return hosts[node].daemon->join(std::make_shared<const Roster>(roster), place_in(roster, node)); }

// A look through scratch takes its time: what left it meanwhile is nobody's (daemon/unseen_images.cpp).
void Cluster::give_found(const Host& host, Node& daemon, LocalImage image) {
    if (host.left.count({image.header.key, image.path}) > 0) return;
    const Status added = daemon.add_image(std::move(image));
    (void)added;
}

// What was sealed while no daemon knew of the job. What can not be read now may be readable later.
Task<void> Cluster::adopt(World world, Node* daemon, NodeIndex node, Id128 incarnation) {
    for (bool again = true; again;) {
        Result<ScratchScan> scan = co_await scan_scratch(world, scratch(node), io_span);
        for (std::size_t i = 0; scan.ok() && i < scan->images.size(); ++i)
            if (scan->images[i].header.key.incarnation == incarnation) give_found(hosts[node], *daemon, std::move(scan->images[i]));
        again = !scan.ok() || std::any_of(scan->unread.begin(), scan->unread.end(), [](const Unread& each) { return each.why.code() != Code::corrupt; });
        if (again) co_await world.clock.sleep(100 * millisecond);
    }
}

}  // namespace cairn::testing
