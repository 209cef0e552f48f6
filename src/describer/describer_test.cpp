// Programs that are no cairn-describer: an error, in time, and nothing is left behind.
#include "describer/describer.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/no_memory_testing.hpp"
#include "describer/describer_testing.hpp"

namespace cairn::testing {
namespace {

using std::chrono::milliseconds;

TEST(Describer, AProgramThatIsMissingIsUnavailable) {
    Describer describer(CAIRN_DESCRIBER_WITHOUT);
    for (int i = 0; i < 5; ++i) {
        const Result<Description> said = describer.describe("/etc/passwd", 0, 10, ample);
        EXPECT_EQ(said.code(), Code::unavailable);
        EXPECT_NE(said.status().text().find("there is no program"), std::string::npos) << said.status().text();
    }
    EXPECT_EQ(Describer("").describe("/etc/passwd", 0, 10, ample).code(), Code::unavailable);
    EXPECT_EQ(Describer("/etc").describe("/etc/passwd", 0, 10, ample).code(), Code::unavailable);  // can be entered, not run
}

TEST(Describer, ProgramsThatEndOrEchoAreErrorsAndLeaveNothing) {
    const std::size_t before = open_descriptors();
    for (const std::string program : {"/bin/true", "/bin/false", "/bin/cat"}) {
        Describer describer(program, patient);
        for (int i = 0; i < 20; ++i) {
            EXPECT_EQ(describer.describe("/etc/passwd", 0, 10, ample).code(), Code::unavailable) << program;
            EXPECT_EQ(describer.child(), 0);
            EXPECT_TRUE(has_no_children());
        }
    }
    EXPECT_EQ(open_descriptors(), before);
}

// A script beside the tests, that is taken for the program.
class Script {
  public:
    explicit Script(const std::string& body) : path_(::testing::TempDir() + "describer-" + std::to_string(::getpid()) + ".sh") {
        std::ofstream(path_) << "#!/bin/sh\n" << body << "\n";
        ::chmod(path_.c_str(), 0700);
    }
    ~Script() { ::unlink(path_.c_str()); }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

TEST(Describer, OneThatSaysNothingIsLateAndGone) {
    const std::size_t before = open_descriptors();
    const Script silent("exec sleep 1000");
    Describer describer(silent.path(), patient);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(describer.describe("/etc/passwd", 0, 10, milliseconds(100)).code(), Code::deadline);
        EXPECT_TRUE(has_no_children());
    }
    EXPECT_EQ(open_descriptors(), before);
}

// A head that announces more than it says, and one that announces more than it may.
TEST(Describer, OneThatSaysLessThanItAnnouncedIsDeadOrLate) {
    const std::string half = R"(printf 'Cdsa\0\0\0\0\100\0\0\0\0\0\0\0half')", boast = R"(printf 'Cdsa\0\0\0\0\0\0\0\0\1\0\0\0')";
    const auto code = [](const std::string& body, milliseconds limit) {
        const Script script(body);
        Describer describer(script.path(), patient);
        return describer.describe("/etc/passwd", 0, 10, limit).code();
    };
    EXPECT_EQ(code(half, ample), Code::unavailable);
    EXPECT_EQ(code(half + "; exec sleep 1000", milliseconds(300)), Code::deadline);
    EXPECT_EQ(code(boast + "; exec sleep 1000", ample), Code::unavailable);
    EXPECT_TRUE(has_no_children());
}

// What it says finds no memory: the file is not described, and the next one is by another child, since half of what this one said may have been read.
TEST(Describer, GoesOnAfterMemoryRanOut) {
    const Script announces_a_mebibyte(R"(printf 'Cdsa\0\0\0\0\0\0\020\0\0\0\0\0'; exec sleep 1000)");
    Describer describer(announces_a_mebibyte.path(), patient);
    for (int i = 0; i < 3; ++i) {
        const NoMemory from(1 << 20);
        const Result<Description> said = describer.describe("/etc/passwd", 0, 10, ample);
        EXPECT_EQ(said.code(), Code::out_of_space) << said.status().to_string();
        EXPECT_EQ(describer.child(), 0);
        EXPECT_TRUE(has_no_children());
    }
    EXPECT_EQ(describer.describe("/etc/passwd", 0, 10, milliseconds(100)).code(), Code::deadline) << "it was asked, and is heard";
}

TEST(Describer, AfterSomeFailuresNothingIsStartedForAWhile) {
    Describer describer("/bin/true", Describer::Patience{2, std::chrono::hours(1), std::chrono::hours(1)});
    const auto text = [&] { return describer.describe("/etc/passwd", 0, 10, ample).status().text(); };
    EXPECT_EQ(text().find("not tried again yet"), std::string::npos);
    EXPECT_EQ(text().find("not tried again yet"), std::string::npos);
    for (int i = 0; i < 3; ++i) EXPECT_NE(text().find("2 times in a row, and is not tried again yet"), std::string::npos);
    Describer short_pause("/bin/true", Describer::Patience{1, milliseconds(1), milliseconds(1)});
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(short_pause.describe("/etc/passwd", 0, 10, ample).status().text().find("not tried again yet"), std::string::npos);
        std::this_thread::sleep_for(milliseconds(5));
    }
}

TEST(Describer, WhoWaitsForItsTurnWaitsNoLongerThanItMay) {
    const Script silent("exec sleep 1000");
    Describer describer(silent.path(), patient);
    std::thread first([&] { EXPECT_EQ(describer.describe("/etc/passwd", 0, 10, ample).code(), Code::unavailable); });
    while (describer.child() == 0) std::this_thread::yield();
    const Result<Description> second = describer.describe("/etc/passwd", 0, 10, milliseconds(50));
    EXPECT_EQ(second.code(), Code::unavailable);
    EXPECT_NE(second.status().text().find("other files are being described"), std::string::npos) << second.status().text();
    const pid_t child = describer.child();
    EXPECT_NE(child, 0) << "it waited for the first to be over";
    if (child > 0) ::kill(child, SIGKILL);
    first.join();
}

TEST(Describer, WhoWaitsForItsTurnHasItWhenTheOtherIsDone) {
    const Script silent("exec sleep 1000");
    Describer describer(silent.path(), patient);
    const auto describes = [&] { EXPECT_EQ(describer.describe("/etc/passwd", 0, 10, ample).code(), Code::unavailable); };
    std::thread first(describes);
    while (describer.child() == 0) std::this_thread::yield();
    std::atomic<bool> is_done = false;
    std::thread second([&] {
        describes();
        is_done = true;
    });
    std::this_thread::sleep_for(milliseconds(20));  // it waits by now, most likely
    const pid_t child = describer.child();
    ASSERT_GT(child, 0);
    ::kill(child, SIGKILL);
    first.join();
    pid_t next = 0;
    const auto give_up = std::chrono::steady_clock::now() + ample / 4;
    while ((next == 0 || next == child) && !is_done && std::chrono::steady_clock::now() < give_up) next = describer.child();
    EXPECT_GT(next, 0) << "it waits to the end of its patience";
    EXPECT_NE(next, child);
    while (!is_done) {
        if (const pid_t last = describer.child(); last > 0) ::kill(last, SIGKILL);
        std::this_thread::yield();
    }
    second.join();
}

}  // namespace
}  // namespace cairn::testing
