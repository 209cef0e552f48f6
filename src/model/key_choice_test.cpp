#include "model/key_choice.hpp"

#include <gtest/gtest.h>

#include <random>

#include "model/keys_seen.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t mb = 1'000'000;

// So many MB of a key, of which each effort leaves a share, at so many MB a second of a thread.
struct Kind {
    std::uint32_t key;
    double raw_mb, fast_stored, fast_mb_per_s, small_stored = 0, small_mb_per_s = 0;
};
KeyEncoded row(const Kind& kind, Effort effort) {
    const double stored = effort == Effort::none ? 1 : effort == Effort::fast ? kind.fast_stored : kind.small_stored;
    const double took_s = effort == Effort::none ? 0 : kind.raw_mb / (effort == Effort::fast ? kind.fast_mb_per_s : kind.small_mb_per_s);
    return {kind.key, effort, static_cast<std::uint64_t>(kind.raw_mb * mb), static_cast<std::uint64_t>(kind.raw_mb * mb * stored), static_cast<std::uint64_t>(took_s * 1e9)};
}
KeyChoice seen(const std::vector<Kind>& kinds) {
    KeyChoice choice;
    std::vector<KeyEncoded> rows;
    for (const Kind& kind : kinds) {
        rows.push_back(row(kind, Effort::fast));
        if (kind.small_mb_per_s > 0) rows.push_back(row(kind, Effort::small));
    }
    choice.record(rows, Effort::fast);
    return choice;
}
Effort effort(const KeyEfforts& efforts, std::uint32_t key) { return effort_of(efforts, key, Effort::fast); }

const std::vector<Kind> two_kinds = {{1, 100, 0.25, 2000}, {2, 100, 0.9, 250}};

TEST(KeyChoice, NothingIsPromisedOfWhatWasNeverSeen) {
    EXPECT_FALSE(KeyChoice().made(Effort::fast, {}));
    EXPECT_TRUE(KeyChoice().best(Effort::fast, {1, 1e9}).empty());
    const KeyChoice choice = seen(two_kinds);
    EXPECT_FALSE(choice.made(Effort::small, {}));
    EXPECT_TRUE(choice.best(Effort::small, {1, 1e9}).empty());
}

TEST(KeyChoice, PromisesTheSumOfItsKeys) {
    const KeyChoice choice = seen(two_kinds);
    const Made all = *choice.made(Effort::fast, {}), one = *choice.made(Effort::fast, {{2, Effort::none}});
    EXPECT_NEAR(all.stored, 0.575, 1e-6);
    EXPECT_NEAR(all.took_s, 0.5 / 2e9 + 0.5 / 250e6, 1e-12);
    EXPECT_NEAR(one.stored, 0.625, 1e-6);
    EXPECT_NEAR(one.took_s, 0.5 / 2e9, 1e-12);
}

// One thread: all of it is encoded at 444 MB/s, the first kind alone at 4 GB/s.
TEST(KeyChoice, WhatSavesLittleForItsTimeIsLeftWhereStorageIsFast) {
    const KeyChoice choice = seen(two_kinds);
    const KeyEfforts fast_storage = choice.best(Effort::fast, {1, 1e9});
    EXPECT_EQ(fast_storage, (KeyEfforts{{2, Effort::none}}));
    EXPECT_TRUE(choice.best(Effort::fast, {1, 100e6}).empty()) << "storage takes longer than encoding all of it";
    EXPECT_TRUE(choice.best(Effort::fast, {8, 1e9}).empty()) << "threads enough for all of it";
    EXPECT_EQ(choice.best(Effort::fast, {1, 20e9}).size(), 2u) << "faster than any codec: nothing is worth it";
}

TEST(KeyChoice, WhatSavesNothingIsLeftWhateverStorageTakes) {
    const KeyChoice choice = seen({{1, 100, 0.5, 1000}, {2, 100, 1.001, 1000}});
    for (const double storage : {1e6, 1e8, 1e10}) EXPECT_EQ(effort(choice.best(Effort::fast, {1, storage}), 2), Effort::none) << storage;
}

TEST(KeyChoice, TimeThatIsLeftIsForWhatGainsMostByHarderWork) {
    const KeyChoice choice = seen({{1, 100, 0.5, 1000, 0.4, 200}, {2, 100, 0.5, 1000, 0.48, 100}});
    const KeyEfforts chosen = choice.best(Effort::fast, {1, 130e6});
    EXPECT_EQ(chosen, (KeyEfforts{{1, Effort::small}}));
    EXPECT_EQ(choice.best(Effort::fast, {1, 5e6}), (KeyEfforts{{1, Effort::small}, {2, Effort::small}}));
    EXPECT_TRUE(choice.best(Effort::small, {1, 5e6}).empty());
    EXPECT_EQ(choice.best(Effort::small, {1, 130e6}), (KeyEfforts{{2, Effort::fast}}));
}

// What is told of no key is as the codec says, and takes its time.
TEST(KeyChoice, AllElseIsNotChosen) {
    const KeyChoice choice = seen({{0, 300, 0.9, 100}, {4, 100, 0.2, 1000}});
    EXPECT_EQ(choice.best(Effort::fast, {1, 1e9}), (KeyEfforts{{4, Effort::none}})) << "no time is left beside it";
    EXPECT_NEAR(choice.made(Effort::fast, {{4, Effort::none}})->stored, 0.75 * 0.9 + 0.25, 1e-6);
}

// Against all ways that there are: never better than the best of them, and behind it by what one key makes at most.
TEST(KeyChoice, IsNearlyTheBestOfAllWays) {
    std::mt19937_64 random(1);
    const auto drawn = [&](double from, double to) { return from * std::pow(to / from, std::uniform_real_distribution<>(0, 1)(random)); };
    constexpr std::uint32_t count = 7;
    double sum = 0, least = 1, over_alike = 0;
    constexpr int tries = 200;
    for (int i = 0; i < tries; ++i) {
        std::vector<Kind> kinds;
        for (std::uint32_t key = 1; key <= count; ++key) {
            Kind kind{key, drawn(50, 200), drawn(0.1, 1.05), drawn(100, 3000)};
            kind.small_stored = kind.fast_stored * drawn(0.85, 1.01);
            kind.small_mb_per_s = kind.fast_mb_per_s / drawn(1.5, 8);
            kinds.push_back(kind);
        }
        const KeyChoice choice = seen(kinds);
        const Speeds speeds{drawn(0.5, 16), drawn(20e6, 5e9)};
        const double chosen = speeds.durable(*choice.made(Effort::fast, choice.best(Effort::fast, speeds)));
        double best = 0;
        std::uint32_t ways = 1;
        for (std::uint32_t key = 0; key < count; ++key) ways *= efforts_count;
        for (std::uint32_t way = 0; way < ways; ++way) {
            KeyEfforts all;
            for (std::uint32_t key = 1, left = way; key <= count; ++key, left /= efforts_count) all.push_back({key, static_cast<Effort>(left % efforts_count)});
            best = std::max(best, speeds.durable(*choice.made(Effort::fast, all)));
        }
        EXPECT_LE(chosen, best * (1 + 1e-9));
        sum += chosen / best;
        least = std::min(least, chosen / best);
        over_alike += chosen / std::max({speeds.durable(*choice.made(Effort::fast, {})), speeds.durable(*choice.made(Effort::small, {})), speeds.stored_bytes_per_s});
    }
    EXPECT_GT(sum / tries, 0.92);
    EXPECT_GT(least, 0.6);
    EXPECT_GT(over_alike / tries, 1.08) << "than the best of off, fast and small for all";
}

double thread_s(const KeyChoice& choice, const KeyEfforts& efforts = {}) { return choice.made(Effort::fast, efforts)->took_s; }

TEST(KeyChoice, BusyCoresAreFoundOutByOneKey) {
    KeyChoice choice = seen(two_kinds);
    const double before = choice.made(Effort::fast, {})->took_s;
    choice.record({{1, Effort::fast, mb, mb / 4, 1'000'000}}, Effort::fast);  // 1 GB/s, half of what it was
    EXPECT_NEAR(choice.made(Effort::fast, {{1, Effort::none}})->took_s / before, 2 * (0.5 / 250e6) / before, 0.3);
}

TEST(KeyChoice, CoresThatAreIdleAgainAreFoundOutByOneKey) {
    KeyChoice choice = seen(two_kinds);
    const double before = choice.made(Effort::fast, {})->took_s;
    choice.record({{1, Effort::fast, mb, mb / 4, 8'000'000}}, Effort::fast);
    EXPECT_GT(thread_s(choice), 4 * before);
    for (int i = 0; i < 20; ++i) choice.record({{1, Effort::fast, mb, mb / 4, 500'000}}, Effort::fast);
    EXPECT_LT(thread_s(choice, {{1, Effort::none}}), before);
}

TEST(KeyChoice, WhatIsNotWrittenAnyMoreCountsNoMore) {
    KeyChoice choice = seen(two_kinds);
    for (int i = 0; i < 20; ++i) choice.record({row(two_kinds[0], Effort::fast)}, Effort::fast);
    EXPECT_NEAR(choice.made(Effort::fast, {})->stored, 0.25, 0.01);
}

// What a small trial says of a key counts at least for a quarter.
TEST(KeyChoice, DataThatChangeAreFollowed) {
    KeyChoice choice = seen(two_kinds);
    for (int i = 0; i < 12; ++i) choice.record({{2, Effort::fast, 2 * mb, mb / 2, 8'000'000}}, Effort::fast);
    EXPECT_EQ(effort(choice.best(Effort::fast, {1, 200e6}), 2), Effort::fast) << "it leaves a quarter by now";
}

TEST(KeyChoice, MergingIsNotTheCodecs) {
    KeyChoice choice;
    choice.record({row(two_kinds[0], Effort::fast)}, Effort::fast, {}, 2);
    EXPECT_NEAR(choice.made(Effort::fast, {})->stored, 0.5, 1e-6);
}

// One key is the same on all ranks, and sixteen times shorter for it; the other gains nothing by being merged, and is worth a codec all the same.
TEST(KeyChoice, OneKeyThatMergingShortensLeavesTheOthersWhatTheyAre) {
    KeyChoice choice;
    constexpr double shorter = 0.75 / 0.33;
    for (int i = 0; i < 4; ++i) {
        choice.record({{1, Effort::fast, 100 * mb, 6 * mb, 100'000'000}, {2, Effort::fast, 100 * mb, 60 * mb, 100'000'000}}, Effort::fast, {}, shorter);
        EXPECT_TRUE(choice.best(Effort::fast, {1, 20e6}, shorter).empty());
        EXPECT_NEAR(choice.made(Effort::fast, {}, shorter)->stored, 0.33, 0.01);
    }
    choice.record({{2, Effort::none, 100 * mb, 100 * mb, 1'000'000}}, Effort::fast, {{2, Effort::none}}, shorter);
    EXPECT_NEAR(choice.made(Effort::fast, {{1, Effort::none}, {2, Effort::none}}, shorter)->stored, 1, 1e-9);
    EXPECT_TRUE(choice.best(Effort::fast, {1, 20e6}, shorter).empty()) << "it comes back";
}

// A trial encodes one place many times.
TEST(KeyChoice, TrialsDoNotSayHowMuchOfTheDataAKeyHas) {
    KeyChoice choice;
    choice.record({{1, Effort::fast, 8 * mb, 2 * mb, 8'000'000}}, std::nullopt);
    EXPECT_NEAR(choice.made(Effort::fast, {{1, Effort::none}})->stored, 1, 1e-9) << "nothing else is known";
    choice = seen(two_kinds);
    const double before = choice.made(Effort::fast, {{1, Effort::none}})->stored;
    for (int i = 0; i < 20; ++i) choice.record({{1, Effort::fast, 8 * mb, 2 * mb, 4'000'000}}, std::nullopt);
    EXPECT_NEAR(choice.made(Effort::fast, {{1, Effort::none}})->stored, before, 1e-6);
    for (int i = 0; i < 20; ++i) choice.record({{1, Effort::fast, 100 * mb, 25 * mb, 50'000'000}, {2, Effort::none, 100 * mb, 100 * mb, 1'000'000}, {2, Effort::fast, 80 * mb, 72 * mb, 320'000'000}}, Effort::fast, {{2, Effort::none}});
    EXPECT_NEAR(choice.made(Effort::fast, {{1, Effort::none}})->stored, before, 1e-6);
}

// Harder work was tried on the one that codecs like; of the other only the fast one is known.
TEST(KeyChoice, WhatWasNotTriedOnAKeyIsExpectedAsOnOthers) {
    const KeyChoice choice = seen({{1, 100, 0.2, 1000, 0.18, 200}, {2, 100, 0.8, 100}});
    const Made small = *choice.made(Effort::small, {});
    EXPECT_NEAR(small.stored, 0.5 * (0.18 + 0.8 * 0.9), 1e-6);
    EXPECT_NEAR(small.took_s, 0.5 * (1 / 200e6 + 5 / 100e6), 1e-12);
    EXPECT_TRUE(choice.best(Effort::fast, {100, 5e6}) == (KeyEfforts{{1, Effort::small}})) << "it is not chosen where it was not seen";
}

TEST(KeyChoice, OfVariablesWithoutEndTheLargestAreKnown) {
    KeyChoice choice;
    for (std::uint32_t first = 1; first < 20'000; first += 200) {
        std::vector<KeyEncoded> rows{{1, Effort::fast, 1000 * mb, 900 * mb, 1'000'000'000}};
        for (std::uint32_t key = first + 1; key <= first + 200; ++key) rows.push_back({key, Effort::fast, mb, mb / 2, 1'000'000});
        choice.record(rows, Effort::fast);
    }
    const KeyEfforts chosen = choice.best(Effort::fast, {1, 20e9});
    EXPECT_EQ(chosen.size(), keys_max);
    EXPECT_EQ(chosen.front().key, 1u);
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end(), [](const KeyEffort& a, const KeyEffort& b) { return a.key < b.key; }));
}

TEST(KeyChoice, OfMoreThanAreKnownThatAreAllAsLargeSomeStay) {
    KeyChoice choice;
    std::vector<KeyEncoded> rows;
    for (std::uint32_t key = 1; key <= 3000; ++key) rows.push_back({key, Effort::fast, mb, mb, 1'000'000});
    choice.record(rows, Effort::fast);
    EXPECT_TRUE(choice.knows_keys());
    EXPECT_EQ(choice.best(Effort::fast, {1, 1e9}).size(), keys_max);
}

TEST(KeysSeen, ARunIsItsKeysAndTheRest) {
    KeysSeen seen;
    seen.add({0, Effort::fast, 100, 60, 50}, {{1, Effort::fast, 40, 10, 20}, {2, Effort::none, 30, 30, 1}});
    seen.add({0, Effort::fast, 10, 10, 5}, {{1, Effort::fast, 10, 12, 9}});  // what a clock or a head makes more than all of it is nothing
    const std::vector<KeyEncoded> told = seen.take();
    EXPECT_EQ(told, (std::vector<KeyEncoded>{{1, Effort::fast, 50, 22, 29}, {2, Effort::none, 30, 30, 1}, {0, Effort::fast, 30, 20, 29}}));
    EXPECT_TRUE(seen.take().empty()) << "told once";
}

// A hundred bytes of a header in a run of a million: what the run takes as a whole is not their time.
TEST(KeysSeen, TheTimeOfTheRunIsNotThatOfTheLittleThatHasNoKey) {
    KeysSeen seen;
    seen.add({0, Effort::fast, 1'000'100, 500'100, 1'100'110}, {{1, Effort::fast, 1'000'000, 500'000, 1'000'000}});
    const std::vector<KeyEncoded> told = seen.take();
    ASSERT_EQ(told.size(), 2u);
    EXPECT_NEAR(static_cast<double>(told[0].took_ns), 1'100'100, 2);
    EXPECT_EQ(told[1].raw_bytes, 100u);
    EXPECT_NEAR(static_cast<double>(told[1].took_ns), 10, 2);
}

TEST(KeysSeen, WhatHasNoRoomIsToldAsOne) {
    KeysSeen seen;
    std::uint64_t raw = 0;
    for (std::uint32_t key = 1; key <= 10'000; ++key) {
        seen.add({0, Effort::small, key, key, key}, {{key, Effort::small, key, key, key}});
        raw += key;
    }
    EXPECT_LE(seen.all().size(), 5000u);
    const std::vector<KeyEncoded> told = seen.take();
    EXPECT_LE(told.size(), keys_max);
    EXPECT_EQ(told.back().key, 0u);
    std::uint64_t sum = 0;
    for (const KeyEncoded& each : told) sum += each.raw_bytes;
    EXPECT_EQ(sum, raw);
    EXPECT_GT(told.front().raw_bytes, told[100].raw_bytes);
}

}  // namespace
}  // namespace cairn
