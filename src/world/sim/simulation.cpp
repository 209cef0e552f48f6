// The event queue: time, ties, traces.
#include "world/sim/simulation.hpp"

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "base/checksum.hpp"
#include "base/trace.hpp"
#include "world/sim/machine.hpp"

namespace cairn::sim {

namespace {
constexpr std::size_t recent_max = 256;
constexpr std::size_t few = 4096;     // entries that are not worth a look for cancelled ones
constexpr std::size_t slices = 1024;
constexpr Nanos slice_span = millisecond;
constexpr Nanos near_span = slices * slice_span;  // how much of what is far is brought near at a time
}

Nanos Pipe::pass(Nanos start, std::uint64_t bytes, double rate) {
    const Nanos span = rate > 0 ? span_of(static_cast<double>(bytes) / rate) : 0;
    free_at_ = std::min(std::max(start, free_at_) + span, horizon);
    return free_at_;
}

Simulation::Simulation(std::uint64_t seed, Model model, Faults faults)
    : model_(std::move(model)),
      faults_(faults),
      tie_prng_(mix(seed ^ 0x7469)),
      fault_prng_(mix(seed ^ 0x6661)),
      test_prng_(mix(seed ^ 0x7465)),
      seed_(seed),
      fingerprint_(mix(seed)),
      persistent_(model_.persistent, model_.persistent_forgets, model_.persistent_bytes_max),
      other_persistent_(model_.persistent, model_.persistent_forgets, model_.persistent_bytes_max) {}

Simulation::~Simulation() {
    // Operations under way hold buffers and files; let go of them while all they refer to is there.
    for (auto& node : nodes_) node->in_flight.drop_all(*this);
    for (auto& process : processes_) process->kill();
    drop_all(machines_);
}

void Simulation::set_machine(std::unique_ptr<Machine> machine) { machine_ = std::move(machine); }

SimNode& Simulation::add_node() {
    nodes_.push_back(std::make_unique<SimNode>(*this, static_cast<NodeId>(nodes_.size())));
    return *nodes_.back();
}

Process& Simulation::add_process(SimNode& node, std::string name) {
    const auto id = static_cast<std::uint32_t>(processes_.size() + 1);
    const std::string on = "sim://" + std::to_string(node.id()) + "/";
    const std::uint32_t before = node.count_start(name);
    Address address = on + (model_.named_processes ? name + "." + std::to_string(before) : std::to_string(id));
    const std::uint64_t stream = model_.named_processes ? checksum(as_bytes(address)) : mix(id);
    processes_.push_back(std::make_unique<Process>(*this, node, id, std::move(name), std::move(address), mix(seed_) ^ stream));
    endpoints_[processes_.back()->address()] = processes_.back().get();
    return *processes_.back();
}

Process* Simulation::find(const Address& address) {
    const auto it = endpoints_.find(address);
    return it == endpoints_.end() ? nullptr : it->second;
}

// ---- events ----

const Simulation::Due* Simulation::find_due(std::uint64_t event) const {
    const auto place = static_cast<std::uint32_t>(event);
    if (event == 0 || place >= due_.size()) return nullptr;
    const Due& due = due_[place];
    return due.actor != nullptr && due.generation == event >> 32 ? &due : nullptr;
}

std::uint64_t Simulation::add_due(Actor& actor, Due due) {
    if (free_places_.empty()) {
        free_places_.push_back(static_cast<std::uint32_t>(due_.size()));
        due_.emplace_back();
    }
    const std::uint32_t place = free_places_.back();
    free_places_.pop_back();
    due.generation = due_[place].generation + 1;  // never 0: no event is 0
    due.actor = &actor;
    due.after = actor.first;
    if (due.after != UINT32_MAX) due_[due.after].before = place;
    actor.first = place;
    const std::uint64_t event = std::uint64_t{due.generation} << 32 | place;
    due_[place] = std::move(due);
    ++live_;
    return event;
}

Simulation::Due Simulation::take_due(std::uint32_t place) {
    Due due = std::move(due_[place]);
    if (due.before != UINT32_MAX) due_[due.before].after = due.after;
    else due.actor->first = due.after;
    if (due.after != UINT32_MAX) due_[due.after].before = due.before;
    due_[place].actor = nullptr;
    due_[place].action = nullptr;
    due_[place].before = due_[place].after = UINT32_MAX;
    free_places_.push_back(place);
    --live_;
    return due;
}

void Simulation::push(std::uint64_t event, Nanos when) {
    const Entry entry{std::max(when, now_), tie_prng_.next(), ++pushed_, event};
    if (entry.when < near_from_) {
        queue_.push_back(entry);
        std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    } else if (entry.when < far_from_) {
        near_[slice_of(entry.when)].push_back(entry);
        ++near_entries_;
    } else {
        far_.push_back(entry);
    }
    const std::size_t worth_a_look = std::max(few, 4 * live_);
    if (queue_.size() > worth_a_look) {
        drop_cancelled(queue_);
        std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
    }
    if (far_.size() > worth_a_look) drop_cancelled(far_);
    if (near_entries_ <= worth_a_look) return;
    near_entries_ = 0;
    for (std::vector<Entry>& slice : near_) {
        drop_cancelled(slice);
        near_entries_ += slice.size();
    }
}

// Of what is due between near_from_ and far_from_. As of bring_near, slices are counted back from its end.
std::size_t Simulation::slice_of(Nanos when) const { return slices - 1 - static_cast<std::size_t>((far_from_ - 1 - when) / slice_span); }

void Simulation::drop_cancelled(std::vector<Entry>& entries) const {
    entries.erase(std::remove_if(entries.begin(), entries.end(), [this](const Entry& entry) { return find_due(entry.event) == nullptr; }), entries.end());
}

void Simulation::bring_near() {
    drop_cancelled(far_);
    if (far_.empty()) return;
    const Nanos first = std::min_element(far_.begin(), far_.end(), [](const Entry& a, const Entry& b) { return a.when < b.when; })->when;
    near_from_ = first;
    far_from_ = first + std::min(near_span, never - first);
    near_.resize(slices);
    const auto near = std::partition(far_.begin(), far_.end(), [this](const Entry& entry) { return entry.when >= far_from_; });
    for (auto it = near; it != far_.end(); ++it) near_[slice_of(it->when)].push_back(*it);
    near_entries_ = static_cast<std::size_t>(far_.end() - near);
    far_.erase(near, far_.end());
}

bool Simulation::next_slice() {
    while (near_from_ < far_from_ && near_entries_ > 0) {
        const std::size_t at = slice_of(near_from_);
        queue_ = std::move(near_[at]);
        near_[at] = {};
        near_entries_ -= queue_.size();
        near_from_ = far_from_ - static_cast<Nanos>(slices - 1 - at) * slice_span;
        if (queue_.empty()) continue;
        std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
        return true;
    }
    near_from_ = far_from_;
    return false;
}

std::uint64_t Simulation::schedule(Actor& actor, Nanos when, const char* label, std::function<void()> action) {
    if (actor.dead || when == never) return 0;
    Due due;
    due.label = label;
    due.action = std::move(action);
    const std::uint64_t event = add_due(actor, std::move(due));
    push(event, when);
    return event;
}

std::uint64_t Simulation::schedule(Actor& actor, std::coroutine_handle<> handle) {
    if (actor.dead) return 0;
    Due due;
    due.label = "resume";
    due.handle = handle;
    const std::uint64_t event = add_due(actor, std::move(due));
    push(event, now_);
    return event;
}

void Simulation::cancel(Actor&, std::uint64_t event) {
    if (find_due(event) == nullptr) return;
    const Due dropped = take_due(static_cast<std::uint32_t>(event));  // destroyed last: its destructors may cancel others
}

// An actor has few events at a time, and this is rare.
void Simulation::cancel(Actor& actor, std::coroutine_handle<> handle) {
    for (std::uint32_t place = actor.first; place != UINT32_MAX; place = due_[place].after)
        if (due_[place].handle == handle) {
            take_due(place);
            return;
        }
}

void Simulation::drop_all(Actor& actor) {
    std::vector<Due> dropped;  // destroyed last
    while (actor.first != UINT32_MAX) dropped.push_back(take_due(actor.first));
    actor.late.clear();
}

void Simulation::wake_late(Actor& actor) {
    const std::vector<std::uint64_t> late = std::move(actor.late);
    actor.late.clear();
    for (std::uint64_t event : late)
        if (find_due(event) != nullptr) push(event, now_);
}

bool Simulation::settle_next() {
    for (;;) {
        while (queue_.empty() && !next_slice()) {
            bring_near();
            if (near_entries_ == 0) return false;
        }
        const Entry& next = queue_.front();
        const Due* due = find_due(next.event);
        if (due != nullptr && !due->actor->paused) return true;
        if (due != nullptr) due->actor->late.push_back(next.event);
        std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
        queue_.pop_back();
    }
}

// Thousands of nodes do not fit into a cache, and every event is about another one: what the next ones need is fetched while this one runs.
void Simulation::fetch_ahead() const {
    const auto due_of = [this](std::size_t i) { return &due_[static_cast<std::uint32_t>(queue_[i].event)]; };
    for (std::size_t i = 1; i < std::min<std::size_t>(3, queue_.size()); ++i) {
        __builtin_prefetch(due_of(i));
        __builtin_prefetch(reinterpret_cast<const char*>(due_of(i)) + 64);
    }
    if (queue_.empty()) return;
    const auto* frame = static_cast<const char*>(due_of(0)->handle.address());
    if (!frame) return;
    for (std::size_t i = 0; i < 4; ++i) __builtin_prefetch(frame + 64 * i);
}

bool Simulation::step() {
    if (!settle_next()) return false;
    const Entry next = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    queue_.pop_back();
    const Due due = take_due(static_cast<std::uint32_t>(next.event));
    fetch_ahead();
    now_ = next.when;
    ++events_run_;
    record(now_, due.actor->id, due.label);
    if (trace_is_open()) trace_as(due.actor->trace_process, [](std::uint32_t process) { return "node " + std::to_string(process - 1); });
    if (due.handle) due.handle.resume();
    else due.action();
    if (after_event_) after_event_();
    return true;
}

void Simulation::run_until(Nanos when) {
    while (settle_next() && queue_.front().when <= when) step();
    now_ = std::max(now_, when);
}

bool Simulation::run_until(const std::function<bool()>& predicate, Nanos limit) {
    while (!predicate()) {
        if (!settle_next()) return false;
        if (queue_.front().when > limit) {
            now_ = std::max(now_, limit);
            return false;
        }
        step();
    }
    return true;
}

bool Simulation::run(Task<void> task, Nanos limit) {
    task.start();
    return run_until([&] { return task.done(); }, limit);
}

void Simulation::at(Nanos when, std::function<void()> action) { schedule(machines_, when, "test", std::move(action)); }

void Simulation::record(Nanos when, std::uint32_t actor, const char* label) {
    fingerprint_ = mix(fingerprint_ ^ static_cast<std::uint64_t>(when)) + actor;
    for (const char* at = label; *at; ++at) fingerprint_ = fingerprint_ * 31 + static_cast<unsigned char>(*at);
    recent_.push_back({when, actor, label});
    if (recent_.size() > recent_max) recent_.pop_front();
    if (trace_) std::fprintf(stderr, "%15.6f ms  p%-4u %s\n", static_cast<double>(when) / 1e6, actor, label);
}

bool Simulation::strikes(double Faults::*rate) {
    if (!fault_prng_.chance(faults_.*rate)) return false;
    struck_.*rate += 1;
    return true;
}

void Simulation::note(Process& process, const char* what, const std::string& detail) {
    fingerprint_ = mix(fingerprint_ ^ checksum(as_bytes(detail))) + process.id();
    if (trace_)
        std::fprintf(stderr, "%15.6f ms  p%-4u (%s) %s %s\n", static_cast<double>(now_) / 1e6, process.id(),
                     process.name().c_str(), what, detail.c_str());
    if (observer_) observer_(process, what, detail);
}

std::uint64_t Simulation::take_on(UnderWay sent) {
    if (!after_event_) return 0;
    under_way_.emplace(++taken_on_, std::move(sent));
    return taken_on_;
}

void Simulation::print_recent(std::ostream& out) const {
    for (const Record& record : recent_)
        out << static_cast<double>(record.when) / 1e6 << " ms  p" << record.actor << ' ' << record.label << '\n';
}

void Simulation::partition(const std::set<NodeId>& island) {
    for (NodeId other = 0; other < nodes_.size(); ++other) {
        if (island.count(other)) continue;
        for (NodeId member : island) {
            block(member, other);
            block(other, member);
        }
    }
}

}  // namespace cairn::sim
