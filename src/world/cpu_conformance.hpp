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

TYPED_TEST_P(CpuConformance, Checksums) { this->run(cpu_checksums<TypeParam>); }
TYPED_TEST_P(CpuConformance, ManyAndAbandoned) { this->run(cpu_many_and_abandoned<TypeParam>); }
REGISTER_TYPED_TEST_SUITE_P(CpuConformance, Checksums, ManyAndAbandoned);

}  // namespace cairn::conformance
