// Cpu: work that burns cycles, away from the event loop. Randomness: where every random number comes from.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "model/checksum_units.hpp"
#include "world/buffer.hpp"
#include "world/clock.hpp"
#include "world/task.hpp"

namespace cairn {

// What is known of the bytes that are to be encoded, by offset in them. Asked for on a thread that encodes, at most once: it may read memory that does not come back. None: nothing is.
using FindArrays = std::function<std::vector<NumberArray>()>;
inline const FindArrays nothing_known;

// The parameters of an encoding: what it makes is a function of them, of the bytes, of what is known of these, and of their base.
struct Coding {
    Codec codec = Codec::none;
    std::shared_ptr<const KeyEfforts> keys;  // null: the arrays of all keys alike
    explicit Coding(Codec c, std::shared_ptr<const KeyEfforts> k = nullptr) : codec(c), keys(std::move(k)) {}
};

// What bytes were in an older version (codec/base.hpp), and the checksums that say so.
struct BaseBytes {
    Slice bytes = {};  // empty: it is not at hand
    Units units = {0};
    std::vector<std::uint64_t> checksums = {};
};

// What encode() made.
struct Encoded {
    std::uint64_t bytes = 0;     // 0: nothing that fits
    std::uint64_t checksum = 0;  // of these bytes
    Nanos took = 0;              // of one thread, without finding out what is known of the bytes: that is once an image
    bool needs_base = false;     // to be decoded
    std::vector<KeyEncoded> keys = {};  // of the arrays that have a key, where the codec tells
};

class Cpu {
  public:
    virtual ~Cpu() = default;
    // One checksum for each unit of `data`; none for an empty slice. The only place where checksums of image data are made.
    virtual Task<std::vector<std::uint64_t>> checksums(Slice data, Units units) = 0;

    // Whether encode() can be worth a buffer for bytes with these checksums, one a unit. It costs nothing.
    virtual bool may_shrink(Codec codec, const std::vector<std::uint64_t>& checksums, std::uint64_t bytes, std::uint64_t block_bytes) const = 0;
    // Encodes `raw` (with Codec::none: copies it) into the front of `into`, which has room for no more than is worth it. deadline: `raw` is mapped memory that did not come back; whoever works on
    // it holds both slices until it is over.
    // `base`: mapped memory, too. Nothing is made of it unless it is what its checksums are of: what is stored as a difference from anything else nobody could read.
    virtual Task<Result<Encoded>> encode(Coding coding, Slice raw, BaseBytes base, FindArrays arrays, Slice into, Nanos deadline) = 0;
    // What `arrays` finds, on a thread of those that encode. deadline: it did not come to its end, as with encode().
    virtual Task<Result<std::vector<NumberArray>>> find(FindArrays arrays, Nanos deadline) = 0;
    virtual unsigned encoders() const = 0;  // threads that encode at once
    // All of `into`. corrupt where `stored` makes something else, or needs a base and `base` is empty.
    virtual Task<Status> decode(Codec codec, Slice stored, Slice base, Slice into, Nanos deadline) = 0;

    // Whether each two, which are as long as each other, are the same bytes. deadline: as with encode().
    using Pairs = std::vector<std::pair<Slice, Slice>>;
    virtual Task<Result<bool>> equal(Pairs pairs, Nanos deadline) = 0;
};

class Randomness {
  public:
    virtual ~Randomness() = default;
    virtual std::uint64_t next() = 0;

    Id128 id() {
        Id128 id;
        while (!id) id = {next(), next()};
        return id;
    }
};

}  // namespace cairn
