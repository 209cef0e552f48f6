// Launch: starting this node's daemon. cairnd itself makes sure that there is only one (its lock), leaves our process
// group and session, and keeps its starter waiting until it accepts connections or can say why not.
#pragma once

#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "client/deadline.hpp"

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

// Returns when a daemon, this one or another, accepts connections. unavailable says what was tried and what the daemon
// said.
Status launch_daemon(const DaemonHome& place, Deadline deadline);

}  // namespace cairn
