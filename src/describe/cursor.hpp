// A place in bytes that are believed in nothing: reads on, and never past their end. What would lie there reads as zero and empty, and ok() is false from then on, so a
// format's reader asks once for many numbers.
#pragma once

#include <string_view>

#include "base/bytes.hpp"

namespace cairn {

class Cursor {
  public:
    explicit Cursor(ByteView bytes, std::uint64_t at = 0) : bytes_(bytes), at_(at), ok_(at <= bytes.size()) {}

    bool ok() const { return ok_; }
    std::uint64_t at() const { return at_; }
    std::uint64_t left() const { return ok_ ? bytes_.size() - at_ : 0; }

    ByteView take(std::uint64_t count) {
        if (!ok_ || count > bytes_.size() - at_) {
            ok_ = false;
            return {};
        }
        const ByteView taken = bytes_.subspan(at_, count);
        at_ += count;
        return taken;
    }
    void skip(std::uint64_t count) { take(count); }
    std::string_view text(std::uint64_t count) { return as_text(take(count)); }
    // Without the newline that ends it.
    std::string_view line() {
        const std::string_view rest = as_text(bytes_.subspan(ok_ ? at_ : bytes_.size()));
        const std::size_t end = rest.find('\n');
        if (end == std::string_view::npos) ok_ = false;
        else at_ += end + 1;
        return ok_ ? rest.substr(0, end) : std::string_view();
    }
    // Of 1 to 8 bytes.
    std::uint64_t little(unsigned width) {
        std::uint64_t number = 0;
        unsigned shift = 0;
        for (const std::byte byte : take(width)) number |= std::to_integer<std::uint64_t>(byte) << (8 * shift++);
        return number;
    }
    std::uint64_t big(unsigned width) {
        std::uint64_t number = 0;
        for (const std::byte byte : take(width)) number = number << 8 | std::to_integer<std::uint64_t>(byte);
        return number;
    }

  private:
    ByteView bytes_;
    std::uint64_t at_;
    bool ok_;
};

}  // namespace cairn
