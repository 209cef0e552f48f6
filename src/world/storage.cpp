// Loops and small-file helpers over Storage, the same in both worlds.
#include "world/storage.hpp"

#include <algorithm>

namespace cairn {

Task<Result<std::vector<TargetRoom>>> Storage::target_rooms(std::string directory, std::string, Nanos) {
    co_return Status(Code::unsupported, directory + ": its file system does not say what is left on its storage targets");
}

Task<Result<std::vector<std::uint64_t>>> Storage::read_checksummed(FilePtr file, std::uint64_t, std::uint64_t, Units, std::vector<Destination>, Nanos) {
    co_return Status(Code::unsupported, file->path() + ": it can not be checksummed while it is read");
}

Task<Status> Storage::fsync_name(std::string path, Nanos deadline) {
    Status synced = co_await fsync_directory(path.substr(0, path.rfind('/')), deadline);
    co_return synced;
}

Task<Status> write_all(Storage& storage, FilePtr file, std::uint64_t offset, Slice data, Nanos deadline) {
    std::uint64_t done = 0;
    while (done < data.length) {
        Slice rest = data.part(done, data.length - done);
        Result<std::uint64_t> wrote = co_await storage.write_some(file, offset + done, rest, deadline);
        if (!wrote.ok()) co_return std::move(wrote).status();
        if (*wrote == 0) co_return Status(Code::io_error, file->path() + ": a write at " + std::to_string(offset + done) + " wrote nothing");
        done += *wrote;
    }
    co_return Status();
}

Task<Status> read_all(Storage& storage, FilePtr file, std::uint64_t offset, Slice into, Nanos deadline) {
    std::uint64_t done = 0;
    while (done < into.length) {
        Slice rest = into.part(done, into.length - done);
        Result<std::uint64_t> got = co_await storage.read_some(file, offset + done, rest, deadline);
        if (!got.ok()) co_return std::move(got).status();
        if (*got == 0) co_return corrupt(file->path() + ": ends at byte " + std::to_string(offset + done) + ", " + std::to_string(into.length - done) + " bytes short");
        done += *got;
    }
    co_return Status();
}

Task<Result<Bytes>> read_file(Storage& storage, std::string path, std::uint64_t bytes_max, Nanos deadline) {
    OpenOptions options;
    Result<FilePtr> file = co_await storage.open(path, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    Result<std::uint64_t> bytes = co_await storage.file_bytes(*file, deadline);
    if (!bytes.ok()) co_return std::move(bytes).status();
    if (*bytes > bytes_max) co_return corrupt(path + ": " + std::to_string(*bytes) + " bytes, at most " + std::to_string(bytes_max) + " expected");
    auto buffer = std::make_shared<BytesBuffer>(Bytes(*bytes));
    Slice into{buffer, 0, *bytes};
    Status status = co_await read_all(storage, *file, 0, into, deadline);
    if (!status.ok()) co_return status;
    into.buffer.reset();
    co_return buffer->take();
}

Task<Status> write_file(Storage& storage, std::string path, Bytes bytes, std::uint32_t permissions, Nanos deadline) {
    OpenOptions options;
    options.mode = OpenMode::create;
    options.permissions = permissions;
    Result<FilePtr> file = co_await storage.open(path, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    Slice data = Slice::of(std::move(bytes));
    Status status = co_await write_all(storage, *file, 0, data, deadline);
    if (!status.ok()) co_return status;
    Status synced = co_await storage.fsync(*file, deadline);
    co_return synced;
}

Task<Status> make_directories(Storage& storage, std::string root, std::string path, Nanos deadline) {
    CAIRN_CHECK(path.compare(0, root.size(), root) == 0);
    std::string parent = root;
    std::size_t at = root.size();
    while (at < path.size()) {
        const std::size_t start = path.find_first_not_of('/', at);
        if (start == std::string::npos) break;
        const std::size_t end = std::min(path.find('/', start), path.size());
        const std::string here = path.substr(0, end);
        Status made = co_await storage.make_directory(here, 0755, deadline);
        if (parent == root) made = co_await unless_root_missing(storage, root, std::move(made), deadline);
        if (!made.ok() && made.code() != Code::already_exists) co_return made;
        // Also when somebody else made it: their fsync of the parent may not have happened, and we depend on it.
        Status synced = co_await storage.fsync_directory(parent, deadline);
        if (!synced.ok()) co_return synced;
        parent = here;
        at = end;
    }
    co_return Status();
}

// By asking for what is always allowed there, and reads no entries, of which there may be many.
Task<Status> unless_root_missing(Storage& storage, std::string root, Status status, Nanos deadline) {
    if (status.code() != Code::not_found) co_return status;
    const Status there = co_await storage.fsync_directory(root, deadline);
    if (there.code() != Code::not_found) co_return status;
    co_return unavailable(root + " itself is missing: is its file system mounted? (" + status.text() + ")");
}

}  // namespace cairn
