// Need: how urgently a flush has to run. A version is worth most when it is committed well before the next one is captured, and the application
// gets most where the daemon's threads run in the idle class. On a node with idle processors both is to be had. On one without, the idle class gets a
// few thousandths of a processor, and a flush may take longer than the interval between checkpoints.
//
//   the interval    the shortest of the last few of the job; at the first checkpoint, the time since the job opened
//   the deadline    a part of the interval (background.commit_within) after all ranks of this node have sealed
//   the class       as low as lets the flush end by its deadline: first as the flush before needed it, or, where time is short, as its bytes seem to
//                   need it; then higher while the flush is too slow, and that for want of a processor
//
// The classes and what they get beside a busy thread are the scheduler's weights (share_beside_busy). Pure: looks in, class out.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "model/types.hpp"
#include "world/clock.hpp"
#include "world/real/thread_class.hpp"

namespace cairn {

struct NeedSettings {
    double commit_within = 0.5;  // of the interval
    double processors = 1;       // that the daemon may run on
};

// What was seen; times are sums since the daemon began.
struct NeedLook {
    Nanos now = 0;
    std::uint64_t left_bytes = 0;  // of what is under way, that is still to be flushed
    Nanos used = 0;              // processor time of this process
    Nanos waited = 0;            // of its threads, for a processor
    double idle_processors = 0;  // lately, but for this process
};

// Part of a processor that a thread of this class gets beside one busy thread of the normal class.
double share_beside_busy(CpuClass own);

class Need {
  public:
    explicit Need(NeedSettings settings) : settings_(settings) {}

    void job_opened(Id128 incarnation, Nanos now);
    void job_forgotten(Id128 incarnation);
    // All ranks of this node have sealed a version of so many bytes here; again the same: it is tried again.
    void begins(const VersionKey& key, std::uint64_t bytes, const NeedLook& look);  // whose bytes are left, too
    void look(const NeedLook& look);
    void ended(const NeedLook& look);  // nothing is left to be flushed

    CpuClass wanted() const { return wanted_; }
    // With nothing to flush it is ready to answer, in the class that the daemon was started with.
    CpuClass wanted_of_loop() const { return limit_ == 0 ? CpuClass::normal : wanted_; }
    const std::string& why() const { return why_; }  // for people
    Nanos time_limit() const { return limit_; }      // of this flush; 0: none is under way
    bool is_late(Nanos now) const { return limit_ != 0 && now - begun_ > limit_; }

  private:
    struct Job {
        Nanos opened = -1, sealed = -1;  // -1: not known
        Version newest = 0;
        Nanos interval = 0;              // as it was taken for that version
        std::deque<Nanos> intervals;
    };
    static Nanos interval_of(const Job& job, Nanos now);
    static void note_version(Job& job, Version version, Nanos now);
    double supply(CpuClass own, double idle) const;  // processors
    CpuClass by_bytes(const NeedLook& look) const;
    void want(CpuClass wanted, std::string why, const NeedLook& look);

    NeedSettings settings_;
    std::map<Id128, Job> jobs_;
    double cost_ = 3;  // ns of processor time a byte, of the flushes lately
    CpuClass wanted_ = CpuClass::idle, usual_ = CpuClass::idle;
    std::string why_ = "nothing to flush";
    Nanos begun_ = 0, limit_ = 0;
    std::uint64_t bytes_ = 0;  // of this flush: all versions that were under way since it began
    NeedLook first_, since_;  // when this flush began; when its class was chosen
    bool is_tight_ = false;
};

}  // namespace cairn
