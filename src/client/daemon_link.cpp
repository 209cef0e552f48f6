#include "client/daemon_link.hpp"

#include <unistd.h>

namespace cairn {

DaemonLink::DaemonLink(DaemonHome place, bool is_application, std::uint64_t start_wait_ms)
    : place_(std::move(place)),
      scratch_(ScratchLayout::of(place_.scratch, ::geteuid(), place_.node, place_.persistent)),
      is_application_(is_application),
      start_wait_ms_(start_wait_ms) {}

std::string DaemonLink::who() const {
    const Connection* known = connection_ ? connection_.get() : greeting_.get();
    return "the daemon of node " + place_.node + (known ? " (process " + std::to_string(known->process()) + ")" : "");
}

bool DaemonLink::answers(Deadline deadline) const {
    const auto connection = Connection::connect(scratch_, deadline);
    return connection.ok() && (*connection)->hello(false, deadline).code() != Code::deadline;
}

// What comes first on a connection; asked again it goes on waiting for the answers that are still to come.
Status DaemonLink::greet(Deadline deadline) {
    if (!greeting_ || greeting_->broken()) {
        TRY_ASSIGN(greeting_, Connection::connect(scratch_, deadline));
    }
    TRY_ASSIGN(welcome_, greeting_->hello(is_application_, deadline));
    return first_ ? greeting_->ask_for<control::Done>(*first_, deadline).status() : Status();
}

Result<DaemonLink::Met> DaemonLink::connect_once(Deadline deadline) {
    last_ = greet(deadline);
    if (last_.code() == Code::deadline) {
        const std::string process = greeting_ ? std::to_string(greeting_->process()) : "PID";
        return deadline_passed(who() + ": " + last_.text() + "; if it was stopped, SIGCONT lets it go on (kill -CONT " + process + ")");
    }
    std::unique_ptr<Connection> connection = std::move(greeting_);
    if (last_.ok()) {
        connection_ = std::move(connection);
        return Met::one;
    }
    if (last_.code() != Code::not_found && last_.code() != Code::unavailable) return last_;
    // Words over a connection that holds are those of a daemon that lives, and takes nobody any more.
    const bool lives = connection && !connection->broken() && last_.code() == Code::unavailable;
    return lives ? Met::one_that_ends : Met::nobody;
}

// Until it has begun; deadline: it is still on its way, and the next call waits on.
Status DaemonLink::launch(Deadline deadline) {
    if (!launch_) {
        TRY_ASSIGN(launch_, Launch::begin(place_));
    }
    const Deadline in_time = Deadline::in_ms(start_wait_ms_, launch_->begun());
    Status status = launch_->wait(deadline.at_most_ms(in_time.left_ms()));
    if (status.code() == Code::deadline && in_time.passed()) status = launch_->give_up();
    if (status.code() != Code::deadline) launch_.reset();
    return status;
}

// A daemon may end between our look and our connecting, or be about to begin: look, start, look again, until the time
// is up.
Status DaemonLink::ensure(Deadline outer) {
    if (connection_ && !connection_->broken()) return {};
    connection_.reset();
    Deadline deadline = outer.at_most_ms(start_wait_ms_);
    const bool is_short = outer.left_ms() < start_wait_ms_;  // its end proves nothing
    Backoff backoff;
    bool launched = false;
    for (;;) {
        if (launch_) {
            TRY(launch(deadline));
            launched = true;
        }
        TRY_ASSIGN(const Met met, connect_once(deadline));
        if (met == Met::one) return {};
        if (met == Met::one_that_ends) {
            if (!backoff.pause(outer))
                return Status(is_short ? Code::deadline : Code::unavailable,
                              who() + " is stopping and has not ended in time, so that the next one can not begin: " + last_.text());
            deadline = outer.at_most_ms(start_wait_ms_);  // the next one's time begins when this one is gone
            continue;
        }
        if (launched && !backoff.pause(deadline))
            return Status(is_short ? Code::deadline : Code::unavailable,
                          "no daemon answers for node " + place_.node + " within " + std::to_string(start_wait_ms_) +
                              " ms (daemon.start_wait_ms), although it was started; last: " + last_.text());
        TRY(launch(deadline));
        launched = true;
    }
}

}  // namespace cairn
