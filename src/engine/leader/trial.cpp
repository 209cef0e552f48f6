#include "engine/leader/trial.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "base/trace.hpp"

namespace cairn::engine {

namespace {

constexpr std::uint64_t piece_bytes_max = 2 << 20;  // where no core is idle, so much takes a second, and the image stays in scratch for it
// A piece takes some milliseconds, and a thread that comes gets so many at once even where no core is idle. How long it waits for the next ones tells whether one is.
constexpr std::uint64_t trial_bytes = 8 << 20;
constexpr std::uint64_t pieces_max = 16;  // of tiny versions
constexpr Nanos enough = 100 * millisecond;
// Of a sample for merging at least two of them go into a buffer: what lies there by turns, and what becomes of it.
constexpr std::uint64_t sample_bytes_max = piece_bytes_max;
constexpr Nanos gathering_most = second;

// Another place in each version: versions are alike, and one place says little of all.
std::uint64_t place_of(Version version, std::uint64_t bytes) {
    constexpr double golden = 0.6180339887498949;
    const double turns = static_cast<double>(version % (1u << 20)) * golden;
    return static_cast<std::uint64_t>((turns - std::floor(turns)) * static_cast<double>(bytes));
}

}  // namespace

Trial::Trial(Common& c, BufferRing& r) : LeaderRole(c, r) {}

void Trial::offer(Attempt& attempt, const PendingChunk& chunk, const HeldImage* held) {
    if (!attempt.trial || attempt.trial_begun || chunk.codec != 0 || !chunk.packed.empty() || !held || held->once) return;
    // The codec in use is tried in one of so many versions: each time as far on as others are from one version to the next.
    const Version turn = *attempt.trial == attempt.codec ? attempt.flight->key.version / (CodecChoice::whole_tried_apart + 1) : attempt.flight->key.version;
    // The last one before that place, since of what this leader writes nobody knows how much is its own in the end.
    if (attempt.tried && attempt.offered_bytes > place_of(turn, attempt.flight->state.node_expected_bytes)) return;
    attempt.offered_bytes += chunk.bytes();
    if (ring.buffers() < 2 || !world.cpu.may_shrink(*attempt.trial, chunk.checksums, chunk.bytes(), attempt.lead.block_bytes)) return;
    Source source = chunk.source;
    source.length = std::min(source.length, piece_bytes_max);
    attempt.tried = Tried{*attempt.trial, source.rank, chunk.data.part(0, source.length), arrays_of(*held, source)};
}

void Trial::begin(Attempt& attempt, PartState& part) {
    if (std::exchange(attempt.trial_begun, true) || attempt.over()) return;
    Todo todo = todo_of(attempt);
    attempt.tried.reset();
    if (todo.piece || todo.sample) part.gate.spawn(run(attempt.flight, std::move(todo)));
}

Trial::Todo Trial::todo_of(Attempt& attempt) const {
    Todo todo;
    const bool is_merged = attempt.lead.merge_ranks > 1 && attempt.codec != Codec::none, is_compared = attempt.lead.trial_merge_ranks > 1;
    if ((is_merged && attempt.trial) || is_compared) todo.sample = sample_of(attempt);
    if (todo.sample && is_merged) todo.by_turns = attempt.trial;
    if (todo.sample && is_compared) todo.compared = attempt.codec != Codec::none ? attempt.codec : attempt.trial;
    if (!todo.by_turns) todo.piece = std::move(attempt.tried);
    if (!todo.by_turns && !todo.compared) todo.sample.reset();
    todo.tells_keys = attempt.trial == attempt.codec;
    return todo;
}

std::optional<Trial::Sample> Trial::sample_of(const Attempt& attempt) const {
    const message::Lead& lead = attempt.lead;
    const bool is_compared = lead.trial_merge_ranks > 1;
    const std::uint64_t bytes = std::min(sample_bytes_max, ring.buffer_bytes() / 2);
    MergePolicy policy = fitting(is_compared ? lead.trial_merge_ranks : lead.merge_ranks, is_compared ? lead.trial_merge_bytes : lead.merge_bytes, bytes, lead.block_bytes);
    std::vector<const HeldImage*> images;
    for (const auto& [rank, held] : attempt.flight->images)
        if (!held.once && held.image.data.length > 0 && held.image.data.length >= lead.pack_bytes / 2) images.push_back(&held);
    policy.ranks = std::min(policy.ranks, static_cast<std::uint32_t>(images.size()));
    if (policy.ranks < 2 || lead.pack_bytes == 0 || ring.buffers() < 2) return std::nullopt;
    const Version version = attempt.flight->key.version;
    const std::uint64_t first = place_of(version, images.size() - policy.ranks + 1);
    images = {images.begin() + static_cast<std::ptrdiff_t>(first), images.begin() + static_cast<std::ptrdiff_t>(first + policy.ranks)};
    std::uint64_t shortest = UINT64_MAX;
    for (const HeldImage* held : images) shortest = std::min(shortest, held->image.data.length);
    const std::uint64_t length = std::min(shortest, policy.turn_bytes * std::max<std::uint64_t>(1, bytes / policy.ranks / policy.turn_bytes));
    const std::uint64_t offset = place_of(3 * version + 1, shortest - length) / lead.block_bytes * lead.block_bytes;
    Sample sample;
    for (const HeldImage* held : images) {
        const Source stretch{held->image.header.rank, offset, length};
        sample.stretches.push_back({attempt.flight->job->self, stretch});
        sample.arrays.push_back(arrays_of(*held, stretch));
    }
    Pack left = sample.stretches;
    sample.turns = cut_run(left, policy, bytes);
    return sample;
}

FindArrays arrays_by_turns(Pack stretches, std::vector<FindArrays> arrays, Pack turns) {
    return [stretches = std::move(stretches), arrays = std::move(arrays), turns = std::move(turns)] {
        std::map<Rank, std::vector<NumberArray>> known;
        for (std::size_t i = 0; i < stretches.size(); ++i) known[stretches[i].source.rank] = arrays[i]();
        std::vector<NumberArray> all;
        std::uint64_t at = 0;
        for (const NodeSource& turn : turns) {
            for (NumberArray array : within(known[turn.source.rank], turn.source.image_offset - stretches.front().source.image_offset, turn.source.length)) {
                array.offset += at;
                all.push_back(array);
            }
            at += turn.source.length;
        }
        return all;
    };
}

namespace {

// Images that stay in scratch until this goes.
class InUse {
  public:
    explicit InUse(FlightPtr flight) : flight_(std::move(flight)) {}
    InUse(const InUse&) = delete;
    ~InUse() {
        for (HeldImage* held : held_) --held->users;
    }
    // False: it has left.
    bool add(Rank rank) {
        const auto found = flight_->images.find(rank);
        if (found == flight_->images.end()) return false;
        ++found->second.users;
        held_.push_back(&found->second);
        return true;
    }

  private:
    FlightPtr flight_;
    std::vector<HeldImage*> held_;
};

}  // namespace

Task<void> Trial::run(FlightPtr flight, Todo todo) {
    const TraceSpan span(world.clock, "leader", "trial of a codec");
    InUse images(flight);
    bool are_there = !todo.piece || images.add(todo.piece->rank);
    if (todo.sample)
        for (const NodeSource& each : todo.sample->stretches) are_there &= images.add(each.source.rank);
    if (!are_there) co_return;
    Result<BufferRing::Use> use = co_await ring.take_to_encode(world.clock.now());
    if (!use.ok()) co_return;
    const Slice buffer = Slice::whole(use->buffer);
    if (todo.piece) {
        Encoding piece{todo.piece->codec, todo.piece->raw, std::move(todo.piece->arrays), buffer};
        co_await try_again(*flight->job, std::move(piece), todo);
    }
    if (!todo.sample) co_return;
    const std::uint64_t bytes = bytes_of(todo.sample->turns);
    Gate gate(world.clock);
    bool is_whole = true;
    for (const NodeSource& each : todo.sample->stretches) gate.spawn(gather(*flight, *todo.sample, each.source.rank, buffer.part(0, bytes), &is_whole));
    co_await gate.close();
    if (!is_whole) co_return log_debug("trial-left", {{"name", flight->key.name}, {"version", flight->key.version}, {"why", "no core is idle, or scratch is slow"}});
    const FindArrays arrays = arrays_by_turns(todo.sample->stretches, todo.sample->arrays, todo.sample->turns);
    Encoding merged{Codec::none, buffer.part(0, bytes), arrays, buffer.part(bytes, buffer.length - bytes)};
    if (todo.by_turns) {
        Encoding other = merged;
        other.codec = *todo.by_turns;
        co_await try_again(*flight->job, std::move(other), todo);
    }
    if (!todo.compared) co_return;
    merged.codec = *todo.compared;
    co_await compare(*flight, *todo.sample, std::move(merged));
}

// deadline: the images did not come back.
Task<Result<Encoded>> Trial::encode(const Encoding& encoding) {
    const std::uint64_t bytes = encoding.raw.length;
    Slice into = encoding.room.part(0, bytes - bytes / 16);
    const Nanos deadline = world.clock.in(settings.io_wait);
    Coding coding(encoding.codec);
    Result<Encoded> made = co_await world.cpu.encode(std::move(coding), encoding.raw, BaseBytes(), encoding.arrays, into, deadline);
    co_return made;
}

Task<void> Trial::try_again(Job& job, Encoding encoding, const Todo& todo) {
    const std::uint64_t bytes = encoding.raw.length, parts = todo.is_half() ? 2 : 1;
    Nanos took = 0;
    bool goes_on = bytes > 0 && bytes <= encoding.room.length;
    for (std::uint64_t piece = 0; goes_on && piece < pieces_max && piece * bytes < trial_bytes / parts; ++piece) {
        const Result<Encoded> made = co_await encode(encoding);
        goes_on = made.ok() && (took += made->took) < enough / static_cast<Nanos>(parts);
        if (made.ok() && todo.tells_keys) note_keys(job, encoding.codec, bytes, *made);
        else if (made.ok()) note_encoded(job, encoding.codec, bytes, *made);
    }
}

// The turns of one image, each on a thread that may not come back: where no core is idle that takes long, and there is no more to be found out.
Task<void> Trial::gather(Flight& flight, const Sample& sample, Rank rank, Slice into, bool* is_whole) {
    const Nanos most = world.clock.in(gathering_most);
    const HeldImage& held = flight.images.at(rank);
    std::uint64_t at = 0;
    for (const NodeSource& turn : sample.turns) {
        const std::uint64_t length = turn.source.length;
        if (turn.source.rank == rank && *is_whole) {
            Slice raw = held.image.data.part(turn.source.image_offset, length), there = into.part(at, length);
            const Result<Encoded> copied = co_await world.cpu.encode(Coding(Codec::none), std::move(raw), BaseBytes(), nothing_known, std::move(there), world.clock.in(settings.io_wait));
            *is_whole &= copied.ok() && world.clock.now() <= most;
        }
        at += length;
    }
}

// Told only where all of it was done.
Task<void> Trial::compare(Flight& flight, const Sample& sample, Encoding encoding) {
    const std::uint64_t bytes = encoding.raw.length;
    const Result<Encoded> merged = co_await encode(encoding);
    if (!merged.ok()) co_return;
    Job::MergingSeen seen{0, merged->bytes == 0 ? bytes : merged->bytes, bytes};
    Nanos took = merged->took;
    for (std::size_t i = 0; i < sample.stretches.size(); ++i) {
        const Source& stretch = sample.stretches[i].source;
        encoding.raw = flight.images.at(stretch.rank).image.data.part(stretch.image_offset, stretch.length);
        encoding.arrays = sample.arrays[i];
        if (took > enough) co_return log_debug("trial-left", {{"name", flight.key.name}, {"version", flight.key.version}, {"why", "encoding is slow"}});
        const Result<Encoded> apart = co_await encode(encoding);
        if (!apart.ok()) co_return;
        took += apart->took;
        seen.apart_bytes += apart->bytes == 0 ? stretch.length : apart->bytes;
    }
    log_debug("trial-of-merging", {{"name", flight.key.name}, {"version", flight.key.version}, {"codec", codec_name(encoding.codec)}, {"apart_bytes", seen.apart_bytes}, {"merged_bytes", seen.merged_bytes}});
    Job::MergingSeen& all = flight.job->merging_seen[encoding.codec];
    all.apart_bytes += seen.apart_bytes;
    all.merged_bytes += seen.merged_bytes;
    all.raw_bytes += seen.raw_bytes;
}

// Each writer encodes one chunk at a time, in a buffer of the ring.
std::uint32_t Trial::encoders(const Attempt& attempt) const {
    const std::size_t writers = std::max<std::size_t>(settings.writers, attempt.parts.size());
    return static_cast<std::uint32_t>(std::min<std::size_t>({world.cpu.encoders(), writers, ring.buffers()}));
}

std::vector<message::CodecRate> Trial::seen(const Attempt& attempt) {
    Job& job = *attempt.flight->job;
    std::vector<message::CodecRate> rates;
    const double threads = encoders(attempt);
    for (const auto& [codec, seen] : job.codecs_seen) {
        const bool is_asked = codec_name(codec) == attempt.lead.codec || codec_name(codec) == attempt.lead.trial;
        if (!is_asked || seen.bytes_per_s() <= 0) continue;
        rates.push_back({std::string(codec_name(codec)), static_cast<std::uint64_t>(seen.raw_bytes()), static_cast<std::uint64_t>(seen.stored_bytes()),
                         static_cast<std::uint64_t>(threads * seen.bytes_per_s())});
    }
    for (const auto& [codec, seen] : std::exchange(job.merging_seen, {})) {
        auto rate = std::find_if(rates.begin(), rates.end(), [&, name = codec_name(codec)](const message::CodecRate& each) { return each.codec == name; });
        if (rate == rates.end()) rate = rates.insert(rate, {std::string(codec_name(codec)), 0, 0, 0});
        rate->apart_bytes = seen.apart_bytes;
        rate->merged_bytes = seen.merged_bytes;
        rate->tried_bytes = seen.raw_bytes;
    }
    return rates;
}

}  // namespace cairn::engine
