#include "model/codec_choice.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

CodecChoice of(const std::vector<std::string>& codecs) {
    std::vector<CodecCandidate> candidates;
    for (const std::string& codec : codecs) candidates.push_back({codec, std::nullopt});
    return CodecChoice(candidates);
}

// Storage that takes so many bytes a second, nodes that encode so many, a codec of that ratio; what a flush of each kind takes and says.
struct Cluster {
    double storage_bytes_per_s = 100e6, encode_bytes_per_s = 400e6, ratio = 1.5;
    double cold_s = 0;  // more, of the next one

    FlushMeasured flush(const CodecChoice& choice, std::uint64_t raw_bytes = 1'000'000'000) {
        FlushMeasured flush;
        flush.codec = choice.next();
        flush.raw_bytes = raw_bytes;
        const double raw = static_cast<double>(raw_bytes), stored = flush.codec.empty() ? raw : raw / ratio;
        flush.stored_bytes = static_cast<std::uint64_t>(stored);
        const double write_s = stored / storage_bytes_per_s, encode_s = flush.codec.empty() ? 0 : raw / encode_bytes_per_s;
        flush.took_s = std::max(write_s, encode_s) + cold_s;
        flush.storage_share = write_s / flush.took_s;
        cold_s = 0;
        for (const std::string& codec : {choice.next(), choice.trial()})
            if (!codec.empty()) flush.codecs[codec] = {1e6, 1e6 / ratio, encode_bytes_per_s};
        return flush;
    }
    // The share of versions that were encoded.
    double run(CodecChoice& choice, int versions) {
        int encoded = 0;
        for (int i = 0; i < versions; ++i) {
            encoded += !choice.next().empty();
            choice.record(flush(choice));
        }
        return static_cast<double>(encoded) / versions;
    }
};

TEST(CodecChoice, BeginsWithoutAndTriesBesideIt) {
    const CodecChoice choice = of({"fast"});
    EXPECT_EQ(choice.next(), "");
    EXPECT_EQ(choice.trial(), "fast");
    EXPECT_EQ(CodecChoice().next(), "");
    EXPECT_EQ(CodecChoice().trial(), "");
}

TEST(CodecChoice, SlowStorageIsWorthACodecFromTheSecondVersionOn) {
    Cluster cluster;
    cluster.ratio = 2;
    CodecChoice choice = of({"fast"});
    choice.record(cluster.flush(choice));
    EXPECT_EQ(choice.next(), "fast");
    EXPECT_EQ(choice.trial(), "");
    EXPECT_GE(cluster.run(choice, 300), 0.99) << "as long as storage binds, it is hardly ever looked at";
    cluster.storage_bytes_per_s /= 3;
    EXPECT_GE(cluster.run(choice, 100), 0.99) << "slower than it was, so that less is reached, and no reason to end it";
}

// 1.5 times what it took is not enough while all was cold.
TEST(CodecChoice, AColdFirstVersionDecidesNothing) {
    for (const double encode : {400e6, 800e6}) {
        Cluster cluster;
        cluster.storage_bytes_per_s = 1000e6;
        cluster.encode_bytes_per_s = encode;
        cluster.cold_s = 0.6;
        CodecChoice choice = of({"fast"});
        choice.record(cluster.flush(choice));
        EXPECT_EQ(choice.next(), "") << "storage seemed to take 625 MB/s, and takes more than is encoded";
        EXPECT_EQ(cluster.run(choice, 100), 0.0);
    }
}

TEST(CodecChoice, FastStorageIsLeftAlone) {
    for (const double storage : {400e6, 1e9, 5e9}) {
        Cluster cluster;
        cluster.storage_bytes_per_s = storage;
        CodecChoice choice = of({"fast"});
        EXPECT_EQ(cluster.run(choice, 200), 0.0) << storage;
    }
}

// Over sinks of 5 MB/s to 5 GB/s: all versions after the first together take no longer than without a codec, but for two hundredths, nor much longer than with it.
// A trial takes the processor from the end of its version, and from the application.
TEST(CodecChoice, WhereNoneIsNearlyWorthItFewAreTried) {
    Cluster cluster;
    cluster.storage_bytes_per_s = 5e9;
    CodecChoice choice = of({"fast", "small"});
    int trials = 0;
    for (int i = 0; i < 100; ++i) {
        trials += !choice.trial().empty();
        choice.record(cluster.flush(choice));
        EXPECT_EQ(choice.next(), "");
    }
    EXPECT_GE(trials, 6);
    EXPECT_LE(trials, 12);
    Cluster slow = cluster;
    slow.storage_bytes_per_s = 100e6;
    CodecChoice of_slow = choice;
    for (int i = 0; i < 2; ++i) of_slow.record(slow.flush(of_slow));
    EXPECT_NE(of_slow.next(), "") << "what codecs do is known: nobody waits for a trial";
    cluster.encode_bytes_per_s = 20e9;
    for (int i = 0; i < 32; ++i) choice.record(cluster.flush(choice));
    EXPECT_NE(choice.next(), "") << "cores that got idle are seen by the trials that are left";
}

TEST(CodecChoice, IsHardlyEverLaterThanEither) {
    for (double storage = 5e6; storage < 6e9; storage *= 1.3)
        for (const double ratio : {0.999, 1.02, 1.2, 1.5, 3.0}) {
            Cluster cluster;
            cluster.storage_bytes_per_s = storage;
            cluster.ratio = ratio;
            CodecChoice choice = of({"fast"});
            choice.record(cluster.flush(choice));
            double chosen_s = 0, off_s = 0, fast_s = 0;
            for (int i = 0; i < 100; ++i) {
                const FlushMeasured flush = cluster.flush(choice);
                chosen_s += flush.took_s;
                off_s += 1e9 / storage;
                fast_s += std::max(1e9 / ratio / storage, 1e9 / cluster.encode_bytes_per_s);
                choice.record(flush);
            }
            EXPECT_LE(chosen_s, 1.02 * off_s) << storage << " " << ratio;
            EXPECT_LE(chosen_s, 1.15 * std::min(off_s, fast_s)) << storage << " " << ratio;
        }
}

TEST(CodecChoice, BusyCoresEndIt) {
    Cluster cluster;
    CodecChoice choice = of({"fast"});
    cluster.run(choice, 5);
    ASSERT_EQ(choice.next(), "fast");
    cluster.encode_bytes_per_s = 20e6;
    EXPECT_LT(cluster.run(choice, 40), 0.1);
    EXPECT_EQ(choice.next(), "");
    cluster.encode_bytes_per_s = 400e6;
    cluster.run(choice, 20);
    EXPECT_EQ(choice.next(), "fast") << "what is tried beside shows that cores are free again";
}

TEST(CodecChoice, FollowsStorageThatGetsFasterAndSlower) {
    Cluster cluster;
    CodecChoice choice = of({"fast"});
    cluster.run(choice, 5);
    ASSERT_EQ(choice.next(), "fast");
    cluster.storage_bytes_per_s = 5e9;
    cluster.run(choice, 80);
    EXPECT_EQ(choice.next(), "") << "what it takes is only seen without a codec, and so that is tried again";
    EXPECT_EQ(cluster.run(choice, 100), 0.0);
    cluster.storage_bytes_per_s = 50e6;
    cluster.run(choice, 4);
    EXPECT_EQ(cluster.run(choice, 20), 1.0);
}

// A small version takes as long as a sync does, whatever storage takes of a large one.
TEST(CodecChoice, SmallVersionsAmongLargeOnesSayNothing) {
    Cluster cluster;
    cluster.storage_bytes_per_s = 5e9;
    CodecChoice choice = of({"fast"});
    int encoded = 0;
    for (int i = 0; i < 300; ++i) {
        if (i % 3 == 0) {
            encoded += !choice.next().empty();
            choice.record(cluster.flush(choice));
            continue;
        }
        FlushMeasured small = cluster.flush(choice, 1'000'000);
        small.took_s = 0.02;
        small.storage_share = 0.95;
        choice.record(small);
    }
    EXPECT_EQ(encoded, 0);
    cluster.storage_bytes_per_s = 50e6;
    for (int i = 0; i < 20; ++i) choice.record(cluster.flush(choice, 1'000'000));
    EXPECT_EQ(choice.next(), "fast") << "where all have become small, they count";
}

// Writers that wait for an answer each are under way all the time, and so it seems that storage binds: without a codec twice as much becomes durable.
TEST(CodecChoice, StorageThatSeemsToBindIsLookedAtNowAndThen) {
    CodecChoice choice = of({"fast"});
    const auto record = [&](double off_bytes_per_s) {
        const bool is_encoded = !choice.next().empty();
        FlushMeasured flush{choice.next(), 1'000'000'000, is_encoded ? 500'000'000u : 1'000'000'000u, is_encoded ? 5 : 1e9 / off_bytes_per_s, 0.9, {{"fast", {1e6, 5e5, 300e6}}}};
        choice.record(flush);
        return is_encoded;
    };
    record(50e6);  // cold
    int encoded = 0;
    for (int i = 0; i < 400; ++i) encoded += record(400e6);
    EXPECT_GT(encoded, 100);
    EXPECT_LT(encoded, 140);
}

// Both rates promise twice of what is reached without a codec, and what is reached with it is half.
TEST(CodecChoice, WhatHoldsLessThanItPromisesIsTriedLessAndLess) {
    CodecChoice choice = of({"fast"});
    int encoded = 0;
    for (int i = 0; i < 400; ++i) {
        const bool is_encoded = !choice.next().empty();
        encoded += is_encoded;
        choice.record({choice.next(), 1'000'000'000, is_encoded ? 500'000'000u : 1'000'000'000u, is_encoded ? 20.0 : 10.0, 0.5, {{"fast", {1e6, 5e5, 1e9}}}});
    }
    EXPECT_GE(encoded, 2);
    EXPECT_LE(encoded, 8);
}

// What is told of a codec is what it did last, and the end of an image may be unlike the rest.
TEST(CodecChoice, WhatAVersionReachedCountsMoreThanItsLastChunks) {
    CodecChoice choice = of({"fast"});
    choice.record({"", 1'000'000'000, 1'000'000'000, 1e9 / 150e6, 1, {{"fast", {1e6, 5e5, 1e9}}}});
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(choice.next(), "fast") << i;
        choice.record({"fast", 1'000'000'000, 500'000'000, 1e9 / 300e6, 1, {{"fast", {1e6, 1e6, 100e6}}}});
    }
}

// One version that was late by chance is no reason.
TEST(CodecChoice, TheBetterOfTwoVersionsIsWhatStorageTakes) {
    Cluster cluster;
    cluster.storage_bytes_per_s = 1e9;
    CodecChoice choice = of({"fast"});
    EXPECT_EQ(cluster.run(choice, 5), 0.0);
    cluster.cold_s = 20;
    EXPECT_EQ(cluster.run(choice, 5), 0.0);
}

// Half as fast and a little shorter: for slow storage alone.
TEST(CodecChoice, OfSeveralTheOneThatIsSoonest) {
    for (const double storage : {5e6, 250e6}) {
        CodecChoice choice = of({"fast", "small"});
        for (int i = 0; i < 30; ++i) {
            FlushMeasured flush;
            flush.codec = choice.next();
            flush.raw_bytes = 1'000'000'000;
            const double ratio = flush.codec.empty() ? 1 : flush.codec == "small" ? 1.8 : 1.5, speed = flush.codec.empty() ? 1e12 : flush.codec == "small" ? 100e6 : 600e6;
            flush.stored_bytes = static_cast<std::uint64_t>(1e9 / ratio);
            flush.took_s = std::max(1e9 / ratio / storage, 1e9 / speed);
            flush.storage_share = 1e9 / ratio / storage / flush.took_s;
            for (const std::string& codec : {choice.next(), choice.trial()})
                if (!codec.empty()) flush.codecs[codec] = {1e6, codec == "small" ? 1e6 / 1.8 : 1e6 / 1.5, codec == "small" ? 100e6 : 600e6};
            choice.record(flush);
        }
        EXPECT_EQ(choice.next(), storage < 100e6 ? "small" : "fast") << storage;
    }
}

TEST(CodecSeen, OlderLooksCountLess) {
    CodecSeen seen;
    EXPECT_EQ(seen.bytes_per_s(), 0);
    for (int i = 0; i < 20; ++i) seen.add(1000, 1000, 1);
    for (int i = 0; i < 8; ++i) seen.add(1000, 500, 0.1);
    EXPECT_LT(seen.stored_bytes() / seen.raw_bytes(), 0.6);
    EXPECT_GT(seen.bytes_per_s(), 4000);
    seen.add(0, 0, 1);
    seen.add(1000, 500, 0);
    EXPECT_GT(seen.bytes_per_s(), 4000) << "of nothing, or in no time, says nothing";
    for (int i = 0; i < 1000; ++i) seen.add(1000, 500, 0.1);
    EXPECT_NEAR(seen.bytes_per_s(), 10'000, 1);
}

// Words of other nodes that make no sense are worth no division by zero.
TEST(CodecChoice, BelievesNoNonsense) {
    CodecChoice choice = of({"fast"});
    FlushMeasured flush{"", 1000, 1000, 1, 0, {{"fast", {0, 0, 0}}, {"unknown", {1, 1, 1}}}};
    choice.record(flush);
    flush.took_s = 0;
    choice.record(flush);
    EXPECT_EQ(choice.next(), "");
    EXPECT_EQ(choice.trial(), "fast");
}

// A twentieth shorter apart, and half as long merged: storage takes less than is encoded, so that half as long is sooner.
TEST(CodecChoice, WhatMergingPromisesCounts) {
    Cluster cluster;
    cluster.storage_bytes_per_s = 200e6;
    cluster.ratio = 1.05;
    CodecChoice choice = of({"fast"});
    EXPECT_EQ(cluster.run(choice, 10), 0.0);
    const auto merged = [&](double gain) {
        FlushMeasured flush = cluster.flush(choice);
        if (!choice.next().empty()) flush.shorter = gain;
        flush.next_shorter = gain;
        return flush;
    };
    while (choice.trial().empty()) choice.record(cluster.flush(choice));
    choice.record(merged(2));
    EXPECT_EQ(choice.next(), "fast");
    cluster.ratio = 2.1;
    for (int i = 0; i < 40; ++i) choice.record(merged(2));
    EXPECT_EQ(choice.next(), "fast");
}

// Four times less with one codec where it is merged, and hardly less again with the other, tried on the same: not twice as much as that.
TEST(CodecChoice, WhatMergedDataBecomeIsNotCountedTwice) {
    Cluster cluster;
    cluster.ratio = 2;
    CodecChoice choice = of({"fast", "small"});
    while (choice.next().empty()) choice.record(cluster.flush(choice));
    ASSERT_EQ(choice.next(), "fast");
    cluster.ratio = 4;
    cluster.encode_bytes_per_s = 600e6;
    for (int i = 0; i < 10; ++i) {
        FlushMeasured flush = cluster.flush(choice);
        flush.shorter = flush.next_shorter = 2;
        if (flush.codecs.count("small")) flush.codecs["small"].stored_bytes = 1e6 / 4.2;
        choice.record(flush);
        EXPECT_EQ(choice.next(), "fast");
    }
}

// 100 MB/s, and a codec that would halve what is written.
TEST(CodecChoice, WhatIsDurableInAMomentIsLeftAsItIs) {
    for (const bool is_soon : {true, false}) {
        CodecChoice choice({{"fast", std::nullopt}}, 0.25);
        Cluster cluster;
        cluster.ratio = 2;
        const auto run = [&](std::uint64_t raw_bytes, int versions) {
            for (int i = 0; i < versions; ++i) choice.record(cluster.flush(choice, raw_bytes));
        };
        const std::uint64_t shorter = 20'000'000, longer = 30'000'000;
        EXPECT_EQ(choice.trial(), "fast") << "what storage takes is not known yet";
        run(is_soon ? shorter : longer, 3);
        for (int i = 0; i < 40; ++i) {
            EXPECT_EQ(choice.next(), is_soon ? "" : "fast") << i;
            EXPECT_TRUE(choice.trial().empty() || !is_soon) << i;
            run(is_soon ? shorter : longer, 1);
        }
        run(is_soon ? longer : shorter, 40);
        EXPECT_EQ(choice.next(), is_soon ? "fast" : "") << "versions became longer, or shorter";
    }
}

}  // namespace
}  // namespace cairn
