// Windows: shared memory of the daemon, to which a rank writes the pieces of its image that are wanted (control::Wanted). Mapped while a checkpoint lasts. The
// mappings are this process's alone: a child that it forks does not get them.
#pragma once

#include <map>
#include <span>

#include "client/files.hpp"

namespace cairn {

class Windows {
  public:
    Windows() = default;
    Windows(const Windows&) = delete;
    ~Windows();

    // The window of that number and size. `descriptor`: where it was not mapped before.
    Result<std::span<std::byte>> map(std::uint64_t number, std::uint64_t bytes, files::Descriptor descriptor);

  private:
    std::map<std::uint64_t, std::span<std::byte>> maps_;
};

}  // namespace cairn
