// Which tensors a pickle of torch.save describes. Nothing of it is executed: objects are not made, modules are not looked for. Of what the opcodes say (Python's
// Lib/pickletools.py has all of them) tuples, numbers and texts are remembered, the names in torch that matter here, and under which key of a dict each thing was put.
//
// Costs a small multiple of the pickle's length in time, and has bounds of its own in memory. An opcode that torch does not write ends it, and so does a bound; what was
// found until then is kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "model/types.hpp"

namespace cairn {

struct PickledStorage {
    std::string_view key;              // of the pickle's bytes
    DataType type = DataType::bytes;   // bytes: untyped, or of a type that is none of these
};
struct PickledTensor {
    std::size_t storage = 0;           // of those below
    DataType type = DataType::bytes;
    std::uint64_t offset = 0;          // in the storage; in numbers, as the strides are
    std::vector<std::uint64_t> shape, strides;  // as many of one as of the other
    std::string name;                  // the keys that lead to it, "/" between them; empty: unknown
};
struct Pickled {
    std::vector<PickledStorage> storages;  // each key once
    std::vector<PickledTensor> tensors;
};

Pickled scan_pickle(ByteView pickle);

}  // namespace cairn
