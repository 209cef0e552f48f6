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
}

Nanos Pipe::pass(Nanos start, std::uint64_t bytes, double rate) {
    const Nanos span = rate > 0 ? static_cast<Nanos>(static_cast<double>(bytes) / rate * 1e9) : 0;
    free_at_ = std::max(start, free_at_) + span;
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
      persistent_(model_.persistent, true, model_.persistent_bytes_max) {}

Simulation::~Simulation() {
    // Operations under way hold buffers and files; let go of them while all they refer to is there.
    for (auto& node : nodes_) node->in_flight.clear();
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
    processes_.push_back(std::make_unique<Process>(*this, node, id, std::move(name), mix(seed_) ^ mix(id)));
    endpoints_[processes_.back()->address()] = processes_.back().get();
    return *processes_.back();
}

Process* Simulation::find(const Address& address) {
    const auto it = endpoints_.find(address);
    return it == endpoints_.end() ? nullptr : it->second;
}

void Simulation::push(Actor& actor, std::uint64_t event, Nanos when) {
    queue_.push_back({std::max(when, now_), tie_prng_.next(), event, &actor});
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    if (queue_.size() > 4096 && queue_.size() > 4 * live_) compact();
}

void Simulation::compact() {
    queue_.erase(std::remove_if(queue_.begin(), queue_.end(),
                                [](const Entry& entry) { return entry.actor->due.count(entry.event) == 0; }),
                 queue_.end());
    std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
}

std::uint64_t Simulation::schedule(Actor& actor, Nanos when, const char* label, std::function<void()> action) {
    if (actor.dead || when == never) return 0;
    const std::uint64_t event = next_event_++;
    actor.due.emplace(event, Actor::Due{label, std::move(action), {}});
    ++live_;
    push(actor, event, when);
    return event;
}

std::uint64_t Simulation::schedule(Actor& actor, std::coroutine_handle<> handle) {
    if (actor.dead) return 0;
    const std::uint64_t event = next_event_++;
    actor.due.emplace(event, Actor::Due{"resume", nullptr, handle});
    ++live_;
    push(actor, event, now_);
    return event;
}

void Simulation::cancel(Actor& actor, std::uint64_t event) {
    const auto it = actor.due.find(event);
    if (it == actor.due.end()) return;
    const Actor::Due dropped = std::move(it->second);  // destroyed last: its destructors may cancel others
    actor.due.erase(it);
    --live_;
}

void Simulation::drop_all(Actor& actor) {
    live_ -= actor.due.size();
    const auto dropped = std::move(actor.due);
    actor.due.clear();
    actor.posted.clear();
    actor.late.clear();
}

void Simulation::wake_late(Actor& actor) {
    const std::vector<std::uint64_t> late = std::move(actor.late);
    actor.late.clear();
    for (std::uint64_t event : late)
        if (actor.due.count(event)) push(actor, event, now_);
}

bool Simulation::settle_next() {
    while (!queue_.empty()) {
        const Entry& next = queue_.front();
        const bool live = next.actor->due.count(next.event) != 0;
        if (live && !next.actor->paused) return true;
        if (live) next.actor->late.push_back(next.event);
        std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
        queue_.pop_back();
    }
    return false;
}

bool Simulation::step() {
    if (!settle_next()) return false;
    const Entry next = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    queue_.pop_back();
    const auto it = next.actor->due.find(next.event);
    const Actor::Due due = std::move(it->second);
    next.actor->due.erase(it);
    --live_;
    now_ = next.when;
    ++events_run_;
    record(now_, next.actor->id, due.label);
    if (trace_is_open()) trace_as(next.actor->trace_process, [](std::uint32_t process) { return "node " + std::to_string(process - 1); });
    if (due.handle) {
        next.actor->posted.erase(due.handle.address());
        due.handle.resume();
    } else {
        due.action();
    }
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

void Simulation::note(Process& process, const char* what, const std::string& detail) {
    fingerprint_ = mix(fingerprint_ ^ checksum(as_bytes(detail))) + process.id();
    if (trace_)
        std::fprintf(stderr, "%15.6f ms  p%-4u (%s) %s %s\n", static_cast<double>(now_) / 1e6, process.id(),
                     process.name().c_str(), what, detail.c_str());
    if (observer_) observer_(process, what, detail);
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
