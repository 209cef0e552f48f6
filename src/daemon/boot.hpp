// Boot: whether this machine has started anew since scratch was last used. On a disk, pages that were written before a power loss are there
// or are not, each for itself: an image's state word may say sealed of data that never reached the disk. In memory (tmpfs) nothing is left.
#pragma once

#include <set>
#include <string>

#include "base/status.hpp"
#include "catalog/layout.hpp"
#include "copies/scratch.hpp"

namespace cairn {

struct Boot {
    std::string id;        // of the running kernel; empty: it does not say
    bool is_same = false;  // what scratch holds was written since
    bool noted = false;    // the note says so; else it is to be written
    std::string why;       // when it is not the same: for people
    std::set<std::string> doubtful;  // images of an earlier boot whose data were not looked at yet, as doubt_of has them

    // Blocks. `id_path`: another file for tests.
    static Boot look(const ScratchLayout& layout, const std::string& id_path = "/proc/sys/kernel/random/boot_id");
    // Whether it must prove itself. A file that could not be read: whether what it holds must, once it can be.
    bool doubts(const LocalImage& image) const;
    bool doubts_file(const std::string& path) const;
    // Writes `id` down in scratch: from here on all that is there counts as written since, but what is doubtful.
    Status note(const ScratchLayout& layout) const;
};

// Names the image, not only its slot: what is captured into that slot later is not in doubt.
std::string doubt_of(const LocalImage& image);
// The same of a file of which nobody knows what it holds: it could not be read.
std::string doubt_of_file(const std::string& path);

}  // namespace cairn
