// Operation: one piece of I/O on its way through a simulated machine, and what came of it. Held by whoever waits for it and by
// the machine until it is over; so it keeps its file and its buffer for as long as the machine may still touch them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "world/sim/simulation.hpp"

namespace cairn::sim {

class SimFile final : public File {
  public:
    SimFile(std::string path, InodePtr of, FileSystem& on, bool on_shared, bool may_write)
        : inode(std::move(of)), fs(on), shared(on_shared), writable(may_write), path_(std::move(path)) {}
    const std::string& path() const noexcept override { return path_; }
    bool is_placed() const noexcept override { return placed; }

    const InodePtr inode;
    FileSystem& fs;
    const bool shared;
    const bool writable;
    bool placed = false;

  private:
    std::string path_;
};

struct Operation {
    enum class Kind : std::uint8_t { metadata, read, write, fsync };

    Operation(Process& p, Clock& clock, Kind k, const char* w, std::string on)
        : process(p), kind(k), what(w), name(std::move(on)), path(name), changed(clock) {}
    Operation(Process& p, Clock& clock, Kind k, const char* w, FilePtr on)
        : process(p), kind(k), what(w), file(std::move(on)), path(file->path()), changed(clock) {}
    Operation(const Operation&) = delete;

    Process& process;
    const Kind kind;
    const char* const what;
    const FilePtr file;      // of an open one; or
    const std::string name;  // what it is about
    const std::string& path;
    std::function<void(Operation&)> effect;  // on the machine, when it gets there
    std::uint64_t id = 0;
    std::uint64_t event = 0;
    Nanos after = 0;  // that it still takes when its bytes are through
    bool takes_space = false;
    bool full = false;   // ENOSPC, without effect
    bool fails = false;  // EIO, whatever the effect said
    bool away = false;   // ENOENT, without effect

    Slice data;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> stale_from;  // of a read: from here on it gives what stood there before
    std::optional<Runs> captured;  // of a write that has read its buffer already

    bool done = false;
    Status status;
    std::uint64_t value = 0;  // bytes to transfer, then transferred; or a size
    FilePtr opened;
    BufferPtr buffer;
    std::vector<DirectoryEntry> entries;
    Event changed;
};

// The machine's side: takes an operation in, and ends it.
void begin(const std::shared_ptr<Operation>& operation, Nanos ready);
// The same, ready some time after `carry` has called what it is given: when the bytes are through a machine.
void begin(const std::shared_ptr<Operation>& operation, Nanos after, const std::function<void(std::function<void()>)>& carry);
// What becomes of the operations under way of a process that was killed; at a crash none is left for later.
void settle_operations(Process& process, bool crash);

// When scratch gives what it was asked for; true: never.
bool draw_scratch_delay(Simulation& sim, Nanos& ready);

std::unique_ptr<Clock> make_clock(Process& process, Nanos ahead);
std::unique_ptr<Storage> make_storage(Process& process, Clock& clock);
std::unique_ptr<Randomness> make_randomness(std::uint64_t seed);
std::unique_ptr<Cpu> make_cpu(Process& process, Clock& clock);

}  // namespace cairn::sim
