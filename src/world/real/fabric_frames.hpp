// Frames of the message stream: how a message is cut into fragments and put together again. Pure; the network feeds it.
//
// A fragment is a header of 40 bytes, little-endian, and data:
//   magic u32 | header bytes u32 | sender u64 | message u64 | total u64 | offset u64
// Fragments of one message arrive in order or not at all (the endpoint asks for send-after-send order); one that does
// not continue what is there drops its message. Every byte is treated as hostile: what is held is bounded by sender, by
// all senders and by time.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "world/clock.hpp"

namespace cairn {

inline constexpr std::size_t fabric_header_bytes = 40;
inline constexpr std::size_t fabric_fragment_bytes = 4096;  // header and data: within the eager limit asked of ofi_rxm
using FabricHeaderBytes = std::array<std::byte, fabric_header_bytes>;

struct FabricFragment {
    std::uint64_t sender = 0;   // drawn at random by each endpoint
    std::uint64_t message = 0;  // counted by the sender
    std::uint64_t total = 0;    // bytes of the message
    std::uint64_t offset = 0;   // of the data in it
    ByteView data;
};

FabricHeaderBytes encode_fabric_header(const FabricFragment& fragment);
// None: not a fragment, or one whose data does not lie within its message.
std::optional<FabricFragment> decode_fabric_fragment(ByteView bytes, std::uint64_t message_bytes_max);

class FabricReassembly {
  public:
    struct Limits {
        std::uint64_t sender_bytes = 0;
        std::uint64_t all_bytes = 0;
        Nanos wait = 0;
    };
    explicit FabricReassembly(Limits limits) : limits_(limits) {}

    // The whole message when the fragment was the last one of it.
    std::optional<Bytes> add(const FabricFragment& fragment, Nanos now);
    // Drops messages whose last fragment came longer than the limit ago.
    void expire(Nanos now);

    bool empty() const noexcept { return partial_.empty(); }
    std::uint64_t held_bytes() const noexcept { return held_bytes_; }
    std::uint64_t dropped() const noexcept { return dropped_; }

  private:
    struct Partial {
        Bytes bytes;
        std::uint64_t total = 0;
        Nanos touched = 0;
    };
    using Key = std::pair<std::uint64_t, std::uint64_t>;  // sender, message
    using Place = std::map<Key, Partial>::iterator;
    Place begin_message(const FabricFragment& fragment);
    Place forget(Place place);

    Limits limits_;
    std::map<Key, Partial> partial_;
    std::map<std::uint64_t, std::uint64_t> sender_bytes_;
    std::uint64_t held_bytes_ = 0;
    std::uint64_t dropped_ = 0;
};

}  // namespace cairn
