// RealStorage: files of the real world. Reads, writes and fsync go through io_uring, or through a pool of threads where
// the kernel refuses it or a setting says so; all else (names, directories, sizes) always through threads.
//
// An operation that is past its deadline when asked for is not begun. One that has not come back by its deadline is
// reported and goes on in the background, holding its file and buffer; statistics().quarantined counts these.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "world/real/worker_pool.hpp"
#include "world/storage.hpp"

namespace cairn {

class Loop;
class Operation;
class RealFile;
class Ring;
class Transfer;
enum class TransferKind : std::uint8_t;

// The kernel lets io_uring make one buffered write a file at a time, as tmpfs and most local file systems do anyhow.
// Where a file system takes several into one file and few files are asked for, threads (or direct I/O) may be faster.
enum class IoBackend : std::uint8_t {
    automatic,  // io_uring where the kernel has it, else threads
    uring,
    threads,
};

struct StorageOptions {
    IoBackend backend = IoBackend::automatic;
    unsigned workers = 16;    // operations of each kind (transfers, names) that run at the same time
    unsigned stuck_max = 64;  // threads that may be replaced because they do not come back
    ThreadClass thread_class;  // of the threads that read and write, the kernel's among them
    std::shared_ptr<Placer> placer;  // none: files lie where the file system puts them
    std::string local;  // scratch, where ranks wait for what is done (never less than nice 19): a directory whose files have threads of their own, also for transfers: none is missing there when another file system hangs
};

// Times are summed over operations, which overlap: they can be more than the time on the wall.
struct StorageStatistics {
    std::uint64_t writes = 0;
    std::uint64_t write_bytes = 0;
    Nanos write_ns = 0;
    std::uint64_t reads = 0;
    std::uint64_t read_bytes = 0;
    Nanos read_ns = 0;
    std::uint64_t fsyncs = 0;
    Nanos fsync_ns = 0;
    std::uint64_t given_up = 0;  // operations that did not come back by their deadline, or that nobody wanted any more
    std::uint64_t quarantined = 0;  // of these, the ones that have not come back yet
};

class RealStorage final : public Storage {
  public:
    // unsupported when io_uring is asked for by name and refused. The loop outlives the storage.
    static Result<std::unique_ptr<RealStorage>> create(Loop& loop, StorageOptions options);
    ~RealStorage() override;

    // Of the pools' threads that read and write from now on; and of the kernel's, for the calling thread, which is of no lower class.
    void set_class(ThreadClass pools, ThreadClass kernel);

    std::string_view backend_name() const noexcept;  // "io_uring" or "threads"
    // Why automatic did not choose io_uring; empty when it did or was not asked to.
    const std::string& backend_reason() const noexcept { return reason_; }
    const StorageStatistics& statistics() const noexcept { return *statistics_; }

    Result<BufferPtr> allocate(std::uint64_t bytes) override;
    Task<Result<FilePtr>> open(std::string path, OpenOptions options, Nanos deadline) override;
    Task<Result<std::uint64_t>> write_some(FilePtr file, std::uint64_t offset, Slice data, Nanos deadline) override;
    Task<Result<std::uint64_t>> read_some(FilePtr file, std::uint64_t offset, Slice into, Nanos deadline) override;
    Task<Result<std::vector<std::uint64_t>>> read_checksummed(FilePtr file, std::uint64_t offset, std::uint64_t length, Units units, std::vector<Destination> into, Nanos deadline) override;
    Task<Status> fsync(FilePtr file, Nanos deadline) override;
    Task<Result<std::uint64_t>> file_bytes(FilePtr file, Nanos deadline) override;
    Task<Status> resize(FilePtr file, std::uint64_t bytes, Nanos deadline) override;
    Task<Status> make_directory(std::string path, std::uint32_t permissions, Nanos deadline) override;
    Task<Status> fsync_directory(std::string path, Nanos deadline) override;
    Task<Status> fsync_name(std::string path, Nanos deadline) override;
    Task<Status> publish(std::string from, std::string to, Nanos deadline) override;
    Task<Status> replace(std::string from, std::string to, Nanos deadline) override;
    Task<Status> remove(std::string path, Nanos deadline) override;
    Task<Status> remove_directory(std::string path, Nanos deadline) override;
    Task<Result<std::vector<DirectoryEntry>>> list(std::string path, Nanos deadline) override;
    Task<Result<std::uint64_t>> free_bytes(std::string directory, Nanos deadline) override;
    Task<Result<std::vector<TargetRoom>>> target_rooms(std::string directory, std::string by, Nanos deadline) override;
    Task<Result<BufferPtr>> map(std::string path, bool writable, Nanos deadline) override;

  private:
    RealStorage(Loop& loop, StorageOptions options);
    WorkerPool& pool_of(const std::string& path);
    bool by_ring(const WorkerPool& pool) const noexcept { return ring_ && &pool == &pool_; }  // its transfers
    template <class R>
    Task<R> perform(WorkerPool& pool, std::function<R()> work, std::string what, Nanos deadline);
    Task<Result<std::uint64_t>> transfer(TransferKind kind, FilePtr file, std::uint64_t offset, Slice slice,
                                         Nanos deadline);
    Status begin(WorkerPool& pool, const std::shared_ptr<Transfer>& transfer);
    void give_up(WorkerPool& pool, const std::shared_ptr<Operation>& operation);
    void count(const Transfer& transfer, Nanos began);

    // In a frame while it waits: gives the operation up when the frame ends before it.
    struct Waiting;

    Loop& loop_;
    std::shared_ptr<StorageStatistics> statistics_ = std::make_shared<StorageStatistics>();
    std::string reason_;
    std::string local_;
    std::shared_ptr<Placer> placer_;
    WorkerPool pool_, local_pool_;
    std::unique_ptr<Ring> ring_;
};

}  // namespace cairn
