// Launch: starting this node's daemon. cairnd itself makes sure that there is only one (its lock), leaves our process
// group and session, and keeps its starter waiting until it accepts connections or can say why not.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "client/deadline.hpp"
#include "client/files.hpp"

namespace cairn {

// Where a session lives, and the settings its daemon is to have.
struct DaemonHome {
    std::string scratch;
    std::string persistent;
    std::string node;
    std::string program;  // setting daemon.program; empty: searched for
    std::vector<std::string>
        environment;  // "CAIRN_SECTION_KEY=value": what overrides and files said here, for the daemon too
    bool io_node = false;
};

// Programs that would be tried, in order: the setting, else beside the library and the running program, then $PATH.
std::vector<std::string> daemon_candidates(const std::string& program);

// A cairnd that is on its way. It is waited for in as many turns as the caller likes, so that a poll can start one and not stand still for it;
// one that is still beginning when this goes away is left alone.
class Launch {
  public:
    // Runs the program. unavailable says what was tried.
    static Result<std::unique_ptr<Launch>> begin(const DaemonHome& place);
    ~Launch();
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    // ok: a daemon, this one or another, accepts connections. deadline: not yet, it goes on. unavailable: what it said, and that it ended.
    Status wait(Deadline deadline);
    // Ends what has not begun in time; says so with all that it said.
    Status give_up();
    // Since when it is on its way.
    Deadline::Clock::time_point begun() const noexcept { return begun_; }

  private:
    Launch(std::string who, files::Descriptor errors, pid_t pid)
        : who_(std::move(who)), errors_(std::move(errors)), pid_(pid), begun_(Deadline::Clock::now()) {}
    bool listen(Deadline deadline);
    Status failed(const std::string& why) const;

    std::string who_;           // program and node, for errors
    files::Descriptor errors_;  // its stderr, until it closed that
    std::string said_;
    pid_t pid_ = 0;             // 0: reaped
    Deadline::Clock::time_point begun_;
};

}  // namespace cairn
