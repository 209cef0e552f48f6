// Connection: one stream to this node's daemon, one request at a time, from a plain thread. No event loop, no signals
// (MSG_NOSIGNAL).
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "client/deadline.hpp"
#include "client/files.hpp"
#include "catalog/layout.hpp"
#include "model/control.hpp"

namespace cairn {

class Connection {
  public:
    // To a daemon that is listening now. not_found: no socket; unavailable: a socket that nobody answers; permission:
    // not this user's.
    static Result<std::unique_ptr<Connection>> connect(const ScratchLayout& scratch, Deadline deadline);

    // The answer to a request. A Failed answer becomes its status, with the connection intact; anything that broke the
    // connection is Code::unavailable and broken() from then on. deadline: the connection can still be used. Who then asks
    // the very same goes on waiting for the answer to what was asked before; the late answer to another request is dropped.
    Result<control::Answer> ask(const control::Request& request, Deadline deadline);
    template <class A>
    Result<A> ask_for(const control::Request& request, Deadline deadline) {
        TRY_ASSIGN(control::Answer answer, ask(request, deadline));
        if (A* wanted = std::get_if<A>(&answer)) return std::move(*wanted);
        return Status(Code::internal, "the daemon's answer does not fit the request");
    }
    // First on every connection. unsupported: the daemon speaks another protocol.
    Result<control::Welcome> hello(bool is_application, Deadline deadline);

    // That came beside the last answer, if one did.
    files::Descriptor take_descriptor() { return std::move(descriptor_); }
    bool broken() const noexcept { return broken_; }
    // Of the process that listens.
    pid_t process() const noexcept { return process_; }
    void forked() { socket_ = files::Descriptor(); }

  private:
    Connection(files::Descriptor socket, pid_t process) : socket_(std::move(socket)), process_(process) {}
    Status send(ByteView bytes, Deadline deadline);
    ssize_t receive_some(std::byte* into, std::size_t bytes);
    Status receive(std::byte* into, std::size_t bytes, Deadline deadline);
    Status wait_ready(short events, Deadline deadline);
    Status lost(const std::string& how);

    files::Descriptor socket_;
    files::Descriptor descriptor_;
    pid_t process_ = 0;
    std::uint64_t next_number_ = 1;
    struct Unanswered {
        std::uint64_t number = 0;
        Bytes request;  // as encoded for number 0
    };
    std::optional<Unanswered> unanswered_;  // the last request, when nobody waited long enough
    bool broken_ = false;
};

}  // namespace cairn
