// As its public sources have it (ECP-VeloC/VELOC, src/backend/work_queue.cpp): a file a rank, no file is shared; each is copied by one thread, which has
// lowered its priority by nice(10) first; a node has as many such threads as cores, here as many as ranks. Beyond it, what is copied is made durable
// (fsync), since that is what everybody in the race is timed to. Not in it: the message to the backend, and its bookkeeping, which take no bytes.
#include "veloc.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

namespace bench {

namespace {

constexpr int niceness = 10;

[[noreturn]] void veloc_fails(const std::string& what, const std::string& path) { fail(what + " " + path + ": " + std::strerror(errno)); }

void lower_priority() {
    // Of this thread alone: on Linux priorities are a thread's.
    const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
    if (::setpriority(PRIO_PROCESS, thread, niceness) != 0) fail(std::string("lowering a thread's priority: ") + std::strerror(errno));
}

void copy_file(const std::string& from, const std::string& to, std::uint64_t chunk_bytes) {
    const int source = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
    if (source < 0) veloc_fails("opening", from);
    const int target = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (target < 0) veloc_fails("opening", to);
    std::vector<char> buffer(chunk_bytes);
    for (;;) {
        const ssize_t got = ::read(source, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) veloc_fails("reading", from);
        if (got == 0) break;
        for (ssize_t at = 0; at < got;) {
            const ssize_t wrote = ::write(target, buffer.data() + at, static_cast<std::size_t>(got - at));
            if (wrote < 0 && errno == EINTR) continue;
            if (wrote <= 0) veloc_fails("writing", to);
            at += wrote;
        }
    }
    if (::fsync(target) != 0) veloc_fails("fsync of", to);
    ::close(target);
    ::close(source);
}

void write_scratch(const std::string& path, const WarmMemory& image) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) veloc_fails("opening", path);
    for (std::uint64_t at = 0; at < image.bytes();) {
        const ssize_t wrote = ::write(fd, image.data() + at, image.bytes() - at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) veloc_fails("writing", path);
        at += static_cast<std::uint64_t>(wrote);
    }
    ::close(fd);
}

}  // namespace

VelocTimes as_veloc_does(const PlainFiles& plain, const std::string& scratch) {
    const Team& team = plain.team;
    const std::string name = "/veloc-" + std::to_string(team.rank()) + plain.tag, local = scratch + name, lasting = plain.directory + name;
    team.meet();
    team.meet();
    const double begin = now_s();
    write_scratch(local, plain.image);
    const double copied = now_s();
    double durable = 0;
    std::thread worker([&] {
        lower_priority();
        copy_file(local, lasting, plain.chunk_bytes);
        durable = now_s();
    });
    worker.join();
    const VelocTimes times = {team.span_s(begin, copied), team.most(durable) - team.most(copied)};
    ::unlink(local.c_str());
    ::unlink(lasting.c_str());
    team.meet();
    return times;
}

}  // namespace bench
