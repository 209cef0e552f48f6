// Processors: which ones this process may run on, how many of them would be idle but for it, and how long its threads waited for one.
// All of it from /proc, readable by anybody.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "world/clock.hpp"

namespace cairn {

// Idle time of those processors since the machine started, in the units of /proc/stat; nothing where it tells of none of them.
std::optional<std::uint64_t> idle_ticks(std::string_view proc_stat, const std::vector<unsigned>& processors);

class Processors {
  public:
    Processors();
    double count() const { return static_cast<double>(allowed_.size()); }
    unsigned in_machine() const { return in_machine_; }

    // Idle since the last look but for this process, on average. The last answer where less than 100 ms have passed since, or nothing can be read: ticks are
    // 10 ms. Before the second look: all.
    double idle(Nanos now);

    static Nanos used();    // processor time of this process
    struct Seen {
        Nanos used = 0, waited = 0;
        double idle = 0;
    };
    Seen look(Nanos now) { return {.used = used(), .waited = waited(), .idle = idle(now)}; }  // all three
    Nanos waited();         // of all its threads, for a processor (schedstat), as far as it was looked while they lived; 0 where the kernel does not count

  private:
    std::vector<unsigned> allowed_;
    unsigned in_machine_ = 1;
    double idle_ = 1;
    std::optional<std::uint64_t> ticks_;
    std::map<std::string, Nanos> waited_of_;  // by thread, at the last look
    Nanos waited_ = 0;
    Nanos looked_ = 0, used_ = 0;
};

}  // namespace cairn
