// Server: the daemon's end of the control protocol. Frames come in, are decoded and handed on; answers go out in any
// order.
//
// One client can not hold up another: every connection has its own reader and its own queue of answers. A client that
// sends what is not a frame, that has too many requests open, or that does not read its answers is disconnected. Peers
// of another uid are refused.
#pragma once

#include <functional>
#include <memory>

#include "daemon/door.hpp"
#include "model/control.hpp"
#include "world/real/loop.hpp"

namespace cairn {

using ConnectionId = std::uint64_t;  // 0 is none; never used again

struct ServerLimits {
    std::size_t connections_max = 16384;
    std::size_t requests_max = 4096;                // without an answer, of one connection
    std::uint64_t queued_bytes_max = 256ull << 20;  // of answers, of one connection
    Nanos write_wait = 30 * second;                 // for a client to take any byte of an answer
    Nanos hello_wait = 30 * second;                 // for the first request
};

class Server {
  public:
    struct Handler {
        virtual ~Handler() = default;
        // Answer once, with answer(); at once or later.
        virtual void on_request(ConnectionId from, std::uint64_t number, control::Request request) = 0;
        virtual void on_disconnect(ConnectionId from) = 0;  // all requests of it that are open need no answer any more
    };

    Server(Loop& loop, Handler& handler, ServerLimits limits = {});
    ~Server();
    Server(const Server&) = delete;

    // Takes a listening, non-blocking socket.
    Status accept_on(Descriptor listening);
    void stop_accepting();

    // Nothing happens when the connection is gone.
    void answer(ConnectionId to, std::uint64_t number, const control::Answer& answer);
    // Ends the connection when its answers are out.
    void disconnect_after_answers(ConnectionId connection);

    std::size_t connections() const;
    std::uint64_t process_of(ConnectionId connection) const;  // 0: gone, or not visible from here
    bool answers_are_out() const;  // nothing is queued on any connection

  private:
    struct Connection;
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace cairn
