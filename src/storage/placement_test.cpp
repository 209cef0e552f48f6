#include "storage/placement.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace cairn {
namespace {

std::vector<std::uint64_t> blocks_of_targets(const std::vector<PartShare>& shares, std::uint32_t targets) {
    std::vector<std::uint64_t> sums(targets);
    for (const PartShare& share : shares) sums.at(share.target.value()) += share.blocks;
    return sums;
}

std::vector<std::uint32_t> parts_of_targets(const std::vector<PartShare>& shares, std::uint32_t targets) {
    std::vector<std::uint32_t> counts(targets);
    for (const PartShare& share : shares) ++counts.at(share.target.value());
    return counts;
}

std::uint64_t sum(const std::vector<PartShare>& shares) {
    std::uint64_t total = 0;
    for (const PartShare& share : shares) total += share.blocks;
    return total;
}

constexpr std::uint64_t sizes[] = {0, 1, 2, 7, 100, 1023, 123'457};

TEST(Placement, FiveFilesOnFourServers) {
    const auto shares = share_parts(80, 5, 4, 0);
    const std::vector<PartShare> expected = {{0, 10}, {1, 20}, {2, 20}, {3, 20}, {0, 10}};
    EXPECT_EQ(shares, expected);
    EXPECT_EQ(*share_parts(80, 5, 4, 1).front().target, 1u) << "another one gets two files next time";
}

TEST(Placement, TwoFilesOnFourServersTakeTurns) {
    const std::vector<PartShare> even = {{0, 40}, {1, 40}}, odd = {{2, 40}, {3, 40}};
    EXPECT_EQ(share_parts(80, 2, 4, 0), even);
    EXPECT_EQ(share_parts(80, 2, 4, 1), odd);
    EXPECT_EQ(share_parts(80, 2, 4, 2), even);
}

// Of each target, stripes of `files` files whose own targets follow one another.
std::vector<std::uint32_t> stripes_on(std::uint32_t files, std::uint32_t count, std::uint32_t targets) {
    std::vector<std::uint32_t> on(targets);
    for (std::uint32_t file = 0; file < files; ++file)
        for (const std::uint32_t target : stripe_targets((file + 7) % targets, count, targets)) ++on[target];
    return on;
}

TEST(Placement, FewFilesSpanTargetsSoThatAllGetTheSame) {
    constexpr std::uint64_t large = 100ull << 30;
    EXPECT_EQ(spread(1, 4, large).count, 4u);
    EXPECT_EQ(spread(2, 4, large).count, 2u);
    EXPECT_EQ(spread(3, 4, large).count, 4u);
    EXPECT_EQ(spread(1024, 1350, large).count, 13u) << "as on Frontier: 9.86 stripes a target, 10 on the fullest";
    for (std::uint32_t targets = 2; targets < 60; ++targets)
        for (std::uint32_t files = 1; files < targets; ++files) {
            const Stripe stripe = spread(files, targets, large);
            const auto on = stripes_on(files, std::max(1u, stripe.count), targets);
            const auto [least, most] = std::minmax_element(on.begin(), on.end());
            ASSERT_LE(*most - *least, 1u) << files << " files on " << targets;
            ASSERT_GE(static_cast<double>(files * std::max(1u, stripe.count)), 0.95 * *most * targets) << files << " files on " << targets;
        }
}

TEST(Placement, AFileThatNeedNotSpanTargetsLiesWholeOnOne) {
    EXPECT_EQ(spread(4, 4, 1ull << 40), Stripe());
    EXPECT_EQ(spread(9, 4, 1ull << 40), Stripe());
    EXPECT_EQ(spread(98, 100, 1ull << 40), Stripe()) << "nearly all of them have one";
    EXPECT_EQ(spread(1, 4, 0), Stripe()) << "it is short";
    EXPECT_EQ(spread(1, 4, 2 * stripe_least).count, 2u);
    EXPECT_EQ(spread(1, 5000, 1ull << 50).count, stripes_max);
    EXPECT_EQ(spread(1, 0, 1ull << 40), Stripe());
    EXPECT_EQ(stripe_targets(3, 2, 4), (std::vector<std::uint32_t>{3, 1}));
}

TEST(Placement, WithoutTargetsPartsAreEqual) {
    const std::vector<PartShare> expected = {{{}, 3}, {{}, 3}, {{}, 4}};
    EXPECT_EQ(share_parts(10, 3, 0, 5), expected);
}

TEST(Placement, EveryTargetGetsTheSame) {
    for (std::uint32_t targets = 1; targets <= 9; ++targets)
        for (std::uint32_t parts = targets; parts <= 30; ++parts)
            for (std::uint64_t turn : {0, 1, 2, 1000})
                for (const std::uint64_t blocks : sizes) {
                    const auto shares = share_parts(blocks, parts, targets, turn);
                    ASSERT_EQ(shares.size(), parts);
                    ASSERT_EQ(sum(shares), blocks);
                    const double ideal = static_cast<double>(blocks) / targets;
                    for (const std::uint64_t held : blocks_of_targets(shares, targets))
                        ASSERT_LT(std::abs(static_cast<double>(held) - ideal), 1) << parts << " on " << targets;
                    const auto counts = parts_of_targets(shares, targets);
                    for (const std::uint32_t count : counts)
                        ASSERT_TRUE(count == parts / targets || count == (parts + targets - 1) / targets);
                    for (const PartShare& share : shares)
                        ASSERT_LT(std::abs(static_cast<double>(share.blocks) - ideal / counts[*share.target]), 1);
                }
}

TEST(Placement, FewerPartsThanTargetsAreEqualAndApart) {
    for (std::uint32_t targets = 0; targets <= 9; ++targets)
        for (std::uint32_t parts = 1; parts < std::max(targets, 2u); ++parts)
            for (const std::uint64_t blocks : sizes) {
                const auto shares = share_parts(blocks, parts, targets, 3);
                ASSERT_EQ(sum(shares), blocks);
                for (const PartShare& share : shares)
                    ASSERT_LT(std::abs(static_cast<double>(share.blocks) - static_cast<double>(blocks) / parts), 1);
                if (targets == 0) continue;
                for (const std::uint32_t count : parts_of_targets(shares, targets)) ASSERT_LE(count, 1u);
            }
}

TEST(Placement, OverTheVersionsEveryTargetHasHeldAsManyParts) {
    for (std::uint32_t targets = 1; targets <= 9; ++targets)
        for (std::uint32_t parts = 1; parts <= 20; ++parts)
            for (const std::uint64_t first : {0ull, 5ull, ~0ull / 16 * 7}) {
                std::vector<std::uint64_t> held(targets), counts(targets);
                const std::uint64_t turns = targets / std::gcd(parts, targets);
                for (std::uint64_t turn = first; turn < first + turns; ++turn)
                    for (const PartShare& share : share_parts(100 * targets * parts, parts, targets, turn)) {
                        held[*share.target] += share.blocks;
                        ++counts[*share.target];
                    }
                for (std::uint32_t target = 1; target < targets; ++target) {
                    ASSERT_EQ(counts[target], counts[0]) << parts << " on " << targets;
                    ASSERT_EQ(held[target], held[0]) << parts << " on " << targets;
                }
            }
}

TEST(Placement, NothingOverflows) {
    constexpr std::uint64_t most = ~0ull;
    constexpr std::uint32_t parts = 1 << 20, targets = 1000;
    const auto shares = share_parts(most, parts, targets, most);
    EXPECT_EQ(sum(shares), most);
    for (const std::uint64_t held : blocks_of_targets(shares, targets)) {
        EXPECT_GE(held, most / targets);
        EXPECT_LE(held, most / targets + 1);
    }
}

TEST(Placement, ATargetThatIsARootHasItsNumber) {
    EXPECT_EQ(root_of({"/a", "/b"}, "/a"), 1u);
    EXPECT_EQ(root_of({"/a", "/b"}, "/b"), 2u);
    EXPECT_EQ(root_of({"/a", "/b"}, "gv-client-0"), 0u) << "below persistent";
    EXPECT_EQ(root_of({"/a", "/b"}, ""), 0u);
    EXPECT_EQ(root_of({}, "/a"), 0u);
}

TEST(Placement, ATargetWithoutRoomForItsShareIsLeftOut) {
    using Names = std::vector<std::string>;
    constexpr std::uint64_t mib = 1 << 20;
    EXPECT_EQ(with_room({{"a", 100 * mib}, {"b", 100 * mib}}, 150 * mib, 4), (Names{"a", "b"}));
    EXPECT_EQ(with_room({{"a", 60 * mib}, {"b", 200 * mib}}, 150 * mib, 4), Names{"b"});
    EXPECT_EQ(with_room({{"a", 60 * mib}, {"b", 200 * mib}, {"c", 90 * mib}}, 150 * mib, 4), (Names{"a", "b", "c"})) << "50 each";
    EXPECT_EQ(with_room({{"a", 40 * mib}, {"b", 200 * mib}, {"c", 90 * mib}}, 150 * mib, 4), (Names{"b", "c"}));
    EXPECT_EQ(with_room({{"a", 60 * mib}, {"b", 200 * mib}}, 150 * mib, 1), Names{"b"}) << "one part, of all bytes";
    EXPECT_EQ(with_room({{"a", 1}, {"b", 2}}, 150 * mib, 4), (Names{"a", "b"})) << "nobody knows better";
    EXPECT_EQ(with_room({}, 150 * mib, 4), Names());
    EXPECT_EQ(with_room({{"a", UINT64_MAX}}, UINT64_MAX / 2, 4), Names{"a"});
}

}  // namespace
}  // namespace cairn
