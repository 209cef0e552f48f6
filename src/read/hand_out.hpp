// HandOut: verified runs of images come in the order in which copies are read; those who want ranges of them get each byte of theirs once, whatever
// the order. A run costs a search, and at most another for each whom it touches, not a look at all who wait: an image may have a hundred thousand regions,
// and one of them may reach over all others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "copies/restore.hpp"

namespace cairn {

class HandOut {
  public:
    // `at`: in the range that was asked for. Not ok: the reading ends with it.
    using Receiver = std::function<Status(std::uint64_t at, Slice data)>;

    // Order: every add() comes before the first take(). Ranges may overlap. `what`: what the range is to a person, as "region grid".
    // `memory`: where all of the range may be read straight to (Receiving, copies/restore.hpp); the receiver puts what it is given there, too. Empty: it is given all.
    void add(Rank rank, ImageRange range, std::string what, Receiver receiver, Slice memory = {});
    Status take(Rank rank, std::uint64_t image_offset, const Slice& data);
    Receiving receiving();  // no longer than this lives

    // All that is to be read for them, by rank; of ranges of no bytes nothing.
    std::vector<WantedImage> wanted() const;
    // internal, naming what was asked for, where somebody has not got all its bytes.
    Status check_complete() const;

    std::uint64_t looked_at() const noexcept { return looked_at_; }  // receivers asked so far whether a run is theirs

  private:
    struct Waiting {
        ImageRange range;
        std::uint64_t ends_at_most = 0;  // no range of the tree below this one ends later
        std::uint64_t taken_bytes = 0;
        std::string what;
        Receiver receiver;
        Slice memory;
        std::uint64_t end() const { return range.offset + range.length; }
    };
    // Those with the places `first` to `last` are a tree: the one in the middle is above those before it and those behind it.
    struct Tree {
        std::vector<Waiting>& all;
        std::size_t first = 0, last = all.size();
        bool empty() const { return first == last; }
        Waiting& root() const { return all[middle()]; }
        Tree before() const { return {all, first, middle()}; }
        Tree behind() const { return {all, middle() + 1, last}; }
        std::size_t middle() const { return first + (last - first) / 2; }
    };
    void sort();
    static std::uint64_t note_ends(const Tree& tree);
    Slice memory_of(Rank rank, ImageRange unit);
    void note_landed(Rank rank, ImageRange run);
    template <class Visit>
    void visit(const Tree& tree, ImageRange run, const Visit& each);  // those that the run touches
    Status hand_out(const Tree& tree, std::uint64_t image_offset, const Slice& data);

    std::map<Rank, std::vector<Waiting>> by_rank_;  // once sorted, by offset
    bool sorted_ = true;
    std::uint64_t looked_at_ = 0;
};

}  // namespace cairn
