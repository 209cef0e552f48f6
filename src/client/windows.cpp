#include "client/windows.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace cairn {

Windows::~Windows() {
    for (const auto& [number, window] : maps_) ::munmap(window.data(), window.size());
}

Result<std::span<std::byte>> Windows::map(std::uint64_t number, std::uint64_t bytes, files::Descriptor descriptor) {
    if (const auto found = maps_.find(number); found != maps_.end()) {
        if (found->second.size() == bytes) return found->second;
        return Status(Code::internal, "the daemon calls a window of " + std::to_string(found->second.size()) + " bytes one of " + std::to_string(bytes));
    }
    struct stat about = {};
    if (!descriptor || bytes == 0 || ::fstat(descriptor.get(), &about) != 0 || static_cast<std::uint64_t>(about.st_size) != bytes)
        return Status(Code::internal, "the daemon wants a piece in a window that it did not give");
    void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
    if (base == MAP_FAILED) return Status::from_errno(errno, "can not map a window of the daemon");
    static_cast<void>(::madvise(base, bytes, MADV_DONTFORK));
    const std::span<std::byte> window(static_cast<std::byte*>(base), bytes);
    maps_.emplace(number, window);
    return window;
}

}  // namespace cairn
