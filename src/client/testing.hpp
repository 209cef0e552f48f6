// For tests of the client: a directory that goes away, and functions run in processes of their own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

namespace cairn {

class TemporaryPlace {
  public:
    // below: "/dev/shm" for tmpfs, else the system's place for temporary files.
    explicit TemporaryPlace(const std::string& below = std::filesystem::temp_directory_path().string()) {
        std::string pattern = below + "/cairn-test-XXXXXX";
        path_ = ::mkdtemp(pattern.data());
    }
    ~TemporaryPlace() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

// Runs in a child; the test fails in the child by returning something but 0.
class Child {
  public:
    explicit Child(const std::function<int()>& body) : pid_(::fork()) {
        if (pid_ == 0) {
            const int code = body();
            std::fflush(nullptr);
            ::_exit(code);
        }
    }
    Child(const Child&) = delete;
    ~Child() {
        if (!reaped_) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
    }
    // Exit code; 128 + signal; -1 when it did not end in time.
    int wait(int wait_ms = 60'000) {
        for (int waited_ms = 0; waited_ms < wait_ms; waited_ms += 2) {
            int ended = 0;
            if (::waitpid(pid_, &ended, WNOHANG) == pid_) {
                reaped_ = true;
                return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        return -1;
    }
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_;
    bool reaped_ = false;
};

}  // namespace cairn
