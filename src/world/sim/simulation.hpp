// The simulated world: thousands of nodes and their processes in one thread, in virtual time, from one seed.
//
// Everything that happens is an event of one queue, ordered by time; events of the same time run in an order that the seed draws, so
// that interleavings are explored. Nothing else decides: no address, no hash order, no clock of the host. fingerprint() sums up every
// event run; two runs of one seed give the same.
//
//   Simulation sim(seed);
//   SimNode& node = sim.add_node();
//   Process& process = node.start_process("cairnd");
//   Engine engine(process.world(), ...);            // the objects that live in the process: the test owns them
//   sim.run_until([&] { return engine.done(); }, 60 * second);
//   process.kill();  engine.reset();                // in this order: the process is dead first, then its memory goes
//
// Everything the test owns that refers to a World goes before the Simulation does.
#pragma once

#include <deque>
#include <functional>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "world/sim/file_system.hpp"
#include "world/sim/model.hpp"
#include "world/sim/prng.hpp"
#include "world/world.hpp"

namespace cairn::sim {

class Machine;
class Process;
class SimNode;
class Simulation;
struct Operation;

// Later than anything is simulated; what takes longer takes as long as this.
inline constexpr Nanos horizon = 4'000'000'000 * second;
inline Nanos span_of(double seconds) { return seconds * second < static_cast<double>(horizon) ? static_cast<Nanos>(seconds * second) : horizon; }

// First come, first served at a rate: a disk, a NIC.
class Pipe {
  public:
    // When the last of `bytes` is through, having started not before `start`.
    Nanos pass(Nanos start, std::uint64_t bytes, double rate);

  private:
    Nanos free_at_ = 0;
};

// Whose events they are: a process, or (id 0) the machines themselves.
struct Actor {
    std::uint32_t id = 0;
    std::uint32_t trace_process = 0;  // its node's number and one; 0: of no node
    bool paused = false;
    bool dead = false;
    std::uint32_t first = UINT32_MAX;  // of its events, by their places
    std::vector<std::uint64_t> late;   // came due while paused
};

class Simulation {
  public:
    explicit Simulation(std::uint64_t seed, Model model = {}, Faults faults = {});
    ~Simulation();
    Simulation(const Simulation&) = delete;

    SimNode& add_node();
    SimNode& node(NodeId id) { return *nodes_[id]; }
    std::size_t nodes() const { return nodes_.size(); }
    Model& model() { return model_; }
    Faults& faults() { return faults_; }
    // How often each fault struck so far.
    const Faults& struck() const { return struck_; }

    Nanos now() const { return now_; }
    // Runs the next event. False when there is none.
    bool step();
    void run_until(Nanos when);
    // True when the predicate holds; false when it did not by `limit`, or nothing is left that could happen.
    bool run_until(const std::function<bool()>& predicate, Nanos limit);
    std::uint64_t events_run() const { return events_run_; }
    // Starts the task and runs until it is done. False when it was not by `limit`; it is destroyed then.
    bool run(Task<void> task, Nanos limit);
    // Calls `action` for the test itself: a fault at a given time.
    void at(Nanos when, std::function<void()> action);

    // The test's own random numbers, apart from those of the faults.
    Prng& random() { return test_prng_; }

    std::uint64_t fingerprint() const { return fingerprint_; }
    void set_trace(bool print) { trace_ = print; }
    // The last events, oldest first: for the message of a failing test.
    void print_recent(std::ostream& out) const;
    // Called when a process begins an operation, before it has any effect: "publish", "/persistent/a/1/manifest". It may change
    // faults() for this very operation. It must not kill or destroy anything at once; at(now(), ...) does.
    // Operations: create open read write resize stat fsync mkdir fsync_directory publish replace remove rmdir list map (a path), send
    // payload (an address), checksums, encode, decode (how many bytes). And of what is over: "denied", an operation on names ("publish /persistent/...") that took
    // effect, and says that it failed; "published", at the moment when a publication took effect. The process may be dead by then.
    using Observer = std::function<void(Process&, const char* what, const std::string& detail)>;
    void set_observer(Observer observer) { observer_ = std::move(observer); }

    // For whoever looks at every state there is. Called after every event, when nothing of the world runs: it may kill and start what it likes.
    // With it, what is under way on the network is kept to be looked at.
    void set_after_event(std::function<void()> look) { after_event_ = std::move(look); }
    // As the observer, but before anything is drawn that the note comes too late for: "open" for writing, "resize", "write", "publish", "send".
    void set_before(Observer observer) { before_ = std::move(observer); }
    struct UnderWay {
        Address to;
        std::shared_ptr<const Bytes> message;  // null: a payload
        std::uint64_t tag = 0, bytes = 0;
    };
    const std::map<std::uint64_t, UnderWay>& under_way() const { return under_way_; }

    // Partitions. Messages and payloads sent from `from` to `to` are lost, until heal().
    void block(NodeId from, NodeId to) { blocked_.emplace(from, to); }
    void partition(const std::set<NodeId>& island);  // cut off from all others, both ways
    void heal() { blocked_.clear(); }
    const std::set<std::pair<NodeId, NodeId>>& blocked() const { return blocked_; }
    bool is_blocked(NodeId from, NodeId to) const { return !blocked_.empty() && blocked_.count({from, to}) != 0; }

    FileSystem& persistent() { return persistent_; }
    const FileSystem& persistent() const { return persistent_; }
    // Another tree of the same path, empty at first: what nodes see there whose covered() is set.
    FileSystem& other_persistent() { return other_persistent_; }

    // From now on transfers share a machine's bandwidth (machine.hpp). Before anything runs. Null: as Model says, in turn.
    void set_machine(std::unique_ptr<Machine> machine);
    Machine* machine() { return machine_.get(); }

    // For the facades.
    std::uint64_t schedule(Actor& actor, Nanos when, const char* label, std::function<void()> action);
    std::uint64_t schedule(Actor& actor, std::coroutine_handle<> handle);
    void cancel(Actor& actor, std::uint64_t event);
    void cancel(Actor& actor, std::coroutine_handle<> handle);  // posted and not resumed yet
    void drop_all(Actor& actor);
    void wake_late(Actor& actor);
    Actor& machines() { return machines_; }
    Prng& fault_prng() { return fault_prng_; }
    // Whether this fault strikes now, which is counted.
    bool strikes(double Faults::*rate);
    Process* find(const Address& address);
    Process& add_process(SimNode& node, std::string name);
    void forget(const Address& address) { endpoints_.erase(address); }
    Pipe& persistent_pipe() { return persistent_pipe_; }
    Pipe& target_pipe(std::size_t target) { return target_pipes_[target]; }
    void note(Process& process, const char* what, const std::string& detail);
    void note_before(Process& process, const char* what, const std::string& detail) {
        if (before_) before_(process, what, detail);
    }
    std::uint64_t take_on(UnderWay sent);  // 0: nobody looks
    void arrived(std::uint64_t sent) { under_way_.erase(sent); }

  private:
    // What will happen. An event's number says its place among these and how many were in that place before it.
    struct Due {
        const char* label = "";
        std::function<void()> action;
        std::coroutine_handle<> handle;  // instead of an action
        Actor* actor = nullptr;          // null: the place is free
        std::uint32_t generation = 0;
        std::uint32_t before = UINT32_MAX, after = UINT32_MAX;  // of the same actor
    };
    struct Entry {
        Nanos when;
        std::uint64_t tie;
        std::uint64_t sequence;
        std::uint64_t event;
        bool operator>(const Entry& other) const {
            return when != other.when ? when > other.when : tie != other.tie ? tie > other.tie : sequence > other.sequence;
        }
    };
    const Due* find_due(std::uint64_t event) const;
    std::uint64_t add_due(Actor& actor, Due due);
    Due take_due(std::uint32_t place);
    struct Record {
        Nanos when;
        std::uint32_t actor;
        const char* label;
    };
    void push(std::uint64_t event, Nanos when);
    bool settle_next();  // drops what was cancelled and sets aside what is paused until the next one can run
    void fetch_ahead() const;
    void bring_near();   // what is far, when nothing nearer is left
    std::size_t slice_of(Nanos when) const;
    bool next_slice();   // of what is near, when the heap is empty; false: there is none
    void drop_cancelled(std::vector<Entry>& entries) const;
    void record(Nanos when, std::uint32_t actor, const char* label);

    Model model_;
    Faults faults_, struck_;
    Prng tie_prng_, fault_prng_, test_prng_;
    std::uint64_t seed_;
    Nanos now_ = 0;
    std::uint64_t pushed_ = 0;
    std::uint64_t events_run_ = 0;
    std::size_t live_ = 0;
    std::vector<Entry> queue_;  // a heap of what is due before near_from_
    std::vector<std::vector<Entry>> near_;  // in no order: what is due then, by slices of time; so the heap stays small enough for a cache
    std::size_t near_entries_ = 0;
    std::vector<Entry> far_;    // the rest, in no order: mostly deadlines, which are cancelled long before they are due
    Nanos near_from_ = 0, far_from_ = 0;
    std::vector<Due> due_;      // by place
    std::vector<std::uint32_t> free_places_;
    Actor machines_;
    std::deque<Record> recent_;
    std::uint64_t fingerprint_ = 0;
    bool trace_ = false;
    Observer observer_, before_;
    std::function<void()> after_event_;
    std::map<std::uint64_t, UnderWay> under_way_;
    std::uint64_t taken_on_ = 0;
    std::set<std::pair<NodeId, NodeId>> blocked_;
    Pipe persistent_pipe_;
    std::map<std::size_t, Pipe> target_pipes_;
    FileSystem persistent_, other_persistent_;
    std::unique_ptr<Machine> machine_;
    std::vector<std::unique_ptr<SimNode>> nodes_;
    std::vector<std::unique_ptr<Process>> processes_;
    std::unordered_map<Address, Process*> endpoints_;
};

// Operations under way on a node. A ticket still finds its operation after others came and went, and nothing once it is over.
class InFlight {
  public:
    struct Ticket {
        std::uint32_t place = 0;
        std::uint32_t generation = 0;
    };
    Ticket add(std::shared_ptr<Operation> operation);
    Operation* find(Ticket ticket) const;
    std::shared_ptr<Operation> take(Ticket ticket);  // null: over
    std::vector<Ticket> of(const Process& process) const;  // in the order in which they began
    template <class See>
    void each(const See& see) const {
        for (const Place& place : places_)
            if (place.operation) see(*place.operation);
    }
    void drop_all(Simulation& sim);

  private:
    struct Place {
        std::shared_ptr<Operation> operation;
        std::uint32_t generation = 0;
    };
    std::vector<Place> places_;
    std::vector<std::uint32_t> free_;
    std::uint64_t begun_ = 0;
};

class SimNode {
  public:
    SimNode(Simulation& sim, NodeId id);
    ~SimNode();

    NodeId id() const { return id_; }
    bool alive() const { return alive_; }
    // Only while alive. The process lives in the Simulation's memory for good; kill() ends it.
    Process& start_process(std::string name);
    // Power loss: kills the processes, loses the scratch, decides the fate of what was not fsynced. The test destroys what lived in
    // the processes right after.
    void crash();
    void restart();

    FileSystem& scratch() { return *scratch_; }
    // Another file system is mounted over persistent, or persistent has gone and left the directory it was mounted on. Files that are open stay those
    // that they are.
    void cover(bool covered) { covered_ = covered; }
    bool covered() const { return covered_; }
    // What this node takes for the seconds since 1970; 0 where Model has no such time.
    std::uint64_t wall_time_s();

    // For the facades.
    Simulation& simulation() { return sim_; }
    Pipe scratch_pipe, client_pipe, nic_in, nic_out;
    InFlight in_flight;  // I/O the machine is at
    const std::vector<Process*>& processes() const { return processes_; }  // alive
    std::uint32_t count_start(const std::string& name) { return starts_[name]++; }  // how many of that name were there before
    void left(Process* process);

  private:
    Simulation& sim_;
    void set_wall_clock();

    NodeId id_;
    bool alive_ = true;
    bool covered_ = false;
    std::int64_t wall_apart_s_ = 0;
    std::unique_ptr<FileSystem> scratch_;
    std::vector<Process*> processes_;
    std::map<std::string, std::uint32_t> starts_;
};

// One operating-system process on a node.
class Process {
  public:
    Process(Simulation& sim, SimNode& node, std::uint32_t id, std::string name, Address address, std::uint64_t seed);
    ~Process();
    Process(const Process&) = delete;

    World world();
    const std::string& name() const { return name_; }
    std::uint32_t id() const { return actor_.id; }
    SimNode& node() { return node_; }
    bool alive() const { return !actor_.dead; }
    const Address& address() const { return address_; }

    // kill -9: its events, timers, completions and messages are gone. What it wrote stays in the page cache; I/O under way may
    // happen still, in part, or not. Safe to call twice.
    void kill();
    // SIGSTOP and SIGCONT: what comes due in between is delivered afterwards.
    void pause() { actor_.paused = true; }
    void resume();
    bool is_paused() const { return actor_.paused; }
    Nanos resumed_at() const { return resumed_at_; }  // the last time; -1: it never stood still

    // Bytes of allocate()d buffers alive, and the most there ever were.
    std::uint64_t buffer_bytes() const { return *buffer_bytes_; }
    std::uint64_t buffer_bytes_peak() const { return buffer_bytes_peak_; }
    // Reads of mapped scratch that will never come back, whatever heals: each holds a thread of a real process until that ends.
    std::uint64_t reads_lost() const { return reads_lost_; }
    // Its writes and reads of files that will never come back: each keeps a buffer of allocate() as long.
    std::uint64_t transfers_lost() const;

    // For the facades.
    Actor& actor() { return actor_; }
    Simulation& simulation() { return sim_; }
    class SimNetwork& network() { return *network_; }
    Result<BufferPtr> allocate(std::uint64_t bytes);
    void lose_read() { ++reads_lost_; }
    Pipe& checksum_pipe() { return checksum_pipe_; }  // what makes checksums passes it, wherever it reads from

  private:
    Simulation& sim_;
    SimNode& node_;
    Actor actor_;
    std::string name_;
    Address address_;
    std::shared_ptr<std::uint64_t> buffer_bytes_ = std::make_shared<std::uint64_t>(0);
    std::uint64_t buffer_bytes_peak_ = 0;
    std::uint64_t reads_lost_ = 0;
    Nanos resumed_at_ = -1;
    Pipe checksum_pipe_;
    std::unique_ptr<Clock> clock_;
    std::unique_ptr<Storage> storage_;
    std::unique_ptr<class SimNetwork> network_;
    std::unique_ptr<Randomness> random_;
    std::unique_ptr<Cpu> cpu_;
};

}  // namespace cairn::sim
