// What codecs make of files: an image as `cairn watch` makes it of a node's files, encoded and decoded in runs, on one thread. For who chooses a codec (`cairn tune --codecs`), and for the bench.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "codec/codec.hpp"
#include "describe/file.hpp"

namespace cairn::cli {

struct SampleImage {
    Bytes bytes;
    std::vector<NumberArray> arrays;  // that the files describe
    std::uint64_t described_bytes = 0;
};
// The file's bytes behind those of the files before it, and what is known of them. A file that can not be described is appended all the same.
Status append_file(SampleImage& image, const std::string& path, const Describers& describers);

struct CodecTrial {
    double raw_bytes = 0, stored_bytes = 0;
    double encode_s = 0, decode_s = 0;  // of the thread's processor: what else runs on the machine counts little
    double decoded_bytes = 0;           // raw ones, of runs that were encoded
    double ratio() const { return raw_bytes / stored_bytes; }
    double encode_bytes_per_s() const { return encode_s > 0 ? raw_bytes / encode_s : 0; }
    double decode_bytes_per_s() const { return decode_s > 0 ? decoded_bytes / decode_s : 0; }  // 0: nothing was encoded
};
// is_told: the codec is told of the arrays. `base`: the same image in an older version, as long, or none. Bytes that a codec leaves are counted as they are, and for the time that it took to find that out. corrupt: what was encoded does not come back.
Result<CodecTrial> try_codec(const SampleImage& image, Codec codec, bool is_told, ByteView base = {});

// Seconds until so many raw bytes are durable, where storage takes so many bytes a second and so many threads encode: the slower of the two.
double durable_s(const CodecTrial& trial, double raw_bytes, double storage_bytes_per_s, unsigned threads);

}  // namespace cairn::cli
