// The server alone, on a loop of its own thread: its limits, which a whole daemon takes long to reach.
#include "daemon/server.hpp"

#include <thread>

#include "daemon/daemon_testing.hpp"
#include "format/frame.hpp"
#include "world/real/test_world.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

class ServerTest : public testing::Test, protected Server::Handler {
  protected:
    void begin(ServerLimits limits) {
        layout_ = ScratchLayout::of(scratch_.path(), ::geteuid(), "n0", "/persistent");
        Result<Door> door = Door::open(scratch_.path(), layout_);
        ASSERT_TRUE(door.ok() && door->lock().value_or(false));
        Result<Descriptor> listening = door->listen();
        ASSERT_TRUE(listening.ok());
        Server::Handler& handler = *this;
        server_.emplace(*loop_, handler, limits);
        ASSERT_TRUE(server_->accept_on(std::move(*listening)).ok());
        thread_ = std::thread([this] { loop_->run(); });
    }
    void TearDown() override {
        if (thread_.joinable()) {
            loop_->stop();
            thread_.join();
        }
        server_.reset();
    }
    // GetStatus is answered, the first client with so many bytes; Unpin never; all else is done.
    void on_request(ConnectionId from, std::uint64_t number, control::Request request) override {
        ++requests_;
        if (std::holds_alternative<control::Unpin>(request)) return;
        if (!std::holds_alternative<control::GetStatus>(request)) return server_->answer(from, number, control::Done{});
        control::NodeStatus status;
        status.address = std::string(from == 1 ? answer_bytes_.load() : 10, 'x');
        server_->answer(from, number, status);
    }
    void on_disconnect(ConnectionId) override { ++gone_; }
    // Says hello, and hears that it was heard.
    void greet(Client& client) { client.expect<control::Done>(control::Hello{}); }

    TemporaryDirectory scratch_;
    ScratchLayout layout_;
    std::unique_ptr<Loop> loop_ = make_loop();
    std::optional<Server> server_;
    std::thread thread_;
    std::atomic<std::size_t> answer_bytes_ = 10;
    std::atomic<int> requests_ = 0, gone_ = 0;
};

TEST_F(ServerTest, WhoSaysNothingIsDisconnected) {
    ServerLimits limits;
    limits.hello_wait = 50 * millisecond;
    begin(limits);
    Client silent(layout_);
    EXPECT_TRUE(silent.ended());
    Client greets(layout_);
    greet(greets);
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    greets.expect<control::NodeStatus>(control::GetStatus{});
    EXPECT_EQ(gone_, 1);
}

TEST_F(ServerTest, ConnectionsHaveAnEnd) {
    ServerLimits limits;
    limits.connections_max = 2;
    begin(limits);
    std::optional<Client> one(std::in_place, layout_);
    Client two(layout_);
    greet(*one);
    greet(two);
    Client third(layout_);
    EXPECT_TRUE(third.ended());
    one.reset();
    EXPECT_TRUE(becomes_true([&] { return gone_ == 1; }));
    Client fourth(layout_);
    greet(fourth);
}

// What more comes waits in the socket; nothing of it is lost.
TEST_F(ServerTest, NoMoreRequestsAreOpenThanMayBe) {
    ServerLimits limits;
    limits.requests_max = 2;
    begin(limits);
    Client client(layout_);
    greet(client);
    for (int i = 0; i < 10; ++i) client.send_request(control::GetStatus{});
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(client.receive().ok());
    client.send_request(control::Unpin{});
    client.send_request(control::Unpin{});
    client.send_request(control::GetStatus{});
    EXPECT_TRUE(becomes_true([&] { return requests_ == 13; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(requests_, 13) << "two are without an answer";
}

TEST_F(ServerTest, WhoDoesNotReadIsDisconnected) {
    ServerLimits limits;
    limits.queued_bytes_max = 8 << 20;
    begin(limits);
    answer_bytes_ = 1 << 20;
    Client deaf(layout_);
    greet(deaf);
    Client other(layout_);
    greet(other);
    for (int i = 0; i < 64 && gone_ == 0; ++i) {
        deaf.send_request(control::GetStatus{});
        other.expect<control::NodeStatus>(control::GetStatus{});
    }
    EXPECT_EQ(gone_, 1);
    EXPECT_EQ(server_->connections(), 1u);
}

TEST_F(ServerTest, AHelloComesFirstAndOnce) {
    begin({});
    for (const bool first : {true, false}) {
        Client client(layout_);
        if (!first) greet(client);
        client.send_request(first ? control::Request(control::GetStatus{}) : control::Request(control::Hello{}));
        EXPECT_TRUE(client.ended());
    }
    EXPECT_EQ(requests_, 1);
}

}  // namespace
}  // namespace cairn
