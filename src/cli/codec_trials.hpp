// What codecs make of images: cut into runs, encoded and decoded, on one thread. For who chooses a codec (`cairn tune --codecs`), and for the bench.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cli/sample_image.hpp"
#include "codec/codec.hpp"
#include "model/key_efforts.hpp"
#include "model/space.hpp"

namespace cairn::cli {

struct Method {
    Codec codec = Codec::none;
    bool is_told = true;  // of the arrays
    KeyEfforts efforts = {};
    bool operator==(const Method&) const = default;
};

struct CodecTrial {
    double raw_bytes = 0, stored_bytes = 0;
    double part_bytes = 0;              // what that takes of a part: each run from a page on, and the footer
    double encode_s = 0, decode_s = 0;  // of the thread's processor: what else runs on the machine counts little
    double decoded_bytes = 0;           // raw ones, of runs that were encoded
    std::uint64_t runs = 0;
    std::vector<KeyEncoded> keys;  // by key
    double ratio() const { return raw_bytes / stored_bytes; }
    double part_ratio() const { return raw_bytes / part_bytes; }
    double encode_bytes_per_s() const { return encode_s > 0 ? raw_bytes / encode_s : 0; }
    double decode_bytes_per_s() const { return decode_s > 0 ? decoded_bytes / decode_s : 0; }  // 0: nothing was encoded
    double run_bytes() const { return runs > 0 ? raw_bytes / static_cast<double>(runs) : 0; }
};

// The pieces of the next run, by what became of those before it; none: that was the last one. Ranks are images, by their place.
using NextRun = std::function<Pack(const CodecTrial& so_far)>;
// Of one image, from its beginning to its end.
NextRun runs_of(std::uint64_t image_bytes, std::uint64_t run_bytes);

struct TrialInput {
    std::span<const SampleImage> images;
    std::span<const SampleImage> base = {};  // the same in an older version, each as long, or none
    std::uint64_t block_bytes = 1 << 20;     // for the footer
};
// Bytes that a codec leaves are counted as they are, and for the time that it took to find that out. corrupt: what was encoded does not come back. `tell`: raw bytes so far, now and then.
// Memory: three times the longest run, and what the codec takes.
Result<CodecTrial> try_codec(const TrialInput& input, const NextRun& next, const Method& method, const std::function<void(std::uint64_t)>& tell = {});

// Seconds until so many raw bytes are durable, where storage takes so many bytes a second and so many threads encode: the slower of the two.
double durable_s(const CodecTrial& trial, double raw_bytes, double storage_bytes_per_s, unsigned threads);

}  // namespace cairn::cli
