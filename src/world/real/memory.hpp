// Memory for data: anonymous pages that are counted (rule 9 bounds them), and mapped files that are not.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "world/buffer.hpp"

namespace cairn {

// Page-aligned, zero, in huge pages where the system has them; given back by the last reference. At least one page.
Result<BufferPtr> allocate_memory(std::uint64_t bytes);

// Memory that another process of this machine can be given (memfd), page-aligned, zero, of a size that nobody can change.
class SharedMemory final : public Buffer {
  public:
    static Result<std::shared_ptr<SharedMemory>> allocate(std::uint64_t bytes);
    SharedMemory(const SharedMemory&) = delete;
    ~SharedMemory() override;

    std::byte* data() noexcept override { return data_; }
    std::uint64_t size() const noexcept override { return size_; }
    int descriptor() const noexcept { return descriptor_; }
    std::uint64_t number() const noexcept { return number_; }  // never used again by this process
    // Another process may write to it, and nobody hears when: what is in it from now on is worth nothing.
    void give_up() noexcept { is_given_up_ = true; }
    bool has_lost_bytes() const noexcept override { return is_given_up_; }

  private:
    SharedMemory(int descriptor, std::byte* data, std::uint64_t size);
    int descriptor_;
    std::byte* data_;
    std::uint64_t size_, number_;
    std::atomic<bool> is_given_up_{false};
};

// Of this process, now and at its peak: what allocate_memory and SharedMemory gave out and have not got back, quarantined buffers among
// it.
std::uint64_t memory_bytes() noexcept;
std::uint64_t memory_bytes_peak() noexcept;

// All of an existing regular file, shared. `dispose` runs the unmapping, which takes long for large files. Blocks.
Result<BufferPtr> map_file(const std::string& path, bool writable, std::function<void(std::function<void()>)> dispose);

// From here on this process survives a touch of mapped memory whose file was made shorter, or whose disk does not give it (SIGBUS, a handler of which
// this installs): the buffer says so (has_lost_bytes). For programs of ours; the library does not do it to an application.
void survive_lost_bytes();

}  // namespace cairn
