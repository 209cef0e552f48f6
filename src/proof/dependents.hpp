// A version that has parts of an older one, as data-aware capture will publish them: here all parts are the older one's, and so are the bytes.
#pragma once

#include "catalog/catalog.hpp"

namespace cairn::testing {

// Publishes `key` by the rules of catalog/needed.hpp. not_found, superseded: `base` is not there (any more).
Task<Status> publish_dependent(World world, Layout layout, VersionKey base, VersionKey key, Nanos io_wait);

}  // namespace cairn::testing
