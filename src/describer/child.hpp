// The process that cairn-describer runs in, as its parent has it: a socket that is its stdin and its stdout, and the number that it is killed and reaped by.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn::describer {

using Deadline = std::chrono::steady_clock::time_point;

class Child {
  public:
    static Result<std::unique_ptr<Child>> start(const std::string& program);
    Child(const Child&) = delete;
    ~Child();  // killed, and reaped as far as the kernel lets it go within a second

    pid_t pid() const noexcept { return pid_; }
    // unavailable: it is gone; deadline.
    Status send(ByteView bytes, Deadline deadline);
    Status receive(std::span<std::byte> bytes, Deadline deadline);
    // Nobody asked it anything: it lives if it says nothing, as far as can be seen from here.
    bool is_silent() const;
    // False: it is killed, and the kernel has not let it go yet (it waits for a file system that does not answer).
    bool end(std::chrono::milliseconds wait);

  private:
    Child(pid_t pid, int socket);
    Status ready(short events, Deadline deadline) const;
    bool reap();

    pid_t pid_;
    int socket_;
    int process_;  // a descriptor of it, so that no other process of its number is killed; -1: this kernel has none
};

}  // namespace cairn::describer
