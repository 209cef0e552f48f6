// Stepping: keeps the classes of the daemon's threads to what the flush needs (daemon/under_way.hpp). It looks while a flush is under way, and hands the
// loop (Relay), the pools, io_uring and the session's nice to the class that is wanted; with nothing to flush the
// pools are in the idle class, and the loop and the session are as they were started.
#pragma once

#include <string>

#include "daemon/processors.hpp"
#include "daemon/under_way.hpp"
#include "engine/router/node.hpp"
#include "world/gate.hpp"
#include "world/real/relay.hpp"
#include "world/real/world.hpp"

namespace cairn {

struct SteppingSettings {
    bool follows_need = true;            // else the threads stay in the first class
    CpuClass first = CpuClass::idle;
    IoClass io = IoClass::idle;          // of reads and writes, in every class but the normal one
    double commit_within = 0.5;          // of the interval between checkpoints
    bool own_session = false;            // the daemon and its keeper are alone in it: it may have a nice of its own
};

class Stepping {
  public:
    Stepping(RealWorld& real, Relay& relay, Node& node, const SteppingSettings& settings);

    Task<void> run();  // ends where the class does not follow need
    void job_opened(Id128 incarnation) { under_way_.need().job_opened(incarnation, clock_.now()); }
    void job_forgotten(Id128 incarnation) { under_way_.need().job_forgotten(incarnation); }

    // For people.
    std::string text() const;
    std::string why() const { return settings_.follows_need ? under_way_.need().why() : "background.cpu says so"; }
    const Processors& processors() const { return processors_; }

  private:
    UnderWay::Sight sight();
    void apply();
    void take_class(CpuClass loop);
    Task<void> set_nice();

    RealWorld& real_;
    Relay& relay_;
    Node& node_;
    Clock& clock_;
    const SteppingSettings settings_;
    Processors processors_;
    UnderWay under_way_;
    CpuClass current_;                          // of the pools
    CpuClass loop_class_ = CpuClass::normal;
    int session_nice_, nice_wanted_ = 0;
    bool is_setting_nice_ = false, told_ = false;
    bool has_session_nice_ = true;  // until the kernel says that there is no such thing
    Gate gate_;
};

// What the session's nice is while the threads are of this class.
int session_nice_of(CpuClass own);

}  // namespace cairn
