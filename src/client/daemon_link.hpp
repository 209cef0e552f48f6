// DaemonLink: requests to this node's daemon, which is started when none runs, and again when it died: whoever asks only learns of it when it
// can not be brought back in time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/connection.hpp"
#include "client/launch.hpp"

namespace cairn {

class DaemonLink {
  public:
    DaemonLink(DaemonHome place, bool is_application, std::uint64_t start_wait_ms);

    // Connects, starting a daemon where none runs. Nothing to do when connected.
    Status ensure(Deadline deadline);
    // Said once on every new connection, after Hello: the Join of a session.
    void say_first(control::Request request) { first_ = std::move(request); }

    // A request whose repetition on a new connection does no harm; all are but Acquire and Release, which a new daemon sorts out itself.
    template <class A>
    Result<A> ask_for(const control::Request& request, Deadline deadline) {
        for (int again = 0;; ++again) {
            TRY(ensure(deadline));
            auto answer = connection_->ask_for<A>(request, deadline);
            if (answer.ok() || !connection_->broken() || again >= reconnects_max || deadline.passed()) return answer;
        }
    }
    const control::Welcome& welcome() const noexcept { return welcome_; }
    void disconnect() { connection_.reset(); }

  private:
    static constexpr int reconnects_max = 3;
    Status connect_once(Deadline deadline);

    DaemonHome place_;
    ScratchLayout scratch_;
    bool is_application_;
    std::uint64_t start_wait_ms_;
    std::unique_ptr<Connection> connection_;
    control::Welcome welcome_;
    std::optional<control::Request> first_;
};

}  // namespace cairn
