#include "daemon/requests.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/trace.hpp"
#include "catalog/catalog.hpp"
#include "daemon/memory.hpp"
#include "format/limits.hpp"

namespace cairn {

namespace {

constexpr Nanos look_again = second;  // whether a waiting client is still there
constexpr Nanos cancel_wait = 10 * second;
constexpr Nanos epoch_wait = 200 * millisecond;  // for a look that began before the copy into scratch

control::Answer answer_of(const Status& status) {
    if (status.ok()) return control::Done{};
    return control::Failed{status.code(), status.text()};
}

Nanos from_ms(std::uint64_t ms) { return static_cast<Nanos>(std::min<std::uint64_t>(ms, 1ull << 40)) * millisecond; }

Status is_stopping() { return unavailable("this daemon is stopping; the next one takes over"); }

}  // namespace

Requests::Requests(Parts parts, House& house, Facts facts)
    : parts_(parts), house_(house), facts_(std::move(facts)), started_(parts.world.clock.now()) {}

Task<control::Answer> Requests::answer(ConnectionId from, control::Request request) {
    Task<control::Answer> task = std::visit([&](auto& body) { return handle(from, std::move(body)); }, request);
    control::Answer answer = co_await task;
    co_return answer;
}

void Requests::disconnected(ConnectionId from) {
    for (const Id128 incarnation : clients_.remove(from)) parts_.ended_jobs.begin_anew(incarnation);  // also where it came and went between two looks
    parts_.asked.disconnected(from);
    for (Slots::Left& left : parts_.slots.disconnected(from)) house_.client_left(std::move(left));
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Hello request) {
    if (request.protocol != control::protocol)
        co_return answer_of({Code::unsupported, "the daemon of this node is Cairn " CAIRN_VERSION
                                                " and speaks protocol " +
                                                    std::to_string(control::protocol) + ", this program is Cairn " +
                                                    request.program_version + " and speaks protocol " +
                                                    std::to_string(request.protocol) + "; stop the daemon (process " +
                                                    std::to_string(::getpid()) + ") or use one release for both"});
    // A rank would take the address of a daemon that ends for its node's. Commands may ask: how far it is, to end sooner.
    if (house_.is_stopping() && request.is_application) co_return answer_of(is_stopping());
    const std::uint64_t process = house_.process_of(from);
    clients_.add(from, request.is_application, process == 0 ? request.pid : process);
    control::Welcome welcome;
    welcome.program_version = CAIRN_VERSION;
    welcome.pid = static_cast<std::uint64_t>(::getpid());
    welcome.node = facts_.node;
    welcome.address = parts_.world.network.self();
    welcome.format = format_version;
    welcome.through = true;
    welcome.prepares = true;
    co_return welcome;
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Join request) {
    if (house_.is_stopping()) co_return answer_of(is_stopping());
    const Status ready = co_await house_.adopted();
    if (!ready.ok()) co_return answer_of(ready);
    clients_.joined(from, request.roster.incarnation);
    const bool is_new = !parts_.node.knows(request.roster.incarnation);
    const bool went_on = static_cast<bool>(request.roster.parent.incarnation);
    const Id128 incarnation = request.roster.incarnation;
    const Status joined = co_await parts_.jobs.join(std::move(request.roster), request.self);
    if (joined.ok()) co_await parts_.adoption.unseen().give_orphans(incarnation);
    if (joined.ok() && is_new) house_.job_opened(incarnation);
    if (went_on) parts_.dead_images.look_soon();
    co_return answer_of(joined);
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Acquire request) {
    if (house_.is_stopping()) co_return answer_of(is_stopping());
    const Status ready = co_await house_.adopted();
    if (!ready.ok()) co_return answer_of(ready);
    const Status current = co_await check_epoch(request.key, 0);
    if (!current.ok()) co_return answer_of(current);
    if (!clients_.has(from)) co_return answer_of(unavailable("the client has gone"));
    const Clients::Waits waits(clients_, from);
    Result<control::Slot> slot = co_await parts_.slots.acquire(from, std::move(request));
    if (!slot.ok()) co_return answer_of(slot.status());
    if (!clients_.has(from)) {  // went while it was handed out
        const Status released = parts_.slots.release(from, slot->path);
        co_return answer_of(released);
    }
    co_return std::move(slot).value();
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Prepare request) {
    if (house_.is_stopping()) co_return answer_of(is_stopping());
    const Status ready = co_await house_.adopted();
    if (!ready.ok()) co_return answer_of(ready);
    if (!clients_.has(from)) co_return answer_of(unavailable("the client has gone"));
    Result<control::Prepared> prepared = parts_.slots.prepare(from, request);
    if (!prepared.ok()) co_return answer_of(prepared.status());
    co_return std::move(prepared).value();
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Sealed request) {
    const Status ready = co_await house_.adopted();
    if (!ready.ok()) co_return answer_of(ready);
    const Slots::Lease lease = parts_.slots.lease_of(from, request.path);
    const Status current = co_await check_epoch(request.key, epoch_wait);
    if (!current.ok()) {
        if (lease != 0 && parts_.slots.lease_of(from, request.path) == lease) parts_.slots.discard(request.path);
        co_return answer_of(current);
    }
    const Status taken = co_await take_image(from, request);
    co_return answer_of(taken);
}

Task<Status> Requests::check_epoch(VersionKey key, Nanos wait) {
    const Roster* job = parts_.jobs.roster_of(key.incarnation);
    if (!job) co_return Status();  // whoever has not joined is told so elsewhere
    Status current = co_await parts_.epochs.check(std::move(key), job->epoch, wait);
    co_return current;
}

Task<Status> Requests::take_image(ConnectionId from, const control::Sealed& request) {
    const TraceSpan span(parts_.world.clock, "image of rank " + std::to_string(request.rank), "take");
    if (parts_.slots.holds(request.key, request.rank, request.path))
        co_return Status();  // found before its client could say so
    const Slots::Lease lease = parts_.slots.lease_of(from, request.path);
    if (lease == 0)
        co_return not_found(request.path +
                            " is not a slot of this connection (any more): acquire another one and capture again");
    if (!parts_.node.knows(request.key.incarnation)) co_return not_found("join the job first");
    Result<std::optional<LocalImage>> read =
        co_await read_image(parts_.world, request.path, parts_.world.clock.in(facts_.io_wait), parts_.slots.mapping(request.path));
    if (!read.ok()) co_return std::move(read).status();
    if (!read->has_value()) co_return invalid_argument(request.path + " is not sealed");
    LocalImage image = std::move(**read);
    if (image.header.key != request.key || image.header.rank != request.rank)
        co_return invalid_argument(request.path + " holds " + image_text(image.header.key, image.header.rank) + ", not what was said");
    if (parts_.slots.holds(request.key, request.rank, request.path)) co_return Status();
    if (!parts_.slots.sealed(image, lease))
        co_return not_found(request.path + " was given back or given up while it was looked into");
    const Status added = parts_.node.add_image(std::move(image));
    if (added.ok() || added.code() == Code::unavailable)
        co_return Status();  // stopping: it is sealed, the next daemon finds it
    parts_.slots.discard(request.path);
    co_return added;
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Release request) {
    co_return answer_of(parts_.slots.release(from, request.path));
}

// What is asked once only: persistent, for a version that this daemon has not heard of or has forgotten.
Task<control::State> Requests::state_of(VersionKey key, bool ask_persistent) {
    control::State out;
    const VersionState state = parts_.node.state(key);
    out.level = state.level;
    out.code = state.failure.code();
    out.text = state.failure.ok() ? parts_.node.unsealed_by(key) : state.failure.text();
    out.final = state.final;
    out.failures = state.failures;
    if (state.level != Level::none) co_return out;
    bool committed = parts_.slots.knows_committed(key);
    if (!committed && ask_persistent) {
        const Result<ManifestFacts> manifest =
            co_await read_manifest_facts(parts_.world, facts_.layout, key, parts_.world.clock.in(facts_.io_wait));
        committed = manifest.ok() && !manifest->abandoned;
    }
    if (committed) {
        out.level = Level::committed;
        out.final = true;
    }
    co_return out;
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Wait request) {
    const Nanos deadline = parts_.world.clock.in(from_ms(request.wait_ms));
    const Status ready = co_await house_.adopted();
    if (!ready.ok()) co_return answer_of(ready);
    std::optional<Clients::Waits> waits;
    if (request.wait_ms > 0) waits.emplace(clients_, from);  // else it only asks
    for (bool first = true;; first = false) {
        const control::State state = co_await state_of(request.key, first);
        const bool failed = state.code != Code::ok && state.failures > request.failures_told;
        const bool ended = state.level >= request.level || failed || state.final || house_.has_stopped();
        if (ended || parts_.world.clock.now() >= deadline || !clients_.has(from)) co_return state;
        const Nanos until = std::min(deadline, parts_.world.clock.in(look_again));
        const Status ignored = co_await parts_.node.wait(request.key, request.level, until, request.failures_told);
        (void)ignored;  // state_of tells
    }
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Offer request) {
    if (house_.is_stopping()) co_return answer_of(is_stopping());
    const Status ready = co_await house_.adopted();
    if (!ready.ok()) co_return answer_of(ready);
    const Status current = co_await check_epoch(request.header.key, epoch_wait);
    if (!current.ok()) co_return answer_of(current);
    if (!parts_.node.knows(request.header.key.incarnation)) co_return answer_of(not_found("join the job first"));
    if (!clients_.has(from)) co_return answer_of(unavailable("the client has gone"));
    const Result<std::uint64_t> image = parts_.asked.offer(from, std::move(request.header));
    if (!image.ok()) co_return answer_of(image.status());
    co_return control::Offered{*image};
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Give request) {
    const Nanos deadline = parts_.world.clock.in(from_ms(request.wait_ms));
    const std::shared_ptr<AskedImages::Image> image = parts_.asked.find(from, request.image);
    if (!image) co_return answer_of(not_found("no image of that number was offered over this connection, or it is over"));
    AskedImages::given(*image, request.piece);
    const Clients::Waits waits(clients_, from);
    for (bool first = true;; first = false) {
        if (std::optional<control::Wanted> wanted = AskedImages::next_wanted(*image)) co_return std::move(*wanted);
        const control::State state = co_await state_of(image->key, first);
        const bool failed = state.code != Code::ok && state.failures > request.failures_told;
        const bool ended = state.level >= Level::committed || failed || state.final || house_.has_stopped();
        if (ended || parts_.world.clock.now() >= deadline || !clients_.has(from)) co_return control::Wanted{0, 0, 0, 0, 0, state, -1};
        co_await image->news.wait(deadline);
    }
}

Task<control::Answer> Requests::handle(ConnectionId, control::Cancel request) {
    const Status cancelled = co_await parts_.node.cancel(std::move(request.key), parts_.world.clock.in(cancel_wait));
    co_return answer_of(cancelled);
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Images request) {
    const Status ready = co_await house_.adopted();
    if (!ready.ok()) co_return answer_of(ready);
    if (!clients_.has(from)) co_return answer_of(unavailable("the client has gone"));
    control::ImageList list = parts_.slots.pin_images(from, request.name);
    list.unread = parts_.adoption.has_unread();
    co_return list;
}

Task<control::Answer> Requests::handle(ConnectionId from, control::Unpin) {
    parts_.slots.unpin(from);
    parts_.dead_images.look_soon();  // what was held could not go
    co_return control::Done{};
}

control::NodeStatus Requests::status() const {
    control::NodeStatus out;
    const NodeCounters& counters = parts_.node.counters();
    const AnonymousMemory memory = sample_anonymous_memory();
    out.node = facts_.node;
    out.pid = static_cast<std::uint64_t>(::getpid());
    out.address = parts_.world.network.self();
    out.uptime_ms = static_cast<std::uint64_t>((parts_.world.clock.now() - started_) / millisecond);
    out.storage_backend = facts_.storage;
    out.targets = parts_.node.targets().names;
    out.sessions = clients_.sessions();
    out.io_node = facts_.io_node;
    house_.tell_cards(out);
    out.captured_bytes = counters.captured_bytes;
    out.sent_bytes = counters.sent_bytes;
    out.received_bytes = counters.received_bytes;
    out.written_bytes = counters.written_bytes;
    out.scratch_bytes = parts_.slots.bytes();
    out.anonymous_bytes = memory.now_bytes;
    out.anonymous_peak_bytes = memory.peak_bytes;
    out.versions_committed = counters.versions_committed;
    out.attempts_failed = counters.attempts_failed;
    out.last_flush_s = counters.last_flush_s;
    out.last_flush_bytes = counters.last_flush_bytes;
    for (const WriterTimes& w : counters.writers)
        out.writers.push_back({w.received_s, w.local_s, w.received_bytes, w.local_bytes});
    for (const VersionKey& key : parts_.node.versions()) {
        const VersionState state = parts_.node.state(key);
        const bool ended = state.final && state.level < Level::committed;
        if (ended && (state.dead || !parts_.node.is_newest(key.incarnation))) continue;  // nobody waits for it
        control::NodeStatus::Flush flush;
        flush.key = key;
        flush.level = state.level;
        flush.code = state.failure.code();
        flush.text = state.failure.text();
        flush.bytes = state.bytes;
        flush.written_bytes = state.node_written_bytes;
        flush.expected_bytes = state.node_expected_bytes;
        out.versions.push_back(std::move(flush));
    }
    house_.describe(out);
    return out;
}

Task<control::Answer> Requests::handle(ConnectionId, control::GetStatus) { co_return status(); }

Task<control::Answer> Requests::handle(ConnectionId, control::Stop request) {
    control::Stopped stopped;
    stopped.unfinished = co_await house_.finish(from_ms(request.wait_ms));
    co_return stopped;
}

}  // namespace cairn
