// RestoreTarget: one protected region, and what a version holds of it.
#pragma once

#include <string>

#include "client/files.hpp"
#include "client/regions.hpp"
#include "world/buffer.hpp"

namespace cairn {

class RestoreTarget {
  public:
    // Order: check_fits(region, kept) before; prepare(), take() for each run of bytes, finish() when all ranks have all bytes.
    RestoreTarget(const ProtectedRegion& region, const Region& kept);
    RestoreTarget(const RestoreTarget&) = delete;
    ~RestoreTarget();  // what was not finished leaves nothing

    const Region& kept() const noexcept { return kept_; }
    Status prepare(const MemoryMap& map);
    Status take(std::uint64_t at, ByteView data);  // at: in the region; verified
    Slice memory();  // where all of it may be read to, before it is verified; none of a routed file. After prepare()
    Status finish();                               // hands over to callbacks, renames files

  private:
    const ProtectedRegion* region_;
    Region kept_;
    Bytes bytes_;             // callback
    files::Descriptor file_;  // file: written aside
    std::string aside_;
};

}  // namespace cairn
