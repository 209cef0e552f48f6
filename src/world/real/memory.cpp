#include "world/real/memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace cairn {

namespace {

constexpr std::uint64_t huge_page_bytes = 2ull << 20;

std::atomic<std::uint64_t> bytes_now{0};
std::atomic<std::uint64_t> bytes_peak{0};

void count(std::uint64_t bytes) noexcept {
    const std::uint64_t now = bytes_now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::uint64_t peak = bytes_peak.load(std::memory_order_relaxed);
    while (peak < now && !bytes_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
}

class AnonymousBuffer final : public Buffer {
  public:
    AnonymousBuffer(std::byte* data, std::uint64_t size, std::uint64_t mapped)
        : data_(data), size_(size), mapped_(mapped) {
        count(mapped_);
    }
    AnonymousBuffer(const AnonymousBuffer&) = delete;
    ~AnonymousBuffer() override {
        ::munmap(data_, mapped_);
        bytes_now.fetch_sub(mapped_, std::memory_order_relaxed);
    }
    std::byte* data() noexcept override { return data_; }
    std::uint64_t size() const noexcept override { return size_; }

  private:
    std::byte* data_;
    std::uint64_t size_;
    std::uint64_t mapped_;
};

// A range of addresses that a file is mapped to, for a signal handler, which takes no locks and looks while others change the list: ranges are
// used again, never freed. `begin` is set last and cleared first.
struct MappedRange {
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uint64_t> size{0};
    std::atomic<bool> has_lost_bytes{false};
    std::atomic<bool> used{true};
    MappedRange* next = nullptr;
};
std::atomic<MappedRange*> mapped_ranges{nullptr};

MappedRange* take_range(void* data, std::uint64_t size) {
    MappedRange* range = mapped_ranges.load();
    for (bool free = false; range && !range->used.compare_exchange_strong(free, true); free = false) range = range->next;
    if (!range) {
        range = new MappedRange;  // for the life of the process: as many as were ever mapped at once
        range->next = mapped_ranges.load();
        while (!mapped_ranges.compare_exchange_weak(range->next, range)) {
        }
    }
    range->has_lost_bytes = false;
    range->size = size;
    range->begin = reinterpret_cast<std::uintptr_t>(data);
    return range;
}

class MappedBuffer final : public Buffer {
  public:
    MappedBuffer(void* data, std::uint64_t size, std::function<void(std::function<void()>)> dispose)
        : data_(data), size_(size), dispose_(std::move(dispose)), range_(take_range(data, size)) {}
    MappedBuffer(const MappedBuffer&) = delete;
    ~MappedBuffer() override {
        range_->begin = 0;
        range_->used = false;
        if (size_ != 0) dispose_([data = data_, size = size_] { ::munmap(data, size); });
    }
    bool has_lost_bytes() const noexcept override { return range_->has_lost_bytes; }
    std::byte* data() noexcept override { return size_ != 0 ? static_cast<std::byte*>(data_) : &nothing_; }
    std::uint64_t size() const noexcept override { return size_; }
    bool is_mapped() const noexcept override { return true; }

  private:
    void* data_;
    std::uint64_t size_;
    std::function<void(std::function<void()>)> dispose_;
    MappedRange* range_;
    std::byte nothing_{};
};

std::uintptr_t page_bytes = 4096;  // set before the handler is

// The rest of the file goes with the page: what is left of it proves nothing. First the mark, then the zeros, so that whoever has read zeros
// finds the mark.
void on_bus_error(int number, siginfo_t* about, void*) {
    const int error = errno;
    const auto address = reinterpret_cast<std::uintptr_t>(about->si_addr);
    for (MappedRange* range = mapped_ranges.load(); range; range = range->next) {
        const std::uintptr_t begin = range->begin;
        const std::uint64_t size = range->size;
        if (begin == 0 || address < begin || address - begin >= size) continue;
        range->has_lost_bytes = true;
        const std::uintptr_t page = address - (address - begin) % page_bytes;
        void* const zeros = ::mmap(reinterpret_cast<void*>(page), begin + size - page, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        if (zeros == MAP_FAILED) break;
        errno = error;
        return;
    }
    ::signal(number, SIG_DFL);  // it comes again when the instruction is repeated
}

}  // namespace

void survive_lost_bytes() {
    page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigaction(SIGBUS, &action, nullptr);
}

Result<BufferPtr> allocate_memory(std::uint64_t bytes) {
    const std::string what = "allocating " + std::to_string(bytes) + " bytes of memory";
    if (bytes > (1ull << 56)) return Status(Code::out_of_space, what);
    // Starting on a huge page is what lets the kernel use them; the surplus at both ends is given back at once.
    const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const bool huge = bytes >= 2 * huge_page_bytes;
    const std::uint64_t wanted = round_up(bytes != 0 ? bytes : 1, page_bytes);
    const std::uint64_t surplus = huge ? huge_page_bytes : 0;
    void* const got = ::mmap(nullptr, wanted + surplus, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) {
        const Status status = Status::from_errno(errno, what);
        return Status(Code::out_of_space, status.text());
    }
    auto* start = static_cast<std::byte*>(got);
    if (huge) {
        const auto address = reinterpret_cast<std::uintptr_t>(got);
        const std::uint64_t before = round_up(address, huge_page_bytes) - address;
        if (before != 0) ::munmap(start, before);
        if (surplus != before) ::munmap(start + before + wanted, surplus - before);
        start += before;
        ::madvise(start, wanted, MADV_HUGEPAGE);  // a wish: refused where the kernel has none
    }
    return BufferPtr(std::make_shared<AnonymousBuffer>(start, bytes, wanted));
}

SharedMemory::SharedMemory(int descriptor, std::byte* data, std::uint64_t size) : descriptor_(descriptor), data_(data), size_(size) {
    static std::atomic<std::uint64_t> last{0};
    number_ = ++last;
    count(size_);
}

SharedMemory::~SharedMemory() {
    ::munmap(data_, size_);
    ::close(descriptor_);
    bytes_now.fetch_sub(size_, std::memory_order_relaxed);
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::allocate(std::uint64_t bytes) {
    const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t size = round_up(bytes != 0 ? bytes : 1, page_bytes);
    const auto failed = [&] { return Status(Code::out_of_space, Status::from_errno(errno, "allocating " + std::to_string(bytes) + " bytes of shared memory").text()); };
    const int descriptor = ::memfd_create("cairn-pieces", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return failed();
    void* data = MAP_FAILED;
    if (::ftruncate(descriptor, static_cast<off_t>(size)) == 0 && ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) {
        const Status status = failed();
        ::close(descriptor);
        return status;
    }
    return std::shared_ptr<SharedMemory>(new SharedMemory(descriptor, static_cast<std::byte*>(data), size));
}

std::uint64_t memory_bytes() noexcept { return bytes_now.load(std::memory_order_relaxed); }
std::uint64_t memory_bytes_peak() noexcept { return bytes_peak.load(std::memory_order_relaxed); }

Result<BufferPtr> map_file(const std::string& path, bool writable, std::function<void(std::function<void()>)> dispose) {
    const int fd = ::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return Status::from_errno(errno, "opening " + path + " to map it");
    struct stat about = {};
    Status status;
    void* data = nullptr;
    if (::fstat(fd, &about) != 0) {
        status = Status::from_errno(errno, "asking the size of " + path);
    } else if (!S_ISREG(about.st_mode)) {
        status = invalid_argument(path + " can not be mapped: it is not a regular file");
    } else if (about.st_size != 0) {
        const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
        data = ::mmap(nullptr, static_cast<std::size_t>(about.st_size), protection, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED) status = Status::from_errno(errno, "mapping " + path);
    }
    ::close(fd);
    if (!status.ok()) return status;
    const auto bytes = static_cast<std::uint64_t>(about.st_size);
    return BufferPtr(std::make_shared<MappedBuffer>(data, bytes, std::move(dispose)));
}

}  // namespace cairn
