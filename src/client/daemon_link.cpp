#include "client/daemon_link.hpp"

#include <unistd.h>

namespace cairn {

DaemonLink::DaemonLink(DaemonHome place, bool is_application, std::uint64_t start_wait_ms)
    : place_(std::move(place)),
      scratch_(ScratchLayout::of(place_.scratch, ::geteuid(), place_.node, place_.persistent)),
      is_application_(is_application),
      start_wait_ms_(start_wait_ms) {}

Result<DaemonLink::Met> DaemonLink::connect_once(Deadline deadline) {
    std::unique_ptr<Connection> connection;
    const auto greet = [&]() -> Status {
        TRY_ASSIGN(connection, Connection::connect(scratch_, deadline));
        TRY_ASSIGN(welcome_, connection->hello(is_application_, deadline));
        return first_ ? connection->ask_for<control::Done>(*first_, deadline).status() : Status();
    };
    last_ = greet();
    if (last_.ok()) {
        connection_ = std::move(connection);
        return Met::one;
    }
    if (last_.code() != Code::not_found && last_.code() != Code::unavailable) return last_;
    // Words over a connection that holds are those of a daemon that lives, and takes nobody any more.
    const bool lives = connection && !connection->broken() && last_.code() == Code::unavailable;
    return lives ? Met::one_that_ends : Met::nobody;
}

// A daemon may end between our look and our connecting, or be about to begin: look, start, look again, until the time
// is up.
Status DaemonLink::ensure(Deadline outer) {
    if (connection_ && !connection_->broken()) return {};
    connection_.reset();
    Deadline deadline = outer.at_most_ms(start_wait_ms_);
    Backoff backoff;
    bool launched = false;
    for (;;) {
        TRY_ASSIGN(const Met met, connect_once(deadline));
        if (met == Met::one) return {};
        if (met == Met::one_that_ends) {
            if (!backoff.pause(outer))
                return unavailable("the daemon of node " + place_.node +
                                   " is stopping and has not ended in time, so that the next one can not begin: " + last_.text());
            deadline = outer.at_most_ms(start_wait_ms_);  // the next one's time begins when this one is gone
            continue;
        }
        if (launched && !backoff.pause(deadline))
            return unavailable("no daemon answers for node " + place_.node + " within " +
                               std::to_string(start_wait_ms_) +
                               " ms (daemon.start_wait_ms), although it was started; last: " + last_.text());
        TRY(launch_daemon(place_, deadline));
        launched = true;
    }
}

}  // namespace cairn
