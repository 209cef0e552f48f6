// Packer, Unpacker: what ranks tell each other at collective calls, as bytes. All ranks run the same release (open
// checks it, by hands that only ever grow at their end: hand.hpp), so the format is nobody else's and has no versions;
// an Unpacker still believes no length it reads.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn {

class Packer {
  public:
    template <class T>
    requires std::is_arithmetic_v<T> Packer& number(T value) {
        const auto* from = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), from, from + sizeof value);
        return *this;
    }
    Packer& id(Id128 value) { return number(value.high).number(value.low); }
    Packer& run(ByteView value) {
        number<std::uint64_t>(value.size());
        bytes_.insert(bytes_.end(), value.begin(), value.end());
        return *this;
    }
    Packer& text(std::string_view value) { return run(as_bytes(value)); }
    Packer& status(const Status& value) { return number(static_cast<std::uint8_t>(value.code())).text(value.text()); }
    Bytes take() { return std::move(bytes_); }

  private:
    Bytes bytes_;
};

// Reading past the end gives zeros and ok() false from then on: read everything, then ask once.
class Unpacker {
  public:
    explicit Unpacker(ByteView bytes) : left_(bytes) {}

    template <class T>
    requires std::is_arithmetic_v<T> T number() {
        T value{};
        if (take(sizeof value)) std::memcpy(&value, taken_, sizeof value);
        return value;
    }
    Id128 id() {
        const auto high = number<std::uint64_t>();
        const auto low = number<std::uint64_t>();
        return {high, low};
    }
    ByteView run() {
        const auto length = number<std::uint64_t>();
        return take(length) ? ByteView(taken_, length) : ByteView{};
    }
    std::string text() { return std::string(as_text(run())); }
    Status status() {
        const auto code = number<std::uint8_t>();
        std::string words = text();
        return code == 0 ? Status() : Status(static_cast<Code>(code), std::move(words));
    }
    bool ok() const noexcept { return ok_; }
    bool at_end() const noexcept { return left_.empty(); }

  private:
    bool take(std::uint64_t length) {
        if (!ok_ || length > left_.size()) return ok_ = false;
        taken_ = left_.data();
        left_ = left_.subspan(length);
        return true;
    }
    ByteView left_;
    const std::byte* taken_ = nullptr;
    bool ok_ = true;
};

}  // namespace cairn
