// The thread that prepares: when it works, and that it ends.
#include "client/ahead.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

namespace cairn {
namespace {

using std::chrono::milliseconds;

template <class Condition>
bool comes(Condition condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(10));
    return condition();
}

TEST(Ahead, WorksWhenSomethingChangedUntilNothingIsLeft) {
    std::atomic<int> turns{0};
    Ahead ahead([&]() -> std::optional<milliseconds> {
        if (++turns % 3 == 0) return std::nullopt;
        return milliseconds(turns % 3 == 1 ? 0 : 1);
    });
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_EQ(turns, 0) << "nothing has changed";
    ahead.changed();
    EXPECT_TRUE(comes([&] { return turns == 3; }));
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_EQ(turns, 3);
    ahead.changed();
    EXPECT_TRUE(comes([&] { return turns == 6; }));
}

TEST(Ahead, AChangeInTheMiddleIsSeen) {
    std::atomic<int> turns{0};
    std::atomic<bool> is_in{false}, goes_on{false};
    Ahead ahead([&]() -> std::optional<milliseconds> {
        is_in = true;
        while (!goes_on) std::this_thread::sleep_for(milliseconds(1));
        ++turns;
        return std::nullopt;
    });
    ahead.changed();
    EXPECT_TRUE(comes([&] { return is_in.load(); }));
    ahead.changed();
    goes_on = true;
    EXPECT_TRUE(comes([&] { return turns == 2; }));
}

TEST(Ahead, EndsWhileItWaitsForItsNextTurn) {
    std::atomic<int> turns{0};
    {
        Ahead ahead([&]() -> std::optional<milliseconds> {
            ++turns;
            return std::chrono::hours(1);
        });
        ahead.changed();
        EXPECT_TRUE(comes([&] { return turns == 1; }));
    }
    EXPECT_EQ(turns, 1);
}

// There is no such thread in the child, and nothing waits for it.
TEST(Ahead, AForkedChildLetsItGo) {
    std::atomic<int> turns{0};
    auto ahead = std::make_unique<Ahead>([&]() -> std::optional<milliseconds> {
        ++turns;
        return milliseconds(1);
    });
    ahead->changed();
    EXPECT_TRUE(comes([&] { return turns > 0; }));
    const pid_t child = ::fork();
    if (child == 0) {
        ahead.reset();
        ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace cairn
