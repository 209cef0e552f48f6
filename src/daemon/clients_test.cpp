#include "daemon/clients.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Clients, AreToldApart) {
    Clients clients;
    clients.add(1, true, 100);
    clients.add(2, false, 200);  // a command
    clients.joined(1, {1, 2});
    clients.joined(1, {3, 4});
    clients.joined(7, {5, 6});  // has gone
    EXPECT_TRUE(clients.has(2));
    EXPECT_EQ(clients.sessions(), 1u);
    EXPECT_EQ(clients.jobs(), (std::set<Id128>{{1, 2}, {3, 4}}));
    EXPECT_EQ(clients.ranks().processes, std::set<std::uint64_t>{100});
    EXPECT_EQ(clients.remove(1), (std::set<Id128>{{1, 2}, {3, 4}}));
    EXPECT_FALSE(clients.has(1));
    EXPECT_TRUE(clients.remove(1).empty());
    EXPECT_EQ(clients.sessions(), 0u);
}

// A process waits where any connection of it does: a helper thread of the library has one of its own.
TEST(Clients, AllWaitWhenEachProcessSitsInARequest) {
    Clients clients;
    EXPECT_TRUE(clients.ranks().all_wait) << "nobody is in the way";
    clients.add(1, true, 100);
    clients.add(2, true, 200);
    clients.add(3, false, 200);
    EXPECT_FALSE(clients.ranks().all_wait);
    const Clients::Waits first(clients, 1);
    EXPECT_FALSE(clients.ranks().all_wait);
    {
        const Clients::Waits second(clients, 3), twice(clients, 3);
        EXPECT_TRUE(clients.ranks().all_wait);
    }
    EXPECT_FALSE(clients.ranks().all_wait);
    {
        const Clients::Waits gone(clients, 2);
        clients.remove(2);
    }
    EXPECT_TRUE(clients.ranks().all_wait);
}

}  // namespace
}  // namespace cairn
