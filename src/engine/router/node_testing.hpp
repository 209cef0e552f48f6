// One node, whole, in the simulated world, for tests: its router and all roles. The test plays the other nodes of its job.
#pragma once

#include "engine/role_testing.hpp"
#include "engine/router/node.hpp"

namespace cairn::testing {

struct NodeAlone : ::testing::Test {
    static constexpr std::uint64_t image_bytes = 4 * role_block;

    void begin(RoleOptions options) {
        net = std::make_unique<RoleWorld>(options);
        node = std::make_unique<Node>(net->world, net->layout, options.settings);
        ASSERT_TRUE(node->join(net->job->roster, options.self).ok());
    }
    void begin(NodeIndex self) {
        RoleOptions options;
        options.self = self;
        begin(options);
    }
    ~NodeAlone() override {
        net->process(net->self).kill();
        node.reset();
    }
    VersionKey key(Version version) const { return {net->flight->key.name, version, net->flight->key.incarnation}; }
    message::Message message(NodeIndex from, Version version, message::Body body) const {
        return {net->job->roster->secret, key(version), from, from < 3 ? net->process(from).address() : "elsewhere", std::move(body)};
    }
    void send(sim::Process& by, const message::Message& said) { send(by, encode(said)); }
    void send(sim::Process& by, Bytes said) {
        const auto task = [](World w, Address to, Bytes bytes) -> Task<Status> {
            Status sent = co_await w.network.send(std::move(to), std::move(bytes), w.clock.in(second));
            co_return sent;
        };
        EXPECT_TRUE(net->result_of(task(by.world(), net->process(net->self).address(), std::move(said))).ok());
        net->run(100 * millisecond);
    }
    void say(NodeIndex from, Version version, message::Body body) { send(net->process(from), message(from, version, std::move(body))); }
    LocalImage image_of(Rank rank, Version version) const {
        LocalImage image = net->image_of(rank, image_bytes);
        image.header.key = key(version);
        image.path += "-" + std::to_string(version);
        return image;
    }

    std::unique_ptr<RoleWorld> net;
    std::unique_ptr<Node> node;
};

}  // namespace cairn::testing
