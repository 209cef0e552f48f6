// Describer: files that take a library to read are described by a program of their own, cairn-describer, so that what a damaged file does to the library happens there
// (ARCHITECTURE.md, "HDF5 is read by a child").
//
// Order kept: one request at a time; a child that is late, dies or says nonsense is killed and reaped before another is started, and the next request starts it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "describe/extent.hpp"

namespace cairn {

namespace describer {
class Child;
}

// cairn-describer in the folder of the program that runs.
std::string describer_program();

class Describer {
  public:
    // After so many failures in a row nothing is started for a while, which doubles with each further one.
    struct Patience {
        unsigned failures = 3;
        std::chrono::milliseconds pause{1000}, pause_max{60'000};
    };
    explicit Describer(std::string program) : Describer(std::move(program), Patience{}) {}
    Describer(std::string program, Patience patience);
    Describer(const Describer&) = delete;
    ~Describer();

    // Of the file that is these bytes of `path`, which have to stay as they are meanwhile. Any thread may call; others wait for their turn, no longer
    // than the limit, and then have all of it, so that no child is called late because of whom it described before.
    // unavailable: there is no such program, it can not be started, has died, says nonsense, or is not tried again yet; deadline; corrupt: the library can not read the file.
    // Not longer than twice the limit, but for a child that takes half a second to die.
    Result<Description> describe(const std::string& path, std::uint64_t offset, std::uint64_t length, std::chrono::milliseconds limit);

    pid_t child() const noexcept { return pid_; }  // the process, for who looks on; 0: none runs

  private:
    using Clock = std::chrono::steady_clock;
    Status have_child();
    Result<std::vector<Extent>> ask(const std::string& path, std::uint64_t offset, std::uint64_t length, Clock::time_point deadline);
    Result<Bytes> exchange(ByteView request, Code& code, Clock::time_point deadline);
    void failed();
    bool drop_child();

    const std::string program_;
    const Patience patience_;
    std::mutex mutex_;
    std::condition_variable turn_;
    bool is_busy_ = false;  // guarded by the mutex; all below is whose turn it is
    std::unique_ptr<describer::Child> child_;
    bool is_leaving_ = false;  // the child is killed, and not gone yet
    std::atomic<pid_t> pid_ = 0;
    unsigned failures_ = 0;  // in a row
    Clock::time_point not_before_{};
};

}  // namespace cairn
