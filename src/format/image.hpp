// An image slot in scratch: a page of state words, the header, the table of checksums and cuts, the image's bytes.
//
// Order (rule 4): the client invalidates a slot before it changes anything in it and seals it after everything else;
// the daemon sets `checksummed` and the proof after it filled the table. The words are written with release and read with acquire.
#pragma once

#include <atomic>
#include <bit>

#include "base/status.hpp"
#include "format/names.hpp"
#include "model/types.hpp"

namespace cairn {

inline constexpr std::uint64_t image_state_offset = 0;                       // u64: 0, or image_sealed_word
inline constexpr std::uint64_t image_checksummed_offset = 8;                 // u64: 0, or image_checksummed_word
inline constexpr std::uint64_t image_proof_offset = 16;                      // u64: image_proof(), or 0 in images of older releases
inline constexpr std::uint64_t image_header_offset = 4096;                   // the encoded header
inline constexpr std::uint64_t image_sealed_word = 0x444C4145534E5243;       // "CRNSEALD" in memory order
inline constexpr std::uint64_t image_checksummed_word = 0x444D5553434E5243;  // "CRNCSUMD"

struct ImageLayout {
    std::uint64_t checksums_offset = 0;  // 64-aligned
    std::uint64_t data_offset = 0;       // page-aligned
    std::uint64_t file_bytes = 0;        // whole pages: direct I/O may read past the last byte up to here
    bool operator==(const ImageLayout&) const = default;
};
// `header_encoded_bytes`: the size of what encode_image_header gave, which does not depend on the two offsets in it.
ImageLayout image_layout(std::uint64_t header_encoded_bytes, const ImageInfo& image, std::uint64_t block_bytes);

// Behind the header: a u64 for each checksum unit, and then one for each cut.
std::uint64_t image_units(const ImageHeader& header);
std::uint64_t image_table_bytes(const ImageHeader& header);
Bytes image_table(const ImageHeader& header, const std::vector<std::uint64_t>& checksums);
// corrupt where the cuts, which stand in the table, are none of this image.
Status check_cuts(const ImageHeader& header);

// Without `checksummed`, which is a word of its own, and `cuts`, which stand in the table: decoding leaves them empty.
Status check_image_header(const ImageHeader& header);
Bytes encode_image_header(const ImageHeader& header);
// `bytes` starts at image_header_offset and may go on behind the header (to the end of the mapping).
Result<ImageHeader> decode_image_header(ByteView bytes);
// Whether table and data lie within a slot file of so many bytes; ask before touching either.
Status check_image_fits(const ImageHeader& header, std::uint64_t file_bytes);

// Binds a checksum table to its image: a machine that lost power may have written any of a slot's pages and not the others, and what an
// earlier image left in them is whole, too, table and data alike. `table`: all of it, checksums and cuts.
std::uint64_t image_proof(const ImageHeader& header, ByteView table);

namespace detail {
static_assert(std::endian::native == std::endian::little, "state words are little-endian and atomic");
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);
inline std::uint64_t load_word(const std::byte* base, std::uint64_t offset) noexcept {
    // atomic_ref of a const type comes with C++26
    auto* word = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(base + offset));
    return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}
inline void store_word(std::byte* base, std::uint64_t offset, std::uint64_t value) noexcept {
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(base + offset))
        .store(value, std::memory_order_release);
}
}  // namespace detail

// On a mapped slot; `base` is page-aligned and at least image_header_offset long.
inline void image_set_invalid(std::byte* base) noexcept {
    detail::store_word(base, image_state_offset, 0);
    detail::store_word(base, image_checksummed_offset, 0);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // before any later store to the slot
}
inline void image_seal(std::byte* base) noexcept { detail::store_word(base, image_state_offset, image_sealed_word); }
inline bool image_is_sealed(const std::byte* base) noexcept {
    return detail::load_word(base, image_state_offset) == image_sealed_word;
}
inline void image_set_checksummed(std::byte* base, std::uint64_t proof) noexcept {
    detail::store_word(base, image_proof_offset, proof);
    detail::store_word(base, image_checksummed_offset, image_checksummed_word);
}
inline bool image_is_checksummed(const std::byte* base) noexcept {
    return detail::load_word(base, image_checksummed_offset) == image_checksummed_word;
}

}  // namespace cairn
