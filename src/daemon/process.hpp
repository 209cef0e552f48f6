// Process: how cairnd leaves the process that started it, and what it tells that process before it does.
#pragma once

#include <string>

#include "daemon/door.hpp"

namespace cairn {

// Exit codes of cairnd, in its --help.
enum class Exit : int {
    fine = 0,        // ended for want of work, was stopped and finished everything, or another daemon runs here already
    unfinished = 1,  // stopped; sealed images stay in scratch for the next daemon
    usage = 2,       // arguments or settings
    cannot_start = 3,  // scratch, lock, socket, network
    at_once = 4,       // a second SIGTERM or SIGINT
};

// The starter's end of a pipe: it waits for one word, so that its exit means "accepting connections" or says why not.
class Report {
  public:
    Report() = default;  // --foreground: nobody waits
    explicit Report(Descriptor pipe) : pipe_(std::move(pipe)) {}
    void ready() { say(Exit::fine, {}); }
    void failed(Exit code, const std::string& text) { say(code, text); }

  private:
    void say(Exit code, const std::string& text);
    Descriptor pipe_;
};

// Only before the first thread. Returns in a new process of its own session, without a terminal, with no descriptor of
// its starter's, on all processors its starter may use (an MPI launcher binds a rank to one core; its daemon must not
// live there). The starter itself never returns: it waits for the report, to wait_ms, prints a failure's text and exits
// with its code.
Result<Report> detach(std::uint64_t wait_ms);

// Both ways of running: SIGHUP and SIGPIPE ignored, other dispositions and the mask reset, as many descriptors as
// allowed. The umask stays the starter's: checkpoints get the permissions that the application's own files would have;
// what is private says so where it is made.
void settle();

}  // namespace cairn
