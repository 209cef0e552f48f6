// Which target each node writes to: even by count, by bytes no worse than the bound, kept as text, and used where targets went away.
#include "storage/target_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> abc = {"a", "b", "c"};

TEST(TargetMap, nodes_go_round_the_targets) {
    EXPECT_THAT(map_by_count(5, abc).of_node, ElementsAre("a", "b", "c", "a", "b"));
    EXPECT_THAT(map_by_count(2, abc).of_node, ElementsAre("a", "b"));
}

TEST(TargetMap, by_bytes_the_largest_first) {
    const std::vector<std::uint64_t> bytes = {10, 50, 40, 30, 20};
    const TargetMap map = map_by_bytes(bytes, {"a", "b"});
    EXPECT_THAT(map.of_node, ElementsAre("a", "a", "b", "b", "a"));  // 50 a, 40 b, 30 b, 20 a, 10: 70 and 70, so a
    EXPECT_EQ(map.made_by, TargetMap::MadeBy::stored_bytes);
    EXPECT_EQ(fullest_bytes(map, bytes), 80u);
    EXPECT_EQ(fullest_bytes(map_by_count(5, {"a", "b"}), bytes), 80u);
}

// Equal nodes are as even as they can be, and whatever the sizes the fullest target has no more than Graham's bound of a lower bound of the best.
TEST(TargetMap, by_bytes_is_within_the_bound) {
    std::uint64_t random = 1;
    for (int round = 0; round < 200; ++round) {
        std::vector<std::uint64_t> bytes(1 + round % 40);
        for (std::uint64_t& each : bytes) each = (random = random * 6364136223846793005u + 1442695040888963407u) >> 40;
        const std::vector<std::string> targets(abc.begin(), abc.begin() + 1 + round % 3);
        const std::uint64_t sum = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}), most = *std::max_element(bytes.begin(), bytes.end());
        const double best = std::max(static_cast<double>(sum) / static_cast<double>(targets.size()), static_cast<double>(most));
        EXPECT_LE(static_cast<double>(fullest_bytes(map_by_bytes(bytes, targets), bytes)), best + static_cast<double>(most)) << round;
        const std::vector<std::uint64_t> equal(bytes.size(), 7);
        EXPECT_EQ(fullest_bytes(map_by_bytes(equal, targets), equal), (bytes.size() + targets.size() - 1) / targets.size() * 7) << round;
    }
}

TEST(TargetMap, what_is_written_is_read_back) {
    TargetMap map = map_by_bytes({3, 2, 1}, {"gv-client-0", "/mnt/a b"});
    const Result<TargetMap> read = parse_target_map(target_map_text("heat", map));
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_EQ(*read, map);
    EXPECT_THAT(target_map_text("heat", map), HasSubstr("\"heat\""));
}

TEST(TargetMap, a_person_may_have_changed_it) {
    const Result<TargetMap> read = parse_target_map("0 b\r\n\n# mine\n1 a  \n");
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_THAT(read->of_node, ElementsAre("b", "a"));
    EXPECT_THAT(parse_target_map("0 a\n2 b\n").status().text(), HasSubstr("line 2: node 2 where node 1 should stand"));
    for (const char* bad : {"zero a\n", "0\n", "0a b\n", "-1 a\n", "made by hand\n"}) EXPECT_THAT(parse_target_map(bad).status().text(), HasSubstr("line 1: ")) << bad;
    EXPECT_THAT(parse_target_map("").value().of_node, IsEmpty());
}

TEST(TargetMap, nodes_of_a_target_that_is_gone_go_round_the_others) {
    const TargetMap map = map_by_count(6, abc);
    EXPECT_THAT(usable_map(map, abc), ElementsAre("a", "b", "c", "a", "b", "c"));
    EXPECT_THAT(usable_map(map, {"a", "c"}), ElementsAre("a", "c", "c", "a", "a", "c"));
    EXPECT_THAT(usable_map(map, {}), IsEmpty());
}

}  // namespace
}  // namespace cairn
