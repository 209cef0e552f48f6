// One small job, run again and again with another fault: two nodes with a rank each take two versions, all commits, a reader gets them back. Its
// steps are numbered: a step is an event after which the cluster is in another state (state_hash.hpp); so are the operations of all of its
// processes. At every step and every operation a Chooser is asked for each fault that could strike there. What a fault leaves undone of the job is
// done as an application would; then faults stop, and the seeds' checks are made.
#pragma once

#include "proof/every_fault.hpp"
#include "proof/state_hash.hpp"

namespace cairn::testing {

class Chooser {
  public:
    virtual ~Chooser() = default;
    // True: it does.
    virtual bool strikes(const Fault& fault) = 0;
    // After each step, before what could strike there is asked for.
    virtual void stepped(std::uint64_t state) = 0;
    // No more will be asked.
    virtual void job_over() = 0;
    // States need not be looked at any more, and nothing will strike.
    virtual bool indifferent() const = 0;
};

// Of the small job: K, and how many nodes write.
struct JobCase {
    std::uint32_t files = 1, leaders = 1;
    std::string text() const { return "K=" + std::to_string(files) + " L=" + std::to_string(leaders); }
};
inline constexpr std::array job_cases = {JobCase{1, 1}, JobCase{1, 2}, JobCase{2, 2}};

class SteppedRun {
  public:
    SteppedRun(JobCase which, Chooser& chooser, bool trace = false);
    SeedResult run();

  private:
    void do_job();
    bool all_back();  // all nodes are there, perhaps again
    void open_job();
    bool capture(Version version);
    void commit();
    std::optional<VersionKey> find_newest(NodeIndex reader, bool* looked = nullptr);
    void restore();
    void come_back();
    bool go_on_from(const VersionKey& from);

    void look();  // after each event
    void before(const std::string& operation, const std::string& detail);
    void observe(sim::Process& process, const std::string& operation, const std::string& detail);
    void ask_operation(const std::string& operation, const std::string& detail, bool before);
    void end_damage();

    Chooser& chooser_;
    const Scenario scenario_;
    bool asking_ = false;
    bool striking_ = false;  // what a strike does is no operation that another could strike
    std::uint64_t step_ = 0, operation_ = 0, whole_ = 0;
    Nanos looked_ = 0;
    std::uint64_t faults_last_ = 0;  // the operation that changed faults strike
    std::optional<std::uint64_t> damaged_;  // this is under way, and arrives damaged
    SeedRun run_;
    StateHash states_;
};

}  // namespace cairn::testing
