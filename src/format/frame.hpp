// Frame: what every file and message but a part starts with, so that a foreign, cut or damaged one is told before its
// body is read.
//
//   0  magic            8 bytes, one for each kind
//   8  format version   u32
//  12  zero             u32
//  16  body length      u64
//  24  body checksum    u64, XXH3
//  32  header checksum  u64, XXH3 of bytes 0..31
//  40  body             FlatBuffers
//
// Little-endian. These 40 bytes stay in every later version of the format: a newer version is told from damage.
#pragma once

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn {

enum class FrameKind : std::uint8_t { manifest, image, roster, node, open, from, message, io_node, trees };
inline constexpr std::uint64_t frame_header_bytes = 40;

enum class FrameEnd : std::uint8_t { exact, more_may_follow };

// Header and body in one run.
Bytes frame(FrameKind kind, ByteView body);
// The body, copied out (the source may be a mapping that others write). corrupt, or unsupported with both versions
// named.
Result<Bytes> unframe(FrameKind kind, ByteView bytes, FrameEnd end = FrameEnd::exact);
// The format version of a frame that unframe() took: this Cairn's, or an older one.
std::uint32_t frame_version(ByteView bytes) noexcept;

// How long the frame of this kind is that a file of `file_bytes` begins with, of which `start` is there: all that its header tells, so that no more than that is read
// of what is none. ok is no promise: unframe() compares the checksum.
Result<std::uint64_t> frame_bytes(FrameKind kind, ByteView start, std::uint64_t file_bytes, FrameEnd end = FrameEnd::exact);

// Little-endian numbers at a place in a run of bytes.
void put_u32(std::byte* at, std::uint32_t value) noexcept;
void put_u64(std::byte* at, std::uint64_t value) noexcept;
std::uint32_t get_u32(const std::byte* at) noexcept;
std::uint64_t get_u64(const std::byte* at) noexcept;

// The text of both refusals, the same for frames and parts.
Status newer_format(std::uint32_t found);

}  // namespace cairn
