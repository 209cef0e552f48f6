// Messages: one FlatBuffers table, the body a union with one member for each alternative of message::Body.
#include "format/message.hpp"

#include <algorithm>

#include "format/check.hpp"
#include "format/fields.hpp"
#include "format/frame.hpp"
#include "message_generated.h"

namespace cairn {

using check::refuse;

namespace {

// ---- writing ----

struct BodyWriter {
    Writer& writer;
    flatbuffers::FlatBufferBuilder& builder = writer.builder;

    auto text(const std::string& text) { return writer.string(std::string_view(text).substr(0, text_bytes_max)); }
    auto code(Code code) { return static_cast<std::uint8_t>(code); }

    auto write(const message::Sealed& m) { return fb::CreateSealed(builder, writer.images(m.images), m.block_bytes); }
    auto write(const message::Noted& m) { return fb::CreateNoted(builder, writer.numbers(m.missing)); }
    auto write(const message::Progress& m) {
        const fb::Id attempt_id = Writer::id(m.attempt_id);
        return fb::CreateProgress(builder, &attempt_id, m.bytes);
    }
    auto write(const message::PartsDone& m) {
        const fb::Id attempt_id = Writer::id(m.attempt_id);
        const auto why = text(m.text);
        const auto parts = writer.part_infos(m.parts);
        return fb::CreatePartsDone(builder, &attempt_id, code(m.code), why, m.has_lost, m.lost, parts);
    }
    auto write(const message::Acknowledged& m) {
        const fb::Id attempt_id = Writer::id(m.attempt_id);
        return fb::CreateAcknowledged(builder, &attempt_id);
    }
    auto write(const message::Leave& m) {
        const fb::Id attempt_id = Writer::id(m.attempt_id);
        return fb::CreateLeave(builder, &attempt_id);
    }
    static fb::Source source(const Source& s) { return {s.rank, s.image_offset, s.length}; }
    auto write(const message::Want& m) {
        const fb::Source wanted = source(m.source);
        return fb::CreateWant(builder, m.tag, &wanted);
    }
    auto write(const message::Chunk& m) {
        const auto why = text(m.text);
        const auto checksums = writer.numbers(m.checksums);
        return fb::CreateChunk(builder, m.tag, code(m.code), why, checksums);
    }
    auto write(const message::Ended& m) { return fb::CreateEnded(builder, code(m.code), text(m.text), m.final); }
    auto write(const message::Cancel&) { return fb::CreateCancel(builder); }

    flatbuffers::Offset<fb::PartPlan> plan(const PartPlan& p) {
        const auto nodes = writer.tables(p.nodes, [&](const NodeSources& n) {
            std::vector<fb::Source> sources;
            for (const Source& s : n.sources) sources.push_back(source(s));
            return fb::CreateNodeSources(builder, n.node, builder.CreateVectorOfStructs(sources));
        });
        return fb::CreatePartPlan(builder, p.part, p.leader, nodes);
    }
    auto write(const message::Lead& m) {
        const auto parts = writer.tables(m.parts, [&](const PartPlan& p) { return plan(p); });
        const auto images = writer.images(m.images);
        const auto addresses = writer.tables(m.addresses, [&](const message::Lead::NodeAddress& a) {
            return fb::CreateNodeAddress(builder, a.node, writer.string(a.address));
        });
        const fb::Id attempt_id = Writer::id(m.attempt_id);
        return fb::CreateLead(builder, m.attempt, &attempt_id, m.parts_total, m.ranks_total, m.block_bytes, parts,
                              images, addresses);
    }
};

// fb::Body has NONE first, then the alternatives of message::Body in their order.
static_assert(std::variant_size_v<message::Body> == static_cast<std::size_t>(fb::Body::MAX));

// ---- reading ----

struct BodyReader {
    Reader& reader;

    static Source source(const fb::Source& s) { return {s.rank(), s.image_offset(), s.length()}; }

    message::Body read(const fb::Sealed& m) { return message::Sealed{reader.images(m.images()), m.block_bytes()}; }
    message::Body read(const fb::Noted& m) { return message::Noted{reader.numbers(m.missing())}; }
    message::Body read(const fb::Progress& m) { return message::Progress{Reader::id(*m.attempt_id()), m.bytes()}; }
    message::Body read(const fb::PartsDone& m) {
        return message::PartsDone{
            Reader::id(*m.attempt_id()), static_cast<Code>(m.code()), reader.string(m.text()), m.has_lost(), m.lost(),
            reader.part_infos(m.parts())};
    }
    message::Body read(const fb::Acknowledged& m) { return message::Acknowledged{Reader::id(*m.attempt_id())}; }
    message::Body read(const fb::Leave& m) { return message::Leave{Reader::id(*m.attempt_id())}; }
    message::Body read(const fb::Want& m) { return message::Want{m.tag(), source(*m.source())}; }
    message::Body read(const fb::Chunk& m) {
        return message::Chunk{m.tag(), static_cast<Code>(m.code()), reader.string(m.text()),
                              reader.numbers(m.checksums())};
    }
    message::Body read(const fb::Ended& m) {
        return message::Ended{static_cast<Code>(m.code()), reader.string(m.text()), m.final()};
    }
    message::Body read(const fb::Cancel&) { return message::Cancel{}; }
    NodeSources sources(const fb::NodeSources& n) {
        NodeSources value{n.node(), {}};
        for (const fb::Source& s : reader.structs(n.sources())) value.sources.push_back(source(s));
        return value;
    }
    message::Body read(const fb::Lead& m) {
        message::Lead lead;
        lead.attempt = m.attempt();
        lead.attempt_id = Reader::id(*m.attempt_id());
        lead.parts_total = m.parts_total();
        lead.ranks_total = m.ranks_total();
        lead.block_bytes = m.block_bytes();
        lead.parts = reader.tables(m.parts(), [&](const fb::PartPlan& p) {
            return PartPlan{p.part(), p.leader(),
                            reader.tables(p.nodes(), [&](const fb::NodeSources& n) { return sources(n); })};
        });
        lead.images = reader.images(m.images());
        lead.addresses = reader.tables(m.addresses(), [&](const fb::NodeAddress& a) {
            return message::Lead::NodeAddress{a.node(), reader.string(a.address())};
        });
        return lead;
    }

    // False when the union holds nothing, or a member this version does not know.
    bool read(const fb::Message& m, message::Body& body) {
        if (!m.body()) return false;
        switch (m.body_type()) {
            case fb::Body::Sealed:
                body = read(*m.body_as_Sealed());
                return true;
            case fb::Body::Noted:
                body = read(*m.body_as_Noted());
                return true;
            case fb::Body::Lead:
                body = read(*m.body_as_Lead());
                return true;
            case fb::Body::Progress:
                body = read(*m.body_as_Progress());
                return true;
            case fb::Body::PartsDone:
                body = read(*m.body_as_PartsDone());
                return true;
            case fb::Body::Acknowledged:
                body = read(*m.body_as_Acknowledged());
                return true;
            case fb::Body::Leave:
                body = read(*m.body_as_Leave());
                return true;
            case fb::Body::Want:
                body = read(*m.body_as_Want());
                return true;
            case fb::Body::Chunk:
                body = read(*m.body_as_Chunk());
                return true;
            case fb::Body::Ended:
                body = read(*m.body_as_Ended());
                return true;
            case fb::Body::Cancel:
                body = read(*m.body_as_Cancel());
                return true;
            default:
                return false;
        }
    }
};

// ---- what a message must hold ----

Status check_code(Code code, const std::string& text) {
    if (code > Code::internal) return refuse("unknown code ", int(code));
    if (text.size() > text_bytes_max) return refuse("a text of ", text.size(), " bytes");
    return {};
}

Status check_images(const std::vector<ImageInfo>& images) {
    std::vector<Rank> ranks;
    for (const ImageInfo& image : images) {
        TRY(check::image(image));
        ranks.push_back(image.rank);
    }
    std::sort(ranks.begin(), ranks.end());
    if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) return refuse("a rank is there twice");
    return {};
}

Status check_source(const Source& source) {
    if (source.rank < ranks_max && source.length <= bytes_max && source.image_offset <= bytes_max - source.length)
        return {};
    return refuse("an impossible run of rank ", source.rank, "'s image: ", source.length, " bytes at ",
                  source.image_offset);
}

Status check_attempt(Id128 attempt_id) { return attempt_id ? Status() : refuse("no attempt"); }

struct BodyCheck {
    Status operator()(const message::Sealed& m) const {
        TRY(check::block_bytes(m.block_bytes));
        return check_images(m.images);
    }
    Status operator()(const message::Lead& m) const {
        TRY(check_attempt(m.attempt_id));
        TRY(check::ranks(m.ranks_total));
        if (m.parts_total == 0 || m.parts_total > m.ranks_total)
            return refuse(m.parts_total, " parts for ", m.ranks_total, " ranks");
        TRY(check::block_bytes(m.block_bytes));
        TRY(check_images(m.images));
        for (const auto& address : m.addresses)
            if (!printable(address.address, address_bytes_max))
                return refuse("an impossible address of node ", address.node);
        for (const PartPlan& part : m.parts) {
            if (part.part >= m.parts_total) return refuse("part ", part.part, " of ", m.parts_total);
            for (const NodeSources& node : part.nodes)
                for (const Source& source : node.sources) {
                    TRY(check_source(source));
                    if (source.image_offset % m.block_bytes != 0)
                        return refuse("a run of an image that does not start on a block");
                }
        }
        return {};
    }
    Status operator()(const message::PartsDone& m) const {
        TRY(check_attempt(m.attempt_id));
        for (const PartInfo& part : m.parts) TRY(check::part_info(part));
        return check_code(m.code, m.text);
    }
    Status operator()(const message::Progress& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::Acknowledged& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::Leave& m) const { return check_attempt(m.attempt_id); }
    Status operator()(const message::Want& m) const { return check_source(m.source); }
    Status operator()(const message::Chunk& m) const { return check_code(m.code, m.text); }
    Status operator()(const message::Ended& m) const { return check_code(m.code, m.text); }
    Status operator()(const message::Noted&) const { return {}; }
    Status operator()(const message::Cancel&) const { return {}; }
};

}  // namespace

Bytes encode(const message::Message& message) {
    Writer writer;
    auto& builder = writer.builder;
    const auto body = std::visit([&](const auto& m) { return BodyWriter{writer}.write(m).Union(); }, message.body);
    const auto key = writer.key(message.key);
    const auto address = writer.string(message.address);
    const fb::Id secret = Writer::id(message.secret);
    const auto type = static_cast<fb::Body>(message.body.index() + 1);
    fb::FinishMessageBuffer(builder, fb::CreateMessage(builder, &secret, key, message.from, address, type, body));
    return frame(FrameKind::message, writer.bytes());
}

Result<message::Message> decode_message(ByteView bytes) {
    Bytes raw;
    TRY_ASSIGN(raw, unframe(FrameKind::message, bytes));
    const auto* root = verified_root<fb::Message>(raw, fb::MessageIdentifier());
    if (!root) return corrupt("message: its checksum holds but its structure does not");
    Reader reader(raw.size());
    message::Message value;
    value.secret = Reader::id(*root->secret());
    value.key = reader.key(*root->key());
    value.from = root->from();
    value.address = reader.string(root->address());
    if (!BodyReader{reader}.read(*root, value.body))
        return Status(Code::unsupported, "message: of a kind this Cairn does not know");
    if (reader.exhausted()) return corrupt("message: it unpacks to more than it holds");
    TRY(check::key(value.key).within("message"));
    if (!printable(value.address, address_bytes_max)) return refuse("message: an impossible address");
    TRY(std::visit(BodyCheck{}, value.body).within("message"));
    return value;
}

}  // namespace cairn
