// Ways: over which of its cards another daemon is reached. Pure.
//
// Every daemon chooses for itself, for each one that it sends to: the fastest way over which that one answers. So nothing has to be agreed on, two nodes
// that share a fast card use it whatever a third one lacks, and a card that dies costs those who use it one look at the others.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "world/real/card_address.hpp"
#include "world/real/cards.hpp"

namespace cairn {

// How this host would send to one of those addresses, as its kernel says.
struct Route {
    bool exists = false;
    HostCard over;  // without an interface: not known
};

struct Way {
    std::string host_port;  // of the other daemon
    std::string interface;  // of this host
    std::uint32_t rate_mbps = 0;  // of the slower end; 0: not known
    bool is_direct = false;  // both ends are in one subnet
    bool is_usual = false;

    bool operator==(const Way&) const = default;
};

// Best first: the faster ones, then those through no router, then in the other daemon's order. Without those to which there is no route.
// `routes`: as many as cards.
std::vector<Way> rank_ways(const CardsAddress& to, const std::vector<Route>& routes);

// What was heard over a way: nothing yet, the daemon that is meant, or that it is not there.
enum class Heard : std::uint8_t { nothing, it, not_it };
// Where the waiting stands: for the best of all, for any, or over.
enum class Waiting : std::uint8_t { for_best, for_any, over };

struct WayChoice {
    bool is_made = false;
    std::optional<std::size_t> way;  // none: nobody answered over any
    bool operator==(const WayChoice&) const = default;
};
WayChoice choose_way(std::span<const Heard> heard, Waiting waiting);

}  // namespace cairn
