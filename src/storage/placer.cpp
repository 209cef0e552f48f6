#include "storage/placer.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <set>

#include "base/log.hpp"
#include "storage/parallel_file_system.hpp"

namespace cairn {

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::minutes rest{1};
constexpr Nanos rooms_limit = 10 * second;

class SystemPlacer final : public Placer {
  public:
    explicit SystemPlacer(Outside& outside) : outside_(outside) {}

    Status make(const std::string& path, std::uint32_t permissions, const Placing& placing, Nanos limit) override {
        const ParallelFileSystem* const system = file_system_named(placing.by);
        if (!system) return Status(Code::unsupported, "no driver is called " + placing.by);
        if (rests(placing.by)) return unavailable(placing.by + " did not answer a moment ago");
        Status made = system->make(outside_, path, permissions, placing, limit);
        if (!made.ok()) note(placing, path, made);
        return made;
    }

    Result<std::vector<TargetRoom>> rooms(const std::string& directory, const std::string& by, Nanos limit) override {
        const ParallelFileSystem* const system = file_system_named(by);
        if (!system) return Status(Code::unsupported, "no driver is called " + by);
        if (rests(by)) return unavailable(by + " did not answer a moment ago");
        Result<std::vector<TargetRoom>> rooms = system->rooms(outside_, directory, std::min(limit, rooms_limit));  // a plan waits for it
        if (rooms.code() == Code::deadline) begin_rest(by);
        return rooms;
    }

  private:
    bool rests(const std::string& by) {
        const std::lock_guard lock(mutex_);
        const auto found = rests_until_.find(by);
        return found != rests_until_.end() && Steady::now() < found->second;
    }

    void begin_rest(const std::string& by) {
        const std::lock_guard lock(mutex_);
        rests_until_[by] = Steady::now() + rest;
    }

    void note(const Placing& placing, const std::string& path, const Status& why) {
        if (why.code() == Code::deadline) begin_rest(placing.by);
        const std::lock_guard lock(mutex_);
        if (!said_.insert({placing.by, why.code()}).second) return;
        log_warning("not-placed", {{"driver", placing.by}, {"file", path}, {"target", names_text(placing.targets)}, {"why", why},
                                   {"lost", "files lie where the file system puts them, and its targets may get unequal bytes; the rest is as ever"}});
    }

    Outside& outside_;
    std::mutex mutex_;
    std::map<std::string, Steady::time_point> rests_until_;
    std::set<std::pair<std::string, Code>> said_;
};

}  // namespace

std::shared_ptr<Placer> make_placer(Outside& outside) { return std::make_shared<SystemPlacer>(outside); }

}  // namespace cairn
