#include "daemon/slot_files.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mempolicy.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <random>

#include "base/units.hpp"
#include "daemon/door.hpp"
#include "format/image.hpp"

namespace cairn {

namespace fs = std::filesystem;

namespace {

constexpr const char* temporary_mark = ".new-";

// Not the process number: in a container each daemon may have the same.
const std::string& own_mark() {
    static const std::string mark = temporary_mark + std::to_string(std::random_device()()) + "-";
    return mark;
}

bool is_tmpfs(int file) {
    struct statfs about = {};
    return ::fstatfs(file, &about) == 0 && about.f_type == TMPFS_MAGIC;
}

// btrfs would copy a page that is written again, which takes room that nobody has set aside. Only an empty file can be told not to.
void write_in_place(int file) {
    struct statfs about = {};
    int flags = 0;
    if (::fstatfs(file, &about) != 0 || about.f_type != BTRFS_SUPER_MAGIC || ::ioctl(file, FS_IOC_GETFLAGS, &flags) != 0) return;
    flags |= FS_NOCOW_FL;
    (void)::ioctl(file, FS_IOC_SETFLAGS, &flags);  // refused where it is not empty any more
}

// A policy of the file, which outlives this mapping of it and counts for whoever touches a page first: fallocate here, a capture there. A kernel without NUMA
// refuses, and nothing is lost.
void prefer_node(int file, std::uint64_t bytes, int numa_node) {
    constexpr unsigned long mask_bits = 1024;
    if (numa_node < 0 || static_cast<unsigned long>(numa_node) >= mask_bits || !is_tmpfs(file)) return;
    void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) return;
    constexpr unsigned long word_bits = 8 * sizeof(unsigned long);
    std::array<unsigned long, mask_bits / word_bits> mask = {};
    mask[static_cast<unsigned long>(numa_node) / word_bits] |= 1ul << (static_cast<unsigned long>(numa_node) % word_bits);
    (void)::syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, mask.data(), mask_bits, 0);
    ::munmap(base, bytes);
}

}  // namespace

void remove_free_slot_file(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    ::unlink(path.c_str());
    struct stat about = {};
    if (file.get() < 0 || ::fstat(file.get(), &about) != 0) return;
    (void)::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, about.st_size);
}

// posix_fallocate writes a byte a block where the file system can not allocate: then the space is there, too.
Status allocate_slot_file(const std::string& path, std::uint64_t bytes, int numa_node) {
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return Status::from_errno(errno, "can not make " + path);
    write_in_place(file.get());
    prefer_node(file.get(), bytes, numa_node);
    int error = 0;
    do error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
    while (error == EINTR);
    if (error != 0) return Status::from_errno(error, "can not allocate " + format_bytes(bytes) + " for " + path);
    return {};
}

void clear_ahead(const std::string& path, std::uint64_t begin, std::uint64_t end, const std::atomic<bool>& stop) {
    constexpr std::uint64_t piece_bytes = 16 << 20;  // a few milliseconds
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.get() < 0 || !is_tmpfs(file.get())) return;
    const std::uint64_t bytes = end - begin;
    void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), static_cast<off_t>(begin));
    if (base == MAP_FAILED) return;
#ifdef MADV_POPULATE_WRITE
    for (std::uint64_t at = 0; at < bytes && !stop; at += piece_bytes)
        if (::madvise(static_cast<std::byte*>(base) + at, std::min(piece_bytes, bytes - at), MADV_POPULATE_WRITE) != 0) break;
#endif
    ::munmap(base, bytes);
}

bool is_in_memory(const std::string& directory) {
    struct statfs about = {};
    return ::statfs(directory.c_str(), &about) == 0 && (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC);
}

Result<std::uint64_t> room_in(const std::string& directory) {
    struct statvfs about = {};
    if (::statvfs(directory.c_str(), &about) != 0) return Status::from_errno(errno, "looking at " + directory);
    return about.f_bavail * about.f_frsize;
}

Status remove_slot_file(const std::string& path) {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
    return Status::from_errno(errno, "can not remove " + path);
}

// Removing the last name of a file takes as long as giving all its pages back, unless somebody has it open. O_PATH: that waits for nothing.
Status remove_slot_name(const std::string& path, const std::function<void(std::function<void()>)>& later) {
    const auto held = std::make_shared<Descriptor>(::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
    Status removed = remove_slot_file(path);
    later([held] { held->reset(-1); });
    return removed;
}

// A name of its own for each try: one that hung and was given up may go on at any time, and would rename what another has half written.
Status write_private_file(const std::string& path, const Bytes& bytes) {
    static std::atomic<unsigned> tries = 0;
    const std::string temporary = path + own_mark() + std::to_string(++tries);
    {
        const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (file.get() < 0) return Status::from_errno(errno, "can not make " + temporary);
        std::size_t done = 0;
        while (done < bytes.size()) {
            const ssize_t wrote = ::write(file.get(), bytes.data() + done, bytes.size() - done);
            if (wrote < 0 && errno == EINTR) continue;
            if (wrote <= 0) return Status::from_errno(errno, "can not write " + temporary);
            done += static_cast<std::size_t>(wrote);
        }
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) return Status::from_errno(errno, "can not rename " + temporary);
    return {};
}

void remove_temporaries(const std::string& directory) {
    std::error_code ignored;
    for (fs::directory_iterator each(directory, ignored), end; !ignored && each != end; each.increment(ignored)) {
        const std::string name = each->path().filename();
        const bool is_own = name.find(own_mark()) != std::string::npos;
        if (!is_own && (name.find(temporary_mark) != std::string::npos || name.ends_with(".new"))) ::unlink(each->path().c_str());
    }
}

void remove_left(const std::string& directory, std::chrono::seconds age) {
    std::error_code ignored;
    for (fs::directory_iterator each(directory, ignored), end; !ignored && each != end; each.increment(ignored)) {
        struct stat about = {};
        const std::string path = each->path();
        if (::lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
        if (std::chrono::system_clock::from_time_t(about.st_mtime) + age < std::chrono::system_clock::now()) ::unlink(path.c_str());
    }
}

// The state word first. Written, not stored into a mapping: where a page that is there needs room to be written again (copy on write), a full file
// system is an error here.
Status invalidate_slot_file(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.get() < 0) return Status::from_errno(errno, "can not open " + path);
    struct stat about = {};
    if (::fstat(file.get(), &about) == 0 && (!S_ISREG(about.st_mode) || about.st_nlink > 1))
        return corrupt(path + " is no file of this name alone: what is written there would be another's, too");
    const std::uint64_t zero = 0;
    for (const std::uint64_t offset : {image_state_offset, image_checksummed_offset}) {
        ssize_t wrote = 0;
        do wrote = ::pwrite(file.get(), &zero, sizeof zero, static_cast<off_t>(offset));
        while (wrote < 0 && errno == EINTR);
        if (wrote != sizeof zero) return Status::from_errno(wrote < 0 ? errno : ENOSPC, "can not write to " + path);
    }
    return {};
}

}  // namespace cairn
