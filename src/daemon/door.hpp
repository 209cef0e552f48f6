// Door: the daemon's directory in scratch, its lock and its socket (rules 7 and 11).
//
// Order kept: the directory is made 0700 and proved to be this user's own before anything in it is trusted; the lock is
// taken before the socket's name is touched and held until the process ends; the socket listens before its name
// appears; its name is removed before the lock goes. So whoever finds the socket refusing him knows that nobody holds
// the lock for long.
#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "catalog/layout.hpp"

namespace cairn {

class Descriptor {
  public:
    Descriptor() noexcept = default;
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) reset(other.release());
        return *this;
    }
    ~Descriptor() { reset(-1); }
    int get() const noexcept { return fd_; }
    int release() noexcept {
        const int fd = fd_;
        fd_ = -1;
        return fd;
    }
    void reset(int fd) noexcept;

  private:
    int fd_ = -1;
};

class Door {
  public:
    // Makes what is missing of the directory and its rooms (images/, jobs/). `scratch` itself must exist.
    static Result<Door> open(const std::string& scratch, const ScratchLayout& layout);

    // False: another daemon lives here. Does not wait.
    Result<bool> lock();
    // What stands in the place of the daemon's own files and is none of its own (a link, a FIFO, a directory, a file with another name) gets another name, so that
    // nothing is written through it or waits for it. Only with the lock; before the log is opened.
    struct Moved {
        std::string path, to;
    };
    std::vector<Moved> put_strangers_aside();
    // The lock's file and the directory are still the ones under their names: nobody wiped scratch.
    bool still_ours() const;

    // A listening socket under the name; only with the lock. A stale socket is replaced.
    Result<Descriptor> listen();
    // Takes the socket's name away, unless the directory is not ours any more. Who is connected stays so.
    void remove_socket();

    const ScratchLayout& layout() const noexcept { return layout_; }

  private:
    ScratchLayout layout_;
    Descriptor directory_;
    Descriptor lock_;
};

// Who is at the other end of a connected unix socket, as the kernel saw it connect. The process is numbered as here, which in a container it
// does not know itself; 0 when it can not be seen from here.
struct Peer {
    std::uint32_t uid = 0;
    std::uint64_t pid = 0;
};
Result<Peer> peer_of(int socket);

}  // namespace cairn
