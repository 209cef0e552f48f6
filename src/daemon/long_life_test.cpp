// Daemons that live long: thousands of versions of a job on two nodes, and their memory is that of the first ones.
#include <array>
#include <cstdlib>

#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

constexpr Sizes small = {9'000, 64 << 10};

// Of the process itself: what it maps of scratch is not among it.
std::uint64_t anonymous_bytes(pid_t pid) {
    std::istringstream lines(read_text("/proc/" + std::to_string(pid) + "/status"));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
    ADD_FAILURE() << "/proc does not tell the memory of process " << pid;
    return 0;
}

class LongLife {
  public:
    LongLife() {
        homes_[1].move_to("n1", homes_[0].persistent);
        for (Home& home : homes_) {
            home.set("CAIRN_RETENTION_PERSISTENT_LAST", "2");  // so that no directory grows
            home.set("CAIRN_BACKGROUND_CPU", "normal");
            EXPECT_EQ(home.start(), 0) << home.errors();
            clients_.push_back(std::make_unique<Client>(home.layout));
        }
        roster_ = homes_[0].roster(1);
        roster_.ranks = 2;
        roster_.members.push_back({"n1", "", {1}});
        for (NodeIndex node : {0u, 1u}) roster_.members[node].address = clients_[node]->hello(true).address;
        for (NodeIndex node : {0u, 1u}) clients_[node]->expect<control::Done>(control::Join{roster_, node, node});
    }
    // Versions up to this one, each committed before the next is taken.
    void commit_to(Version last) {
        while (version_ < last && !::testing::Test::HasFailure()) {
            ++version_;
            for (Rank rank : {0u, 1u}) seal(*clients_[rank], roster_, version_, rank, small);
            for (Rank rank : {0u, 1u})
                ASSERT_EQ(await_commit(*clients_[rank], roster_, version_).level, Level::committed) << homes_[rank].log();
        }
    }
    std::array<std::uint64_t, 2> memory() const { return {anonymous_bytes(homes_[0].daemon_pid()), anonymous_bytes(homes_[1].daemon_pid())}; }

  private:
    std::array<Home, 2> homes_;
    std::vector<std::unique_ptr<Client>> clients_;
    Roster roster_;
    Version version_ = 0;
};

// A MiB in 10,000 versions, of which so many are taken as suit the occasion.
TEST(LongLife, MemoryStaysThatOfTheFirstVersions) {
    const char* const asked = std::getenv("CAIRN_TEST_VERSIONS");
    const Version versions = asked ? std::strtoull(asked, nullptr, 10) : 1500, first = 500;
    LongLife life;
    life.commit_to(first);
    const auto before = life.memory();
    life.commit_to(first + versions);
    const auto after = life.memory();
    for (NodeIndex node : {0u, 1u}) EXPECT_LE(after[node], before[node] + (256u << 10) + versions * (1 << 20) / 10'000) << "node " << node << ", from " << before[node];
}

}  // namespace
}  // namespace cairn
