// DaemonLink: requests to this node's daemon, which is started when none runs, and again when it died: whoever asks
// only learns of it when it can not be brought back in time.
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

    // Connects, starting a daemon where none runs. Nothing to do when connected. One that is stopping is waited for, until the deadline: what
    // it finishes may take longer than a start. After Code::deadline the next call goes on where this one stopped, so that short turns (polls)
    // get there, too.
    Status ensure(Deadline deadline);
    // Said once on every new connection, after Hello: the Join of a session.
    void say_first(control::Request request) { first_ = std::move(request); }

    // Repeated on a new connection when the old one breaks, which does no harm: what a connection had acquired goes
    // with it.
    template <class A>
    Result<A> ask_for(const control::Request& request, Deadline deadline) {
        Backoff backoff;
        std::optional<Deadline> tries;  // from the first refusal on: what came before was waiting for an answer
        for (;;) {
            TRY(ensure(deadline));
            auto answer = connection_->ask_for<A>(request, deadline);
            // unavailable from a daemon that lives: it is about to end, and the next one takes over.
            if (answer.ok() || answer.code() != Code::unavailable) return answer;
            if (!tries) tries = deadline.at_most_ms(start_wait_ms_);
            if (!backoff.pause(*tries)) return answer;
            connection_.reset();
        }
    }
    // Over the connection that there is, once: for what can wait until somebody asks in earnest. unavailable where there is none.
    template <class A>
    Result<A> ask_if_connected(const control::Request& request, Deadline deadline) {
        if (!connection_) return unavailable("no connection to " + who());
        return connection_->ask_for<A>(request, deadline);
    }
    const control::Welcome& welcome() const noexcept { return welcome_; }
    files::Descriptor take_descriptor() { return connection_ ? connection_->take_descriptor() : files::Descriptor(); }  // beside the last answer
    void disconnect() { connection_.reset(); }
    // Whether the daemon answers anything at all, over a connection of its own. One that does not is stopped (SIGSTOP, a debugger), or hangs.
    bool answers(Deadline deadline) const;
    // "the daemon of node n0 (process 17)", as far as that is known.
    std::string who() const;
    // In a forked child, where a thread of the parent may have been in the middle of anything: closes the child's descriptor, no more.
    void forked() {
        if (connection_) connection_->forked();
        if (greeting_) greeting_->forked();
    }

  private:
    enum class Met : std::uint8_t { nobody, one_that_ends, one };
    Result<Met> connect_once(Deadline deadline);
    Status greet(Deadline deadline);
    Status launch(Deadline deadline);

    DaemonHome place_;
    ScratchLayout scratch_;
    bool is_application_;
    std::uint64_t start_wait_ms_;
    std::unique_ptr<Connection> connection_;
    std::unique_ptr<Connection> greeting_;  // connected; what comes first on it is not answered yet
    std::unique_ptr<Launch> launch_;        // a daemon that is on its way
    control::Welcome welcome_;
    std::optional<control::Request> first_;
    Status last_;  // why the last try met nobody, or one that ends
};

}  // namespace cairn
