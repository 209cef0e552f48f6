#include "plain.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

namespace bench {

namespace {

[[noreturn]] void fail_at(const std::string& what, const std::string& path) { fail(what + " " + path + ": " + std::strerror(errno)); }

void write_run(int fd, const std::byte* data, std::uint64_t bytes, std::uint64_t offset, const std::string& path) {
    while (bytes > 0) {
        const ssize_t wrote = ::pwrite(fd, data, bytes, static_cast<off_t>(offset));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) fail_at("writing", path);
        data += wrote;
        offset += static_cast<std::uint64_t>(wrote);
        bytes -= static_cast<std::uint64_t>(wrote);
    }
}

void write_chunks(int fd, const WarmMemory& from, std::uint64_t chunk_bytes, std::uint64_t offset, const std::string& path) {
    for (std::uint64_t at = 0; at < from.bytes(); at += chunk_bytes)
        write_run(fd, from.data() + at, std::min(chunk_bytes, from.bytes() - at), offset + at, path);
}

int open_or_fail(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (fd < 0) fail_at("opening", path);
    return fd;
}

void finish(int fd, const std::string& path) {
    if (::fsync(fd) != 0) fail_at("fsync of", path);
    ::close(fd);
}

// One writer: `bytes` in all, from memory that is used again from its start when it is shorter.
void write_fresh(const std::string& path, const WarmMemory& from, std::uint64_t bytes, std::uint64_t chunk_bytes) {
    const int fd = open_or_fail(path, O_WRONLY | O_CREAT | O_EXCL);
    for (std::uint64_t at = 0; at < bytes;) {
        const std::uint64_t begin = at % from.bytes();
        const std::uint64_t now = std::min({chunk_bytes, bytes - at, from.bytes() - begin});
        write_run(fd, from.data() + begin, now, at, path);
        at += now;
    }
    finish(fd, path);
}

}  // namespace

std::string PlainFiles::own_file() const { return directory + "/rank-" + std::to_string(team.rank()) + tag; }

double PlainFiles::copy(const WarmMemory& into) const {
    team.meet();
    const double begin = now_s();
    std::memcpy(into.data(), image.data(), image.bytes());
    const double end = now_s();
    return team.span_s(begin, end);
}

double PlainFiles::fresh_copy() const {
    const int fd = ::memfd_create("cairn-bench", MFD_CLOEXEC);
    if (fd < 0) fail_at("making", "a file in memory");
    team.meet();
    const double begin = now_s();
    if (::ftruncate(fd, static_cast<off_t>(image.bytes())) != 0) fail_at("sizing", "a file in memory");
    void* into = ::mmap(nullptr, image.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (into == MAP_FAILED || ::madvise(into, image.bytes(), MADV_POPULATE_WRITE) != 0) fail_at("mapping", "a file in memory");
    std::memcpy(into, image.data(), image.bytes());
    const double end = now_s();
    ::munmap(into, image.bytes());
    ::close(fd);
    return team.span_s(begin, end);
}

double PlainFiles::write(const Writers& writers) const {
    const std::uint64_t total = writers.bytes != 0 ? writers.bytes : team.sum(image.bytes());
    const std::uint64_t each = total / static_cast<std::uint64_t>(writers.count);
    struct Mine {
        std::string path, made_as;
    };
    std::vector<Mine> mine;
    for (int writer = 0; writer < writers.count; ++writer) {
        const auto nth = static_cast<std::size_t>(writer);
        const int whose = writers.ranks.empty() ? writer % team.ranks() : writers.ranks[nth % writers.ranks.size()];
        if (whose != team.rank()) continue;
        const std::string path = directory + "/writer-" + std::to_string(writer) + tag;
        mine.push_back({path, writers.suffixes.empty() ? path : path + writers.suffixes[nth % writers.suffixes.size()]});
    }
    team.meet();
    const double begin = now_s();
    std::vector<std::thread> threads;
    for (const Mine& file : mine) threads.emplace_back([&, name = file.made_as] { write_fresh(name, image, each, chunk_bytes); });
    for (std::thread& thread : threads) thread.join();
    // A rank without a writer has no say in the time.
    const double end = mine.empty() ? begin : now_s();
    const double took = team.span_s(begin, end);
    for (const Mine& file : mine) ::unlink(file.path.c_str());
    team.meet();
    return took;
}

double PlainFiles::file_per_rank(const std::vector<std::string>& suffixes) const {
    const std::string path = own_file();
    ::unlink(path.c_str());
    team.meet();
    const double begin = now_s();
    write_fresh(suffixes.empty() ? path : path + suffixes[static_cast<std::size_t>(team.rank()) % suffixes.size()], image, image.bytes(), chunk_bytes);
    return team.span_s(begin, now_s());
}

void PlainFiles::write_own_file(const WarmMemory& from) const {
    const std::string path = own_file();
    ::unlink(path.c_str());  // of the checkpoint before
    const int fd = open_or_fail(path, O_WRONLY | O_CREAT | O_EXCL);
    write_chunks(fd, from, chunk_bytes, 0, path);
    finish(fd, path);
}

double PlainFiles::shared_file() const {
    const std::string path = directory + "/shared" + tag;
    const std::uint64_t offset = team.sum_before(image.bytes());
    if (team.rank() == 0) ::close(open_or_fail(path, O_WRONLY | O_CREAT | O_EXCL));
    team.meet();
    const double begin = now_s();
    const int fd = open_or_fail(path, O_WRONLY);
    write_chunks(fd, image, chunk_bytes, offset, path);
    finish(fd, path);
    const double took = team.span_s(begin, now_s());
    if (team.rank() == 0) ::unlink(path.c_str());
    team.meet();
    return took;
}

double PlainFiles::collective(int files, const Hints& hints) const {
    constexpr std::uint64_t call_bytes_max = 1u << 30;  // the count of a call is an int
    const int group = static_cast<int>(static_cast<long>(team.rank()) * files / team.ranks());
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(team.comm(), group, team.rank(), &comm);
    const Team members(comm, Team::Clock::one);  // asked for sums, not for times
    const std::string path = directory + "/collective-" + std::to_string(group) + tag;
    const std::uint64_t offset = members.sum_before(image.bytes());
    const auto calls = static_cast<std::uint64_t>(members.most(static_cast<double>((image.bytes() + call_bytes_max - 1) / call_bytes_max)));
    MPI_Info info = MPI_INFO_NULL;
    if (!hints.empty()) MPI_Info_create(&info);
    for (const auto& [key, value] : hints) MPI_Info_set(info, key.c_str(), value.c_str());
    team.meet();
    const double begin = now_s();
    MPI_File file = MPI_FILE_NULL;
    if (MPI_File_open(comm, path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file) != MPI_SUCCESS) fail("MPI_File_open of " + path);
    for (std::uint64_t call = 0; call < calls; ++call) {
        const std::uint64_t at = std::min(call * call_bytes_max, image.bytes());
        const auto now = static_cast<int>(std::min(call_bytes_max, image.bytes() - at));
        if (MPI_File_write_at_all(file, static_cast<MPI_Offset>(offset + at), image.data() + at, now, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            fail("MPI_File_write_at_all to " + path);
    }
    if (MPI_File_sync(file) != MPI_SUCCESS) fail("MPI_File_sync of " + path);
    MPI_File_close(&file);
    const double took = team.span_s(begin, now_s());
    if (members.rank() == 0) ::unlink(path.c_str());
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    team.meet();
    return took;
}

double PlainFiles::read_back(const WarmMemory& into) const {
    const std::string path = own_file();
    team.meet();
    const double begin = now_s();
    const int fd = open_or_fail(path, O_RDONLY);
    for (std::uint64_t at = 0; at < image.bytes();) {
        const ssize_t got = ::pread(fd, into.data() + at, std::min(chunk_bytes, image.bytes() - at), static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) fail_at("reading", path);
        at += static_cast<std::uint64_t>(got);
    }
    ::close(fd);
    return team.span_s(begin, now_s());
}

void PlainFiles::remove_kept() const {
    ::unlink(own_file().c_str());
    team.meet();
}

}  // namespace bench
