// Records of the lineage directory, and records of nodes: a few fields each, in a frame.
#include "format/lineage.hpp"

#include "format/check.hpp"
#include "format/fields.hpp"
#include "format/frame.hpp"
#include "format/roster.hpp"
#include "lineage_generated.h"

namespace cairn {

using check::refuse;

Bytes encode_open_record(const OpenRecord& record) {
    Writer writer;
    const auto host = writer.string(record.host);
    const fb::Id incarnation = Writer::id(record.incarnation);
    writer.builder.Finish(fb::CreateOpenRecord(writer.builder, &incarnation, record.epoch, host, record.pid,
                                               record.wall_time_s, record.ranks));
    return frame(FrameKind::open, writer.bytes());
}

Result<OpenRecord> decode_open_record(ByteView bytes) {
    Bytes body;
    TRY_ASSIGN(body, unframe(FrameKind::open, bytes));
    const auto* root = verified_root<fb::OpenRecord>(body, nullptr);
    if (!root) return corrupt("open record: its checksum holds but its structure does not");
    Reader reader(body.size());
    const OpenRecord value{Reader::id(*root->incarnation()),
                           root->epoch(),
                           reader.string(root->host()),
                           root->pid(),
                           root->wall_time_s(),
                           root->ranks()};
    if (reader.exhausted()) return corrupt("open record: it unpacks to more than it holds");
    if (!value.incarnation) return refuse("open record: no incarnation");
    if (value.epoch == 0 || value.epoch > epoch_max) return refuse("open record: epoch ", value.epoch);
    if (!printable(value.host, address_bytes_max)) return refuse("open record: an impossible host name");
    TRY(check::ranks(value.ranks).within("open record"));
    return value;
}

Bytes encode_from_record(const FromRecord& record) {
    Writer writer;
    const fb::Id incarnation = Writer::id(record.incarnation);
    const fb::Parent parent = Writer::parent(record.parent);
    std::vector<fb::Parent> versions;
    for (const Parent& each : record.whole) versions.push_back(Writer::parent(each));
    const auto whole = versions.empty() ? 0 : writer.builder.CreateVectorOfStructs(versions);
    writer.builder.Finish(fb::CreateFromRecord(writer.builder, &incarnation, &parent, record.looked, whole));
    return frame(FrameKind::from, writer.bytes());
}

Result<FromRecord> decode_from_record(ByteView bytes) {
    Bytes body;
    TRY_ASSIGN(body, unframe(FrameKind::from, bytes));
    const auto* root = verified_root<fb::FromRecord>(body, nullptr);
    if (!root) return corrupt("from record: its checksum holds but its structure does not");
    Reader reader(body.size());
    FromRecord value{Reader::id(*root->incarnation()), Reader::parent(*root->parent()), root->looked(), {}};
    for (const fb::Parent& each : reader.structs(root->whole())) value.whole.push_back(Reader::parent(each));
    if (reader.exhausted()) return corrupt("from record: it unpacks to more than it holds");
    if (!value.incarnation) return refuse("from record: no incarnation");
    TRY(check::parent(value.parent).within("from record"));
    for (const Parent& each : value.whole)
        if (!each.incarnation || each.version == 0) return refuse("from record: a whole version that is none");
    return value;
}

Bytes encode_node_record(const NodeRecord& record) {
    Writer writer;
    const auto address = writer.string(record.address);
    const fb::Id incarnation = Writer::id(record.incarnation);
    writer.builder.Finish(fb::CreateNodeRecord(writer.builder, &incarnation, record.node, address));
    return frame(FrameKind::node, writer.bytes());
}

Result<NodeRecord> decode_node_record(ByteView bytes) {
    Bytes body;
    TRY_ASSIGN(body, unframe(FrameKind::node, bytes));
    const auto* root = verified_root<fb::NodeRecord>(body, nullptr);
    if (!root) return corrupt("node record: its checksum holds but its structure does not");
    Reader reader(body.size());
    const NodeRecord value{Reader::id(*root->incarnation()), root->node(), reader.string(root->address())};
    if (reader.exhausted()) return corrupt("node record: it unpacks to more than it holds");
    if (!value.incarnation) return refuse("node record: no incarnation");
    if (!printable(value.address, address_bytes_max)) return refuse("node record: an impossible address");
    return value;
}

Bytes encode_io_node_record(const IoNodeRecord& record) {
    Writer writer;
    const auto node = writer.string(record.node);
    const auto address = writer.string(record.address);
    writer.builder.Finish(fb::CreateIoNodeRecord(writer.builder, node, address, record.format));
    return frame(FrameKind::io_node, writer.bytes());
}

Result<IoNodeRecord> decode_io_node_record(ByteView bytes) {
    Bytes body;
    TRY_ASSIGN(body, unframe(FrameKind::io_node, bytes));
    const auto* root = verified_root<fb::IoNodeRecord>(body, nullptr);
    if (!root) return corrupt("I/O node record: its checksum holds but its structure does not");
    Reader reader(body.size());
    const IoNodeRecord value{reader.string(root->node()), reader.string(root->address()), root->format()};
    if (reader.exhausted()) return corrupt("I/O node record: it unpacks to more than it holds");
    if (!valid_name(value.node)) return refuse("I/O node record: a node whose name is not a valid one");
    if (value.address.empty() || !printable(value.address, address_bytes_max))
        return refuse("I/O node record: an impossible address");
    return value;
}

}  // namespace cairn
