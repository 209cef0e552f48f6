#include "pipelines.hpp"

#include <algorithm>
#include <numeric>

#include "codecs/varint.hpp"

namespace cairn::bench {

namespace {

constexpr std::size_t run_bytes = 1 << 20;  // as chunks of an image are

using M = Method;
// LZ4 stands where the paper has QuickLZ, which Debian does not have.
constexpr Pipeline table[] = {
    {"gzip", M::gzip, M::gzip, M::gzip, M::gzip, true},
    {"mcrengine", M::fpc_2, M::fpzip_line, M::lz4, M::gzip, true},
    {"mcrengine, FPC 2^16", M::fpc_16, M::fpzip_line, M::lz4, M::gzip, true},
    {"fpzip 1-D", M::fpzip_line, M::fpzip_line, M::lz4, M::gzip, true},
    {"fpzip, true shape", M::fpzip_shape, M::fpzip_shape, M::zstd, M::zstd},
    {"zstd-1", M::zstd, M::zstd, M::zstd, M::zstd},
    {"shuffle, LZ4", M::shuffle_lz4, M::shuffle_lz4, M::shuffle_lz4, M::shuffle_lz4},
    {"shuffle, zstd-1", M::shuffle_zstd, M::shuffle_zstd, M::shuffle_zstd, M::shuffle_zstd},
    {"difference, shuffle, zstd-1", M::difference_shuffle_zstd, M::difference_shuffle_zstd, M::difference_shuffle_zstd, M::difference_shuffle_zstd},
    {"Cairn zero-runs", M::raw, M::raw, M::raw, M::raw, false, Codec::zero_runs, false},
    {"Cairn delta-shuffle-zstd", M::raw, M::raw, M::raw, M::raw, false, Codec::numbers, false},
    {"Cairn predict-planes-zstd, told nothing", M::raw, M::raw, M::raw, M::raw, false, Codec::planes, false},
    {"Cairn predict-planes-zstd", M::raw, M::raw, M::raw, M::raw, false, Codec::planes, true},
};

Method method_for(const Pipeline& pipeline, const StreamView& stream, const Options& options) {
    if (stream.bytes.empty()) return Method::raw;
    if (stream.is_whole_files) return pipeline.whole_files;
    if (pipeline.is_reference && pipeline.doubles != Method::gzip && stream.largest_array < options.variable_bytes_min) return Method::raw;
    if (stream.type == DataType::f64) return pipeline.doubles;
    return stream.type == DataType::f32 ? pipeline.floats : pipeline.others;
}

// Of each stream: the method, how many bytes, the bytes.
std::optional<Bytes> encode_streams(const Pipeline& pipeline, const Merged& merged, const Options& options) {
    Bytes stored, one;
    stored.reserve(merged.bytes.size() + merged.bytes.size() / 8 + 4096);
    for (const StreamView& stream : merged.streams) {
        Method method = method_for(pipeline, stream, options);
        one.clear();
        if (!encode(method, stream, one)) return std::nullopt;
        if (!pipeline.is_reference && one.size() >= stream.bytes.size()) {
            method = Method::raw;
            one.assign(stream.bytes.begin(), stream.bytes.end());
        }
        put(stored, static_cast<std::uint64_t>(method));
        put(stored, one.size());
        stored.insert(stored.end(), one.begin(), one.end());
    }
    return stored;
}
bool decode_streams(ByteView stored, std::span<const std::uint64_t> stream_bytes, std::span<std::byte> into) {
    Numbers numbers(stored);
    std::uint64_t at = 0;
    for (const std::uint64_t bytes : stream_bytes) {
        const std::uint64_t method = numbers.next(), length = numbers.next();
        const ByteView one = numbers.take(length);
        if (!numbers.ok() || method >= method_count || bytes > into.size() - at || !decode(static_cast<Method>(method), one, into.subspan(at, bytes))) return false;
        at += bytes;
    }
    return numbers.at_end() && at == into.size();
}

// Of each run: how many bytes it was encoded to, 0 where it stands as it is; the bytes.
std::optional<Bytes> encode_runs(const Pipeline& pipeline, const Merged& merged) {
    Bytes stored, one;
    stored.reserve(merged.bytes.size() + 4096);
    for (std::size_t at = 0; at < merged.bytes.size(); at += run_bytes) {
        const ByteView run = merged.bytes.subspan(at, std::min(run_bytes, merged.bytes.size() - at));
        one.resize(run.size() - run.size() / 16);
        const std::uint64_t bytes = encode(pipeline.codec, run, pipeline.is_told ? within(merged.arrays, at, run.size()) : std::vector<NumberArray>(), one);
        put(stored, bytes);
        const ByteView taken = bytes == 0 ? run : ByteView(one).first(bytes);
        stored.insert(stored.end(), taken.begin(), taken.end());
    }
    return stored;
}
bool decode_runs(const Pipeline& pipeline, ByteView stored, std::span<std::byte> into) {
    Numbers numbers(stored);
    for (std::size_t at = 0; at < into.size(); at += run_bytes) {
        const std::span<std::byte> run = into.subspan(at, std::min(run_bytes, into.size() - at));
        const std::uint64_t bytes = numbers.next();
        const ByteView one = numbers.take(bytes == 0 ? run.size() : bytes);
        if (!numbers.ok()) return false;
        if (bytes == 0) std::copy(one.begin(), one.end(), run.begin());
        else if (!decode(pipeline.codec, one, run).ok()) return false;
    }
    return numbers.at_end();
}

}  // namespace

std::span<const Pipeline> pipelines() { return table; }

const char* lacks(const Pipeline& pipeline) {
    for (const Method method : {pipeline.doubles, pipeline.floats, pipeline.others, pipeline.whole_files})
        if (const char* library = lacks(method)) return library;
    return nullptr;
}

std::optional<Bytes> encode(const Pipeline& pipeline, const Merged& merged, const Options& options) {
    return pipeline.codec == Codec::none ? encode_streams(pipeline, merged, options) : encode_runs(pipeline, merged);
}

bool decode(const Pipeline& pipeline, ByteView stored, std::span<const std::uint64_t> stream_bytes, std::span<std::byte> into) {
    if (std::accumulate(stream_bytes.begin(), stream_bytes.end(), std::uint64_t{0}) != into.size()) return false;
    return pipeline.codec == Codec::none ? decode_streams(stored, stream_bytes, into) : decode_runs(pipeline, stored, into);
}

}  // namespace cairn::bench
