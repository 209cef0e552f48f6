// What every Network must do (the contract of network.hpp). Messages may be lost, so the tests ask again as the engine does; what
// arrives must be whole and right. See conformance.hpp.
#pragma once

#include <algorithm>

#include "world/conformance.hpp"

namespace cairn::conformance {

template <class Bench>
class NetworkConformance : public ::testing::Test {
  protected:
    using Body = Task<void> (*)(Bench&);
    void run(Body body) { EXPECT_TRUE(bench_.run(body(bench_))) << "the test did not end within the bench's limit"; }
    Bench bench_;
};
TYPED_TEST_SUITE_P(NetworkConformance);

// Sends the message every now and then until `stop`.
inline Task<void> keep_sending(Clock& clock, Network& from, Address to, Bytes message, bool& stop) {
    while (!stop) {
        (void)co_await from.send(to, message, clock.in(second));
        co_await clock.sleep(50 * millisecond);
    }
}

// Drops repetitions of other messages.
inline Task<bool> receive_message(Clock& clock, Network& at, Bytes expected) {
    const Nanos deadline = clock.in(10 * second);
    for (;;) {
        Result<Bytes> got = co_await at.inbox().receive(deadline);
        if (!got.ok()) {
            ADD_FAILURE() << "a message of " << expected.size() << " bytes: " << text_of(got);
            co_return false;
        }
        if (*got == expected) co_return true;
    }
}

template <class Bench>
Task<bool> pass_message(Bench& bench, int from, int to, Bytes message) {
    bool stop = false;
    Gate gate(bench.clock());
    gate.spawn(keep_sending(bench.clock(), bench.network(from), bench.network(to).self(), message, stop));
    const bool got = co_await receive_message(bench.clock(), bench.network(to), message);
    stop = true;
    const bool closed = co_await gate.close(bench.clock().in(5 * second));
    EXPECT_TRUE(closed);
    co_return got;
}

template <class Bench>
Task<void> network_messages(Bench& bench) {
    EXPECT_NE(bench.network(0).self(), bench.network(1).self());
    unsigned seed = 0;
    for (std::uint64_t bytes : {1ull, 100ull, 5'000ull, 70'000ull, 3ull << 20}) {
        Bytes message = pattern(bytes, ++seed);
        bool passed = co_await pass_message(bench, 0, 1, message);
        EXPECT_TRUE(passed);
        message = pattern(bytes, ++seed);
        passed = co_await pass_message(bench, 1, 0, message);
        EXPECT_TRUE(passed);
    }
    Bytes own = pattern(10, ++seed);
    const bool to_itself = co_await pass_message(bench, 0, 0, own);
    EXPECT_TRUE(to_itself);
}

template <class Bench>
Task<void> network_refuses(Bench& bench) {
    Bytes large(Network::message_bytes_max + 1);
    Status status = co_await bench.network(0).send(bench.network(1).self(), std::move(large), bench.clock().in(second));
    EXPECT_EQ(status.code(), Code::invalid_argument);
    Bytes message = pattern(100);
    status = co_await bench.network(0).send("not an address", message, bench.clock().in(200 * millisecond));  // whatever it says
    Result<std::uint64_t> got = co_await bench.network(0).wait_payload(4711, bench.clock().in(100 * millisecond));  // never posted
    EXPECT_FALSE(got.ok());
    const bool passed = co_await pass_message(bench, 0, 1, message);
    EXPECT_TRUE(passed);
}

template <class Bench>
Task<void> network_gone_peer(Bench& bench) {
    const Address gone = bench.gone();
    Bytes message = pattern(1000);
    (void)co_await bench.network(0).send(gone, message, bench.clock().in(300 * millisecond));
    Status status = co_await bench.network(0).send_payload(gone, 1, Slice::of(pattern(1 << 20)), bench.clock().in(300 * millisecond));
    EXPECT_FALSE(status.ok());
    const bool passed = co_await pass_message(bench, 0, 1, message);  // the others do not suffer
    EXPECT_TRUE(passed);
}

struct PayloadTest {
    Slice into;
    std::uint64_t got = 0;
    Status status;
};

inline Task<void> receive_payload(Network& at, std::uint64_t tag, PayloadTest& test, Nanos deadline) {
    Result<std::uint64_t> got = co_await at.wait_payload(tag, deadline);
    test.status = got.status();
    if (got.ok()) test.got = *got;
}

// Sends again until taken, as the engine does when it is asked again.
inline Task<void> supply_payload(Clock& clock, Network& from, Address to, std::uint64_t tag, Bytes bytes, const PayloadTest& test, Nanos deadline) {
    while (test.got == 0 && clock.now() < deadline) {
        Slice data = Slice::of(bytes);
        (void)co_await from.send_payload(to, tag, data, std::min(deadline, clock.in(second)));
        co_await clock.sleep(20 * millisecond);
    }
}

template <class Bench>
Task<void> network_payloads(Bench& bench) {
    Clock& clock = bench.clock();
    constexpr std::uint64_t count = 24;
    const Nanos deadline = clock.in(20 * second);
    std::vector<PayloadTest> tests[2];
    Gate gate(clock);
    for (int to : {0, 1}) {
        tests[to].resize(count);
        for (std::uint64_t tag = 0; tag < count; ++tag) {  // shorter than what is posted, in buffers at odd places
            auto buffer = std::make_shared<BytesBuffer>(Bytes(200'000));
            tests[to][tag].into = Slice{buffer, 7 * tag, 150'000};
            Status posted = bench.network(to).post_payload(100 + tag, tests[to][tag].into);
            CO_ASSERT_OK(posted);
            gate.spawn(receive_payload(bench.network(to), 100 + tag, tests[to][tag], deadline));
        }
    }
    for (int to : {0, 1})
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t tag = i * 7 % count;
            Bytes bytes = pattern(1 + tag * 6'000, static_cast<unsigned>(tag * 2 + static_cast<unsigned>(to)));
            gate.spawn(supply_payload(clock, bench.network(1 - to), bench.network(to).self(), 100 + tag, bytes, tests[to][tag], deadline));
        }
    const bool closed = co_await gate.close(deadline + second);
    CO_ASSERT(closed);
    for (int to : {0, 1})
        for (std::uint64_t tag = 0; tag < count; ++tag) {
            const PayloadTest& test = tests[to][tag];
            const Bytes expected = pattern(1 + tag * 6'000, static_cast<unsigned>(tag * 2 + static_cast<unsigned>(to)));
            EXPECT_TRUE(test.status.ok()) << text_of(test.status);
            EXPECT_EQ(test.got, expected.size());
            EXPECT_TRUE(std::equal(expected.begin(), expected.end(), test.into.data())) << "payload " << tag << " to " << to;
        }
}

template <class Bench>
Task<void> network_large_payload(Bench& bench) {
    const Nanos deadline = bench.clock().in(20 * second);
    PayloadTest test;
    const Bytes bytes = pattern(24 << 20);
    test.into = Slice::of(Bytes(bytes.size()));
    Status posted = bench.network(1).post_payload(1, test.into);
    CO_ASSERT_OK(posted);
    Gate gate(bench.clock());
    gate.spawn(receive_payload(bench.network(1), 1, test, deadline));
    gate.spawn(supply_payload(bench.clock(), bench.network(0), bench.network(1).self(), 1, bytes, test, deadline));
    const bool closed = co_await gate.close(deadline + second);
    CO_ASSERT(closed);
    CO_ASSERT_OK(test.status);
    EXPECT_EQ(test.got, bytes.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), test.into.data()));
}

// A node may ask itself.
template <class Bench>
Task<void> network_payload_to_itself(Bench& bench) {
    const Nanos deadline = bench.clock().in(20 * second);
    for (std::uint64_t tag = 1; tag <= 3; ++tag) {
        PayloadTest test;
        const Bytes bytes = pattern(tag * 700, static_cast<unsigned>(tag));
        test.into = Slice::of(Bytes(bytes.size()));
        Status posted = bench.network(0).post_payload(tag, test.into);
        CO_ASSERT_OK(posted);
        Gate gate(bench.clock());
        gate.spawn(receive_payload(bench.network(0), tag, test, deadline));
        gate.spawn(supply_payload(bench.clock(), bench.network(0), bench.network(0).self(), tag, bytes, test, deadline));
        const bool closed = co_await gate.close(deadline + second);
        CO_ASSERT(closed);
        CO_ASSERT_OK(test.status);
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), test.into.data()));
    }
}

// No free buffer, no data: what nobody posted is dropped, what was withdrawn stays as it is once the transport has let go of it.
template <class Bench>
Task<void> network_unposted_and_withdrawn(Bench& bench) {
    Clock& clock = bench.clock();
    const Address to = bench.network(1).self();
    (void)co_await bench.network(0).send_payload(to, 900, Slice::of(pattern(100'000)), clock.in(300 * millisecond));

    Slice into = Slice::of(Bytes(100'000));
    Status posted = bench.network(1).post_payload(901, into);
    CO_ASSERT_OK(posted);
    Result<std::uint64_t> got = co_await bench.network(1).wait_payload(901, clock.in(50 * millisecond));
    EXPECT_EQ(got.code(), Code::deadline);
    const bool let_go = into.buffer.use_count() == 1;
    (void)co_await bench.network(0).send_payload(to, 901, Slice::of(pattern(100'000)), clock.in(300 * millisecond));
    co_await clock.sleep(50 * millisecond);
    if (let_go) {
        const ByteView bytes = into.bytes();
        EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; }));
    }
    PayloadTest test;
    test.into = Slice::of(Bytes(1000));
    posted = bench.network(1).post_payload(902, test.into);
    CO_ASSERT_OK(posted);
    const Nanos deadline = clock.in(10 * second);
    Gate gate(clock);
    gate.spawn(receive_payload(bench.network(1), 902, test, deadline));
    gate.spawn(supply_payload(clock, bench.network(0), to, 902, pattern(1000), test, deadline));
    const bool closed = co_await gate.close(deadline + second);
    CO_ASSERT(closed);
    EXPECT_EQ(test.got, 1000u);
    EXPECT_TRUE(test.into.bytes()[999] == pattern(1000)[999]);
}

inline Task<void> wait_in_vain(Network& network) { (void)co_await network.inbox().receive(never); }

// Everything that waits may be destroyed while it does.
template <class Bench>
Task<void> network_abandoned(Bench& bench) {
    Clock& clock = bench.clock();
    PayloadTest test;
    bool stop = false;
    test.into = Slice::of(Bytes(4 << 20));
    Status posted = bench.network(1).post_payload(5, test.into);
    CO_ASSERT_OK(posted);
    for (int round = 0; round < 3; ++round) {
        Gate gate(clock);
        gate.spawn(receive_payload(bench.network(1), 5, test, never));
        gate.spawn(wait_in_vain(bench.network(1)));
        gate.spawn(keep_sending(clock, bench.network(0), bench.network(1).self(), pattern(100'000), stop));
        gate.spawn(supply_payload(clock, bench.network(0), bench.network(1).self(), 5, pattern(4 << 20), test, never));
        if (round > 0) co_await clock.sleep(round * 100 * microsecond);
    }
    const bool passed = co_await pass_message(bench, 0, 1, pattern(77, 5));
    EXPECT_TRUE(passed);
}

TYPED_TEST_P(NetworkConformance, Messages) { this->run(network_messages<TypeParam>); }
TYPED_TEST_P(NetworkConformance, RefusesWhatCanNotBe) { this->run(network_refuses<TypeParam>); }
TYPED_TEST_P(NetworkConformance, APeerThatIsGone) { this->run(network_gone_peer<TypeParam>); }
TYPED_TEST_P(NetworkConformance, Payloads) { this->run(network_payloads<TypeParam>); }
TYPED_TEST_P(NetworkConformance, LargePayload) { this->run(network_large_payload<TypeParam>); }
TYPED_TEST_P(NetworkConformance, PayloadToItself) { this->run(network_payload_to_itself<TypeParam>); }
TYPED_TEST_P(NetworkConformance, UnpostedAndWithdrawn) { this->run(network_unposted_and_withdrawn<TypeParam>); }
TYPED_TEST_P(NetworkConformance, AbandonedOperations) { this->run(network_abandoned<TypeParam>); }
REGISTER_TYPED_TEST_SUITE_P(NetworkConformance, Messages, RefusesWhatCanNotBe, APeerThatIsGone, Payloads, LargePayload, PayloadToItself,
                            UnpostedAndWithdrawn, AbandonedOperations);

}  // namespace cairn::conformance
