// Reading records: the header first, which says how long the file is.
#include "catalog/record.hpp"

#include <algorithm>

namespace cairn {

namespace {
constexpr std::uint64_t start_bytes = 4096;  // most records are no longer
}

Task<Result<Bytes>> read_record(World& world, std::string path, FrameKind kind, std::uint64_t bytes_max, Nanos deadline) {
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    Result<std::uint64_t> bytes = co_await world.storage.file_bytes(*file, deadline);
    if (!bytes.ok()) co_return std::move(bytes).status();
    if (*bytes > bytes_max) co_return corrupt(path + ": " + std::to_string(*bytes) + " bytes, at most " + std::to_string(bytes_max) + " expected");
    auto buffer = std::make_shared<BytesBuffer>(Bytes(std::min(*bytes, start_bytes)));
    Slice into = Slice::whole(buffer);
    Status got = co_await read_all(world.storage, *file, 0, into, deadline);
    if (!got.ok()) co_return got;
    if (*bytes > start_bytes) {
        Result<std::uint64_t> begins = frame_bytes(kind, buffer->bytes(), *bytes);
        if (!begins.ok()) co_return std::move(begins).status().within(path);
        buffer = std::make_shared<BytesBuffer>(Bytes(*bytes));
        into = Slice::whole(buffer);
        got = co_await read_all(world.storage, *file, 0, into, deadline);
        if (!got.ok()) co_return got;
    }
    into.buffer.reset();
    co_return buffer->take();
}

}  // namespace cairn
