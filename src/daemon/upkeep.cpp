#include "daemon/upkeep.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <utility>

#include "daemon/blocking.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t log_bytes_max = 8 << 20;

}  // namespace

Status keep_log_short(const std::string& file, LogLevel level, std::uint64_t bytes_max) {
    struct stat about = {};
    if (file.empty() || ::stat(file.c_str(), &about) != 0 || static_cast<std::uint64_t>(about.st_size) < bytes_max) return {};
    const std::string older = file + ".1";
    if (::rename(file.c_str(), older.c_str()) != 0) return Status::from_errno(errno, "can not rename " + file);
    const Status opened = log_to_file(file, level);
    log_info("log-continued", {{"from", older}, {"outcome", opened}});
    return opened;
}

Upkeep::Upkeep(WorkerPool& workers, Clock& clock, std::shared_ptr<Door> door, std::string log_file, LogLevel log_level, Nanos io_wait)
    : workers_(workers), clock_(clock), door_(std::move(door)), log_file_(std::move(log_file)), log_level_(log_level), io_wait_(io_wait) {}

Task<Status> Upkeep::look() {
    if (!looking_.expired()) co_return Status();
    const auto is_ours = std::make_shared<bool>(true);
    looking_ = is_ours;
    std::function<Status()> work = [is_ours, door = door_, file = log_file_, level = log_level_] {
        *is_ours = door->still_ours();
        if (*is_ours) (void)keep_log_short(file, level, log_bytes_max);  // where it can not be renamed it grows; else it is the next daemon's
        return Status();
    };
    const Status looked = co_await call_blocking(workers_, clock_, std::move(work), clock_.in(io_wait_));
    if (looked.ok() && !*is_ours) co_return not_found("scratch, or the daemon's lock in it, was removed");
    co_return Status();
}

Task<void> Upkeep::remove_socket(Nanos deadline) {
    std::function<Status()> work = [door = door_] {
        door->remove_socket();
        return Status();
    };
    const Status removed = co_await call_blocking(workers_, clock_, std::move(work), deadline);
    (void)removed;  // whoever connects meanwhile is refused, and looks at the lock
}

}  // namespace cairn
