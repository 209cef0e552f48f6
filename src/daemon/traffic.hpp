// Traffic: what an application's processes sent and received over TCP connections that leave this host, asked of the kernel socket by socket
// (sock_diag, no privilege needed). And what a network card carried in all, from its counters.
//
// Socket by socket, because it is exact: the counters of a card minus the daemon's own bytes would take what lies between a write and the wire,
// what the file system sends besides, and other daemons of the same host for the application. The kernel walks its whole table to list
// connections, which takes about a millisecond on a large machine; so that happens once a second, and in between it is asked for theirs alone.
#pragma once

#include <linux/inet_diag.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/door.hpp"
#include "world/clock.hpp"

namespace cairn {

struct Traffic {
    std::uint64_t received_bytes = 0, sent_bytes = 0;
    std::uint64_t larger_bytes() const { return std::max(received_bytes, sent_bytes); }
};

class ApplicationTraffic {
  public:
    enum class Count : std::uint8_t { leaving, all };  // all: connections within this host too
    // unsupported where the kernel does not tell.
    static Result<ApplicationTraffic> open(Count count = Count::leaving);

    // Moved by these processes since the last call; the first one tells nothing, and so does the first sight of a process.
    Result<Traffic> since_last(const std::set<std::uint64_t>& processes, Nanos now);

  private:
    ApplicationTraffic(Descriptor socket, Count count) : socket_(std::move(socket)), count_(count) {}
    struct Connection {
        std::uint64_t received_bytes = 0, sent_bytes = 0;
        bool is_theirs = false;
        bool seen = false;
        std::uint8_t family = 0;
        inet_diag_sockid id{};
    };
    Status look_at_all(Traffic& moved);
    Status look_at_theirs(Traffic& moved);
    Status ask(std::uint8_t family, const inet_diag_sockid* one, std::uint32_t sequence);
    Status hear(std::size_t answers, Traffic& moved);
    void take(const void* message, std::size_t bytes, Traffic& moved);
    void find_owners(const std::set<std::uint64_t>& processes);

    Descriptor socket_;
    Count count_;
    std::map<std::uint32_t, Connection> connections_;  // by inode
    std::set<std::uint32_t> theirs_;                   // sockets of the processes, as last looked up
    std::set<std::uint64_t> processes_;
    Nanos looked_up_ = 0, looked_at_all_ = 0;
    bool has_strangers_ = false;  // a connection came whose owner was not looked up
};

// The name of the interface with this address ("tcp://192.0.2.7:40123"), empty when there is none, or when it is the loopback one.
std::string interface_of(const std::string& address);

// Counters of a card: an interface's, or a directory with rx_bytes and tx_bytes, or with port_rcv_data and port_xmit_data (InfiniBand: four
// bytes each).
class LinkCounters {
  public:
    static LinkCounters in(std::string directory) { return {std::move(directory), {}}; }
    static LinkCounters of(std::string interface) { return {{}, std::move(interface)}; }
    Result<Traffic> read() const;

  private:
    LinkCounters(std::string directory, std::string interface) : directory_(std::move(directory)), interface_(std::move(interface)) {}
    Result<Traffic> of_interface() const;
    std::string directory_, interface_;
};

}  // namespace cairn
