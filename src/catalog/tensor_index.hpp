// Tensor index: the file beside the parts of a version that tells other programs which safetensors file has which tensor. They look for it under one name, so it has that name
// and no other: of incarnations that share a version's directory it is of the one that wrote it last.
//
// Order: after the manifest stands, since only then it is known which attempt's files stay; then the manifest is looked at once more, for who removed the version meanwhile did not
// see the index. Cairn reads it nowhere. Where a crash comes in between it is missing, until a daemon looks at the version again.
#pragma once

#include "catalog/layout.hpp"
#include "model/types.hpp"
#include "world/world.hpp"

namespace cairn {

struct TensorIndexed {
    std::uint64_t tensors = 0;
    std::uint64_t twice = 0;  // names that several files have: the index names the first of these
};

// Reads the headers of all parts, several at a time, and writes the index. Files below another root than persistent are named by their whole path. not_found: the version is not
// committed any more.
Task<Result<TensorIndexed>> write_tensor_index(World& world, Layout layout, VersionKey key, Nanos io_wait);

// Of a version that is removed; that of another incarnation stays. ok: it is not there.
Task<Status> remove_tensor_index(World& world, Layout layout, VersionKey key, Nanos io_wait);

}  // namespace cairn
