// This machine: programs that are run, found, that fail, print too much, or do not end.
#include "storage/outside.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "world/real/test_world.hpp"

namespace cairn {
namespace {

using ::testing::HasSubstr;

Result<std::string> shell(const std::string& script, Nanos limit = 30 * second) { return this_machine().run({"sh", "-c", script}, limit); }

TEST(ThisMachine, GivesBackWhatAProgramPrints) {
    EXPECT_EQ(this_machine().run({"printf", "%s|", "a b", "$HOME", "*"}, 30 * second).value(), "a b|$HOME|*|") << "no shell looks at its arguments";
    EXPECT_EQ(shell("echo $LC_ALL; cat; echo more >&2").value(), "C\n") << "with no input, in a language that is known";
}

TEST(ThisMachine, TellsAProgramThatIsNotThereFromOneThatFails) {
    EXPECT_EQ(this_machine().run({"no-such-program-anywhere"}, second).code(), Code::unsupported);
    const auto failed = shell("echo usage; echo 'may not' >&2; echo 'at all' >&2; exit 3");
    EXPECT_EQ(failed.code(), Code::unavailable);
    EXPECT_EQ(failed.status().text(), "sh failed: may not");
    EXPECT_EQ(shell("kill -9 $$").code(), Code::unavailable);
}

TEST(ThisMachine, ReadsAMegabyteAndNotForEver) {
    EXPECT_EQ(shell("yes | head -c 1000000")->size(), 1000000u);
    EXPECT_EQ(shell("yes").code(), Code::io_error);
}

TEST(ThisMachine, EndsAProgramThatDoesNotEndAndWhatItStarted) {
    test::TemporaryDirectory directory;
    const std::string noted = directory.path() + "/pid";
    const auto done = shell("sleep 1000 & echo $! > " + noted + "; wait", second);
    EXPECT_EQ(done.code(), Code::deadline);
    pid_t started = 0;
    std::ifstream(noted) >> started;
    ASSERT_GT(started, 0);
    for (int i = 0; i < 1000 && ::kill(started, 0) == 0; ++i) ::usleep(10'000);
    std::ifstream stat("/proc/" + std::to_string(started) + "/stat");
    std::string pid, name, state;
    stat >> pid >> name >> state;
    EXPECT_TRUE(state.empty() || state == "Z") << state;
}

TEST(ThisMachine, OneThatClosesItsOutputIsWaitedFor) { EXPECT_EQ(shell("exec >&- 2>&-; sleep 0.2; exit 5").code(), Code::unavailable); }

TEST(ThisMachine, FilesAndAttributes) {
    test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/f";
    EXPECT_TRUE(this_machine().make_file(path, 0640).ok());
    EXPECT_EQ(this_machine().make_file(path, 0640).code(), Code::already_exists);
    EXPECT_FALSE(this_machine().attribute(path, "user.none").ok());
    EXPECT_THAT(this_machine().set_attribute(path, "nonsense", "1").text(), HasSubstr("nonsense"));
    EXPECT_EQ(this_machine().set_attribute(path, "user.", "1").code(), Code::invalid_argument);
    EXPECT_GT(this_machine().block_bytes(path).value(), 0u);
}

TEST(ThisMachine, FunctionsOfALibrary) {
    EXPECT_NE(this_machine().function("libc.so.6", "getpid"), nullptr);
    EXPECT_EQ(this_machine().function("libc.so.6", "no_such_function"), nullptr);
    EXPECT_EQ(this_machine().function("libnosuchthing.so", "getpid"), nullptr);
}

}  // namespace
}  // namespace cairn
