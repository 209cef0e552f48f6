// What ranks of a node do with runs that they share, step by step: who claims, who takes, when a shelf is free again, and what becomes of claims whose owner failed or is dead.
#include "copies/shared_runs.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "world/sim/simulation.hpp"

namespace cairn {
namespace {

using Turn = SharedRuns::Turn;

constexpr Nanos patience = 4 * second;
constexpr std::uint64_t run_bytes = 100'000;

class Sharing : public ::testing::Test {
  protected:
    struct One {
        sim::Process* process = nullptr;
        std::unique_ptr<World> world;
        std::unique_ptr<SharedRuns> runs;
    };
    // In a process of its own.
    Result<std::unique_ptr<SharedRuns>> try_open(One& one, Rank self, std::vector<Rank> ranks, const std::string& name, std::size_t shelves) {
        one.process = &node_.start_process("rank");
        one.world = std::make_unique<World>(one.process->world());
        Result<std::unique_ptr<SharedRuns>> opened(Status(Code::deadline, ""));
        const auto task = [](World& world, SharedPlace place, Result<std::unique_ptr<SharedRuns>>* out) -> Task<void> {
            Result<std::unique_ptr<SharedRuns>> got = co_await SharedRuns::open(world, std::move(place), patience, world.clock.in(60 * second));
            *out = std::move(got);
        };
        EXPECT_TRUE(sim_.run(task(*one.world, {"/scratch/shared", series_, name, std::move(ranks), self, shelves}, &opened), sim_.now() + 60 * second));
        return opened;
    }
    One open(Rank self, std::vector<Rank> ranks, const std::string& name = "now", std::size_t shelves = 2) {
        One one;
        Result<std::unique_ptr<SharedRuns>> opened = try_open(one, self, std::move(ranks), name, shelves);
        EXPECT_TRUE(opened.ok()) << opened.status().to_string();
        if (opened.ok()) one.runs = std::move(opened).value();
        return one;
    }
    std::vector<One> open_all(std::uint32_t count, std::size_t shelves = 2) {
        std::vector<Rank> ranks(count);
        std::iota(ranks.begin(), ranks.end(), 0);
        std::vector<One> all;
        for (const Rank rank : ranks) all.push_back(open(rank, ranks, "now", shelves));
        return all;
    }
    void give(One& one, const SharedRuns::Shared& run, std::uint64_t seed) {
        EXPECT_TRUE(sim_.run(one.runs->give(run, sim::describe(seed, run_bytes)), sim_.now() + 60 * second));
    }
    Status take(One& one, const SharedRuns::Shared& run, std::uint64_t offset, Slice into) {
        Status status(Code::deadline, "");
        const auto task = [](SharedRuns& runs, SharedRuns::Shared of, std::uint64_t from, Slice to, Status* out) -> Task<void> {
            Status got = co_await runs.take(of, from, std::move(to));
            *out = std::move(got);
        };
        EXPECT_TRUE(sim_.run(task(*one.runs, run, offset, std::move(into), &status), sim_.now() + 60 * second));
        return status;
    }
    // Whether these bytes of the run are there.
    bool has(One& one, const SharedRuns::Shared& run, std::uint64_t seed, std::uint64_t offset, std::uint64_t length) {
        const Result<BufferPtr> buffer = one.world->storage.allocate(length);
        const Slice into = Slice::whole(*buffer);
        return take(one, run, offset, into).ok() && sim::content_equal(into, sim::describe(seed, length, offset));
    }
    std::vector<std::string> names() {
        const auto entries = node_.scratch().list("/scratch/shared");
        std::vector<std::string> names;
        for (const DirectoryEntry& entry : entries.ok() ? *entries : std::vector<DirectoryEntry>()) names.push_back(entry.name);
        return names;
    }
    void pass_time(Nanos span) { sim_.run_until(sim_.now() + span); }

    std::string series_ = "series";
    sim::Simulation sim_{1};
    sim::SimNode& node_ = sim_.add_node();
};

SharedRuns::Shared run_of(std::uint32_t run, std::size_t shelf, std::vector<Rank> ranks) { return {{3, run}, shelf, std::move(ranks)}; }

TEST_F(Sharing, OneClaimsAndTheOthersTake) {
    std::vector<One> all = open_all(3);
    const auto run = run_of(7, 1, {0, 1, 2});
    EXPECT_EQ(all[1].runs->turn(run), Turn::mine);
    EXPECT_EQ(all[0].runs->turn(run), Turn::claimed);
    EXPECT_EQ(all[0].runs->waiting(1), std::nullopt);
    EXPECT_EQ(all[0].runs->turn(run_of(8, 1, {0, 1})), Turn::occupied);
    give(all[1], run, 5);
    EXPECT_EQ(all[0].runs->turn(run), Turn::ready);
    EXPECT_EQ(all[0].runs->waiting(1), (SharedRuns::Which{3, 7}));
    EXPECT_EQ(all[0].runs->waiting(0), std::nullopt);
    EXPECT_EQ(all[1].runs->waiting(1), std::nullopt) << "who made it does not wait for it";
    EXPECT_TRUE(has(all[0], run, 5, 40'000, 10'000));
    EXPECT_TRUE(has(all[2], run, 5, 0, run_bytes));
    EXPECT_EQ(all[1].runs->counts.made, 1u);
}

TEST_F(Sharing, AShelfIsFreeWhenAllHaveLeftIt) {
    std::vector<One> all = open_all(4);
    const auto first = run_of(0, 0, {0, 1, 2}), second_run = run_of(2, 0, {1, 3});
    EXPECT_EQ(all[0].runs->turn(first), Turn::mine);
    give(all[0], first, 5);
    all[1].runs->pass(first.which, 0);
    all[2].runs->pass({3, 1}, 0);  // another run: nothing
    EXPECT_EQ(all[3].runs->turn(second_run), Turn::occupied);
    all[2].runs->pass(first.which, 0);
    EXPECT_EQ(all[3].runs->turn(second_run), Turn::mine);
    give(all[3], second_run, 6);
    EXPECT_FALSE(has(all[2], first, 5, 0, 100)) << "it is another run's by now";
    EXPECT_TRUE(has(all[1], second_run, 6, 0, 100));
}

TEST_F(Sharing, WhoIsDoneIsNotWaitedFor) {
    std::vector<One> all = open_all(3);
    const auto first = run_of(0, 0, {0, 1, 2}), next = run_of(2, 0, {0, 1});
    EXPECT_EQ(all[0].runs->turn(first), Turn::mine);
    give(all[0], first, 5);
    all[1].runs->pass(first.which, 0);
    EXPECT_EQ(all[1].runs->turn(next), Turn::occupied);
    all[2].runs->leave();
    EXPECT_EQ(all[1].runs->turn(next), Turn::mine);
}

TEST_F(Sharing, WhatOneCouldNotHaveEveryoneTriesAlone) {
    std::vector<One> all = open_all(3);
    const auto run = run_of(0, 0, {0, 1, 2});
    EXPECT_EQ(all[0].runs->turn(run), Turn::mine);
    all[0].runs->fail(run);
    EXPECT_EQ(all[1].runs->turn(run), Turn::failed);
    EXPECT_EQ(all[1].runs->waiting(0), run.which);
    all[1].runs->pass(run.which, 0);
    all[2].runs->pass(run.which, 0);
    EXPECT_EQ(all[1].runs->turn(run_of(2, 0, {0, 1})), Turn::mine);
}

TEST_F(Sharing, WhatIsGivenIsNotFailedAfterwards) {
    std::vector<One> all = open_all(2);
    const auto run = run_of(0, 0, {0, 1});
    EXPECT_EQ(all[0].runs->turn(run), Turn::mine);
    give(all[0], run, 5);
    all[0].runs->fail(run);
    all[0].runs->leave();
    EXPECT_EQ(all[1].runs->turn(run), Turn::ready);
}

TEST_F(Sharing, WhoLeavesGivesUpWhatItHasClaimed) {
    std::vector<One> all = open_all(2);
    const auto run = run_of(0, 0, {0, 1});
    EXPECT_EQ(all[0].runs->turn(run), Turn::mine);
    all[0].runs->leave();
    EXPECT_EQ(all[1].runs->turn(run), Turn::failed);
}

// A dead process says nothing. Whoever has waited long enough reads alone, and does not wait for that claim again.
TEST_F(Sharing, AClaimWhoseOwnerIsDeadIsWaitedForWithABound) {
    std::vector<One> all = open_all(3);
    const auto run = run_of(0, 0, {0, 1, 2}), behind = run_of(2, 0, {1, 2}), beside = run_of(1, 1, {1, 2});
    EXPECT_EQ(all[0].runs->turn(run), Turn::mine);
    all[0].process->kill();
    EXPECT_EQ(all[1].runs->turn(run), Turn::claimed);
    pass_time(patience - millisecond);
    EXPECT_EQ(all[1].runs->turn(run), Turn::claimed);
    EXPECT_EQ(all[2].runs->turn(run), Turn::claimed) << "it has not waited yet";
    pass_time(2 * millisecond);
    EXPECT_EQ(all[1].runs->turn(run), Turn::alone);
    EXPECT_EQ(all[1].runs->turn(behind), Turn::alone) << "that shelf is lost";
    EXPECT_EQ(all[1].runs->turn(beside), Turn::mine);
}

// All of its claims are waited for at the same time.
TEST_F(Sharing, WhoWaitsForOneClaimOfTheDeadHasWaitedForTheOthers) {
    std::vector<One> all = open_all(3);
    const auto run = run_of(0, 0, {0, 1, 2}), other = run_of(1, 1, {0, 1, 2});
    EXPECT_EQ(all[0].runs->turn(run), Turn::mine);
    EXPECT_EQ(all[0].runs->turn(other), Turn::mine);
    all[0].process->kill();
    EXPECT_EQ(all[1].runs->turn(run), Turn::claimed);
    all[1].runs->watch();
    pass_time(patience + millisecond);
    EXPECT_EQ(all[1].runs->turn(run), Turn::alone);
    EXPECT_EQ(all[1].runs->turn(other), Turn::alone);
}

TEST_F(Sharing, ARunOfABaseIsNotThatOfTheVersion) {
    std::vector<One> all = open_all(2);
    auto run = run_of(7, 1, {0, 1}), of_base = run;
    of_base.which.base = 2;
    EXPECT_EQ(all[0].runs->turn(of_base), Turn::mine);
    EXPECT_EQ(all[1].runs->turn(of_base), Turn::claimed);
    EXPECT_EQ(all[1].runs->turn(run), Turn::occupied);
    give(all[0], of_base, 5);
    EXPECT_EQ(all[1].runs->turn(run), Turn::occupied);
    EXPECT_EQ(all[1].runs->waiting(1), of_base.which);
    all[1].runs->pass(run.which, 1);
    EXPECT_EQ(all[1].runs->waiting(1), of_base.which) << "that was another";
}

TEST_F(Sharing, WhoIsDeadKeepsNoShelfForEver) {
    std::vector<One> all = open_all(3);
    const auto first = run_of(0, 0, {0, 1, 2}), next = run_of(2, 0, {0, 1}), last = run_of(3, 1, {0, 1, 2});
    EXPECT_EQ(all[0].runs->turn(first), Turn::mine);
    give(all[0], first, 5);
    all[1].runs->pass(first.which, 0);
    all[2].process->kill();
    EXPECT_EQ(all[1].runs->turn(next), Turn::occupied);
    pass_time(patience / 2);
    EXPECT_EQ(all[1].runs->turn(next), Turn::occupied);
    pass_time(patience);
    EXPECT_EQ(all[1].runs->turn(next), Turn::mine);
    give(all[1], next, 6);
    // From now on nobody waits for it.
    EXPECT_EQ(all[1].runs->turn(last), Turn::mine);
    give(all[1], last, 7);
    all[0].runs->pass(last.which, 1);
    EXPECT_EQ(all[0].runs->turn(run_of(4, 1, {0, 1})), Turn::mine);
}

// The time begins anew whenever anybody has left the shelf.
TEST_F(Sharing, WhoIsSlowIsNotTakenForDead) {
    std::vector<One> all = open_all(4);
    const auto first = run_of(0, 0, {0, 1, 2, 3}), next = run_of(2, 0, {0, 1});
    EXPECT_EQ(all[0].runs->turn(first), Turn::mine);
    give(all[0], first, 5);
    for (Rank rank = 1; rank < 4; ++rank) {
        EXPECT_EQ(all[0].runs->turn(next), Turn::occupied);
        pass_time(patience - second);
        all[rank].runs->pass(first.which, 0);
    }
    EXPECT_EQ(all[0].runs->turn(next), Turn::mine);
}

TEST_F(Sharing, MoreRanksThanAWordHasBits) {
    std::vector<One> all = open_all(130);
    const auto run = run_of(0, 0, {0, 63, 64, 127, 128, 129}), next = run_of(2, 0, {1, 2});
    EXPECT_EQ(all[64].runs->turn(run), Turn::mine);
    give(all[64], run, 5);
    EXPECT_EQ(all[1].runs->turn(next), Turn::occupied);
    for (const Rank rank : {0, 63, 127, 128}) {
        EXPECT_EQ(all[rank].runs->waiting(0), run.which);
        all[rank].runs->pass(run.which, 0);
        EXPECT_EQ(all[1].runs->turn(next), Turn::occupied);
    }
    EXPECT_EQ(all[126].runs->waiting(0), std::nullopt);
    all[129].runs->leave();
    EXPECT_EQ(all[1].runs->turn(next), Turn::mine);
}

TEST_F(Sharing, WithoutRoomEveryoneReadsAlone) {
    One all[] = {open(0, {0, 1, 2}), open(1, {0, 1, 2})};  // while one has not come the files have names, and take room in this world
    const auto run = run_of(0, 0, {0, 1});
    EXPECT_EQ(all[0].runs->turn(run), Turn::mine);
    node_.scratch().set_bytes_max(20'000);
    sim_.model().scratch_bytes_max = 20'000;
    give(all[0], run, 5);
    EXPECT_EQ(all[0].runs->counts.made, 0u);
    EXPECT_EQ(all[1].runs->turn(run), Turn::failed);
    EXPECT_EQ(all[0].runs->turn(run_of(1, 1, {0, 1})), Turn::alone);
}

// The last one takes the names away: nothing stays, whoever is killed from then on.
TEST_F(Sharing, NamesAreGoneWhenAllHaveCome) {
    One first = open(4, {4, 9});
    EXPECT_EQ(names().size(), 2u);
    One other = open(9, {4, 9});
    EXPECT_TRUE(names().empty());
    const auto run = run_of(0, 0, {4, 9});
    EXPECT_EQ(first.runs->turn(run), Turn::mine);
    give(first, run, 5);
    EXPECT_TRUE(has(other, run, 5, 0, run_bytes));
}

TEST_F(Sharing, WhatAnEarlierRestartLeftIsRemoved) {
    One killed = open(0, {0, 1}, "before");
    killed.process->kill();
    EXPECT_EQ(names().size(), 2u);
    One first = open(0, {0, 1});
    EXPECT_EQ(names(), (std::vector<std::string>{"series-now.runs", "series-now.table"}));
}

// Another job on this node may be restoring just now.
TEST_F(Sharing, WhatIsOfAnotherSeriesStays) {
    series_ = "another";
    One other = open(0, {0, 1});
    series_ = "series";
    One first = open(0, {0, 1});
    EXPECT_EQ(names(), (std::vector<std::string>{"another-now.runs", "another-now.table", "series-now.runs", "series-now.table"}));
}

TEST_F(Sharing, ATableOfFewerRanksIsNone) {
    One few = open(0, {0, 1});
    One one;
    EXPECT_EQ(try_open(one, 0, {0, 1, 2, 3, 4}, "now", 64).code(), Code::corrupt);
}

// Its space is there before it is mapped, or there is none.
TEST_F(Sharing, WithoutRoomForTheTableNothingIsShared) {
    node_.scratch().set_bytes_max(10);
    sim_.model().scratch_bytes_max = 10;
    One one;
    EXPECT_EQ(try_open(one, 0, {0, 1}, "now", 4).code(), Code::out_of_space);
    EXPECT_TRUE(names().empty());
}

}  // namespace
}  // namespace cairn
