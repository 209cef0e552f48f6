// WarmStorage: real storage whose buffers stay when a run is over and are lent again to the next one, as those of a daemon stay from flush to flush.
// Else every run would pay for the page faults of its buffers, and large buffers would look bad for a reason that a daemon does not have.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "world/storage.hpp"

namespace cairn::tune {

// Buffers by size. What is lent and what is kept together is at most `bytes_max`, or what one run needs.
class BufferStock : public std::enable_shared_from_this<BufferStock> {
  public:
    explicit BufferStock(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
    Result<BufferPtr> take(Storage& storage, std::uint64_t bytes);
    std::uint64_t bytes() const noexcept { return bytes_; }

  private:
    void give_back(BufferPtr buffer);

    std::uint64_t bytes_max_, bytes_ = 0;
    std::map<std::uint64_t, std::vector<BufferPtr>> kept_;
};

class WarmStorage final : public Storage {
  public:
    WarmStorage(Storage& real, std::shared_ptr<BufferStock> stock) : real_(real), stock_(std::move(stock)) {}

    Result<BufferPtr> allocate(std::uint64_t bytes) override { return stock_->take(real_, bytes); }
    Task<Result<FilePtr>> open(std::string path, OpenOptions options, Nanos deadline) override { return real_.open(std::move(path), options, deadline); }
    Task<Result<std::uint64_t>> write_some(FilePtr file, std::uint64_t offset, Slice data, Nanos deadline) override {
        return real_.write_some(std::move(file), offset, std::move(data), deadline);
    }
    Task<Result<std::uint64_t>> read_some(FilePtr file, std::uint64_t offset, Slice into, Nanos deadline) override {
        return real_.read_some(std::move(file), offset, std::move(into), deadline);
    }
    Task<Status> fsync(FilePtr file, Nanos deadline) override { return real_.fsync(std::move(file), deadline); }
    Task<Result<std::uint64_t>> file_bytes(FilePtr file, Nanos deadline) override { return real_.file_bytes(std::move(file), deadline); }
    Task<Status> resize(FilePtr file, std::uint64_t bytes, Nanos deadline) override { return real_.resize(std::move(file), bytes, deadline); }
    Task<Status> make_directory(std::string path, std::uint32_t permissions, Nanos deadline) override {
        return real_.make_directory(std::move(path), permissions, deadline);
    }
    Task<Status> fsync_directory(std::string path, Nanos deadline) override { return real_.fsync_directory(std::move(path), deadline); }
    Task<Status> publish(std::string from, std::string to, Nanos deadline) override { return real_.publish(std::move(from), std::move(to), deadline); }
    Task<Status> replace(std::string from, std::string to, Nanos deadline) override { return real_.replace(std::move(from), std::move(to), deadline); }
    Task<Status> remove(std::string path, Nanos deadline) override { return real_.remove(std::move(path), deadline); }
    Task<Status> remove_directory(std::string path, Nanos deadline) override { return real_.remove_directory(std::move(path), deadline); }
    Task<Result<std::vector<DirectoryEntry>>> list(std::string path, Nanos deadline) override { return real_.list(std::move(path), deadline); }
    Task<Result<std::uint64_t>> free_bytes(std::string directory, Nanos deadline) override { return real_.free_bytes(std::move(directory), deadline); }
    Task<Result<BufferPtr>> map(std::string path, bool writable, Nanos deadline) override { return real_.map(std::move(path), writable, deadline); }

  private:
    Storage& real_;
    std::shared_ptr<BufferStock> stock_;
};

}  // namespace cairn::tune
