#include "world/real/cards.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "world/real/fabric_address.hpp"

namespace cairn {

namespace {

constexpr std::uint32_t rate_most_mbps = 100'000'000;
constexpr unsigned short attribute_port_of = 10;  // in linux/if_link.h under a word that is not used here

// ---- asking the kernel ----

class KernelSocket {
  public:
    KernelSocket(int family, int type, int protocol) : fd_(::socket(family, type | SOCK_CLOEXEC, protocol)) {}
    KernelSocket(const KernelSocket&) = delete;
    ~KernelSocket() {
        if (fd_ >= 0) ::close(fd_);
    }
    int fd() const { return fd_; }

  private:
    int fd_;
};

struct Link {
    std::string name, kind;
    int port_of = 0;  // index of the bridge or bond
};

void take_link(const nlmsghdr* message, std::map<int, Link>& links) {
    const auto* about = static_cast<const ifinfomsg*>(NLMSG_DATA(message));
    Link link;
    auto left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof *about));
    for (const auto* each = IFLA_RTA(about); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
        if (each->rta_type == IFLA_IFNAME) link.name = static_cast<const char*>(RTA_DATA(each));
        if (each->rta_type == attribute_port_of && RTA_PAYLOAD(each) == sizeof link.port_of) std::memcpy(&link.port_of, RTA_DATA(each), sizeof link.port_of);
        if (each->rta_type != IFLA_LINKINFO) continue;
        auto inside = static_cast<int>(RTA_PAYLOAD(each));
        for (const auto* in = static_cast<const rtattr*>(RTA_DATA(each)); RTA_OK(in, inside); in = RTA_NEXT(in, inside))
            if (in->rta_type == IFLA_INFO_KIND) link.kind.assign(static_cast<const char*>(RTA_DATA(in)), ::strnlen(static_cast<const char*>(RTA_DATA(in)), RTA_PAYLOAD(in)));
    }
    links[about->ifi_index] = std::move(link);
}

// Empty where the kernel does not tell; then everything counts as hardware.
std::map<int, Link> read_links() {
    std::map<int, Link> links;
    const KernelSocket socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    const timeval patience = {1, 0};
    if (socket.fd() < 0 || ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) return links;
    struct {
        nlmsghdr header;
        ifinfomsg about;
    } ask{};
    ask.header = {sizeof ask, RTM_GETLINK, NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH, 1, 0};
    ask.about.ifi_family = AF_UNSPEC;
    if (::send(socket.fd(), &ask, sizeof ask, 0) < 0) return links;
    alignas(nlmsghdr) std::array<char, 32 << 10> buffer;
    for (;;) {
        const ssize_t got = ::recv(socket.fd(), buffer.data(), buffer.size(), 0);
        if (got <= 0) return links;
        auto left = static_cast<unsigned>(got);
        for (const auto* each = reinterpret_cast<const nlmsghdr*>(buffer.data()); NLMSG_OK(each, left); each = NLMSG_NEXT(each, left)) {
            if (each->nlmsg_type == NLMSG_DONE || each->nlmsg_type == NLMSG_ERROR) return links;
            if (each->nlmsg_type == RTM_NEWLINK) take_link(each, links);
        }
    }
}

std::map<std::string, CardMake> makes_of(const std::map<int, Link>& links) {
    std::map<std::string, CardMake> makes;
    for (const auto& [index, link] : links) {
        const bool has_device_port = std::any_of(links.begin(), links.end(), [index = index](const auto& other) {
            return other.second.port_of == index && make_of(other.second.kind, false) == CardMake::device;
        });
        makes[link.name] = make_of(link.kind, has_device_port);
    }
    return makes;
}

// By ethtool, which first tells how long its answer is. 0: the driver does not say.
std::uint32_t ethtool_rate_mbps(const KernelSocket& socket, const std::string& interface) {
    alignas(ethtool_link_settings) std::array<char, sizeof(ethtool_link_settings) + 3 * 128 * sizeof(__u32)> answer{};
    auto& settings = *reinterpret_cast<ethtool_link_settings*>(answer.data());
    ifreq request{};
    interface.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_data = answer.data();
    settings.cmd = ETHTOOL_GLINKSETTINGS;
    if (::ioctl(socket.fd(), SIOCETHTOOL, &request) != 0 || settings.link_mode_masks_nwords >= 0) return 0;
    settings.link_mode_masks_nwords = static_cast<__s8>(-settings.link_mode_masks_nwords);
    settings.cmd = ETHTOOL_GLINKSETTINGS;
    if (::ioctl(socket.fd(), SIOCETHTOOL, &request) != 0) return 0;
    return settings.speed > rate_most_mbps ? 0 : settings.speed;  // SPEED_UNKNOWN is the highest number
}

// IP over InfiniBand, whose older drivers tell ethtool nothing: "100 Gb/sec (4X EDR)".
std::uint32_t infiniband_rate_mbps(const std::string& interface) {
    std::error_code error;
    double fastest = 0;
    for (const auto& device : std::filesystem::directory_iterator("/sys/class/net/" + interface + "/device/infiniband", error))
        for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", error)) {
            double gb_s = 0;
            if (std::ifstream(port.path() / "rate") >> gb_s) fastest = std::max(fastest, gb_s);
        }
    return fastest > 0 && fastest * 1000 <= rate_most_mbps ? static_cast<std::uint32_t>(fastest * 1000) : 0;
}

const void* ip_of(const sockaddr* address) {
    if (address->sa_family == AF_INET) return &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
}

unsigned bits_of(const sockaddr* mask, int family) {
    if (!mask) return 0;
    unsigned bits = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(family == AF_INET ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr)
                                                                                 : &reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr);
    for (int i = 0; i < (family == AF_INET ? 4 : 16); ++i) bits += static_cast<unsigned>(std::popcount(bytes[i]));
    return bits;
}

// ---- rules ----

bool is_ip4(std::string_view address) { return address.find(':') == std::string_view::npos; }

// Such an address is on every host, or means another thing on each.
bool is_link_local(std::string_view address) {
    if (is_ip4(address)) return address.starts_with("169.254.");
    in6_addr ip{};
    return ::inet_pton(AF_INET6, std::string(address).c_str(), &ip) == 1 && IN6_IS_ADDR_LINKLOCAL(&ip);
}

bool is_usable(const HostCard& card) {
    return card.is_up && !card.is_loopback && card.make != CardMake::inner && !is_link_local(card.address);
}

}  // namespace

CardMake make_of(std::string_view kind, bool has_device_port) {
    static constexpr std::string_view on_hardware[] = {"", "bond", "team", "vlan", "macvlan", "macvtap", "ipvlan", "ipoib"};
    static constexpr std::string_view within[] = {"dummy", "ifb",       "tun",    "vxlan", "geneve", "wireguard", "gre",  "gretap",  "erspan", "ip6gre", "ip6gretap", "ip6erspan",
                                                  "ipip",  "sit",       "ip6tnl", "vti",   "vti6",   "xfrm",      "vrf",  "nlmon",   "vcan",   "ppp",    "amt",       "bareudp",
                                                  "gtp",   "bridge"};
    if (kind == "bridge" && has_device_port) return CardMake::device;
    if (std::find(std::begin(on_hardware), std::end(on_hardware), kind) != std::end(on_hardware)) return CardMake::device;
    return std::find(std::begin(within), std::end(within), kind) != std::end(within) ? CardMake::inner : CardMake::soft;
}

std::vector<HostCard> read_host_cards(const std::map<std::string, std::uint32_t>& rates_mbps) {
    std::vector<HostCard> cards;
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return cards;
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
    const std::map<std::string, CardMake> makes = makes_of(read_links());
    const KernelSocket socket(AF_INET, SOCK_DGRAM, 0);
    for (const ifaddrs* each = list; each; each = each->ifa_next) {
        const int family = each->ifa_addr ? each->ifa_addr->sa_family : AF_UNSPEC;
        if (family != AF_INET && family != AF_INET6) continue;
        char text[INET6_ADDRSTRLEN] = "";
        ::inet_ntop(family, ip_of(each->ifa_addr), text, sizeof text);
        HostCard card;
        const std::string_view label = each->ifa_name;
        card.interface = label.substr(0, label.find(':'));  // "eth0:1" is another address of eth0
        card.address = text;
        card.prefix_bits = bits_of(each->ifa_netmask, family);
        card.is_up = (each->ifa_flags & IFF_UP) && (each->ifa_flags & IFF_RUNNING);
        card.is_loopback = (each->ifa_flags & IFF_LOOPBACK) != 0;
        if (const auto make = makes.find(card.interface); make != makes.end()) card.make = make->second;
        if (const auto told = rates_mbps.find(card.interface); told != rates_mbps.end()) card.rate_mbps = told->second;
        else if (!card.is_loopback) card.rate_mbps = ethtool_rate_mbps(socket, card.interface);
        if (card.rate_mbps == 0 && !card.is_loopback) card.rate_mbps = infiniband_rate_mbps(card.interface);
        cards.push_back(std::move(card));
    }
    return cards;
}

std::vector<HostCard> rank_cards(const std::vector<HostCard>& all) {
    std::vector<HostCard> ranked;
    for (const bool ip4 : {true, false})
        for (const HostCard& card : all) {
            const bool known = std::any_of(ranked.begin(), ranked.end(), [&](const HostCard& other) { return other.interface == card.interface; });
            if (is_usable(card) && is_ip4(card.address) == ip4 && !known && (ranked.empty() || is_ip4(ranked.front().address) == ip4)) ranked.push_back(card);
        }
    if (ranked.empty()) return ranked;
    // On a host with hardware a veth leads to a container; within one it is the way out, and comes first.
    const bool has_device = std::any_of(ranked.begin(), ranked.end(), [](const HostCard& card) { return card.make == CardMake::device; });
    if (has_device) ranked.erase(std::remove_if(ranked.begin() + 1, ranked.end(), [](const HostCard& card) { return card.make == CardMake::soft; }), ranked.end());
    const HostCard usual = ranked.front();
    std::stable_sort(ranked.begin(), ranked.end(), [](const HostCard& a, const HostCard& b) { return a.rate_mbps > b.rate_mbps; });
    if (ranked.size() > cards_max) ranked.resize(cards_max);
    if (std::find(ranked.begin(), ranked.end(), usual) == ranked.end()) ranked.back() = usual;
    return ranked;
}

Result<CardPlan> plan_cards(const std::vector<HostCard>& all, std::string_view wanted) {
    CardPlan plan;
    if (wanted.empty()) plan.cards = rank_cards(all);
    if (plan.cards.empty()) {
        TRY_ASSIGN(plan.bind, choose_host_address(wanted));
        for (const HostCard& card : all)
            if (card.address == plan.bind && !card.is_loopback) plan.cards = {card};
        plan.usual = plan.bind;
        plan.why = wanted.empty() ? "nothing better is up" : "network.interface";
        return plan;
    }
    const HostCard& first = plan.cards.front();
    const auto usual = std::find_if(all.begin(), all.end(), [&](const HostCard& card) {
        return std::find(plan.cards.begin(), plan.cards.end(), card) != plan.cards.end();
    });
    plan.usual = usual->address;
    if (plan.cards.size() == 1) {
        plan.bind = first.address;
        plan.why = "the only one";
        return plan;
    }
    plan.bind = is_ip4(first.address) ? "0.0.0.0" : "::";
    const bool is_faster = first.rate_mbps > plan.cards[1].rate_mbps;
    plan.why = (is_faster ? "the fastest of " : "the first of ") + std::to_string(plan.cards.size());
    return plan;
}

std::string rate_text(std::uint32_t rate_mbps) {
    if (rate_mbps == 0) return "unknown rate";
    if (rate_mbps < 1000) return std::to_string(rate_mbps) + " Mb/s";
    const std::string rest = rate_mbps % 1000 == 0 ? "" : "." + std::to_string(rate_mbps % 1000 / 100);
    return std::to_string(rate_mbps / 1000) + rest + " Gb/s";
}

bool in_one_subnet(std::string_view a, std::string_view b, unsigned prefix_bits) {
    const int family = is_ip4(a) ? AF_INET : AF_INET6;
    unsigned char one[16] = {}, other[16] = {};
    if (::inet_pton(family, std::string(a).c_str(), one) != 1 || ::inet_pton(family, std::string(b).c_str(), other) != 1) return false;
    for (unsigned bit = 0; bit < std::min(prefix_bits, family == AF_INET ? 32u : 128u); ++bit)
        if (((one[bit / 8] ^ other[bit / 8]) >> (7 - bit % 8)) & 1) return false;
    return prefix_bits > 0;
}

}  // namespace cairn
