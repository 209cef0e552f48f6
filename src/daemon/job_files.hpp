// JobFiles: what is kept of a job in files, so that a daemon started again can finish what an earlier one left.
//
// In scratch: the roster with the secret (jobs/<incarnation>, mode 0600). Under persistent: the roster once, and the
// newest address of each daemon (catalog/layout.hpp), so that the others of the job find a daemon that was started
// again.
#pragma once

#include <string>

#include "catalog/layout.hpp"
#include "copies/scratch.hpp"
#include "world/real/worker_pool.hpp"
#include "world/world.hpp"

namespace cairn {

class JobFiles {
  public:
    JobFiles(World world, WorkerPool& workers, Layout layout, ScratchLayout scratch, Nanos io_wait);

    // In scratch; the last one stands.
    Task<Status> keep(Roster roster);
    // Under persistent, this daemon's address as that of node `self`. unavailable: persistent is another file system for the moment, or has no room for
    // the node's address. Without its roster no job is: what `cairn gc` may take is known by it.
    Task<Status> publish(Roster roster, NodeIndex self);
    // As it stands under persistent. not_found, or unavailable where persistent itself is not there.
    Task<Result<Roster>> read_published(Id128 incarnation);
    // All that stand in scratch.
    Task<Result<JobScan>> scan(Nanos deadline);
    // Of a job that is over: each daemon takes its own record away, the coordinator's the roster, the last one the directory. What fails is
    // left for gc.
    Task<void> remove(Roster roster, std::string node, Nanos deadline);

  private:
    Task<Status> publish_once(std::string path, Bytes bytes);
    Task<Status> replace(std::string path, Bytes bytes);

    World world_;
    WorkerPool& workers_;
    Layout layout_;
    ScratchLayout scratch_;
    Nanos io_wait_;
    bool told_of_reserve_ = false;  // that something else stands in its place
};

}  // namespace cairn
