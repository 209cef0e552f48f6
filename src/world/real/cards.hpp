// Cards: the network interfaces of this host, and which of them daemons use where nobody said: the fastest. The rules are pure; reading what there is
// asks the kernel (getifaddrs, rtnetlink, ethtool), which answers for this network namespace, as /sys in a container may not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace cairn {

// What an interface is made of.
enum class CardMake : std::uint8_t {
    device,  // hardware, or what stands on hardware: a bond, a VLAN, a macvlan, a bridge with hardware among its ports
    soft,    // leads out of this namespace, nobody knows where to: a veth, a virtual switch's port
    inner,   // leads nowhere but into this host, or wraps what goes over another card: a bridge of containers, a tunnel
};

// One address of an interface.
struct HostCard {
    std::string interface;
    std::string address;  // numeric
    unsigned prefix_bits = 0;
    std::uint32_t rate_mbps = 0;  // 0: not known
    CardMake make = CardMake::device;
    bool is_up = false;  // and has a carrier
    bool is_loopback = false;

    bool operator==(const HostCard&) const = default;
};

inline constexpr std::size_t cards_max = 6;  // more are as good as none: what all nodes have is among the fastest

// In the kernel's order, which is that of libfabric's choice. One entry an address.
std::vector<HostCard> read_host_cards(const std::map<std::string, std::uint32_t>& rates_mbps);

// Pure. `kind`: the kernel's name for what an interface is (`ip -d link`), empty for hardware. `has_device_port`: of a bridge.
CardMake make_of(std::string_view kind, bool has_device_port);
// Pure. Those that daemons can use, one address each and all of one family, fastest first; what has one rate, or none that is known, in libfabric's order.
std::vector<HostCard> rank_cards(const std::vector<HostCard>& all);

// Which addresses to listen at.
struct CardPlan {
    std::string bind;              // an address of this host; of several cards: any ("0.0.0.0", "::")
    std::vector<HostCard> cards;   // in the order of preference; empty where no card has the address (a loopback one)
    std::string usual;             // libfabric's choice among them
    std::string why;               // the first card is first
};
// Pure but for what names are resolved by. `wanted`: the setting network.interface. invalid_argument: nothing here is called that.
Result<CardPlan> plan_cards(const std::vector<HostCard>& all, std::string_view wanted);

std::string rate_text(std::uint32_t rate_mbps);  // "100 Gb/s", "unknown rate"

// Whether both numeric addresses are in one subnet of so many bits.
bool in_one_subnet(std::string_view a, std::string_view b, unsigned prefix_bits);

}  // namespace cairn
