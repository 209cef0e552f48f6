// By the kernel's own macros: with libmnl asking and hearing are hardly shorter (its callback and what that is given take the lines that its loops save), and every
// node would need one more library.
#include "daemon/traffic.hpp"

#include <dirent.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace cairn {

namespace {

constexpr Nanos look_up_again = second;  // whose a new connection is: reads /proc
constexpr Nanos list_again = second;     // new connections
constexpr std::uint32_t states = 1u << 1 | 1u << 4 | 1u << 5 | 1u << 8;  // established, and on their way out with data: FIN_WAIT1, 2, CLOSE_WAIT

bool within_host(const inet_diag_msg& connection) {
    const __be32* const from = connection.id.idiag_src;
    const __be32* const to = connection.id.idiag_dst;
    if (std::memcmp(from, to, connection.idiag_family == AF_INET ? 4 : 16) == 0) return true;
    const auto* const first = reinterpret_cast<const unsigned char*>(connection.idiag_family == AF_INET ? to : to + 3);
    const bool mapped = connection.idiag_family == AF_INET6 && to[0] == 0 && to[1] == 0 && to[2] == htonl(0xFFFF);
    return (connection.idiag_family == AF_INET || mapped) && *first == 127;
}

// Of a connection, since it began. False where the kernel is too old to say.
bool read_info(const inet_diag_msg& connection, std::size_t bytes, Traffic& out) {
    auto left = static_cast<int>(bytes - NLMSG_ALIGN(sizeof connection));
    constexpr std::size_t needed = offsetof(tcp_info, tcpi_bytes_received) + sizeof(tcp_info::tcpi_bytes_received);
    const auto* attribute = reinterpret_cast<const rtattr*>(reinterpret_cast<const char*>(&connection) + NLMSG_ALIGN(sizeof connection));
    for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
        if (attribute->rta_type != INET_DIAG_INFO || RTA_PAYLOAD(attribute) < needed) continue;
        tcp_info info{};
        std::memcpy(&info, RTA_DATA(attribute), std::min<std::size_t>(RTA_PAYLOAD(attribute), sizeof info));
        out = {info.tcpi_bytes_received, info.tcpi_bytes_acked};
        return true;
    }
    return false;
}

Result<std::uint64_t> read_counter(const std::string& path) {
    std::uint64_t value = 0;
    if (!(std::ifstream(path) >> value)) return not_found("no counter can be read in " + path);
    return value;
}

}  // namespace

Result<ApplicationTraffic> ApplicationTraffic::open(Count count) {
    Descriptor socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (socket.get() < 0) return Status(Code::unsupported, std::string("the kernel does not tell of connections: ") + std::strerror(errno));
    const timeval patience = {1, 0};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ApplicationTraffic traffic(std::move(socket), count);
    Traffic ignored;
    TRY(traffic.look_at_all(ignored));
    return traffic;
}

Result<Traffic> ApplicationTraffic::since_last(const std::set<std::uint64_t>& processes, Nanos now) {
    const bool list = processes != processes_ || now - looked_at_all_ >= list_again;
    if (processes != processes_ || (has_strangers_ && now - looked_up_ >= look_up_again)) {
        find_owners(processes);
        looked_up_ = now;
    }
    Traffic moved;
    if (list) {
        TRY(look_at_all(moved));
        looked_at_all_ = now;
    } else {
        TRY(look_at_theirs(moved));
    }
    return moved;
}

Status ApplicationTraffic::look_at_all(Traffic& moved) {
    for (auto& [inode, connection] : connections_) connection.seen = false;
    for (const std::uint8_t family : {AF_INET, AF_INET6}) {
        TRY(ask(family, nullptr, 0));
        TRY(hear(SIZE_MAX, moved));
    }
    std::erase_if(connections_, [](const auto& entry) { return !entry.second.seen; });
    return {};
}

Status ApplicationTraffic::look_at_theirs(Traffic& moved) {
    for (const auto& [inode, connection] : connections_) {
        if (!connection.is_theirs) continue;
        TRY(ask(connection.family, &connection.id, inode));
        TRY(hear(1, moved));
    }
    return {};
}

// For one connection, or for the list of all.
Status ApplicationTraffic::ask(std::uint8_t family, const inet_diag_sockid* one, std::uint32_t sequence) {
    struct {
        nlmsghdr header;
        inet_diag_req_v2 request;
    } ask{};
    const int kind = one ? NLM_F_REQUEST : NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH;
    ask.header = {sizeof ask, SOCK_DIAG_BY_FAMILY, static_cast<__u16>(kind), sequence, 0};
    ask.request.sdiag_family = family;
    ask.request.sdiag_protocol = IPPROTO_TCP;
    ask.request.idiag_ext = 1 << (INET_DIAG_INFO - 1);
    ask.request.idiag_states = states;
    if (one) ask.request.id = *one;
    if (::send(socket_.get(), &ask, sizeof ask, 0) < 0) return Status::from_errno(errno, "asking the kernel for connections");
    return {};
}

// So many answers, or to the end of the list. One that is gone meanwhile is an answer, too.
Status ApplicationTraffic::hear(std::size_t answers, Traffic& moved) {
    const bool is_list = answers == SIZE_MAX;
    alignas(nlmsghdr) static thread_local char buffer[32 << 10];
    while (answers > 0) {
        const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Status::from_errno(errno, "the kernel's answer about connections");
        auto left = static_cast<unsigned>(got);
        for (const auto* each = reinterpret_cast<const nlmsghdr*>(buffer); NLMSG_OK(each, left); each = NLMSG_NEXT(each, left)) {
            if (each->nlmsg_type == NLMSG_DONE) return {};
            if (each->nlmsg_type == NLMSG_ERROR && is_list) return {Code::unsupported, "the kernel does not tell of TCP connections"};
            if (each->nlmsg_type != NLMSG_ERROR) take(NLMSG_DATA(each), NLMSG_PAYLOAD(each, 0), moved);
            --answers;
        }
    }
    return {};
}

void ApplicationTraffic::take(const void* message, std::size_t bytes, Traffic& moved) {
    const auto& connection = *static_cast<const inet_diag_msg*>(message);
    Traffic total;
    if (bytes < sizeof connection || connection.idiag_uid != ::geteuid()) return;
    if (count_ == Count::leaving && within_host(connection)) return;
    if (!read_info(connection, bytes, total)) return;
    const auto [place, is_new] = connections_.try_emplace(connection.idiag_inode);
    Connection& known = place->second;
    if (is_new) {
        known.is_theirs = theirs_.count(connection.idiag_inode) != 0;
        has_strangers_ |= !known.is_theirs;
    } else if (known.is_theirs) {
        moved.received_bytes += total.received_bytes - std::min(known.received_bytes, total.received_bytes);
        moved.sent_bytes += total.sent_bytes - std::min(known.sent_bytes, total.sent_bytes);
    }
    known.received_bytes = total.received_bytes;
    known.sent_bytes = total.sent_bytes;
    known.family = connection.idiag_family;
    known.id = connection.id;
    known.seen = true;
}

void ApplicationTraffic::find_owners(const std::set<std::uint64_t>& processes) {
    processes_ = processes;
    theirs_.clear();
    for (const std::uint64_t process : processes) {
        const std::string folder = "/proc/" + std::to_string(process) + "/fd";
        const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(folder.c_str()), ::closedir);
        while (const dirent* entry = list ? ::readdir(list.get()) : nullptr) {
            char target[64] = {};
            unsigned inode = 0;
            if (::readlinkat(::dirfd(list.get()), entry->d_name, target, sizeof target - 1) <= 0) continue;
            if (std::sscanf(target, "socket:[%u]", &inode) == 1) theirs_.insert(inode);
        }
    }
    for (auto& [inode, connection] : connections_) connection.is_theirs = theirs_.count(inode) != 0;
    has_strangers_ = false;  // the others are not theirs, as of now
}

std::string interface_of(const std::string& address) {
    const std::size_t begin = address.find("://");
    const std::size_t end = address.rfind(':');
    if (begin == std::string::npos || end <= begin + 3) return {};
    std::string host = address.substr(begin + 3, end - begin - 3);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
    for (const ifaddrs* each = list; each; each = each->ifa_next) {
        const int family = each->ifa_addr ? each->ifa_addr->sa_family : AF_UNSPEC;
        if ((family != AF_INET && family != AF_INET6) || (each->ifa_flags & IFF_LOOPBACK)) continue;
        char text[NI_MAXHOST] = {};
        const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        if (::getnameinfo(each->ifa_addr, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 && host == text) return each->ifa_name;
    }
    return {};
}

// /proc and not /sys, which in a container often shows the host's cards.
Result<Traffic> LinkCounters::of_interface() const {
    std::ifstream list("/proc/self/net/dev");
    for (std::string line; std::getline(list, line);) {
        const std::size_t colon = line.find(':');
        const std::size_t begin = line.find_first_not_of(' ');
        if (colon == std::string::npos || line.substr(begin, colon - begin) != interface_) continue;
        unsigned long long received = 0, sent = 0;
        if (std::sscanf(line.c_str() + colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &received, &sent) == 2) return Traffic{received, sent};
    }
    return not_found("no interface " + interface_);
}

Result<Traffic> LinkCounters::read() const {
    if (!interface_.empty()) return of_interface();
    Traffic traffic;
    if (std::filesystem::exists(directory_ + "/port_rcv_data")) {
        TRY_ASSIGN(const std::uint64_t received, read_counter(directory_ + "/port_rcv_data"));
        TRY_ASSIGN(const std::uint64_t sent, read_counter(directory_ + "/port_xmit_data"));
        return Traffic{received * 4, sent * 4};
    }
    TRY_ASSIGN(traffic.received_bytes, read_counter(directory_ + "/rx_bytes"));
    TRY_ASSIGN(traffic.sent_bytes, read_counter(directory_ + "/tx_bytes"));
    return traffic;
}

}  // namespace cairn
