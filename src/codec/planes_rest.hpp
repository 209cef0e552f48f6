// What is left of a run when its arrays are taken out: end to end for who encodes it, and the places that it goes to for who decodes it.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "codec/planes_layout.hpp"
#include "codec/prediction.hpp"

namespace cairn {

// From a place in it on.
class Rest {
  public:
    void add(const Original& piece) {
        if (!piece.raw.empty()) pieces_.push_back(piece);
    }
    bool at_end() const { return at_ == pieces_.size(); }
    // As many bytes as a stretch has, or all there are: where they lie, or where they lie in several places, gathered.
    Original ahead(std::byte* gathered, std::byte* base) const {
        const Original first = pieces_[at_].part(used_, pieces_[at_].raw.size() - used_);
        if (first.raw.size() >= stretch_bytes || at_ + 1 == pieces_.size()) return first.part(0, std::min(first.raw.size(), stretch_bytes));
        std::size_t length = 0;
        for (std::size_t i = at_; i < pieces_.size() && length < stretch_bytes; ++i) {
            const Original& from = i == at_ ? first : pieces_[i];
            const std::size_t some = std::min(from.raw.size(), stretch_bytes - length);
            std::copy_n(from.raw.begin(), some, gathered + length);
            if (!from.base.empty()) std::copy_n(from.base.begin(), some, base + length);
            length += some;
        }
        return {{gathered, length}, first.base.empty() ? ByteView() : ByteView(base, length)};
    }
    void skip(std::size_t length) {
        while (length > 0) {
            const std::size_t some = std::min(length, pieces_[at_].raw.size() - used_);
            used_ += some;
            length -= some;
            if (used_ == pieces_[at_].raw.size()) ++at_, used_ = 0;
        }
    }

  private:
    std::vector<Original> pieces_;
    std::size_t at_ = 0, used_ = 0;
};

// The places between the arrays, in their order: where the rest goes.
struct Gaps {
    std::span<const RunPiece> pieces;
    std::span<std::byte> run;
    std::size_t at = 0;
    // All of the next one; empty: there is none any more.
    std::span<std::byte> next() {
        while (at < run.size()) {
            const std::size_t begin = at, end = pieces.empty() ? run.size() : pieces.front().offset;
            at = end;
            if (!pieces.empty()) {
                at += pieces.front().length;
                pieces = pieces.subspan(1);
            }
            if (begin < end) return run.subspan(begin, end - begin);
        }
        return {};
    }
};

}  // namespace cairn
