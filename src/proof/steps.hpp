// What can happen in a run: functions of the run, by who does them. A new step is a function here, a name in scenario.hpp, and a row of `steps`
// in seeds.cpp.
#pragma once

#include "proof/seed_run.hpp"

namespace cairn::testing {

// jobs that open (opening_steps.cpp)
bool open(SeedRun& run);
void reopen(SeedRun& run);
void open_and_die(SeedRun& run, NodeIndex node);

// the application while its job lives (job_steps.cpp)
void capture(SeedRun& run);
void capture_again(SeedRun& run, NodeIndex node);
void cancel(SeedRun& run, NodeIndex node);
// Begins, when that can be on this node; null: it can not.
Errand* begin_cancel(SeedRun& run, NodeIndex node, const VersionKey& key, Nanos span);
// A version that may be about to commit.
std::optional<VersionKey> undecided(SeedRun& run);

// a restart while something goes wrong (restore_steps.cpp)
void restore(SeedRun& run, NodeIndex node);

// the operator, and the daemon that gives way (operator_steps.cpp)
void start(SeedRun& run, NodeIndex node);
void limit(SeedRun& run, NodeIndex node, bool hard);
void remove(SeedRun& run, NodeIndex node);
void remove(SeedRun& run, NodeIndex node, const std::optional<VersionKey>& key);
Errand* begin_give_up(SeedRun& run, NodeIndex node, const VersionKey& key);
// Waits for all that was begun, kills what does not end in time, and remembers what came of it.
void end_errands(SeedRun& run, Nanos span);

// versions that depend on older ones (dependent_steps.cpp)
void depend(SeedRun& run, NodeIndex node);

// scratch that wants room (scratch_steps.cpp)
void let_go(SeedRun& run, NodeIndex node);
void let_go_now(SeedRun& run, NodeIndex node);
// One image leaves scratch, and its slot may hold another one at once, unless the daemon says that it must not.
Status drop_image(SeedRun& run, Host& host, const VersionKey& key, Rank rank);
// A daemon that nobody asks for its jobs any more forgets those that have ended.
void forget(SeedRun& run, NodeIndex node);

// daemons that end in order, or have a successor; ranks that wait (daemon_steps.cpp)
void stop(SeedRun& run, NodeIndex node);
void succeed(SeedRun& run, NodeIndex node);
void wait(SeedRun& run, NodeIndex node);

// what goes wrong (trouble_steps.cpp)
void kill(SeedRun& run, NodeIndex node);
void pause(SeedRun& run, NodeIndex node);
void crash(SeedRun& run, NodeIndex node);
void power_loss(SeedRun& run);
// A node that does not come back: the next job has its ranks elsewhere.
void lose_now(SeedRun& run, NodeIndex node);
// A bit of a lineage's record turns; and the operator repairs what was damaged so (lineage_steps.cpp).
void flip(SeedRun& run, NodeIndex node);
void repair(SeedRun& run);
void partition(SeedRun& run);
// Persistent is another tree, on one node or all of them; until uncover, at the latest when a job opens and when all heals.
void cover(SeedRun& run, NodeIndex node);
void cover_all(SeedRun& run);
void uncover(SeedRun& run);

// One root fails, is full or away, until the next such step, at the latest when all heals.
void spoil_root(SeedRun& run, NodeIndex node);

// in the middle of a chosen operation (strike_steps.cpp)
void strike(SeedRun& run, NodeIndex node);
void lose(SeedRun& run, NodeIndex node);
// Of every operation of every simulated process: strikes, and what can be seen from outside.
void observe(SeedRun& run, sim::Process& process, const std::string& what, const std::string& detail);
// No faults from here on, not even those that wait for their moment.
void be_quiet(SeedRun& run);

// Some time passes, with a look at what daemons say.
void pass(SeedRun& run);

}  // namespace cairn::testing
