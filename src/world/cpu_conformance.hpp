// What every Cpu must do (the contract of cpu.hpp). See conformance.hpp.
#pragma once

#include "base/checksum.hpp"
#include "world/conformance.hpp"

namespace cairn::conformance {

template <class Bench>
class CpuConformance : public ::testing::Test {
  protected:
    using Body = Task<void> (*)(Bench&);
    void run(Body body) { EXPECT_TRUE(bench_.run(body(bench_))) << "the test did not end within the bench's limit"; }
    Bench bench_;
};
TYPED_TEST_SUITE_P(CpuConformance);

template <class Bench>
Task<void> cpu_checksums(Bench& bench) {
    const Bytes bytes = pattern(1'000'000);
    for (std::uint64_t block : {4096ull, 100'000ull, 1ull << 20}) {
        Slice data = Slice::of(bytes).part(3, 999'997);
        const std::vector<std::uint64_t> sums = co_await bench.cpu().checksums(data, block);
        CO_ASSERT(sums.size() == div_up(data.length, block));
        for (std::size_t i = 0; i < sums.size(); ++i) {
            const std::uint64_t from = i * block, count = std::min<std::uint64_t>(block, data.length - from);
            EXPECT_EQ(sums[i], checksum(data.bytes().subspan(from, count)));
        }
    }
    Slice none = Slice::of(Bytes());
    const std::vector<std::uint64_t> nothing = co_await bench.cpu().checksums(none, 4096);
    EXPECT_TRUE(nothing.empty());
}

// What is encoded comes back, also from and into a part of a buffer; what does not fit is not begun; and what was changed makes nothing.
template <class Bench>
Task<void> cpu_codecs(Bench& bench) {
    const Nanos deadline = bench.clock().in(20 * second);
    for (const std::uint64_t bytes : {5'000ull, 1ull << 20}) {
        Slice raw = Slice::of(Bytes(bytes + 10)).part(7, bytes), room = Slice::of(Bytes(2 * bytes)).part(100, bytes + bytes / 4);
        const Result<Encoded> made = co_await bench.cpu().encode(Coding(Codec::zero_runs), raw, BaseBytes(), nothing_known, room, deadline);
        CO_ASSERT_OK(made.status());
        CO_ASSERT(made->bytes > 0 && made->bytes <= room.length);
        EXPECT_EQ(made->checksum, checksum(room.part(0, made->bytes).bytes()));
        Slice back = Slice::of(Bytes(bytes, std::byte(0xAA)));
        const Status decoded = co_await bench.cpu().decode(Codec::zero_runs, room.part(0, made->bytes), Slice(), back, deadline);
        CO_ASSERT_OK(decoded);
        EXPECT_TRUE(std::equal(back.bytes().begin(), back.bytes().end(), raw.bytes().begin()));
        room.data()[0] ^= std::byte(0x10);
        const Status damaged = co_await bench.cpu().decode(Codec::zero_runs, room.part(0, made->bytes), Slice(), back, deadline);
        EXPECT_EQ(damaged.code(), Code::corrupt);
        const Result<Encoded> copied = co_await bench.cpu().encode(Coding(Codec::none), raw, BaseBytes(), nothing_known, room, deadline);
        CO_ASSERT_OK(copied.status());
        EXPECT_EQ(copied->bytes, raw.length);
        EXPECT_TRUE(std::equal(raw.bytes().begin(), raw.bytes().end(), room.bytes().begin()));
        const Result<Encoded> no_room = co_await bench.cpu().encode(Coding(Codec::zero_runs), raw, BaseBytes(), nothing_known, room.part(0, 7), deadline);
        CO_ASSERT_OK(no_room.status());
        EXPECT_EQ(no_room->bytes, 0u);
    }
}

inline Task<void> one_checksum(Cpu& cpu, Bytes bytes, int& done) {
    const std::uint64_t expected = checksum(bytes);
    Slice data = Slice::of(std::move(bytes));
    const std::vector<std::uint64_t> sums = co_await cpu.checksums(data, 1 << 30);
    EXPECT_TRUE(sums.size() == 1 && sums[0] == expected);
    ++done;
}

template <class Bench>
Task<void> cpu_many_and_abandoned(Bench& bench) {
    int done = 0;
    {
        Gate gate(bench.clock());
        for (unsigned i = 0; i < 32; ++i) gate.spawn(one_checksum(bench.cpu(), pattern(50'000 + i, i), done));
        const bool closed = co_await gate.close(never);
        CO_ASSERT(closed);
        EXPECT_EQ(done, 32);
    }
    {
        Gate gate(bench.clock());
        for (unsigned i = 0; i < 32; ++i) gate.spawn(one_checksum(bench.cpu(), pattern(500'000 + i, i), done));
    }
    Gate gate(bench.clock());
    gate.spawn(one_checksum(bench.cpu(), pattern(10), done));
    const bool closed = co_await gate.close(never);
    EXPECT_TRUE(closed);
}

template <class Bench>
Task<void> cpu_equal(Bench& bench) {
    const Nanos deadline = bench.clock().in(20 * second);
    const Bytes bytes = pattern(1 << 20);
    Bytes changed = bytes;
    changed[777'777] ^= std::byte(1);
    Slice one = Slice::of(bytes), other = Slice::of(bytes), wrong = Slice::of(changed);
    const auto compare = [&](Cpu::Pairs pairs) { return bench.cpu().equal(std::move(pairs), deadline); };
    Cpu::Pairs same = {{one, other}, {one.part(5, 1000), wrong.part(5, 1000)}}, last = {{one, other}, {one.part(700'000, 100'000), wrong.part(700'000, 100'000)}}, moved = {{one.part(0, 4096), other.part(1, 4096)}}, none;
    const Result<bool> are_same = co_await compare(same);
    CO_ASSERT_OK(are_same.status());
    EXPECT_TRUE(*are_same);
    for (const Cpu::Pairs& pairs : {last, moved}) {
        const Result<bool> differ = co_await compare(pairs);
        CO_ASSERT_OK(differ.status());
        EXPECT_FALSE(*differ);
    }
    const Result<bool> nothing = co_await compare(none);
    CO_ASSERT_OK(nothing.status());
    EXPECT_TRUE(*nothing);
}

TYPED_TEST_P(CpuConformance, Checksums) { this->run(cpu_checksums<TypeParam>); }
TYPED_TEST_P(CpuConformance, ManyAndAbandoned) { this->run(cpu_many_and_abandoned<TypeParam>); }
TYPED_TEST_P(CpuConformance, Codecs) { this->run(cpu_codecs<TypeParam>); }
TYPED_TEST_P(CpuConformance, Equal) { this->run(cpu_equal<TypeParam>); }
REGISTER_TYPED_TEST_SUITE_P(CpuConformance, Checksums, ManyAndAbandoned, Codecs, Equal);

}  // namespace cairn::conformance
