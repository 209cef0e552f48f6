// The system calls behind Storage, each as one blocking function for a worker: errno becomes a Status that names the
// operation and the path.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "world/storage.hpp"

namespace cairn {

// Direct I/O needs memory, offset and length in multiples of a sector, and here of a page: else it could share one with buffered I/O.
std::uint64_t direct_align_bytes();

// An open file: one descriptor, and a second, buffered one when it was opened direct. What is aligned goes through the
// direct one, the rest (an unaligned tail, a footer, memory that is not aligned) through the buffered one. Both see the
// same bytes: the kernel writes back and drops the cached pages that direct I/O touches, and the two never write the
// same page. Most file systems make no difference at fsync; both are synced for those that do.
class RealFile final : public File {
  public:
    using Dispose = std::function<void(std::function<void()>)>;
    // Blocks. `dispose` runs the close(2), which can take long (network file systems flush there). A file that is to be placed is made by the placer, which gets `limit`.
    static Result<FilePtr> open(const std::string& path, const OpenOptions& options, Dispose dispose, Placer* placer = nullptr, Nanos limit = 0);
    RealFile(std::string path, int buffered, int direct, Dispose dispose);
    RealFile(const RealFile&) = delete;
    ~RealFile() override;

    const std::string& path() const noexcept override { return path_; }
    bool is_placed() const noexcept override { return placed_; }
    int descriptor() const noexcept { return buffered_; }
    int direct_descriptor() const noexcept { return direct_; }  // -1: none

    // Which descriptor takes a transfer, and how much of it: at most `length`, less when only the front of it is
    // aligned.
    struct Route {
        int descriptor;
        std::uint64_t length;
        bool direct;
    };
    Route route(const void* memory, std::uint64_t offset, std::uint64_t length) const noexcept;
    bool is_direct() const noexcept { return direct_ >= 0 && !direct_refused_; }
    // The file system accepted O_DIRECT at open and refuses it now: buffered from here on. Loop only, like route().
    void refuse_direct() noexcept { direct_refused_ = true; }

  private:
    std::string path_;
    int buffered_;
    int direct_;
    bool direct_refused_ = false, placed_ = false;
    Dispose dispose_;
};

// In a directory that a group may write to, and that is not sticky, it gets that one's group and permissions instead, whatever the umask says: several users
// of one persistent directory work in each other's directories. A file that is made there (RealFile::open) gets that group and what of its permissions is the group's.
Status make_directory(const std::string& path, std::uint32_t permissions);
Status fsync_directory(const std::string& path);
Status fsync_name(const std::string& path);  // of a file and of its directory
// RENAME_NOREPLACE, or link and unlink where the file system does not know it. `to` being the very file that `from` is
// counts as success: an earlier try went through.
Status publish_file(const std::string& from, const std::string& to);
Status publish_by_link(const std::string& from, const std::string& to);  // the second way, for its test
Status replace_file(const std::string& from, const std::string& to);
Status remove_file(const std::string& path);
Status remove_directory(const std::string& path);
Result<std::uint64_t> free_bytes(const std::string& directory);
Result<std::vector<DirectoryEntry>> list_directory(const std::string& path);
Result<std::uint64_t> size_of(const RealFile& file);
Status resize_file(const RealFile& file, std::uint64_t bytes);

}  // namespace cairn
