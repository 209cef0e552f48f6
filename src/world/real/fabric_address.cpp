// Addresses of the fabric. Text comes from other daemons and from files, so parsing accepts exactly what printing
// makes.
#include "world/real/fabric_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fabric.h>

#include <charconv>
#include <memory>
#include <optional>
#include <vector>

namespace cairn {

namespace {

constexpr std::size_t raw_bytes_max = 512;  // longer than any provider's name

std::string print_ip(int family, const void* ip, std::uint16_t port_network_order) {
    char host[INET6_ADDRSTRLEN] = "";
    ::inet_ntop(family, ip, host, sizeof host);
    const std::string port = std::to_string(ntohs(port_network_order));
    return family == AF_INET6 ? "[" + std::string(host) + "]:" + port : std::string(host) + ":" + port;
}

std::string print_hex(ByteView raw) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string hex;
    for (const std::byte b : raw) {
        hex += digits[std::to_integer<unsigned>(b) >> 4];
        hex += digits[std::to_integer<unsigned>(b) & 15];
    }
    return hex;
}

std::optional<Bytes> parse_hex(std::string_view hex) {
    if (hex.empty() || hex.size() % 2 != 0 || hex.size() > 2 * raw_bytes_max) return std::nullopt;
    Bytes raw;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        unsigned value = 0;
        const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
        if (error != std::errc() || end != hex.data() + i + 2) return std::nullopt;
        raw.push_back(static_cast<std::byte>(value));
    }
    return raw;
}

bool parse_port(std::string_view text, in_port_t& port) {
    std::uint16_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    port = htons(value);
    return error == std::errc() && end == text.data() + text.size() && value != 0;
}

template <class Address>
Bytes raw_of(const Address& address) {
    const auto view = std::as_bytes(std::span(&address, 1));
    return {view.begin(), view.end()};
}

std::optional<Bytes> parse_ip4(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (::inet_pton(AF_INET, std::string(text.substr(0, colon)).c_str(), &address.sin_addr) != 1) return std::nullopt;
    if (!parse_port(text.substr(colon + 1), address.sin_port)) return std::nullopt;
    return raw_of(address);
}

std::optional<Bytes> parse_ip6(std::string_view text) {
    const std::size_t close = text.rfind("]:");
    if (text.empty() || text.front() != '[' || close == std::string_view::npos) return std::nullopt;
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    if (::inet_pton(AF_INET6, std::string(text.substr(1, close - 1)).c_str(), &address.sin6_addr) != 1)
        return std::nullopt;
    if (!parse_port(text.substr(close + 2), address.sin6_port)) return std::nullopt;
    return raw_of(address);
}

struct HostAddress {
    std::string interface;
    std::string text;
    bool loopback = false;
    bool is_ip4 = false;
};

// Up, numeric, and usable without a scope: link-local IPv6 is left out.
std::vector<HostAddress> host_addresses() {
    std::vector<HostAddress> found;
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return found;
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
    for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
        if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
        char text[INET6_ADDRSTRLEN] = "";
        if (entry->ifa_addr->sa_family == AF_INET) {
            ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text, sizeof text);
        } else if (entry->ifa_addr->sa_family == AF_INET6) {
            const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
            if (IN6_IS_ADDR_LINKLOCAL(&ip)) continue;
            ::inet_ntop(AF_INET6, &ip, text, sizeof text);
        } else {
            continue;
        }
        found.push_back(
            {entry->ifa_name, text, (entry->ifa_flags & IFF_LOOPBACK) != 0, entry->ifa_addr->sa_family == AF_INET});
    }
    return found;
}

bool is_address_of_loopback(std::string_view text) { return text.starts_with("127."); }

}  // namespace

Result<std::string> print_fabric_address(std::string_view scheme, std::uint32_t format, ByteView raw) {
    std::string text = std::string(scheme) + "://";
    const bool is_socket = format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
    if (!is_socket) return text + print_hex(raw);
    sockaddr_storage storage{};
    if (raw.empty() || raw.size() > sizeof storage)
        return Status(Code::internal, "the fabric provider gave no address");
    std::memcpy(&storage, raw.data(), raw.size());
    if (storage.ss_family == AF_INET) {
        const auto& address = reinterpret_cast<const sockaddr_in&>(storage);
        return text + print_ip(AF_INET, &address.sin_addr, address.sin_port);
    }
    const auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
    return text + print_ip(AF_INET6, &address.sin6_addr, address.sin6_port);
}

Result<Bytes> parse_fabric_address(std::string_view scheme, std::uint32_t format, std::string_view text) {
    const std::string prefix = std::string(scheme) + "://";
    std::optional<Bytes> raw;
    if (text.starts_with(prefix)) {
        const std::string_view rest = text.substr(prefix.size());
        if (format == FI_SOCKADDR_IN)
            raw = parse_ip4(rest);
        else if (format == FI_SOCKADDR_IN6)
            raw = parse_ip6(rest);
        else if (format == FI_SOCKADDR)
            raw = rest.starts_with('[') ? parse_ip6(rest) : parse_ip4(rest);
        else
            raw = parse_hex(rest);
    }
    if (!raw)
        return invalid_argument("'" + std::string(text) + "' is no address of the fabric (expected " + prefix + "...)");
    return std::move(*raw);
}

Result<std::string> choose_host_address(std::string_view wanted) {
    const std::vector<HostAddress> addresses = host_addresses();
    const HostAddress* best = nullptr;
    for (const HostAddress& address : addresses) {
        if (wanted.empty() ? address.loopback : (wanted != address.interface && wanted != address.text)) continue;
        if (!best || (address.is_ip4 && !best->is_ip4)) best = &address;
    }
    if (best) return best->text;
    if (wanted.empty()) return std::string("127.0.0.1");
    if (is_address_of_loopback(wanted))
        return std::string(wanted);  // all of 127.0.0.0/8 is this host, though only one is listed
    std::string known;
    for (const HostAddress& address : addresses)
        known += (known.empty() ? "" : ", ") + address.interface + " " + address.text;
    return invalid_argument("'" + std::string(wanted) +
                            "' is neither an interface that is up nor an address of this host (there are: " + known +
                            ")");
}

}  // namespace cairn
