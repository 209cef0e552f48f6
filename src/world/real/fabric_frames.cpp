// Frames of the message stream. A message's whole size counts against the limits from its first fragment on, so that a
// message once begun can always be finished.
#include "world/real/fabric_frames.hpp"

#include <bit>

namespace cairn {

namespace {

static_assert(std::endian::native == std::endian::little, "the frame header is written as it lies in memory");

struct Header {
    std::uint32_t magic;
    std::uint32_t header_bytes;
    std::uint64_t sender, message, total, offset;
};
static_assert(sizeof(Header) == fabric_header_bytes);
constexpr std::uint32_t header_magic = 0x314d5243;  // "CRM1"

// What a half-received message costs: its bytes and the books kept on it, so that many tiny ones are bounded too.
std::uint64_t cost_of(std::uint64_t total) { return total + 256; }

}  // namespace

FabricHeaderBytes encode_fabric_header(const FabricFragment& fragment) {
    const Header header{header_magic,     fabric_header_bytes, fragment.sender,
                        fragment.message, fragment.total,      fragment.offset};
    FabricHeaderBytes bytes;
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

std::optional<FabricFragment> decode_fabric_fragment(ByteView bytes, std::uint64_t message_bytes_max) {
    Header header;
    if (bytes.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof header);
    const ByteView data = bytes.subspan(sizeof header);
    if (header.magic != header_magic || header.header_bytes != sizeof header) return std::nullopt;
    if (header.total > message_bytes_max || header.offset > header.total) return std::nullopt;
    if (data.size() > header.total - header.offset) return std::nullopt;
    if (data.empty() && header.total != 0) return std::nullopt;
    return FabricFragment{header.sender, header.message, header.total, header.offset, data};
}

std::optional<Bytes> FabricReassembly::add(const FabricFragment& fragment, Nanos now) {
    if (fragment.offset == 0 && fragment.data.size() == fragment.total)
        return Bytes(fragment.data.begin(), fragment.data.end());
    auto place = partial_.find({fragment.sender, fragment.message});
    if (place == partial_.end()) {
        if (fragment.offset != 0) return std::nullopt;  // its beginning was lost or refused, and counted then
        place = begin_message(fragment);
        if (place == partial_.end()) return std::nullopt;
    }
    Partial& partial = place->second;
    if (fragment.total != partial.total || fragment.offset != partial.bytes.size()) {
        ++dropped_;
        forget(place);
        return std::nullopt;
    }
    partial.bytes.insert(partial.bytes.end(), fragment.data.begin(), fragment.data.end());
    partial.touched = now;
    if (partial.bytes.size() < partial.total) return std::nullopt;
    Bytes whole = std::move(partial.bytes);
    forget(place);
    return whole;
}

FabricReassembly::Place FabricReassembly::begin_message(const FabricFragment& fragment) {
    std::uint64_t& of_sender = sender_bytes_[fragment.sender];
    const std::uint64_t cost = cost_of(fragment.total);
    if (of_sender + cost > limits_.sender_bytes || held_bytes_ + cost > limits_.all_bytes) {
        if (of_sender == 0) sender_bytes_.erase(fragment.sender);
        ++dropped_;
        return partial_.end();
    }
    of_sender += cost;
    held_bytes_ += cost;
    const auto place = partial_.try_emplace(Key{fragment.sender, fragment.message}).first;
    place->second.total = fragment.total;
    place->second.bytes.reserve(fragment.total);
    return place;
}

FabricReassembly::Place FabricReassembly::forget(Place place) {
    const std::uint64_t cost = cost_of(place->second.total);
    const auto of_sender = sender_bytes_.find(place->first.first);
    if ((of_sender->second -= cost) == 0) sender_bytes_.erase(of_sender);
    held_bytes_ -= cost;
    return partial_.erase(place);
}

void FabricReassembly::expire(Nanos now) {
    for (auto place = partial_.begin(); place != partial_.end();) {
        if (now - place->second.touched < limits_.wait) {
            ++place;
        } else {
            ++dropped_;
            place = forget(place);
        }
    }
}

}  // namespace cairn
