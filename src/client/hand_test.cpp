// What ranks find when they lay their hands side by side, and an open that meets an older daemon or I/O node.
#include "client/hand.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "client/fake_daemon_testing.hpp"
#include "client/packer.hpp"
#include "client/session_testing.hpp"
#include "format/roster.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

Hand hand(const std::string& node) {
    Hand hand;
    hand.library = hand.daemon = "1.2.3";
    hand.name = "series";
    hand.persistent = "/p";
    hand.node = node;
    hand.address = "tcp:" + node;
    hand.files = 2;
    hand.block_bytes = 4096;
    hand.epoch = 7;
    return hand;
}
std::vector<Bytes> packed(const std::vector<Hand>& hands) {
    std::vector<Bytes> all;
    for (const Hand& each : hands) all.push_back(each.pack());
    return all;
}
std::string formats(std::uint32_t knows, std::uint32_t written) {
    return "whose format is " + std::to_string(knows) + "; this job writes format " + std::to_string(written) + ": update Cairn there";
}

TEST(Hands, OfOneJobMakeItsMembers) {
    std::vector<Hand> hands = {hand("n1"), hand("n0"), hand("n1")};
    hands[1].epoch = 9;
    hands[2].files = 1;
    hands[0].is_through = true;
    const auto together = compare_hands(packed(hands));
    ASSERT_TRUE(together.ok()) << together.status().to_string();
    EXPECT_EQ(together->members, (std::vector<Member>{{"n1", "tcp:n1", {0, 2}}, {"n0", "tcp:n0", {1}}}));
    EXPECT_EQ(together->epoch, 9u);
    EXPECT_EQ(together->files, 2u) << "rank 0's";
    EXPECT_EQ(together->block_bytes, 4096u);
    EXPECT_TRUE(together->is_through) << "the same";
}

// Whoever looks, and whichever side is its own.
TEST(Hands, AnOlderMemberIsNamed) {
    std::vector<Hand> hands = {hand("n0"), hand("n3"), hand("n3")};
    hands[1].daemon_format = hands[2].daemon_format = format_version - 1;
    hands[1].daemon = hands[2].daemon = "0.1.0";
    auto refused = compare_hands(packed(hands));
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.status().text(), HasSubstr("node n3 runs cairnd 0.1.0, " + formats(format_version - 1, format_version)));
    EXPECT_THAT(refused.status().text(), HasSubstr("`cairn stop`"));

    hands = {hand("n0"), hand("n3")};
    hands[1].format = format_version - 1;
    refused = compare_hands(packed(hands));
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.status().text(), HasSubstr("rank 1 on node n3 runs libcairn 1.2.3, " + formats(format_version - 1, format_version)));

    hands = {hand("n0"), hand("n3")};
    hands[1].daemon_format = format_version + 1;  // what it writes the libraries could not restore
    refused = compare_hands(packed(hands));
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.status().text(), HasSubstr("rank 0 on node n0 runs libcairn 1.2.3, " + formats(format_version, format_version + 1)));
}

// An older library packs neither format.
TEST(Hands, WithoutAFormatAreOfTheFirst) {
    const Bytes whole = hand("n3").pack();
    const std::size_t formats_bytes = 4 + (8 + 5) + 4 + 2;  // its own, the daemon's release and format; the layout, and the mode of capture
    const auto older = Hand::unpack(Bytes(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(formats_bytes)));
    ASSERT_TRUE(older.ok()) << older.status().to_string();
    EXPECT_EQ(older->format, 1u);
    EXPECT_EQ(older->daemon_format, 1u);
    EXPECT_EQ(older->daemon, "1.2.3");
    EXPECT_EQ(older->epoch, 7u);
    EXPECT_EQ(older->layout, FileLayout::parts);
    for (std::size_t cut = 1; cut < formats_bytes; ++cut)
        EXPECT_EQ(Hand::unpack(Bytes(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(cut))).code(), Code::unsupported) << cut;
}

// What it is asked besides it does not understand.
FakeDaemon::Answers older(std::uint32_t format) {
    return [format](const control::Request& request) {
        control::Welcome welcome;
        welcome.program_version = "0.0.9";
        welcome.pid = static_cast<std::uint64_t>(::getpid());
        welcome.address = "tcp:older";
        welcome.format = format;
        return std::holds_alternative<control::Hello>(request) ? control::Answer(welcome) : control::Answer(control::Failed{Code::invalid_argument, "what?"});
    };
}

class Formats : public Room {};

TEST_F(Formats, AnOlderDaemonFailsTheOpenOfAllRanksByItsNode) {
    std::vector<std::unique_ptr<Child>> ranks;
    const std::string texts = place_.file("text-");
    for (const std::uint32_t rank : {0u, 1u})
        ranks.push_back(std::make_unique<Child>([&, rank] {
            std::unique_ptr<FakeDaemon> daemon;
            if (rank == 1) {
                daemon = std::make_unique<FakeDaemon>(scratch_of("n1"), older(format_version - 1));
                if (!daemon->is_there()) return 99;
            }
            cairn_session* session = nullptr;
            const int code = try_open(&session, rank == 0 ? "n0" : "n1", rank, 2);
            std::ofstream(texts + std::to_string(rank)) << cairn_last_error(nullptr);
            return code;
        }));
    for (auto& rank : ranks) EXPECT_EQ(rank->wait(), CAIRN_UNSUPPORTED);
    for (const char* rank : {"0", "1"})
        EXPECT_THAT(read_text(texts + rank), HasSubstr("node n1 runs cairnd 0.0.9, " + formats(format_version - 1, format_version)));
    EXPECT_FALSE(std::filesystem::exists(persistent_ + "/series")) << "no epoch was taken";
}

TEST_F(Formats, AnOlderIoNodeIsLeftOutAndNamed) {
    const Layout layout{persistent_};
    std::filesystem::create_directories(layout.io_nodes());
    const auto offer = [&](const std::string& node, std::uint32_t format) {
        const Bytes bytes = encode_io_node_record({node, "tcp:" + node, format});
        std::ofstream(layout.io_node(node), std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    };
    offer("older", format_version - 1);
    offer("same", format_version);
    cairn_session* session = open("n0", 0, 1, {"flush.io_nodes=all"});
    ASSERT_NE(session, nullptr);
    EXPECT_THAT(cairn_warnings(session), HasSubstr("I/O node older is left out: it runs a cairnd, " + formats(format_version - 1, format_version)));
    std::vector<std::string> members;
    std::uint32_t format = 0;
    for (const auto& job : std::filesystem::directory_iterator(layout.jobs()))
        if (const std::string bytes = read_text(job.path().string() + "/roster"); !bytes.empty()) {
            const auto roster = decode_roster(as_bytes(bytes));
            ASSERT_TRUE(roster.ok()) << roster.status().to_string();
            format = roster->format;
            for (const Member& member : roster->members) members.push_back(member.node);
        }
    EXPECT_EQ(members, (std::vector<std::string>{"n0", "same"}));
    EXPECT_EQ(format, format_version) << "the roster says what its job writes";
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

}  // namespace
}  // namespace cairn
