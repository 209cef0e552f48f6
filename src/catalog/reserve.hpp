// Room under persistent for the few small files without which nothing can be restored, or removed, from a file system that is full to the last block: the
// records of an open, and a tombstone. It is a file of real blocks (Layout::reserve), made while there is room. Where such a file meets none, a piece of the
// reserve is cut off, and it is tried again. What was cut is anybody's until the reserve is made whole again: when an open is on record, and when something was removed.
//
// It promises nothing: another writer may be quicker, it may be another user's, or something else may stand in its place (a link, a FIFO, a file with another
// name), which is left alone. So who needs room has a way without (removal.hpp).
#pragma once

#include "catalog/layout.hpp"
#include "world/world.hpp"

namespace cairn {

constexpr std::uint64_t reserve_bytes = 1 << 20;
constexpr std::uint64_t reserve_piece_bytes = 64 << 10;  // a record, and the directory that its name goes into, take a few blocks

// Makes the reserve, or makes it whole again. Best effort: of what does not fit it keeps what does. corrupt: something else stands in its place.
Task<Status> keep_reserve(World& world, Layout layout, Nanos deadline);

// True: `met` was out_of_space, and a piece has been cut off, so that it may be tried again.
Task<bool> reserve_gives(World& world, Layout layout, Status met, Nanos deadline);

// make_directories below persistent, in the reserve's room where there is no other.
Task<Status> make_directories(World& world, Layout layout, std::string path, Nanos deadline);

// A small file of persistent, published without replacing: whole under a temporary name, durable, then visible, in the reserve's room where there is no
// other. Its name is not durable before fsync_directory. What fails leaves nothing behind.
Task<Status> publish_small_file(World& world, Layout layout, std::string path, Bytes bytes, std::uint32_t permissions, Nanos deadline);

}  // namespace cairn
