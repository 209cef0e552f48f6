// Small blocking file calls of the client, each with an error that names the path.
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "client/deadline.hpp"

namespace cairn::files {

// A descriptor that closes itself.
class Descriptor {
  public:
    Descriptor() noexcept = default;
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor();
    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    int release() noexcept {
        const int fd = fd_;
        fd_ = -1;
        return fd;
    }

  private:
    int fd_ = -1;
};

// From getrandom(2).
Result<Id128> random_id();

Result<Bytes> read_whole(const std::string& path, std::uint64_t bytes_max);
// Under another name, then renamed: readers see all of it or none. Mode 0600; not durable.
Status write_aside(const std::string& path, ByteView bytes);
// Repeats until that works, can not work, or the deadline has passed: a network file system that was just mounted, or
// lost a server for the moment, refuses what works a second later. `passes` says which refusals may.
template <class Attempt, class Passes>
Status patiently(Deadline deadline, Passes passes, Attempt attempt) {
    Backoff backoff;
    for (;;) {
        Status status = attempt();
        if (status.ok() || !passes(status) || !backoff.pause(deadline)) return status;
    }
}

// Writes all of it to a descriptor.
Status write_all(int fd, ByteView bytes, const std::string& path);

// Makes a directory that is missing in an existing one, and proves that it can be written to. `what` names it for the
// reader: "scratch", "persistent". Waits until the deadline for a file system that is away. `used_before`: by what it is known that the
// directory was there already, for the reader; then one that is missing is not made, but away. Empty: nothing is known.
Status usable_directory(const std::string& path, const std::string& what, const std::string& used_before, Deadline deadline);
// Whether both lie on one file system; false when that can not be told.
bool same_file_system(const std::string& a, const std::string& b);

}  // namespace cairn::files
