#include "engine/leader/trial.hpp"

#include <algorithm>
#include <cmath>

#include "base/trace.hpp"

namespace cairn::engine {

namespace {

constexpr std::uint64_t piece_bytes_max = 2 << 20;  // where no core is idle, so much takes a second, and the image stays in scratch for it
// A piece takes some milliseconds, and a thread that comes gets so many at once even where no core is idle. How long it waits for the next ones tells whether one is.
constexpr std::uint64_t trial_bytes = 8 << 20;
constexpr std::uint64_t pieces_max = 16;  // of tiny versions
constexpr Nanos enough = 100 * millisecond;

// Another place in each version: versions are alike, and one place says little of all.
std::uint64_t place_of(Version version, std::uint64_t bytes) {
    constexpr double golden = 0.6180339887498949;
    const double turns = static_cast<double>(version % (1u << 20)) * golden;
    return static_cast<std::uint64_t>((turns - std::floor(turns)) * static_cast<double>(bytes));
}

}  // namespace

Trial::Trial(Common& c, BufferRing& r) : LeaderRole(c, r) {}

void Trial::offer(Attempt& attempt, const PendingChunk& chunk, const HeldImage* held) {
    if (!attempt.trial || chunk.codec != 0 || !chunk.packed.empty() || !held || held->once) return;
    // The last one before that place, since of what this leader writes nobody knows how much is its own in the end.
    if (attempt.tried && attempt.offered_bytes > place_of(attempt.flight->key.version, attempt.flight->state.node_expected_bytes)) return;
    attempt.offered_bytes += chunk.bytes();
    if (ring.buffers() < 2 || !world.cpu.may_shrink(*attempt.trial, chunk.checksums, chunk.bytes(), attempt.lead.block_bytes)) return;
    Source source = chunk.source;
    source.length = std::min(source.length, piece_bytes_max);
    attempt.tried = Tried{*attempt.trial, source.rank, chunk.data.part(0, source.length), arrays_of(*held, source)};
}

void Trial::begin(Attempt& attempt, PartState& part) {
    attempt.trial.reset();
    if (attempt.tried && !attempt.over()) part.gate.spawn(run(attempt.flight, std::move(*attempt.tried)));
    attempt.tried.reset();
}

Task<void> Trial::run(FlightPtr flight, Tried tried) {
    const TraceSpan span(world.clock, "leader", "trial of a codec");
    const auto held = flight->images.find(tried.rank);
    if (held == flight->images.end()) co_return;  // it has left scratch
    ++held->second.users;
    const std::uint64_t bytes = tried.raw.length;
    Result<BufferRing::Use> use = co_await ring.take_to_encode(world.clock.now());
    Nanos took = 0;
    bool goes_on = use.ok() && bytes > 0;
    for (std::uint64_t piece = 0; goes_on && piece < pieces_max && piece * bytes < trial_bytes; ++piece) {
        Slice raw = tried.raw, into{use->buffer, 0, bytes - bytes / 16};
        FindArrays arrays = tried.arrays;
        const Result<Encoded> made = co_await world.cpu.encode(tried.codec, std::move(raw), BaseBytes(), std::move(arrays), into, world.clock.in(settings.io_wait));
        goes_on = made.ok() && (took += made->took) < enough;
        if (made.ok()) note_encoded(*flight->job, tried.codec, bytes, *made);
    }
    --held->second.users;
}

std::vector<message::CodecRate> Trial::seen(const Attempt& attempt) const {
    std::vector<message::CodecRate> rates;
    // Each writer encodes one chunk at a time, in a buffer of the ring.
    const std::size_t writers = std::max<std::size_t>(settings.writers, attempt.parts.size());
    const auto threads = static_cast<double>(std::min<std::size_t>({world.cpu.encoders(), writers, ring.buffers()}));
    for (const auto& [codec, seen] : attempt.flight->job->codecs_seen) {
        const bool is_asked = codec_name(codec) == attempt.lead.codec || codec_name(codec) == attempt.lead.trial;
        if (!is_asked || seen.bytes_per_s() <= 0) continue;
        rates.push_back({std::string(codec_name(codec)), static_cast<std::uint64_t>(seen.raw_bytes()), static_cast<std::uint64_t>(seen.stored_bytes()),
                         static_cast<std::uint64_t>(threads * seen.bytes_per_s())});
    }
    return rates;
}

}  // namespace cairn::engine
