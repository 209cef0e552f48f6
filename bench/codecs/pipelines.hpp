// Named pipelines: what is done to each merged stream by its type (the first pass), or to all of them as one image (Cairn's own codecs), and gzip over what came out of it (the second).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "codecs/methods.hpp"
#include "model/number_array.hpp"

namespace cairn::bench {

struct Pipeline {
    const char* name;
    Method doubles, floats, others;  // streams of one key
    Method whole_files;              // what the agnostic schemes make
    bool is_reference = false;       // the paper's: skips short variables, and keeps what came out longer for the second pass
    Codec codec = Codec::none;       // Cairn's, over all streams as one image in runs of 1 MiB; the methods above do not count then
    bool is_told = false;            // of the arrays
};
std::span<const Pipeline> pipelines();
const char* lacks(const Pipeline& pipeline);

struct Merged {
    std::vector<StreamView> streams;  // one behind the other in `bytes`
    ByteView bytes;
    std::vector<NumberArray> arrays;  // in `bytes`, by offset
};

struct Options {
    std::uint64_t variable_bytes_min = 100;  // shorter ones skip the first pass (SC12, Section VII)
};

// Nothing where a method can not.
std::optional<Bytes> encode(const Pipeline& pipeline, const Merged& merged, const Options& options);
// All of `into`. `stream_bytes`: of each stream, which the layout tells; false where what was stored makes other than so many.
bool decode(const Pipeline& pipeline, ByteView stored, std::span<const std::uint64_t> stream_bytes, std::span<std::byte> into);

}  // namespace cairn::bench
