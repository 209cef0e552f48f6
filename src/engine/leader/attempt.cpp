#include "engine/leader/attempt.hpp"

#include <algorithm>

#include "model/run_length.hpp"

namespace cairn::engine {

bool RecentIds::insert(Id128 id) {
    if (!ids_.insert(id).second) return false;
    order_.push_back(id);
    if (order_.size() <= most_) return true;
    ids_.erase(order_.front());
    order_.pop_front();
    return true;
}

void RecentIds::erase(Id128 id) {
    if (ids_.erase(id) > 0) order_.erase(std::find(order_.begin(), order_.end(), id));
}

namespace {
const Share& share_of(const PartPlan& plan, NodeIndex leader) {
    const auto found = std::find_if(plan.shares.begin(), plan.shares.end(), [&](const Share& share) { return share.leader == leader; });
    return found == plan.shares.end() ? plan.shares.front() : *found;
}
}  // namespace

PartState::PartState(World& world, const PartPlan& p, NodeIndex self)
    : plan(p), share(share_of(p, self)), first(p.first_leader() == self), gate(world.clock) {
    ranges.push_back({share.offset, share.offset + share.bytes});
}

Attempt::Attempt(World& world, FlightPtr f, message::Lead l) : flight(std::move(f)), lead(std::move(l)), work(world.clock) {
    started = world.clock.now();
    finishing = flight->job->roster->layout != FileLayout::parts;  // nothing moves: a file is done when it is written, though others are not begun
    codec = codec_of(lead.codec, "").value_or(Codec::none);
    if (!lead.keys.empty()) keys = std::make_shared<const KeyEfforts>(lead.keys);
    trial = codec_of(lead.trial, "");
    for (const auto& entry : lead.addresses) addresses[entry.node] = entry.address;
    for (ImageInfo& image : lead.images) images.emplace(image.rank, std::move(image));
    lead.images.clear();
    for (const PartPlan& plan : lead.parts) parts.push_back(std::make_unique<PartState>(world, plan, flight->job->self));
}

void Attempt::begin_send(Nanos now) {
    card.sending(static_cast<double>(now) / second, +1);
    portions.sending(written_bytes);
}

bool Attempt::end_send(Nanos now, std::uint64_t bytes, std::uint64_t raw_bytes) {
    card.sending(static_cast<double>(now) / second, -1);
    card.sent(bytes);
    return portions.sent(raw_bytes, written_bytes) && !over();
}

void Attempt::fail(Status status, std::optional<NodeIndex> node) {
    if (over()) return;
    failure = std::move(status);
    lost = node;
    work.notify_all();
    for (auto& [tag, credit] : credits) credit->answered.notify_all();
    if (pace) pace->wake();
}

Nanos Attempt::busy_span() const {
    const Nanos wrote = std::max(last_write, started);
    Nanos synced = 0;
    for (const auto& part : parts) synced = std::max(synced, part->sync_ended - std::max(part->sync_begun, wrote));
    return wrote - started + synced;
}

// A target that does not answer does so for none of its parts: each would fail after a wait of its own.
void Attempt::fail_part(Status status, PartState& part) {
    if (over(part)) return;
    if (!can_replace(part) || part.blameless || status.code() == Code::internal) {
        if (!part.blameless) failed_part = part.plan.part;
        return fail(std::move(status).within(part.path));
    }
    for (const auto& each : parts) {
        const bool is_synced = each->durable || (!each->first && each->sync_ended != 0);  // and its first leader may have it all
        const bool is_silent_too = status.code() == Code::deadline && each->plan.target == part.plan.target && !is_synced;
        if (each->dropped || (each.get() != &part && !is_silent_too)) continue;
        Status why = status;
        each->why = std::move(why).within(each->path);
        drop(*each);
    }
}

void Attempt::drop(PartState& part) {
    part.dropped = true;
    flight->state.node_expected_bytes -= std::min(flight->state.node_expected_bytes, part.work.unstarted_bytes());
    part.work = WorkList();
    for (auto& queue : part.write_queue) queue.clear();  // others wait for these buffers, this part's own receiver among them
    work.notify_all();
}

// One whose parts were all dropped stays until no work will change hands: it may be asked for what it gave, and has to say that it has nothing left.
bool Attempt::all_done() const {
    return finishing && std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part->dropped ? part->settled : part->durable; });
}

PartState* Attempt::part(std::uint32_t number) const {
    for (const auto& part : parts)
        if (part->plan.part == number) return part.get();
    return nullptr;
}

std::size_t Attempt::idle_parts() const {
    return static_cast<std::size_t>(std::count_if(parts.begin(), parts.end(), [](const auto& part) { return part->work.unstarted_bytes() == 0; }));
}

void RateMeter::end(Nanos now, std::uint64_t bytes) {
    constexpr Nanos span = 250 * millisecond, first_span = 50 * millisecond;
    bytes_ += bytes;
    busy_ += now - since_;
    since_ = now;
    if (busy_ < (per_s_ == 0 ? first_span : span)) return;
    const double rate = static_cast<double>(bytes_) * second / static_cast<double>(busy_);
    per_s_ = per_s_ == 0 ? rate : (per_s_ + rate) / 2;
    busy_ = 0;
    bytes_ = 0;
}

double RateMeter::per_s(Nanos now, bool busy) const {
    // What is under way for long has become slow, though nothing ended that would say so.
    const Nanos elapsed = busy_ + (busy ? now - since_ : 0);
    if (per_s_ == 0 || elapsed < second) return per_s_;
    return std::min(per_s_, static_cast<double>(bytes_ + 1) * second / static_cast<double>(elapsed));
}

std::uint64_t PartState::window_bytes(std::uint64_t block_bytes, Nanos now) const {
    const double per_s = rate.per_s(now, writing_bytes > 0);
    // What is written first may only have gone into somebody's buffers: no more is begun than was written so far, and a little.
    const std::uint64_t slow_start = written_bytes + 4 * block_bytes;
    if (per_s == 0) return slow_start;
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::min(per_s / 2, 1e15)), 2 * block_bytes, slow_start);
}

std::uint64_t PartState::next_chunk_bytes(std::uint64_t block_bytes, Nanos now) const {
    const ChunkLimits limits{block_bytes, chunk_bytes_max, encoded_chunk_bytes_max, least_chunk_bytes};
    return cairn::next_chunk_bytes(limits, window_bytes(block_bytes, now) / writers, encoded_raw_bytes, encoded_stored_bytes);
}

}  // namespace cairn::engine
