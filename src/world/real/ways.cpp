#include "world/real/ways.hpp"

#include <algorithm>

namespace cairn {

std::vector<Way> rank_ways(const CardsAddress& to, const std::vector<Route>& routes) {
    std::vector<Way> ways;
    for (std::size_t i = 0; i < to.cards.size() && i < routes.size(); ++i) {
        const CardAddress& card = to.cards[i];
        const HostCard& over = routes[i].over;
        if (!routes[i].exists) continue;
        ways.push_back({card.host_port, over.interface, std::min(card.rate_mbps, over.rate_mbps), in_one_subnet(over.address, host_of(card.host_port), over.prefix_bits), card.is_usual});
    }
    std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
        return a.rate_mbps != b.rate_mbps ? a.rate_mbps > b.rate_mbps : a.is_direct && !b.is_direct;
    });
    return ways;
}

WayChoice choose_way(std::span<const Heard> heard, Waiting waiting) {
    for (std::size_t i = 0; i < heard.size(); ++i) {
        if (heard[i] == Heard::it) return {true, i};
        if (heard[i] == Heard::nothing && waiting == Waiting::for_best) return {};
    }
    const bool is_open = waiting != Waiting::over && std::find(heard.begin(), heard.end(), Heard::nothing) != heard.end();
    return {!is_open, std::nullopt};
}

}  // namespace cairn
