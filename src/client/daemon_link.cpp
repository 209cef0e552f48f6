#include "client/daemon_link.hpp"

#include <unistd.h>

namespace cairn {

DaemonLink::DaemonLink(DaemonHome place, bool is_application, std::uint64_t start_wait_ms)
    : place_(std::move(place)),
      scratch_(ScratchLayout::of(place_.scratch, ::geteuid(), place_.node, place_.persistent)),
      is_application_(is_application),
      start_wait_ms_(start_wait_ms) {}

Status DaemonLink::connect_once(Deadline deadline) {
    TRY_ASSIGN(std::unique_ptr<Connection> connection, Connection::connect(scratch_, deadline));
    TRY_ASSIGN(welcome_, connection->hello(is_application_, deadline));
    if (first_) TRY(connection->ask_for<control::Done>(*first_, deadline).status());
    connection_ = std::move(connection);
    return {};
}

// A daemon may end between our look and our connecting, or be about to begin: look, start, look again, until the time
// is up.
Status DaemonLink::ensure(Deadline outer) {
    if (connection_ && !connection_->broken()) return {};
    connection_.reset();
    const Deadline deadline = outer.at_most_ms(start_wait_ms_);
    Backoff backoff;
    for (;;) {
        Status status = connect_once(deadline);
        if (status.ok()) return status;
        if (status.code() != Code::not_found && status.code() != Code::unavailable) return status;
        TRY(launch_daemon(place_, deadline));
        status = connect_once(deadline);
        if (status.ok()) return status;
        if (status.code() != Code::not_found && status.code() != Code::unavailable) return status;
        if (!backoff.pause(deadline))
            return unavailable("no daemon answers for node " + place_.node + " within " +
                               std::to_string(start_wait_ms_) +
                               " ms (daemon.start_wait_ms), although it was started; last: " + status.text());
    }
}

}  // namespace cairn
