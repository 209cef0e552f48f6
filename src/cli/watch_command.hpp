// The command that `cairn watch ... -- COMMAND` runs: begun once its folder is watched, and when it ends nobody writes there any more.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.hpp"

namespace cairn::cli {

class WatchedCommand {
  public:
    // `to_error`: what it prints goes to standard error, since our own standard output is for programs.
    Status start(const std::vector<std::string>& words, bool to_error);
    bool runs() const noexcept { return process_ > 0; }
    // Whether it has ended since the last call. Never waits.
    bool has_ended();
    void pass_on(int signal) const;
    // Once it has ended: io_error says how, unless it was with exit code 0.
    const Status& outcome() const noexcept { return outcome_; }

  private:
    std::string name_;
    pid_t process_ = 0;
    Status outcome_;
};

}  // namespace cairn::cli
