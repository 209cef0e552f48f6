#include "world/real/hail.hpp"

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "world/real/fabric_address.hpp"

namespace cairn {

namespace {

constexpr char magic[8] = {'C', 'R', 'N', 'C', 'A', 'R', 'D', '1'};
constexpr std::size_t said_bytes = 16 << 10;  // more than a frame of 9000
constexpr int answers_at_once = 64;
constexpr Nanos descriptors_wait = second;  // none left: the connections stay in the kernel's queue

Bytes said_by(std::uint64_t id) {
    Bytes said(said_bytes);
    std::memcpy(said.data(), magic, sizeof magic);
    for (int i = 0; i < 8; ++i) said[sizeof magic + static_cast<std::size_t>(i)] = static_cast<std::byte>(id >> (8 * i));
    return said;
}

// A socket address, as libfabric's text has it.
struct Place {
    sockaddr_storage storage{};
    socklen_t bytes = 0;
    sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};
Result<Place> place_of(const std::string& text) {
    TRY_ASSIGN(const Bytes raw, parse_fabric_address("tcp", FI_SOCKADDR, "tcp://" + text));
    Place place;
    std::memcpy(&place.storage, raw.data(), raw.size());
    place.bytes = static_cast<socklen_t>(raw.size());
    return place;
}
// Port 0, the kernel's choice, is none that an address has.
Result<Place> place_at(const std::string& host, std::uint16_t port) {
    TRY_ASSIGN(Place place, place_of(host_port(host, 1)));
    if (place.storage.ss_family == AF_INET) reinterpret_cast<sockaddr_in&>(place.storage).sin_port = htons(port);
    else reinterpret_cast<sockaddr_in6&>(place.storage).sin6_port = htons(port);
    return place;
}

int open_socket(const Place& place, int type) { return ::socket(place.storage.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

bool go_out_from(int fd, const std::string& from) {
    if (from.empty()) return true;
    Result<Place> place = place_at(from, 0);
    const int on = 1;
    (void)::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return place.ok() && ::bind(fd, place->get(), place->bytes) == 0;
}

}  // namespace

Result<std::unique_ptr<Beacon>> Beacon::open(Loop& loop, const std::string& bind, std::uint64_t id, std::uint16_t port) {
    std::unique_ptr<Beacon> beacon(new Beacon(loop, -1, id));
    TRY(beacon->listen(bind, port).within("listening for daemons that look for a way here"));
    TRY(beacon->watch());
    return beacon;
}

Status Beacon::listen(const std::string& bind, std::uint16_t port) {
    TRY_ASSIGN(Place place, place_at(bind, port));
    fd_ = open_socket(place, SOCK_STREAM);
    const int send_bytes = 4 * said_bytes;  // so that all is handed over at once
    const bool listens = fd_ >= 0 && ::setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes) == 0 &&
                         ::bind(fd_, place.get(), place.bytes) == 0 && ::listen(fd_, SOMAXCONN) == 0 && ::getsockname(fd_, place.get(), &place.bytes) == 0;
    if (!listens) return Status::from_errno(errno, "a socket at " + bind);
    port_ = ntohs(place.storage.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(place.storage).sin_port : reinterpret_cast<sockaddr_in6&>(place.storage).sin6_port);
    return {};
}

Beacon::~Beacon() {
    loop_.cancel(again_);
    loop_.unwatch(watch_);
    if (fd_ >= 0) ::close(fd_);
}

Status Beacon::watch() {
    TRY_ASSIGN(watch_, loop_.watch_readable(fd_, [this] { answer(); }));
    return {};
}

void Beacon::answer() {
    const Bytes said = said_by(id_);
    for (int i = 0; i < answers_at_once; ++i) {
        const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)::send(fd, said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            ::close(fd);  // the kernel sends what it has
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) return;
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) continue;  // of one connection that ended
        loop_.unwatch(std::exchange(watch_, 0));
        again_ = loop_.at(loop_.in(descriptors_wait), [this] {
            again_ = 0;
            (void)watch();
        });
        return;
    }
}

Hail::Hail(Loop& loop, To to, Done done)
    : loop_(loop), to_(std::move(to)), done_(std::move(done)), begun_(loop.now()), calls_(to_.host_ports.size()), heard_(calls_.size(), Heard::nothing) {
    for (std::size_t way = 0; way < calls_.size(); ++way) heard_[way] = begin(way);
    timer_ = loop_.at(begun_, [this] { look(); });  // never from within
}

Hail::~Hail() {
    loop_.cancel(timer_);
    for (std::size_t way = 0; way < calls_.size(); ++way) end(way, heard_[way]);
}

Heard Hail::begin(std::size_t way) {
    Result<Place> place = place_of(to_.host_ports[way]);
    if (!place.ok()) return Heard::not_it;
    Call& call = calls_[way];
    call.fd = open_socket(*place, SOCK_STREAM);
    const bool begun = call.fd >= 0 && go_out_from(call.fd, to_.from) && (::connect(call.fd, place->get(), place->bytes) == 0 || errno == EINPROGRESS);
    Result<Loop::WatchId> watch = begun ? loop_.watch_readable(call.fd, [this, way] {
        if (hear(way)) look();
    }) : Result<Loop::WatchId>(unavailable("no connection"));
    if (watch.ok()) call.watch = *watch;
    else end(way, Heard::not_it);
    return watch.ok() ? Heard::nothing : Heard::not_it;
}

void Hail::end(std::size_t way, Heard heard) {
    Call& call = calls_[way];
    heard_[way] = heard;
    loop_.unwatch(std::exchange(call.watch, 0));
    if (call.fd >= 0) ::close(std::exchange(call.fd, -1));
}

// True when all of its answer has come, or none will.
bool Hail::hear(std::size_t way) {
    Call& call = calls_[way];
    const std::size_t before = call.got.size();
    call.got.resize(said_bytes);
    const ssize_t got = ::recv(call.fd, call.got.data() + before, said_bytes - before, MSG_DONTWAIT);
    call.got.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    if (got > 0 && call.got.size() < said_bytes) return false;
    end(way, call.got == said_by(to_.id) ? Heard::it : Heard::not_it);
    return true;
}

void Hail::look() {
    const Nanos spent = loop_.now() - begun_;
    const Waiting waiting = spent >= to_.at_most ? Waiting::over : spent >= to_.patience ? Waiting::for_any : Waiting::for_best;
    for (std::size_t way = 0; way < calls_.size() && waiting != Waiting::for_best; ++way)  // it may be this loop that was late
        if (calls_[way].fd >= 0) (void)hear(way);
    WayChoice choice = choose_way(heard_, waiting);
    const bool waits_for_one = to_.in_use && choice.way != to_.in_use && waiting != Waiting::over && heard_[*to_.in_use] == Heard::nothing;
    if (waits_for_one) choice = {};
    loop_.cancel(std::exchange(timer_, 0));
    if (!choice.is_made) {
        timer_ = loop_.at(begun_ + (waiting == Waiting::for_best ? std::min(to_.patience, to_.at_most) : to_.at_most), [this] { look(); });
        return;
    }
    if (!done_) return;
    const Done done = std::exchange(done_, nullptr);
    const std::vector<Heard> heard = heard_;
    done(choice.way, heard);  // this may be gone
}

Route find_route(const std::string& to, const std::string& from, const std::vector<HostCard>& host) {
    Route route;
    Result<Place> place = place_of(host_port(to, 9));  // nothing is sent
    if (!place.ok()) return route;
    const int fd = open_socket(*place, SOCK_DGRAM);
    if (fd < 0) return route;
    Place self = *place;
    route.exists = go_out_from(fd, from) && ::connect(fd, place->get(), place->bytes) == 0 && ::getsockname(fd, self.get(), &self.bytes) == 0;
    ::close(fd);
    const Result<std::string> text = print_fabric_address("tcp", FI_SOCKADDR, ByteView(reinterpret_cast<const std::byte*>(&self.storage), self.bytes));
    if (!route.exists || !text.ok()) return route;
    const std::string address = host_of(text->substr(std::string_view("tcp://").size()));
    for (const HostCard& card : host)
        if (card.address == address) route.over = card;
    return route;
}

}  // namespace cairn
