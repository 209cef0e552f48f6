// The run of one scenario, for its two halves alone: what happens (seeds_sim.cpp) and what was promised (promise_sim.cpp).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "engine/seeds_sim.hpp"

namespace cairn::testing {

class SeedRun {
  public:
    SeedRun(const Scenario& scenario, bool trace);
    SeedResult run();

  private:
    // Of the step that is being taken.
    std::uint64_t draw(std::uint64_t below) { return below == 0 ? 0 : draw_.next() % below; }
    bool chance(unsigned percent) { return draw(100) < percent; }
    void see(Saw what) { result_.saw |= 1ull << static_cast<unsigned>(what); }
    template <class... Parts>
    void tell(const Parts&... parts) {
        std::ostringstream line;
        line << static_cast<double>(cluster_.sim.now()) / second << " s: ";
        (line << ... << parts);
        result_.story += line.str() + "\n";
    }
    void fail(std::string text);
    SeedResult finish(std::string failure);

    // the job
    bool open();
    void reopen();
    void go_on_from(VersionKey from);
    bool record(Parent parent);
    void capture();

    // steps
    void take(const Step& step);
    void kill(NodeIndex node);
    void pause(NodeIndex node);
    void crash(NodeIndex node);
    void power_loss();
    void partition();
    void start(NodeIndex node);
    void limit(NodeIndex node, bool hard);
    void remove(NodeIndex node);
    void give_up(NodeIndex node);
    void cancel(NodeIndex node);
    std::optional<VersionKey> undecided();
    void let_go(NodeIndex node);
    void arm();
    void strike(NodeIndex node);
    void begin_trouble();
    void observe(sim::Process& process, const std::string& what, const std::string& detail);
    void pass();
    void be_quiet();

    // what was promised
    std::optional<VersionKey> removable();
    void note_states();
    bool in_chain(const VersionKey& key) const;
    void check_newest(const Manifest& found);
    void check_superseded(sim::Process& process, const std::string& manifest);
    void settle();
    void check_promise();
    void check_scratch();
    void check_liveness();
    void check_last();
    void check_nothing_left_over();
    void check_all_told();
    void check_rest();
    void check_flipped_bit();
    bool lost_scratch() const;
    bool may_be_passed_over(const VersionKey& key) const;
    std::optional<std::uint64_t> data_in(const std::string& path);

    // A fault that waits for an operation of a daemon.
    struct Strike {
        std::string operation;
        std::uint64_t before = 0;  // so many of them pass
        enum class Kind : std::uint8_t { kill, pause, crash, power, fail, hang, trouble } kind = Kind::kill;
        Nanos delay = 0;           // from the operation's beginning
    };

    const Scenario& scenario_;
    sim::Prng draw_;
    sim::Faults background_;
    SeedResult result_;
    bool job_lives_ = false;
    bool has_parent_ = false;
    Version next_version_ = 1;
    std::map<Id128, Parent> chains_;        // where each incarnation came from, as the test knows it
    std::map<Id128, Nanos> recorded_;       // since when others can know that
    std::map<VersionKey, bool> reported_;   // called committed by some daemon at some time
    std::map<VersionKey, bool> removed_;    // tried to remove; true: done, with a fence that stays
    std::set<VersionKey> sealed_;           // sealed by every rank
    std::set<VersionKey> given_up_;         // or cancelled: its tombstone stood before any manifest did
    std::set<VersionKey> let_go_;           // and not in every scratch any more
    std::map<VersionKey, Nanos> fenced_;    // since when
    std::optional<Strike> armed_;
    std::uint64_t strikes_ = 0;             // armed so far: an old one that comes late does nothing
    std::optional<sim::Faults> after_this_;  // one operation had faults of its own
    Cluster cluster_;                       // last: its processes go first
};

}  // namespace cairn::testing
