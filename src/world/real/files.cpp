#include "world/real/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace cairn {

namespace {

int open_retrying(const char* path, int flags, std::uint32_t permissions) {
    int fd;
    do fd = ::open(path, flags | O_CLOEXEC, permissions);
    while (fd < 0 && errno == EINTR);
    return fd;
}

// The same file again with other flags, wherever its name has gone meanwhile; by name where /proc is not mounted.
int open_again(int fd, const std::string& path, int flags) {
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    const int again = open_retrying(self.c_str(), flags, 0);
    if (again >= 0 || errno != ENOENT) return again;
    return open_retrying(path.c_str(), flags, 0);
}

Status outcome(int result, const char* doing, const std::string& path) {
    if (result == 0) return {};
    const int error = errno;
    return Status::from_errno(error, std::string(doing) + " " + path);
}

// What somebody, or a file system in trouble, put in a file's place.
Status check_is_file(const struct stat& about, const OpenOptions& options, const std::string& path) {
    const char* const what = S_ISREG(about.st_mode)    ? nullptr
                             : S_ISDIR(about.st_mode)  ? "a directory"
                             : S_ISFIFO(about.st_mode) ? "a FIFO"
                             : S_ISSOCK(about.st_mode) ? "a socket"
                             : S_ISLNK(about.st_mode)  ? "a link"
                                                       : "a device";
    if (what) return corrupt("opening " + path + ": it is " + what + ", not a file");
    if (options.sole_name && about.st_nlink > 1) return corrupt("opening " + path + ": it is a file that has another name, too (a hard link)");
    return {};
}

// What is read may be a link that its owner made; what is written over is the file of that name, and never another's.
bool follows_links(const OpenOptions& options) { return options.mode == OpenMode::read; }

// By what open(2) says of one: not of a file that may come back, but of what is written in the link. Null: of something else.
const char* where_a_link_leads(int error) {
    switch (error) {
        case ENOENT: return "nowhere";
        case ENOTDIR: return "through what is no directory";
        case ELOOP: return "to itself";
        case ENAMETOOLONG: return "to a name that no file can have";
        default: return nullptr;
    }
}

// Of a directory that a group may write to, and that is not sticky: what is made in it is the group's, too. Best effort: where the group can not be given, it is
// its maker's, as ever.
bool shares_with_group(const std::string& path, struct stat& above) {
    const std::string parent = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
    return ::stat(parent.c_str(), &above) == 0 && (above.st_mode & S_IWGRP) != 0 && (above.st_mode & S_ISVTX) == 0;
}

void share_directory(const std::string& path) {
    struct stat above = {}, made = {};
    if (!shares_with_group(path, above) || ::lstat(path.c_str(), &made) != 0 || !S_ISDIR(made.st_mode)) return;
    if (made.st_gid != above.st_gid && ::lchown(path.c_str(), static_cast<::uid_t>(-1), above.st_gid) != 0) return;
    (void)::chmod(path.c_str(), above.st_mode & 07777);
}

// The group's part of what was asked for. What was asked for its owner alone (a roster holds a secret) stays so.
void share_file(int fd, const std::string& path, std::uint32_t permissions) {
    struct stat above = {}, made = {};
    if ((permissions & 0070) == 0 || !shares_with_group(path, above) || ::fstat(fd, &made) != 0) return;
    if (made.st_gid != above.st_gid && ::fchown(fd, static_cast<::uid_t>(-1), above.st_gid) != 0) return;
    const ::mode_t missing = permissions & above.st_mode & 0070 & ~made.st_mode;
    if (missing != 0) (void)::fchmod(fd, (made.st_mode & 07777) | missing);
}

// Files that are to be placed have names that nobody else knows. So an empty file of one's own, where there was none a moment ago, is what the placer made, also where it failed half way:
// it is taken, as it lies.
int open_placed(const std::string& path, const OpenOptions& options, Placer& placer, Nanos limit, bool& placed) {
    struct stat about = {};
    errno = EEXIST;
    if (::lstat(path.c_str(), &about) == 0) return -1;
    const Status made = placer.make(path, options.permissions, options.placing, limit);
    int fd = open_retrying(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    // Where it was made by another way than this client's, which may remember that there was none: with O_CREAT the server is asked.
    if (fd < 0 && errno == ENOENT && made.ok()) fd = open_retrying(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, options.permissions);
    if (fd < 0 && errno == ENOENT) return open_retrying(path.c_str(), O_RDWR | O_CREAT | O_EXCL, options.permissions);
    if (fd < 0) return fd;
    const bool is_own = made.ok() || (::fstat(fd, &about) == 0 && about.st_uid == ::geteuid());  // root may be another user there
    if (made.code() == Code::already_exists || ::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size != 0 || !is_own) {
        ::close(fd);
        errno = EEXIST;
        return -1;
    }
    (void)::fcntl(fd, F_SETFL, 0);  // operations on it wait
    if ((about.st_mode & 07777 & ~options.permissions) != 0) (void)::fchmod(fd, about.st_mode & options.permissions);
    placed = made.ok();
    return fd;
}

// Whoever opens a FIFO may hang, and whoever opens a device may start something: looked at before, and not waited for.
Result<int> open_file(const std::string& path, const OpenOptions& options, Placer* placer, Nanos limit, bool& placed) {
    const int access = options.mode == OpenMode::read ? O_RDONLY : O_RDWR;
    if (options.mode == OpenMode::create) {
        const int made = placer && !options.placing.by.empty() ? open_placed(path, options, *placer, limit, placed)
                                                               : open_retrying(path.c_str(), access | O_CREAT | O_EXCL, options.permissions);
        if (made >= 0) share_file(made, path, options.permissions);
        return made;
    }
    struct stat about = {};
    const int looked = follows_links(options) ? ::stat(path.c_str(), &about) : ::lstat(path.c_str(), &about);
    if (looked == 0) TRY(check_is_file(about, options, path));
    const int flags = access | (follows_links(options) ? 0 : O_NOFOLLOW);
    const int fd = open_retrying(path.c_str(), flags | O_NONBLOCK, 0);
    return fd < 0 && errno == EAGAIN ? open_retrying(path.c_str(), flags, 0) : fd;  // another holds a lease on it (fcntl, F_SETLEASE), and is asked
}

// Of what was opened: it may have changed meanwhile. Operations on it wait again.
Status check_opened(int fd, const OpenOptions& options, const std::string& path) {
    if (options.mode == OpenMode::create) return {};
    struct stat about = {};
    if (::fstat(fd, &about) == 0) TRY(check_is_file(about, options, path));
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) return Status::from_errno(errno, "opening " + path);
    return {};
}

bool same_file(const std::string& a, const std::string& b) {
    struct stat first = {}, second = {};
    return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

Status publish_error(int error, const std::string& from, const std::string& to) {
    return Status::from_errno(error, "publishing " + from + " as " + to);
}

}  // namespace

Result<FilePtr> RealFile::open(const std::string& path, const OpenOptions& options, Dispose dispose, Placer* placer, Nanos limit) {
    bool placed = false;
    TRY_ASSIGN(const int buffered, open_file(path, options, placer, limit, placed));
    if (buffered < 0) {
        const int error = errno;
        struct stat about = {};
        if (const char* leads = where_a_link_leads(error); leads && follows_links(options) && ::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode))
            return corrupt("opening " + path + ": it is a link that leads " + leads + ", not a file");
        return Status::from_errno(error, (options.mode == OpenMode::create ? "creating " : "opening ") + path);
    }
    Status is_file = check_opened(buffered, options, path);
    if (!is_file.ok()) ::close(buffered);
    TRY(std::move(is_file));
    // Any refusal means buffered; whatever else is wrong will be said by the first transfer.
    const int access = options.mode == OpenMode::read ? O_RDONLY : O_RDWR;
    const int direct = options.direct ? open_again(buffered, path, access | O_DIRECT) : -1;
    auto file = std::make_shared<RealFile>(path, buffered, direct, std::move(dispose));
    file->placed_ = placed;
    return FilePtr(std::move(file));
}

std::uint64_t direct_align_bytes() {
    static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return std::max<std::uint64_t>(4096, page);
}

RealFile::RealFile(std::string path, int buffered, int direct, Dispose dispose)
    : path_(std::move(path)), buffered_(buffered), direct_(direct), dispose_(std::move(dispose)) {}

RealFile::~RealFile() {
    dispose_([buffered = buffered_, direct = direct_] {
        ::close(buffered);
        if (direct >= 0) ::close(direct);
    });
}

RealFile::Route RealFile::route(const void* memory, std::uint64_t offset, std::uint64_t length) const noexcept {
    const std::uint64_t align = direct_align_bytes();
    const bool aligned = (reinterpret_cast<std::uintptr_t>(memory) | offset) % align == 0;
    const std::uint64_t whole = length / align * align;
    if (!is_direct() || !aligned || whole == 0) return {buffered_, length, false};
    return {direct_, whole, true};
}

Status make_directory(const std::string& path, std::uint32_t permissions) {
    Status made = outcome(::mkdir(path.c_str(), permissions), "making the directory", path);
    if (made.ok()) share_directory(path);
    return made;
}

Status fsync_directory(const std::string& path) {
    const int fd = open_retrying(path.c_str(), O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) return outcome(fd, "opening the directory", path);
    Status status = outcome(::fsync(fd), "fsync of the directory", path);
    ::close(fd);
    return status;
}

Status fsync_name(const std::string& path) {
    const int fd = open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) return outcome(fd, "opening", path);
    Status status = outcome(::fsync(fd), "fsync of", path);
    ::close(fd);
    if (status.ok()) status = fsync_directory(path.substr(0, path.rfind('/')));
    return status;
}

Status publish_file(const std::string& from, const std::string& to) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
    const int error = errno;
    if (error == EINVAL || error == ENOSYS) return publish_by_link(from, to);
    if (error == EEXIST && same_file(from, to)) return {};
    return publish_error(error, from, to);
}

Status publish_by_link(const std::string& from, const std::string& to) {
    if (::link(from.c_str(), to.c_str()) != 0) {
        const int error = errno;
        // Over NFS a repeated request answers EEXIST to the very call that made the link.
        if (error != EEXIST || !same_file(from, to)) return publish_error(error, from, to);
    }
    ::unlink(from.c_str());  // the old name may stay; the new one counts
    return {};
}

Status replace_file(const std::string& from, const std::string& to) {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    const int error = errno;
    return Status::from_errno(error, "renaming " + from + " to " + to);
}

Status remove_file(const std::string& path) { return outcome(::unlink(path.c_str()), "removing", path); }

Status remove_directory(const std::string& path) {
    return outcome(::rmdir(path.c_str()), "removing the directory", path);
}

Result<std::uint64_t> free_bytes(const std::string& directory) {
    struct statvfs room = {};
    if (::statvfs(directory.c_str(), &room) != 0) return outcome(-1, "asking for the room of", directory);
    return std::uint64_t{room.f_bavail} * room.f_frsize;
}

Result<std::vector<DirectoryEntry>> list_directory(const std::string& path) {
    DIR* const directory = ::opendir(path.c_str());
    if (!directory && errno == ELOOP) return corrupt("listing " + path + ": it is a link that leads to itself, and not a directory");
    if (!directory) return outcome(-1, "listing", path);
    std::vector<DirectoryEntry> entries;
    for (;;) {
        errno = 0;
        const dirent* const entry = ::readdir(directory);
        if (!entry) break;
        const std::string name = entry->d_name;
        if (name == "." || name == "..") continue;
        struct stat about = {};
        // A dangling link is listed as what it is; what went away meanwhile is not listed. What can not be looked at, because its server is away, is
        // there all the same: whoever opens it will hear why not.
        if (::fstatat(::dirfd(directory), name.c_str(), &about, 0) != 0 &&
            ::fstatat(::dirfd(directory), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno == ENOENT) continue;
            about = {};
            about.st_mode = entry->d_type == DT_UNKNOWN ? S_IFREG : DTTOIF(entry->d_type);
        }
        const bool is_directory = S_ISDIR(about.st_mode);
        entries.push_back({name, is_directory, is_directory ? 0 : static_cast<std::uint64_t>(about.st_size)});
    }
    const int error = errno;
    ::closedir(directory);
    if (error != 0) return Status::from_errno(error, "listing " + path);
    std::sort(entries.begin(), entries.end());
    return entries;
}

Result<std::uint64_t> size_of(const RealFile& file) {
    struct stat about = {};
    if (::fstat(file.descriptor(), &about) != 0) return outcome(-1, "asking the size of", file.path());
    return static_cast<std::uint64_t>(about.st_size);
}

Status resize_file(const RealFile& file, std::uint64_t bytes) {
    if (bytes > static_cast<std::uint64_t>(INT64_MAX))
        return invalid_argument("resizing " + file.path() + ": too large");
    int result;
    do result = ::ftruncate(file.descriptor(), static_cast<off_t>(bytes));
    while (result != 0 && errno == EINTR);
    return outcome(result, "resizing", file.path());
}

}  // namespace cairn
