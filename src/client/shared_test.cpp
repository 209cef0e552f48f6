// Ranks of a node in processes of their own, which share runs through files in a directory: each run is made by one of them, and all have its bytes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "client/testing.hpp"
#include "copies/shared_runs.hpp"
#include "world/real/world.hpp"

namespace cairn {
namespace {

using Turn = SharedRuns::Turn;

constexpr std::uint32_t ranks = 6, runs = 300;
constexpr std::uint64_t run_bytes = 40'000;

Bytes bytes_of(std::uint32_t run) {
    Bytes bytes(run_bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(run * 7 + i / 3);
    return bytes;
}

struct Had {
    std::uint32_t made = 0, taken = 0, wrong = 0;
};

Task<void> take_all(World& world, SharedRuns& node, Had& had) {
    std::set<std::uint32_t> open;
    for (std::uint32_t run = 0; run < runs; ++run) open.insert(run);
    std::vector<Rank> all(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) all[rank] = rank;
    const Nanos until = world.clock.in(60 * second);
    while (!open.empty() && world.clock.now() < until) {
        bool has_done = false;
        for (const std::uint32_t run : std::set<std::uint32_t>(open)) {
            const SharedRuns::Shared shared{{0, run}, run % node.shelves(), all};
            const Turn turn = node.turn(shared);
            if (turn != Turn::mine && turn != Turn::ready) continue;
            has_done = true;
            open.erase(run);
            if (turn == Turn::mine) {
                co_await node.give(shared, Slice::of(bytes_of(run)));
                ++had.made;
                continue;
            }
            Slice into = Slice::of(Bytes(1000));
            const Status taken = co_await node.take(shared, 20'000, into);
            const Bytes expected = bytes_of(run);
            had.wrong += !taken.ok() || std::memcmp(into.data(), expected.data() + 20'000, 1000) != 0;
            ++had.taken;
            node.pass(shared.which, shared.shelf);
        }
        if (!has_done) co_await world.clock.sleep(millisecond / 10);
    }
}

Task<Had> be_rank(World& world, SharedPlace place, bool takes = true) {
    Had had;
    const Nanos deadline = world.clock.in(60 * second);
    Result<std::unique_ptr<SharedRuns>> node = co_await SharedRuns::open(world, std::move(place), 60 * second, deadline);
    if (!node.ok()) co_return had;
    if (takes) co_await take_all(world, **node, had);
    (*node)->leave();
    co_return had;
}

Had rank_in_child(const SharedPlace& place) {
    const Result<std::unique_ptr<RealWorld>> real = RealWorld::create({});
    if (!real.ok()) return {};
    World world = (*real)->world();
    return (*real)->loop().run(be_rank(world, place));
}

TEST(SharedRuns, NobodyElseCanOpenThem) {
    const TemporaryPlace scratch;
    const Result<std::unique_ptr<RealWorld>> real = RealWorld::create({});
    ASSERT_TRUE(real.ok());
    World world = (*real)->world();
    (void)(*real)->loop().run(be_rank(world, {scratch.file("shared"), "series", "now", {0, 1}, 0}, false));
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch.file("shared"))) {
        EXPECT_EQ(entry.status().permissions(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write) << entry.path();
        ++files;
    }
    EXPECT_EQ(files, 2u);
    EXPECT_EQ(std::filesystem::status(scratch.file("shared")).permissions(), std::filesystem::perms::owner_all);
}

TEST(SharedRuns, EachIsMadeByOneOfSeveralProcesses) {
    const TemporaryPlace scratch;
    std::vector<Rank> all(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) all[rank] = rank;
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    std::vector<std::unique_ptr<Child>> children;
    for (const Rank rank : all)
        children.push_back(std::make_unique<Child>([&] {
            const Had had = rank_in_child({scratch.file("shared"), "series", "now", all, rank});
            return ::write(told[1], &had, sizeof had) == sizeof had ? 0 : 1;
        }));
    std::uint32_t made = 0;
    for (const auto& child : children) {
        ASSERT_EQ(child->wait(), 0);
        Had had;
        ASSERT_EQ(::read(told[0], &had, sizeof had), static_cast<ssize_t>(sizeof had));
        EXPECT_EQ(had.made + had.taken, runs);
        EXPECT_EQ(had.wrong, 0u);
        made += had.made;
    }
    EXPECT_EQ(made, runs);
    ::close(told[0]);
    ::close(told[1]);
    EXPECT_TRUE(std::filesystem::is_empty(scratch.file("shared")));
}

}  // namespace
}  // namespace cairn
