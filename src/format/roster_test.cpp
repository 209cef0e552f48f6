// Rosters, node records and lineage records: every invariant violated once.
#include "format/roster.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "format/samples.hpp"

namespace cairn {
namespace {

TEST(Roster, Invariants) {
    const std::pair<std::function<void(Roster&)>, const char*> violations[] = {
        {[](Roster& r) { r.name = "a b"; }, "name is not a valid one"},
        {[](Roster& r) { r.incarnation = {}; }, "no incarnation or no secret"},
        {[](Roster& r) { r.secret = {}; }, "no incarnation or no secret"},
        {[](Roster& r) { r.format = 0; }, "format version 0"},
        {[](Roster& r) { r.epoch = 0; }, "epoch 0"},
        {[](Roster& r) { r.epoch = epoch_max + 1; }, "epoch 10000000000"},
        {[](Roster& r) {
             r.parent = {{}, 1};
         },
         "a parent with"},
        {[](Roster& r) { r.ranks = 0; }, "0 ranks"},
        {[](Roster& r) { r.ranks = ranks_max + 1; }, "16777217 ranks"},
        {[](Roster& r) { r.files = 0; }, "0 files for 3 ranks"},
        {[](Roster& r) { r.files = 4; }, "4 files for 3 ranks"},
        {[](Roster& r) { r.members[0].node = "a/b"; }, "a node whose name"},
        {[](Roster& r) { r.members[1].node = "node-a"; }, "node node-a is there twice"},
        {[](Roster& r) { r.members[1].address = "a\nb"; }, "node-b: an impossible address"},
        {[](Roster& r) { r.members[1].address = std::string(1025, 'x'); }, "node-b: an impossible address"},
        {[](Roster& r) { r.members[1].ranks = {3}; }, "rank 3 of 3"},
        {[](Roster& r) {
             r.members[0].ranks = {2, 0};
         },
         "rank 0 after rank 2"},
        {[](Roster& r) { r.members[1].ranks = {2}; }, "rank 1 is on no node"},
        {[](Roster& r) { r.members[1].ranks = {}; }, "2 ranks on all nodes together, not 3"},
        {[](Roster& r) { r.roots = {"fast"}; }, "no absolute path"},
        {[](Roster& r) { r.roots = {"/fast", "/fast"}; }, "root /fast is there twice"},
        {[](Roster& r) { r.members.clear(); }, "node 0 has no ranks"}};
    ASSERT_TRUE(check_roster(samples::roster()).ok());
    for (const auto& [make, told] : violations) {
        Roster roster = samples::roster();
        make(roster);
        EXPECT_EQ(check_roster(roster).code(), Code::corrupt) << told;
        const auto result = decode_roster(encode_roster(roster));
        ASSERT_EQ(result.code(), Code::corrupt) << told;
        EXPECT_NE(result.status().text().find(told), std::string::npos) << result.status().text();
    }
}

// Of one that lacks it golden/v1 tells: it is 1. A newer one is told from a damaged one, also where the frame could be read.
TEST(Roster, SaysTheFormatOfItsJob) {
    Roster roster = samples::roster();
    roster.format = format_version + 1;
    const auto newer = decode_roster(encode_roster(roster));
    EXPECT_EQ(newer.code(), Code::unsupported);
    const std::string told = "roster: format version " + std::to_string(format_version + 1) + " found, this Cairn knows up to " + std::to_string(format_version);
    EXPECT_NE(newer.status().text().find(told), std::string::npos) << newer.status().text();
    for (roster.format = 1; roster.format <= format_version; ++roster.format) {
        const auto back = decode_roster(encode_roster(roster));
        ASSERT_TRUE(back.ok()) << back.status().text();
        EXPECT_EQ(back->format, roster.format);
    }
}

TEST(Roster, NodeRecordInvariants) {
    NodeRecord record = samples::node_record();
    record.incarnation = {};
    EXPECT_EQ(decode_node_record(encode_node_record(record)).code(), Code::corrupt);
    record = samples::node_record();
    record.address = std::string("a\0b", 3);
    EXPECT_EQ(decode_node_record(encode_node_record(record)).code(), Code::corrupt);
}

TEST(Roster, IoNodeRecordInvariants) {
    const std::function<void(IoNodeRecord&)> violations[] = {[](IoNodeRecord& r) { r.node = ""; },
                                                             [](IoNodeRecord& r) { r.node = "../n0"; },
                                                             [](IoNodeRecord& r) { r.node = std::string(129, 'n'); },
                                                             [](IoNodeRecord& r) { r.address = ""; },
                                                             [](IoNodeRecord& r) { r.address = "a\nb"; },
                                                             [](IoNodeRecord& r) { r.address = std::string(1025, 'x'); }};
    for (std::size_t i = 0; i < std::size(violations); ++i) {
        IoNodeRecord record = samples::io_node_record();
        violations[i](record);
        EXPECT_EQ(decode_io_node_record(encode_io_node_record(record)).code(), Code::corrupt) << i;
    }
}

// A node that only writes has no ranks; the coordinator has.
TEST(Roster, IoNodesAreMembersWithoutRanks) {
    Roster roster = samples::roster();
    roster.members.push_back({"io-0", "fi_sockaddr_in://127.0.0.1:4713", {}});
    const auto back = decode_roster(encode_roster(roster));
    ASSERT_TRUE(back.ok()) << back.status().text();
    EXPECT_EQ(*back, roster);
    std::swap(roster.members.front(), roster.members.back());
    EXPECT_EQ(decode_roster(encode_roster(roster)).code(), Code::corrupt);
}

TEST(Lineage, Invariants) {
    const std::function<void(OpenRecord&)> open_violations[] = {[](OpenRecord& r) { r.incarnation = {}; },
                                                                [](OpenRecord& r) { r.epoch = 0; },
                                                                [](OpenRecord& r) { r.epoch = epoch_max + 1; },
                                                                [](OpenRecord& r) { r.host = "\x1B[2J"; },
                                                                [](OpenRecord& r) { r.host = std::string(1025, 'h'); },
                                                                [](OpenRecord& r) { r.ranks = 0; },
                                                                [](OpenRecord& r) { r.ranks = ranks_max + 1; }};
    for (std::size_t i = 0; i < std::size(open_violations); ++i) {
        OpenRecord record = samples::open_record();
        open_violations[i](record);
        EXPECT_EQ(decode_open_record(encode_open_record(record)).code(), Code::corrupt) << i;
    }
    for (const FromRecord& record : {FromRecord{{}, samples::parent}, FromRecord{samples::incarnation, {{}, 1}},
                                     FromRecord{samples::incarnation, {{1, 1}, 0}},
                                     FromRecord{samples::incarnation, samples::parent, true, {{{}, 1}}},
                                     FromRecord{samples::incarnation, samples::parent, true, {{{1, 1}, 0}}}})
        EXPECT_EQ(decode_from_record(encode_from_record(record)).code(), Code::corrupt);
    const FromRecord fresh{samples::incarnation, {}};
    EXPECT_EQ(*decode_from_record(encode_from_record(fresh)), fresh) << "a fresh start has no parent";
}

}  // namespace
}  // namespace cairn
