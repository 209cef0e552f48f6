// What a program knows of its heap before it fills it.
#pragma once

#include <cstdint>

namespace cairn {

// About `bytes` will be allocated in small pieces, and kept: they come to lie in huge pages, where the system gives some, since a program that goes to and
// fro in gigabytes of small pieces spends up to a third of its time on looking up pages. For the main thread, once, early. Does nothing where it can not.
void expect_heap(std::uint64_t bytes);

}  // namespace cairn
