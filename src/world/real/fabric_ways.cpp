// FabricCore: over which card, to whoever has several. Between two daemons with one card each nothing in here decides anything.
//
// A way is taken when the peer has answered over it (hail.hpp), and kept while things go through. All ways are tried again when a connection has ended, when
// nothing went through for a while, and now and then where a faster way than the one in use might be back. While something is under way over one, another
// is taken only when the peer does not answer over the first any more: then its connection is cut. Who does not answer over any is stopped, dead, or behind something that
// lets through what is known and nothing else: then it is tried over its usual card, as if that were its only one.
#include <algorithm>

#include "base/log.hpp"
#include "world/real/fabric_core.hpp"
#include "world/real/fabric_sockets.hpp"

namespace cairn {

namespace {

constexpr Nanos lately = 3600 * second;
constexpr std::size_t hails_max = 256;  // each has a descriptor for each way

}  // namespace

// While none is taken.
Status FabricCore::find_ways(FabricPeer& peer) const {
    TRY_ASSIGN(const CardsAddress address, parse_cards_address(peer.address));
    const std::string from = beacon_ ? "" : endpoint_->plan().bind;
    std::vector<Route> routes;
    for (const CardAddress& card : address.cards) routes.push_back(find_route(host_of(card.host_port), from, endpoint_->host_cards()));
    std::vector<Way> ranked = rank_ways(address, routes);
    if (ranked.empty()) return unavailable("no route leads to any card of " + peer.address);
    if (!peer.ways) peer.ways = std::make_unique<FabricWays>();
    peer.ways->id = address.id;
    peer.ways->port = address.port;
    peer.ways->ways = std::move(ranked);
    return {};
}

// To a peer with one card.
std::string FabricCore::card_to(const Address& address) const {
    if (!beacon_) return cards_.empty() ? "" : cards_.front().interface;
    return find_route(host_of(address.substr(address.find("://") + 3)), {}, endpoint_->host_cards()).over.interface;
}

std::string FabricCore::place_of(const FabricPeer& peer) {
    return peer.ways ? "tcp://" + peer.ways->ways[*peer.ways->taken].host_port : peer.address;
}

// Whether something may be begun to the peer now. If not, it is being found out over which way.
bool FabricCore::has_way(const FabricPeerPtr& peer) {
    FabricWays& ways = *peer->ways;
    if (ways.taken && peer->operations == 0) {
        if (ways.is_doubted) leave_way(*peer);
        else if (ways.better) take_way(*peer, *ways.better, true);
    }
    const Nanos now = loop_.now();
    const Nanos since = ways.hailed == 0 ? never : now - ways.hailed;
    if (!ways.taken) {
        if (since < settings_.way_patience || hails_.contains(peer.get())) return false;
        if (hails_.size() >= hails_max) return false;
        if (ways.hailed != 0 && !find_ways(*peer).ok()) {  // routes may be others now
            ways.hailed = now;
            return false;
        }
        hail(peer, settings_.way_patience);
        return false;
    }
    if (now - looked_at_sockets_ >= settings_.way_doubt / 2) look_at_sockets();
    if (is_stuck(*peer, now)) hail(peer, settings_.way_at_most);
    else if (*ways.taken != 0 && since >= settings_.way_look_again) hail(peer, settings_.way_patience);
    return true;
}

bool FabricCore::is_stuck(const FabricPeer& peer, Nanos now) const {
    const FabricWays& ways = *peer.ways;
    if (!ways.taken || now - ways.hailed < settings_.way_doubt) return false;
    const bool nothing_ends = peer.operations != 0 && now - ways.moved >= settings_.way_doubt;
    const bool nothing_begins = peer.operations == 0 && ways.refused != 0 && now - ways.refused >= settings_.way_doubt;
    return nothing_ends || nothing_begins;
}

void FabricCore::doubt_ways() {
    const Nanos now = loop_.now();
    for (const auto& [address, peer] : peers_)
        if (peer->ways && is_stuck(*peer, now)) hail(peer, settings_.way_at_most);
}

// A short message is sent, as far as the provider knows, once the kernel has it, also where it leads into a hole. Whoever waits for an answer sends again, and then
// this looks.
void FabricCore::look_at_sockets() {
    const Nanos now = looked_at_sockets_ = loop_.now();
    const std::set<std::string> stalled = stalled_destinations();
    if (stalled.empty()) return;
    for (const auto& [address, peer] : peers_)
        if (peer->ways && peer->ways->taken && stalled.contains(peer->ways->ways[*peer->ways->taken].host_port) && now - peer->ways->hailed >= settings_.way_doubt)
            hail(peer, settings_.way_at_most);
}

void FabricCore::began_over_way(FabricPeer& peer) const {
    peer.ways->refused = 0;
    if (peer.operations == 0) peer.ways->moved = loop_.now();
}

void FabricCore::hail(const FabricPeerPtr& peer, Nanos patience) {
    if (closing_ || hails_.contains(peer.get()) || hails_.size() >= hails_max) return;
    FabricWays& ways = *peer->ways;
    ways.hailed = loop_.now();
    Hail::To to;
    to.id = ways.id;
    for (const Way& way : ways.ways) to.host_ports.push_back(host_port(host_of(way.host_port), ways.port));
    if (!beacon_) to.from = endpoint_->plan().bind;
    to.patience = patience;
    to.at_most = settings_.way_at_most;
    to.in_use = ways.taken;
    hails_[peer.get()] = std::make_unique<Hail>(loop_, std::move(to), [this, peer](std::optional<std::size_t> way, const std::vector<Heard>& heard) {
        const FabricPeerPtr of = peer;  // what holds this function goes first
        hails_.erase(of.get());
        heard_of(of, way, heard);
    });
}

void FabricCore::heard_of(const FabricPeerPtr& peer, std::optional<std::size_t> way, const std::vector<Heard>& heard) {
    FabricWays& ways = *peer->ways;
    ways.hailed = loop_.now();
    ways.better.reset();
    if (!ways.taken) {
        // Who is stopped, or starved, is where it was.
        const auto is_usual = [&](const Way& each) { return ways.answered.empty() ? each.is_usual : each.host_port == ways.answered; };
        const auto usual = std::find_if(ways.ways.begin(), ways.ways.end(), is_usual);
        take_way(*peer, way ? *way : usual == ways.ways.end() ? 0 : static_cast<std::size_t>(usual - ways.ways.begin()), way.has_value());
    } else if (way && *way != *ways.taken && heard[*ways.taken] == Heard::it) {
        ways.better = way;
    } else if (way && *way != *ways.taken) {
        cut(*peer, "it does not answer over " + ways.ways[*ways.taken].interface + " any more");
        take_way(*peer, *way, true);
    }
    progressed_.notify_all();
}

void FabricCore::take_way(FabricPeer& peer, std::size_t way, bool answered) {
    leave_way(peer);
    FabricWays& ways = *peer.ways;
    ways.taken = way;
    const Way& taken = ways.ways[way];
    if (answered) ways.answered = taken.host_port;
    peer.over = taken.interface;
    if (!answered) {
        if (told_.insert("").second) log_warning("card-not-known", {{"node", peer.address}, {"why", "it answers over no card"}, {"takes", taken.interface}});
    } else if (way != 0 && told_.insert(ways.ways[0].interface).second) {
        log_info("card-not-usable", {{"interface", ways.ways[0].interface}, {"why", "no answer from " + ways.ways[0].host_port + ", and there may be others"}, {"takes", taken.interface}, {"rate", rate_text(taken.rate_mbps)}});
    }
}

// Nothing is under way over it.
void FabricCore::leave_way(FabricPeer& peer) {
    FabricWays& ways = *peer.ways;
    if (peer.where != FI_ADDR_NOTAVAIL) (void)endpoint_->remove(peer.where);
    peer.where = FI_ADDR_NOTAVAIL;
    ways.taken.reset();
    ways.better.reset();
    ways.is_doubted = false;
    ways.refused = 0;
    ways.moved = loop_.now();
}

std::vector<FabricCard> FabricCore::cards() const {
    std::vector<FabricCard> cards = cards_;
    for (const auto& [address, peer] : peers_)
        for (FabricCard& card : cards)
            if (card.interface == peer->over && loop_.now() - peer->used < lately) ++card.nodes;
    return cards;
}

}  // namespace cairn
