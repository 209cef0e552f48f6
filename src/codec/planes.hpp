// predict-planes-zstd, and predict-planes-small: arrays of numbers, stored as what a prediction from their neighbours misses. Numbers become integers whose order is that of what they mean; each loses the one a stride
// before it, along up to three strides; the sign goes to the lowest bit; bytes of the same significance make a plane; each plane is stored in whichever way makes it shortest (plane.hpp), or
// left as it is where it is noise. So noise, which most of the lower bytes of computed numbers are, costs no time, and what is not is not spoiled by it. Of numbers that no neighbour
// tells, weights of a language model among them, the exponents make a plane for themselves.
//
// Records are taken apart, and each of their fields is an array of its own (columns.hpp); a run that repeats itself far apart is words (words.hpp).
//
// Where the same bytes of an older version are at hand, their base, numbers may lose what they were in that one first. A sample of each stretch tells whether that is of use.
//
// Short arrays that are alike are taken side by side, as one (planes_layout.hpp). Of an array that is described a sample tells which of its axes are of use. Of all other bytes a sample tells how wide a number is, its byte order, what its bits mean and where its
// neighbours lie: whatever makes planes with the least entropy. The small one looks at more ways, predicts in floating point, too (float_sums.hpp), and tries every way to store a plane. FORMAT.md ("Codecs") says what is stored.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "codec/base.hpp"
#include "codec/by_key.hpp"
#include "codec/plane.hpp"
#include "model/number_array.hpp"

namespace cairn {

constexpr std::uint64_t planes_bytes_min = 4 << 10;  // less is not worth the look at a sample

// The bytes that `into` holds then; 0: it is best stored as it is, or there was no memory. `arrays`: by offset, none over another. Each thread that ever encodes keeps about 2 MiB, and as much again once it took its time; some 1 MiB once it looked for words, and while it does as much as the run takes, and 1 MiB.
std::uint64_t encode_planes(ByteView raw, std::span<const NumberArray> arrays, std::span<std::byte> into, Effort effort = Effort::fast, Base* base = nullptr, ByKey* keys = nullptr);
// corrupt: `stored` makes other than so many bytes. out_of_space: no memory for a workspace.
Status decode_planes(ByteView stored, std::span<std::byte> into, ByteView base = {});

}  // namespace cairn
