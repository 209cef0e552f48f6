// What is known of the bytes of an image in scratch, for codecs. Its region index says what its regions are, and what the application said of those that Cairn can not see into. Of others rules
// say it, or the files themselves. All is read when it is first asked for, on the thread of whoever asks: the mapping is read then, and may not come back.
#pragma once

#include <atomic>
#include <vector>

#include "copies/scratch.hpp"
#include "describe/file.hpp"
#include "model/number_array.hpp"
#include "model/plan.hpp"

namespace cairn {

class ImageArrays {
  public:
    // Of an image that can be read once only nothing is known: its index is among what would be used up.
    ImageArrays(const LocalImage& image, Describers describers);
    // In the source's range, by offset in it; of several threads at once. None where the index is damaged: whoever restores hears of that. None, too, while another thread reads it, which
    // may not come back, and where it is longer than index_bytes_max.
    std::vector<NumberArray> in(const Source& source);
    // The same for who wants little of the image: other files than those that lie there are not described, and nothing is kept.
    std::vector<NumberArray> found_in(const Source& source);

    static constexpr std::uint64_t index_bytes_max = 4 << 20;  // some 60,000 regions: what reading them takes of memory is bounded

  private:
    enum class State : std::uint8_t { unread, reading, ready };

    std::vector<Region> regions() const;
    std::vector<Extent> extents(std::uint64_t begin, std::uint64_t end) const;
    std::vector<NumberArray> known_in(const Source& source) const;

    ImageInfo info_;
    Slice data_;
    std::string path_;
    std::uint64_t data_offset_;  // of the image in the slot's file
    Describers describers_;
    std::atomic<State> state_ = State::unread;
    std::vector<NumberArray> arrays_;  // of who reads, and then of all
};

}  // namespace cairn
