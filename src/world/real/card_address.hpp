// The address of a daemon that is reached over several cards, as text: "tcp+cards://<id>@<port>/10.1.0.1:40123=100000/10.0.0.1:40123=1000,usual". One string
// like any other address, so that rosters, records and messages carry it, and names the daemon for as long as it lives. Pure.
//
// `id` is drawn by each daemon. It says it at `port` to whoever connects there (hail.hpp): an address that many hosts have, or that is another's, is known by that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace cairn {

struct CardAddress {
    std::string host_port;  // "10.1.0.1:40123", "[2001:db8::7]:40123"
    std::uint32_t rate_mbps = 0;
    bool is_usual = false;  // libfabric's choice; one of them is

    bool operator==(const CardAddress&) const = default;
};

struct CardsAddress {
    std::uint64_t id = 0;
    std::uint16_t port = 0;
    std::vector<CardAddress> cards;  // in the daemon's order of preference

    bool operator==(const CardsAddress&) const = default;
};

std::string print_cards_address(const CardsAddress& address);
// Whether the text says that it is one.
bool is_cards_address(std::string_view text);
// invalid_argument, naming the text, unless it is one as printed above: it comes from other daemons and from files.
Result<CardsAddress> parse_cards_address(std::string_view text);

std::string host_port(std::string_view host, std::uint16_t port);
// The numeric address alone: "10.1.0.1", "2001:db8::7".
std::string host_of(std::string_view host_port);

}  // namespace cairn
