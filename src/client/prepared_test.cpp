// Slots that are made and mapped before the checkpoint that needs them, over real daemons.
#include <gtest/gtest.h>

#include <sstream>

#include "cairn/cairn.h"
#include "client/session_testing.hpp"

namespace cairn {
namespace {

class Prepared : public Room {
  protected:
    Prepared() : Room("/dev/shm") {}  // pages of a file on a disk are left to the capture
    // Slots of this node that this process has mapped to the last page, and that are on disk.
    std::size_t mapped() const {
        std::istringstream lines(read_text("/proc/self/smaps"));
        const std::string images = scratch_of("n0").images();
        std::size_t count = 0;
        bool is_slot = false;
        std::uint64_t size = 0;
        for (std::string line; std::getline(lines, line);) {
            std::uint64_t kib = 0;
            if (line.find("-") < line.find(" ")) is_slot = line.find(images) != std::string::npos && line.find("(deleted)") == std::string::npos;
            else if (is_slot && std::sscanf(line.c_str(), "Size: %lu kB", &kib) == 1) size = kib;
            else if (is_slot && std::sscanf(line.c_str(), "Rss: %lu kB", &kib) == 1) count += kib == size ? 1 : 0;
        }
        return count;
    }
    std::size_t made() const {
        std::size_t count = 0;
        for (const auto& each : std::filesystem::directory_iterator(scratch_of("n0").images())) count += each.is_regular_file() ? 1 : 0;
        return count;
    }
    std::uint64_t largest() const {
        std::uint64_t bytes = 0;
        for (const auto& each : std::filesystem::directory_iterator(scratch_of("n0").images())) bytes = std::max<std::uint64_t>(bytes, each.file_size());
        return bytes;
    }
    template <class Condition>
    static bool comes(Condition condition) {
        for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return condition();
    }
};

TEST_F(Prepared, TheFirstTwoCheckpointsFindTheirSlotsMapped) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(4'000'003);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    EXPECT_TRUE(comes([&] { return mapped() == 1; }));
    EXPECT_EQ(made(), 1u);
    field.fill(0, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    EXPECT_TRUE(comes([&] { return mapped() == 2; }));
    EXPECT_EQ(made(), 2u) << "the first had what it needed";
    field.fill(0, 2);
    ASSERT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(made(), 2u);
    ASSERT_EQ(cairn_wait(session, 2, CAIRN_COMMITTED, 60'000), CAIRN_OK) << cairn_last_error(session);
    field.fill(0, 3);
    std::uint64_t version = 0;
    ASSERT_EQ(cairn_restore(session, CAIRN_NEWEST, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(version, 2u);
    EXPECT_TRUE(field.holds(0, 2));
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

TEST_F(Prepared, WhatIsProtectedLaterIsThereToo) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field small(10'000), large(4'000'003);
    ASSERT_EQ(small.protect(session, "small"), CAIRN_OK);
    EXPECT_TRUE(comes([&] { return mapped() == 1; }));
    ASSERT_EQ(large.protect(session, "large"), CAIRN_OK);
    EXPECT_TRUE(comes([&] { return largest() > 8 * large.values.size() && mapped() == 1; }));
    small.fill(0, 1);
    large.fill(1, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(made(), 1u);
    EXPECT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 60'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// Two slots of what it protected before do not do for what it protects now.
TEST_F(Prepared, WhoHasTwoSlotsGetsALargerOneToo) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field small(10'000), large(4'000'003);
    ASSERT_EQ(small.protect(session, "small"), CAIRN_OK);
    EXPECT_TRUE(comes([&] { return mapped() == 1; }));
    small.fill(0, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    EXPECT_TRUE(comes([&] { return mapped() == 2; }));
    ASSERT_EQ(large.protect(session, "large"), CAIRN_OK);
    EXPECT_TRUE(comes([&] { return largest() > 8 * large.values.size() && mapped() == 2; }));
    EXPECT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 60'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

TEST_F(Prepared, NothingIsMadeWhereThatIsNotWanted) {
    cairn_session* session = open("n0", 0, 1, {"capture.ahead=false"});
    ASSERT_NE(session, nullptr);
    Field field(1'000'003);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(made(), 0u);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 60'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// The thread may be in the middle of anything when a session is closed, or its process forks.
TEST_F(Prepared, SessionsEndAndProcessesForkAtAnyMoment) {
    Field field(500'003);
    for (int round = 0; round < 12; ++round) {
        cairn_session* session = open();
        ASSERT_NE(session, nullptr);
        ASSERT_EQ(field.protect(session), CAIRN_OK);
        std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
        EXPECT_EQ(Child([&] { return cairn_close(session) == CAIRN_OK ? 0 : 2; }).wait(), 0);
        if (round % 3 == 0) {
            EXPECT_EQ(cairn_checkpoint(session, static_cast<std::uint64_t>(round) + 1), CAIRN_OK) << cairn_last_error(session);
        }
        EXPECT_EQ(cairn_close(session), CAIRN_OK);
    }
}

// A daemon that stands still keeps no call of the application's for long, and one that died is started by who needs it.
TEST_F(Prepared, ADaemonThatStandsStillOrDiedHarmsNothing) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(1'000'003), more(1'000'003);
    const auto daemon = static_cast<pid_t>(daemon_pid("n0"));
    ASSERT_NE(daemon, 0);
    ::kill(daemon, SIGSTOP);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it has asked
    ASSERT_EQ(more.protect(session, "more"), CAIRN_OK);
    ::kill(daemon, SIGCONT);
    field.fill(0, 1);
    more.fill(1, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    stop("n0");
    field.fill(0, 2);
    ASSERT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_wait(session, 2, CAIRN_COMMITTED, 60'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

}  // namespace
}  // namespace cairn
