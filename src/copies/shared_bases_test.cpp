// What a rank of a node does with runs of a base that others read, step by step: whose they are, on which shelves, and which it takes.
#include "copies/shared_bases.hpp"

#include <gtest/gtest.h>

#include "world/sim/simulation.hpp"

namespace cairn {
namespace {

using Turn = SharedRuns::Turn;

constexpr std::uint64_t piece_bytes = 4096;

// Ranks 0 and 1, of a node with a shelf for the version and one for its bases. The first two runs of the base are of both of them, the third of rank 0 alone.
class SharingBases : public ::testing::Test {
  protected:
    struct One {
        One(SharingBases& of, Rank rank) : world(of.node_.start_process("rank").world()), encoded(world, 1 << 20), base{world, Layout{"/persistent"}, RestoreSettings(), of.version_, encoded, 1} {
            const auto open = [](World& in, SharedPlace place, std::unique_ptr<SharedRuns>* out) -> Task<void> {
                const Nanos deadline = in.clock.in(60 * second);
                Result<std::unique_ptr<SharedRuns>> got = co_await SharedRuns::open(in, std::move(place), 4 * second, deadline);
                if (got.ok()) *out = std::move(got).value();
            };
            EXPECT_TRUE(of.sim_.run(open(world, {"/scratch/shared", "series", "now", {0, 1}, rank, 2}, &node), of.sim_.now() + 60 * second));
            bases = std::make_unique<SharedBases>(world, *node, encoded, 4 * second);
        }
        World world;
        EncodedRuns encoded;
        ReadSource base;
        std::unique_ptr<SharedRuns> node;
        std::unique_ptr<SharedBases> bases;
    };
    SharingBases() {
        Footer& footer = version_.footers.emplace_back();
        for (const std::vector<Rank>& ranks : {std::vector<Rank>{0, 1}, {0, 1}, {0, 0}}) {
            StoredRun& run = footer.runs.emplace_back();
            run.codec = 1;
            for (const Rank rank : ranks) run.pieces.push_back({rank, 0, piece_bytes, run.pieces.size() * piece_bytes, {}});
        }
        version_.manifest.parts.emplace_back();
        version_.parts = {0};
    }
    static PartRead read(std::size_t run, std::vector<std::uint32_t> pieces) { return {0, run, std::move(pieces), 0, piece_bytes}; }
    std::optional<SharedBases::Next> next(One& one, const std::vector<PartRead>& reads) {
        std::optional<SharedBases::Next> found;
        const auto task = [](One& of, const std::vector<PartRead>& all, std::optional<SharedBases::Next>* out) -> Task<void> {
            const Status fine;
            std::optional<SharedBases::Next> got = co_await of.bases->next(of.base, all, fine);
            *out = got;
        };
        EXPECT_TRUE(sim_.run(task(one, reads, &found), sim_.now() + 60 * second));
        return found;
    }
    void give(One& one, const SharedBases::Next& next) {
        EXPECT_TRUE(sim_.run(one.node->give(next.run->shared, sim::describe(1, 2 * piece_bytes)), sim_.now() + 60 * second));
        one.bases->ended(next);
    }
    void take_ready(One& one) {
        const auto task = [](SharedBases& bases) -> Task<void> {
            const bool has_room = co_await bases.take_ready();
            EXPECT_TRUE(has_room);
        };
        EXPECT_TRUE(sim_.run(task(*one.bases), sim_.now() + 60 * second));
    }

    sim::Simulation sim_{1};
    sim::SimNode& node_ = sim_.add_node();
    OpenVersion version_;
};

TEST_F(SharingBases, TheyAreNotOnShelvesOfTheVersion) {
    One first(*this, 0), second(*this, 1);
    const std::vector<PartRead> reads = {read(0, {0})};
    first.bases->need({0, 0}, first.base, reads);
    const std::optional<SharedBases::Next> mine = next(first, reads);
    ASSERT_TRUE(mine.has_value() && mine->run);
    EXPECT_EQ(mine->turn, Turn::mine);
    EXPECT_EQ(mine->run->shared.shelf, 1u);
}

TEST_F(SharingBases, WhatOneRankNeedsIsOnNone) {
    One first(*this, 0), second(*this, 1);
    const std::vector<PartRead> reads = {read(2, {0, 1})};
    first.bases->need({0, 0}, first.base, reads);
    const std::optional<SharedBases::Next> own = next(first, reads);
    ASSERT_TRUE(own.has_value());
    EXPECT_EQ(own->turn, Turn::alone);
    EXPECT_EQ(own->run, nullptr);
    EXPECT_EQ(second.node->turn({{0, 7}, 0, {0, 1}}), Turn::mine) << "the shelf is free";
}

TEST_F(SharingBases, WhatIsReadyIsTakenOnceAndWhatIsNotNeededIsLeft) {
    for (const bool is_needed : {true, false}) {
        One first(*this, 0), second(*this, 1);
        const std::vector<PartRead> of_first = {read(0, {0})}, of_second = {read(0, {1})};
        first.bases->need({0, 0}, first.base, of_first);
        second.bases->need({0, 1}, second.base, of_second);
        if (!is_needed) second.bases->has_been_read({0, 1});
        const std::optional<SharedBases::Next> mine = next(first, of_first);
        ASSERT_TRUE(mine.has_value() && mine->run);
        give(first, *mine);
        take_ready(second);
        EXPECT_EQ(second.encoded.keeps(mine->run->which), is_needed);
        EXPECT_EQ(second.node->counts.taken_of_bases, is_needed ? 1u : 0u);
        EXPECT_EQ(second.node->waiting(1), std::nullopt) << "the shelf is free";
        second.bases->has_been_read({0, 1});
        EXPECT_FALSE(second.encoded.keeps(mine->run->which));
    }
}

}  // namespace
}  // namespace cairn
