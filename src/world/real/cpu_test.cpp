// RealCpu and SystemRandom.
#include "world/real/cpu.hpp"

#include <mutex>
#include <set>

#include "base/checksum.hpp"
#include "base/no_memory_testing.hpp"
#include "world/gate.hpp"
#include "world/real/random.hpp"
#include "world/real/test_world.hpp"

namespace cairn {
namespace {

Bytes pattern(std::size_t bytes) {
    Bytes data(bytes);
    std::uint64_t state = bytes + 1;
    for (std::byte& byte : data) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        byte = static_cast<std::byte>(state >> 56);
    }
    return data;
}

std::vector<std::uint64_t> expected(ByteView data, std::size_t block) {
    std::vector<std::uint64_t> sums;
    for (std::size_t at = 0; at < data.size(); at += block)
        sums.push_back(checksum(data.subspan(at, std::min(block, data.size() - at))));
    return sums;
}

TEST(RealCpu, EverySizeAndBlock) {
    const auto loop = test::make_loop();
    RealCpu cpu(*loop, 3);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{65535},
                                    std::size_t{65536}, std::size_t{1048577}, std::size_t{9999999}}) {
        const Bytes data = pattern(bytes);
        for (const std::size_t block :
             {std::size_t{1000}, std::size_t{4096}, std::size_t{1} << 20, std::size_t{1} << 26}) {
            const Slice slice = Slice::of(data);
            EXPECT_EQ(loop->run(cpu.checksums(slice, block)), expected(data, block))
                << bytes << " bytes in blocks of " << block;
        }
    }
}

TEST(RealCpu, PartOfABuffer) {
    const auto loop = test::make_loop();
    RealCpu cpu(*loop);
    EXPECT_GE(cpu.encoders(), 1u);
    const Bytes data = pattern(1 << 20);
    const Slice part = Slice::of(data).part(4096, 700000);
    EXPECT_EQ(loop->run(cpu.checksums(part, 65536)), expected(ByteView(data).subspan(4096, 700000), 65536));
}

Task<void> sum_into(Cpu& cpu, Slice slice, std::vector<std::uint64_t>& out) {
    std::vector<std::uint64_t> sums = co_await cpu.checksums(slice, 65536);
    out = std::move(sums);
}

Task<void> sum_all(Clock& clock, Cpu& cpu, const std::vector<Bytes>& data,
                   std::vector<std::vector<std::uint64_t>>& out) {
    Gate gate(clock);
    for (std::size_t i = 0; i < data.size(); ++i) gate.spawn(sum_into(cpu, Slice::of(data[i]), out[i]));
    co_await gate.close();
}

TEST(RealCpu, ManyAtOnce) {
    const auto loop = test::make_loop();
    RealCpu cpu(*loop, 2);
    std::vector<Bytes> data;
    for (std::size_t i = 0; i < 20; ++i) data.push_back(pattern(i * 300000));
    std::vector<std::vector<std::uint64_t>> out(data.size());
    EXPECT_TRUE(loop->run_until_done(sum_all(*loop, cpu, data, out), loop->in(test::patience)));
    for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(out[i], expected(data[i], 65536)) << i;
}

TEST(RealCpu, WaiterMayBeDestroyedMeanwhile) {
    const auto loop = test::make_loop();
    RealCpu cpu(*loop, 2);
    for (int i = 0; i < 20; ++i) {
        Task<std::vector<std::uint64_t>> task = cpu.checksums(Slice::of(pattern(4 << 20)), 65536);
        task.start();
    }
    const Bytes data = pattern(1 << 20);
    EXPECT_EQ(loop->run(cpu.checksums(Slice::of(data), 65536)), expected(data, 65536));
}

// Memory that does not come back for as long as `gone` is locked.
class GoneBuffer final : public Buffer {
  public:
    GoneBuffer(Bytes bytes, std::mutex& gone) : bytes_(std::move(bytes)), gone_(gone) {}
    std::byte* data() noexcept override {
        const std::lock_guard lock(gone_);
        return bytes_.data();
    }
    std::uint64_t size() const noexcept override { return bytes_.size(); }
    bool is_mapped() const noexcept override { return true; }

  private:
    Bytes bytes_;
    std::mutex& gone_;
};

TEST(RealCpu, MemoryThatDoesNotComeBackKeepsNoThreadFromOthers) {
    std::mutex gone;
    const auto loop = test::make_loop();
    RealCpu cpu(*loop, 2, {}, 50 * millisecond);
    const Bytes data = pattern(8 << 20);
    std::vector<std::vector<std::uint64_t>> stuck(3);
    Gate gate(*loop);
    std::unique_lock lock(gone);
    for (auto& out : stuck) gate.spawn(sum_into(cpu, Slice::whole(std::make_shared<GoneBuffer>(data, gone)), out));
    EXPECT_EQ(loop->run(cpu.checksums(Slice::of(data), 65536)), expected(data, 65536));
    for (const auto& out : stuck) EXPECT_TRUE(out.empty());
    lock.unlock();
    EXPECT_TRUE(loop->run(gate.close(loop->in(test::patience))));
    for (const auto& out : stuck) EXPECT_EQ(out, expected(data, 65536));
}

// However little it is: it is not the loop that waits for it.
TEST(RealCpu, NoMappedMemoryIsTouchedOnTheLoop) {
    std::mutex gone;
    const auto loop = test::make_loop();
    RealCpu cpu(*loop, 1, {}, 50 * millisecond);
    const Bytes data = pattern(4096);
    std::vector<std::uint64_t> stuck;
    Gate gate(*loop);
    std::unique_lock lock(gone);
    gate.spawn(sum_into(cpu, Slice::whole(std::make_shared<GoneBuffer>(data, gone)), stuck));
    EXPECT_FALSE(loop->run(gate.close(loop->in(200 * millisecond))));
    lock.unlock();
    EXPECT_TRUE(loop->run(gate.close(loop->in(test::patience))));
    EXPECT_EQ(stuck, expected(data, 65536));
}

// What is known of the bytes is asked for by the codec that uses it, away from the loop; where there is no memory to know it, they are stored as they are.
TEST(RealCpu, WhatIsKnownIsAskedForWhereItIsEncoded) {
    const auto loop = test::make_loop();
    RealCpu cpu(*loop, 1);
    const Slice raw = Slice::of(Bytes(100'000, std::byte{7}));
    const Slice into = Slice::of(Bytes(100'000));
    std::thread::id asked;
    const FindArrays find = [&asked] {
        asked = std::this_thread::get_id();
        return std::vector<NumberArray>{{0, 100'000, 8, true, false, 0, 0}};
    };
    const Result<Encoded> other = loop->run(cpu.encode(Coding(Codec::zero_runs), raw, BaseBytes(), find, into, loop->in(test::patience)));
    EXPECT_TRUE(other.ok());
    EXPECT_EQ(asked, std::thread::id());
    const Result<Encoded> made = loop->run(cpu.encode(Coding(Codec::planes), raw, BaseBytes(), find, into, loop->in(test::patience)));
    ASSERT_TRUE(made.ok());
    EXPECT_NE(made->bytes, 0u);
    EXPECT_NE(asked, std::thread::id());
    EXPECT_NE(asked, std::this_thread::get_id());
    std::chrono::steady_clock::time_point found;
    const FindArrays slow = [&find, &found] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        auto known = find();
        found = std::chrono::steady_clock::now();
        return known;
    };
    const Result<Encoded> after = loop->run(cpu.encode(Coding(Codec::planes), raw, BaseBytes(), slow, into, loop->in(test::patience)));
    const bool is_without_finding = after.ok() && std::chrono::nanoseconds(after->took) <= std::chrono::steady_clock::now() - found;
    EXPECT_TRUE(is_without_finding) << "what is found out once an image says nothing of the codec";
    const FindArrays without_memory = []() -> std::vector<NumberArray> { throw std::bad_alloc(); };
    const Result<Encoded> none = loop->run(cpu.encode(Coding(Codec::planes), raw, BaseBytes(), without_memory, into, loop->in(test::patience)));
    ASSERT_TRUE(none.ok()) << none.status().to_string();
    EXPECT_EQ(none->bytes, 0u);
}

// A run that says to have 4096 pieces has them reserved: some 96 KiB.
TEST(RealCpu, MemoryThatRunsOutInADecoderIsAStatus) {
    const auto loop = test::make_loop();
    RealCpu cpu(*loop, 1);
    Bytes stored(20'000);
    stored[0] = std::byte{0x80};
    stored[1] = std::byte{0x20};
    const Slice run = Slice::of(stored), into = Slice::of(Bytes(1 << 20));
    const auto decoded = [&] { return loop->run(cpu.decode(Codec::planes, run, Slice(), into, loop->in(test::patience))); };
    EXPECT_EQ(decoded().code(), Code::corrupt) << "and from now on the thread has what it keeps";
    {
        const testing::NoMemory from(90'000, 100'000);
        EXPECT_EQ(decoded().code(), Code::out_of_space);
    }
    EXPECT_EQ(decoded().code(), Code::corrupt);
}

TEST(SystemRandom, DoesNotRepeat) {
    SystemRandom random;
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) seen.insert(random.next());
    EXPECT_EQ(seen.size(), 1000u);
    EXPECT_TRUE(random.id());
}

}  // namespace
}  // namespace cairn
