// Rosters and node records.
#include "format/roster.hpp"

#include <algorithm>

#include "format/check.hpp"
#include "format/fields.hpp"
#include "format/frame.hpp"
#include "roster_generated.h"

namespace cairn {

using check::refuse;

namespace {

// One file a rank, or a node.
Status check_layout(const Roster& roster) {
    const auto with_ranks = std::count_if(roster.members.begin(), roster.members.end(), [](const Member& member) { return !member.ranks.empty(); });
    if (roster.layout == FileLayout::ranks && roster.files != roster.ranks) return refuse(roster.files, " files, one a rank, of ", roster.ranks, " ranks");
    if (roster.layout == FileLayout::nodes && roster.files != with_ranks) return refuse(roster.files, " files, one a node, of ", with_ranks, " nodes with ranks");
    return {};
}

// Node names are valid and differ; every rank is on exactly one node.
Status check_members(const Roster& roster) {
    std::vector<std::string_view> nodes;
    std::vector<Rank> ranks;
    for (const Member& member : roster.members) {
        if (!valid_name(member.node)) return refuse("a node whose name is not a valid one");
        if (!printable(member.address, address_bytes_max))
            return refuse("node ", member.node, ": an impossible address");
        TRY(check::increasing(member.ranks, roster.ranks).within(member.node));
        nodes.push_back(member.node);
        ranks.insert(ranks.end(), member.ranks.begin(), member.ranks.end());
    }
    std::sort(nodes.begin(), nodes.end());
    const auto twice = std::adjacent_find(nodes.begin(), nodes.end());
    if (twice != nodes.end()) return refuse("node ", *twice, " is there twice");
    if (ranks.size() != roster.ranks) return refuse(ranks.size(), " ranks on all nodes together, not ", roster.ranks);
    std::sort(ranks.begin(), ranks.end());
    for (std::size_t i = 0; i < ranks.size(); ++i)
        if (ranks[i] != i) return refuse("rank ", i, " is on no node");
    return {};
}

}  // namespace

Status check_roster(const Roster& roster) {
    if (roster.format > format_version) return newer_format(roster.format);  // first: what else it holds may mean something else there
    if (roster.format == 0) return refuse("format version 0");
    if (!valid_name(roster.name)) return refuse("the checkpoint's name is not a valid one");
    if (!roster.incarnation || !roster.secret) return refuse("no incarnation or no secret");
    if (roster.epoch == 0 || roster.epoch > epoch_max) return refuse("epoch ", roster.epoch);
    TRY(check::parent(roster.parent));
    TRY(check::ranks(roster.ranks));
    if (roster.files == 0 || roster.files > roster.ranks)
        return refuse(roster.files, " files for ", roster.ranks, " ranks");
    if (roster.members.empty() || roster.members[coordinator_of(roster)].ranks.empty())
        return refuse("node 0 has no ranks, and coordinates");
    TRY(check::roots(roster.roots));
    TRY(check_layout(roster));
    return check_members(roster);
}

Bytes encode_roster(const Roster& roster) {
    Writer writer;
    auto& builder = writer.builder;
    const auto members = writer.tables(roster.members, [&](const Member& m) {
        const auto node = writer.string(m.node);
        const auto address = writer.string(m.address);
        const auto ranks = writer.numbers(m.ranks);
        return fb::CreateMember(builder, node, address, ranks);
    });
    const auto roots = writer.strings(roster.roots);
    const auto name = writer.string(roster.name);
    const fb::Id incarnation = Writer::id(roster.incarnation), secret = Writer::id(roster.secret);
    const fb::Parent parent = Writer::parent(roster.parent);
    fb::FinishRosterBuffer(builder, fb::CreateRoster(builder, name, &incarnation, &secret, roster.epoch, &parent,
                                                     roster.ranks, roster.files, members, roster.format, roots, static_cast<std::uint8_t>(roster.layout)));
    return frame(FrameKind::roster, writer.bytes());
}

Result<Roster> decode_roster(ByteView bytes) {
    Bytes body;
    TRY_ASSIGN(body, unframe(FrameKind::roster, bytes));
    const auto* root = verified_root<fb::Roster>(body, fb::RosterIdentifier());
    if (!root) return corrupt("roster: its checksum holds but its structure does not");
    Reader reader(body.size());
    Roster value;
    value.name = reader.string(root->name());
    value.incarnation = Reader::id(*root->incarnation());
    value.secret = Reader::id(*root->secret());
    value.epoch = root->epoch();
    value.parent = Reader::parent(*root->parent());
    value.ranks = root->ranks();
    value.files = root->files();
    value.members = reader.tables(root->members(), [&](const fb::Member& m) {
        return Member{reader.string(m.node()), reader.string(m.address()), reader.numbers(m.ranks())};
    });
    value.format = root->format();
    value.roots = reader.strings(root->roots());
    if (root->layout() >= std::size(layout_words)) return Status(Code::unsupported, "roster: its files are laid out in a way that this Cairn does not know");
    value.layout = static_cast<FileLayout>(root->layout());
    if (reader.exhausted()) return corrupt("roster: it unpacks to more than it holds");
    TRY(check_roster(value).within("roster"));
    return value;
}

}  // namespace cairn
