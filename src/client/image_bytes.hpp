// What the bytes of an image are, from its first to its last: regions at their places, gaps of zeros, the region index. The one place that knows; capture.cpp writes
// all of them into a slot, and a rank that waits (through.cpp) gives any range, as often as it is asked.
#pragma once

#include <sys/stat.h>

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "client/capture.hpp"

namespace cairn {

struct Stretch {
    enum class Kind : std::uint8_t { zeros, memory, callback, file } kind = Kind::zeros;
    std::uint64_t offset = 0, length = 0;     // in the image
    const void* data = nullptr;               // memory
    const ProtectedRegion* region = nullptr;  // callback, file
};

// They lie side by side, and none is empty but regions of no bytes.
std::vector<Stretch> stretches_of(const CapturePlan& plan, const RegionTable& regions);

// A routed file while an image is made of it: its bytes are of the file as it was when the first were read, or it is an error.
class RoutedFile {
  public:
    // As long as it was planned.
    RoutedFile(const ProtectedRegion& region, std::uint64_t bytes) : region_(region), bytes_(bytes) {}
    Status read(std::uint64_t offset, std::span<std::byte> into);

  private:
    const ProtectedRegion& region_;
    const std::uint64_t bytes_;
    std::optional<struct stat> before_;
};

class ImageBytes {
  public:
    // Both outlive it; the regions do not change meanwhile.
    ImageBytes(const CapturePlan& plan, const RegionTable& regions) : bytes_(plan.header.image.bytes), stretches_(stretches_of(plan, regions)) {}
    // unsupported, naming the region, where bytes can not be given twice.
    Status check() const;
    // From `offset` on. invalid_argument where the image has no such bytes.
    Status read(std::uint64_t offset, std::span<std::byte> into);

  private:
    const std::uint64_t bytes_;
    const std::vector<Stretch> stretches_;
    std::map<const ProtectedRegion*, RoutedFile> files_;
};

}  // namespace cairn
