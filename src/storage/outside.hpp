// Outside: what drivers of file systems ask of the machine: a program, an extended attribute, an empty file. The one place where they touch it; what they ask for, and what an
// answer means, are pure functions beside each driver, and tests give them recorded answers instead.
#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "world/clock.hpp"

namespace cairn {

using Words = std::vector<std::string>;  // a program's name and its arguments

class Outside {
  public:
    virtual ~Outside() = default;
    // What it printed, found by PATH and run without a shell, in the C locale. All of it block.
    //   unsupported   there is no such program here
    //   unavailable   it ended with another exit code than 0: with the first line that it said about it
    //   deadline      it was ended, since `limit` was over
    virtual Result<std::string> run(const Words& words, Nanos limit) = 0;
    virtual Result<std::string> attribute(const std::string& path, const std::string& name) = 0;
    // invalid_argument: the file system knows the attribute, and does not take that value
    virtual Status set_attribute(const std::string& path, const std::string& name, const std::string& value) = 0;
    // A new, empty one; already_exists where there is one.
    virtual Status make_file(const std::string& path, std::uint32_t permissions) = 0;
    virtual Result<std::uint64_t> block_bytes(const std::string& path) = 0;  // st_blksize
    // A function of a shared library, which stays loaded; null where there is no such library here, or none of that name in it.
    virtual void* function(const char* library, const char* name) = 0;
};

Outside& this_machine();

}  // namespace cairn
