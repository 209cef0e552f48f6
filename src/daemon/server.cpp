// asio's callbacks, each holding the connection by shared_ptr. What is closed stays harmless: every callback asks
// `open` first.
#include "daemon/server.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <asio/buffer.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "base/log.hpp"
#include "format/control.hpp"
#include "world/real/asio.hpp"

namespace cairn {

namespace {

using Protocol = asio::local::stream_protocol;
// A length is only believed as far as bytes follow it: memory grows with what has come in.
constexpr std::size_t read_step_bytes = 1 << 20;
constexpr Nanos accept_pause = 100 * millisecond;

// As many of the bytes as go at once, and the descriptor with the first of them.
ssize_t send_with(int socket, ByteView bytes, int descriptor) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* const beside = CMSG_FIRSTHDR(&message);
    beside->cmsg_level = SOL_SOCKET;
    beside->cmsg_type = SCM_RIGHTS;
    beside->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(beside), &descriptor, sizeof descriptor);
    return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

struct Server::State {
    State(Loop& l, Handler& h, ServerLimits m) : loop(l), handler(&h), limits(m), acceptor(l.context()) {}
    Loop& loop;
    Handler* handler;
    ServerLimits limits;
    Protocol::acceptor acceptor;
    std::unordered_map<ConnectionId, std::shared_ptr<Connection>> connections;
    ConnectionId last = 0;

    static void accept(const std::shared_ptr<State>& self);
    void admit(const std::shared_ptr<State>& self, Protocol::socket socket);
};

struct Server::Connection : std::enable_shared_from_this<Connection> {
    Connection(std::shared_ptr<State> s, Protocol::socket socket_, ConnectionId id_, std::uint64_t pid_)
        : state(std::move(s)), socket(std::move(socket_)), id(id_), pid(pid_) {}
    std::shared_ptr<State> state;
    Protocol::socket socket;
    const ConnectionId id;
    const std::uint64_t pid;
    bool open = true;
    bool reading = false;
    bool greeted = false;  // its first frame has come
    bool last_words = false;
    std::size_t requests_open = 0;
    std::byte header[control_header_bytes] = {};
    Bytes payload;
    struct Frame {
        Bytes bytes;
        Descriptor beside;  // given with the first byte
    };
    std::deque<Frame> answers;  // the first one is being written
    std::uint64_t queued_bytes = 0;
    std::size_t written_bytes = 0;  // of the first answer
    Clock::TimerId write_timer = 0, hello_timer = 0;

    void start();
    void read_frame();
    void read_payload(ControlHeader frame);
    void take(const ControlHeader& frame);
    void queue(Frame frame);
    void write_next();
    void wrote(const asio::error_code& error, std::size_t bytes);
    void hand_over();
    void close(const char* event, const std::string& why);
};

void Server::State::accept(const std::shared_ptr<State>& self) {
    self->acceptor.async_accept([self](const asio::error_code& error, Protocol::socket socket) {
        if (!self->acceptor.is_open()) return;
        if (!error) {
            self->admit(self, std::move(socket));
            accept(self);
        } else if (error == asio::error::operation_aborted) {
            return;
        } else {  // no descriptors left, mostly: they come back
            log_warning("accept-failed", {{"error", error.message()}});
            self->loop.at(self->loop.in(accept_pause), [self] {
                if (self->acceptor.is_open()) accept(self);
            });
        }
    });
}

void Server::State::admit(const std::shared_ptr<State>& self, Protocol::socket socket) {
    const Result<Peer> peer = peer_of(socket.native_handle());
    if (!peer.ok() || peer->uid != ::geteuid()) {
        log_warning("connection-refused", {{"uid", peer.ok() ? std::to_string(peer->uid) : peer.status().to_string()}});
        return;
    }
    if (connections.size() >= limits.connections_max) {
        log_warning("connection-refused", {{"connections", connections.size()}});
        return;
    }
    const ConnectionId id = ++last;
    auto connection = std::make_shared<Connection>(self, std::move(socket), id, peer->pid);
    connections.emplace(id, connection);
    connection->start();
}

void Server::Connection::start() {
    hello_timer = state->loop.at(state->loop.in(state->limits.hello_wait), [this] {
        hello_timer = 0;
        close("connection-silent", "no request came");
    });
    read_frame();
}

void Server::Connection::read_frame() {
    if (!open || reading || last_words || requests_open >= state->limits.requests_max) return;
    reading = true;
    auto self = shared_from_this();
    asio::async_read(socket, asio::buffer(header), [this, self](const asio::error_code& error, std::size_t) {
        if (!open) return;
        if (error) return close(nullptr, error.message());
        const Result<ControlHeader> frame = decode_control_header(header);
        if (!frame.ok()) return close("malformed-frame", frame.status().text());
        payload.clear();
        read_payload(*frame);
    });
}

void Server::Connection::read_payload(ControlHeader frame) {
    const std::size_t have = payload.size();
    const std::size_t step = std::min<std::size_t>(frame.payload_bytes - have, read_step_bytes);
    payload.resize(have + step);
    auto self = shared_from_this();
    asio::async_read(socket, asio::buffer(payload.data() + have, step),
                     [this, self, frame](const asio::error_code& error, std::size_t) {
                         if (!open) return;
                         if (error) return close(nullptr, error.message());
                         if (payload.size() < frame.payload_bytes) return read_payload(frame);
                         take(frame);
                     });
}

void Server::Connection::take(const ControlHeader& frame) {
    reading = false;
    state->loop.cancel(std::exchange(hello_timer, 0));
    Result<control::Request> request = decode_control_request(payload);
    if (payload.capacity() > read_step_bytes) Bytes().swap(payload);
    if (!request.ok()) return close("malformed-frame", request.status().text());
    if (greeted != !std::holds_alternative<control::Hello>(*request))
        return close("malformed-frame", greeted ? "a second hello" : "the first request is not a hello");
    greeted = true;
    ++requests_open;
    auto self = shared_from_this();
    state->handler->on_request(id, frame.number, std::move(request).value());
    read_frame();
}

void Server::Connection::queue(Frame frame) {
    if (!open) return;
    queued_bytes += frame.bytes.size();
    if (queued_bytes > state->limits.queued_bytes_max) return close("connection-stuck", "it does not read its answers");
    answers.push_back(std::move(frame));
    if (answers.size() == 1) write_next();
}

// In steps, so that the timer measures whether the client takes anything at all, not how long a large answer takes.
void Server::Connection::write_next() {
    if (!open || answers.empty()) return;
    auto self = shared_from_this();
    state->loop.cancel(write_timer);
    write_timer = state->loop.at(state->loop.in(state->limits.write_wait), [this] {
        write_timer = 0;
        close("connection-stuck", "it does not read its answers");
    });
    if (answers.front().beside.get() >= 0 && written_bytes == 0) return hand_over();
    const auto rest = asio::buffer(answers.front().bytes) + written_bytes;
    socket.async_write_some(rest, [this, self](const asio::error_code& error, std::size_t bytes) { wrote(error, bytes); });
}

void Server::Connection::wrote(const asio::error_code& error, std::size_t bytes) {
    if (!open) return;
    const auto self = shared_from_this();
    state->loop.cancel(std::exchange(write_timer, 0));
    if (error) return close(nullptr, error.message());
    written_bytes += bytes;
    if (written_bytes == answers.front().bytes.size()) {
        queued_bytes -= written_bytes;
        written_bytes = 0;
        answers.pop_front();
    }
    if (!answers.empty()) return write_next();
    if (last_words) return close(nullptr, {});
}

// What asio has no call for: a descriptor goes with the bytes (SCM_RIGHTS).
void Server::Connection::hand_over() {
    auto self = shared_from_this();
    socket.async_wait(Protocol::socket::wait_write, [this, self](const asio::error_code& error) {
        if (!open) return;
        if (error) return wrote(error, 0);
        Frame& frame = answers.front();
        const ssize_t sent = send_with(socket.native_handle(), frame.bytes, frame.beside.get());
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return hand_over();
        if (sent < 0) return wrote(asio::error_code(errno, asio::error::get_system_category()), 0);
        frame.beside = Descriptor();
        wrote({}, static_cast<std::size_t>(sent));
    });
}

// `event`: null for an end that needs no words.
void Server::Connection::close(const char* event, const std::string& why) {
    if (!open) return;
    auto self = shared_from_this();
    open = false;
    state->loop.cancel(std::exchange(write_timer, 0));
    state->loop.cancel(std::exchange(hello_timer, 0));
    if (event) log_warning(event, {{"connection", id}, {"why", why}});
    asio::error_code ignored;
    socket.close(ignored);
    state->connections.erase(id);
    if (state->handler) state->handler->on_disconnect(id);
}

Server::Server(Loop& loop, Handler& handler, ServerLimits limits)
    : state_(std::make_shared<State>(loop, handler, limits)) {}

Server::~Server() {
    state_->handler = nullptr;
    stop_accepting();
    const auto connections = state_->connections;
    for (const auto& [id, connection] : connections) connection->close(nullptr, {});
}

Status Server::accept_on(Descriptor listening) {
    asio::error_code error;
    state_->acceptor.assign(Protocol(), listening.get(), error);
    if (error) return Status::from_errno(error.value(), "the daemon's socket");
    listening.release();
    State::accept(state_);
    return {};
}

void Server::stop_accepting() {
    asio::error_code ignored;
    state_->acceptor.close(ignored);
}

void Server::answer(ConnectionId to, std::uint64_t number, const control::Answer& answer) {
    const auto found = state_->connections.find(to);
    if (found == state_->connections.end()) return;
    const std::shared_ptr<Connection> connection = found->second;
    CAIRN_CHECK(connection->requests_open > 0);
    --connection->requests_open;
    Connection::Frame frame{encode_control(number, answer), Descriptor()};
    if (const auto* wanted = std::get_if<control::Wanted>(&answer); wanted && wanted->descriptor >= 0) {
        frame.beside = Descriptor(::fcntl(wanted->descriptor, F_DUPFD_CLOEXEC, 0));  // its window may go before the answer does
        if (frame.beside.get() < 0) return connection->close("no-descriptor", Status::from_errno(errno, "giving a window").text());
    }
    connection->queue(std::move(frame));
    connection->read_frame();  // goes on where too many were open
}

void Server::disconnect_after_answers(ConnectionId id) {
    const auto found = state_->connections.find(id);
    if (found == state_->connections.end()) return;
    const std::shared_ptr<Connection> connection = found->second;
    connection->last_words = true;
    if (connection->answers.empty()) connection->close(nullptr, {});
}

std::size_t Server::connections() const { return state_->connections.size(); }

std::uint64_t Server::process_of(ConnectionId connection) const {
    const auto place = state_->connections.find(connection);
    return place == state_->connections.end() ? 0 : place->second->pid;
}

bool Server::answers_are_out() const {
    for (const auto& [id, connection] : state_->connections)
        if (!connection->answers.empty()) return false;
    return true;
}

}  // namespace cairn
