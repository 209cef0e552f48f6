// FabricNetwork within one process: several endpoints on one loop, over the real tcp provider.
#include "world/real/fabric.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <vector>

#include "world/gate.hpp"
#include "world/real/test_world.hpp"

// libfabric forgets a few hundred bytes of each connection that was asked for and never accepted.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libfabric.so\n"; }

namespace cairn {
namespace {

using test::patience;

FabricSettings loopback_settings() {
    FabricSettings settings;
    settings.interface = "lo";
    return settings;
}

class Fabric : public ::testing::Test {
  protected:
    std::unique_ptr<FabricNetwork> open(const FabricSettings& settings = loopback_settings()) {
        Result<std::unique_ptr<FabricNetwork>> network = FabricNetwork::open(*loop_, settings);
        EXPECT_TRUE(network.ok()) << network.status().to_string();
        return network.ok() ? std::move(network).value() : nullptr;
    }
    Nanos in(Nanos span) const { return loop_->in(span); }
    void pass(Nanos span) { loop_->run(sleep_for(*loop_, span)); }
    static Task<int> sleep_for(Loop& loop, Nanos span) {
        co_await loop.sleep(span);
        co_return 0;
    }
    std::unique_ptr<Loop> loop_ = test::make_loop();
};

Bytes counted(std::size_t count, unsigned seed) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i >> 12) * 31 + i * 7 + seed);
    return bytes;
}
Slice room(std::size_t count) { return Slice::of(Bytes(count, std::byte{0xEE})); }
bool same(ByteView a, ByteView b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// Sends and receives at once, as two daemons would; both results.
struct Delivery {
    Status sent;
    Status received;
    std::uint64_t length = 0;
};
Task<void> send_into(Network& from, Address to, std::uint64_t tag, Slice data, Nanos deadline, Status* result) {
    *result = co_await from.send_payload(to, tag, data, deadline);
}
Task<Delivery> deliver(Loop& loop, Network& from, Network& to, std::uint64_t tag, Slice data, Slice into) {
    Delivery delivery;
    delivery.received = to.post_payload(tag, into);
    if (!delivery.received.ok()) co_return delivery;
    Gate gate(loop);
    const Nanos deadline = loop.in(patience);
    gate.spawn(send_into(from, to.self(), tag, data, deadline, &delivery.sent));
    Result<std::uint64_t> length = co_await to.wait_payload(tag, deadline);
    co_await gate.close();
    delivery.received = length.status();
    if (length.ok()) delivery.length = *length;
    co_return delivery;
}

TEST_F(Fabric, OpensOnLoopbackAndSaysItsAddress) {
    const auto network = open();
    EXPECT_TRUE(network->self().starts_with("tcp://127.0.0.1:")) << network->self();
    const auto other = open();
    EXPECT_NE(network->self(), other->self());
    const auto anywhere = open(FabricSettings{});
    EXPECT_TRUE(anywhere->self().starts_with("tcp://"));
}

TEST_F(Fabric, BadSettingsSayWhatThereIs) {
    FabricSettings settings = loopback_settings();
    settings.provider = "no-such-provider";
    const auto none = FabricNetwork::open(*loop_, settings);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.code(), Code::invalid_argument);
    EXPECT_NE(none.status().text().find("no-such-provider"), std::string::npos);
    EXPECT_NE(none.status().text().find("tcp;ofi_rxm"), std::string::npos) << none.status().text();
    settings = loopback_settings();
    settings.interface = "no-such-interface";
    EXPECT_EQ(FabricNetwork::open(*loop_, settings).code(), Code::invalid_argument);
}

TEST_F(Fabric, LeavesTheEnvironmentAlone) {
    const auto network = open();
    for (const char* name : {"FI_PROVIDER", "FI_AV_REMOVE_CLEANUP", "FI_OFI_RXM_BUFFER_SIZE", "FI_OFI_RXM_MSG_RX_SIZE"})
        EXPECT_EQ(std::getenv(name), nullptr) << name;
}

TEST_F(Fabric, MalformedAddressIsInvalid) {
    const auto network = open();
    for (const char* text : {"", "nonsense", "tcp://127.0.0.1", "tcp://300.0.0.1:5"}) {
        EXPECT_EQ(loop_->run(network->send(text, Bytes(1), in(patience))).code(), Code::invalid_argument) << text;
        EXPECT_EQ(loop_->run(network->send_payload(text, 1, room(1), in(patience))).code(), Code::invalid_argument)
            << text;
    }
}

Task<Status> send_then_receive(Network& from, Network& to, Bytes message, Bytes* got, Nanos deadline) {
    Status sent = co_await from.send(to.self(), message, deadline);
    if (!sent.ok()) co_return sent;
    Result<Bytes> received = co_await to.inbox().receive(deadline);
    if (received.ok()) *got = std::move(received).value();
    co_return received.status();
}

TEST_F(Fabric, MessagesOfAllSizesArriveWhole) {
    const auto a = open(), b = open();
    for (const std::size_t bytes : {0u, 1u, 100u, 4055u, 4056u, 4057u, 8192u, 100'000u, 1u << 20, 20u << 20}) {
        const Bytes message = counted(bytes, 3);
        Bytes got;
        const Status status = loop_->run(send_then_receive(*a, *b, message, &got, in(patience)));
        ASSERT_TRUE(status.ok()) << bytes << ": " << status.to_string();
        EXPECT_TRUE(same(got, message)) << bytes;
        const Status back = loop_->run(send_then_receive(*b, *a, message, &got, in(patience)));
        ASSERT_TRUE(back.ok()) << bytes << ": " << back.to_string();
        EXPECT_TRUE(same(got, message)) << bytes;
    }
}

TEST_F(Fabric, TheLongestMessageGoesAndALongerOneIsRefused) {
    FabricSettings settings = loopback_settings();
    const auto a = open(settings), b = open(settings);
    const Bytes message = counted(Network::message_bytes_max, 9);
    Bytes got;
    const Status status = loop_->run(send_then_receive(*a, *b, message, &got, in(patience)));
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_TRUE(same(got, message));
    const Status longer = loop_->run(a->send(b->self(), Bytes(Network::message_bytes_max + 1), in(patience)));
    EXPECT_EQ(longer.code(), Code::invalid_argument);
}

TEST_F(Fabric, AnEndpointReachesItself) {
    const auto a = open();
    Bytes got;
    ASSERT_TRUE(loop_->run(send_then_receive(*a, *a, counted(50'000, 1), &got, in(patience))).ok());
    EXPECT_TRUE(same(got, counted(50'000, 1)));
    const Slice data = Slice::of(counted(1 << 20, 2)), into = room(1 << 20);
    const Delivery delivery = loop_->run(deliver(*loop_, *a, *a, 5, data, into));
    ASSERT_TRUE(delivery.sent.ok() && delivery.received.ok()) << delivery.received.to_string();
    EXPECT_TRUE(same(into.bytes(), data.bytes()));
    EXPECT_TRUE(a->post_payload(6, into).ok()) << "the posting was withdrawn from the provider";
}

Task<int> receive_counted(Network& to, int count, Nanos deadline) {
    int in_order = 0;
    for (int i = 0; i < count; ++i) {
        Result<Bytes> message = co_await to.inbox().receive(deadline);
        if (!message.ok()) break;
        int number = -1;
        std::memcpy(&number, message->data(), sizeof number);
        if (number == i) ++in_order;
    }
    co_return in_order;
}
Task<void> send_counted(Network& from, Address to, int count, Nanos deadline, int* sent) {
    for (int i = 0; i < count; ++i) {
        Bytes message(64);
        std::memcpy(message.data(), &i, sizeof i);
        const Status status = co_await from.send(to, message, deadline);
        if (!status.ok()) co_return;
        ++*sent;
    }
}

TEST_F(Fabric, TenThousandSmallMessages) {
    FabricSettings settings = loopback_settings();
    settings.inbox_messages = 20'000;  // sender and receiver share a loop here: nothing paces the sender
    const auto a = open(), b = open(settings);
    int sent = 0;
    Gate gate(*loop_);
    gate.spawn(send_counted(*a, b->self(), 10'000, in(patience), &sent));
    EXPECT_EQ(loop_->run(receive_counted(*b, 10'000, in(patience))), 10'000);
    EXPECT_EQ(sent, 10'000);
    EXPECT_EQ(b->counters().messages_dropped, 0u);
}

TEST_F(Fabric, AFullInboxDropsAndCounts) {
    FabricSettings settings = loopback_settings();
    settings.inbox_messages = 10;
    const auto a = open(), b = open(settings);
    int sent = 0;
    Gate gate(*loop_);
    gate.spawn(send_counted(*a, b->self(), 100, in(patience), &sent));
    for (int turns = 0; turns < 1000 && b->counters().messages_dropped < 90; ++turns) pass(5 * millisecond);
    EXPECT_EQ(sent, 100);
    EXPECT_EQ(b->inbox().size(), 10u);
    EXPECT_EQ(b->counters().messages_dropped, 90u);
}

TEST_F(Fabric, TheInboxIsBoundedInBytesToo) {
    FabricSettings settings = loopback_settings();
    settings.inbox_bytes = 100'000;
    const auto a = open(), b = open(settings);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(loop_->run(a->send(b->self(), Bytes(40'000), in(patience))).ok());
    for (int turns = 0; turns < 1000 && b->counters().messages_dropped < 3; ++turns) pass(5 * millisecond);
    EXPECT_EQ(b->inbox().size(), 2u);
    (void)b->inbox().try_receive();
    Bytes got;
    (void)b->inbox().try_receive();
    EXPECT_TRUE(loop_->run(send_then_receive(*a, *b, Bytes(90'000), &got, in(patience))).ok()) << "room again";
    EXPECT_EQ(got.size(), 90'000u);
}

TEST_F(Fabric, PayloadsOfAllSizesArriveWhole) {
    const auto a = open(), b = open();
    std::uint64_t tag = 0;
    for (const std::size_t bytes : {0u, 1u, 4096u, 4097u, 100'000u, 1u << 20, 16u << 20, 64u << 20, 256u << 20}) {
        const Slice data = Slice::of(counted(bytes, 5)), into = room(bytes);
        const Delivery delivery = loop_->run(deliver(*loop_, *a, *b, ++tag, data, into));
        ASSERT_TRUE(delivery.sent.ok()) << bytes << ": " << delivery.sent.to_string();
        ASSERT_TRUE(delivery.received.ok()) << bytes << ": " << delivery.received.to_string();
        EXPECT_EQ(delivery.length, bytes);
        EXPECT_TRUE(same(into.bytes(), data.bytes())) << bytes;
    }
}

TEST_F(Fabric, APayloadGoesFromAndIntoTheMiddleOfBuffers) {
    const auto a = open(), b = open();
    const Slice data = Slice::of(counted(300'000, 7)).part(1000, 200'000), whole = room(400'000);
    const Delivery delivery = loop_->run(deliver(*loop_, *a, *b, UINT64_MAX, data, whole.part(5000, 250'000)));
    ASSERT_TRUE(delivery.received.ok()) << delivery.received.to_string();
    EXPECT_EQ(delivery.length, 200'000u) << "less than the slice is fine";
    EXPECT_TRUE(same(whole.part(5000, 200'000).bytes(), data.bytes()));
    const Bytes untouched(5000, std::byte{0xEE});
    EXPECT_TRUE(same(whole.part(0, 5000).bytes(), untouched));
    EXPECT_TRUE(same(whole.part(205'000, 5000).bytes(), untouched));
}

TEST_F(Fabric, APayloadLongerThanItsPostingIsAnError) {
    for (const std::size_t bytes : {1000u, 1u << 20}) {
        const auto a = open(), b = open();  // the provider gives the connection up over it
        const Slice into = room(bytes);
        const Delivery delivery =
            loop_->run(deliver(*loop_, *a, *b, bytes, Slice::of(counted(2 * bytes, 1)), into.part(0, bytes / 2)));
        EXPECT_EQ(delivery.received.code(), Code::corrupt) << delivery.received.to_string();
        EXPECT_TRUE(same(into.part(bytes / 2, bytes / 2).bytes(), Bytes(bytes / 2, std::byte{0xEE})))
            << "nothing past the slice";
    }
}

TEST_F(Fabric, PostingsAreKeptApart) {
    const auto a = open();
    EXPECT_EQ(loop_->run(a->wait_payload(1, in(patience))).code(), Code::not_found);
    const Slice into = room(10);
    EXPECT_TRUE(a->post_payload(1, into).ok());
    EXPECT_EQ(a->post_payload(1, into).code(), Code::already_exists);
    EXPECT_EQ(a->post_payload(2, Slice{}).code(), Code::invalid_argument);
}

TEST_F(Fabric, AWithdrawnPostingLetsGoAndALatePayloadIsDiscarded) {
    const auto a = open(), b = open();
    for (const std::size_t bytes : {100u, 1u << 20}) {  // eager, rendezvous
        const std::uint64_t discarded = b->counters().payloads_discarded;
        Slice into = room(bytes);
        const std::weak_ptr<Buffer> watched = into.buffer;
        ASSERT_TRUE(b->post_payload(bytes, into).ok());
        EXPECT_EQ(loop_->run(b->wait_payload(bytes, in(5 * millisecond))).code(), Code::deadline);
        EXPECT_TRUE(same(into.bytes(), Bytes(bytes, std::byte{0xEE})));
        into = {};
        EXPECT_TRUE(watched.expired()) << "withdrawn, so nobody holds it";
        const Status late = loop_->run(a->send_payload(b->self(), bytes, Slice::of(Bytes(bytes)), in(patience)));
        EXPECT_TRUE(late.ok()) << "the sender is set free: " << late.to_string();
        for (int turns = 0; turns < 1000 && b->counters().payloads_discarded == discarded; ++turns)
            pass(5 * millisecond);
        EXPECT_EQ(b->counters().payloads_discarded, discarded + 1);
    }
    const Slice data = Slice::of(counted(1 << 20, 5)), into = room(1 << 20);
    const Delivery delivery = loop_->run(deliver(*loop_, *a, *b, 77, data, into));
    ASSERT_TRUE(delivery.received.ok());
    EXPECT_TRUE(same(into.bytes(), data.bytes()));
    EXPECT_EQ(a->counters().connections_cut, 0u);
}

TEST_F(Fabric, ADeadAddressEndsByTheDeadlineWithoutSpinning) {
    const auto a = open();
    Address dead;
    {
        const auto gone = open();
        dead = gone->self();
    }
    const Slice data = room(1 << 20);
    const std::clock_t before = std::clock();
    EXPECT_EQ(loop_->run(a->send(dead, Bytes(10), in(500 * millisecond))).code(), Code::deadline);
    EXPECT_EQ(loop_->run(a->send_payload(dead, 1, data, in(500 * millisecond))).code(), Code::deadline);
    EXPECT_LT(double(std::clock() - before) / CLOCKS_PER_SEC, 0.5) << "of about a second";
    EXPECT_EQ(data.buffer.use_count(), 1) << "let go of";
    EXPECT_EQ(a->counters().operations_held, 0u);
}

TEST_F(Fabric, AnotherEndpointIsReachedWhileOneIsDead) {
    const auto a = open(), b = open();
    Address dead;
    {
        const auto gone = open();
        dead = gone->self();
    }
    Gate gate(*loop_);
    Status ignored[20];
    for (Status& status : ignored) gate.spawn(send_into(*a, dead, 9, room(1000), in(2 * second), &status));
    for (int i = 0; i < 100; ++i) {
        Bytes got;
        ASSERT_TRUE(loop_->run(send_then_receive(*a, *b, counted(1000, 1), &got, in(patience))).ok());
    }
    EXPECT_TRUE(loop_->run(gate.close(in(patience))));
    for (const Status& status : ignored) EXPECT_EQ(status.code(), Code::deadline);
}

// A peer whose loop does not turn is like a stopped process.
TEST_F(Fabric, SendsLostInGreatNumberDoNotUseTheEndpointUp) {
    FabricSettings settings = loopback_settings();
    settings.cut_after = 10 * millisecond;
    const auto a = open(settings);
    const auto other_loop = test::make_loop();
    auto other = FabricNetwork::open(*other_loop, settings);
    ASSERT_TRUE(other.ok());
    FabricNetwork& b = **other;
    const auto pass_both = [&](Nanos span) {
        pass(span);
        other_loop->run(sleep_for(*other_loop, span));
    };
    for (int round = 0; round < 4; ++round) {
        Gate gate(*loop_);
        int sent = 0;
        gate.spawn(send_counted(*a, b.self(), 1, in(patience), &sent));
        for (int turns = 0; turns < 1000 && sent == 0; ++turns) pass_both(2 * millisecond);
        ASSERT_EQ(sent, 1) << "round " << round;
        std::vector<Status> results(600);
        const Slice data = room(100'000);
        for (Status& result : results) gate.spawn(send_into(*a, b.self(), 1, data, in(200 * millisecond), &result));
        EXPECT_TRUE(loop_->run(gate.close(in(patience))));
        for (const Status& result : results) EXPECT_FALSE(result.ok());
        for (int turns = 0; turns < 1000 && a->counters().operations_held != 0; ++turns) pass(5 * millisecond);
        EXPECT_EQ(a->counters().operations_held, 0u);
    }
    EXPECT_GE(a->counters().connections_cut, 8u) << "each time the connection, and then the endpoint";
}

Task<void> flow(Loop& loop, Network& from, Network& to, std::uint64_t first_tag, int chunks, Slice data, int* whole) {
    for (int i = 0; i < chunks; ++i) {
        const Slice into = room(data.length);
        Delivery delivery = co_await deliver(loop, from, to, first_tag + i, data, into);
        if (delivery.sent.ok() && delivery.received.ok() && same(into.bytes(), data.bytes())) ++*whole;
    }
}

TEST_F(Fabric, EightFollowersSendToOneLeaderAtOnce) {
    const auto leader = open();
    std::vector<std::unique_ptr<FabricNetwork>> followers;
    int whole = 0;
    Gate gate(*loop_);
    for (unsigned i = 0; i < 8; ++i) {
        followers.push_back(open());
        gate.spawn(flow(*loop_, *followers[i], *leader, i * 1000, 5, Slice::of(counted(4 << 20, i)), &whole));
    }
    EXPECT_TRUE(loop_->run(gate.close(in(patience))));
    EXPECT_EQ(whole, 40);
}

Task<void> wait_into(Network& network, std::uint64_t tag, Nanos deadline, Status* result) {
    Result<std::uint64_t> length = co_await network.wait_payload(tag, deadline);
    *result = length.status();
}

TEST_F(Fabric, ClosingEndsWhoWaitsAndLetsGoOfBuffers) {
    const auto b = open();
    auto a = open();
    Status waited, sent;
    const Slice posted = room(1 << 20), data = room(1 << 20);
    ASSERT_TRUE(a->post_payload(1, posted).ok());
    {
        Gate gate(*loop_);
        gate.spawn(wait_into(*a, 1, never, &waited));
        gate.spawn(send_into(*a, b->self(), 2, data, never, &sent));
        a.reset();
        EXPECT_TRUE(loop_->run(gate.close(in(patience))));
    }
    EXPECT_EQ(waited.code(), Code::cancelled);
    EXPECT_EQ(sent.code(), Code::cancelled);
    EXPECT_EQ(posted.buffer.use_count(), 1);
    EXPECT_EQ(data.buffer.use_count(), 1);
}

TEST_F(Fabric, AWaiterMayBeDestroyedAtAnyTime) {
    const auto a = open(), b = open();
    Status ignored[4];
    {
        Gate gate(*loop_);
        ASSERT_TRUE(a->post_payload(1, room(100)).ok());
        gate.spawn(wait_into(*a, 1, never, &ignored[0]));
        gate.spawn(send_into(*a, b->self(), 2, room(1 << 20), in(patience), &ignored[1]));
        gate.spawn(send_into(*a, "tcp://127.0.0.1:9", 3, room(1 << 20), never, &ignored[2]));
        pass(20 * millisecond);
        gate.spawn(send_into(*a, b->self(), 4, room(1 << 20), in(patience), &ignored[3]));
    }
    Bytes got;
    EXPECT_TRUE(loop_->run(send_then_receive(*a, *b, counted(1000, 1), &got, in(patience))).ok());
}

TEST_F(Fabric, AnIdleEndpointCostsNothing) {
    const auto a = open(), b = open();
    Bytes got;
    ASSERT_TRUE(loop_->run(send_then_receive(*a, *b, counted(1000, 1), &got, in(patience))).ok());
    pass(500 * millisecond);
    const std::clock_t before = std::clock();
    pass(2 * second);
    EXPECT_LT(double(std::clock() - before) / CLOCKS_PER_SEC, 0.05);
}

}  // namespace
}  // namespace cairn
