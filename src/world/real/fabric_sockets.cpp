// A TCP socket of this process is one of the provider's, or of a few others that are not asked about here. A connection accepted by the provider is a TCP socket of this process whose local port is the endpoint's.
#include "world/real/fabric_sockets.hpp"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fabric.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>

#include "world/real/fabric_address.hpp"

namespace cairn {

namespace {

constexpr int idle_s = 10, interval_s = 5, probes = 4;
constexpr unsigned sent_again = 2;  // timeouts in a row, each twice as long as the one before: half a second at least

std::uint16_t local_port(int descriptor) {
    sockaddr_storage address{};
    socklen_t bytes = sizeof address;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return 0;
    if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    return 0;
}

bool is_listening(int descriptor) {
    int listening = 0;
    socklen_t bytes = sizeof listening;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) == 0 && listening != 0;
}

template <class Action>
void for_each_descriptor(Action action) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
    while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr)
        if (const int descriptor = std::atoi(entry->d_name); descriptor > 2) action(descriptor);
}

template <class Action>
void for_each_accepted(std::uint16_t port, Action action) {
    if (port == 0) return;
    for_each_descriptor([&](int descriptor) {
        if (local_port(descriptor) == port && !is_listening(descriptor)) action(descriptor);
    });
}

}  // namespace

void probe_accepted_sockets(std::uint16_t port) {
    for_each_accepted(port, [](int descriptor) {
        const int on = 1;
        (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
        (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
        (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
        (void)::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    });
}

std::set<std::string> stalled_destinations() {
    std::set<std::string> stalled;
    for_each_descriptor([&](int descriptor) {
        tcp_info info{};
        socklen_t bytes = sizeof info;
        if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 || info.tcpi_retransmits < sent_again) return;
        sockaddr_storage peer{};
        bytes = sizeof peer;
        if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) return;
        const auto text = print_fabric_address("tcp", FI_SOCKADDR, ByteView(reinterpret_cast<const std::byte*>(&peer), bytes));
        if (text.ok()) stalled.insert(text->substr(std::string_view("tcp://").size()));
    });
    return stalled;
}

void end_accepted_sockets(std::uint16_t port) {
    for_each_accepted(port, [](int descriptor) { (void)::shutdown(descriptor, SHUT_RDWR); });
}

}  // namespace cairn
