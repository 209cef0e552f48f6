// Encoding as the simulated world models it: what comes out has a length drawn from the content, says what went in, and is followed by bytes that mean nothing but
// must be there. So what was encoded can be decoded wherever it has been since, and damage anywhere in it is found.
#pragma once

#include <optional>

#include "world/sim/content.hpp"

namespace cairn::sim {

// With a base, of as many bytes: what comes out is half as long, and is decoded with that base alone.
//
// Between so many bytes for each raw one; empty where that is more than `bytes_max`, or too few to tell what went in.
Runs encode_runs(const Runs& raw, const Runs& base, std::uint64_t bytes_max, double stored_min, double stored_max);
// Nothing where it is not what encode_runs() made of so many bytes, and of this base where it made it of one.
std::optional<Runs> decode_runs(const Runs& stored, const Runs& base, std::uint64_t raw_bytes);

}  // namespace cairn::sim
