// Bounds of the format (FORMAT.md, "Limits"). A value outside them is corrupt when read; whoever writes asks check_*()
// first.
#pragma once

#include <cstdint>

namespace cairn {

inline constexpr std::uint32_t format_version = 2;  // of everything Cairn writes; readers of files know all versions up to this one

inline constexpr std::uint64_t block_bytes_min = 4096;  // block sizes are powers of two
inline constexpr std::uint64_t block_bytes_max = 1ull << 30;
inline constexpr std::uint64_t bytes_max = 1ull << 60;  // of an image, a part; leaves room for sums and rounding
inline constexpr std::uint32_t ranks_max = 1u << 24;
inline constexpr std::uint64_t part_units_max =
    1ull << 27;  // checksums in one footer: 1 GiB of the 2 GiB FlatBuffers allow
inline constexpr std::uint64_t encoded_run_bytes_max = 1ull << 30;      // raw, of a run with a codec: who reads any of it decodes all of it
inline constexpr std::uint64_t record_bytes_max = (1ull << 31) - 4096;  // of one FlatBuffers record
inline constexpr std::uint64_t roster_bytes_max = 1ull << 30;            // of one that is read
inline constexpr std::uint32_t name_bytes_max = 128;                    // checkpoint and node names
inline constexpr std::uint32_t region_name_bytes_max = 512;
inline constexpr std::uint32_t codec_text_bytes_max = 128;              // name and parameters, each
inline constexpr std::uint64_t prefix_bytes_max = 1ull << 30;            // of one part
inline constexpr std::uint32_t base_runs_max = 1u << 20;                 // of one part
inline constexpr std::uint32_t codecs_max = 1024;                       // of one part
inline constexpr std::uint32_t shape_dimensions_max = 32;
inline constexpr std::uint32_t described_arrays_max = 1000;             // of one region
inline constexpr std::uint32_t described_name_bytes_max = 255;
inline constexpr std::uint32_t address_bytes_max = 1024;
inline constexpr std::uint32_t root_bytes_max = 1024;
inline constexpr std::uint32_t target_name_bytes_max = 1024;
inline constexpr std::uint32_t roots_max = 256;            // of a job, besides persistent
inline constexpr std::uint64_t part_tables_bytes_max = 2ull << 30;  // of one manifest
inline constexpr std::uint32_t bases_max = 4096;           // older versions that one needs
inline constexpr std::uint32_t text_bytes_max = 4096;      // reasons in messages; longer ones are cut when sent
inline constexpr std::uint64_t epoch_max = 9'999'999'999;  // ten digits

}  // namespace cairn
