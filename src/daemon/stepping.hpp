// Stepping: keeps the classes of the daemon's threads to what the flush needs (daemon/need.hpp). It looks while a flush is under way, and hands the
// loop (Relay), the pools, io_uring and the session's nice to the class that is wanted; with nothing to flush the
// pools are in the idle class, and the loop and the session are as they were started.
#pragma once

#include <set>
#include <string>

#include "daemon/need.hpp"
#include "daemon/processors.hpp"
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
    void job_opened(Id128 incarnation) { need_.job_opened(incarnation, clock_.now()); }
    void job_forgotten(Id128 incarnation) { need_.job_forgotten(incarnation); }

    // For people.
    std::string text() const;
    std::string why() const { return settings_.follows_need ? need_.why() : "background.cpu says so"; }
    const Processors& processors() const { return processors_; }

  private:
    NeedLook look();
    std::uint64_t left_bytes() const;
    bool is_under_way(const VersionKey& key, const VersionState& state);
    bool note_versions();
    void apply();
    void take_class(CpuClass loop);
    Task<void> set_nice();

    RealWorld& real_;
    Relay& relay_;
    Node& node_;
    Clock& clock_;
    const SteppingSettings settings_;
    Processors processors_;
    Need need_;
    CpuClass current_;                          // of the pools
    CpuClass loop_class_ = CpuClass::normal;
    std::set<VersionKey> under_way_;
    std::set<VersionKey> unsealed_;   // that others hold up
    std::uint64_t given_before_ = 0;  // when the oldest of them began
    int session_nice_, nice_wanted_ = 0;
    bool is_setting_nice_ = false, told_ = false;
    bool has_session_nice_ = true;  // until the kernel says that there is no such thing
    Gate gate_;
};

// What the session's nice is while the threads are of this class.
int session_nice_of(CpuClass own);

}  // namespace cairn
