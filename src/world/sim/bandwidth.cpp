// Fair shares, computed exactly or by queues.
#include "world/sim/bandwidth.hpp"

#include <algorithm>
#include <cmath>

#include "world/sim/simulation.hpp"

namespace cairn::sim {

namespace {
constexpr double nanos_per_s = 1e9;
constexpr double through = 1e-9;  // of a transfer: what rounding leaves of it

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
        return change_soon();
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
    transfer.active = true;
    ++under_way_;
    for (std::size_t i = 0; i < uses.count; ++i) {
        const Use& use = uses.all[i];
        Link& link = links_[use.resource];
        link.carried_bytes += use.bytes;
        if (link.capacity.bytes_per_s <= 0 || use.bytes == 0) continue;  // no time
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
    else if (sharing_ == Sharing::exact) change_soon();
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

void Bandwidth::change_soon() {
    if (change_due_) return;
    change_due_ = true;
    sim_.schedule(sim_.machines(), sim_.now(), "shares", [this] { change(); });
}

void Bandwidth::change() {
    move_on();
    change_due_ = false;  // what began at once is among those that share
    share();
    wait_for_next();
}

// What was transferred since shares were last computed; what is through ends.
void Bandwidth::move_on() {
    const double seconds = static_cast<double>(sim_.now() - moved_) / nanos_per_s;
    moved_ = sim_.now();
    std::vector<Slot> ended;
    for (Slot slot = 0; slot < transfers_.size(); ++slot) {
        Transfer& transfer = transfers_[slot];
        if (!transfer.active || transfer.left == 0) continue;
        transfer.left_share -= transfer.rate * seconds;
        if (transfer.left_share > through) continue;
        for (std::size_t i = 0; i < transfer.uses.count; ++i) {
            Link& link = links_[transfer.uses.all[i].resource];
            if (link.capacity.bytes_per_s > 0 && transfer.uses.all[i].bytes > 0) leave(link, transfer.stream);
        }
        transfer.left = 0;
        ended.push_back(slot);
    }
    for (const Slot slot : ended) end(slot);
}

// Progressive filling. A transfer's rate is its largest use's bytes a second, so that small and large ones are treated alike; its other uses follow.
void Bandwidth::share() {
    std::vector<Slot> open;
    for (Link& link : links_) {
        link.free = link.rate();
        link.wanted = 0;
    }
    const auto largest = [](const Transfer& transfer) {
        std::uint64_t most = 0;
        for (std::size_t i = 0; i < transfer.uses.count; ++i) most = std::max(most, transfer.uses.all[i].bytes);
        return static_cast<double>(most);
    };
    const auto for_each_use = [this](const Transfer& transfer, auto&& visit) {
        for (std::size_t i = 0; i < transfer.uses.count; ++i) {
            Link& link = links_[transfer.uses.all[i].resource];
            if (link.capacity.bytes_per_s > 0 && transfer.uses.all[i].bytes > 0) visit(link, static_cast<double>(transfer.uses.all[i].bytes));
        }
    };
    for (Slot slot = 0; slot < transfers_.size(); ++slot) {
        const Transfer& transfer = transfers_[slot];
        if (!transfer.active || transfer.left == 0) continue;
        open.push_back(slot);
        for_each_use(transfer, [&](Link& link, double bytes) { link.wanted += bytes / largest(transfer); });
    }
    while (!open.empty()) {
        double level = INFINITY;  // that the next resource allows all that pass it
        for (const Link& link : links_)
            if (link.wanted > 1e-9) level = std::min(level, link.free / link.wanted);
        std::vector<Slot> still;
        std::vector<Slot> fixed;
        for (const Slot slot : open) {
            bool stays = false;
            for_each_use(transfers_[slot], [&](const Link& link, double) { stays |= link.free / link.wanted <= level * (1 + 1e-12); });
            (stays ? fixed : still).push_back(slot);
        }
        for (const Slot slot : fixed) {
            Transfer& transfer = transfers_[slot];
            transfer.rate = level / largest(transfer);
            for_each_use(transfer, [&](Link& link, double bytes) {
                link.free = std::max(0.0, link.free - level * bytes / largest(transfer));
                link.wanted -= bytes / largest(transfer);
            });
        }
        CAIRN_CHECK(!fixed.empty());
        open = std::move(still);
    }
}

void Bandwidth::wait_for_next() {
    sim_.cancel(sim_.machines(), next_end_);
    next_end_ = 0;
    Nanos next = never;
    for (const Transfer& transfer : transfers_)
        if (transfer.active && transfer.left > 0 && transfer.rate > 0) next = std::min(next, up(transfer.left_share / transfer.rate * nanos_per_s));
    if (next == never) return;
    next_end_ = sim_.schedule(sim_.machines(), sim_.now() + std::max<Nanos>(next, 1), "transfers", [this] {
        next_end_ = 0;
        change();
    });
}

}  // namespace cairn::sim
