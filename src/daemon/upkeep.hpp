// Upkeep: what a daemon looks after in its scratch while it lives: that its lock and its directory are still its own, and that its log stays short. All of it
// asks a file system that may not answer, so it runs in a worker; a look that hangs is no reason for a second one, nor for an end.
#pragma once

#include <memory>
#include <string>

#include "base/log.hpp"
#include "daemon/door.hpp"
#include "world/channel.hpp"
#include "world/real/worker_pool.hpp"

namespace cairn {

// A log that is longer than `bytes_max` becomes <file>.1, in place of an older one, and a new one begins. Blocks.
Status keep_log_short(const std::string& file, LogLevel level, std::uint64_t bytes_max);

class Upkeep {
  public:
    // log_file: empty where the log is no file.
    Upkeep(WorkerPool& workers, Clock& clock, std::shared_ptr<Door> door, std::string log_file, LogLevel log_level, Nanos io_wait);

    // Once a second, say. not_found when scratch was removed, or the lock in it; ok also where that can not be told.
    Task<Status> look();
    // The socket's name goes, if scratch is still ours.
    Task<void> remove_socket(Nanos deadline);

  private:
    WorkerPool& workers_;
    Clock& clock_;
    std::shared_ptr<Door> door_;
    std::string log_file_;
    LogLevel log_level_;
    Nanos io_wait_;
    std::weak_ptr<bool> looking_;  // of the last look, while it is under way
};

}  // namespace cairn
