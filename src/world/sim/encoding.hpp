// Encoding as the simulated world models it: what comes out has a length drawn from the content, says what went in, and is followed by bytes that mean nothing but
// must be there. So what was encoded can be decoded wherever it has been since, and damage anywhere in it is found.
#pragma once

#include <optional>

#include "world/cpu.hpp"
#include "world/sim/content.hpp"
#include "world/sim/model.hpp"

namespace cairn::sim {

// How one run of data is encoded: all of it has one key, drawn from the content (Model::codec_keys); 0: none has any.
struct KeyedEncoding {
    std::uint32_t key = 0;
    Effort effort = Effort::fast;
    double rate = 0;  // raw bytes a second
    double stored_min = 0, stored_max = 0;
    bool leaves = false;  // the bytes as they are
};
KeyedEncoding keyed_encoding(const Coding& coding, const Runs& raw, const Model& model);

// With a base, of as many bytes: what comes out is half as long, and is decoded with that base alone.
//
// Between so many bytes for each raw one; empty where that is more than `bytes_max`, or too few to tell what went in.
Runs encode_runs(const Runs& raw, const Runs& base, std::uint64_t bytes_max, double stored_min, double stored_max);
// Nothing where it is not what encode_runs() made of so many bytes, and of this base where it made it of one.
std::optional<Runs> decode_runs(const Runs& stored, const Runs& base, std::uint64_t raw_bytes);

}  // namespace cairn::sim
