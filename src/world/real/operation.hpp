// What Storage hands to whoever does the work, and shares with the coroutine that waits for it. Private to this room.
//
// An operation is held by the frame that waits and by the worker or the kernel that may still touch its buffer:
// whichever lets go last frees the buffer. That is the quarantine of rule 6.
#pragma once

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>

#include "world/channel.hpp"
#include "world/real/files.hpp"
#include "world/real/worker_pool.hpp"

namespace cairn {

class Operation : public Job {
  public:
    explicit Operation(Clock& clock) : ended_(clock) {}
    bool done() const noexcept { return done_; }
    // On the loop, when the work is really over.
    void finished() override {
        done_ = true;
        if (after_deadline_) after_deadline_();
        ended_.notify_all();
    }
    // What to do when it is over although nobody waits any more.
    void when_late(std::function<void()> action) { after_deadline_ = std::move(action); }
    Event& ended() noexcept { return ended_; }

  private:
    bool done_ = false;
    std::function<void()> after_deadline_;
    Event ended_;
};

// Any blocking function.
template <class R>
class Call final : public Operation {
  public:
    Call(Clock& clock, std::function<R()> work) : Operation(clock), work_(std::move(work)) {}
    void run() override { result_.emplace(work_()); }
    R take() { return std::move(*result_); }

  private:
    std::function<R()> work_;
    std::optional<R> result_;
};

// fsync_direct: of the direct descriptor, for file systems that keep what a descriptor wrote with the descriptor (GlusterFS's write-behind).
enum class TransferKind : std::uint8_t { read, write, fsync, fsync_direct };
inline bool is_fsync(TransferKind kind) { return kind == TransferKind::fsync || kind == TransferKind::fsync_direct; }

// A read, write or fsync: for a worker (run) or for the ring, which reads the members.
class Transfer final : public Operation {
  public:
    Transfer(Clock& clock, TransferKind k, std::shared_ptr<RealFile> f, Slice s, std::uint64_t o)
        : Operation(clock), kind(k), file(std::move(f)), slice(std::move(s)), offset(o) {
        route = {file->descriptor(), 0, false};
        if (kind == TransferKind::fsync_direct) route.descriptor = file->direct_descriptor();
        if (!is_fsync(kind)) route = file->route(slice.data(), offset, std::min(slice.length, bytes_max));
    }
    void run() override;

    static constexpr std::uint64_t bytes_max = 1ull << 30;  // the kernel's own limit is just below 2 GiB

    const TransferKind kind;
    const std::shared_ptr<RealFile> file;
    const Slice slice;
    const std::uint64_t offset;
    RealFile::Route route;
    bool abandoned = false;              // nobody waits; the ring's
    std::int64_t result = -EINPROGRESS;  // bytes moved, or minus errno
};

}  // namespace cairn
