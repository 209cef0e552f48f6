#include "engine/role.hpp"

#include "catalog/catalog.hpp"
#include "format/roster.hpp"

namespace cairn::engine {

Common::Common(World w, Layout l, FlushSettings s, Gate& g)
    : world(w), layout(std::move(l)), settings(s), gate(g), pace(world.clock, s.io_wait / 2), changed(world.clock), outbox(world, g, s.peer_wait),
      reads(world, g, s.heartbeat, s.io_wait, s.buffer_bytes) {}

std::unique_ptr<StorageDriver> Common::storage_driver(const Job& job) const { return cairn::storage_driver(world, layout.persistent, job.roster->roots, targets); }

void Common::update(Flight& flight) {
    flight.news.notify_all();
    changed.notify_all();
    pace.wake();
}

Task<Status> check_record(Common& common, FlightPtr flight) {
    const Roster& roster = *flight->job->roster;
    Status on_record = co_await check_on_record(common.world, common.layout, roster.name, roster.epoch, roster.incarnation,
                                                common.world.clock.in(common.settings.io_wait));
    co_return std::move(on_record).within(version_text(flight->key));
}

Task<Result<Address>> address_on_record(Common& common, FlightPtr flight, NodeIndex node) {
    const Id128 incarnation = flight->key.incarnation;
    const std::string path = common.layout.job_node(incarnation, node);
    Result<Bytes> bytes = co_await read_file(common.world.storage, path, 4096, common.world.clock.in(common.settings.peer_wait));
    if (!bytes.ok()) co_return std::move(bytes).status();
    Result<NodeRecord> record = decode_node_record(*bytes);
    if (!record.ok()) co_return std::move(record).status().within(path);
    if (record->incarnation != incarnation || record->node != node) co_return corrupt(path + ": of another job or node");
    co_return record->address;
}

}  // namespace cairn::engine
