// Beacon and Hail: finding out over which cards another daemon is reached.
//
// A daemon with several cards has a beacon: it listens at all of them, says the daemon's id to whoever connects, with as many bytes behind it as fill whole
// frames, and closes. It reads nothing, keeps nothing for anybody, and tells no secret. Who wants to reach the daemon hails it over all ways at once,
// and knows from the answers which ways lead to it: a way without a carrier, through a hole, to another machine with the same address, or to this one, gives none,
// nor does one that loses long frames.
//
// Everything runs on the loop's thread and nothing waits without a bound.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "world/real/loop.hpp"
#include "world/real/ways.hpp"

namespace cairn {

class Beacon {
  public:
    // At every address of a family ("0.0.0.0" or "::"), or at one. Port 0: the kernel's choice.
    static Result<std::unique_ptr<Beacon>> open(Loop& loop, const std::string& bind, std::uint64_t id, std::uint16_t port = 0);
    ~Beacon();
    Beacon(const Beacon&) = delete;
    std::uint16_t port() const { return port_; }
    std::uint64_t id() const { return id_; }

  private:
    Beacon(Loop& loop, int fd, std::uint64_t id) : loop_(loop), fd_(fd), id_(id) {}
    Status listen(const std::string& bind, std::uint16_t port);
    Status watch();
    void answer();

    Loop& loop_;
    int fd_;
    std::uint64_t id_;
    std::uint16_t port_ = 0;
    Loop::WatchId watch_ = 0;
    Clock::TimerId again_ = 0;
};

// Once, to one daemon.
class Hail {
  public:
    struct To {
        std::uint64_t id = 0;
        std::vector<std::string> host_ports;  // of its beacon, best first
        std::string from;                     // address of this host to go out from; empty: the kernel's choice
        Nanos patience = second;              // for better ways than one that has answered
        Nanos at_most = 3 * second;
        std::optional<std::size_t> in_use = std::nullopt;  // no other way is chosen before it has answered, or had its time: behind what is under way over it an answer is late
    };
    // Called once, from the loop. The hail may be destroyed within it.
    using Done = std::function<void(std::optional<std::size_t> way, const std::vector<Heard>& heard)>;
    Hail(Loop& loop, To to, Done done);
    ~Hail();
    Hail(const Hail&) = delete;

  private:
    struct Call {
        int fd = -1;
        Loop::WatchId watch = 0;
        Bytes got;
    };
    Heard begin(std::size_t way);
    bool hear(std::size_t way);
    void end(std::size_t way, Heard heard);
    void look();

    Loop& loop_;
    const To to_;
    Done done_;
    const Nanos begun_;
    std::vector<Call> calls_;
    std::vector<Heard> heard_;
    Clock::TimerId timer_ = 0;
};

// How this host sends to an address, going out `from` (empty: the kernel's choice). `host`: its cards.
Route find_route(const std::string& to, const std::string& from, const std::vector<HostCard>& host);

}  // namespace cairn
