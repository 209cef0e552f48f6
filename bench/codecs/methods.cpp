#include "methods.hpp"

#include <zstd.h>

#include <array>
#include <bit>
#include <climits>
#include <cstring>

#include "base/checksum.hpp"
#include "codecs/fpc.hpp"
#include "codecs/varint.hpp"
#ifdef CAIRN_BENCH_ZLIB
#include <zlib.h>
#endif
#ifdef CAIRN_BENCH_LZ4
#include <lz4.h>
#endif
#ifdef CAIRN_BENCH_FPZIP
#include <fpzip.h>
#endif

namespace cairn::bench {

namespace {

#ifdef CAIRN_BENCH_ZLIB
constexpr const char* zlib_lacks = nullptr;
bool encode_gzip(ByteView raw, Bytes& into) {
    z_stream stream = {};
    if (::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return false;
    const std::size_t begin = into.size();
    into.resize(begin + ::deflateBound(&stream, raw.size()));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(raw.data()));
    stream.avail_in = static_cast<uInt>(raw.size());
    stream.next_out = reinterpret_cast<Bytef*>(into.data() + begin);
    stream.avail_out = static_cast<uInt>(into.size() - begin);
    const bool is_done = ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
    into.resize(begin + stream.total_out);
    ::deflateEnd(&stream);
    return is_done;
}
bool decode_gzip(ByteView stored, std::span<std::byte> into) {
    z_stream stream = {};
    if (::inflateInit2(&stream, 15 + 16) != Z_OK) return false;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data()));
    stream.avail_in = static_cast<uInt>(stored.size());
    stream.next_out = reinterpret_cast<Bytef*>(into.data());
    stream.avail_out = static_cast<uInt>(into.size());
    const bool is_done = ::inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == into.size();
    ::inflateEnd(&stream);
    return is_done;
}
#else
constexpr const char* zlib_lacks = "zlib";
bool encode_gzip(ByteView, Bytes&) { return false; }
bool decode_gzip(ByteView, std::span<std::byte>) { return false; }
#endif

#ifdef CAIRN_BENCH_LZ4
constexpr const char* lz4_lacks = nullptr;
bool encode_lz4(ByteView raw, Bytes& into) {
    const std::size_t begin = into.size();
    into.resize(begin + static_cast<std::size_t>(::LZ4_compressBound(static_cast<int>(raw.size()))));
    const int bytes = ::LZ4_compress_default(reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(into.data() + begin), static_cast<int>(raw.size()), static_cast<int>(into.size() - begin));
    into.resize(begin + static_cast<std::size_t>(bytes));
    return bytes > 0;
}
bool decode_lz4(ByteView stored, std::span<std::byte> into) {
    return ::LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(into.data()), static_cast<int>(stored.size()), static_cast<int>(into.size())) ==
           static_cast<int>(into.size());
}
#else
constexpr const char* lz4_lacks = "liblz4";
bool encode_lz4(ByteView, Bytes&) { return false; }
bool decode_lz4(ByteView, std::span<std::byte>) { return false; }
#endif

bool encode_zstd(ByteView raw, Bytes& into) {
    const std::size_t begin = into.size();
    into.resize(begin + ::ZSTD_compressBound(raw.size()));
    const std::size_t bytes = ::ZSTD_compress(into.data() + begin, into.size() - begin, raw.data(), raw.size(), 1);
    if (::ZSTD_isError(bytes)) return false;
    into.resize(begin + bytes);
    return true;
}
bool decode_zstd(ByteView stored, std::span<std::byte> into) { return ::ZSTD_decompress(into.data(), into.size(), stored.data(), stored.size()) == into.size(); }

#ifdef CAIRN_BENCH_FPZIP
constexpr const char* fpzip_lacks = nullptr;
constexpr std::uint64_t axis_max = INT_MAX / 2;

bool encode_grid(const std::byte* raw, bool is_double, const Grid& grid, Bytes& into) {
    const std::uint64_t width = is_double ? 8 : 4;
    Bytes stored(grid.count() * width * 5 / 4 + 4096);
    FPZ* fpz = ::fpzip_write_to_buffer(stored.data(), stored.size());
    if (fpz == nullptr) return false;
    fpz->type = is_double ? FPZIP_TYPE_DOUBLE : FPZIP_TYPE_FLOAT;
    fpz->prec = 0;  // all bits
    fpz->nx = static_cast<int>(grid.x);
    fpz->ny = static_cast<int>(grid.y);
    fpz->nz = static_cast<int>(grid.z);
    fpz->nf = static_cast<int>(grid.fields);
    const std::size_t bytes = ::fpzip_write_header(fpz) ? ::fpzip_write(fpz, raw) : 0;
    ::fpzip_write_close(fpz);
    put(into, bytes);
    into.insert(into.end(), stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(bytes));
    return bytes > 0;
}

// The library takes no damaged bytes: it reads and writes where it should not. So a checksum stands before them.
constexpr std::size_t sum_bytes = 8;
std::array<std::byte, sum_bytes> sum_of(ByteView bytes) { return std::bit_cast<std::array<std::byte, sum_bytes>>(checksum(bytes)); }

// A checksum; how many grids; of each its bytes, which begin with its shape. Bytes that are no whole number stand behind them.
bool encode_fpzip(const StreamView& stream, const std::vector<Grid>& grids, Bytes& into) {
    const std::size_t begin = into.size();
    into.resize(begin + sum_bytes);
    const bool is_double = stream.type == DataType::f64;
    const std::uint64_t width = is_double ? 8 : 4;
    put(into, grids.size());
    std::uint64_t at = 0;
    for (const Grid& grid : grids) {
        if (grid.x > axis_max || grid.y > axis_max || grid.z > axis_max || grid.count() * width > stream.bytes.size() - at || !encode_grid(stream.bytes.data() + at, is_double, grid, into)) return false;
        at += grid.count() * width;
    }
    into.insert(into.end(), stream.bytes.begin() + static_cast<std::ptrdiff_t>(at), stream.bytes.end());
    std::memcpy(into.data() + begin, sum_of(ByteView(into).subspan(begin + sum_bytes)).data(), sum_bytes);
    return true;
}
std::vector<Grid> line_of(const StreamView& stream) {
    const std::uint64_t count = stream.bytes.size() / (stream.type == DataType::f64 ? 8 : 4);
    return count == 0 ? std::vector<Grid>() : std::vector<Grid>{Grid{count}};
}

// 0: more than there may be, or no shape at all.
std::uint64_t bytes_of(const FPZ& fpz, std::uint64_t bytes_max) {
    if (fpz.prec != 0) return 0;
    std::uint64_t bytes = fpz.type == FPZIP_TYPE_DOUBLE ? 8 : 4;
    for (const int axis : {fpz.nx, fpz.ny, fpz.nz, fpz.nf}) {
        if (axis <= 0 || static_cast<std::uint64_t>(axis) > bytes_max / bytes) return 0;
        bytes *= static_cast<std::uint64_t>(axis);
    }
    return bytes;
}

bool decode_fpzip(ByteView stored, std::span<std::byte> into) {
    if (stored.size() < sum_bytes || std::memcmp(stored.data(), sum_of(stored.subspan(sum_bytes)).data(), sum_bytes) != 0) return false;
    stored = stored.subspan(sum_bytes);
    Numbers numbers(stored);
    std::uint64_t at = 0;
    for (std::uint64_t grids = numbers.next(); grids > 0; --grids) {
        const std::uint64_t bytes = numbers.next();
        const ByteView taken = numbers.take(bytes);
        if (!numbers.ok() || taken.empty()) return false;
        FPZ* fpz = ::fpzip_read_from_buffer(taken.data());
        if (fpz == nullptr) return false;
        const std::uint64_t raw = ::fpzip_read_header(fpz) != 0 ? bytes_of(*fpz, into.size() - at) : 0;
        const bool is_read = raw != 0 && ::fpzip_read(fpz, into.data() + at) != 0;
        ::fpzip_read_close(fpz);
        if (!is_read) return false;
        at += raw;
    }
    const std::uint64_t rest = into.size() - at;
    const ByteView tail = numbers.take(rest);
    if (!numbers.ok() || !numbers.at_end()) return false;
    std::memcpy(into.data() + at, tail.data(), rest);
    return true;
}
#else
constexpr const char* fpzip_lacks = "libfpzip";
bool encode_fpzip(const StreamView&, const std::vector<Grid>&, Bytes&) { return false; }
std::vector<Grid> line_of(const StreamView&) { return {}; }
bool decode_fpzip(ByteView, std::span<std::byte>) { return false; }
#endif

// Bytes of one significance together. What is no whole number stands at the end.
void shuffle(ByteView raw, std::size_t width, std::byte* to) {
    const std::size_t count = raw.size() / width;
    for (std::size_t b = 0; b < width; ++b)
        for (std::size_t i = 0; i < count; ++i) to[b * count + i] = raw[i * width + b];
    std::memcpy(to + count * width, raw.data() + count * width, raw.size() % width);
}
void unshuffle(ByteView from, std::size_t width, std::byte* to) {
    const std::size_t count = from.size() / width;
    for (std::size_t b = 0; b < width; ++b)
        for (std::size_t i = 0; i < count; ++i) to[i * width + b] = from[b * count + i];
    std::memcpy(to + count * width, from.data() + count * width, from.size() % width);
}

// Bit patterns as integers, each less the one before, the sign in the lowest bit.
template <class Word>
void difference(std::span<std::byte> bytes) {
    Word last = 0;
    for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
        Word value;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        const Word step = static_cast<Word>(value - last);
        last = value;
        value = static_cast<Word>(static_cast<Word>(step << 1) ^ static_cast<Word>(0 - (step >> (8 * sizeof(Word) - 1))));
        std::memcpy(bytes.data() + at, &value, sizeof value);
    }
}
template <class Word>
void sum(std::span<std::byte> bytes) {
    Word last = 0;
    for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
        Word value;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        last = static_cast<Word>(last + static_cast<Word>((value >> 1) ^ static_cast<Word>(0 - (value & 1))));
        std::memcpy(bytes.data() + at, &last, sizeof last);
    }
}
void difference(std::span<std::byte> bytes, std::size_t width) {
    if (width == 8) difference<std::uint64_t>(bytes);
    if (width == 4) difference<std::uint32_t>(bytes);
    if (width == 2) difference<std::uint16_t>(bytes);
}
void sum(std::span<std::byte> bytes, std::size_t width) {
    if (width == 8) sum<std::uint64_t>(bytes);
    if (width == 4) sum<std::uint32_t>(bytes);
    if (width == 2) sum<std::uint16_t>(bytes);
}

// Of files that nobody described 8, as Blosc takes where it is told nothing; of what is described and is no number 1.
std::size_t width_of(const StreamView& stream) {
    const std::uint64_t width = type_bytes(stream.type);
    if (stream.type == DataType::bytes) return stream.is_whole_files ? 8 : 1;
    return width == 16 || stream.type == DataType::c64 ? width / 2 : width;
}

// One byte: the width.
bool encode_shuffled(const StreamView& stream, bool is_difference, bool is_lz4, Bytes& into) {
    const std::size_t width = width_of(stream);
    into.push_back(static_cast<std::byte>(width));
    if (width == 1) return is_lz4 ? encode_lz4(stream.bytes, into) : encode_zstd(stream.bytes, into);
    Bytes planes(stream.bytes.size());
    if (is_difference) {
        Bytes steps(stream.bytes.begin(), stream.bytes.end());
        difference(steps, width);
        shuffle(steps, width, planes.data());
    } else {
        shuffle(stream.bytes, width, planes.data());
    }
    return is_lz4 ? encode_lz4(planes, into) : encode_zstd(planes, into);
}
bool decode_shuffled(ByteView stored, bool is_difference, bool is_lz4, std::span<std::byte> into) {
    if (stored.empty()) return false;
    const auto width = std::to_integer<std::size_t>(stored[0]);
    stored = stored.subspan(1);
    if (width == 1) return is_lz4 ? decode_lz4(stored, into) : decode_zstd(stored, into);
    if (width != 2 && width != 4 && width != 8) return false;
    Bytes planes(into.size());
    if (!(is_lz4 ? decode_lz4(stored, planes) : decode_zstd(stored, planes))) return false;
    unshuffle(planes, width, into.data());
    if (is_difference) sum(into, width);
    return true;
}

}  // namespace

const char* lacks(Method method) {
    switch (method) {
        case Method::gzip: return zlib_lacks;
        case Method::lz4:
        case Method::shuffle_lz4: return lz4_lacks;
        case Method::fpzip_line:
        case Method::fpzip_shape: return fpzip_lacks;
        default: return nullptr;
    }
}

bool encode(Method method, const StreamView& stream, Bytes& into) {
    switch (method) {
        case Method::raw: into.insert(into.end(), stream.bytes.begin(), stream.bytes.end()); return true;
        case Method::gzip: return encode_gzip(stream.bytes, into);
        case Method::lz4: return encode_lz4(stream.bytes, into);
        case Method::zstd: return encode_zstd(stream.bytes, into);
        case Method::fpc_2: encode_fpc(stream.bytes, 2, into); return true;
        case Method::fpc_16: encode_fpc(stream.bytes, 16, into); return true;
        case Method::fpzip_line: return encode_fpzip(stream, line_of(stream), into);
        case Method::fpzip_shape: return encode_fpzip(stream, stream.grids, into);
        case Method::shuffle_lz4: return encode_shuffled(stream, false, true, into);
        case Method::shuffle_zstd: return encode_shuffled(stream, false, false, into);
        case Method::difference_shuffle_zstd: return encode_shuffled(stream, true, false, into);
    }
    return false;
}

bool decode(Method method, ByteView stored, std::span<std::byte> into) {
    switch (method) {
        case Method::raw:
            if (stored.size() != into.size()) return false;
            if (!stored.empty()) std::memcpy(into.data(), stored.data(), stored.size());
            return true;
        case Method::gzip: return decode_gzip(stored, into);
        case Method::lz4: return decode_lz4(stored, into);
        case Method::zstd: return decode_zstd(stored, into);
        case Method::fpc_2:
        case Method::fpc_16: return decode_fpc(stored, into);
        case Method::fpzip_line:
        case Method::fpzip_shape: return decode_fpzip(stored, into);
        case Method::shuffle_lz4: return decode_shuffled(stored, false, true, into);
        case Method::shuffle_zstd: return decode_shuffled(stored, false, false, into);
        case Method::difference_shuffle_zstd: return decode_shuffled(stored, true, false, into);
    }
    return false;
}

Bytes gzip_6(ByteView raw) {
    Bytes stored;
    encode_gzip(raw, stored);
    return stored;
}
bool gunzip(ByteView stored, Bytes& raw) { return decode_gzip(stored, raw); }

}  // namespace cairn::bench
