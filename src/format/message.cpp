// Messages: one FlatBuffers table, the body a union with one member for each alternative of message::Body.
#include "format/message.hpp"

#include <algorithm>

#include "format/check.hpp"
#include "format/covers.hpp"
#include "format/fields.hpp"
#include "format/frame.hpp"
#include "format/message_check.hpp"
#include "format/union.hpp"
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
    const fb::Id* id(Id128 value) { return &(id_ = Writer::id(value)); }

    auto write(const message::Sealed& m) { return fb::CreateSealed(builder, writer.images(m.images), m.block_bytes); }
    auto write(const message::Begun& m) { return fb::CreateBegun(builder, writer.images(m.images), m.block_bytes); }
    auto write(const message::Noted& m) { return fb::CreateNoted(builder, writer.numbers(m.missing)); }
    auto write(const message::Progress& m) {
        std::vector<fb::PartProgress> parts;
        for (const message::PartProgress& part : m.parts) parts.emplace_back(part.part, part.unstarted_bytes, part.begun_bytes, part.bytes_per_s);
        return fb::CreateProgress(builder, id(m.attempt_id), m.sequence, m.bytes, builder.CreateVectorOfStructs(parts), m.taken);
    }
    auto write(const message::PartsDone& m) {
        const auto why = text(m.text);
        const auto parts = writer.part_infos(m.parts);
        flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::CodecRate>>> codecs;
        if (!m.codecs.empty())
            codecs = writer.tables(m.codecs, [&](const message::CodecRate& c) { return fb::CreateCodecRate(builder, writer.string(c.codec), c.raw_bytes, c.stored_bytes, c.raw_bytes_per_s, c.apart_bytes, c.merged_bytes, c.tried_bytes); });
        std::vector<fb::KeyEncoded> rows;
        for (const KeyEncoded& k : m.keys) rows.emplace_back(k.key, static_cast<std::uint8_t>(k.effort), k.raw_bytes, k.stored_bytes, k.took_ns);
        const auto keys = structs(rows);
        return fb::CreatePartsDone(builder, id(m.attempt_id), code(m.code), why, m.has_lost, m.lost, parts,
                                   m.has_failed_part, m.failed_part, m.coverage, static_cast<std::uint8_t>(m.card), codecs, m.storage_busy_ns, m.needs_base, m.encoders, keys, m.equal_bytes);
    }
    auto write(const message::Acknowledged& m) { return fb::CreateAcknowledged(builder, id(m.attempt_id)); }
    auto write(const message::Leave& m) { return fb::CreateLeave(builder, id(m.attempt_id)); }
    // None where there are none: what older daemons know stays what it was.
    template <typename Struct>
    flatbuffers::Offset<flatbuffers::Vector<const Struct*>> structs(const std::vector<Struct>& rows) {
        return rows.empty() ? flatbuffers::Offset<flatbuffers::Vector<const Struct*>>() : builder.CreateVectorOfStructs(rows);
    }
    auto efforts(const KeyEfforts& keys) {
        std::vector<fb::KeyEffort> rows;
        for (const KeyEffort& k : keys) rows.emplace_back(k.key, static_cast<std::uint8_t>(k.effort));
        return structs(rows);
    }
    static fb::Source source(const Source& s) { return {s.rank, s.image_offset, s.length}; }
    auto write(const message::Want& m) {
        const fb::Source wanted = source(m.source);
        flatbuffers::Offset<flatbuffers::String> codec;
        if (!m.codec.empty()) codec = writer.string(m.codec);
        return fb::CreateWant(builder, m.tag, &wanted, static_cast<std::uint8_t>(m.reason), codec, m.base, efforts(m.keys), m.describe);
    }
    auto write(const message::Chunk& m) {
        const auto why = text(m.text);
        const auto checksums = writer.numbers(m.checksums), cuts = writer.numbers(m.cuts);
        std::vector<fb::NumberArray> rows;
        for (const NumberArray& a : m.arrays) rows.emplace_back(a.offset, a.length, a.row, a.plane, a.key, a.width, a.is_float, a.is_swapped);
        const auto arrays = structs(rows);
        return fb::CreateChunk(builder, m.tag, code(m.code), why, checksums, cuts, m.stored_bytes, m.stored_checksum, m.used_up, m.needs_base, arrays);
    }
    auto write(const message::Ended& m) { return fb::CreateEnded(builder, code(m.code), text(m.text), m.final, m.base); }
    auto write(const message::Cancel& m) {
        if (m.text.empty()) return fb::CreateCancel(builder);
        const auto why = text(m.text);
        return fb::CreateCancel(builder, why, id(m.attempt_id));
    }

    auto node_sources(const std::vector<NodeSources>& nodes) {
        return writer.tables(nodes, [&](const NodeSources& n) {
            std::vector<fb::Source> sources;
            for (const Source& s : n.sources) sources.push_back(source(s));
            return fb::CreateNodeSources(builder, n.node, builder.CreateVectorOfStructs(sources));
        });
    }
    auto addresses(const std::vector<message::NodeAddress>& addresses) {
        return writer.tables(addresses, [&](const message::NodeAddress& a) {
            return fb::CreateNodeAddress(builder, a.node, writer.string(a.address));
        });
    }
    auto work(const std::vector<message::Work>& work) {
        return writer.tables(work, [&](const message::Work& w) {
            return fb::CreateWork(builder, w.part, w.offset, w.bytes, node_sources(w.nodes));
        });
    }
    flatbuffers::Offset<fb::PartPlan> plan(const PartPlan& p) {
        const auto target = writer.string(p.target);
        const auto shares = writer.tables(p.shares, [&](const Share& s) {
            return fb::CreateShare(builder, s.leader, s.offset, s.bytes, node_sources(s.nodes));
        });
        return fb::CreatePartPlan(builder, p.part, target, p.sized_bytes, shares, p.replaces, p.replacement);
    }
    auto write(const message::Lead& m) {
        const auto parts = writer.tables(m.parts, [&](const PartPlan& p) { return plan(p); });
        const auto images = writer.images(m.images);
        const auto where = addresses(m.addresses);
        const auto codec = writer.string(m.codec);
        flatbuffers::Offset<flatbuffers::String> trial;
        if (!m.trial.empty()) trial = writer.string(m.trial);
        return fb::CreateLead(builder, m.attempt, id(m.attempt_id), m.parts_total, m.ranks_total, m.block_bytes, parts,
                              images, where, m.keep_own, m.pack_bytes, codec, m.encode_at_follower, trial, m.base, m.merge_ranks, m.merge_bytes,
                              m.trial_merge_ranks, m.trial_merge_bytes, m.may_replace, efforts(m.keys), m.equal_pages);
    }
    auto write(const message::Shed& m) { return fb::CreateShed(builder, id(m.attempt_id), m.move, m.part, m.to, m.bytes); }
    auto write(const message::Given& m) {
        const auto given = work(m.work);
        return fb::CreateGiven(builder, id(m.attempt_id), m.move, given);
    }
    auto write(const message::Take& m) {
        const auto taken = work(m.work);
        const auto where = addresses(m.addresses);
        return fb::CreateTake(builder, id(m.attempt_id), m.move, taken, where);
    }
    auto write(const message::Taken& m) { return fb::CreateTaken(builder, id(m.attempt_id), m.move); }
    auto write(const message::Complete& m) {
        const auto images = writer.images(m.images);
        return fb::CreateComplete(builder, id(m.attempt_id), images);
    }
    auto write(const message::Opened& m) { return fb::CreateOpened(builder, id(m.attempt_id), m.part); }
    auto write(const message::ShareDone& m) {
        const auto covers = writer.covers(covers_of(m.runs, m.block_bytes));
        const auto runs = writer.runs(m.runs);
        const auto empty_ranks = writer.numbers(m.empty_ranks);
        return fb::CreateShareDone(builder, id(m.attempt_id), m.part, m.piece, m.pieces, m.sample.part_offset, m.sample.length, m.sample.checksum, covers, runs,
                                   m.block_bytes, empty_ranks);
    }
    auto write(const message::Room& m) { return fb::CreateRoom(builder, id(m.attempt_id), m.part, m.number, m.bytes); }
    auto write(const message::Roomed& m) { return fb::CreateRoomed(builder, id(m.attempt_id), m.part, m.number, m.offset); }
    auto write(const message::PartFailed& m) { return fb::CreatePartFailed(builder, id(m.attempt_id), m.part, code(m.code), text(m.text)); }
    auto write(const message::Replace& m) {
        const auto with = writer.tables(m.with, [&](const PartPlan& p) { return plan(p); });
        const auto where = addresses(m.addresses);
        return fb::CreateReplace(builder, id(m.attempt_id), m.part, with, where);
    }
    fb::Id id_;  // of the message that is being written

    auto write(const message::ShareKept& m) { return fb::CreateShareKept(builder, id(m.attempt_id), m.part, m.piece); }
};

// fb::Body has NONE first, then the alternatives of message::Body in their order.
using BodyTables = Bodies<fb::Sealed, fb::Noted, fb::Lead, fb::Progress, fb::PartsDone, fb::Acknowledged, fb::Leave, fb::Want, fb::Chunk, fb::Ended, fb::Cancel,
                          fb::Shed, fb::Given, fb::Take, fb::Taken, fb::Complete, fb::Opened, fb::ShareDone, fb::ShareKept, fb::Room, fb::Roomed, fb::Begun,
                          fb::PartFailed, fb::Replace>;
static_assert(std::variant_size_v<message::Body> == static_cast<std::size_t>(fb::Body::MAX));

// ---- reading ----

struct BodyReader {
    Reader& reader;
    std::vector<Cover> covers = {};  // of a ShareDone, whose pieces get their checksums once the budget is known to hold

    static Source source(const fb::Source& s) { return {s.rank(), s.image_offset(), s.length()}; }

    message::Body read(const fb::Begun& m) { return message::Begun{reader.images(m.images()), m.block_bytes()}; }
    message::Body read(const fb::Sealed& m) { return message::Sealed{reader.images(m.images()), m.block_bytes()}; }
    message::Body read(const fb::Noted& m) { return message::Noted{reader.numbers(m.missing())}; }
    message::Body read(const fb::Progress& m) {
        message::Progress progress{Reader::id(*m.attempt_id()), m.sequence(), m.bytes(), {}, m.taken()};
        if (m.parts())
            for (const fb::PartProgress* part : *m.parts())
                progress.parts.push_back({part->part(), part->unstarted_bytes(), part->begun_bytes(), part->bytes_per_s()});
        return progress;
    }
    KeyEfforts efforts(const flatbuffers::Vector<const fb::KeyEffort*>* rows) {
        KeyEfforts keys;
        for (const fb::KeyEffort& k : reader.structs(rows))
            if (k.effort() < efforts_count) keys.push_back({k.key(), static_cast<Effort>(k.effort())});  // others are of a later Cairn, which does as well without
        return keys;
    }
    std::vector<KeyEncoded> keys(const flatbuffers::Vector<const fb::KeyEncoded*>* rows) {
        std::vector<KeyEncoded> keys;
        for (const fb::KeyEncoded& k : reader.structs(rows))
            if (k.effort() < efforts_count) keys.push_back({k.key(), static_cast<Effort>(k.effort()), k.raw_bytes(), k.stored_bytes(), k.took_ns()});
        return keys;
    }
    message::Body read(const fb::PartsDone& m) {
        return message::PartsDone{
            Reader::id(*m.attempt_id()), static_cast<Code>(m.code()), reader.string(m.text()), m.has_lost(), m.lost(),
            m.has_failed_part(), m.failed_part(), reader.part_infos(m.parts()), m.coverage(), static_cast<Card>(m.card()),
            reader.tables(m.codecs(), [&](const fb::CodecRate& c) { return message::CodecRate{reader.string(c.codec()), c.raw_bytes(), c.stored_bytes(), c.raw_bytes_per_s(), c.apart_bytes(), c.merged_bytes(), c.tried_bytes()}; }),
            m.storage_busy_ns(), m.needs_base(), m.encoders(), keys(m.keys()), m.equal_bytes()};
    }
    message::Body read(const fb::Acknowledged& m) { return message::Acknowledged{Reader::id(*m.attempt_id())}; }
    message::Body read(const fb::Leave& m) { return message::Leave{Reader::id(*m.attempt_id())}; }
    message::Body read(const fb::Want& m) { return message::Want{m.tag(), source(*m.source()), static_cast<Reason>(m.reason()), reader.string(m.codec()), m.base(), efforts(m.keys()), m.describe()}; }
    std::vector<NumberArray> arrays(const flatbuffers::Vector<const fb::NumberArray*>* rows) {
        std::vector<NumberArray> arrays;
        for (const fb::NumberArray& a : reader.structs(rows)) arrays.push_back({a.offset(), a.length(), a.width(), a.is_float(), a.is_swapped(), a.row(), a.plane(), a.key()});
        return arrays;
    }
    message::Body read(const fb::Chunk& m) {
        return message::Chunk{m.tag(), static_cast<Code>(m.code()), reader.string(m.text()),
                              reader.numbers(m.checksums()), reader.numbers(m.cuts()), m.stored_bytes(), m.stored_checksum(), m.used_up(), m.needs_base(), arrays(m.arrays())};
    }
    message::Body read(const fb::Ended& m) { return message::Ended{static_cast<Code>(m.code()), reader.string(m.text()), m.final(), m.base()}; }
    message::Body read(const fb::Cancel& m) { return message::Cancel{reader.string(m.text()), m.attempt_id() ? Reader::id(*m.attempt_id()) : Id128()}; }
    NodeSources sources(const fb::NodeSources& n) {
        NodeSources value{n.node(), {}};
        for (const fb::Source& s : reader.structs(n.sources())) value.sources.push_back(source(s));
        return value;
    }
    std::vector<NodeSources> nodes(const flatbuffers::Vector<flatbuffers::Offset<fb::NodeSources>>* from) {
        return reader.tables(from, [&](const fb::NodeSources& n) { return sources(n); });
    }
    std::vector<message::NodeAddress> addresses(const flatbuffers::Vector<flatbuffers::Offset<fb::NodeAddress>>* from) {
        return reader.tables(from, [&](const fb::NodeAddress& a) {
            return message::NodeAddress{a.node(), reader.string(a.address())};
        });
    }
    std::vector<message::Work> work(const flatbuffers::Vector<flatbuffers::Offset<fb::Work>>* from) {
        return reader.tables(from, [&](const fb::Work& w) {
            return message::Work{w.part(), w.offset(), w.bytes(), nodes(w.nodes())};
        });
    }
    PartPlan plan(const fb::PartPlan& p) {
        return {p.part(), reader.string(p.target()), p.sized_bytes(), reader.tables(p.shares(), [&](const fb::Share& s) {
                    return Share{s.leader(), s.offset(), s.bytes(), nodes(s.nodes())};
                }),
                p.replaces(), p.replacement()};
    }
    message::Body read(const fb::Lead& m) {
        message::Lead lead;
        lead.attempt = m.attempt();
        lead.attempt_id = Reader::id(*m.attempt_id());
        lead.parts_total = m.parts_total();
        lead.ranks_total = m.ranks_total();
        lead.block_bytes = m.block_bytes();
        lead.keep_own = m.keep_own();
        lead.pack_bytes = m.pack_bytes();
        lead.codec = reader.string(m.codec());
        lead.encode_at_follower = m.encode_at_follower();
        lead.trial = reader.string(m.trial());
        lead.base = m.base();
        lead.merge_ranks = m.merge_ranks();
        lead.merge_bytes = m.merge_bytes();
        lead.trial_merge_ranks = m.trial_merge_ranks();
        lead.trial_merge_bytes = m.trial_merge_bytes();
        lead.may_replace = m.may_replace();
        lead.keys = efforts(m.keys());
        lead.equal_pages = m.equal_pages();
        lead.parts = reader.tables(m.parts(), [&](const fb::PartPlan& p) { return plan(p); });
        lead.images = reader.images(m.images());
        lead.addresses = addresses(m.addresses());
        return lead;
    }
    message::Body read(const fb::Shed& m) { return message::Shed{Reader::id(*m.attempt_id()), m.move(), m.part(), m.to(), m.bytes()}; }
    message::Body read(const fb::Given& m) { return message::Given{Reader::id(*m.attempt_id()), m.move(), work(m.work())}; }
    message::Body read(const fb::Take& m) { return message::Take{Reader::id(*m.attempt_id()), m.move(), work(m.work()), addresses(m.addresses())}; }
    message::Body read(const fb::Taken& m) { return message::Taken{Reader::id(*m.attempt_id()), m.move()}; }
    message::Body read(const fb::Complete& m) { return message::Complete{Reader::id(*m.attempt_id()), reader.images(m.images())}; }
    message::Body read(const fb::Opened& m) { return message::Opened{Reader::id(*m.attempt_id()), m.part()}; }
    message::Body read(const fb::ShareDone& m) {
        covers = reader.covers(m.covers());
        return message::ShareDone{Reader::id(*m.attempt_id()), m.part(), m.piece(), m.pieces(), m.block_bytes(), reader.runs(m.runs()), reader.numbers(m.empty_ranks()),
                                  {m.sample_offset(), m.sample_bytes(), m.sample_checksum()}};
    }
    message::Body read(const fb::ShareKept& m) { return message::ShareKept{Reader::id(*m.attempt_id()), m.part(), m.piece()}; }

    message::Body read(const fb::Room& m) { return message::Room{Reader::id(*m.attempt_id()), m.part(), m.number(), m.bytes()}; }
    message::Body read(const fb::Roomed& m) { return message::Roomed{Reader::id(*m.attempt_id()), m.part(), m.number(), m.offset()}; }
    message::Body read(const fb::PartFailed& m) { return message::PartFailed{Reader::id(*m.attempt_id()), m.part(), static_cast<Code>(m.code()), reader.string(m.text())}; }
    message::Body read(const fb::Replace& m) {
        return message::Replace{Reader::id(*m.attempt_id()), m.part(), reader.tables(m.with(), [&](const fb::PartPlan& p) { return plan(p); }), addresses(m.addresses())};
    }

    // False when the union holds nothing, or a member this version does not know.
    bool read(const fb::Message& m, message::Body& body) {
        return m.body() && read_body<fb::BodyTraits>(BodyTables(), m.body_type(), m.body(), [&](const auto& table) { body = read(table); });
    }
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
    BodyReader body{reader};
    if (!body.read(*root, value.body))
        return Status(Code::unsupported, "message: of a kind this Cairn does not know");
    if (reader.exhausted()) return corrupt("message: it unpacks to more than it holds");
    TRY(check::key(value.key).within("message"));
    if (!printable(value.address, address_bytes_max)) return refuse("message: an impossible address");
    TRY(check_body(value.body).within("message"));
    if (auto* done = std::get_if<message::ShareDone>(&value.body)) {
        TRY(give_checksums(done->runs, body.covers, done->block_bytes).within("message"));
    }
    return value;
}

}  // namespace cairn
