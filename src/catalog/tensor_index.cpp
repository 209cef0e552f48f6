#include "catalog/tensor_index.hpp"

#include <algorithm>
#include <utility>

#include "catalog/catalog.hpp"
#include "format/names.hpp"
#include "format/safetensors.hpp"
#include "world/gate.hpp"

namespace cairn {

namespace {

Task<Result<Bytes>> read_bytes(World& world, FilePtr file, std::uint64_t offset, std::uint64_t bytes, Nanos deadline) {
    auto buffer = std::make_shared<BytesBuffer>(Bytes(bytes));
    Slice into{buffer, 0, bytes};
    CO_TRY(co_await read_all(world.storage, std::move(file), offset, into, deadline));
    into.buffer.reset();
    co_return buffer->take();
}

// The tensors of one file.
Task<Result<std::vector<std::pair<std::string, std::uint64_t>>>> read_names(World& world, std::string path, Nanos io_wait) {
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, world.clock.in(io_wait));
    if (!file.ok()) co_return std::move(file).status();
    Result<Bytes> begin = co_await read_bytes(world, *file, 0, 8, world.clock.in(io_wait));
    if (!begin.ok()) co_return std::move(begin).status();
    Result<std::uint64_t> length = safetensors_header_length(*begin);
    if (!length.ok()) co_return std::move(length).status().within(path);
    Result<Bytes> json = co_await read_bytes(world, *file, 8, *length, world.clock.in(io_wait));
    if (!json.ok()) co_return std::move(json).status();
    co_return decode_safetensors_names(*json);
}

// Under another name first, so that nobody reads half of it.
Task<Status> put(World& world, Layout layout, VersionKey key, Bytes bytes, Nanos io_wait) {
    const std::string temporary = layout.temporary(key, Id128{key.incarnation.high, world.random.next()});
    Status done = co_await write_file(world.storage, temporary, std::move(bytes), 0644, world.clock.in(io_wait));
    if (done.ok()) done = co_await world.storage.replace(temporary, layout.safetensors_index(key), world.clock.in(io_wait));
    if (done.ok()) done = co_await world.storage.fsync_directory(layout.version(key), world.clock.in(io_wait));
    if (!done.ok()) {
        const Status ignored = co_await world.storage.remove(temporary, world.clock.in(io_wait));
        (void)ignored;
    }
    co_return done;
}

}  // namespace

namespace {

using Names = std::vector<std::pair<std::string, std::uint64_t>>;

// What those that read headers share.
struct Headers {
    World& world;
    Nanos io_wait;
    std::vector<std::string> paths;
    std::vector<Names> names;  // of each
    std::size_t next = 0;
    Status failed;
};

Task<void> read_headers(Headers& headers) {
    while (headers.failed.ok() && headers.next < headers.paths.size()) {
        const std::size_t at = headers.next++;
        Result<Names> names = co_await read_names(headers.world, headers.paths[at], headers.io_wait);
        if (names.ok()) headers.names[at] = std::move(names).value();
        else headers.failed = std::move(names).status();
    }
}

}  // namespace

Task<Result<TensorIndexed>> write_tensor_index(World& world, Layout layout, VersionKey key, Nanos io_wait) {
    Result<Manifest> manifest = co_await read_manifest(world, layout, key, world.clock.in(io_wait));
    if (!manifest.ok()) co_return std::move(manifest).status();
    Headers headers{world, io_wait, {}, {}, 0, {}};
    std::vector<std::string> called;
    for (const PartInfo& part : manifest->parts) {
        if (part.origin != 0) continue;
        headers.paths.push_back(Layout::version_below(layout.root(manifest->roots, part.root), key) + "/" + part.file);
        called.push_back(part.root == 0 ? part.file : headers.paths.back());
    }
    headers.names.resize(headers.paths.size());
    constexpr std::size_t at_a_time = 16;
    Gate reading(world.clock);
    for (std::size_t i = 0; i < std::min(at_a_time, headers.paths.size()); ++i) reading.spawn(read_headers(headers));
    co_await reading.close();
    if (!headers.failed.ok()) co_return std::move(headers.failed);
    std::map<std::string, std::string> file_of;
    std::uint64_t bytes = 0;
    TensorIndexed indexed;
    for (std::size_t part = 0; part < called.size(); ++part)
        for (auto& [name, length] : headers.names[part]) {
            const bool is_first = file_of.emplace(std::move(name), called[part]).second;
            if (is_first) bytes += length;
            else ++indexed.twice;
        }
    indexed.tensors = file_of.size();
    Bytes text = encode_safetensors_index(file_of, bytes, key.incarnation);
    Status done = co_await put(world, layout, key, std::move(text), io_wait);
    if (!done.ok()) co_return done;
    const Result<Manifest> standing = co_await read_manifest(world, layout, key, world.clock.in(io_wait));
    const bool is_gone = standing.code() == Code::not_found || (standing.ok() && standing->abandoned);
    if (!is_gone) co_return indexed;
    done = co_await remove_tensor_index(world, layout, key, io_wait);
    co_return done.ok() ? not_found("the version was removed meanwhile") : std::move(done);
}

Task<Status> remove_tensor_index(World& world, Layout layout, VersionKey key, Nanos io_wait) {
    const std::string path = layout.safetensors_index(key);
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, world.clock.in(io_wait));
    if (file.code() == Code::not_found || file.code() == Code::corrupt) co_return Status();  // what is no file is a stranger's
    if (!file.ok()) co_return std::move(file).status();
    Result<std::uint64_t> bytes = co_await world.storage.file_bytes(*file, world.clock.in(io_wait));
    if (!bytes.ok()) co_return std::move(bytes).status();
    Result<Bytes> begin = co_await read_bytes(world, *file, 0, std::min(*bytes, safetensors_index_begin_bytes), world.clock.in(io_wait));
    if (!begin.ok()) co_return std::move(begin).status();
    file->reset();
    if (!is_index_of(*begin, key.incarnation)) co_return Status();
    Status removed = co_await world.storage.remove(path, world.clock.in(io_wait));
    co_return removed.code() == Code::not_found ? Status() : std::move(removed);
}

}  // namespace cairn
