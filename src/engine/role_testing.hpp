// One role of a node alone, in the simulated world, for tests. The test hands messages to it; what it says is caught on its way to itself (Outbox::to_self)
// or in the inbox of the process that plays the node it is said to. Files are the simulated storage's, images lie in memory.
//
// The job's start is on record and the version's directory is there, as a coordinator finds and makes them. Nothing else of a node is here: what its router
// does when a message comes in or a version ends, the test does (note_heard, Alone::ends).
#pragma once

#include <gtest/gtest.h>

#include "base/checksum.hpp"
#include "catalog/catalog.hpp"
#include "catalog/roots.hpp"
#include "engine/role.hpp"
#include "format/message.hpp"
#include "world/sim/simulation.hpp"

namespace cairn::testing {

inline constexpr std::uint64_t role_block = 4096;  // block_bytes of all images

// Of each rank others, and no two blocks alike.
inline Bytes role_bytes(Rank rank, std::uint64_t count) {
    Bytes bytes(count);
    for (std::uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(1 + (i / role_block * 7 + i + rank * 31) % 251);
    return bytes;
}
inline Bytes bytes_in(const Bytes& bytes, std::uint64_t offset, std::uint64_t length) {
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    return Bytes(from, from + static_cast<std::ptrdiff_t>(length));
}
inline std::vector<std::uint64_t> block_checksums(const Bytes& bytes) {
    std::vector<std::uint64_t> made;
    for (std::uint64_t at = 0; at < bytes.size(); at += role_block)
        made.push_back(checksum(ByteView(bytes.data() + at, std::min<std::uint64_t>(role_block, bytes.size() - at))));
    return made;
}
inline ImageInfo role_image(Rank rank, std::uint64_t bytes) {
    Region region;
    region.name = "state";
    region.length = bytes;
    region.shape = {bytes};
    return {rank, bytes, {region}};
}

// Of an attempt at one part of a job's three ranks; who writes what of it is the test's.
inline message::Lead role_lead(Id128 attempt_id) {
    message::Lead lead;
    lead.attempt = 1;
    lead.attempt_id = attempt_id;
    lead.parts_total = 1;
    lead.ranks_total = 3;
    lead.block_bytes = role_block;
    return lead;
}

struct RoleOptions {
    std::vector<std::vector<Rank>> ranks = {{0}, {1}, {2}};  // of each node; none: an I/O node
    NodeIndex self = 0;                                      // the node under test
    std::uint32_t files = 1;
    std::vector<std::string> roots;                          // of the job, made, each with its mark
    FlushSettings settings;
    sim::Model model;
    sim::Faults faults;
};

// The nodes of a job, one of which is under test, and a version of it.
class RoleWorld {
  public:
    explicit RoleWorld(const RoleOptions& options)
        : sim(1, options.model, options.faults), self(options.self), nodes_(start(sim, options)), world(nodes_[self]->world()) {
        Roster roster;
        roster.name = "series";
        roster.incarnation = {7, 1};
        roster.secret = {8, 2};
        roster.files = options.files;
        roster.roots = options.roots;
        for (NodeIndex node = 0; node < nodes_.size(); ++node) {
            roster.members.push_back({"n" + std::to_string(node), nodes_[node]->address(), options.ranks[node]});
            roster.ranks += static_cast<std::uint32_t>(options.ranks[node].size());
        }
        const OpenRecord record{roster.incarnation, 0, "sim", 1, 0, roster.ranks};
        const Result<std::uint64_t> claimed = result_of(claim_epoch(world, layout, "series", record, 0, world.clock.in(second)));
        CAIRN_CHECK(claimed.ok());
        roster.epoch = *claimed;
        const VersionKey key{roster.name, 1, roster.incarnation};
        const Status made = result_of(make_directories(world.storage, layout.persistent, layout.version(key), world.clock.in(second)));
        CAIRN_CHECK(made.ok());
        for (const std::string& root : options.roots) {
            if (root == layout.persistent) continue;
            CAIRN_CHECK(sim.persistent().make_directory(root, 0).ok());
            CAIRN_CHECK(result_of(make_version_below(world, root, key, world.clock.in(second))).ok());
        }
        job = std::make_shared<engine::Job>(world, layout.persistent, std::make_shared<const Roster>(roster), self);
        flight = std::make_shared<engine::Flight>(world, key, job);
    }

    sim::Process& process(NodeIndex node) { return *nodes_[node]; }
    void run(Nanos span) { sim.run_until(sim.now() + span); }
    bool run_until(const std::function<bool()>& done, Nanos limit = 1000 * second) { return sim.run_until(done, sim.now() + limit); }
    // What a task gives; it must end.
    template <class T>
    T result_of(Task<T> task) {
        std::optional<T> result;
        const auto keep = [](Task<T> inner, std::optional<T>* out) -> Task<void> {
            T value = co_await inner;
            out->emplace(std::move(value));
        };
        CAIRN_CHECK(sim.run(keep(std::move(task), &result), sim.now() + 10'000 * second));
        return std::move(*result);
    }

    // As the router does it when a message comes.
    void note_heard(NodeIndex node) {
        job->heard[node] = world.clock.now();
        if (node == job->coordinator()) flight->coordinator_heard = world.clock.now();
    }
    // All bodies of this kind that the node under test said to `node`, and that the test has not asked for before.
    template <class Body>
    std::vector<Body> heard(NodeIndex node) {
        collect(node);
        std::vector<Body> found;
        std::erase_if(told_[node], [&](message::Message& message) {
            Body* const body = std::get_if<Body>(&message.body);
            if (body) found.push_back(std::move(*body));
            return body != nullptr;
        });
        return found;
    }
    // The newest of them, waited for.
    template <class Body>
    Body next(NodeIndex node) {
        std::vector<Body> found;
        EXPECT_TRUE(run_until([&] { return !(found = heard<Body>(node)).empty(); })) << "node " << node << " was not told";
        return found.empty() ? Body() : found.back();
    }

    // A sealed image of this node; its bytes are role_bytes().
    LocalImage image_of(Rank rank, std::uint64_t bytes) const {
        LocalImage image;
        image.header.key = flight->key;
        image.header.rank = rank;
        image.header.ranks = job->roster->ranks;
        image.header.block_bytes = role_block;
        image.header.image = role_image(rank, bytes);
        image.path = "/scratch/slot-" + std::to_string(rank);
        image.data = Slice::of(role_bytes(rank, bytes));
        return image;
    }
    // As the router takes it in.
    void add_image(Rank rank, std::uint64_t bytes) { flight->images.emplace(rank, held_image(image_of(rank, bytes))); }

    // What the node under test does from now on, in order: "fsync /persistent/...".
    const std::vector<std::string>& watch_operations() {
        sim.set_observer([this](sim::Process& process, const char* what, const std::string& detail) {
            if (&process == nodes_[self]) operations_.push_back(std::string(what) + " " + detail);
        });
        return operations_;
    }
    std::optional<Bytes> read(const std::string& path) {
        Result<Bytes> bytes = result_of(read_file(world.storage, path, 1 << 30, world.clock.in(1000 * second)));
        return bytes.ok() ? std::optional(std::move(bytes).value()) : std::nullopt;
    }
    // What of a file would be left if all nodes lost their power now; nothing, where its name would not be.
    std::optional<Bytes> durable(const std::string& path) const {
        const Result<sim::InodePtr> kept = sim.persistent().find_kept(path);
        if (!kept.ok()) return std::nullopt;
        const std::shared_ptr<sim::Content> content = sim::FileSystem::kept(**kept);
        return sim::materialise(content->read(0, content->size()));
    }

    sim::Simulation sim;
    const Layout layout{"/persistent"};
    const NodeIndex self;

  private:
    static std::vector<sim::Process*> start(sim::Simulation& sim, const RoleOptions& options) {
        std::vector<sim::Process*> nodes;
        for (std::size_t node = 0; node < options.ranks.size(); ++node) nodes.push_back(&sim.add_node().start_process("cairnd"));
        return nodes;
    }
    void collect(NodeIndex node) {
        while (to_self && node == self) {
            std::optional<message::Message> said = to_self->try_receive();
            if (!said) return;
            told_[node].push_back(std::move(*said));
        }
        while (std::optional<Bytes> bytes = nodes_[node]->world().network.inbox().try_receive()) {
            Result<message::Message> said = decode_message(*bytes);
            ASSERT_TRUE(said.ok()) << said.status().to_string();
            EXPECT_EQ(said->secret, job->roster->secret);
            told_[node].push_back(std::move(said).value());
        }
    }

    std::vector<sim::Process*> nodes_;
    std::map<NodeIndex, std::vector<message::Message>> told_;
    std::vector<std::string> operations_;

  public:
    World world;
    engine::JobPtr job;
    engine::FlightPtr flight;
    Channel<message::Message>* to_self = nullptr;
};

// A role, or parts of one, made from Common. It ends as a process does: dead first, then its coroutines go, then the rest.
template <class Subject>
struct Alone : RoleWorld {
    explicit Alone(const RoleOptions& options = {})
        : RoleWorld(options), common(world, layout, options.settings, gate), subject(common), gate(world.clock) {
        to_self = &common.outbox.to_self();
        common.end = [this](engine::Flight& ended, const message::Ended& how) {
            ends.push_back(how);
            ended.state.final = how.final;
            if (how.code == Code::ok) ended.state.level = Level::committed;
            common.update(ended);
        };
    }
    ~Alone() {
        process(self).kill();
        flight->leader.reset();  // an attempt and its flight hold each other
    }
    Alone(const Alone&) = delete;

    engine::Common common;
    Subject subject;
    std::vector<message::Ended> ends;  // what the role found out by itself of the version's end
    Gate gate;
};

}  // namespace cairn::testing
