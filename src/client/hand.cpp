#include "client/hand.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "client/exchange.hpp"
#include "client/packer.hpp"

namespace cairn {

Bytes Hand::pack() const {
    Packer packer;
    packer.status(prepared)
        .text(library)
        .text(name)
        .text(persistent)
        .text(node)
        .text(address)
        .number(files)
        .number(block_bytes)
        .number(epoch)
        .number(format)
        .text(daemon)
        .number(daemon_format)
        .number(static_cast<std::uint8_t>(layout))
        .number(static_cast<std::uint8_t>(is_through));
    return packer.take();
}

Result<Hand> Hand::unpack(const Bytes& bytes) {
    Unpacker unpacker(bytes);
    Hand hand;
    hand.prepared = unpacker.status();
    for (std::string* each : {&hand.library, &hand.name, &hand.persistent, &hand.node, &hand.address}) *each = unpacker.text();
    hand.files = unpacker.number<std::uint32_t>();
    hand.block_bytes = unpacker.number<std::uint64_t>();
    hand.epoch = unpacker.number<std::uint64_t>();
    const bool older = unpacker.ok() && unpacker.at_end();
    hand.format = older ? 1 : unpacker.number<std::uint32_t>();
    hand.daemon = older ? hand.library : unpacker.text();
    hand.daemon_format = older ? 1 : unpacker.number<std::uint32_t>();
    const std::size_t layout = older ? 0 : unpacker.number<std::uint8_t>();
    if (layout >= std::size(layout_words)) return Status(Code::unsupported, "it wants a layout that this Cairn does not know: all ranks need the same release of Cairn");
    hand.layout = static_cast<FileLayout>(layout);
    hand.is_through = !older && unpacker.number<std::uint8_t>() != 0;
    if (!unpacker.ok()) return Status(Code::unsupported, "it sent what can not be read: all ranks need the same release of Cairn");
    return hand;
}

std::string older_member(const std::string& who, std::uint32_t knows, std::uint32_t written) {
    return who + ", whose format is " + std::to_string(knows) + "; this job writes format " + std::to_string(written) + ": update Cairn there";
}

namespace {

// ok where its library and its daemon know the newest format.
Status check_formats(const Hand& hand, Rank rank, std::uint32_t newest) {
    if (hand.format < newest)
        return {Code::unsupported, older_member("rank " + std::to_string(rank) + " on node " + hand.node + " runs libcairn " + hand.library, hand.format, newest) +
                                       ", or use one release on all nodes"};
    if (hand.daemon_format < newest)
        return {Code::unsupported, older_member("node " + hand.node + " runs cairnd " + hand.daemon, hand.daemon_format, newest) +
                                       " and end that daemon (`cairn stop`), or use one release on all nodes"};
    return {};
}

Status check_same(const Hand& hand, const Hand& first, const std::string& who) {
    const std::pair<const char*, std::string Hand::*> same[] = {
        {"release of Cairn", &Hand::library}, {"name", &Hand::name}, {"paths.persistent", &Hand::persistent}};
    for (const auto& [what, member] : same)
        if (hand.*member != first.*member)
            return invalid_argument(who + " has another " + what + " than rank 0: \"" + hand.*member + "\", not \"" + first.*member + "\"");
    return {};
}

}  // namespace

Result<HandsTogether> compare_hands(const std::vector<Bytes>& packed) {
    HandsTogether together;
    std::map<std::string, std::size_t> by_node;
    std::optional<Hand> first;
    std::uint32_t newest = 0, oldest = ~0u;  // format that some member knows best
    for (Rank rank = 0; rank < packed.size(); ++rank) {
        const std::string who = "rank " + std::to_string(rank);
        auto unpacked = Hand::unpack(packed[rank]);
        if (!unpacked.ok()) return unpacked.status().within(who);
        const Hand& hand = *unpacked;
        if (!first) first = hand;
        if (!hand.prepared.ok()) return packed.size() == 1 ? hand.prepared : hand.prepared.within(who);
        TRY(check_same(hand, *first, who));
        const auto [at, is_new] = by_node.emplace(hand.node, together.members.size());
        if (is_new) together.members.push_back({hand.node, hand.address, {}});
        Member& member = together.members[at->second];
        if (member.address != hand.address)
            return invalid_argument(rank_list({member.ranks.front(), rank}) + " both say that they are on node " + hand.node +
                                    " but have different daemons (another paths.scratch, or another host): give each its own node name (CAIRN_NODE)");
        member.ranks.push_back(rank);
        together.epoch = std::max(together.epoch, hand.epoch);
        newest = std::max({newest, hand.format, hand.daemon_format});
        oldest = std::min({oldest, hand.format, hand.daemon_format});
    }
    for (Rank rank = 0; rank < packed.size() && oldest < newest; ++rank) {
        TRY_ASSIGN(const Hand hand, Hand::unpack(packed[rank]));
        TRY(check_formats(hand, rank, newest));
    }
    together.files = first->files;
    together.layout = first->layout;
    together.block_bytes = first->block_bytes;
    together.is_through = first->is_through;
    return together;
}

}  // namespace cairn
