// OutputFile: a path appears whole or not at all, also where a signal ends the process.
#include "cli/output_file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

struct OutputFileTest : ::testing::Test {
    OutputFileTest() {
        std::string pattern = testing::TempDir() + "cairn-output-XXXXXX";
        folder = ::mkdtemp(pattern.data());
    }
    ~OutputFileTest() override { fs::remove_all(folder); }
    std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator())); }
    // What a process of its own ended by, that makes so many files and then sends itself a signal.
    int ended_by(int signal, int count, bool is_ignored = false) const {
        const pid_t child = ::fork();
        if (child == 0) {
            if (is_ignored) ::signal(signal, SIG_IGN);
            OutputFiles files(false);
            for (int i = 0; i < count; ++i)
                if (!files.add(folder + "/" + std::to_string(i)).ok()) ::_exit(9);
            ::raise(signal);
            ::_exit(0);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
    }

    std::string folder;
};

TEST_F(OutputFileTest, ASignalLeavesNothing) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        EXPECT_EQ(ended_by(signal, 600), signal) << "it still ends the process";
        EXPECT_EQ(files(), 0u) << signal;
    }
}

TEST_F(OutputFileTest, OneThatIsIgnoredStaysSo) { EXPECT_EQ(ended_by(SIGHUP, 1, true), 0) << "nohup"; }

TEST_F(OutputFileTest, OneThatNothingCatchesLeavesItsName) {
    EXPECT_EQ(ended_by(SIGKILL, 3), SIGKILL);
    EXPECT_EQ(files(), 3u) << "so the test above can fail";
}

TEST_F(OutputFileTest, ACommittedOneStays) {
    {
        Result<OutputFile> file = OutputFile::create(folder + "/one", false);
        ASSERT_TRUE(file.ok());
        EXPECT_TRUE(file->commit(3).ok());
        ASSERT_TRUE(OutputFile::create(folder + "/two", false).ok()) << "and one that is not goes";
    }
    EXPECT_EQ(files(), 1u);
    EXPECT_EQ(fs::file_size(folder + "/one"), 3u);
    EXPECT_EQ(OutputFile::create(folder + "/one", false).code(), Code::already_exists);
}

}  // namespace
}  // namespace cairn::cli
