// Room for small records on a full file system: see reserve.hpp.
#include "catalog/reserve.hpp"

#include <algorithm>

#include "format/names.hpp"

namespace cairn {

namespace {

// What no file system makes smaller.
Bytes incompressible(std::uint64_t bytes) {
    Bytes out(bytes);
    std::uint64_t state = 0x9e3779b97f4a7c15;
    for (auto& byte : out) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        byte = static_cast<Bytes::value_type>(state >> 32);
    }
    return out;
}

}  // namespace

namespace {

// It is written over and cut, so it must be the file of that name, and nobody else's.
OpenOptions existing() {
    OpenOptions options;
    options.mode = OpenMode::write;
    options.sole_name = true;
    return options;
}

}  // namespace

Task<Status> keep_reserve(World& world, Layout layout, Nanos deadline) {
    const std::string path = layout.reserve();
    OpenOptions options = existing();
    options.permissions = 0666;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    const bool is_new = file.code() == Code::not_found;
    if (is_new) {
        Status made = co_await make_directories(world.storage, layout.persistent, layout.jobs(), deadline);
        if (!made.ok()) co_return made;
        options.mode = OpenMode::create;
        file = co_await world.storage.open(path, options, deadline);
    }
    if (file.code() == Code::corrupt) co_return Status(Code::corrupt, file.status().text() + ": left as it is, and no room is kept in reserve until it is removed");
    if (!file.ok()) co_return std::move(file).status();
    CO_TRY_ASSIGN(const FilePtr opened, std::move(file));
    Result<std::uint64_t> bytes = co_await world.storage.file_bytes(opened, deadline);
    if (!bytes.ok()) co_return std::move(bytes).status();
    if (*bytes >= reserve_bytes) co_return Status();
    Slice missing = Slice::of(incompressible(reserve_bytes - *bytes));
    Status wrote = co_await write_all(world.storage, opened, *bytes, missing, deadline);
    if (!wrote.ok()) co_return wrote;
    Status synced = co_await world.storage.fsync(opened, deadline);
    if (!synced.ok() || !is_new) co_return synced;
    synced = co_await world.storage.fsync_directory(layout.jobs(), deadline);
    co_return synced;
}

Task<bool> reserve_gives(World& world, Layout layout, Status met, Nanos deadline) {
    if (met.code() != Code::out_of_space) co_return false;
    const OpenOptions options = existing();
    Result<FilePtr> file = co_await world.storage.open(layout.reserve(), options, deadline);
    if (!file.ok()) co_return false;
    Result<std::uint64_t> bytes = co_await world.storage.file_bytes(*file, deadline);
    if (!bytes.ok() || *bytes == 0) co_return false;
    Status cut = co_await world.storage.resize(*file, *bytes - std::min(*bytes, reserve_piece_bytes), deadline);
    if (cut.ok()) cut = co_await world.storage.fsync(*file, deadline);  // some give blocks back only then
    co_return cut.ok();
}

Task<Status> make_directories(World& world, Layout layout, std::string path, Nanos deadline) {
    for (;;) {
        Status made = co_await make_directories(world.storage, layout.persistent, path, deadline);
        const bool again = co_await reserve_gives(world, layout, made, deadline);
        if (!again) co_return made;
    }
}

Task<Status> publish_small_file(World& world, Layout layout, std::string path, Bytes bytes, std::uint32_t permissions, Nanos deadline) {
    for (;;) {
        const std::string temporary = path.substr(0, path.rfind('/') + 1) + temporary_file_name(world.random.id());
        Status published = co_await write_file(world.storage, temporary, bytes, permissions, deadline);
        if (published.ok()) published = co_await world.storage.publish(temporary, path, deadline);
        const Status removed = co_await world.storage.remove(temporary, deadline);  // there after a link, gone after a rename
        (void)removed;
        const bool again = co_await reserve_gives(world, layout, published, deadline);
        if (!again) co_return published;
    }
}

}  // namespace cairn
