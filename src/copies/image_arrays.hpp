// What is known of the bytes of an image in scratch, for codecs. It stands in the image's region index, which is read when it is first asked for, on the thread of whoever asks: the
// mapping is read then, and may not come back.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "copies/scratch.hpp"
#include "model/number_array.hpp"
#include "model/plan.hpp"

namespace cairn {

class ImageArrays {
  public:
    // Of an image that can be read once only nothing is known: its index is among what would be used up.
    explicit ImageArrays(const LocalImage& image);
    // In the source's range, by offset in it; of several threads at once. None where the index is damaged: whoever restores hears of that.
    std::vector<NumberArray> in(const Source& source);

  private:
    ImageInfo info_;
    Slice index_;
    std::once_flag once_;
    std::vector<NumberArray> arrays_;
};

}  // namespace cairn
