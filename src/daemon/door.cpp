// Directory, lock and socket, all by descriptor, so that a path of any length works and a swapped one is noticed.
#include "daemon/door.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "format/names.hpp"

namespace cairn {

namespace {

constexpr int backlog = 1024;
constexpr const char* socket_being_made = ".sock-new";

std::string user_name(uid_t uid) {
    std::vector<char> text(4096);
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(uid, &entry, text.data(), text.size(), &found) == 0 && found)
        return std::string("user ") + entry.pw_name + " (uid " + std::to_string(uid) + ")";
    return "uid " + std::to_string(uid);
}

// The directory, made when missing, proved to be ours alone. `parent` is a descriptor, `name` lies in it, `path` is for
// errors.
Result<Descriptor> own_directory(int parent, const std::string& name, const std::string& path) {
    if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST)
        return Status::from_errno(errno, "can not make the directory " + path);
    Descriptor directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (directory.get() < 0) {
        const int error = errno;
        struct stat about = {};
        if (::fstatat(parent, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(about.st_mode))
            return Status(Code::permission,
                          path + " is " + (S_ISLNK(about.st_mode) ? "a symbolic link" : "not a directory") +
                              ", put there by " + user_name(about.st_uid) + ": remove it, or set another scratch");
        if (::fstatat(parent, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 || about.st_uid == ::geteuid())
            return Status::from_errno(error, "can not open the directory " + path);
    }
    struct stat about = {};
    const int fetched = directory.get() < 0 ? ::fstatat(parent, name.c_str(), &about, AT_SYMLINK_NOFOLLOW)
                                            : ::fstat(directory.get(), &about);
    if (fetched != 0) return Status::from_errno(errno, "can not look at " + path);
    if (about.st_uid != ::geteuid())
        return Status(Code::permission, path + " belongs to " + user_name(about.st_uid) + ", not to " +
                                            user_name(::geteuid()) +
                                            ": remove it, or set another scratch or node name");
    if ((about.st_mode & 0777) != 0700 && ::fchmod(directory.get(), 0700) != 0)
        return Status::from_errno(errno, "can not make " + path + " private");
    return directory;
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

void Descriptor::reset(int fd) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
}

Result<Door> Door::open(const std::string& scratch, const ScratchLayout& layout) {
    Descriptor parent(::open(scratch.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.get() < 0)
        return Status::from_errno(
            errno, "scratch " + scratch + " can not be opened (setting paths.scratch names it; it must exist)");
    const std::string name = layout.root.substr(layout.root.rfind('/') + 1);
    Door door;
    door.layout_ = layout;
    TRY_ASSIGN(door.directory_, own_directory(parent.get(), name, layout.root));
    for (const std::string& room : {layout.images(), layout.jobs()}) {
        TRY_ASSIGN(const Descriptor made, own_directory(door.directory_.get(), room.substr(room.rfind('/') + 1), room));
    }
    return door;
}

Result<bool> Door::lock() {
    const std::string path = layout_.lock();
    // Again when the file was removed between opening and locking it: a lock on a file without a name keeps nobody out.
    for (int tries = 0; tries < 100; ++tries) {
        Descriptor file(::openat(directory_.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (file.get() < 0) return Status::from_errno(errno, "can not open the lock " + path);
        if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK) return false;
            if (errno == EINTR) continue;
            return Status::from_errno(errno, "can not lock " + path);
        }
        struct stat about = {};
        if (::fstat(file.get(), &about) == 0 && (!S_ISREG(about.st_mode) || about.st_nlink > 1))
            return corrupt(path + " is not the lock that a daemon makes (no file, or one that has another name): remove it");
        lock_ = std::move(file);
        if (still_ours()) {
            const std::string pid = std::to_string(::getpid()) + "\n";  // for people
            if (::ftruncate(lock_.get(), 0) != 0 || ::pwrite(lock_.get(), pid.data(), pid.size(), 0) < 0)
                return Status::from_errno(errno, "can not write to the lock " + path);
            return true;
        }
        lock_.reset(-1);
    }
    return unavailable("the lock " + path + " is removed again and again by somebody");
}

// It may be all that somebody has of something: it is kept, under a name that nobody opens.
std::vector<Door::Moved> Door::put_strangers_aside() {
    std::vector<Moved> moved;
    for (const std::string& path : {layout_.log(), layout_.boot(), layout_.keeper()}) {
        const std::string name = path.substr(path.rfind('/') + 1);
        struct stat about = {};
        if (::fstatat(directory_.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISREG(about.st_mode) && about.st_nlink == 1) continue;
        const std::string aside = aside_name(name, {static_cast<std::uint64_t>(::time(nullptr)), static_cast<std::uint64_t>(::getpid())});
        if (::renameat(directory_.get(), name.c_str(), directory_.get(), aside.c_str()) == 0) moved.push_back({path, layout_.root + "/" + aside});
    }
    return moved;
}

bool Door::still_ours() const {
    struct stat held = {}, named = {}, root = {}, root_named = {};
    return ::fstat(lock_.get(), &held) == 0 && ::fstatat(directory_.get(), "lock", &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           same_file(held, named) && ::fstat(directory_.get(), &root) == 0 &&
           ::lstat(layout_.root.c_str(), &root_named) == 0 && same_file(root, root_named);
}

Result<Descriptor> Door::listen() {
    CAIRN_CHECK(lock_.get() >= 0);
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.get() < 0) return Status::from_errno(errno, "can not make a socket");
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    // Through the descriptor: the path itself may be longer than a socket's name can be.
    const std::string path = "/proc/self/fd/" + std::to_string(directory_.get()) + "/" + socket_being_made;
    CAIRN_CHECK(path.size() < sizeof name.sun_path);
    path.copy(name.sun_path, path.size());
    ::unlinkat(directory_.get(), socket_being_made, 0);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
        return Status::from_errno(errno, "can not bind the socket " + layout_.socket());
    if (::fchmodat(directory_.get(), socket_being_made, 0700, 0) != 0 || ::listen(socket.get(), backlog) != 0 ||
        ::renameat(directory_.get(), socket_being_made, directory_.get(), "sock") != 0)
        return Status::from_errno(errno, "can not listen on the socket " + layout_.socket());
    return socket;
}

void Door::remove_socket() {
    if (lock_.get() >= 0 && still_ours()) ::unlinkat(directory_.get(), "sock", 0);
}

Result<Peer> peer_of(int socket) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return Status::from_errno(errno, "can not tell who connects");
    return Peer{static_cast<std::uint32_t>(peer.uid), static_cast<std::uint64_t>(peer.pid)};
}

}  // namespace cairn
