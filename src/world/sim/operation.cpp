// How an operation fares: its faults are drawn when it begins.
#include "world/sim/operation.hpp"

#include <cerrno>

namespace cairn::sim {

namespace {

// True: it never returns.
bool draw_delays(const Faults& faults, Prng& prng, Nanos now, Nanos& ready) {
    if (prng.chance(faults.slow_io)) ready += static_cast<Nanos>(prng.below(static_cast<std::uint64_t>(faults.slow_io_max)));
    if (!prng.chance(faults.hang_io)) return false;
    if (prng.chance(0.5)) return true;
    ready = now + static_cast<Nanos>(prng.below(static_cast<std::uint64_t>(faults.hang_io_max)));
    return false;
}

void draw_faults(Operation& operation, const Faults& faults, Prng& prng) {
    using Kind = Operation::Kind;
    operation.full = operation.takes_space && prng.chance(faults.out_of_space);
    const bool transfers = operation.kind == Kind::read || operation.kind == Kind::write;
    if (transfers && operation.value > 1 && prng.chance(faults.short_transfer))
        operation.value = prng.between(1, operation.value - 1);
    switch (operation.kind) {
        case Kind::read: operation.fails = prng.chance(faults.read_error); break;
        case Kind::write:
            operation.fails = prng.chance(faults.write_error);
            if (operation.fails) operation.value = prng.below(operation.value + 1);
            if (prng.chance(0.5)) operation.captured = runs_of(operation.data);
            break;
        case Kind::fsync: operation.fails = prng.chance(faults.fsync_error); break;
        case Kind::metadata:
            operation.fails = prng.chance(faults.metadata_error);
            if (operation.fails && prng.chance(0.5)) operation.effect = nullptr;
            break;
    }
}

}  // namespace

void begin(std::shared_ptr<Operation> operation, Nanos ready) {
    Simulation& sim = operation->process.simulation();
    SimNode& node = operation->process.node();
    // First: the observer may change the faults for this very operation.
    sim.note(operation->process, operation->what, operation->path);
    draw_faults(*operation, sim.faults(), sim.fault_prng());
    operation->id = node.next_operation++;
    node.in_flight.emplace(operation->id, operation);
    if (draw_delays(sim.faults(), sim.fault_prng(), sim.now(), ready)) return;
    operation->event = sim.schedule(sim.machines(), ready, operation->what, [operation] { complete(operation); });
}

void begin(std::shared_ptr<Operation> operation, Nanos after, const std::function<void(std::function<void()>)>& carry) {
    Simulation& sim = operation->process.simulation();
    SimNode& node = operation->process.node();
    sim.note(operation->process, operation->what, operation->path);
    draw_faults(*operation, sim.faults(), sim.fault_prng());
    operation->id = node.next_operation++;
    node.in_flight.emplace(operation->id, operation);
    Nanos late = sim.now();
    if (draw_delays(sim.faults(), sim.fault_prng(), sim.now(), late)) return;
    after += late - sim.now();
    carry([operation, after] {
        Simulation& then = operation->process.simulation();
        if (!operation->process.node().in_flight.count(operation->id)) return;  // its process was killed, or its node crashed
        operation->event = then.schedule(then.machines(), then.now() + after, operation->what, [operation] { complete(operation); });
    });
}

void complete(const std::shared_ptr<Operation>& operation) {
    operation->process.node().in_flight.erase(operation->id);
    if (operation->full) operation->status = Status::from_errno(ENOSPC, operation->path);
    else if (operation->effect) operation->effect(*operation);
    if (operation->fails && operation->status.ok()) operation->status = Status::from_errno(EIO, operation->path);
    operation->done = true;
    operation->changed.notify_all();  // through the process's own queue: not while it is stopped, never when it is dead
}

void settle_operations(Process& process, bool crash) {
    Simulation& sim = process.simulation();
    Prng& prng = sim.fault_prng();
    std::vector<std::shared_ptr<Operation>> ours;
    for (auto& [id, operation] : process.node().in_flight)
        if (&operation->process == &process) ours.push_back(operation);
    for (const auto& operation : ours) {
        const std::uint64_t choice = prng.below(crash ? 3 : 4);
        if (choice == 3 && operation->event != 0) continue;  // the kernel is at it still
        sim.cancel(sim.machines(), operation->event);
        if (choice == 1 && operation->kind == Operation::Kind::write) operation->value = prng.below(operation->value + 1);
        if (choice == 1 || choice == 2) complete(operation);
        else process.node().in_flight.erase(operation->id);
    }
}

}  // namespace cairn::sim
