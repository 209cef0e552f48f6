// What records have in common and must hold, each check naming what it found. corrupt throughout: whoever writes a
// record has asked the user-facing checks before (names.hpp).
#pragma once

#include <sstream>

#include "format/limits.hpp"
#include "format/names.hpp"
#include "model/key_efforts.hpp"
#include "model/types.hpp"

namespace cairn::check {

template <class... Pieces>
Status refuse(const Pieces&... pieces) {
    std::ostringstream text;
    (text << ... << pieces);
    return corrupt(text.str());
}

inline bool block_bytes_valid(std::uint64_t block_bytes) noexcept {
    return block_bytes >= block_bytes_min && block_bytes <= block_bytes_max && (block_bytes & (block_bytes - 1)) == 0;
}
Status block_bytes(std::uint64_t bytes);
Status ranks(std::uint32_t count);
Status key(const VersionKey& key);
Status parent(const Parent& parent);
Status region(const Region& region, std::uint64_t data_bytes);  // of an image with so many bytes before its region index
bool can_be(const DescribedArray& array);                       // what can not be is left out, and its region is none the worse
Status image(const ImageInfo& image);                            // its regions, too
Status part_info(const PartInfo& part);
Status efforts(const KeyEfforts& keys);
Status roots(const std::vector<std::string>& roots);
Status increasing(const std::vector<Rank>& ranks, std::uint32_t ranks_total);
// Bytes that the records of these take at most, encoded.
std::uint64_t encoded_bytes(const Region& region);
std::uint64_t encoded_bytes(const std::vector<ImageInfo>& images);

}  // namespace cairn::check
