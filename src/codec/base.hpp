// The base of a run: the same bytes of the same images in an older version, which is whole. Only what changed since is stored then, and who reads the run needs both.
#pragma once

#include "base/bytes.hpp"

namespace cairn {

struct Base {
    ByteView bytes = {};     // as many as are encoded
    bool is_needed = false;  // said by who encodes: without them what is stored can not be decoded
};

}  // namespace cairn
