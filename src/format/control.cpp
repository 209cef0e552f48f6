// Control frames: model to tables and back. Every string is checked where it comes in: names can not leave their
// directory, paths are absolute, texts are printable enough for a log.
#include "format/control.hpp"

#include <algorithm>

#include "control_generated.h"
#include "format/frame.hpp"
#include "format/image.hpp"
#include "format/roster.hpp"
#include "format/union.hpp"

namespace cairn {

namespace {

namespace fc = fb::control;
using Builder = flatbuffers::FlatBufferBuilder;

constexpr std::size_t depth_max = 16, tables_max = 1 << 20;
constexpr std::size_t version_text_bytes_max = 64;

// ---- model to tables ----

fb::Id to_fb(const Id128& id) { return {id.high, id.low}; }
fb::Parent to_fb(const Parent& parent) { return {to_fb(parent.incarnation), parent.version}; }
flatbuffers::Offset<fb::Key> put_key(Builder& to, const VersionKey& key) {
    const fb::Id incarnation = to_fb(key.incarnation);
    return fb::CreateKey(to, to.CreateString(key.name), key.version, &incarnation);
}
auto put_text(Builder& to, const std::string& text) {
    return to.CreateString(text.data(), std::min<std::size_t>(text.size(), text_bytes_max));
}

using Body = flatbuffers::Offset<void>;

Body put(Builder& to, const control::Hello& m) {
    return fc::CreateHello(to, m.protocol, to.CreateString(m.program_version), m.pid, m.is_application).Union();
}
Body put(Builder& to, const control::Join& m) {
    const Bytes roster = encode_roster(m.roster);
    const auto bytes = to.CreateVector(reinterpret_cast<const std::uint8_t*>(roster.data()), roster.size());
    return fc::CreateJoin(to, bytes, m.self, m.rank).Union();
}
Body put(Builder& to, const control::Acquire& m) {
    return fc::CreateAcquire(to, put_key(to, m.key), m.rank, m.bytes, m.wait_ms, m.image_bytes, m.block_bytes).Union();
}
Body put(Builder& to, const control::Sealed& m) {
    const auto key = put_key(to, m.key);
    return fc::CreateSealed(to, key, m.rank, to.CreateString(m.path)).Union();
}
Body put(Builder& to, const control::Release& m) { return fc::CreateRelease(to, to.CreateString(m.path)).Union(); }
std::uint8_t number_of(Level level) { return static_cast<std::uint8_t>(level); }
Body put(Builder& to, const control::Wait& m) {
    return fc::CreateWait(to, put_key(to, m.key), number_of(m.level), m.wait_ms, m.failures_told).Union();
}
Body put(Builder& to, const control::Cancel& m) { return fc::CreateCancel(to, put_key(to, m.key)).Union(); }
Body put(Builder& to, const control::Images& m) { return fc::CreateImages(to, to.CreateString(m.name)).Union(); }
Body put(Builder& to, const control::Unpin&) { return fc::CreateUnpin(to).Union(); }
Body put(Builder& to, const control::GetStatus&) { return fc::CreateGetStatus(to).Union(); }
Body put(Builder& to, const control::Stop& m) { return fc::CreateStop(to, m.wait_ms).Union(); }

Body put(Builder& to, const control::Offer& m) {
    const Bytes header = encode_image_header(m.header);
    const auto bytes = to.CreateVector(reinterpret_cast<const std::uint8_t*>(header.data()), header.size());
    return fc::CreateOffer(to, bytes, to.CreateVector(m.header.cuts)).Union();
}
Body put(Builder& to, const control::Give& m) { return fc::CreateGive(to, m.image, m.piece, m.wait_ms, m.failures_told).Union(); }

Body put(Builder& to, const control::Failed& m) {
    return fc::CreateFailed(to, static_cast<std::uint8_t>(m.code), put_text(to, m.text)).Union();
}
Body put(Builder& to, const control::Done&) { return fc::CreateDone(to).Union(); }
Body put(Builder& to, const control::Welcome& m) {
    const auto version = to.CreateString(m.program_version), node = to.CreateString(m.node),
               address = to.CreateString(m.address);
    return fc::CreateWelcome(to, m.protocol, version, m.pid, node, address, m.format, m.through, m.prepares).Union();
}
flatbuffers::Offset<fc::Slot> put_slot(Builder& to, const control::Slot& m) { return fc::CreateSlot(to, to.CreateString(m.path), m.bytes, m.fresh); }
Body put(Builder& to, const control::Slot& m) { return put_slot(to, m).Union(); }
Body put(Builder& to, const control::Prepare& m) { return fc::CreatePrepare(to, m.rank, m.bytes, m.numa_node).Union(); }
Body put(Builder& to, const control::Prepared& m) {
    std::vector<flatbuffers::Offset<fc::Slot>> slots;
    for (const control::Slot& slot : m.slots) slots.push_back(put_slot(to, slot));
    return fc::CreatePrepared(to, to.CreateVector(slots), m.more_to_come).Union();
}
flatbuffers::Offset<fc::State> put_state(Builder& to, const control::State& m) {
    return fc::CreateState(to, number_of(m.level), static_cast<std::uint8_t>(m.code), put_text(to, m.text), m.final, m.failures);
}
Body put(Builder& to, const control::State& m) { return put_state(to, m).Union(); }
Body put(Builder& to, const control::Offered& m) { return fc::CreateOffered(to, m.image).Union(); }
Body put(Builder& to, const control::Wanted& m) {
    return fc::CreateWanted(to, m.piece, m.offset, m.length, m.window, m.window_bytes, put_state(to, m.state)).Union();
}
Body put(Builder& to, const control::ImageList& m) {
    std::vector<flatbuffers::Offset<fc::ImageEntry>> images;
    for (const control::ImageList::Entry& entry : m.images) {
        const auto key = put_key(to, entry.key);
        const auto path = to.CreateString(entry.path);
        const fb::Parent parent = to_fb(entry.parent);
        images.push_back(
            fc::CreateImageEntry(to, key, entry.epoch, &parent, entry.rank, entry.ranks, entry.bytes, path));
    }
    return fc::CreateImageList(to, to.CreateVector(images), m.unread).Union();
}
Body put(Builder& to, const control::NodeStatus& m) {
    std::vector<fc::Writer> writers;
    for (const auto& w : m.writers) writers.emplace_back(w.received_s, w.local_s, w.received_bytes, w.local_bytes);
    std::vector<flatbuffers::Offset<fc::Flush>> versions;
    for (const auto& v : m.versions) {
        const auto key = put_key(to, v.key);
        const auto text = put_text(to, v.text);
        versions.push_back(fc::CreateFlush(to, key, number_of(v.level), static_cast<std::uint8_t>(v.code), text, v.bytes,
                                           v.written_bytes, v.expected_bytes));
    }
    const auto node = to.CreateString(m.node), address = to.CreateString(m.address),
               backend = to.CreateString(m.storage_backend);
    const auto writer_list = to.CreateVectorOfStructs(writers);
    const auto version_list = to.CreateVector(versions);
    const auto target_list = to.CreateVectorOfStrings(m.targets);
    const auto cpu_class = to.CreateString(m.cpu_class), why = put_text(to, m.cpu_class_why);
    std::vector<flatbuffers::Offset<fc::Card>> cards;
    for (const auto& card : m.cards) cards.push_back(fc::CreateCard(to, to.CreateString(card.interface), card.rate_mbps, card.nodes));
    const auto card_list = to.CreateVector(cards);
    const auto card = put_text(to, m.card), choice = put_text(to, m.card_choice);
    return fc::CreateNodeStatus(to, node, m.pid, address, m.uptime_ms, backend, m.sessions, m.captured_bytes,
                                m.sent_bytes, m.received_bytes, m.written_bytes, m.scratch_bytes, m.anonymous_bytes,
                                m.anonymous_peak_bytes, m.versions_committed, m.attempts_failed, m.last_flush_s,
                                m.last_flush_bytes, writer_list, version_list, target_list, m.io_node, cpu_class, why,
                                m.processors, m.processors_in_machine, card_list, card, choice)
        .Union();
}
Body put(Builder& to, const control::Stopped& m) {
    std::vector<flatbuffers::Offset<fb::Key>> keys;
    for (const VersionKey& key : m.unfinished) keys.push_back(put_key(to, key));
    return fc::CreateStopped(to, to.CreateVector(keys)).Union();
}

Bytes finish(Builder& to, std::uint64_t number, flatbuffers::Offset<fc::Control> root) {
    fc::FinishControlBuffer(to, root);
    CAIRN_CHECK(to.GetSize() <= control_payload_bytes_max);
    Bytes out(control_header_bytes + to.GetSize());
    put_u32(out.data(), to.GetSize());
    put_u64(out.data() + 4, number);
    std::memcpy(out.data() + control_header_bytes, to.GetBufferPointer(), to.GetSize());
    return out;
}

// ---- tables to model ----

// At most so many bytes are copied; one more than may be, so that the checks below see what is too long.
std::string text_of(const flatbuffers::String* text, std::size_t length_max) {
    return text ? std::string(text->c_str(), std::min<std::size_t>(text->size(), length_max + 1)) : std::string();
}
Id128 id_of(const fb::Id& id) { return {id.high(), id.low()}; }

Result<VersionKey> key_of(const fb::Key* key) {
    VersionKey out{text_of(key->name(), name_bytes_max), key->version(), id_of(*key->incarnation())};
    if (!valid_name(out.name)) return corrupt("a version's name is not a name");
    return out;
}
Result<std::string> path_of(const flatbuffers::String* path) {
    std::string out = text_of(path, control_path_bytes_max);
    if (out.empty() || out.front() != '/' || out.size() > control_path_bytes_max || out.find('\0') != std::string::npos)
        return corrupt("a path is not an absolute path");
    return out;
}
Result<std::string> printable_of(const flatbuffers::String* text, std::size_t length_max, const char* what) {
    std::string out = text_of(text, length_max);
    if (!printable(out, length_max)) return corrupt(std::string(what) + " is too long or not printable");
    return out;
}
// Reasons may have several lines; what else could play tricks with a terminal becomes '?'.
std::string reason_of(const flatbuffers::String* text) {
    std::string out = text_of(text, text_bytes_max).substr(0, text_bytes_max);
    for (char& c : out)
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F) c = '?';
    return out;
}
Result<Code> code_of(std::uint8_t code) {
    if (code > static_cast<std::uint8_t>(Code::internal))
        return corrupt("status code " + std::to_string(code) + " is not known");
    return static_cast<Code>(code);
}
Result<Level> known_level(std::uint8_t number) {
    const std::optional<Level> level = level_of(number);
    if (!level) return corrupt("level " + std::to_string(number) + " is not known");
    return *level;
}

Result<control::Request> get(const fc::Hello& m) {
    TRY_ASSIGN(std::string version, printable_of(m.program_version(), version_text_bytes_max, "a program's version"));
    return control::Request(control::Hello{m.protocol(), std::move(version), m.pid(), m.is_application()});
}
Result<control::Request> get(const fc::Join& m) {
    const ByteView bytes(reinterpret_cast<const std::byte*>(m.roster()->data()), m.roster()->size());
    TRY_ASSIGN(Roster roster, decode_roster(bytes));
    if (m.self() >= roster.members.size()) return corrupt("node " + std::to_string(m.self()) + " is not in the roster");
    return control::Request(control::Join{std::move(roster), m.self(), m.rank()});
}
Result<control::Request> get(const fc::Acquire& m) {
    TRY_ASSIGN(VersionKey key, key_of(m.key()));
    return control::Request(control::Acquire{std::move(key), m.rank(), m.bytes(), m.wait_ms(), m.image_bytes(), m.block_bytes()});
}
Result<control::Request> get(const fc::Sealed& m) {
    TRY_ASSIGN(VersionKey key, key_of(m.key()));
    TRY_ASSIGN(std::string path, path_of(m.path()));
    return control::Request(control::Sealed{std::move(key), m.rank(), std::move(path)});
}
Result<control::Request> get(const fc::Release& m) {
    TRY_ASSIGN(std::string path, path_of(m.path()));
    return control::Request(control::Release{std::move(path)});
}
Result<control::Request> get(const fc::Wait& m) {
    TRY_ASSIGN(VersionKey key, key_of(m.key()));
    TRY_ASSIGN(const Level level, known_level(m.level()));
    return control::Request(control::Wait{std::move(key), level, m.wait_ms(), m.failures_told()});
}
Result<control::Request> get(const fc::Cancel& m) {
    TRY_ASSIGN(VersionKey key, key_of(m.key()));
    return control::Request(control::Cancel{std::move(key)});
}
Result<control::Request> get(const fc::Images& m) {
    std::string name = text_of(m.name(), name_bytes_max);
    if (!valid_name(name)) return corrupt("a checkpoint's name is not a name");
    return control::Request(control::Images{std::move(name)});
}
Result<control::Request> get(const fc::Unpin&) { return control::Request(control::Unpin{}); }
Result<control::Request> get(const fc::GetStatus&) { return control::Request(control::GetStatus{}); }
Result<control::Request> get(const fc::Stop& m) { return control::Request(control::Stop{m.wait_ms()}); }

// What header and table of a slot are to a slot, and as little believed.
Result<control::Request> get(const fc::Offer& m) {
    const ByteView bytes(reinterpret_cast<const std::byte*>(m.header()->data()), m.header()->size());
    control::Offer offer;
    TRY_ASSIGN(offer.header, decode_image_header(bytes));
    if (m.cuts()) offer.header.cuts.assign(m.cuts()->begin(), m.cuts()->end());
    if (offer.header.cuts.size() != offer.header.image.cuts) return corrupt("an image is offered with another number of cuts than it says");
    TRY(check_cuts(offer.header));
    return control::Request(std::move(offer));
}
Result<control::Request> get(const fc::Give& m) { return control::Request(control::Give{m.image(), m.piece(), m.wait_ms(), m.failures_told()}); }
Result<control::Request> get(const fc::Prepare& m) { return control::Request(control::Prepare{m.rank(), m.bytes(), m.numa_node()}); }

Result<control::Answer> get(const fc::Failed& m) {
    TRY_ASSIGN(const Code code, code_of(m.code()));
    if (code == Code::ok) return corrupt("a failure says ok");
    return control::Answer(control::Failed{code, reason_of(m.text())});
}
Result<control::Answer> get(const fc::Done&) { return control::Answer(control::Done{}); }
Result<control::Answer> get(const fc::Welcome& m) {
    TRY_ASSIGN(std::string version, printable_of(m.program_version(), version_text_bytes_max, "a program's version"));
    TRY_ASSIGN(std::string node, printable_of(m.node(), name_bytes_max, "a node's name"));
    TRY_ASSIGN(std::string address, printable_of(m.address(), address_bytes_max, "an address"));
    return control::Answer(
        control::Welcome{m.protocol(), std::move(version), m.pid(), std::move(node), std::move(address), m.format(), m.through(), m.prepares()});
}
Result<control::Slot> slot_of(const fc::Slot& m) {
    TRY_ASSIGN(std::string path, path_of(m.path()));
    return control::Slot{std::move(path), m.bytes(), m.fresh()};
}
Result<control::Answer> get(const fc::Slot& m) {
    TRY_ASSIGN(control::Slot slot, slot_of(m));
    return control::Answer(std::move(slot));
}
Result<control::Answer> get(const fc::Prepared& m) {
    control::Prepared prepared;
    if (m.slots())
        for (const fc::Slot* each : *m.slots()) {
            TRY_ASSIGN(control::Slot slot, slot_of(*each));
            prepared.slots.push_back(std::move(slot));
        }
    prepared.more_to_come = m.more_to_come();
    return control::Answer(std::move(prepared));
}
Result<control::State> state_of(const fc::State& m) {
    TRY_ASSIGN(const Code code, code_of(m.code()));
    TRY_ASSIGN(const Level level, known_level(m.level()));
    return control::State{level, code, reason_of(m.text()), m.final(), m.failures()};
}
Result<control::Answer> get(const fc::State& m) {
    TRY_ASSIGN(control::State state, state_of(m));
    return control::Answer(std::move(state));
}
Result<control::Answer> get(const fc::Offered& m) { return control::Answer(control::Offered{m.image()}); }
// A window has room for what is wanted.
Result<control::Answer> get(const fc::Wanted& m) {
    control::Wanted wanted{m.piece(), m.offset(), m.length(), m.window(), m.window_bytes(), {}, -1};
    if (!m.state()) return corrupt("a piece is wanted, and nothing said of its version");
    TRY_ASSIGN(wanted.state, state_of(*m.state()));
    if (wanted.length > wanted.window_bytes) return corrupt("a piece is wanted that is longer than its window");
    return control::Answer(std::move(wanted));
}
Result<control::Answer> get(const fc::ImageList& m) {
    control::ImageList out;
    out.unread = m.unread();
    if (m.images())
        for (const fc::ImageEntry* entry : *m.images()) {
            TRY_ASSIGN(VersionKey key, key_of(entry->key()));
            TRY_ASSIGN(std::string path, path_of(entry->path()));
            const Parent parent{id_of(entry->parent()->incarnation()), entry->parent()->version()};
            out.images.push_back({std::move(key), entry->epoch(), parent, entry->rank(), entry->ranks(), entry->bytes(),
                                  std::move(path)});
        }
    return control::Answer(std::move(out));
}
Result<control::NodeStatus::Flush> flush_of(const fc::Flush& v) {
    TRY_ASSIGN(VersionKey key, key_of(v.key()));
    TRY_ASSIGN(const Code code, code_of(v.code()));
    TRY_ASSIGN(const Level level, known_level(v.level()));
    return control::NodeStatus::Flush{std::move(key),    level, code, reason_of(v.text()), v.bytes(), v.written_bytes(),
                                      v.expected_bytes()};
}
Result<control::Answer> get(const fc::NodeStatus& m) {
    control::NodeStatus out;
    TRY_ASSIGN(out.node, printable_of(m.node(), name_bytes_max, "a node's name"));
    TRY_ASSIGN(out.address, printable_of(m.address(), address_bytes_max, "an address"));
    TRY_ASSIGN(out.storage_backend, printable_of(m.storage_backend(), name_bytes_max, "a storage backend"));
    out.pid = m.pid();
    out.uptime_ms = m.uptime_ms();
    out.sessions = m.sessions();
    out.captured_bytes = m.captured_bytes();
    out.sent_bytes = m.sent_bytes();
    out.received_bytes = m.received_bytes();
    out.written_bytes = m.written_bytes();
    out.scratch_bytes = m.scratch_bytes();
    out.anonymous_bytes = m.anonymous_bytes();
    out.anonymous_peak_bytes = m.anonymous_peak_bytes();
    out.versions_committed = m.versions_committed();
    out.attempts_failed = m.attempts_failed();
    out.last_flush_s = m.last_flush_s();
    out.last_flush_bytes = m.last_flush_bytes();
    if (m.writers())
        for (const fc::Writer* w : *m.writers())
            out.writers.push_back({w->received_s(), w->local_s(), w->received_bytes(), w->local_bytes()});
    if (m.versions())
        for (const fc::Flush* v : *m.versions()) {
            TRY_ASSIGN(auto flush, flush_of(*v));
            out.versions.push_back(std::move(flush));
        }
    out.io_node = m.io_node();
    if (m.cpu_class()) {  // an older daemon does not say
        TRY_ASSIGN(out.cpu_class, printable_of(m.cpu_class(), name_bytes_max, "a class of threads"));
    }
    out.cpu_class_why = reason_of(m.cpu_class_why());
    out.processors = m.processors();
    out.processors_in_machine = m.processors_in_machine();
    if (m.targets())
        for (const flatbuffers::String* target : *m.targets()) {
            TRY_ASSIGN(std::string name, printable_of(target, text_bytes_max, "a storage target"));
            out.targets.push_back(std::move(name));
        }
    if (m.cards())
        for (const fc::Card* each : *m.cards()) {
            TRY_ASSIGN(std::string interface, printable_of(each->interface(), name_bytes_max, "an interface"));
            out.cards.push_back({std::move(interface), each->rate_mbps(), each->nodes()});
        }
    TRY_ASSIGN(out.card, printable_of(m.card(), name_bytes_max, "an interface"));
    TRY_ASSIGN(out.card_choice, printable_of(m.card_choice(), text_bytes_max, "a reason"));
    return control::Answer(std::move(out));
}
Result<control::Answer> get(const fc::Stopped& m) {
    control::Stopped out;
    if (m.unfinished())
        for (const fb::Key* entry : *m.unfinished()) {
            TRY_ASSIGN(VersionKey key, key_of(entry));
            out.unfinished.push_back(std::move(key));
        }
    return control::Answer(std::move(out));
}

// A copy, aligned and out of reach of whoever filled the original, verified. Null in `root` never comes back with ok.
struct Payload {
    Bytes copy;
    const fc::Control* root = nullptr;
};
Result<Payload> open_payload(ByteView bytes) {
    if (bytes.size() < 8 || bytes.size() > control_payload_bytes_max)
        return corrupt("control payload: impossible length");
    Payload payload{Bytes(bytes.begin(), bytes.end()), nullptr};
    const auto* data = reinterpret_cast<const std::uint8_t*>(payload.copy.data());
    flatbuffers::Verifier verifier(data, payload.copy.size(), depth_max, tables_max);
    if (!fc::ControlBufferHasIdentifier(data) || !fc::VerifyControlBuffer(verifier))
        return corrupt("control payload: these bytes are not one of Cairn's, or damaged");
    payload.root = fc::GetControl(data);
    return payload;
}

// Both in the order of model/control.hpp.
using RequestTables = Bodies<fc::Hello, fc::Join, fc::Acquire, fc::Sealed, fc::Release, fc::Wait, fc::Cancel, fc::Images, fc::Unpin, fc::GetStatus, fc::Stop, fc::Offer, fc::Give, fc::Prepare>;
using AnswerTables = Bodies<fc::Failed, fc::Done, fc::Welcome, fc::Slot, fc::State, fc::ImageList, fc::NodeStatus, fc::Stopped, fc::Offered, fc::Wanted, fc::Prepared>;

Result<control::Request> request_of(const fc::Control& root) {
    if (root.answer_type() != fc::AnswerBody::NONE) return corrupt("an answer came where a request was due");
    if (!root.request()) return corrupt("a request without a body");  // a union's verifier lets this pass
    Result<control::Request> request = corrupt("a request of an unknown kind");
    read_body<fc::RequestBodyTraits>(RequestTables(), root.request_type(), root.request(), [&](const auto& table) { request = get(table); });
    return request;
}
Result<control::Answer> answer_of(const fc::Control& root) {
    if (root.request_type() != fc::RequestBody::NONE) return corrupt("a request came where an answer was due");
    if (!root.answer()) return corrupt("an answer without a body");
    Result<control::Answer> answer = corrupt("an answer of an unknown kind");
    read_body<fc::AnswerBodyTraits>(AnswerTables(), root.answer_type(), root.answer(), [&](const auto& table) { answer = get(table); });
    return answer;
}

}  // namespace

Result<ControlHeader> decode_control_header(ByteView header) {
    CAIRN_CHECK(header.size() == control_header_bytes);
    const ControlHeader out{get_u32(header.data()), get_u64(header.data() + 4)};
    if (out.payload_bytes == 0 || out.payload_bytes > control_payload_bytes_max)
        return corrupt("control frame: a length of " + std::to_string(out.payload_bytes) + " bytes, 1 to " +
                       std::to_string(control_payload_bytes_max) + " may be");
    return out;
}

Bytes encode_control(std::uint64_t number, const control::Request& request) {
    Builder to;
    const auto kind =
        static_cast<fc::RequestBody>(request.index() + 1);  // both lists are in the order of model/control.hpp
    const Body body = std::visit([&](const auto& m) { return put(to, m); }, request);
    return finish(to, number, fc::CreateControl(to, kind, body));
}
Bytes encode_control(std::uint64_t number, const control::Answer& answer) {
    Builder to;
    const auto kind = static_cast<fc::AnswerBody>(answer.index() + 1);
    const Body body = std::visit([&](const auto& m) { return put(to, m); }, answer);
    return finish(to, number, fc::CreateControl(to, fc::RequestBody::NONE, 0, kind, body));
}

Result<control::Request> decode_control_request(ByteView payload) {
    TRY_ASSIGN(const Payload opened, open_payload(payload));
    return request_of(*opened.root);
}
Result<control::Answer> decode_control_answer(ByteView payload) {
    TRY_ASSIGN(const Payload opened, open_payload(payload));
    return answer_of(*opened.root);
}

}  // namespace cairn
