// Numbers of 7 bits a byte, the lowest first, the top bit set where more follow.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace cairn::bench {

inline void put(Bytes& into, std::uint64_t number) {
    for (; number >= 128; number >>= 7) into.push_back(static_cast<std::byte>(number | 128));
    into.push_back(static_cast<std::byte>(number));
}

// Past the end, or of a number that has no end, it reads zeros and is not ok.
class Numbers {
  public:
    explicit Numbers(ByteView bytes) : bytes_(bytes) {}
    bool ok() const { return ok_; }
    bool at_end() const { return bytes_.empty(); }
    std::uint64_t next() {
        std::uint64_t number = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (bytes_.empty()) break;
            const auto byte = std::to_integer<std::uint64_t>(bytes_.front());
            bytes_ = bytes_.subspan(1);
            number |= (byte & 127) << shift;
            if (byte < 128) return number;
        }
        ok_ = false;
        return 0;
    }
    ByteView take(std::uint64_t count) {
        if (count > bytes_.size()) {
            ok_ = false;
            return {};
        }
        const ByteView taken = bytes_.first(count);
        bytes_ = bytes_.subspan(count);
        return taken;
    }

  private:
    ByteView bytes_;
    bool ok_ = true;
};

}  // namespace cairn::bench
