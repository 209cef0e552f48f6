// cairn-describer: says where the variables of HDF5 files lie, one file after the other, to the process that started it. Not for people.
//
// It is made to die: a damaged file that crashes the library, hangs it or makes it take memory ends this process and nothing else. What ends it: its own limits, the end of
// the socket on which it is asked (while it works, by a signal), and whoever started it. Not PR_SET_PDEATHSIG: that speaks of the thread that started it, and threads of
// a daemon come and go.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "describer/hdf5.hpp"
#include "describer/hdf5_id.hpp"
#include "describer/talk.hpp"

namespace {

using namespace cairn;

constexpr rlim_t memory_max = 512 << 20;  // of its own: files are mapped, which does not count
constexpr rlim_t files_while_opening = 16, files_while_describing = 3;
constexpr std::uint64_t limit_ms_max = 3'600'000;

[[noreturn]] void leave(int code) { ::_exit(code); }

void limit(int resource, rlim_t soft, rlim_t hard) {
    const rlimit both{soft, hard};
    if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &both) != 0) leave(2);
}

void close_all_above(int last) {
    if (::close_range(static_cast<unsigned>(last) + 1, ~0u, 0) == 0) return;
    for (int fd = last + 1; fd < 65'536; ++fd) ::close(fd);  // an older kernel
}

void limit_itself() {
    close_all_above(2);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_FSIZE, 0, 0);
    limit(RLIMIT_NOFILE, files_while_opening, files_while_opening);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these map terabytes
    limit(RLIMIT_DATA, memory_max, memory_max);
#endif
}

// False: nobody asks any more.
bool receive(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = ::read(0, bytes.data(), bytes.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return true;
}

void send(ByteView bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::write(1, bytes.data(), bytes.size());
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) leave(1);
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
}

// SIGALRM ends it. Whoever asks has its own clock, and this one is for when that one is gone.
void end_after(std::uint64_t ms) {
    const itimerval once{{0, 0}, {static_cast<time_t>(ms / 1000), static_cast<suseconds_t>(ms % 1000 * 1000)}};
    ::setitimer(ITIMER_REAL, &once, nullptr);
}

// Whoever asked is gone. SIGIO says that something is new of the socket, which may as well be the request that was read already: the kernel tells of it when it is there, and a moment later.
void end_if_alone(int) {
    const int before = errno;
    pollfd socket{0, POLLRDHUP, 0};
    if (::poll(&socket, 1, 0) > 0) leave(1);
    errno = before;
}

// While it works, and reads nothing.
void end_with_the_socket(bool now) {
    const int flags = ::fcntl(0, F_GETFL);
    if (now && ::fcntl(0, F_SETOWN, ::getpid()) != 0) leave(2);
    if (::fcntl(0, F_SETFL, now ? flags | O_ASYNC : flags & ~O_ASYNC) != 0) leave(2);
    if (now) end_if_alone(0);  // the end came before
}

// Bytes of a file, as pages of it.
class Mapped {
  public:
    static Result<Mapped> open(const std::string& path, std::uint64_t offset, std::uint64_t length);
    Mapped(Mapped&& other) noexcept : pages_(std::exchange(other.pages_, nullptr)), mapped_(other.mapped_), bytes_(other.bytes_) {}
    ~Mapped() {
        if (pages_) ::munmap(pages_, mapped_);
    }
    ByteView bytes() const { return bytes_; }

  private:
    Mapped(void* pages, std::size_t mapped, ByteView bytes) : pages_(pages), mapped_(mapped), bytes_(bytes) {}
    void* pages_;
    std::size_t mapped_;
    ByteView bytes_;
};

Result<Mapped> Mapped::open(const std::string& path, std::uint64_t offset, std::uint64_t length) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return Status::from_errno(errno, "can not open it");
    struct stat about{};
    const bool known = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    const auto size = static_cast<std::uint64_t>(known ? about.st_size : 0);
    if (length == 0 || offset > size || length > size - offset) {
        ::close(file);
        return invalid_argument("no file, or one that is shorter than was said");
    }
    const std::uint64_t before = offset % static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    void* pages = ::mmap(nullptr, length + before, PROT_READ, MAP_SHARED, file, static_cast<off_t>(offset - before));
    const int error = errno;
    ::close(file);
    if (pages == MAP_FAILED) return Status::from_errno(error, "can not map it");
    return Mapped(pages, length + before, {static_cast<const std::byte*>(pages) + before, length});
}

Result<std::vector<Extent>> answer(const describer::Request& request) {
    const Result<Mapped> file = Mapped::open(request.path, request.offset, request.length);
    if (!file.ok()) return file.status();
    // No file that another one names is opened, whatever the library is led to do.
    limit(RLIMIT_NOFILE, files_while_describing, files_while_opening);
    Result<std::vector<Extent>> extents = describe_hdf5(file.value().bytes());
    limit(RLIMIT_NOFILE, files_while_opening, files_while_opening);
    return extents;
}

}  // namespace

int main() {
    limit_itself();
    struct sigaction look {};
    look.sa_handler = end_if_alone;
    look.sa_flags = SA_RESTART;
    if (::sigaction(SIGIO, &look, nullptr) != 0) leave(2);
    H5dont_atexit();
    H5PLset_loading_state(0);  // no plugins
    for (;;) {
        std::array<std::byte, describer::head_bytes> head_bytes;
        if (!receive(head_bytes)) leave(0);
        const Result<describer::Head> head = describer::request_head(head_bytes);
        if (!head.ok()) leave(1);
        Bytes body(head.value().bytes);
        if (!receive(body)) leave(0);
        const Result<describer::Request> request = describer::read_request(body);
        if (!request.ok()) leave(1);
        end_after(std::clamp<std::uint64_t>(request.value().limit_ms, 1, limit_ms_max));
        end_with_the_socket(true);
        const Bytes said = describer::answer_bytes(answer(request.value()));
        end_with_the_socket(false);
        send(said);
        end_after(0);
    }
}
