// Sessions whose daemon ends and comes back at the worst of times, whose children live on, and whose file system is not there.
#include <gmock/gmock.h>

#include <filesystem>

#include "client/session_testing.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Does something in the middle of the first capture.
struct Meddler {
    std::function<void()> meddle;
    int calls = 0;

    int protect(cairn_session* session) {
        const auto size = [](void*, std::uint64_t* bytes) {
            *bytes = 8;
            return 0;
        };
        const auto write = [](void* context, void* into, std::uint64_t bytes) {
            auto& self = *static_cast<Meddler*>(context);
            std::memset(into, 9, bytes);
            if (self.calls++ == 0) self.meddle();
            return 0;
        };
        const auto read = [](void*, const void*, std::uint64_t) { return 0; };
        return cairn_protect_callbacks(session, "meddler", size, write, read, this);
    }
};

class Daemons : public Room {
  protected:
    // By somebody else's session: its daemon has gone through scratch when it is open.
    bool start(const std::string& node) {
        const std::string mine = std::exchange(name_, "another");
        cairn_session* session = open(node);
        name_ = mine;
        return session && cairn_close(session) == CAIRN_OK;
    }
    static std::size_t slots_of(const std::string& process_file) {
        std::ifstream lines(process_file);
        std::size_t count = 0;
        for (std::string line; std::getline(lines, line);) count += line.find("/images/slot-") != std::string::npos;
        return count;
    }
};

TEST_F(Daemons, StartedAgainDuringACaptureTheImageIsCapturedOnceMore) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(20'000);
    Meddler meddler;
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    ASSERT_EQ(meddler.protect(session), CAIRN_OK);
    meddler.meddle = [&] {
        stop("n0");
        EXPECT_TRUE(start("n0"));
    };
    field.fill(0, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(meddler.calls, 2);
    EXPECT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    field.fill(0, 0);
    ASSERT_EQ(cairn_restore(session, 1, nullptr), CAIRN_OK) << cairn_last_error(session);
    EXPECT_TRUE(field.holds(0, 1));
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// A version that can not be finished keeps a daemon that was told to stop busy.
TEST_F(Daemons, OneThatIsStoppingIsNotTakenForTheNodes) {
    ::setenv("CAIRN_DAEMON_STOP_WAIT_MS", "5000", 1);
    cairn_session *first = nullptr, *second = nullptr;
    std::thread opens([&] { second = open("n0", 1, 2); });
    first = open("n0", 0, 2);
    opens.join();
    ::unsetenv("CAIRN_DAEMON_STOP_WAIT_MS");
    ASSERT_TRUE(first && second);
    Field field(1000);
    ASSERT_EQ(field.protect(first), CAIRN_OK);
    ASSERT_EQ(cairn_checkpoint(first, 1), CAIRN_OK) << cairn_last_error(first);  // the other rank never does
    const auto pid = daemon_pid("n0");
    ASSERT_NE(pid, 0u);
    ::kill(static_cast<pid_t>(pid), SIGTERM);
    const auto refuses = [&] {
        auto connection = Connection::connect(scratch_of("n0"), Deadline::in_ms(1000));
        return !connection.ok() || (*connection)->hello(true, Deadline::in_ms(5000)).code() == Code::unavailable;
    };
    for (int i = 0; i < 1000 && !refuses(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(daemon_pid("n0"), pid) << "a command may still ask it";
    name_ = "another";
    cairn_session* third = open("n0", 0, 1, {"daemon.start_wait_ms=4000"});  // shorter than the end takes
    ASSERT_NE(third, nullptr) << cairn_last_error(nullptr);
    EXPECT_NE(daemon_pid("n0"), pid);
    Field other(1000);
    ASSERT_EQ(other.protect(third), CAIRN_OK);
    EXPECT_EQ(cairn_checkpoint(third, 1), CAIRN_OK) << cairn_last_error(third);
    EXPECT_EQ(cairn_wait(third, 1, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(third);
    EXPECT_EQ(cairn_close(third), CAIRN_OK);
    std::thread closes([&] { static_cast<void>(cairn_close(second)); });
    static_cast<void>(cairn_close(first));
    closes.join();
}

double seconds_of(const std::function<void()>& what) {
    const auto begun = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// What a poll says in the end: one is answered late, or while the flush is tried again.
int poll_until_told(cairn_session* session, std::uint64_t version) {
    int code = CAIRN_DEADLINE;
    for (int i = 0; i < 3000 && code == CAIRN_DEADLINE; ++i) {
        code = cairn_test(session, version, CAIRN_COMMITTED);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return code;
}

TEST_F(Daemons, OneThatStandsStillHoldsNoPollAndNoCheckpoint) {
    cairn_session* session = open("n0", 0, 1, {"capture.wait_ms=100"});
    ASSERT_NE(session, nullptr);
    Field field(20'000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    ASSERT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    ASSERT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    const auto daemon = static_cast<pid_t>(daemon_pid("n0"));
    ASSERT_NE(daemon, 0);
    ::kill(daemon, SIGSTOP);
    const double waited = seconds_of([&] {
        const int code = cairn_wait(session, 2, CAIRN_COMMITTED, 3'000);
        EXPECT_TRUE(code == CAIRN_DEADLINE || code == CAIRN_OK) << cairn_last_error(session);  // it may have got there before
    });
    const double polled = seconds_of([&] {
        for (int i = 0; i < 5; ++i) EXPECT_EQ(cairn_test(session, 2, CAIRN_COMMITTED), CAIRN_DEADLINE);
    });
    EXPECT_LT(polled, waited) << "five polls";
    const double captured = seconds_of([&] { EXPECT_EQ(cairn_checkpoint(session, 3), CAIRN_DEADLINE); });
    EXPECT_THAT(cairn_last_error(session), HasSubstr("the daemon of node n0 (process " + std::to_string(daemon) + ") gives no answer"));
    EXPECT_EQ(cairn_checkpoint(session, 3), CAIRN_DEADLINE);  // now on a connection that is not even greeted
    const std::string told = cairn_last_error(session);
    EXPECT_EQ(told.find("the daemon of node"), told.rfind("the daemon of node")) << told;
    EXPECT_LT(captured, 2 * waited + 2);
    cairn_session* beside = nullptr;
    EXPECT_EQ(try_open(&beside, "n0", 0, 1, {"deadlines.open_ms=1000"}), CAIRN_DEADLINE);
    EXPECT_THAT(cairn_last_error(nullptr), HasSubstr("kill -CONT " + std::to_string(daemon) + ")"));
    ::kill(daemon, SIGCONT);
    EXPECT_EQ(poll_until_told(session, 2), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_checkpoint(session, 4), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_wait(session, 4, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// A poll does not wait for a daemon to begin, and yet starts one.
TEST_F(Daemons, PollsStartADeadOne) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(1000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    stop("n0");
    EXPECT_EQ(poll_until_told(session, 1), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// The first wait is told why the flush failed; the next one waits for what becomes of it.
TEST_F(Daemons, AWaitAfterAFailedFlushWaitsForTheNextTry) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(1000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    const std::string in_the_way = persistent_ + "/series/1";
    std::ofstream(in_the_way) << "no directory";
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    const int failed = cairn_wait(session, 1, CAIRN_COMMITTED, 60'000);
    EXPECT_NE(failed, CAIRN_OK);
    EXPECT_NE(failed, CAIRN_DEADLINE) << cairn_last_error(session);
    EXPECT_EQ(poll_until_told(session, 1), failed) << "a poll tells how it stands";
    fs::remove(in_the_way);
    EXPECT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 60'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

TEST_F(Daemons, AForkedChildHasNoSlots) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(1000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(slots_of("/proc/self/maps"), 1u);
    for (const auto& each : fs::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        EXPECT_THAT(fs::read_symlink(each.path(), error).string(), testing::Not(HasSubstr("/images/slot-")));
    }
    EXPECT_EQ(Child([&] {
                  if (slots_of("/proc/self/maps") != 0) return 1;
                  return cairn_close(session) == CAIRN_OK ? 0 : 2;
              }).wait(),
              0);
    field.fill(0, 2);
    EXPECT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_wait(session, 2, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// A directory that is gone stands for a file system that is not mounted.
TEST_F(Daemons, APersistentDirectoryThatIsMissingIsAwayAndNotEmpty) {
    cairn_session* session = open("n0", 0, 1, {"flush.attempts_max=1"});
    ASSERT_NE(session, nullptr);
    Field field(1000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    field.fill(0, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK);
    ASSERT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    fs::rename(persistent_, persistent_ + ".away");
    EXPECT_EQ(cairn_restore(session, CAIRN_NEWEST, nullptr), CAIRN_UNAVAILABLE);
    EXPECT_THAT(cairn_last_error(session), HasSubstr("mounted"));
    field.fill(0, 2);
    EXPECT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    cairn_session* next = nullptr;
    EXPECT_EQ(try_open(&next, "n0", 0, 1, {"deadlines.open_ms=500"}), CAIRN_UNAVAILABLE);
    EXPECT_THAT(cairn_last_error(nullptr), HasSubstr("mounted"));
    EXPECT_FALSE(fs::exists(persistent_)) << "made up";
    fs::rename(persistent_ + ".away", persistent_);
    int waited = cairn_wait(session, 2, CAIRN_COMMITTED, 1000);
    for (int i = 0; i < 100 && waited != CAIRN_OK; ++i) {  // told that an attempt failed; the next one does not
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        waited = cairn_wait(session, 2, CAIRN_COMMITTED, 1000);
    }
    EXPECT_EQ(waited, CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

}  // namespace
}  // namespace cairn
