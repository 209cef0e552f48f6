// Nodes and processes, and the small facades: clock, randomness, CPU.
#include <algorithm>

#include "world/sim/encoding.hpp"
#include "world/sim/network.hpp"
#include "world/sim/operation.hpp"

namespace cairn::sim {

namespace {

class SimClock final : public Clock {
  public:
    SimClock(Process& process, Nanos ahead) : sim_(process.simulation()), node_(process.node()), actor_(process.actor()), ahead_(ahead) {}

    Nanos now() const override { return sim_.now() + ahead_; }
    std::uint64_t wall_time_s() const override { return node_.wall_time_s(); }
    void post(std::coroutine_handle<> handle) override { sim_.schedule(actor_, handle); }
    void unpost(std::coroutine_handle<> handle) override { sim_.cancel(actor_, handle); }
    TimerId at(Nanos when, std::function<void()> action) override {
        return sim_.schedule(actor_, when == never ? never : when - ahead_, "timer", std::move(action));
    }
    void cancel(TimerId timer) override { sim_.cancel(actor_, timer); }

  private:
    Simulation& sim_;
    SimNode& node_;
    Actor& actor_;
    const Nanos ahead_;
};

class SimRandomness final : public Randomness {
  public:
    explicit SimRandomness(std::uint64_t seed) : prng_(seed) {}
    std::uint64_t next() override { return prng_.next(); }

  private:
    Prng prng_;
};

class SimCpu final : public Cpu {
  public:
    SimCpu(Process& process, Clock& clock) : process_(process), sim_(process.simulation()), clock_(clock) {}

    Task<std::vector<std::uint64_t>> checksums(Slice data, Units units) override {
        CAIRN_CHECK(units.block_bytes > 0);
        sim_.note(process_, "checksums", std::to_string(data.length));
        Nanos ready = sim_.now();
        if (is_mapped(data) && draw_scratch_delay(sim_, ready)) {
            process_.lose_read();
            Event nothing(clock_);
            co_await nothing.wait();
        }
        ready = std::max(ready, process_.checksum_pipe().pass(sim_.now(), data.length, sim_.model().checksum_rate));
        co_await clock_.sleep(ready - sim_.now());
        co_return checksums_of(runs_of(data), units);
    }

    bool may_shrink(Codec codec, const std::vector<std::uint64_t>&, std::uint64_t, std::uint64_t) const override {
        return codec != Codec::none && sim_.model().codec_shrinks;
    }

    Task<Result<Encoded>> encode(Coding coding, Slice raw, BaseBytes base, FindArrays, Slice into, Nanos deadline) override {
        sim_.note(process_, "encode", std::to_string(raw.length));
        const bool has_base = base.bytes.length == raw.length && checksums_of(runs_of(base.bytes), base.units) == base.checksums;  // looked at first, and used later
        Nanos ready = sim_.now();
        if (is_mapped(raw) && draw_scratch_delay(sim_, ready)) {
            process_.lose_read();
            co_await clock_.sleep_until(deadline);
            co_return deadline_passed("encoding did not come to its end");
        }
        const KeyedEncoding keyed = keyed_encoding(coding, coding.codec == Codec::none ? Runs() : runs_of(raw), sim_.model());  // what is copied may be there to be read once
        ready = std::max(ready, codec_pipe_.pass(sim_.now(), raw.length, keyed.rate));
        if (is_mapped(raw) && ready - sim_.now() > deadline - clock_.now()) {
            co_await clock_.sleep_until(deadline);
            co_return deadline_passed("encoding did not come to its end");
        }
        co_await clock_.sleep(ready - sim_.now());
        if (sim_.strikes(&Faults::encode_error)) co_return Status(Code::out_of_space, "no memory for encoding");
        const Runs older = has_base ? runs_of(base.bytes) : Runs();
        const Runs stored = coding.codec == Codec::none ? runs_of(raw) : encode_runs(runs_of(raw), older, keyed.leaves ? 0 : into.length, keyed.stored_min, keyed.stored_max);
        put(into, stored);
        const std::uint64_t bytes = length_of(stored);
        Encoded made{bytes, bytes == 0 ? 0 : checksum_of(runs_of(into.part(0, bytes))), 0};
        made.needs_base = coding.codec != Codec::none && bytes > 0 && !older.empty();
        made.took = span_of(static_cast<double>(raw.length) / keyed.rate);
        if (keyed.key != 0) made.keys = {{keyed.key, keyed.effort, raw.length, bytes == 0 ? raw.length : bytes, static_cast<std::uint64_t>(made.took)}};
        co_return made;
    }

    Task<Result<std::vector<NumberArray>>> find(FindArrays arrays, Nanos deadline) override {
        sim_.note(process_, "find arrays", "");
        Nanos ready = sim_.now() + millisecond;
        if (draw_scratch_delay(sim_, ready)) {  // files are mapped
            process_.lose_read();
            co_await clock_.sleep_until(deadline);
            co_return deadline_passed("describing did not come to its end");
        }
        if (ready - sim_.now() > deadline - clock_.now()) {
            co_await clock_.sleep_until(deadline);
            co_return deadline_passed("describing did not come to its end");
        }
        co_await clock_.sleep(ready - sim_.now());
        co_return arrays();
    }

    unsigned encoders() const override { return 1; }

    Task<Status> decode(Codec, Slice stored, Slice base, Slice into, Nanos) override {
        sim_.note(process_, "decode", std::to_string(into.length));
        const Nanos ready = codec_pipe_.pass(sim_.now(), into.length, sim_.model().decode_rate);
        co_await clock_.sleep(ready - sim_.now());
        const std::optional<Runs> raw = decode_runs(runs_of(stored), base.length == 0 ? Runs() : runs_of(base), into.length);
        if (!raw) co_return corrupt("what was encoded makes other bytes");
        put(into, *raw);
        co_return Status();
    }

    Task<Result<bool>> equal(Pairs pairs, Nanos deadline) override {
        std::uint64_t bytes = 0;
        for (const auto& [a, b] : pairs) bytes += a.length;
        sim_.note(process_, "equal", std::to_string(bytes));
        Nanos ready = sim_.now();
        if (std::any_of(pairs.begin(), pairs.end(), [](const auto& each) { return is_mapped(each.first) || is_mapped(each.second); }) && draw_scratch_delay(sim_, ready)) {
            process_.lose_read();
            co_await clock_.sleep_until(deadline);
            co_return deadline_passed("comparing did not come to its end");
        }
        ready = std::max(ready, process_.checksum_pipe().pass(sim_.now(), 2 * bytes, sim_.model().checksum_rate));
        co_await clock_.sleep(ready - sim_.now());
        co_return std::all_of(pairs.begin(), pairs.end(), [](const auto& each) { return sim::equal(runs_of(each.first), runs_of(each.second)); });
    }

  private:
    Process& process_;
    Simulation& sim_;
    Clock& clock_;
    Pipe codec_pipe_;  // threads enough for both
};

}  // namespace

std::unique_ptr<Clock> make_clock(Process& process, Nanos ahead) { return std::make_unique<SimClock>(process, ahead); }
std::unique_ptr<Randomness> make_randomness(std::uint64_t seed) { return std::make_unique<SimRandomness>(seed); }
std::unique_ptr<Cpu> make_cpu(Process& process, Clock& clock) { return std::make_unique<SimCpu>(process, clock); }

SimNode::SimNode(Simulation& sim, NodeId id)
    : sim_(sim), id_(id), scratch_(std::make_unique<FileSystem>(sim.model().scratch, false, sim.model().scratch_bytes_max)) {
    set_wall_clock();
}
SimNode::~SimNode() = default;

void SimNode::set_wall_clock() {
    const std::uint64_t most = sim_.model().wall_apart_max_s;
    if (most > 0) wall_apart_s_ = static_cast<std::int64_t>(sim_.fault_prng().between(0, 2 * most)) - static_cast<std::int64_t>(most);
}

std::uint64_t SimNode::wall_time_s() {
    if (sim_.model().wall_time_s == 0) return 0;
    if (sim_.strikes(&Faults::wall_set)) set_wall_clock();
    const auto now = static_cast<std::int64_t>(sim_.model().wall_time_s) + sim_.now() / second + wall_apart_s_;
    return now > 0 ? static_cast<std::uint64_t>(now) : 0;
}

Process& SimNode::start_process(std::string name) {
    CAIRN_CHECK(alive_);
    Process& process = sim_.add_process(*this, std::move(name));
    processes_.push_back(&process);
    return process;
}

void SimNode::left(Process* process) { processes_.erase(std::find(processes_.begin(), processes_.end(), process)); }

void SimNode::crash() {
    if (!alive_) return;
    alive_ = false;
    const std::vector<Process*> victims = processes_;
    for (Process* process : victims) settle_operations(*process, true);
    for (Process* process : victims) process->kill();
    // What processes killed earlier left in flight.
    in_flight.drop_all(sim_);
    sim_.persistent().crash(id_, sim_.fault_prng(), sim_.faults().unsynced);
    sim_.other_persistent().crash(id_, sim_.fault_prng(), sim_.faults().unsynced);
}

void SimNode::restart() {
    CAIRN_CHECK(!alive_);
    alive_ = true;
    scratch_ = std::make_unique<FileSystem>(sim_.model().scratch, false, sim_.model().scratch_bytes_max);
}

Process::Process(Simulation& sim, SimNode& node, std::uint32_t id, std::string name, Address address, std::uint64_t seed)
    : sim_(sim), node_(node), name_(std::move(name)), address_(std::move(address)) {
    actor_.id = id;
    actor_.trace_process = node.id() + 1;
    clock_ = make_clock(*this, static_cast<Nanos>(Prng(~seed).below(static_cast<std::uint64_t>(sim.model().clock_apart_max) + 1)));
    storage_ = make_storage(*this, *clock_);
    network_ = std::make_unique<SimNetwork>(*this, *clock_);
    random_ = make_randomness(seed);
    cpu_ = make_cpu(*this, *clock_);
}
Process::~Process() = default;

World Process::world() { return {*clock_, *storage_, *network_, *random_, *cpu_}; }

void Process::kill() {
    if (actor_.dead) return;
    actor_.dead = true;
    actor_.paused = false;
    sim_.forget(address_);
    sim_.drop_all(actor_);
    network_->drop_postings();
    settle_operations(*this, false);
    node_.left(this);
}

std::uint64_t Process::transfers_lost() const {
    std::uint64_t lost = 0;
    for (const InFlight::Ticket ticket : node_.in_flight.of(*this)) {
        const Operation& operation = *node_.in_flight.find(ticket);
        lost += operation.event == 0 && operation.data.length > 0 && !is_mapped(operation.data);
    }
    return lost;
}

void Process::resume() {
    if (actor_.paused) resumed_at_ = sim_.now();
    actor_.paused = false;
    sim_.wake_late(actor_);
}

Result<BufferPtr> Process::allocate(std::uint64_t bytes) {
    if (*buffer_bytes_ > sim_.model().buffer_bytes_max || bytes > sim_.model().buffer_bytes_max - *buffer_bytes_)
        return Status(Code::out_of_space, "no memory for a buffer of " + std::to_string(bytes) + " bytes");
    auto content = std::make_shared<Content>();
    content->resize(bytes);
    BufferPtr buffer = std::make_shared<SimBuffer>(std::move(content), bytes, buffer_bytes_);
    buffer_bytes_peak_ = std::max(buffer_bytes_peak_, *buffer_bytes_);
    return buffer;
}

}  // namespace cairn::sim
