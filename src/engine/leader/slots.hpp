// Staged marshaling (orcheck, Algorithm 1): in which order a node's files are staged and flushed, where each has one rank's image, or one node's.
//
//   Wait(StageMutex)     the file is made on its target
//   Wait(PFSMutex)       ... as soon as the data of the file before it are written, or those of fewer than `slots` are being written
//   Signal(StageMutex)   the next file may be staged
//   flush                data
//   Signal(PFSMutex)
//                        footer, fsync: beside the next file's data. Without direct I/O before the signal: then it is the fsync that writes them
//
// The two are interleaved: a file keeps its place in staging until it has one in flushing. So a server sees the files of a node one after the other, each from front to
// back, and the next one is there when the one before it ends. The images are in scratch, so staging needs no memory of its own. Files go in the order of the plan.
//
// A plain value; the one who waits looks again when the attempt's event says so.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::engine {

class Slots {
  public:
    // As many may be staged, and as many flushed, at a time. 0: there is no order.
    explicit Slots(std::uint32_t each = 0) : each_(each) {}

    bool may_stage(std::size_t file) const noexcept { return each_ == 0 || (file == staged_next_ && staging_ < each_); }
    void stage() noexcept { ++staging_, ++staged_next_; }
    bool may_flush(std::size_t file) const noexcept { return each_ == 0 || (file == flushed_next_ && flushing_ < each_); }
    // From staging to flushing.
    void flush() noexcept { --staging_, ++flushing_, ++flushed_next_; }
    void leave() noexcept { --flushing_; }

  private:
    std::uint32_t each_;
    std::uint32_t staging_ = 0, flushing_ = 0;
    std::size_t staged_next_ = 0, flushed_next_ = 0;
};

}  // namespace cairn::engine
