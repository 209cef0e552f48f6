#include "client/connection.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "format/control.hpp"

#ifndef CAIRN_VERSION
#define CAIRN_VERSION "unknown"
#endif

namespace cairn {

namespace {

// The directory that holds the socket, proved to be this user's: a socket in somebody else's directory could be
// anybody's.
Result<files::Descriptor> open_room(const ScratchLayout& scratch) {
    files::Descriptor room(::open(scratch.root.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!room) return Status::from_errno(errno, "no daemon's directory " + scratch.root);
    struct stat about = {};
    if (::fstat(room.get(), &about) != 0) return Status::from_errno(errno, "can not look at " + scratch.root);
    if (about.st_uid != ::geteuid())
        return Status(Code::permission, scratch.root + " belongs to uid " + std::to_string(about.st_uid) +
                                            ", not to uid " + std::to_string(::geteuid()) +
                                            ": set another scratch or node name");
    return room;
}

// The process that listens.
Result<pid_t> check_peer(int socket, const ScratchLayout& scratch) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return Status::from_errno(errno, "can not tell who listens on " + scratch.socket());
    if (peer.uid != ::geteuid())
        return Status(Code::permission, "the daemon on " + scratch.socket() + " belongs to uid " + std::to_string(peer.uid) +
                                            ", not to uid " + std::to_string(::geteuid()));
    return peer.pid;
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::connect(const ScratchLayout& scratch, Deadline deadline) {
    TRY_ASSIGN(const files::Descriptor room, open_room(scratch));
    files::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return Status::from_errno(errno, "can not make a socket");
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    // Through the descriptor: the path itself may be longer than a socket's name can be.
    const std::string path = "/proc/self/fd/" + std::to_string(room.get()) + "/sock";
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    Backoff backoff;
    while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
        // EAGAIN: the daemon's queue of connections is full, it will get to us.
        if (errno != EAGAIN && errno != EINTR)
            return Status::from_errno(errno, "can not connect to the daemon on " + scratch.socket());
        if (!backoff.pause(deadline))
            return deadline_passed("the daemon on " + scratch.socket() + " accepts no connections");
    }
    TRY_ASSIGN(const pid_t process, check_peer(socket.get(), scratch));
    return std::unique_ptr<Connection>(new Connection(std::move(socket), process));
}

Status Connection::lost(const std::string& how) {
    broken_ = true;
    return unavailable("the connection to the daemon was lost: " + how);
}

Status Connection::wait_ready(short events, Deadline deadline) {
    for (;;) {
        pollfd wait{socket_.get(), events, 0};
        const auto left = static_cast<int>(std::min<std::uint64_t>(deadline.left_ms(), 60'000));
        const int ready = ::poll(&wait, 1, left);
        if (ready > 0) return {};
        if (ready < 0 && errno != EINTR) return lost(Status::from_errno(errno, "poll").text());
        if (deadline.passed()) return deadline_passed("the daemon did not answer in time");
    }
}

Status Connection::send(ByteView bytes, Deadline deadline) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
            continue;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return lost(Status::from_errno(errno, "send").text());
        // Half a request can not be taken back.
        if (const Status status = wait_ready(POLLOUT, deadline); !status.ok()) return lost(status.text());
    }
    return {};
}

// As recv. A descriptor that comes with the bytes is kept; of several the last.
ssize_t Connection::receive_some(std::byte* into, std::size_t bytes) {
    iovec part{into, bytes};
    int descriptor = -1;
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    const cmsghdr* const beside = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (beside && beside->cmsg_level == SOL_SOCKET && beside->cmsg_type == SCM_RIGHTS && beside->cmsg_len == CMSG_LEN(sizeof descriptor)) {
        std::memcpy(&descriptor, CMSG_DATA(beside), sizeof descriptor);
        descriptor_ = files::Descriptor(descriptor);
    }
    return got;
}

// All of `bytes`.
Status Connection::receive(std::byte* into, std::size_t bytes, Deadline deadline) {
    std::size_t have = 0;
    while (have < bytes) {
        const ssize_t got = receive_some(into + have, bytes - have);
        if (got > 0) {
            have += static_cast<std::size_t>(got);
            continue;
        }
        if (got == 0) return lost("it ended");
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return lost(Status::from_errno(errno, "receive").text());
        const Status status = wait_ready(POLLIN, deadline);
        if (status.ok()) continue;
        // Between answers the stream stays usable; in the middle of one it does not.
        return have == 0 && bytes == control_header_bytes ? status : lost(status.text());
    }
    return {};
}

Result<control::Answer> Connection::ask(const control::Request& request, Deadline deadline) {
    if (broken_) return unavailable("the connection to the daemon was lost");
    Bytes plain = encode_control(0, request);
    if (!unanswered_ || unanswered_->request != plain) {
        unanswered_.reset();
        const std::uint64_t number = next_number_++;
        TRY(send(encode_control(number, request), deadline));
        unanswered_ = Unanswered{number, std::move(plain)};
    }
    const std::uint64_t number = unanswered_->number;
    for (;;) {
        Bytes bytes(control_header_bytes);
        TRY(receive(bytes.data(), bytes.size(), deadline));
        const auto header = decode_control_header(bytes);
        if (!header.ok()) return lost(header.status().text());
        bytes.resize(header->payload_bytes);
        TRY(receive(bytes.data(), bytes.size(), deadline.at_most_ms(10'000)));
        if (header->number != number) continue;  // of a request given up earlier
        unanswered_.reset();
        auto answer = decode_control_answer(bytes);
        if (!answer.ok()) return lost(answer.status().text());
        if (const auto* failed = std::get_if<control::Failed>(&*answer))
            return Status(failed->code == Code::ok ? Code::internal : failed->code, failed->text);
        return answer;
    }
}

Result<control::Welcome> Connection::hello(bool is_application, Deadline deadline) {
    control::Hello hello;
    hello.program_version = CAIRN_VERSION;
    hello.pid = static_cast<std::uint64_t>(::getpid());
    hello.is_application = is_application;
    TRY_ASSIGN(control::Welcome welcome, ask_for<control::Welcome>(hello, deadline));
    if (welcome.protocol != control::protocol)
        return Status(Code::unsupported,
                      "the running daemon is cairnd " + welcome.program_version + " (protocol " +
                          std::to_string(welcome.protocol) + "), this library is " CAIRN_VERSION " (protocol " +
                          std::to_string(control::protocol) + "): stop it with `cairn stop`, or let it end");
    return welcome;
}

}  // namespace cairn
