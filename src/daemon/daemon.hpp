// Daemon: one node's flushes behind one socket. Owns the world, the node, the slots and the server, and decides when to
// end.
//
// Life: lock, listen, adopt what scratch holds, serve; then, asked to or for want of work: finish what can be finished,
// take the socket's name away, end. It never joins a thread that may be stuck: the caller of run() leaves with _exit.
#pragma once

#include <memory>

#include "daemon/door.hpp"
#include "daemon/options.hpp"
#include "daemon/persistent_retention.hpp"
#include "daemon/process.hpp"
#include "daemon/requests.hpp"
#include "daemon/server.hpp"
#include "daemon/slots.hpp"
#include "daemon/stepping.hpp"
#include "daemon/upkeep.hpp"
#include "daemon/yielding.hpp"
#include "world/real/relay.hpp"

namespace cairn {

class Daemon final : public Server::Handler, private Requests::House {
  public:
    // `door` is locked. Opens the network and listens.
    static Result<std::unique_ptr<Daemon>> start(DaemonOptions options, Door door);
    ~Daemon() override;

    // Until the end; unfinished when sealed versions are left behind.
    Exit run();

    void on_request(ConnectionId from, std::uint64_t number, control::Request request) override;
    void on_disconnect(ConnectionId from) override;

  private:
    Daemon(DaemonOptions options, Door door, std::unique_ptr<RealWorld> world, std::unique_ptr<FabricNetwork> network);
    Status offer_as_io_node();
    Status listen();

    // Requests::House
    Task<Status> adopted() override;
    bool is_stopping() const override { return stopping_; }
    bool has_stopped() const override { return stopped_; }
    void job_opened(Id128 incarnation) override;
    void describe(control::NodeStatus& status) const override;
    std::uint64_t process_of(ConnectionId client) const override { return server_.process_of(client); }
    void client_left(Slots::Left left) override { gate_.spawn(left_slots_.look_into(std::move(left))); }
    Task<std::vector<VersionKey>> finish(Nanos wait) override;

    Task<void> serve(ConnectionId from, std::uint64_t number, control::Request request);
    // what goes on beside requests
    Task<void> adopt();
    Task<void> find_targets();
    Task<void> keep_retention();
    Task<void> watch();
    Task<void> watch_scratch();
    void forget_ended_jobs();
    void forget_job(Id128 incarnation);
    void wait_for_signals();
    void on_signal(int number);
    enum class Ending : std::uint8_t { in_order, by_signal };  // also when its scratch was taken away
    Task<void> stop_and_end(Nanos wait, const char* why, Ending ending);
    Task<std::vector<VersionKey>> stop(Nanos wait, const char* why, Ending ending);
    Task<void> free_scratch(Nanos deadline);
    Task<void> end_after_answers();
    Task<void> end();
    Task<void> end_at_once(const char* name);
    bool idle() const;
    std::string card_in_use() const;
    void tell_cards(control::NodeStatus& out) const override;

    struct Signals;

    DaemonOptions options_;
    std::shared_ptr<Door> door_;  // a worker that hangs may have it, too
    std::unique_ptr<RealWorld> real_;
    std::unique_ptr<FabricNetwork> network_;
    World world_;
    WorkerPool workers_;
    WorkerPool removers_;  // of slots, at the end: whatever hangs in the other one
    Node node_;
    Slots slots_;
    JobFiles job_files_;
    Jobs jobs_;
    Adoption adoption_;
    LeftSlots left_slots_;
    EndedJobs ended_jobs_;
    Epochs epochs_;
    PersistentRetention persistent_retention_;
    DeadImages dead_images_;
    AskedImages asked_;
    Upkeep upkeep_;
    Requests requests_;
    Server server_;
    Yielding yielding_;
    Relay relay_;
    Stepping stepping_;
    std::unique_ptr<Signals> signals_;

    Nanos last_busy_ = 0;  // a request came, or there was work
    bool is_adopted_ = false;
    std::weak_ptr<PlacementTargets> targets_look_;  // of the last look, while it is under way
    Nanos targets_looked_for_ = 0;
    std::string targets_said_, warning_said_;  // in the log, last
    bool stopping_ = false;
    int told_ = 0, keeper_told_ = 0;  // signals to end
    bool ends_at_once_ = false;
    bool stopped_ = false;
    bool ending_ = false;
    std::vector<VersionKey> unfinished_;
    Event changed_;  // is_adopted_, stopped_
    Gate gate_;      // last: its coroutines refer to all of the above
};

}  // namespace cairn
