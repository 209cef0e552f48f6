// A file that can not be read, as on a disk that does not answer: a copy of it takes its place, and is leased, so that who opens it waits until it is let go
// (the system itself ends that after 45 s).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>

#include "daemon/door.hpp"

namespace cairn::test {

class Unreadable {
  public:
    explicit Unreadable(const std::string& path) {
        namespace fs = std::filesystem;
        const std::string copy = fs::path(path).parent_path().parent_path().string() + "/copy";
        if (fs::exists(path)) fs::copy_file(path, copy);
        held_.reset(::open(copy.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        EXPECT_EQ(::fcntl(held_.get(), F_SETSIG, SIGURG), 0);  // who is asked to let go is told by a signal: one that does nothing
        EXPECT_EQ(::fcntl(held_.get(), F_SETLEASE, F_WRLCK), 0);
        fs::rename(copy, path);
    }
    void end() { held_.reset(-1); }

  private:
    Descriptor held_;
};

}  // namespace cairn::test
