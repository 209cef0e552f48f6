#include "client/files.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "format/names.hpp"

namespace cairn::files {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    if (this != &other) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = other.release();
    }
    return *this;
}
Descriptor::~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
}

Result<Id128> random_id() {
    Id128 id;
    while (!id) {
        std::uint64_t words[2];
        const ssize_t got = ::getrandom(words, sizeof words, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got != sizeof words) return Status::from_errno(errno, "no random numbers from the system");
        id = {words[0], words[1]};
    }
    return id;
}

Result<Bytes> read_whole(const std::string& path, std::uint64_t bytes_max) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // nobody waits for a FIFO that somebody put there
    if (!file) return Status::from_errno(errno, "can not open " + path);
    struct stat about = {};
    if (::fstat(file.get(), &about) == 0 && !S_ISREG(about.st_mode)) return corrupt(path + ": it is not a file");
    Bytes bytes;
    std::byte buffer[16 << 10];
    for (;;) {
        const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Status::from_errno(errno, "can not read " + path);
        if (got == 0) return bytes;
        if (bytes.size() + static_cast<std::size_t>(got) > bytes_max)
            return corrupt(path + ": far larger than it should be");
        bytes.insert(bytes.end(), buffer, buffer + got);
    }
}

Status write_all(int fd, ByteView bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return Status::from_errno(wrote < 0 ? errno : ENOSPC, "can not write " + path);
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return {};
}

Status write_aside(const std::string& path, ByteView bytes) {
    TRY_ASSIGN(const Id128 unique, random_id());
    const std::string aside = path.substr(0, path.rfind('/') + 1) + temporary_file_name(unique);
    const Descriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return Status::from_errno(errno, "can not create " + aside);
    Status status = write_all(file.get(), bytes, aside);
    if (status.ok() && ::rename(aside.c_str(), path.c_str()) != 0)
        status = Status::from_errno(errno, "can not name " + path);
    if (!status.ok()) ::unlink(aside.c_str());
    return status;
}

namespace {

// Room for names, not for bytes: removing large files does not help. Where a file system does not count them, it has all it needs.
bool has_no_inode(const std::string& path) {
    struct statvfs about = {};
    return ::statvfs(path.c_str(), &about) == 0 && about.f_files != 0 && about.f_favail == 0;
}

Status usable_now(const std::string& path, const std::string& what, const std::string& used_before) {
    const std::string advice = what + " (setting paths." + what + " is " + path + ")";
    struct stat about = {};
    if (::stat(path.c_str(), &about) != 0) {
        if (errno != ENOENT) return Status::from_errno(errno, advice + " can not be reached");
        if (!used_before.empty())
            return unavailable(advice + " is missing, but was there before (" + used_before +
                               "): is its file system mounted? To begin anew without what it held, make the directory");
        // Only itself: where its parent is missing too, something is not mounted or mistyped, and must not be made up.
        if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
            return Status::from_errno(errno, advice + " does not exist and can not be made");
        if (::stat(path.c_str(), &about) != 0) return Status::from_errno(errno, advice + " can not be reached");
    }
    if (!S_ISDIR(about.st_mode)) return invalid_argument(advice + " is not a directory");
    // Asking beats guessing: access(2) does not know of read-only mounts, quotas and access lists on every file system.
    TRY_ASSIGN(const Id128 unique, random_id());
    const std::string probe = path + "/" + temporary_file_name(unique);
    const Descriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return Status::from_errno(errno, advice + (errno == ENOSPC && has_no_inode(path) ? " has no inode free for another file" : " is not writable"));
    ::unlink(probe.c_str());
    return {};
}

}  // namespace

Status usable_directory(const std::string& path, const std::string& what, const std::string& used_before, Deadline deadline) {
    return patiently(deadline, is_away, [&] { return usable_now(path, what, used_before); });
}

bool same_file_system(const std::string& a, const std::string& b) {
    struct stat left = {}, right = {};
    return ::stat(a.c_str(), &left) == 0 && ::stat(b.c_str(), &right) == 0 && left.st_dev == right.st_dev;
}

}  // namespace cairn::files
