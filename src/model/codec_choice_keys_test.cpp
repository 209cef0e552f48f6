// The choice of a codec where data have keys: which it works on, and that what is learned of one version holds for the next.
#include <gtest/gtest.h>

#include "model/codec_choice.hpp"

namespace cairn {
namespace {

// Data of two kinds, of which a codec makes much of one in little time, and little of the other in much.
struct TwoKinds {
    double storage_bytes_per_s = 100e6, encoders = 4, good_share = 0.5;
    struct Kind {
        double stored, bytes_per_s;
    };
    Kind good{0.25, 1e9}, hard{0.9, 60e6};
    bool is_hard_tried = true;

    FlushMeasured flush(const CodecChoice& choice) const {
        constexpr double raw = 1e9;
        FlushMeasured flush;
        flush.codec = choice.next();
        flush.efforts = choice.efforts();
        flush.raw_bytes = static_cast<std::uint64_t>(raw);
        flush.encoders = encoders;
        double stored = raw, took_s = 0;
        const auto told = [&](std::uint32_t key, double bytes, Effort effort) {
            const Kind& kind = key == 1 ? good : hard;
            const double left = effort == Effort::none ? 1 : kind.stored, each_s = effort == Effort::none ? 1e-10 : 1 / kind.bytes_per_s;
            flush.keys.push_back({key, effort, static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(bytes * left), static_cast<std::uint64_t>(bytes * each_s * 1e9)});
        };
        for (const std::uint32_t key : {1u, 2u}) {
            const double bytes = raw * (key == 1 ? good_share : 1 - good_share);
            const Effort effort = effort_of(flush.efforts, key, Effort::fast);
            if (!choice.trial().empty() && (key == 1 || is_hard_tried)) told(key, 2e6, Effort::fast);
            if (flush.codec.empty()) continue;
            told(key, bytes, effort);
            stored -= bytes - static_cast<double>(flush.keys.back().stored_bytes);
            took_s += static_cast<double>(flush.keys.back().took_ns) * 1e-9 / encoders;
        }
        flush.stored_bytes = static_cast<std::uint64_t>(stored);
        flush.took_s = std::max(stored / storage_bytes_per_s, took_s);
        flush.storage_share = stored / storage_bytes_per_s / flush.took_s;
        KeyEncoded all;
        for (const KeyEncoded& each : flush.keys) all.raw_bytes += each.raw_bytes, all.stored_bytes += each.stored_bytes, all.took_ns += each.took_ns;
        if (all.took_ns > 0) flush.codecs["fast"] = {static_cast<double>(all.raw_bytes), static_cast<double>(all.stored_bytes), encoders * static_cast<double>(all.raw_bytes) / (static_cast<double>(all.took_ns) * 1e-9)};
        return flush;
    }
    double seconds(CodecChoice& choice, int versions) const {
        double sum = 0;
        for (int i = 0; i < versions; ++i) {
            const FlushMeasured measured = flush(choice);
            sum += measured.took_s;
            choice.record(measured);
        }
        return sum / versions;
    }
    double off_s() const { return 1e9 / storage_bytes_per_s; }
    double fast_s() const {
        const double stored = good_share * good.stored + (1 - good_share) * hard.stored, took_s = (good_share / good.bytes_per_s + (1 - good_share) / hard.bytes_per_s) / encoders;
        return 1e9 * std::max(stored / storage_bytes_per_s, took_s);
    }
};

CodecChoice by_key() { return CodecChoice(std::vector<CodecCandidate>{{"fast", Effort::fast}}); }

TEST(CodecChoice, WhatIsHardIsLeftWhereThatIsSooner) {
    TwoKinds data;
    data.storage_bytes_per_s = 800e6;
    CodecChoice choice = by_key();
    data.seconds(choice, 6);
    EXPECT_EQ(choice.next(), "fast");
    EXPECT_EQ(choice.efforts(), (KeyEfforts{{2, Effort::none}}));
    const double chosen_s = data.seconds(choice, 50);
    EXPECT_NEAR(chosen_s, 1e9 * 0.625 / 800e6, 0.01);
    EXPECT_LT(chosen_s, 0.7 * std::min(data.off_s(), data.fast_s()));
    data.storage_bytes_per_s = 50e6;
    data.seconds(choice, 10);
    EXPECT_TRUE(choice.efforts().empty()) << "time enough for all of it";
}

TEST(CodecChoice, ByKeyIsNeverMuchLaterThanEitherAndOftenSooner) {
    double most = 1;
    for (double storage = 5e6; storage < 6e9; storage *= 1.3)
        for (const double good_share : {0.1, 0.5, 0.9}) {
            TwoKinds data;
            data.storage_bytes_per_s = storage;
            data.good_share = good_share;
            CodecChoice choice = by_key();
            data.seconds(choice, 6);
            const double chosen_s = data.seconds(choice, 100);
            EXPECT_LE(chosen_s, 1.02 * data.off_s()) << storage << " " << good_share;
            EXPECT_LE(chosen_s, 1.1 * std::min(data.off_s(), data.fast_s())) << storage << " " << good_share;
            most = std::max(most, std::min(data.off_s(), data.fast_s()) / chosen_s);
        }
    EXPECT_GT(most, 2);
}

// Of what is left as it is nothing more is seen, but for trials.
TEST(CodecChoice, WhatWasHardIsTriedAgain) {
    TwoKinds data;
    data.storage_bytes_per_s = 800e6;
    CodecChoice choice = by_key();
    data.seconds(choice, 6);
    ASSERT_EQ(choice.efforts().size(), 1u);
    data.hard = data.good;
    int trials = 0;
    for (int i = 0; i < 40; ++i) {
        trials += choice.trial() == "fast";
        data.seconds(choice, 1);
    }
    EXPECT_TRUE(choice.efforts().empty());
    EXPECT_GE(trials, 1);
    EXPECT_LE(trials, 12);
}

// The first trial is of the key of which a codec makes much; the other is met when all is encoded.
TEST(CodecChoice, AKeyThatNoTrialMetIsFoundInUse) {
    TwoKinds data;
    data.storage_bytes_per_s = 400e6;
    data.is_hard_tried = false;
    CodecChoice choice = by_key();
    data.seconds(choice, 8);
    EXPECT_EQ(choice.next(), "fast");
    EXPECT_EQ(choice.efforts(), (KeyEfforts{{2, Effort::none}}));
}

// Half of the leaders have not got through their piece when the version is reported: theirs is the hard kind.
TEST(CodecChoice, ATrialThatMostHaveNotEndedIsNotBelieved) {
    for (const double told : {0.5, 0.9}) {
        TwoKinds data;
        data.storage_bytes_per_s = 200e6;
        data.is_hard_tried = false;
        CodecChoice choice = by_key();
        FlushMeasured first = data.flush(choice);
        first.told = told;
        choice.record(first);
        EXPECT_EQ(choice.next(), told < 0.75 ? "" : "fast");
        FlushMeasured second = data.flush(choice);
        second.told = told;
        choice.record(second);
        EXPECT_EQ(choice.next(), "fast") << "who has nothing to try never tells";
    }
}

// Writers that encode and then write are in a write most of the time, whatever binds: what storage takes does not seem less for it, or efforts would grow until it were.
TEST(CodecChoice, TimeThatEncodingTookIsNotStorages) {
    TwoKinds data;
    data.storage_bytes_per_s = 800e6;
    CodecChoice choice = by_key();
    data.seconds(choice, 6);
    ASSERT_EQ(choice.efforts().size(), 1u);
    for (int i = 0; i < 60; ++i) {
        FlushMeasured flush = data.flush(choice);
        double encoded_s = 0;
        for (const KeyEncoded& each : flush.keys) encoded_s += static_cast<double>(each.took_ns) * 1e-9 / data.encoders;
        flush.took_s = std::max(flush.took_s, 1.6 * encoded_s);
        flush.storage_share = 0.9;
        choice.record(flush);
        EXPECT_EQ(effort_of(choice.efforts(), 2, Effort::fast), Effort::none) << i;
    }
}

// Both are told the same of nearly all data, so that in use they are one.
TEST(CodecChoice, CodecsThatGoByKeysDoNotTakeTurns) {
    TwoKinds data;
    data.storage_bytes_per_s = 200e6;
    CodecChoice choice(std::vector<CodecCandidate>{{"fast", Effort::fast}, {"small", Effort::small}});
    int changes = 0;
    std::string before = choice.next();
    for (int i = 0; i < 100; ++i) {
        FlushMeasured flush = data.flush(choice);
        for (const KeyEncoded& each : std::vector<KeyEncoded>(flush.keys))
            if (choice.trial() == "small" && each.effort == Effort::fast) flush.keys.push_back({each.key, Effort::small, 2'000'000, 2'000'000 * each.stored_bytes / each.raw_bytes, 5 * 2'000'000 * each.took_ns / each.raw_bytes});
        flush.took_s /= 0.7;
        choice.record(flush);
        changes += i > 6 && choice.next() != before;
        before = choice.next();
    }
    EXPECT_LE(changes, 1);
}

// A version that gave way says what codecs make of data, and not how long it takes.
TEST(CodecChoice, OfAVersionThatWasHeldBackKeysAreLearned) {
    TwoKinds data;
    data.storage_bytes_per_s = 800e6;
    CodecChoice choice = by_key();
    FlushMeasured first = data.flush(choice);
    first.is_held_back = true;
    choice.record(first);
    EXPECT_EQ(choice.next(), "");
    data.is_hard_tried = false;
    choice.record(data.flush(choice));
    EXPECT_EQ(choice.next(), "fast");
    EXPECT_EQ(choice.efforts(), (KeyEfforts{{2, Effort::none}})) << "that it is hard was told before";
}

TEST(CodecChoice, EffortsDoNotComeAndGo) {
    TwoKinds data;
    data.storage_bytes_per_s = 135e6;  // all of it is encoded about as fast as storage takes it
    CodecChoice choice = by_key();
    data.seconds(choice, 10);
    int changes = 0;
    KeyEfforts before = choice.efforts();
    for (int i = 0; i < 60; ++i) {
        data.storage_bytes_per_s = i % 2 == 0 ? 136e6 : 134e6;
        data.seconds(choice, 1);
        changes += choice.efforts() != before;
        before = choice.efforts();
    }
    EXPECT_LE(changes, 2);
}

}  // namespace
}  // namespace cairn
