#include "world/real/cards.hpp"

#include <gtest/gtest.h>

#include "world/real/card_address.hpp"
#include "world/real/ways.hpp"

namespace cairn {
namespace {

HostCard card(const std::string& interface, const std::string& address, std::uint32_t rate_mbps, CardMake make = CardMake::device) {
    return {interface, address, address.find(':') == std::string::npos ? 24u : 64u, rate_mbps, make, true, false};
}
HostCard loopback() {
    HostCard lo = card("lo", "127.0.0.1", 0);
    lo.is_loopback = true;
    return lo;
}
HostCard without_carrier(HostCard card) {
    card.is_up = false;
    return card;
}

std::vector<std::string> ranked(const std::vector<HostCard>& all) {
    std::vector<std::string> names;
    for (const HostCard& each : rank_cards(all)) names.push_back(each.interface);
    return names;
}
using Names = std::vector<std::string>;

TEST(Cards, TheFastestComesFirst) {
    EXPECT_EQ(ranked({loopback(), card("eth0", "10.0.0.1", 1000), card("ib0", "10.1.0.1", 100'000)}), Names({"ib0", "eth0"}));
    EXPECT_EQ(ranked({card("ib0", "10.1.0.1", 100'000), card("eth0", "10.0.0.1", 1000)}), Names({"ib0", "eth0"}));
}

TEST(Cards, OfOneRateLibfabricsChoiceStaysFirst) {
    EXPECT_EQ(ranked({card("b", "10.0.0.1", 10'000), card("a", "10.1.0.1", 10'000)}), Names({"b", "a"}));
    EXPECT_EQ(ranked({card("b", "10.0.0.1", 0), card("a", "10.1.0.1", 0)}), Names({"b", "a"}));
}

TEST(Cards, AnUnknownRateIsTheSlowest) {
    EXPECT_EQ(ranked({card("eth0", "10.0.0.1", 0), card("eth1", "10.1.0.1", 1000)}), Names({"eth1", "eth0"}));
}

TEST(Cards, WhatCanNotLeadToOthersIsLeftOut) {
    EXPECT_EQ(ranked({loopback(), card("eth0", "10.0.0.1", 1000), card("docker0", "172.17.0.1", 10'000, CardMake::inner), card("veth1", "172.18.0.1", 10'000, CardMake::soft),
                      without_carrier(card("ib0", "10.1.0.1", 100'000)), card("usb0", "169.254.3.1", 10'000), card("eth1", "fe80::1", 10'000)}),
              Names({"eth0"}));
    EXPECT_TRUE(ranked({loopback(), card("docker0", "172.17.0.1", 10'000, CardMake::inner)}).empty());
}

TEST(Cards, InAContainerItsOwnEndOfAVethIsACard) {
    EXPECT_EQ(ranked({card("eth0", "172.17.0.2", 10'000, CardMake::soft)}), Names({"eth0"}));
    EXPECT_EQ(ranked({card("eth0", "172.17.0.2", 10'000, CardMake::soft), card("net1", "10.1.0.2", 100'000)}), Names({"net1", "eth0"}));
    EXPECT_EQ(ranked({card("a", "10.0.0.2", 10'000, CardMake::soft), card("b", "10.1.0.2", 20'000, CardMake::soft)}), Names({"b", "a"}));
}

TEST(Cards, OneAddressACardAndOneFamily) {
    EXPECT_EQ(rank_cards({card("eth0", "10.0.0.1", 1000), card("eth0", "10.0.9.1", 1000), card("ib0", "2001:db8::1", 100'000), card("eth1", "10.2.0.1", 1000)}),
              (std::vector{card("eth0", "10.0.0.1", 1000), card("eth1", "10.2.0.1", 1000)}));
    EXPECT_EQ(ranked({card("eth0", "2001:db8::1", 1000), card("ib0", "2001:db8:1::1", 100'000)}), Names({"ib0", "eth0"}));
}

TEST(Cards, OfVeryManyTheUsualOneStays) {
    std::vector<HostCard> many = {card("eth0", "10.0.0.1", 1000)};
    for (int i = 0; i < 8; ++i) many.push_back(card("ib" + std::to_string(i), "10.1." + std::to_string(i) + ".1", 100'000));
    EXPECT_EQ(ranked(many), Names({"ib0", "ib1", "ib2", "ib3", "ib4", "eth0"}));
}

TEST(Cards, WhatAnInterfaceIsMadeOf) {
    for (const char* kind : {"", "bond", "vlan", "macvlan", "ipoib"}) EXPECT_EQ(make_of(kind, false), CardMake::device) << kind;
    for (const char* kind : {"bridge", "tun", "vxlan", "dummy", "ifb", "wireguard"}) EXPECT_EQ(make_of(kind, false), CardMake::inner) << kind;
    EXPECT_EQ(make_of("bridge", true), CardMake::device);
    EXPECT_EQ(make_of("vxlan", true), CardMake::inner);
    for (const char* kind : {"veth", "openvswitch", "what-comes-later"}) EXPECT_EQ(make_of(kind, false), CardMake::soft) << kind;
}

TEST(Cards, APlanOfOneCardIsItsAddress) {
    const std::vector<HostCard> all = {loopback(), card("eth0", "10.0.0.1", 1000), card("docker0", "172.17.0.1", 10'000, CardMake::inner)};
    const auto plan = plan_cards(all, "");
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->bind, "10.0.0.1");
    EXPECT_EQ(plan->usual, "10.0.0.1");
    EXPECT_EQ(plan->cards.size(), 1u);
    EXPECT_EQ(plan->why, "the only one");
}

TEST(Cards, APlanOfSeveralListensAtAll) {
    const auto plan = plan_cards({loopback(), card("eth0", "10.0.0.1", 1000), card("ib0", "10.1.0.1", 100'000)}, "");
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->bind, "0.0.0.0");
    EXPECT_EQ(plan->usual, "10.0.0.1");
    EXPECT_EQ(plan->cards.front().interface, "ib0");
    EXPECT_EQ(plan->why, "the fastest of 2");
    EXPECT_EQ(plan_cards({card("a", "10.0.0.1", 1000), card("b", "10.1.0.1", 1000)}, "")->why, "the first of 2");
    EXPECT_EQ(plan_cards({card("a", "2001:db8::1", 1000), card("b", "2001:db8:1::1", 1)}, "")->bind, "::");
}

// The first one that is up is there on every host that runs these tests: lo.
TEST(Cards, ASettingIsTakenAtItsWord) {
    const auto plan = plan_cards({loopback(), card("eth0", "10.0.0.1", 1000), card("ib0", "10.1.0.1", 100'000)}, "lo");
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->bind, "127.0.0.1");
    EXPECT_TRUE(plan->cards.empty());
    EXPECT_EQ(plan->why, "network.interface");
    EXPECT_EQ(plan_cards({}, "no-such-interface").code(), Code::invalid_argument);
}

TEST(Cards, ThisHostsAreRead) {
    const auto cards = read_host_cards({{"lo", 7}});
    const auto lo = std::find_if(cards.begin(), cards.end(), [](const HostCard& each) { return each.address == "127.0.0.1"; });
    ASSERT_NE(lo, cards.end());
    EXPECT_EQ(*lo, (HostCard{"lo", "127.0.0.1", 8, 7, CardMake::device, true, true}));
}

TEST(Cards, RatesAreTold) {
    EXPECT_EQ(rate_text(0), "unknown rate");
    EXPECT_EQ(rate_text(100), "100 Mb/s");
    EXPECT_EQ(rate_text(2500), "2.5 Gb/s");
    EXPECT_EQ(rate_text(100'000), "100 Gb/s");
}

TEST(Cards, Subnets) {
    EXPECT_TRUE(in_one_subnet("10.0.0.1", "10.0.0.200", 24));
    EXPECT_FALSE(in_one_subnet("10.0.0.1", "10.0.1.1", 24));
    EXPECT_TRUE(in_one_subnet("10.0.0.1", "10.0.1.1", 23));
    EXPECT_TRUE(in_one_subnet("2001:db8::1", "2001:db8::2", 64));
    EXPECT_FALSE(in_one_subnet("2001:db8::1", "10.0.0.1", 64));
    EXPECT_FALSE(in_one_subnet("10.0.0.1", "10.0.0.1", 0)) << "not known";
    EXPECT_FALSE(in_one_subnet("", "10.0.0.1", 24));
}

// ---- addresses ----

const CardsAddress two_cards{0x1234, 40999, {{"10.1.0.1:40123", 100'000, false}, {"10.0.0.1:40123", 1000, true}}};

TEST(CardAddress, ComesBackAsPrinted) {
    const std::string text = print_cards_address(two_cards);
    EXPECT_EQ(text, "tcp+cards://0000000000001234@40999/10.1.0.1:40123=100000/10.0.0.1:40123=1000,usual");
    EXPECT_TRUE(is_cards_address(text));
    EXPECT_EQ(parse_cards_address(text).value(), two_cards);
    const CardsAddress six{~0ull, 1, {{"[2001:db8::1]:1", 0, true}}};
    EXPECT_EQ(parse_cards_address(print_cards_address(six)).value(), six);
    EXPECT_FALSE(is_cards_address("tcp://10.0.0.1:40123"));
}

TEST(CardAddress, MalformedTextIsRefusedAndNamed) {
    const std::string good = print_cards_address(two_cards), head = "tcp+cards://0000000000001234@40999/";
    for (std::size_t length = 0; length < good.size(); ++length) EXPECT_EQ(parse_cards_address(good.substr(0, length)).code(), Code::invalid_argument) << length;
    std::string many = head;
    for (int i = 0; i < 7; ++i) many += (i ? "/10.0.0." : "10.0.0.") + std::to_string(i) + ":1=1" + (i ? "" : ",usual");
    for (const std::string& text : {good + "/", good + "x", head, head + "10.0.0.1:1=1", head + "10.0.0.1:1=1,usual/10.0.0.2:1=1,usual", head + "10.0.0.1=1,usual", head + "host:1=1,usual",
                                    head + "10.0.0.1:1=,usual", head + "10.0.0.1:1=-1,usual", head + "10.0.0.1:1=99999999999,usual", std::string("tcp+cards://1@40999/10.0.0.1:1=1,usual"),
                                    std::string("tcp+cards://0000000000001234@0/10.0.0.1:1=1,usual"), std::string("tcp+cards://0000000000001234@70000/10.0.0.1:1=1,usual"), many}) {
        const auto parsed = parse_cards_address(text);
        EXPECT_EQ(parsed.code(), Code::invalid_argument) << text;
        EXPECT_NE(parsed.status().text().find("'" + text + "'"), std::string::npos);
    }
}

TEST(CardAddress, HostsAndPorts) {
    EXPECT_EQ(host_port("10.0.0.1", 7), "10.0.0.1:7");
    EXPECT_EQ(host_port("2001:db8::7", 7), "[2001:db8::7]:7");
    EXPECT_EQ(host_of("10.0.0.1:7"), "10.0.0.1");
    EXPECT_EQ(host_of("[2001:db8::7]:7"), "2001:db8::7");
}

// ---- ways ----

Route over(const HostCard& card) { return {true, card}; }

std::vector<std::string> order_of(const std::vector<Way>& ways) {
    std::vector<std::string> hosts;
    for (const Way& way : ways) hosts.push_back(way.host_port + " " + way.interface + " " + std::to_string(way.rate_mbps));
    return hosts;
}

TEST(Ways, TheSlowerEndCounts) {
    const HostCard fast = card("ib0", "10.1.0.9", 1000), slow = card("eth0", "10.0.0.9", 10'000);
    const CardsAddress to{1, 1, {{"10.1.0.1:5", 100'000, false}, {"10.0.0.1:5", 10'000, true}}};
    EXPECT_EQ(order_of(rank_ways(to, {over(fast), over(slow)})), Names({"10.0.0.1:5 eth0 10000", "10.1.0.1:5 ib0 1000"}));
}

TEST(Ways, OfOneRateTheOneWithoutARouterIsFirst) {
    const HostCard only = card("eth0", "10.0.0.9", 1000);
    EXPECT_EQ(order_of(rank_ways(two_cards, {over(only), over(only)})), Names({"10.0.0.1:40123 eth0 1000", "10.1.0.1:40123 eth0 1000"}));
}

TEST(Ways, ElseTheOtherDaemonsOrderStays) {
    const HostCard a = card("a", "10.1.0.9", 0), b = card("b", "10.0.0.9", 0);
    EXPECT_EQ(order_of(rank_ways(two_cards, {over(a), over(b)})), Names({"10.1.0.1:40123 a 0", "10.0.0.1:40123 b 0"}));
}

TEST(Ways, WhereNoRouteLeadsThereIsNone) {
    EXPECT_EQ(order_of(rank_ways(two_cards, {Route(), over(card("b", "10.0.0.9", 1000))})), Names({"10.0.0.1:40123 b 1000"}));
    EXPECT_TRUE(rank_ways(two_cards, {Route(), Route()}).empty());
    EXPECT_EQ(rank_ways(two_cards, {{true, {}}, Route()}).size(), 1u) << "the card is not known";
}

constexpr Heard nothing = Heard::nothing, it = Heard::it, not_it = Heard::not_it;
WayChoice chosen(std::vector<Heard> heard, Waiting waiting) { return choose_way(heard, waiting); }
const WayChoice wait_on{};
WayChoice way(std::size_t index) { return {true, index}; }
const WayChoice no_way{true, std::nullopt};

TEST(Ways, TheBestThatAnswersIsTaken) {
    EXPECT_EQ(chosen({it, nothing}, Waiting::for_best), way(0));
    EXPECT_EQ(chosen({it, it}, Waiting::for_best), way(0));
    EXPECT_EQ(chosen({not_it, it}, Waiting::for_best), way(1));
}

TEST(Ways, ABetterOneIsWaitedForAWhile) {
    EXPECT_EQ(chosen({nothing, it}, Waiting::for_best), wait_on);
    EXPECT_EQ(chosen({nothing, it}, Waiting::for_any), way(1));
    EXPECT_EQ(chosen({nothing, nothing, it}, Waiting::for_any), way(2));
}

TEST(Ways, WhereNobodyAnswersThereIsAnEnd) {
    EXPECT_EQ(chosen({nothing, not_it}, Waiting::for_best), wait_on);
    EXPECT_EQ(chosen({nothing, not_it}, Waiting::for_any), wait_on);
    EXPECT_EQ(chosen({not_it, not_it}, Waiting::for_best), no_way);
    EXPECT_EQ(chosen({nothing, nothing}, Waiting::over), no_way);
    EXPECT_EQ(chosen({nothing, it}, Waiting::over), way(1));
}

}  // namespace
}  // namespace cairn
