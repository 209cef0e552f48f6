// One small file a node, whole or not there: written aside and renamed.
#include "catalog/io_nodes.hpp"

#include "format/names.hpp"

namespace cairn {

namespace {
constexpr std::uint64_t io_node_bytes_max = 4096;
constexpr std::size_t io_nodes_max = 4096;
}  // namespace

Task<Status> publish_io_node(World& world, Layout layout, IoNodeRecord record, Nanos deadline) {
    Status made = co_await make_directories(world.storage, layout.persistent, layout.io_nodes(), deadline);
    if (!made.ok()) co_return made;
    const std::string temporary = layout.io_node(temporary_file_name(world.random.id()));
    Bytes bytes = encode_io_node_record(record);
    Status wrote = co_await write_file(world.storage, temporary, std::move(bytes), 0600, deadline);
    if (!wrote.ok()) co_return wrote;
    Status replaced = co_await world.storage.replace(temporary, layout.io_node(record.node), deadline);
    co_return replaced;
}

Task<Status> withdraw_io_node(World& world, Layout layout, IoNodeRecord record, Nanos deadline) {
    Result<IoNodeRecord> found = co_await read_io_node(world, layout, record.node, deadline);
    if (found.code() == Code::not_found || (found.ok() && !(*found == record))) co_return Status();
    if (!found.ok()) co_return std::move(found).status();
    Status removed = co_await world.storage.remove(layout.io_node(record.node), deadline);
    co_return removed;
}

Task<Result<IoNodeRecord>> read_io_node(World& world, Layout layout, std::string node, Nanos deadline) {
    const std::string path = layout.io_node(node);
    Result<Bytes> bytes = co_await read_file(world.storage, path, io_node_bytes_max, deadline);
    if (!bytes.ok()) co_return std::move(bytes).status();
    Result<IoNodeRecord> record = decode_io_node_record(*bytes);
    if (!record.ok()) co_return std::move(record).status().within(path);
    if (record->node != node) co_return corrupt(path + ": of another node, " + record->node);
    co_return record;
}

Task<Result<IoNodes>> list_io_nodes(World& world, Layout layout, Nanos deadline) {
    IoNodes found;
    Result<std::vector<DirectoryEntry>> entries = co_await world.storage.list(layout.io_nodes(), deadline);
    if (entries.code() == Code::not_found) co_return found;
    if (!entries.ok()) co_return std::move(entries).status();
    for (const DirectoryEntry& entry : *entries) {
        if (entry.is_directory || !valid_name(entry.name)) continue;
        if (found.records.size() == io_nodes_max) {
            found.problems.push_back(invalid_argument(layout.io_nodes() + ": more than " + std::to_string(io_nodes_max) + " I/O nodes; the rest is left out"));
            break;
        }
        Result<IoNodeRecord> record = co_await read_io_node(world, layout, entry.name, deadline);
        if (record.ok()) found.records.push_back(std::move(record).value());
        else if (record.code() != Code::not_found) found.problems.push_back(std::move(record).status());
    }
    co_return found;
}

}  // namespace cairn
