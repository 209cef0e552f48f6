// Follower, second half: gives whoever asks the bytes of a range of an image, and their checksums.
//
// fgcs24, Algorithm 2 (sender): followers send chunks no larger than a buffer. Here the request names the bytes wanted, so a follower
// keeps no state: whatever was lost is asked for again. Who asks is not the follower's matter, and why (model/reasons.hpp) only as far as it decides the pace.
#include <algorithm>
#include <utility>

#include "engine/base_use.hpp"
#include "engine/follower/follower.hpp"
#include "format/limits.hpp"

namespace cairn::engine {

namespace {

// Who asks has an answer, and not a deadline.
message::Chunk unknown_reason(const message::Want& want) {
    message::Chunk chunk;
    chunk.tag = want.tag;
    chunk.code = Code::unsupported;
    chunk.text = "bytes of rank " + std::to_string(want.source.rank) + "'s image are wanted for reason " + std::to_string(static_cast<unsigned>(want.reason)) +
                 ", which this node's cairnd does not know: install one Cairn on all nodes of the job";
    return chunk;
}

}  // namespace

void Follower::on_want(FlightPtr flight, NodeIndex from, Address address, message::Want want) {
    FollowerSide& own = side(*flight);
    const auto served = own.served.find(want.tag);
    if (served != own.served.end()) {  // repeated: the payload is on its way or was sent; only the answer may be missing
        if (served->second.tag != 0) send_to(*flight, from, std::move(address), served->second);
        else send_to(*flight, from, std::move(address), message::Chunk{});  // tag 0: a sign of life while checksums are made
        return;
    }
    const ReasonRow* reason = row_of(want.reason);
    if (!reason) {
        answer_want(*flight, from, std::move(address), unknown_reason(want), true);
        return;
    }
    own.served[want.tag] = message::Chunk{};  // tag 0: being worked on, and not forgotten before it was answered
    gate.spawn(serve(flight, from, std::move(address), std::move(want), *reason));
}

// Remembered for a while, as long as somebody may ask again.
void Follower::answer_want(Flight& flight, NodeIndex from, Address address, message::Chunk chunk, bool ends_with_version) {
    FollowerSide& own = side(flight);
    if (flight.state.final && ends_with_version) {
        own.served.erase(chunk.tag);
    } else {
        std::vector<NumberArray> arrays = std::exchange(chunk.arrays, {});
        own.served[chunk.tag] = chunk;
        chunk.arrays = std::move(arrays);  // thousands of answers are kept; who asks again encodes without
        own.served_order.push_back(chunk.tag);
    }
    if (own.served_order.size() > settings.limits.answers) {
        own.served.erase(own.served_order.front());
        own.served_order.pop_front();
    }
    send_to(flight, from, std::move(address), std::move(chunk));
}

// What goes out: encoded, and then `chunk` says so, where who asks wants that and it pays; else the raw bytes. Nothing that a codec does keeps anybody from having
// those, so the waits are short: for a buffer none, and for the codec less than who asks has patience.
Task<Slice> Follower::encoded(const Job& job, const message::Want& want, const HeldImage& held, Slice raw, message::Chunk& chunk) {
    const std::optional<Codec> codec = codec_of(want.codec, "");
    if (!codec || !world.cpu.may_shrink(*codec, chunk.checksums, raw.length, held.image.header.block_bytes)) co_return raw;
    BaseUse base = base_of(job, want.base, want.source, held);
    const bool is_for_its_base = want.base != 0 && settings.encode_at == EncodeAt::leader;  // else who leads encodes, as set
    if (is_for_its_base && base.bytes().bytes.length == 0) co_return raw;
    const std::uint64_t room = raw.length - raw.length / 16;
    if (raw.length > encoded_run_bytes_max || room > encoding_.buffer_bytes()) co_return raw;
    Result<BufferPtr> buffer = co_await encoding_.take(world.clock.now());
    if (!buffer.ok()) co_return raw;
    Slice into{*buffer, 0, room};
    FindArrays arrays = arrays_of(held, want.source);
    Coding coding(*codec, want.keys.empty() ? nullptr : std::make_shared<const KeyEfforts>(want.keys));
    const Result<Encoded> made = co_await world.cpu.encode(std::move(coding), raw, base.bytes(), std::move(arrays), into, world.clock.in(settings.io_wait / 4));
    if (!made.ok() || made->bytes == 0 || !base.is_there()) co_return raw;
    if (!check_not_lost(held.image).ok()) co_return raw;  // what was encoded may be zeros in the place of what its checksums are of; raw bytes show it to who gets them
    chunk.stored_bytes = made->bytes;
    chunk.stored_checksum = made->checksum;
    chunk.needs_base = made->needs_base;
    co_return into.part(0, made->bytes);
}

// Who asks encodes these bytes. What is not known soon, or is more than a message should hold, is taken on a sample there.
Task<std::vector<NumberArray>> Follower::arrays_told(const HeldImage& held, const Source& source, Nanos until) {
    FindArrays arrays = arrays_of(held, source);
    Result<std::vector<NumberArray>> found = co_await world.cpu.find(std::move(arrays), until);
    if (!found.ok()) co_return std::vector<NumberArray>();
    std::erase_if(*found, [](const NumberArray& array) { return array.length < array_told_bytes_min; });
    if (found->size() > arrays_told_max) found->resize(arrays_told_max);
    co_return std::move(*found);
}

Task<void> Follower::serve(FlightPtr flight, NodeIndex from, Address address, message::Want want, ReasonRow reason) {
    message::Chunk chunk;
    chunk.tag = want.tag;
    const auto found = flight->images.find(want.source.rank);
    const auto refuse = [&](Code code, std::string text) {
        chunk.code = code;
        chunk.text = std::move(text);
        answer_want(*flight, from, address, std::move(chunk), reason.ends_with_version);
    };
    if (found == flight->images.end()) {
        refuse(Code::not_found, "the image of rank " + std::to_string(want.source.rank) + " is not in this node's scratch any more");
        co_return;
    }
    HeldImage& held = found->second;
    if (const Result<Slice> there = held_bytes(held, want.source); !there.ok()) {
        refuse(there.code(), there.status().text());
        co_return;
    }
    ++held.users;
    ++counters.sending;
    const std::function<bool()> over = [flight, ends = reason.ends_with_version] { return ends && flight->state.final; };
    Pace::Pass pass = co_await pace.admit(reason.pace, want.source.length, over);
    Result<HeldBytes> made = co_await common.reads.bytes_of(images_of(flight), want.source, WantedFor::sending, over);
    if (made.ok()) {
        chunk.checksums = std::move(made->sums.checksums);
        chunk.cuts = std::move(made->sums.cuts);
        const Nanos until = world.clock.in(settings.io_wait / 4);  // who asks has patience for both
        Slice payload = co_await encoded(*flight->job, want, held, std::move(made->data), chunk);
        if (want.describe && chunk.stored_bytes == 0 && !over() && world.clock.now() < until) chunk.arrays = co_await arrays_told(held, want.source, until);
        const std::uint64_t bytes = payload.length;
        pace.give_back(pass, want.source.length - bytes);
        answer_want(*flight, from, address, std::move(chunk), reason.ends_with_version);
        const auto sent_now = watch_send_(*flight);
        const Status sent = co_await world.network.send_payload(address, want.tag, std::move(payload), world.clock.in(settings.io_wait));
        if (sent.ok()) {  // else the leader asks again under another tag
            counters.sent_bytes += bytes;
            counters.given_bytes += want.source.length;
        }
        sent_now(sent.ok() ? bytes : 0, sent.ok() ? want.source.length : 0);
    } else {
        chunk.used_up = made.code() == Code::not_found && is_used_up(held, want.source);
        refuse(made.code(), made.status().text());
    }
    --counters.sending;
    --held.users;
}

}  // namespace cairn::engine
