// How an operation fares: its faults are drawn when it begins.
#include "world/sim/operation.hpp"

#include <algorithm>
#include <cerrno>

namespace cairn::sim {

namespace {

constexpr std::uint64_t page_bytes = 4096;

// True: it never returns.
bool draw_delay(Simulation& sim, double Faults::*slow, double Faults::*hang, Nanos& ready) {
    const Faults& faults = sim.faults();
    Prng& prng = sim.fault_prng();
    if (sim.strikes(slow)) ready += static_cast<Nanos>(prng.below(static_cast<std::uint64_t>(faults.slow_io_max)));
    if (!sim.strikes(hang)) return false;
    if (prng.chance(faults.hang_never)) return true;
    ready = sim.now() + faults.hang_io_min + static_cast<Nanos>(prng.below(static_cast<std::uint64_t>(faults.hang_io_max - faults.hang_io_min)));
    return false;
}

bool is_below(const Operation& operation, const Faults& faults) { return !faults.below.empty() && operation.path.starts_with(faults.below); }

bool draw_delays(const Operation& operation, Simulation& sim, Nanos& ready) {
    if (is_below(operation, sim.faults()) && sim.faults().below_is == Faults::Below::hangs) return true;
    if (draw_delay(sim, &Faults::slow_io, &Faults::hang_io, ready)) return true;
    return operation.process.node().scratch().covers(operation.path) && draw_scratch_delay(sim, ready);
}

// What a read gives instead of what is there.
void draw_wrong_bytes(Operation& operation, Simulation& sim) {
    Prng& prng = sim.fault_prng();
    const SimFile& file = static_cast<const SimFile&>(*operation.file);
    if (!file.shared || operation.value == 0) return;
    if (sim.strikes(&Faults::stale_read)) operation.stale_from = prng.below(div_up(operation.value, page_bytes)) * page_bytes;
    const std::uint64_t pages = div_up(file.inode->content->size(), page_bytes);
    if (pages < 2 || !sim.strikes(&Faults::other_read)) return;
    const std::uint64_t page = operation.offset / page_bytes;
    operation.offset = (page + prng.between(1, pages - 1)) % pages * page_bytes + operation.offset % page_bytes;
}

// What is wrong with the part of the file system that the operation is about.
void strike_below(Operation& operation, const Faults& faults) {
    if (!is_below(operation, faults)) return;
    operation.away = faults.below_is == Faults::Below::away && !operation.file;
    operation.full |= faults.below_is == Faults::Below::full && operation.takes_space;
    if (faults.below_is != Faults::Below::fails) return;
    operation.fails = true;
    if (operation.kind == Operation::Kind::metadata) operation.effect = nullptr;
    if (operation.kind == Operation::Kind::write) operation.value = 0;
}

void draw_faults(Operation& operation, Simulation& sim) {
    using Kind = Operation::Kind;
    Prng& prng = sim.fault_prng();
    operation.full = operation.takes_space && sim.strikes(&Faults::out_of_space);
    const bool transfers = operation.kind == Kind::read || operation.kind == Kind::write;
    if (transfers && operation.value > 1 && sim.strikes(&Faults::short_transfer))
        operation.value = prng.between(1, operation.value - 1);
    switch (operation.kind) {
        case Kind::read:
            operation.fails = sim.strikes(&Faults::read_error);
            draw_wrong_bytes(operation, sim);
            break;
        case Kind::write:
            operation.fails = sim.strikes(&Faults::write_error);
            if (operation.fails) operation.value = prng.below(operation.value + 1);
            if (prng.chance(0.5)) operation.captured = runs_of(operation.data);
            break;
        case Kind::fsync: operation.fails = sim.strikes(&Faults::fsync_error); break;
        case Kind::metadata:
            operation.fails = sim.strikes(&Faults::metadata_error);
            if (operation.fails && prng.chance(1 - sim.faults().error_done)) operation.effect = nullptr;
            break;
    }
    strike_below(operation, sim.faults());
}

}  // namespace

bool draw_scratch_delay(Simulation& sim, Nanos& ready) { return draw_delay(sim, &Faults::slow_scratch, &Faults::hang_scratch, ready); }

InFlight::Ticket InFlight::add(std::shared_ptr<Operation> operation) {
    operation->id = ++begun_;
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(places_.size()));
        places_.emplace_back();
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    places_[place].operation = std::move(operation);
    return {place, ++places_[place].generation};
}

Operation* InFlight::find(Ticket ticket) const {
    const Place& place = places_[ticket.place];
    return place.generation == ticket.generation ? place.operation.get() : nullptr;
}

std::shared_ptr<Operation> InFlight::take(Ticket ticket) {
    if (!find(ticket)) return nullptr;
    free_.push_back(ticket.place);
    return std::move(places_[ticket.place].operation);
}

std::vector<InFlight::Ticket> InFlight::of(const Process& process) const {
    std::vector<Ticket> result;
    for (std::uint32_t place = 0; place < places_.size(); ++place)
        if (places_[place].operation && &places_[place].operation->process == &process) result.push_back({place, places_[place].generation});
    std::sort(result.begin(), result.end(), [this](Ticket a, Ticket b) { return find(a)->id < find(b)->id; });
    return result;
}

void InFlight::drop_all(Simulation& sim) {
    for (std::uint32_t place = 0; place < places_.size(); ++place)
        if (const std::shared_ptr<Operation> dropped = take({place, places_[place].generation})) sim.cancel(sim.machines(), dropped->event);
}

namespace {

void complete(const std::shared_ptr<Operation>& operation) {
    if (operation->away) operation->status = Status::from_errno(ENOENT, operation->path);
    else if (operation->full) operation->status = Status::from_errno(ENOSPC, operation->path);
    else if (operation->effect) operation->effect(*operation);
    const bool denied = operation->fails && operation->effect && operation->status.ok() && operation->kind == Operation::Kind::metadata;
    if (operation->fails && operation->status.ok()) operation->status = Status::from_errno(EIO, operation->path);
    if (denied) operation->process.simulation().note(operation->process, "denied", std::string(operation->what) + " " + operation->path);
    operation->done = true;
    operation->changed.notify_all();  // through the process's own queue: not while it is stopped, never when it is dead
}

// What is handed around are tickets, not operations: they fit into a std::function, and many millions are handed around.
void complete_at(Simulation& sim, SimNode& node, InFlight::Ticket ticket, Nanos when) {
    Operation& operation = *node.in_flight.find(ticket);
    operation.event = sim.schedule(sim.machines(), when, operation.what, [at = &node, ticket] { complete(at->in_flight.take(ticket)); });
}

// True: it never returns.
bool take_in(const std::shared_ptr<Operation>& operation, InFlight::Ticket& ticket, Nanos& ready) {
    Simulation& sim = operation->process.simulation();
    // First: the observer may change the faults for this very operation.
    sim.note(operation->process, operation->what, operation->path);
    draw_faults(*operation, sim);
    ticket = operation->process.node().in_flight.add(operation);
    return draw_delays(*operation, sim, ready);
}

}  // namespace

void begin(const std::shared_ptr<Operation>& operation, Nanos ready) {
    InFlight::Ticket ticket;
    if (take_in(operation, ticket, ready)) return;
    complete_at(operation->process.simulation(), operation->process.node(), ticket, ready);
}

void begin(const std::shared_ptr<Operation>& operation, Nanos after, const std::function<void(std::function<void()>)>& carry) {
    InFlight::Ticket ticket;
    const Nanos now = operation->process.simulation().now();
    Nanos late = now;
    if (take_in(operation, ticket, late)) return;
    operation->after = after + late - now;
    carry([node = &operation->process.node(), ticket] {
        const Operation* through = node->in_flight.find(ticket);
        if (!through) return;  // its process was killed, or its node crashed
        Simulation& sim = node->simulation();
        complete_at(sim, *node, ticket, sim.now() + through->after);
    });
}

void settle_operations(Process& process, bool crash) {
    using Left = Faults::Left;
    Simulation& sim = process.simulation();
    Prng& prng = sim.fault_prng();
    InFlight& in_flight = process.node().in_flight;
    for (const InFlight::Ticket ticket : in_flight.of(process)) {
        const Left left = sim.faults().left;
        const Left choice = left == Left::drawn ? static_cast<Left>(prng.below(crash ? 3 : 4)) : left;
        if (choice == Left::under_way && !crash && in_flight.find(ticket)->event != 0) continue;  // the kernel is at it still
        const std::shared_ptr<Operation> operation = in_flight.take(ticket);
        sim.cancel(sim.machines(), operation->event);
        if (choice == Left::part && operation->kind == Operation::Kind::write) operation->value = prng.below(operation->value + 1);
        if (choice == Left::part || choice == Left::all) complete(operation);
    }
}

}  // namespace cairn::sim
