#include "world/real/card_address.hpp"

#include <rdma/fabric.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "world/real/cards.hpp"
#include "world/real/fabric_address.hpp"

namespace cairn {

namespace {

constexpr std::string_view scheme = "tcp+cards://";
constexpr std::string_view usual_mark = ",usual";

template <class Number>
bool take_number(std::string_view text, Number& number, int base = 10) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// What stands before the next `end`, which goes too. None: there is no such.
std::optional<std::string_view> take_to(std::string_view& text, char end) {
    const std::size_t at = text.find(end);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(at + 1);
    return part;
}

std::optional<CardAddress> parse_card(std::string_view text) {
    CardAddress card;
    card.is_usual = text.ends_with(usual_mark);
    if (card.is_usual) text.remove_suffix(usual_mark.size());
    const auto at = take_to(text, '=');
    if (!at || !take_number(text, card.rate_mbps)) return std::nullopt;
    card.host_port = *at;
    if (!parse_fabric_address("tcp", FI_SOCKADDR, "tcp://" + card.host_port).ok()) return std::nullopt;
    return card;
}

std::optional<CardsAddress> parse_all(std::string_view text) {
    CardsAddress address;
    text.remove_prefix(scheme.size());
    const auto id = take_to(text, '@'), port = take_to(text, '/');
    if (!id || id->size() != 16 || !take_number(*id, address.id, 16) || !port || !take_number(*port, address.port) || address.port == 0) return std::nullopt;
    for (bool more = true; more;) {
        const auto part = take_to(text, '/');
        more = part.has_value();
        const auto card = parse_card(more ? *part : text);
        if (!card || address.cards.size() == cards_max) return std::nullopt;
        address.cards.push_back(*card);
    }
    const auto usual = std::count_if(address.cards.begin(), address.cards.end(), [](const CardAddress& card) { return card.is_usual; });
    return usual == 1 ? std::optional(std::move(address)) : std::nullopt;
}

}  // namespace

std::string print_cards_address(const CardsAddress& address) {
    char id[17];
    std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(address.id));
    std::string text = std::string(scheme) + id + "@" + std::to_string(address.port);
    for (const CardAddress& card : address.cards)
        text.append("/").append(card.host_port).append("=").append(std::to_string(card.rate_mbps)).append(card.is_usual ? usual_mark : "");
    return text;
}

bool is_cards_address(std::string_view text) { return text.starts_with(scheme); }

Result<CardsAddress> parse_cards_address(std::string_view text) {
    std::optional<CardsAddress> address = is_cards_address(text) ? parse_all(text) : std::nullopt;
    if (!address) return invalid_argument("'" + std::string(text) + "' is no address of a daemon with several cards");
    return std::move(*address);
}

std::string host_port(std::string_view host, std::uint16_t port) {
    const bool is_ip6 = host.find(':') != std::string_view::npos;
    return (is_ip6 ? "[" : "") + std::string(host) + (is_ip6 ? "]:" : ":") + std::to_string(port);
}

std::string host_of(std::string_view host_port) {
    std::string_view host = host_port.substr(0, host_port.rfind(':'));
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    return std::string(host);
}

}  // namespace cairn
