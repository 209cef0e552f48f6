// What was encoded is decoded and compared before it counts, so that no error of a library or of memory is stored for good. Who finds one stores the bytes as they are, and it is told.
#pragma once

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn {

// Whether decoding made the raw bytes. If not, and there was memory for it, the log tells it (codec-erred), the first time, the second, the fourth and so on. Any thread.
bool comes_back(const Status& decoded, ByteView back, ByteView raw);

}  // namespace cairn
