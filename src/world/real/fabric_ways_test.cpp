// FabricNetwork and daemons with several cards. The cards are addresses of the loopback interface: an endpoint that listens at all of them is reached
// over each, and beacons that come and go say which of them lead to it.
#include <gtest/gtest.h>

#include <fstream>
#include <iomanip>
#include <sstream>

#include "world/gate.hpp"
#include "world/real/card_address.hpp"
#include "world/real/fabric.hpp"
#include "world/real/hail.hpp"
#include "world/real/test_world.hpp"

namespace cairn {
namespace {

using test::patience;

constexpr std::uint64_t id = 77;
const char* const fast_host = "127.0.0.2";
const char* const slow_host = "127.0.0.3";

FabricSettings two_cards_settings() {
    FabricSettings settings;
    settings.host_cards = {{"slow", slow_host, 8, 1000, CardMake::device, true, false}, {"fast", fast_host, 8, 100'000, CardMake::device, true, false}};
    settings.way_patience = 3 * second;  // nobody here is silent, but the machine may be busy
    settings.way_at_most = 6 * second;
    settings.way_doubt = 100 * millisecond;
    settings.way_look_again = 20 * millisecond;
    settings.cut_after = 200 * millisecond;
    return settings;
}

class FabricCards : public ::testing::Test {
  protected:
    std::unique_ptr<FabricNetwork> open(Loop& loop, const FabricSettings& settings = two_cards_settings()) {
        Result<std::unique_ptr<FabricNetwork>> network = FabricNetwork::open(loop, settings);
        EXPECT_TRUE(network.ok()) << network.status().to_string();
        return network.ok() ? std::move(network).value() : nullptr;
    }
    // The address of `of`, at which it is found by beacons of this test.
    Address behind_beacons(const FabricNetwork& of) {
        CardsAddress address = parse_cards_address(of.self()).value();
        fabric_port_ = static_cast<std::uint16_t>(std::stoi(address.cards[0].host_port.substr(address.cards[0].host_port.rfind(':') + 1)));
        address.id = id;
        address.port = port_;
        return print_cards_address(address);
    }
    std::unique_ptr<Beacon> beacon(const std::string& at, std::uint64_t whose = id) {
        auto opened = Beacon::open(*loop_, at, whose, port_);
        EXPECT_TRUE(opened.ok()) << opened.status().to_string();
        port_ = (*opened)->port();
        return std::move(opened).value();
    }
    void pass(Nanos span) { loop_->run(sleep_for(*loop_, span)); }
    static Task<int> sleep_for(Loop& loop, Nanos span) {
        co_await loop.sleep(span);
        co_return 0;
    }
    static Task<Status> send_and_receive(Network& from, Address to, Network& at, Nanos deadline) {
        Bytes message(3);
        Status sent = co_await from.send(to, message, deadline);
        if (!sent.ok()) co_return sent;
        const Result<Bytes> got = co_await at.inbox().receive(deadline);
        co_return got.status();
    }
    Status talk(Network& from, const Address& to, Network& at) { return loop_->run(send_and_receive(from, to, at, loop_->in(patience))); }
    // Connections from here to the endpoint at that address.
    int connections(const std::string& host) const {
        unsigned a = 0, b = 0, c = 0, d = 0;
        EXPECT_EQ(std::sscanf(host.c_str(), "%u.%u.%u.%u", &a, &b, &c, &d), 4);
        std::ostringstream wanted;  // as in /proc/net/tcp: remote address, established
        wanted << std::hex << std::uppercase << std::setfill('0') << std::setw(8) << (d << 24 | c << 16 | b << 8 | a) << ":" << std::setw(4) << fabric_port_ << " 01 ";
        int count = 0;
        std::ifstream list("/proc/self/net/tcp");
        for (std::string line; std::getline(list, line);) count += line.find(" " + wanted.str()) != std::string::npos ? 1 : 0;
        return count;
    }
    std::unique_ptr<Loop> loop_ = test::make_loop();
    std::uint16_t port_ = 0, fabric_port_ = 0;
};

TEST_F(FabricCards, TheAddressNamesAllAndTheFastestIsUsed) {
    const auto a = open(*loop_), b = open(*loop_);
    const auto address = parse_cards_address(b->self());
    ASSERT_TRUE(address.ok()) << b->self();
    ASSERT_EQ(address->cards.size(), 2u);
    EXPECT_EQ(host_of(address->cards[0].host_port), fast_host);
    EXPECT_FALSE(address->cards[0].is_usual);
    EXPECT_TRUE(address->cards[1].is_usual);
    EXPECT_EQ(b->card().interface, "fast");
    EXPECT_EQ(b->card_choice(), "the fastest of 2");
    ASSERT_TRUE(talk(*a, b->self(), *b).ok());
    ASSERT_TRUE(talk(*b, a->self(), *a).ok());
    ASSERT_TRUE(talk(*a, a->self(), *a).ok());
    (void)behind_beacons(*b);
    EXPECT_EQ(connections(fast_host), 1);
}

TEST_F(FabricCards, OneCardIsAnAddressAsEver) {
    FabricSettings settings = two_cards_settings();
    settings.host_cards.pop_back();
    const auto one = open(*loop_, settings), two = open(*loop_);
    EXPECT_TRUE(one->self().starts_with(std::string("tcp://") + slow_host + ":")) << one->self();
    EXPECT_EQ(one->card().interface, "slow");
    EXPECT_EQ(one->card_choice(), "the only one");
    ASSERT_TRUE(talk(*two, one->self(), *one).ok());
    ASSERT_TRUE(talk(*one, two->self(), *two).ok());
    settings = two_cards_settings();
    settings.interface = "127.0.0.1";
    EXPECT_TRUE(open(*loop_, settings)->self().starts_with("tcp://127.0.0.1:"));
}

TEST_F(FabricCards, WhereTheFastOneDoesNotLeadThereTheOtherIsTaken) {
    const auto slow = beacon(slow_host);
    const auto a = open(*loop_), b = open(*loop_);
    ASSERT_TRUE(talk(*a, behind_beacons(*b), *b).ok());
    EXPECT_EQ(connections(fast_host), 0);
    EXPECT_EQ(connections(slow_host), 1);
}

TEST_F(FabricCards, AnAddressThatIsAnothersIsNotTaken) {
    const auto slow = beacon(slow_host), another = beacon(fast_host, 78);
    const auto a = open(*loop_), b = open(*loop_);
    ASSERT_TRUE(talk(*a, behind_beacons(*b), *b).ok());
    EXPECT_EQ(connections(fast_host), 0);
}

TEST_F(FabricCards, AFasterOneThatComesLaterIsTaken) {
    const auto slow = beacon(slow_host);
    const auto a = open(*loop_), b = open(*loop_);
    const Address to = behind_beacons(*b);
    ASSERT_TRUE(talk(*a, to, *b).ok());
    const auto fast = beacon(fast_host);
    for (int tries = 0; tries < 1000 && connections(fast_host) == 0; ++tries) {
        ASSERT_TRUE(talk(*a, to, *b).ok());
        pass(10 * millisecond);
    }
    EXPECT_EQ(connections(fast_host), 1);
    EXPECT_EQ(connections(slow_host), 0);
}

TEST_F(FabricCards, WhoAnswersOverNoneIsTriedOverTheUsualOne) {
    auto gone = beacon(slow_host);
    gone.reset();
    const auto a = open(*loop_), b = open(*loop_);
    ASSERT_TRUE(talk(*a, behind_beacons(*b), *b).ok());
    EXPECT_EQ(connections(fast_host), 0);
    EXPECT_EQ(connections(slow_host), 1);
}

Task<void> send_large(Network& from, Address to, std::uint64_t tag, Slice data, Nanos deadline, Status* result) {
    *result = co_await from.send_payload(to, tag, data, deadline);
}

// The other daemon takes nothing, as behind a hole; its beacons say that it could be reached.
TEST_F(FabricCards, AWayThatDiesIsLeftWhileTheOtherLives) {
    const auto slow = beacon(slow_host);
    auto fast = beacon(fast_host);
    const auto other_loop = test::make_loop();
    const auto a = open(*loop_);
    const auto b = open(*other_loop);
    const Address to = behind_beacons(*b);
    Gate gate(*loop_);
    std::vector<Status> results(20);
    const Slice data = Slice::of(Bytes(4 << 20));
    for (int round = 0; round < 400 && connections(fast_host) == 0; ++round) {  // connects
        Status ignored;
        gate.spawn(send_large(*a, to, 1, data, loop_->in(30 * millisecond), &ignored));
        pass(40 * millisecond);
        other_loop->run(sleep_for(*other_loop, 5 * millisecond));
    }
    ASSERT_EQ(connections(fast_host), 1);
    for (Status& result : results) gate.spawn(send_large(*a, to, 1, data, loop_->in(patience), &result));
    pass(300 * millisecond);
    for (const Status& result : results) EXPECT_TRUE(result.ok()) << "under way: it answers over the card that is in use";
    EXPECT_EQ(connections(fast_host), 1);
    fast.reset();
    EXPECT_TRUE(loop_->run(gate.close(loop_->in(patience))));
    for (const Status& result : results) EXPECT_EQ(result.code(), Code::unavailable) << result.to_string();
    gate.reap();
    EXPECT_EQ(data.buffer.use_count(), 1);
    Gate again(*loop_);
    Status ignored;
    again.spawn(send_large(*a, to, 1, data, loop_->in(patience), &ignored));
    for (int round = 0; round < 400 && connections(slow_host) == 0; ++round) {
        pass(5 * millisecond);
        other_loop->run(sleep_for(*other_loop, 5 * millisecond));
    }
    EXPECT_EQ(connections(slow_host), 1);
    EXPECT_EQ(connections(fast_host), 0);
}

TEST_F(FabricCards, AStoppedDaemonKeepsItsConnection) {
    auto slow = beacon(slow_host), fast = beacon(fast_host);
    const auto other_loop = test::make_loop();
    const auto a = open(*loop_);
    const auto b = open(*other_loop);
    const Address to = behind_beacons(*b);
    Gate gate(*loop_);
    Status sent;
    ASSERT_TRUE(b->post_payload(1, Slice::of(Bytes(4 << 20))).ok());
    gate.spawn(send_large(*a, to, 1, Slice::of(Bytes(4 << 20)), loop_->in(patience), &sent));
    pass(20 * millisecond);
    slow.reset(), fast.reset();  // what stands still answers over nothing
    pass(500 * millisecond);
    for (int turns = 0; turns < 20'000 && gate.active() != 0; ++turns) {
        pass(millisecond);
        other_loop->run(sleep_for(*other_loop, millisecond));
    }
    EXPECT_TRUE(sent.ok()) << sent.to_string();
    EXPECT_EQ(gate.active(), 0u);
}

TEST_F(FabricCards, EndsWhileWaysAreLookedFor) {
    auto gone = beacon(slow_host);
    gone.reset();
    auto a = open(*loop_);
    const auto b = open(*loop_);
    Gate gate(*loop_);
    Status sent;
    gate.spawn(send_large(*a, behind_beacons(*b), 1, Slice::of(Bytes(100)), never, &sent));
    a.reset();
    EXPECT_TRUE(loop_->run(gate.close(loop_->in(patience))));
    EXPECT_EQ(sent.code(), Code::cancelled);
}

TEST_F(FabricCards, AHostileAddressIsInvalid) {
    const auto a = open(*loop_);
    for (const char* text : {"tcp+cards://", "tcp+cards://0000000000001234@1/10.0.0.1:1=1", "tcp+cards://x"})
        EXPECT_EQ(loop_->run(a->send(text, Bytes(1), loop_->in(patience))).code(), Code::invalid_argument) << text;
}

}  // namespace
}  // namespace cairn
