// What is known of the bytes of an image in scratch, for codecs. Its region index says what its regions are, and what the application said of those that Cairn can not see into. Of others rules
// say it, or the files themselves. The index, and each file, is read when something of it is first asked for, on the thread of whoever asks: the mapping is read then, and may not come back.
//
// File by file, since an image may have thousands: a flush would not begin to write before all of them were described, and a trial of 2 MiB needs a few.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
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
    // In the source's range, by offset in it; of several threads at once. None where the index is damaged: whoever restores hears of that. None, too, where it is longer than index_bytes_max, and
    // of what another thread reads and has not read within patience: it may not come back.
    std::vector<NumberArray> in(const Source& source);

    static constexpr std::uint64_t index_bytes_max = 4 << 20;  // some 60,000 regions: what reading them takes of memory is bounded

  private:
    // Read once, by whoever asks first.
    class Once {
      public:
        template <class Read>
        bool is_ready(Read read);  // reads it, or waits for who does

      private:
        enum class State : std::uint8_t { unread, reading, ready };
        std::mutex mutex_;
        std::condition_variable read_;
        State state_ = State::unread;
    };
    struct File {
        explicit File(Region r) : region(std::move(r)) {}
        Region region;
        Once once;
        std::vector<NumberArray> arrays;  // by offset in the image
    };

    void read_index();
    void describe(File& file);

    ImageInfo info_;
    Slice data_;
    std::string path_;
    std::uint64_t data_offset_;  // of the image in the slot's file
    Describers describers_;
    Once index_;
    std::vector<NumberArray> of_regions_;
    std::deque<File> files_;  // by offset
    std::atomic<int> late_ = 0;
    std::atomic<std::size_t> extents_ = 0;
};

}  // namespace cairn
