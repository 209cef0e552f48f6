// The one checksum of Cairn: XXH3, 64 bits, seed 0 (xxHash's own specification). FORMAT.md fixes what it covers.
#pragma once

#include "base/bytes.hpp"

namespace cairn {

std::uint64_t checksum(ByteView bytes) noexcept;
// The same without any instructions that not every processor has: what checksum() is on others, and what it is tested against.
std::uint64_t checksum_portable(ByteView bytes) noexcept;

// The same of bytes that come piece by piece. On their way they may be copied: both in one pass, so that they come out of main memory once, and past the caches where they are
// many, since nobody looks at what is restored before all of it is there.
class RunningChecksum {
  public:
    explicit RunningChecksum(bool portable = false) noexcept;  // portable: as checksum_portable()
    void add(ByteView bytes, std::byte* to = nullptr) noexcept;  // null: they are not copied
    // Each byte is looked at once, so that what is copied is what was checksummed, whoever writes to `bytes` meanwhile.
    void add_once(ByteView bytes, std::byte* to) noexcept;
    std::uint64_t take() noexcept;  // of all since the last take()

  private:
    static constexpr std::size_t state_bytes = 576;  // of XXH3, whose header not everybody is to include
    alignas(64) std::byte state_[state_bytes];
    const bool wide_;
};

}  // namespace cairn
