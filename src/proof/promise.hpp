// What was promised (ARCHITECTURE.md, "The promise"), held against what daemons say while it runs and what is left at the end.
#pragma once

#include "proof/seed_run.hpp"

namespace cairn::testing {

// while it runs (promise.cpp)
// Remembers every version that any daemon called committed.
void note_states(SeedRun& run);
// A restarting job never gets less than what was called committed in its lineage.
void check_newest(SeedRun& run, const VersionKey& found, const std::map<VersionKey, bool>& told_before);  // told_before: what was called committed when the look began
// What a restarting job sees: every version of the current lineage that was called committed, not the newest alone. Returns the newest.
std::optional<VersionKey> check_catalog(SeedRun& run);
// The same where ranks found these versions in scratch.
void check_restorable(SeedRun& run, const RestorableSeries& found, const std::vector<SealedVersion>& sealed, const std::map<VersionKey, bool>& told_before);
bool has_version(const SeedRun& run, Id128 incarnation);  // that was called committed, and not removed
// The incarnation whose lineage is the current one: the newest that has a parent or a version that others can know of. None: there was no such job.
Id128 head(const SeedRun& run);
bool in_chain(const SeedRun& run, const VersionKey& key);
bool in_chain(const SeedRun& run, Id128 head, const VersionKey& key);
// A version that nobody needs.
std::optional<VersionKey> removable(SeedRun& run);
// Everything that was called committed is there, bit for bit, and so is everything that has a manifest.
void check_promise(SeedRun& run);
void check_dependents(SeedRun& run);
// Whose bytes a version has: its own, or those of the one on which it depends.
const VersionKey& content_of(const SeedRun& run, const VersionKey& key);

// At each operation (observed.cpp): a part's name is made once; what is published is what its readers take, and would be if all nodes lost power at that
// moment, and (of every second one) what `cairn verify` calls whole, having looked at every byte; and nobody
// publishes a version behind which the job went back, unless he looked just before.
void check_operation(SeedRun& run, sim::Process& process, const std::string& what, const std::string& path);

// Ranks that wait while the run goes on (waiters.cpp): on some nodes that hold something of this version; whether each was told in time, and truly; and at
// rest, whether those that have no deadline were told.
void begin_waiters(SeedRun& run, const VersionKey& key);
void check_waiters(SeedRun& run);
void check_all_waiters_told(SeedRun& run);

// What a restart sees, as far as it can be told where a record of the lineage is damaged; else after its repair (lineage_steps.cpp).
Result<RestorableSeries> look_for_restart(SeedRun& run);

// once faults stopped (ending.cpp)
// Within that from now whatever is open commits or is refused: the longest deadline that was in force when faults stopped, and three times what it takes
// undisturbed.
Nanos calm_span(const SeedRun& run);
void settle(SeedRun& run);
// Daemons that are started again at the very end hide nothing, and find out how what they hold ended.
void check_started_again(SeedRun& run);
// Of the present job, what is sealed everywhere and still in scratch commits by itself.
void check_sealed_commit(SeedRun& run);
// The same where no rank lives any more and daemons are started again (alone.cpp).
void check_alone(SeedRun& run);
// The same, and a new version commits; then nothing is left over and all is at rest.
void check_liveness(SeedRun& run);

// What nobody can need any more leaves scratch, and nothing else does (dead_steps.cpp).
void check_dead(SeedRun& run);
std::set<VersionKey> whole_in_scratch(const SeedRun& run);
bool holds_any(const SeedRun& run, const Host& host, const VersionKey& key);  // its daemon: an image of it

// Ranks of a node that restore at the same time (together.cpp): a version that is committed; one of which a part is damaged, where these ranks have bytes.
void check_together(SeedRun& run, const VersionKey& key);
void check_damage_together(SeedRun& run, const VersionKey& key, const std::string& part, const std::set<Rank>& hit);

// bytes (bytes.cpp)
// What looks like a sealed image in scratch is one, bit for bit.
void check_scratch(SeedRun& run);
void check_flipped_bit(SeedRun& run);

}  // namespace cairn::testing
