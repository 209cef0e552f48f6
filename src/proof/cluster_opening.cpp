// The simulated cluster's jobs that open: as client/open.cpp does it, rank 0 claims an epoch, and every daemon hears of the roster.
#include <algorithm>

#include "proof/cluster.hpp"

namespace cairn::testing {

namespace {

Task<void> claim(World world, Layout layout, Roster* job, Status* out) {
    OpenRecord record;
    record.incarnation = job->incarnation;
    record.ranks = job->ranks;
    record.host = "sim";
    record.pid = 1;
    const std::string name = job->name;
    Result<std::uint64_t> claimed = co_await claim_epoch(world, layout, name, record, 0, world.clock.in(io_span));
    if (claimed.ok()) job->epoch = *claimed;
    *out = claimed.status();
}

}  // namespace

Task<void> Cluster::write_roster(World world, Roster job, std::string path, bool& done) {
    Bytes bytes = as_left(encode_roster(job));
    const std::string parent = path.substr(0, path.rfind('/'));
    if (parent == layout.job(job.incarnation)) {
        const Status made = co_await make_directories(world.storage, layout.persistent, parent, world.clock.in(io_span));
        (void)made;
    }
    const Status wrote = co_await write_file(world.storage, path, std::move(bytes), 0600, world.clock.in(io_span));
    done = wrote.ok();
}

Result<std::vector<Roster>> Cluster::claim_jobs(std::size_t count, Nanos limit) {
    const Nanos until = sim.now() + limit;
    if (!sim.run_until([&] { return std::all_of(hosts.begin(), hosts.end(), [](const Host& h) { return !h.process || h.booted; }); }, until))
        return deadline_passed("daemons did not boot");
    std::vector<NodeIndex> living;
    for (NodeIndex node = 0; node < hosts.size(); ++node)
        if (hosts[node].node->alive()) living.push_back(node);
    if (living.empty()) return unavailable("no node is alive");
    std::vector<Roster> jobs(count);
    std::vector<Status> claimed(count, Status(Code::deadline, "claiming an epoch"));
    std::vector<sim::Process*> clients;
    {
        std::vector<Task<void>> tasks;
        for (std::size_t i = 0; i < count; ++i) {
            sim::Process& client = hosts[living[i % living.size()]].node->start_process("rank0");
            const World world = client.world();
            jobs[i].name = "series";
            jobs[i].incarnation = world.random.id();
            jobs[i].secret = world.random.id();
            jobs[i].ranks = ranks();
            jobs[i].layout = options.layout;
            jobs[i].roots = options.roots;
            if (options.persistent_too) jobs[i].roots.insert(jobs[i].roots.begin(), layout.persistent);
            jobs[i].format = options.old_format ? 1 : format_version;  // 1 is an absent field
            clients.push_back(&client);
            tasks.push_back(claim(world, layout, &jobs[i], &claimed[i]));
            tasks.back().start();
        }
        (void)sim.run_until([&] { return std::all_of(tasks.begin(), tasks.end(), [](const Task<void>& task) { return task.done(); }); },
                            std::max(until, sim.now()));
        for (sim::Process* client : clients) client->kill();
    }
    for (const Status& status : claimed) TRY(status);
    std::sort(jobs.begin(), jobs.end(), [](const Roster& a, const Roster& b) { return a.epoch < b.epoch; });
    return jobs;
}

Status Cluster::begin_job(Roster job, Nanos limit) {
    const Nanos until = sim.now() + limit;
    Rank rank = 0;
    for (const Seat& seat : seats_) {
        const Host& host = hosts[seat.host];
        Member member{name_of(seat.host), host.process ? host.process->address() : "gone", {}};
        for (std::uint32_t i = 0; i < seat.ranks; ++i) member.ranks.push_back(rank++);
        job.members.push_back(std::move(member));
    }
    roster = std::move(job);
    seated_[roster.incarnation] = seats_;
    roster.files = files(roster.incarnation);
    const bool has_io_nodes = std::any_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.ranks == 0; });
    for (NodeIndex node = 0; node < hosts.size(); ++node) {
        if (!hosts[node].process || is_io_node(node)) continue;
        std::vector<std::string> paths = {scratch(node).job(roster.incarnation)};
        if (node == coordinator() && has_io_nodes) paths.push_back(layout.job_roster(roster.incarnation));  // nobody else reads it in these tests
        for (const std::string& path : paths) {
            bool done = false;
            if (!sim.run(write_roster(hosts[node].process->world(), roster, path, done), until) || !done) return unavailable("roster not written");
            if (!hosts[node].process) return unavailable("a daemon died");
        }
        TRY(hosts[node].daemon->join(std::make_shared<const Roster>(roster), place_in(roster, node)));
    }
    return {};
}

Status Cluster::open_job(Nanos limit) {
    const Nanos until = sim.now() + limit;
    TRY_ASSIGN(const std::vector<Roster> jobs, claim_jobs(1, limit));
    return begin_job(jobs.front(), std::max<Nanos>(0, until - sim.now()));
}

// In one step, as a daemon does: there is never none.
Task<void> Cluster::replace_roster(World world, std::string path, bool& done) {
    const std::string written = path + ".new";
    co_await write_roster(world, roster, written, done);
    if (!done) co_return;
    const Status replaced = co_await world.storage.replace(written, path, world.clock.in(io_span));
    done = replaced.ok();
}

Status Cluster::name_parent(Parent parent, Nanos limit) {
    roster.parent = parent;
    const auto answers = [&](NodeIndex node) { return hosts[node].process && hosts[node].booted; };
    for (NodeIndex node = 0; node < hosts.size(); ++node) {
        if (is_io_node(node) || hosts[node].gone) continue;
        if (!sim.run_until([&] { return answers(node); }, sim.now() + limit)) return unavailable("a daemon is away");
        roster.members[place_in(roster, node)].address = hosts[node].process->address();  // its ranks find it there, whoever was there at the open
    }
    for (NodeIndex node = 0; node < hosts.size(); ++node) {
        if (is_io_node(node) || hosts[node].gone) continue;
        if (!sim.run_until([&] { return answers(node); }, sim.now() + limit)) return unavailable("a daemon is away");
        bool done = false;
        if (!sim.run(replace_roster(hosts[node].process->world(), scratch(node).job(roster.incarnation), done), sim.now() + limit) || !done)
            return unavailable("roster not written");
        if (!answers(node)) return unavailable("a daemon died");
        TRY(hosts[node].daemon->join(std::make_shared<const Roster>(roster), place_in(roster, node)));
    }
    return {};
}

}  // namespace cairn::testing
