// Fair shares, computed exactly or by queues.
#include "world/sim/bandwidth.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "world/sim/simulation.hpp"

namespace cairn::sim {

namespace {
constexpr double nanos_per_s = 1e9;
constexpr std::uint32_t nowhere = UINT32_MAX;

Nanos up(double nanos) { return nanos >= 9e18 ? never : static_cast<Nanos>(std::ceil(nanos)); }
}  // namespace

double Bandwidth::Link::rate() const {
    const std::size_t n = capacity.each_counts ? users : streams.size();
    if (capacity.crowd <= 0 || n <= capacity.crowd_from) return capacity.bytes_per_s;
    return capacity.bytes_per_s / (1 + capacity.crowd * static_cast<double>(n - capacity.crowd_from));
}

Bandwidth::Resource Bandwidth::add(Capacity capacity) {
    links_.emplace_back();
    links_.back().capacity = capacity;
    return static_cast<Resource>(links_.size() - 1);
}

void Bandwidth::set(Resource resource, Capacity capacity) {
    Link& link = links_[resource];
    if (sharing_ == Sharing::exact) {
        link.capacity = capacity;
        return mark(resource);
    }
    advance(link);
    link.capacity = capacity;
    look_again(resource);
}

double Bandwidth::busy_s(Resource resource) const {
    const Link& link = links_[resource];
    return link.busy_s + (link.users > 0 ? static_cast<double>(sim_.now() - link.busy_since) / nanos_per_s : 0);
}

Bandwidth::Slot Bandwidth::take_slot() {
    if (free_slots_.empty()) {
        transfers_.emplace_back();
        return static_cast<Slot>(transfers_.size() - 1);
    }
    const Slot slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
}

void Bandwidth::enter(Link& link, std::uint64_t stream) {
    if (link.users++ == 0) link.busy_since = sim_.now();
    if (link.capacity.crowd > 0 && !link.capacity.each_counts) ++link.streams[stream];
}

void Bandwidth::leave(Link& link, std::uint64_t stream) {
    if (--link.users == 0) link.busy_s += static_cast<double>(sim_.now() - link.busy_since) / nanos_per_s;
    const auto found = link.streams.find(stream);
    if (found != link.streams.end() && --found->second == 0) link.streams.erase(found);
}

void Bandwidth::begin(const Uses& uses, std::uint64_t stream, std::function<void()> done) {
    const Slot slot = take_slot();
    Transfer& transfer = transfers_[slot];
    transfer.uses = uses;
    transfer.stream = stream;
    transfer.done = std::move(done);
    transfer.left = 0;
    transfer.left_share = 1;
    transfer.rate = 0;
    ++transfer.generation;
    transfer.active = true;
    ++under_way_;
    for (std::size_t i = 0; i < uses.count; ++i) {
        const Use& use = uses.all[i];
        Link& link = links_[use.resource];
        link.carried_bytes += use.bytes;
        if (!takes_time(use)) continue;
        ++transfer.left;
        if (sharing_ == Sharing::exact) {
            enter(link, stream);
            continue;
        }
        advance(link);
        enter(link, stream);
        link.tags.push({link.virtual_bytes + static_cast<double>(use.bytes), ++uses_begun_, slot});
        look_again(use.resource);
    }
    if (transfer.left == 0) sim_.schedule(sim_.machines(), sim_.now(), "transfer", [this, slot] { end(slot); });
    else if (sharing_ == Sharing::exact) join(slot);
}

void Bandwidth::end(Slot slot) {
    Transfer& transfer = transfers_[slot];
    const std::function<void()> done = std::move(transfer.done);
    transfer.done = nullptr;
    transfer.active = false;
    --under_way_;
    free_slots_.push_back(slot);
    done();
}

// ---- queued ----

void Bandwidth::advance(Link& link) {
    const Nanos now = sim_.now();
    if (link.users == 0) link.virtual_bytes = 0;  // nobody there to compare with: small numbers stay exact
    else link.virtual_bytes += link.rate() / link.users * static_cast<double>(now - link.updated) / nanos_per_s;
    link.updated = now;
}

// An event for when the first use is through, unless one comes earlier anyhow: that one finds out that it is too early.
void Bandwidth::look_again(Resource resource) {
    Link& link = links_[resource];
    if (link.tags.empty() || link.rate() <= 0) return;
    const double left = std::max(0.0, link.tags.top().at - link.virtual_bytes);
    const Nanos span = up(left * link.users / link.rate() * nanos_per_s);
    const Nanos when = span >= never - sim_.now() ? never : sim_.now() + span;
    if (when >= link.due) return;
    link.due = when;
    sim_.schedule(sim_.machines(), when, "transfer", [this, resource] {
        if (links_[resource].due != sim_.now()) return;  // another look came before it
        links_[resource].due = never;
        look(resource);
    });
}

void Bandwidth::look(Resource resource) {
    advance(links_[resource]);
    ended_.clear();
    for (Link& link = links_[resource]; !link.tags.empty();) {
        const Tag first = link.tags.top();
        const double left = first.at - link.virtual_bytes;
        if (left > 0 && left * link.users / link.rate() * nanos_per_s > 0.5) break;  // more than half a nanosecond away
        link.tags.pop();
        Transfer& transfer = transfers_[first.slot];
        leave(link, transfer.stream);
        if (--transfer.left == 0) ended_.push_back(first.slot);
    }
    look_again(resource);
    for (const Slot slot : ended_) end(slot);  // which looks at nothing at once
}

// ---- exact ----

void Bandwidth::mark(Resource resource) {
    Link& link = links_[resource];
    if (!std::exchange(link.marked, true)) marked_.push_back(resource);
    if (std::exchange(change_due_, true)) return;
    sim_.schedule(sim_.machines(), sim_.now(), "shares", [this] { change(); });
}

void Bandwidth::join(Slot slot) {
    Transfer& transfer = transfers_[slot];
    transfer.updated = sim_.now();
    transfer.largest = 0;
    for (std::uint8_t i = 0; i < transfer.uses.count; ++i) {
        const Use& use = transfer.uses.all[i];
        Link& link = links_[use.resource];
        transfer.places[i] = nowhere;
        if (!takes_time(use)) continue;
        transfer.largest = std::max(transfer.largest, static_cast<double>(use.bytes));
        transfer.places[i] = static_cast<std::uint32_t>(link.members.size());
        link.members.push_back({slot, i});
        mark(use.resource);
    }
}

void Bandwidth::part(Slot slot) {
    Transfer& transfer = transfers_[slot];
    for (std::uint8_t i = 0; i < transfer.uses.count; ++i) {
        const Use& use = transfer.uses.all[i];
        Link& link = links_[use.resource];
        if (transfer.places[i] == nowhere) continue;
        const Member last = link.members.back();
        link.members[transfer.places[i]] = last;
        transfers_[last.slot].places[last.use] = transfer.places[i];
        link.members.pop_back();
        leave(link, transfer.stream);
        mark(use.resource);
    }
    transfer.left = 0;
}

void Bandwidth::change() {
    sim_.cancel(sim_.machines(), next_end_);
    next_end_ = 0;
    change_due_ = true;  // what begins at once is among those that share
    std::vector<Slot> ended;
    for (; !ends_.empty() && ends_.top().when <= sim_.now(); ends_.pop())
        if (transfers_[ends_.top().slot].generation == ends_.top().generation) ended.push_back(ends_.top().slot);
    for (const Slot slot : ended) part(slot);
    for (const Slot slot : ended) end(slot);
    change_due_ = false;
    for (const Resource resource : std::exchange(marked_, {})) {
        if (!links_[resource].marked) continue;  // shared among its neighbours' transfers already
        gather(resource);
        share();
    }
    while (!ends_.empty() && transfers_[ends_.top().slot].generation != ends_.top().generation) ends_.pop();
    if (ends_.empty()) return;
    next_end_ = sim_.schedule(sim_.machines(), ends_.top().when, "transfers", [this] { change(); });
}

// What hangs together: of a change only those hear who share a resource with it, or with somebody who does.
void Bandwidth::gather(Resource resource) {
    together_ = {resource};
    links_[resource].gathered = true;
    for (std::size_t at = 0; at < together_.size(); ++at) {
        links_[together_[at]].marked = false;
        for (const Member member : links_[together_[at]].members) {
            const Transfer& transfer = transfers_[member.slot];
            for (std::size_t i = 0; i < transfer.uses.count; ++i)
                if (transfer.places[i] != nowhere && !std::exchange(links_[transfer.uses.all[i].resource].gathered, true))
                    together_.push_back(transfer.uses.all[i].resource);
        }
    }
}

// Progressive filling of what was gathered. A transfer's rate is its largest use's bytes a second, so that small and large ones are treated alike; its
// other uses follow.
void Bandwidth::share() {
    levels_.clear();
    const auto level_of = [this](Resource resource) {
        const Link& link = links_[resource];
        levels_.push_back({link.free / link.wanted, link.filled, resource});
        std::push_heap(levels_.begin(), levels_.end(), std::greater<>());
    };
    for (const Resource resource : together_) {
        Link& link = links_[resource];
        link.gathered = false;
        link.free = link.rate();
        link.wanted = 0;
        link.filled = 0;
        link.open = static_cast<std::uint32_t>(link.members.size());
        for (const Member member : link.members) {
            Transfer& transfer = transfers_[member.slot];
            transfer.fixed = false;
            link.wanted += static_cast<double>(transfer.uses.all[member.use].bytes) / transfer.largest;
        }
        if (link.open > 0) level_of(resource);
    }
    while (!levels_.empty()) {
        const Level lowest = levels_.front();  // that a resource allows all that pass it and are not held back elsewhere
        std::pop_heap(levels_.begin(), levels_.end(), std::greater<>());
        levels_.pop_back();
        if (links_[lowest.resource].filled != lowest.filled || links_[lowest.resource].open == 0) continue;
        touched_.clear();
        for (const Member member : links_[lowest.resource].members) fix(member.slot, lowest.level);
        for (const Resource resource : touched_) {
            links_[resource].gathered = false;
            if (links_[resource].open > 0) level_of(resource);
        }
    }
}

// It stays at this level; what it leaves of its resources is for the others.
void Bandwidth::fix(Slot slot, double level) {
    Transfer& transfer = transfers_[slot];
    if (std::exchange(transfer.fixed, true)) return;
    transfer.left_share -= transfer.rate * static_cast<double>(sim_.now() - transfer.updated) / nanos_per_s;
    transfer.updated = sim_.now();
    transfer.rate = level / transfer.largest;
    ++transfer.generation;
    const Nanos span = std::max<Nanos>(1, up(std::max(0.0, transfer.left_share) / transfer.rate * nanos_per_s));
    if (transfer.rate > 0 && span < never - sim_.now()) ends_.push({sim_.now() + span, ++uses_begun_, slot, transfer.generation});
    for (std::size_t i = 0; i < transfer.uses.count; ++i) {
        const Use& use = transfer.uses.all[i];
        if (transfer.places[i] == nowhere) continue;
        Link& link = links_[use.resource];
        const double portion = static_cast<double>(use.bytes) / transfer.largest;
        link.free = std::max(0.0, link.free - level * portion);
        link.wanted -= portion;
        ++link.filled;
        --link.open;
        if (!std::exchange(link.gathered, true)) touched_.push_back(use.resource);
    }
}

}  // namespace cairn::sim
