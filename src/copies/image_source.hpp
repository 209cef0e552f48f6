// ImageSource: whoever has the bytes of an image and gives them when it is asked, as often as it is: a rank that waits in its checkpoint.
#pragma once

#include "world/buffer.hpp"
#include "world/clock.hpp"
#include "world/task.hpp"

namespace cairn {

class ImageSource {
  public:
    virtual ~ImageSource() = default;

    // Memory that the source can write to. out_of_space when there is none.
    virtual Result<BufferPtr> allocate(std::uint64_t bytes) = 0;
    // The image's bytes from `offset` on, into memory of allocate(), of this or another source of the same daemon; all of them, or why not. deadline: it may come
    // to it yet, and holds the buffer until then. not_found: it is gone, and gives nothing any more.
    virtual Task<Status> fill(std::uint64_t offset, Slice into, Nanos deadline) = 0;
};

}  // namespace cairn
