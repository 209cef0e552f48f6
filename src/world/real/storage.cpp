#include "world/real/storage.hpp"

#include <unistd.h>

#include <algorithm>

#include "world/real/checksummed_read.hpp"
#include "world/real/files.hpp"
#include "world/real/loop.hpp"
#include "world/real/memory.hpp"
#include "world/real/operation.hpp"
#include "world/real/ring.hpp"

namespace cairn {

namespace {

std::string describe(TransferKind kind, const File& file, std::uint64_t offset, std::uint64_t length) {
    if (is_fsync(kind)) return "fsync of " + file.path();
    const char* const doing = kind == TransferKind::read ? "reading " : "writing ";
    return doing + std::to_string(length) + " bytes at " + std::to_string(offset) + " of " + file.path();
}

// What runs only where a processor would idle would keep the ranks waiting that ask for it, since they copy on all processors.
ThreadClass answering(ThreadClass wanted) { return {std::max(wanted.cpu, CpuClass::low), IoClass::normal}; }

Status too_late(const std::string& what) { return deadline_passed(what + ": not done in the time allowed"); }

std::shared_ptr<RealFile> as_real(const FilePtr& file) {
    auto real = std::dynamic_pointer_cast<RealFile>(file);
    CAIRN_CHECK(real != nullptr);  // a file of another world
    return real;
}

}  // namespace

void Transfer::run() {
    const auto at = static_cast<off_t>(offset);
    ssize_t moved = -1;
    do {
        switch (kind) {
            case TransferKind::read:
                moved = ::pread(route.descriptor, slice.data(), route.length, at);
                break;
            case TransferKind::write:
                moved = ::pwrite(route.descriptor, slice.data(), route.length, at);
                break;
            case TransferKind::fsync:
            case TransferKind::fsync_direct:
                moved = ::fsync(route.descriptor);
                break;
        }
        // A pipe or a terminal has no offsets; io_uring goes on from where it stands, so do we.
        if (moved < 0 && errno == ESPIPE && kind == TransferKind::read)
            moved = ::read(route.descriptor, slice.data(), route.length);
        if (moved < 0 && errno == ESPIPE && kind == TransferKind::write)
            moved = ::write(route.descriptor, slice.data(), route.length);
    } while (moved < 0 && errno == EINTR && !is_fsync(kind));  // a second fsync would hide what the first one met
    result = moved < 0 ? -errno : moved;
}

struct RealStorage::Waiting {
    RealStorage& storage;
    WorkerPool& pool;
    std::shared_ptr<Operation> operation;
    Waiting(RealStorage& s, WorkerPool& p, std::shared_ptr<Operation> o) : storage(s), pool(p), operation(std::move(o)) {}
    Waiting(const Waiting&) = delete;
    ~Waiting() {
        if (!operation->done()) storage.give_up(pool, operation);
    }
};

Result<std::unique_ptr<RealStorage>> RealStorage::create(Loop& loop, StorageOptions options) {
    std::unique_ptr<RealStorage> storage(new RealStorage(loop, options));
    if (options.backend == IoBackend::threads) return storage;
    Result<std::unique_ptr<Ring>> ring = Ring::create(loop, options.workers, options.thread_class);
    if (ring.ok()) {
        storage->ring_ = std::move(*ring);
    } else if (options.backend == IoBackend::uring) {
        return Status(Code::unsupported, ring.status().text() + "; choose threads, or automatic");
    } else {
        storage->reason_ = ring.status().text();
    }
    return storage;
}

RealStorage::RealStorage(Loop& loop, StorageOptions options)
    : loop_(loop),
      local_(options.local),
      placer_(options.placer),
      pool_(loop.remote(), {.name = "cairn-io", .threads_max = options.workers, .stuck_max = options.stuck_max, .thread_class = options.thread_class}),
      local_pool_(loop.remote(),
                  {.name = "cairn-local", .threads_max = options.workers, .stuck_max = options.stuck_max, .thread_class = answering(options.thread_class)}) {}

RealStorage::~RealStorage() = default;

void RealStorage::set_class(ThreadClass pools, ThreadClass kernel) {
    pool_.set_class(pools);
    local_pool_.set_class(answering(pools));
    if (ring_) ring_->set_class(kernel);
}

std::string_view RealStorage::backend_name() const noexcept { return ring_ ? "io_uring" : "threads"; }

WorkerPool& RealStorage::pool_of(const std::string& path) {
    const bool is_local = !local_.empty() && path.starts_with(local_) && (path.size() == local_.size() || path[local_.size()] == '/');
    return is_local ? local_pool_ : pool_;
}

Result<BufferPtr> RealStorage::allocate(std::uint64_t bytes) { return allocate_memory(bytes); }

// Called for an operation that is not over: at its deadline, or when the coroutine that waited is destroyed.
void RealStorage::give_up(WorkerPool& pool, const std::shared_ptr<Operation>& operation) {
    ++statistics_->given_up;
    ++statistics_->quarantined;
    operation->when_late([statistics = statistics_] { --statistics->quarantined; });
    const auto transfer = by_ring(pool) ? std::dynamic_pointer_cast<Transfer>(operation) : nullptr;
    const bool gone = transfer ? ring_->abandon(transfer) : pool.abandon(operation);
    if (gone) --statistics_->quarantined;
}

template <class R>
Task<R> RealStorage::perform(WorkerPool& pool, std::function<R()> work, std::string what, Nanos deadline) {
    if (loop_.now() >= deadline) co_return too_late(what);
    auto call = std::make_shared<Call<R>>(loop_, std::move(work));
    CO_TRY(pool.submit(call).within(what));
    const Waiting waiting(*this, pool, call);
    while (!call->done() && loop_.now() < deadline) co_await call->ended().wait(deadline);
    if (!call->done()) co_return too_late(what);
    co_return call->take();
}

Status RealStorage::begin(WorkerPool& pool, const std::shared_ptr<Transfer>& transfer) {
    if (!by_ring(pool)) return pool.submit(transfer);
    ring_->submit(transfer);
    return {};
}

void RealStorage::count(const Transfer& transfer, Nanos began) {
    const Nanos took = loop_.now() - began;
    const std::uint64_t bytes = transfer.result > 0 ? static_cast<std::uint64_t>(transfer.result) : 0;
    StorageStatistics& s = *statistics_;
    switch (transfer.kind) {
        case TransferKind::read:
            ++s.reads, s.read_bytes += bytes, s.read_ns += took;
            break;
        case TransferKind::write:
            ++s.writes, s.write_bytes += bytes, s.write_ns += took;
            break;
        case TransferKind::fsync:
        case TransferKind::fsync_direct:
            ++s.fsyncs, s.fsync_ns += took;
            break;
    }
}

Task<Result<std::uint64_t>> RealStorage::transfer(TransferKind kind, FilePtr file, std::uint64_t offset, Slice slice,
                                                  Nanos deadline) {
    const std::shared_ptr<RealFile> real = as_real(file);
    WorkerPool& pool = pool_of(real->path());
    if (!is_fsync(kind) && slice.length == 0) co_return std::uint64_t{0};
    for (;;) {
        const Nanos began = loop_.now();
        if (began >= deadline) co_return too_late(describe(kind, *file, offset, slice.length));
        auto operation = std::make_shared<Transfer>(loop_, kind, real, slice, offset);
        CO_TRY(begin(pool, operation).within(describe(kind, *file, offset, slice.length)));
        const Waiting waiting(*this, pool, operation);
        while (!operation->done() && loop_.now() < deadline) co_await operation->ended().wait(deadline);
        if (!operation->done()) co_return too_late(describe(kind, *file, offset, slice.length));
        count(*operation, began);
        if (operation->result >= 0) co_return static_cast<std::uint64_t>(operation->result);
        const bool refused = (operation->result == -EINVAL || operation->result == -EOPNOTSUPP) && operation->route.direct;
        if (!refused)
            co_return Status::from_errno(static_cast<int>(-operation->result),
                                         describe(kind, *file, offset, slice.length));
        real->refuse_direct();
    }
}

Task<Result<std::uint64_t>> RealStorage::write_some(FilePtr file, std::uint64_t offset, Slice data, Nanos deadline) {
    return transfer(TransferKind::write, std::move(file), offset, std::move(data), deadline);
}

Task<Result<std::uint64_t>> RealStorage::read_some(FilePtr file, std::uint64_t offset, Slice into, Nanos deadline) {
    return transfer(TransferKind::read, std::move(file), offset, std::move(into), deadline);
}

// In a thread whatever the backend: it is work for a processor as well.
Task<Result<std::vector<std::uint64_t>>> RealStorage::read_checksummed(FilePtr file, std::uint64_t offset, std::uint64_t length, Units units, std::vector<Destination> into, Nanos deadline) {
    const std::string what = describe(TransferKind::read, *file, offset, length);
    const Nanos began = loop_.now();
    if (began >= deadline) co_return too_late(what);
    WorkerPool& pool = pool_of(file->path());
    auto reading = std::make_shared<ChecksummedRead>(loop_, as_real(file), offset, length, units, std::move(into));
    CO_TRY(pool.submit(reading).within(what));
    const Waiting waiting(*this, pool, reading);
    const ChecksummedRead::Closing closing(*reading);
    while (!reading->done() && loop_.now() < deadline) co_await reading->ended().wait(deadline);
    if (!reading->done()) co_return too_late(what);
    ++statistics_->reads, statistics_->read_bytes += reading->read_bytes(), statistics_->read_ns += loop_.now() - began;
    co_return reading->take(what);
}

Task<Status> RealStorage::fsync(FilePtr file, Nanos deadline) {
    Slice nothing;
    if (as_real(file)->direct_descriptor() >= 0) {
        Result<std::uint64_t> direct = co_await transfer(TransferKind::fsync_direct, file, 0, nothing, deadline);
        if (!direct.ok()) co_return std::move(direct).status();
    }
    Result<std::uint64_t> done = co_await transfer(TransferKind::fsync, std::move(file), 0, nothing, deadline);
    co_return std::move(done).status();
}

Task<Result<FilePtr>> RealStorage::open(std::string path, OpenOptions options, Nanos deadline) {
    WorkerPool& pool = pool_of(path);
    std::string what = "opening " + path;
    const Nanos limit = (deadline - loop_.now()) / 2;  // the other half is for making the file without the placer
    std::function<Result<FilePtr>()> work = [path, options, dispose = pool.disposer(), placer = placer_, limit] {
        return RealFile::open(path, options, dispose, placer.get(), limit);
    };
    return perform(pool, std::move(work), std::move(what), deadline);
}

Task<Result<std::uint64_t>> RealStorage::file_bytes(FilePtr file, Nanos deadline) {
    std::string what = "asking the size of " + file->path();
    std::function<Result<std::uint64_t>()> work = [real = as_real(file)] { return size_of(*real); };
    return perform(pool_of(file->path()), std::move(work), std::move(what), deadline);
}

Task<Status> RealStorage::resize(FilePtr file, std::uint64_t bytes, Nanos deadline) {
    std::string what = "resizing " + file->path();
    std::function<Status()> work = [real = as_real(file), bytes] { return resize_file(*real, bytes); };
    return perform(pool_of(file->path()), std::move(work), std::move(what), deadline);
}

Task<Status> RealStorage::make_directory(std::string path, std::uint32_t permissions, Nanos deadline) {
    std::string what = "making the directory " + path;
    std::function<Status()> work = [path, permissions] { return cairn::make_directory(path, permissions); };
    return perform(pool_of(path), std::move(work), std::move(what), deadline);
}

Task<Status> RealStorage::fsync_directory(std::string path, Nanos deadline) {
    std::string what = "fsync of the directory " + path;
    std::function<Status()> work = [path] { return cairn::fsync_directory(path); };
    return perform(pool_of(path), std::move(work), std::move(what), deadline);
}

Task<Status> RealStorage::fsync_name(std::string path, Nanos deadline) {
    std::string what = "fsync of the name " + path;
    std::function<Status()> work = [path] { return cairn::fsync_name(path); };
    return perform(pool_of(path), std::move(work), std::move(what), deadline);
}

Task<Status> RealStorage::publish(std::string from, std::string to, Nanos deadline) {
    std::string what = "publishing " + from + " as " + to;
    std::function<Status()> work = [from, to] { return publish_file(from, to); };
    return perform(pool_of(to), std::move(work), std::move(what), deadline);
}

Task<Status> RealStorage::replace(std::string from, std::string to, Nanos deadline) {
    std::string what = "putting " + from + " in the place of " + to;
    std::function<Status()> work = [from, to] { return replace_file(from, to); };
    return perform(pool_of(to), std::move(work), std::move(what), deadline);
}

Task<Status> RealStorage::remove(std::string path, Nanos deadline) {
    std::string what = "removing " + path;
    std::function<Status()> work = [path] { return remove_file(path); };
    return perform(pool_of(path), std::move(work), std::move(what), deadline);
}

Task<Status> RealStorage::remove_directory(std::string path, Nanos deadline) {
    std::string what = "removing the directory " + path;
    std::function<Status()> work = [path] { return cairn::remove_directory(path); };
    return perform(pool_of(path), std::move(work), std::move(what), deadline);
}

Task<Result<std::vector<DirectoryEntry>>> RealStorage::list(std::string path, Nanos deadline) {
    std::string what = "listing " + path;
    std::function<Result<std::vector<DirectoryEntry>>()> work = [path] { return list_directory(path); };
    return perform(pool_of(path), std::move(work), std::move(what), deadline);
}

Task<Result<std::uint64_t>> RealStorage::free_bytes(std::string directory, Nanos deadline) {
    std::string what = "asking for the room of " + directory;
    std::function<Result<std::uint64_t>()> work = [directory] { return cairn::free_bytes(directory); };
    return perform(pool_of(directory), std::move(work), std::move(what), deadline);
}

Task<Result<std::vector<TargetRoom>>> RealStorage::target_rooms(std::string directory, std::string by, Nanos deadline) {
    std::string what = "asking for the room of the storage targets of " + directory;
    const Nanos limit = deadline - loop_.now();
    std::function<Result<std::vector<TargetRoom>>()> work = [directory, by, limit, placer = placer_]() -> Result<std::vector<TargetRoom>> {
        if (!placer) return Status(Code::unsupported, directory + ": nobody here can ask its storage targets");
        return placer->rooms(directory, by, limit);
    };
    return perform(pool_of(directory), std::move(work), std::move(what), deadline);
}

Task<Result<BufferPtr>> RealStorage::map(std::string path, bool writable, Nanos deadline) {
    WorkerPool& pool = pool_of(path);
    std::string what = "mapping " + path;
    std::function<Result<BufferPtr>()> work = [path, writable, dispose = pool.disposer()] {
        return map_file(path, writable, dispose);
    };
    return perform(pool, std::move(work), std::move(what), deadline);
}

}  // namespace cairn
