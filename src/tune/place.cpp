#include "tune/place.hpp"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/bytes.hpp"
#include "base/units.hpp"
#include "world/real/memory.hpp"
#include "world/real/random.hpp"

namespace cairn::tune {

namespace {

constexpr std::string_view prefix = ".cairn-tune-";
constexpr std::uint64_t probe_bytes = 256 << 10;

std::string host_name() {
    char name[HOST_NAME_MAX + 1] = {};
    ::gethostname(name, HOST_NAME_MAX);
    return name;
}

std::string lock_path(const std::string& directory) { return directory + "/lock"; }

// The process that made a directory of this name on this host; 0: it is not one, or of another host.
pid_t maker_of(std::string_view name) {
    if (!name.starts_with(prefix) || !name.ends_with("@" + host_name())) return 0;
    name.remove_prefix(prefix.size());
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    return error == std::errc() && end != name.data() + name.size() && *end == '-' && pid > 0 ? pid : 0;
}

// Nobody holds the lock. Where locks are not to be had, and in the moment before it is made, the process decides.
bool is_abandoned(const std::string& directory, pid_t maker) {
    const int fd = ::open(lock_path(directory).c_str(), O_RDWR | O_CLOEXEC);
    const int locked = fd < 0 ? -1 : ::flock(fd, LOCK_EX | LOCK_NB);
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (fd >= 0 && locked == 0) return true;
    if (fd >= 0 && error == EWOULDBLOCK) return false;
    return ::kill(maker, 0) != 0 && errno == ESRCH;
}

// A directory, and this user's: another user's can not be removed by us, and is no reason to fail.
bool is_ours(const std::string& path) {
    struct stat about = {};
    return ::lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == ::geteuid();
}

Status remove_tree(const std::string& path) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return Status::from_errno(error.value(), "removing " + path + ", which was made for this; remove it by hand");
    return {};
}

}  // namespace

Result<OwnDirectory> OwnDirectory::make(const std::string& parent) {
    SystemRandom random;
    OwnDirectory made;
    const std::string path = parent + "/" + std::string(prefix) + std::to_string(::getpid()) + "-" + random.id().hex().substr(0, 8) + "@" + host_name();
    if (::mkdir(path.c_str(), 0700) != 0) {
        const int error = errno;
        return Status::from_errno(error, "can not make a directory in " + parent);
    }
    made.path_ = path;
    made.lock_ = ::open(lock_path(path).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made.lock_ < 0) {
        const int error = errno;
        return Status::from_errno(error, "can not write in " + path);
    }
    (void)::flock(made.lock_, LOCK_EX | LOCK_NB);  // where there are no locks the process is looked for
    return made;
}

OwnDirectory::OwnDirectory(OwnDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

OwnDirectory::~OwnDirectory() {
    const Status ignored = remove();
    (void)ignored;
}

Status OwnDirectory::remove() {
    if (path_.empty()) return {};
    const Status status = remove_tree(path_);
    if (lock_ >= 0) ::close(std::exchange(lock_, -1));
    path_.clear();
    return status;
}

Result<std::vector<std::string>> remove_leftovers(const std::string& parent) {
    std::vector<std::string> found;
    std::error_code error;
    for (std::filesystem::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        const std::string path = parent + "/" + name;
        const pid_t maker = maker_of(name);
        if (maker != 0 && is_ours(path) && is_abandoned(path, maker)) found.push_back(path);
    }
    if (error) return Status::from_errno(error.value(), "looking into " + parent);
    for (const std::string& path : found) TRY(remove_tree(path));
    return found;
}

bool same_file_system(const std::string& a, const std::string& b) {
    struct stat first = {}, second = {};
    return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev;
}

Result<Room> room_at(const std::string& directory) {
    struct statvfs about = {};
    if (::statvfs(directory.c_str(), &about) != 0) {
        const int error = errno;
        return Status::from_errno(error, "asking how much room there is in " + directory);
    }
    return Room{std::uint64_t{about.f_bavail} * about.f_frsize, std::uint64_t{about.f_blocks} * about.f_frsize};
}

std::uint64_t room_for(const Room& room, std::uint32_t times) {
    const std::uint64_t stays = room.total_bytes / 10;
    return room.free_bytes <= stays ? 0 : (room.free_bytes - stays) / times;
}

Status check_room(const std::string& directory, const Room& room, std::uint64_t bytes, std::uint32_t times, const std::string& what) {
    if (bytes <= room_for(room, times)) return {};
    return Status(Code::out_of_space, directory + ": " + what + " " + format_bytes(bytes) + ", and there must be room for " +
                                          (times > 1 ? "that " + std::to_string(times) + " times over" : "that") + " with a tenth of the file system (" +
                                          format_bytes(room.total_bytes / 10) + ") left: " + format_bytes(room.free_bytes) +
                                          " are free. Make room, name another directory, or ask for less (--size, --followers, --local-files)");
}

namespace {

struct ProbeFile {
    std::string path;
    int fd = -1;
    ~ProbeFile() {
        if (fd >= 0) ::close(fd);
        ::unlink(path.c_str());
    }
};

std::string reason(int error) { return Status::from_errno(error, "").text(); }

}  // namespace

int DirectCalls::open(const std::string& path) const { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT, 0600); }
ssize_t DirectCalls::write(int file, const void* data, std::size_t bytes) const { return ::pwrite(file, data, bytes, 0); }
ssize_t DirectCalls::read(int file, void* data, std::size_t bytes) const { return ::pread(file, data, bytes, 0); }

bool DirectCalls::is_cached(int file, std::size_t bytes) const {
    void* const map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) return false;  // can not be told
    std::vector<unsigned char> resident(div_up(bytes, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))));
    const bool told = ::mincore(map, bytes, resident.data()) == 0;
    ::munmap(map, bytes);
    return told && std::any_of(resident.begin(), resident.end(), [](unsigned char page) { return (page & 1) != 0; });
}

Result<DirectProbe> probe_direct(const std::string& directory, const DirectCalls& calls) {
    ProbeFile file{directory + "/probe"};
    file.fd = calls.open(file.path);
    if (file.fd < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) return DirectProbe{Direct::refused, "the file system does not open files for it"};
    if (file.fd < 0) {
        const int error = errno;
        return Status::from_errno(error, "creating " + file.path);
    }
    TRY_ASSIGN(const BufferPtr wrote, allocate_memory(probe_bytes));
    TRY_ASSIGN(const BufferPtr read, allocate_memory(probe_bytes));
    SystemRandom random;
    for (std::uint64_t at = 0; at < probe_bytes; at += 4096) {
        const std::uint64_t word = random.next();
        std::memcpy(wrote->data() + at, &word, sizeof word);
    }
    const ssize_t written = calls.write(file.fd, wrote->data(), probe_bytes);
    if (written < 0 && (errno == EINVAL || errno == EOPNOTSUPP))
        return DirectProbe{Direct::refused, "files open for it, and then writes are refused (" + reason(errno) + ")"};
    if (written != static_cast<ssize_t>(probe_bytes)) {
        const int error = written < 0 ? errno : ENOSPC;
        return Status::from_errno(error, "writing " + file.path);
    }
    if (calls.is_cached(file.fd, probe_bytes)) return DirectProbe{Direct::cached, "what is written past the page cache is found in it"};
    const ssize_t got = calls.read(file.fd, read->data(), probe_bytes);
    if (got < 0 && (errno == EINVAL || errno == EOPNOTSUPP))
        return DirectProbe{Direct::refused, "it is written, and then reads are refused (" + reason(errno) + ")"};
    if (got != static_cast<ssize_t>(probe_bytes) || std::memcmp(wrote->data(), read->data(), probe_bytes) != 0)
        return DirectProbe{Direct::wrong, "what was written is not what comes back"};
    return DirectProbe{};
}

}  // namespace cairn::tune
