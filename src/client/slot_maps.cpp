#include "client/slot_maps.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "client/files.hpp"

namespace cairn {

SlotMaps::SlotMaps() : process_(::getpid()) {}

// In a forked child another thread may have the mutex for good.
SlotMaps::~SlotMaps() {
    while (!maps_.empty()) drop(maps_.size() - 1);
}

void SlotMaps::drop(std::size_t at) {
    // In a forked child nothing of ours is there, but perhaps something of its own.
    if (::getpid() == process_) ::munmap(maps_[at].base, maps_[at].bytes);
    maps_.erase(maps_.begin() + static_cast<std::ptrdiff_t>(at));
}

bool SlotMaps::is_gone(const Map& map) {
    struct stat about = {};
    return ::stat(map.path.c_str(), &about) != 0 || about.st_dev != map.device || about.st_ino != map.inode ||
           static_cast<std::uint64_t>(about.st_size) != map.bytes;
}

void SlotMaps::forget_gone() {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < maps_.size();) {
        if (is_gone(maps_[i]))
            drop(i);
        else
            ++i;
    }
}

bool SlotMaps::still_there(const std::string& path) const {
    return std::any_of(maps_.begin(), maps_.end(), [&](const Map& each) { return each.path == path && !is_gone(each); });
}

std::size_t SlotMaps::count_of(std::uint64_t bytes) const {
    return static_cast<std::size_t>(std::count_if(maps_.begin(), maps_.end(), [&](const Map& each) { return each.bytes >= bytes; }));
}

// False when it can not be done, or only by touching it (Linux before 5.14).
bool SlotMaps::populate(Map& map, std::uint64_t bytes) {
#ifdef MADV_POPULATE_WRITE
    const std::uint64_t now = std::min(bytes, map.bytes - map.populated_bytes);
    if (::madvise(map.base + map.populated_bytes, now, MADV_POPULATE_WRITE) == 0) {
        map.populated_bytes += now;
        return map.populated_bytes < map.bytes;
    }
#endif
    map.populated_bytes = map.bytes;  // the copy touches them
    return false;
}

bool SlotMaps::populate_some() {
    constexpr std::uint64_t piece_bytes = 4 << 20;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < maps_.size(); ++i) {
        if (maps_[i].populated_bytes == maps_[i].bytes) continue;
        if (is_gone(maps_[i])) drop(i);  // given back: what is written to now would be taken again
        else populate(maps_[i], piece_bytes);
        return true;
    }
    return false;
}

Result<SlotMaps::Map*> SlotMaps::map(const std::string& path, std::uint64_t bytes) {
    forget_gone();
    TRY_ASSIGN(Map* const found, find_or_map(path, bytes, Pages::now));
    const std::lock_guard lock(mutex_);
    if (found->populated_bytes < found->bytes) populate(*found, found->bytes);
    return found;
}

Status SlotMaps::map_ahead(const std::string& path, std::uint64_t bytes) { return find_or_map(path, bytes, Pages::later).status(); }

Result<SlotMaps::Map*> SlotMaps::find_or_map(const std::string& path, std::uint64_t bytes, Pages pages) {
    struct stat about = {};
    const auto found = std::find_if(maps_.begin(), maps_.end(), [&](const Map& each) { return each.path == path; });
    if (found != maps_.end()) {
        if (found->bytes < bytes) return Status(Code::internal, path + ": the daemon gave a slot that is too small");
        found->used = ++clock_;
        return &*found;
    }
    Map fresh;
    fresh.path = path;
    const files::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!file || ::fstat(file.get(), &about) != 0)
        return Status::from_errno(errno, "can not open the slot " + path);
    fresh.bytes = static_cast<std::uint64_t>(about.st_size);
    fresh.device = about.st_dev;
    fresh.inode = about.st_ino;
    if (fresh.bytes < bytes) return Status(Code::internal, path + ": the daemon gave a slot that is too small");
    // MAP_POPULATE: all pages in one go, before the clock of the copy runs.
    const int populate_flag = pages == Pages::now ? MAP_POPULATE : 0;
    void* base = ::mmap(nullptr, fresh.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate_flag, file.get(), 0);
    if (base == MAP_FAILED) return Status::from_errno(errno, "can not map the slot " + path);
    static_cast<void>(::madvise(base, fresh.bytes, MADV_DONTFORK));  // from here on the mapping is all that holds the file
    fresh.base = static_cast<std::byte*>(base);
    struct statfs where = {};
    const bool in_memory = ::fstatfs(file.get(), &where) == 0 && where.f_type == TMPFS_MAGIC;
    fresh.populated_bytes = pages == Pages::later && in_memory ? 0 : fresh.bytes;  // of a file on a disk a page that is touched is written there
    fresh.used = ++clock_;
    const std::lock_guard lock(mutex_);
    if (maps_.size() >= maps_max)
        drop(static_cast<std::size_t>(
            std::min_element(maps_.begin(), maps_.end(), [](const Map& a, const Map& b) { return a.used < b.used; }) -
            maps_.begin()));
    maps_.push_back(std::move(fresh));
    return &maps_.back();
}

}  // namespace cairn
