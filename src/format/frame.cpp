// Frames, and the little-endian numbers they are made of.
#include "format/frame.hpp"

#include <array>

#include "base/checksum.hpp"
#include "format/limits.hpp"

namespace cairn {

namespace {

struct KindRow {
    std::string_view magic;  // 8 bytes
    const char* called;
};
constexpr KindRow kinds[] = {{"CAIRNman", "manifest"},    {"CAIRNimg", "image header"}, {"CAIRNros", "roster"},
                             {"CAIRNnod", "node record"}, {"CAIRNopn", "open record"},  {"CAIRNfrm", "from record"},
                             {"CAIRNmsg", "message"},     {"CAIRNion", "I/O node record"}, {"CAIRNtre", "tree index"}};
const KindRow& row(FrameKind kind) { return kinds[static_cast<std::size_t>(kind)]; }

template <class Number>
void put(std::byte* at, Number value) noexcept {
    for (std::size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}
template <class Number>
Number get(const std::byte* at) noexcept {
    Number value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i)
        value |= static_cast<Number>(std::to_integer<Number>(at[i]) << (8 * i));
    return value;
}

}  // namespace

void put_u32(std::byte* at, std::uint32_t value) noexcept { put(at, value); }
void put_u64(std::byte* at, std::uint64_t value) noexcept { put(at, value); }
std::uint32_t get_u32(const std::byte* at) noexcept { return get<std::uint32_t>(at); }
std::uint64_t get_u64(const std::byte* at) noexcept { return get<std::uint64_t>(at); }

Status newer_format(std::uint32_t found) {
    return {Code::unsupported, "format version " + std::to_string(found) + " found, this Cairn knows up to " +
                                   std::to_string(format_version) + ": read it with a newer Cairn"};
}

Bytes frame(FrameKind kind, ByteView body) {
    Bytes bytes(frame_header_bytes + body.size());
    std::byte* at = bytes.data();
    std::memcpy(at, row(kind).magic.data(), 8);
    put_u32(at + 8, format_version);
    put_u64(at + 16, body.size());
    put_u64(at + 24, checksum(body));
    put_u64(at + 32, checksum(ByteView(at, 32)));
    if (!body.empty()) std::memcpy(at + frame_header_bytes, body.data(), body.size());
    return bytes;
}

namespace {

using Header = std::array<std::byte, frame_header_bytes>;

// Of a frame in a file of `file_bytes`. The body's length, or why it is none.
Result<std::uint64_t> body_length(FrameKind kind, ByteView bytes, std::uint64_t file_bytes, FrameEnd end, Header& header) {
    const std::string called = row(kind).called;
    if (bytes.size() < frame_header_bytes)
        return corrupt(called + ": cut short: " + std::to_string(bytes.size()) + " bytes, fewer than its header");
    std::memcpy(header.data(), bytes.data(), header.size());
    if (as_text(ByteView(header).first(8)) != row(kind).magic)
        return corrupt(called + ": these bytes are not one of Cairn's");
    if (get_u64(&header[32]) != checksum(ByteView(header).first(32)))
        return corrupt(called + ": its header is damaged");
    const std::uint32_t version = get_u32(&header[8]);
    if (version > format_version) return newer_format(version).within(called);
    if (version == 0 || get_u32(&header[12]) != 0) return corrupt(called + ": its header has impossible fields");
    const std::uint64_t length = get_u64(&header[16]), room = file_bytes - frame_header_bytes;
    if (length > room)
        return corrupt(called + ": cut short: " + std::to_string(room) + " of " + std::to_string(length) +
                       " bytes are there");
    if (end == FrameEnd::exact && length != room) return corrupt(called + ": more bytes than its header says");
    return length;
}

}  // namespace

Result<std::uint64_t> frame_bytes(FrameKind kind, ByteView start, std::uint64_t file_bytes, FrameEnd end) {
    Header header;
    TRY_ASSIGN(const std::uint64_t length, body_length(kind, start, file_bytes, end, header));
    return frame_header_bytes + length;
}

std::uint32_t frame_version(ByteView bytes) noexcept { return get_u32(&bytes[8]); }

Result<Bytes> unframe(FrameKind kind, ByteView bytes, FrameEnd end) {
    Header header;
    TRY_ASSIGN(const std::uint64_t length, body_length(kind, bytes, bytes.size(), end, header));
    const ByteView view = bytes.subspan(frame_header_bytes, length);
    Bytes body(view.begin(), view.end());
    if (get_u64(&header[24]) != checksum(body)) return corrupt(std::string(row(kind).called) + ": its checksum does not match its bytes");
    return body;
}

}  // namespace cairn
