// Removal: taking versions off persistent so that at every instant each is whole or not there, and none that was removed comes back
// (rules 2 to 4). World only, so that the daemon's retention can use it, too.
//
//   1. Nothing goes on which a version depends (needed.hpp): that is looked for when the tombstone lies under its other name, where who publishes can see it. Then it takes the manifest's name. Where a manifest stands it is put in its place in one step (Storage::replace); where none
//      does, it is published like a manifest, without replacing. Durably: the directory is synced.
//   2. The incarnation's parts and unpublished manifests go, in any order: nothing names them, nothing ever will. That is asked once more before: what depends
//      on them by an older release's order of steps keeps them. Below every root that held parts, which the
//      tombstone names, and below those of the layout. Where a named one is away the tombstone stays, so that `cairn gc` can finish it.
//   3. With Fence::lift, durably again, the tombstone itself, and the directory if nothing else is in it.
//
// Where there is no room for a tombstone, even with the reserve (reserve.hpp), the manifest's own file becomes one. Unpublished manifests of the incarnation go
// first, so that nobody can publish what stood there again; the manifest is moved to an unpublished name, durably; there the tombstone is written over it,
// into its blocks (a file system that writes nothing in place gets the room of parts that it named, which nothing names now); then it is published
// without replacing. For a moment the version has neither manifest nor tombstone: who is killed then leaves parts that nothing names, and who still has its
// images may commit it again, under new parts, whole. A version without a manifest is given up in the room of its unpublished ones.
//
// A directory that stands in the place of a manifest or a part goes like one where it is empty; a full one is put aside (aside_name), for it is somebody's.
//
// Whoever is killed in between leaves a whole version (before 1), or a tombstone with leftovers that `cairn gc` takes (after it).
//
// While the tombstone stands nobody can publish that version: not a coordinator that was paused, not a request that the file system
// carries out late, not a daemon that finds the images in scratch. May it go? A publisher needs its unpublished manifest to publish
// it (link and rename both ask for the first name), and that is gone since step 2; so what was under way comes to nothing even without
// the fence. Only a living daemon of that incarnation that does not know of the commit could begin anew. Hence: lift where no such daemon
// can be - the job is over (job_on_record), or who removes is itself the incarnation's coordinator and applies the rule by which the
// version went to what it finds in scratch (daemon/jobs). In all other cases the tombstone stays until gc can tell.
#pragma once

#include <string>
#include <vector>

#include "catalog/catalog.hpp"

namespace cairn {

enum class Fence : std::uint8_t { keep, lift };

// A manifest that says: never (again) to be committed. `epoch`, `parent`, `ranks`: what is known of the incarnation; `roots`: where parts of it
// lie (roots_with_parts).
Manifest tombstone_of(const VersionKey& key, std::uint64_t epoch, Parent parent, std::uint32_t ranks, std::vector<std::string> roots = {});

// Removes a committed or damaged version, whatever manifest stands: steps 1 to 3. What is gone already is no error. permission: a committed version depends on it.
Task<Status> remove_version(World& world, Layout layout, Manifest tombstone, Fence fence, Nanos io_wait);

// Step 1 for a version without a manifest: after that nobody can commit it. already_exists: somebody committed or gave it up first.
Task<Status> give_up_version(World& world, Layout layout, Manifest tombstone, Nanos io_wait);

// Steps 2 and 3 for a version whose tombstone stands. unavailable: one of its roots is away, and all else is done but step 3. permission: a committed version depends on it.
Task<Status> clear_version(World& world, Layout layout, ManifestFacts tombstone, Fence fence, Nanos io_wait);

// Removes files that nothing names, then the directory if it is empty, unless it is `kept`.
Task<Status> remove_files(World& world, std::string directory, std::vector<std::string> files, Nanos io_wait, std::string kept = {});

// Whether a job's roster is under persistent. The coordinator's daemon takes it away when it ends with nothing left to finish, and without
// its images no version of that job can commit: no roster, no publisher.
Task<Result<bool>> job_on_record(World& world, Layout layout, Id128 incarnation, Nanos deadline);

// Indices of the committed entries that a retention rule lets go. `entries` are the committed versions of one lineage by version; the newest
// always stays.
std::vector<std::size_t> beyond_retention(const std::vector<Version>& versions, std::uint64_t last, std::uint64_t every);

}  // namespace cairn
