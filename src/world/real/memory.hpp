// Memory for data: anonymous pages that are counted (rule 9 bounds them), and mapped files that are not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "world/buffer.hpp"

namespace cairn {

// Page-aligned, zero, in huge pages where the system has them; given back by the last reference. At least one page.
Result<BufferPtr> allocate_memory(std::uint64_t bytes);

// Of this process, now and at its peak: what allocate_memory gave out and has not got back, quarantined buffers among
// it.
std::uint64_t memory_bytes() noexcept;
std::uint64_t memory_bytes_peak() noexcept;

// All of an existing regular file, shared. `dispose` runs the unmapping, which takes long for large files. Blocks.
Result<BufferPtr> map_file(const std::string& path, bool writable, std::function<void(std::function<void()>)> dispose);

// From here on this process survives a touch of mapped memory whose file was made shorter, or whose disk does not give it (SIGBUS, a handler of which
// this installs): the buffer says so (has_lost_bytes). For programs of ours; the library does not do it to an application.
void survive_lost_bytes();

}  // namespace cairn
