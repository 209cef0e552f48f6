// Follower, first half: says that the node's images of a version are sealed, until the coordinator has ended it.
//
// Nobody waits for ever: a version that some rank does not seal within version_wait is abandoned by name; its images stay in scratch, and
// when the missing ones turn up after all (a daemon that was started again), the flush begins anew. Once a newer version is committed
// scratch lets them go; the coordinator then gives the version up for all nodes (coordinator/gatherer.cpp).
#include <algorithm>

#include "base/units.hpp"
#include "catalog/catalog.hpp"
#include "engine/follower/follower.hpp"

namespace cairn::engine {

namespace {
// Of this node; and which of them are in the middle of it, for people to look there.
std::string unsealed_ranks(const Flight& flight) {
    std::string text;
    const auto begun = flight.job->begun.find(flight.key.version);
    for (const Rank rank : flight.job->own_ranks()) {
        if (flight.images.count(rank)) continue;
        text += (text.empty() ? "" : " ") + std::to_string(rank);
        if (begun == flight.job->begun.end() || !begun->second.count(rank)) continue;
        text += " (has begun, " + format_bytes(begun->second.at(rank).bytes) + ")";
    }
    return text;
}

// Silent for as long as a version may take the coordinator is gone, or has forgotten the job: where a newer version is committed, scratch need not wait for it
// any more.
std::optional<Status> silence_to_tell(const Flight& flight, Nanos silent, const FlushSettings& settings) {
    const Status& told = flight.state.failure;
    const std::string coordinator = version_text(flight.key) + ": the coordinator, " + flight.job->node_name(flight.job->coordinator()) + ", can not be reached";
    if (silent > settings.version_wait && told.code() != Code::deadline)
        return Status(Code::deadline, coordinator + " for " + std::to_string(settings.version_wait / second) +
                                          " s (deadlines.version_ms): abandoned; what is sealed stays in scratch until a newer version is committed");
    if (silent > settings.peer_wait && told.ok()) return Status(Code::unavailable, coordinator + "; what is sealed stays in scratch and is retried");
    return std::nullopt;
}
}  // namespace

void Follower::on_begun(const Job& job, const VersionKey& key, const HeldImages& sealed) {
    const auto found = job.begun.find(key.version);
    if (found == job.begun.end()) return;
    message::Begun begun;
    for (const Rank rank : job.own_ranks()) {
        ImageInfo image;
        image.rank = rank;
        if (const auto held = sealed.find(rank); held != sealed.end()) {
            image.bytes = held->second.image.header.image.bytes;
        } else if (const auto own = found->second.find(rank); own != found->second.end()) {
            image.bytes = own->second.bytes;
            begun.block_bytes = own->second.block_bytes;
        } else {
            return;
        }
        begun.images.push_back(std::move(image));
    }
    std::sort(begun.images.begin(), begun.images.end(), [](const ImageInfo& a, const ImageInfo& b) { return a.rank < b.rank; });
    common.outbox.send(job, key, job.coordinator(), std::move(begun));
}

// A node's side: from the first sealed image until the coordinator ends the version.
Task<void> Follower::announce(FlightPtr flight) {
    Job& job = *flight->job;
    const Nanos give_up = flight->since + settings.version_wait;
    while (!flight->all_local_sealed() && !flight->state.final) {
        if (world.clock.now() >= give_up && flight->state.failure.code() != Code::deadline) {
            // Images of one that was committed may have left this scratch in part, before the daemon that knew it ended.
            co_await learn_alone(flight);
            if (flight->all_local_sealed() || flight->state.final) break;
            flight->fail(Status(Code::deadline, version_text(flight->key) + ": abandoned: of " + job.node_name(job.self) +
                                                " these ranks did not seal it in time: " + unsealed_ranks(*flight)));
            common.update(*flight);
        }
        const bool told = flight->state.failure.code() == Code::deadline;
        co_await flight->news.wait(told ? never : give_up);
    }
    Nanos pause = settings.heartbeat;
    std::uint32_t asked = 0;
    flight->coordinator_heard = world.clock.now();
    while (!flight->state.final && !flight->images.empty()) {
        message::Sealed sealed;
        for (const auto& [rank, held] : flight->images) {
            sealed.images.push_back(held.image.header.image);
            sealed.block_bytes = held.image.header.block_bytes;
        }
        send_to_coordinator(*flight, std::move(sealed));
        const Nanos silent = world.clock.now() - flight->coordinator_heard;
        if (std::optional<Status> failure = silence_to_tell(*flight, silent, settings)) {
            flight->fail(std::move(*failure));
            common.update(*flight);
        }
        // Beside the asking: a file system that is slow must not make the coordinator look silent.
        if (silent > 2 * settings.heartbeat && ++asked % 4 == 1) {
            gate.spawn(read_coordinators_address(flight));
            gate.spawn(learn_alone(flight));
        }
        // Once heard, the coordinator speaks up by itself; asking on is only for lost messages.
        pause = std::min(pause * 2, std::max(settings.heartbeat, settings.peer_wait / 4));
        const Nanos next = world.clock.in(pause);
        while (!flight->state.final && world.clock.now() < next) co_await flight->news.wait(next);
        flight->coordinator_heard = std::min(flight->coordinator_heard + stood_still(world.clock.now() - next, settings), world.clock.now());
    }
}

// A daemon that was started again has another address, and publishes it.
Task<void> Follower::read_coordinators_address(FlightPtr flight) {
    const NodeIndex coordinator = flight->job->coordinator();
    const Result<Address> address = co_await address_on_record(common, flight, coordinator);
    if (address.ok()) flight->job->addresses.set(coordinator, *address);
}

// What was decided stands in the file system, whether or not the coordinator that published it lives to say so: one that dies then is not
// started again where no rank of its node needs it, or finds nothing left to do.
Task<void> Follower::learn_alone(FlightPtr flight) {
    // Its head is as good as the coordinator's word: neither is a look at all that was written.
    Result<ManifestFacts> manifest = co_await read_manifest_facts(world, layout, flight->key, world.clock.in(settings.io_wait));
    if (!manifest.ok()) co_return;
    const Status on_record = co_await check_record(common, flight);
    if (!on_record.ok()) co_return;
    // Whoever published may have died before the name was durable.
    const Status synced = co_await world.storage.fsync_name(layout.manifest(flight->key), world.clock.in(settings.io_wait));
    if (!synced.ok()) co_return;
    if (manifest->abandoned) common.end(*flight, {Code::superseded, version_text(flight->key) + ": was given up", true});
    else common.end(*flight, {Code::ok, "", true});
}

// The coordinator waits for others, or is at it. A node that lacks images says so: the version may be one that its ranks went past.
void Follower::on_noted(FlightPtr flight, const message::Noted& noted) {
    const Job& job = *flight->job;
    const bool lacks = job.has_ranks(job.self) && !flight->all_local_sealed() && flight->state.level != Level::committed;
    const bool certain = lacks && !common.has_unseen_images(flight->key.incarnation);
    if (!job.coordinates() && (certain || !job.has_ranks(job.self))) send_to_coordinator(*flight, message::Noted());
    if (flight->state.final || lacks) return;  // what it told its own waiters stands
    side(*flight).unsealed = noted.missing.empty() ? std::nullopt : std::optional(noted.missing.front());
    const bool everywhere = noted.missing.empty() && flight->all_local_sealed();
    if (everywhere && flight->state.level < Level::sealed) flight->state.level = Level::sealed;
    flight->state.failure = Status();  // it is being tried (again)
    common.update(*flight);
}

}  // namespace cairn::engine
