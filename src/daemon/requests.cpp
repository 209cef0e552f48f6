// Requests: each one's way to its one answer.
#include <sys/types.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "daemon/daemon.hpp"
#include "daemon/memory.hpp"
#include "catalog/catalog.hpp"

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

// While it lives the client's process waits for us and does nothing else.
class Daemon::Waits {
  public:
    Waits(Daemon& daemon, ConnectionId client) : daemon_(daemon), client_(client) { count(+1); }
    Waits(const Waits&) = delete;
    ~Waits() { count(-1); }

  private:
    void count(int step) {
        const auto found = daemon_.clients_.find(client_);
        if (found != daemon_.clients_.end()) found->second.waiting += static_cast<unsigned>(step);
    }
    Daemon& daemon_;
    ConnectionId client_;
};

void Daemon::on_request(ConnectionId from, std::uint64_t number, control::Request request) {
    last_busy_ = world_.clock.now();
    gate_.spawn(serve(from, number, std::move(request)));
}

void Daemon::on_disconnect(ConnectionId from) {
    if (const auto client = clients_.find(from); client != clients_.end()) {
        for (const Id128 incarnation : client->second.jobs) ended_jobs_.begin_anew(incarnation);  // also where it came and went between two looks
        clients_.erase(client);
    }
    last_busy_ = world_.clock.now();
    for (Slots::Left& left : slots_.disconnected(from)) gate_.spawn(left_slots_.look_into(std::move(left)));
}

Task<void> Daemon::serve(ConnectionId from, std::uint64_t number, control::Request request) {
    Task<control::Answer> task = std::visit([&](auto& body) { return handle(from, std::move(body)); }, request);
    const control::Answer answer = co_await task;
    server_.answer(from, number, answer);
    const bool hello_refused = std::holds_alternative<control::Failed>(answer) && !clients_.count(from);
    if (hello_refused) server_.disconnect_after_answers(from);
}

Task<control::Answer> Daemon::handle(ConnectionId from, control::Hello request) {
    if (request.protocol != control::protocol)
        co_return answer_of({Code::unsupported, "the daemon of this node is Cairn " CAIRN_VERSION
                                                " and speaks protocol " +
                                                    std::to_string(control::protocol) + ", this program is Cairn " +
                                                    request.program_version + " and speaks protocol " +
                                                    std::to_string(request.protocol) + "; stop the daemon (process " +
                                                    std::to_string(::getpid()) + ") or use one release for both"});
    // A rank would take the address of a daemon that ends for its node's. Commands may ask: how far it is, to end sooner.
    if (stopping_ && request.is_application) co_return answer_of(is_stopping());
    Client client;
    client.is_application = request.is_application;
    client.pid = server_.process_of(from);
    if (client.pid == 0) client.pid = request.pid;
    clients_[from] = client;
    control::Welcome welcome;
    welcome.program_version = CAIRN_VERSION;
    welcome.pid = static_cast<std::uint64_t>(::getpid());
    welcome.node = options_.node;
    welcome.address = network_->self();
    co_return welcome;
}

Task<control::Answer> Daemon::handle(ConnectionId from, control::Join request) {
    if (stopping_) co_return answer_of(is_stopping());
    const Status ready = co_await adopted();
    if (!ready.ok()) co_return answer_of(ready);
    if (const auto client = clients_.find(from); client != clients_.end()) client->second.jobs.insert(request.roster.incarnation);
    const bool is_new = !node_.knows(request.roster.incarnation);
    const bool went_on = static_cast<bool>(request.roster.parent.incarnation);
    const Id128 incarnation = request.roster.incarnation;
    const Status joined = co_await jobs_.join(std::move(request.roster), request.self);
    if (joined.ok()) co_await adoption_.unseen().give_orphans(incarnation);
    if (joined.ok() && is_new) gate_.spawn(find_targets());
    if (went_on) dead_images_.look_soon();
    co_return answer_of(joined);
}

Task<control::Answer> Daemon::handle(ConnectionId from, control::Acquire request) {
    if (stopping_) co_return answer_of(is_stopping());
    const Status ready = co_await adopted();
    if (!ready.ok()) co_return answer_of(ready);
    const Status current = co_await check_epoch(request.key, 0);
    if (!current.ok()) co_return answer_of(current);
    if (!clients_.count(from)) co_return answer_of(unavailable("the client has gone"));
    const Waits waits(*this, from);
    Result<control::Slot> slot = co_await slots_.acquire(from, std::move(request));
    if (!slot.ok()) co_return answer_of(slot.status());
    if (!clients_.count(from)) {  // went while it was handed out
        const Status released = slots_.release(from, slot->path);
        co_return answer_of(released);
    }
    co_return std::move(slot).value();
}

Task<control::Answer> Daemon::handle(ConnectionId from, control::Sealed request) {
    const Status ready = co_await adopted();
    if (!ready.ok()) co_return answer_of(ready);
    const Slots::Lease lease = slots_.lease_of(from, request.path);
    const Status current = co_await check_epoch(request.key, epoch_wait);
    if (!current.ok()) {
        if (lease != 0 && slots_.lease_of(from, request.path) == lease) slots_.discard(request.path);
        co_return answer_of(current);
    }
    const Status taken = co_await take_image(from, request);
    co_return answer_of(taken);
}

Task<Status> Daemon::check_epoch(VersionKey key, Nanos wait) {
    const Roster* job = jobs_.roster_of(key.incarnation);
    if (!job) co_return Status();  // whoever has not joined is told so elsewhere
    Status current = co_await epochs_.check(std::move(key), job->epoch, wait);
    co_return current;
}

Task<Status> Daemon::take_image(ConnectionId from, const control::Sealed& request) {
    const TraceSpan span(world_.clock, "image of rank " + std::to_string(request.rank), "take");
    if (slots_.holds(request.key, request.rank, request.path))
        co_return Status();  // found before its client could say so
    const Slots::Lease lease = slots_.lease_of(from, request.path);
    if (lease == 0)
        co_return not_found(request.path +
                            " is not a slot of this connection (any more): acquire another one and capture again");
    if (!node_.knows(request.key.incarnation)) co_return not_found("join the job first");
    Result<std::optional<LocalImage>> read =
        co_await read_image(world_, request.path, world_.clock.in(options_.flush.io_wait), slots_.mapping(request.path));
    if (!read.ok()) co_return std::move(read).status();
    if (!read->has_value()) co_return invalid_argument(request.path + " is not sealed");
    LocalImage image = std::move(**read);
    if (image.header.key != request.key || image.header.rank != request.rank)
        co_return invalid_argument(request.path + " holds " + image_text(image.header.key, image.header.rank) + ", not what was said");
    if (slots_.holds(request.key, request.rank, request.path)) co_return Status();
    if (!slots_.sealed(image, lease))
        co_return not_found(request.path + " was given back or given up while it was looked into");
    const Status added = node_.add_image(std::move(image));
    if (added.ok() || added.code() == Code::unavailable)
        co_return Status();  // stopping: it is sealed, the next daemon finds it
    slots_.discard(request.path);
    co_return added;
}

Task<control::Answer> Daemon::handle(ConnectionId from, control::Release request) {
    co_return answer_of(slots_.release(from, request.path));
}

// What is asked once only: persistent, for a version that this daemon has not heard of or has forgotten.
Task<control::State> Daemon::state_of(VersionKey key, bool ask_persistent) {
    control::State out;
    const VersionState state = node_.state(key);
    out.level = state.level;
    out.code = state.failure.code();
    out.text = state.failure.ok() ? node_.unsealed_by(key) : state.failure.text();
    out.final = state.final;
    out.failures = state.failures;
    if (state.level != Level::none) co_return out;
    bool committed = slots_.knows_committed(key);
    if (!committed && ask_persistent) {
        const Result<Manifest> manifest =
            co_await read_manifest(world_, options_.persistent, key, world_.clock.in(options_.flush.io_wait));
        committed = manifest.ok() && !manifest->abandoned;
    }
    if (committed) {
        out.level = Level::committed;
        out.final = true;
    }
    co_return out;
}

Task<control::Answer> Daemon::handle(ConnectionId from, control::Wait request) {
    const Nanos deadline = world_.clock.in(from_ms(request.wait_ms));
    const Status ready = co_await adopted();
    if (!ready.ok()) co_return answer_of(ready);
    std::optional<Waits> waits;
    if (request.wait_ms > 0) waits.emplace(*this, from);  // else it only asks
    for (bool first = true;; first = false) {
        const control::State state = co_await state_of(request.key, first);
        const bool failed = state.code != Code::ok && state.failures > request.failures_told;
        const bool ended = state.level >= request.level || failed || state.final || stopped_;
        if (ended || world_.clock.now() >= deadline || !clients_.count(from)) co_return state;
        const Nanos until = std::min(deadline, world_.clock.in(look_again));
        const Status ignored = co_await node_.wait(request.key, request.level, until, request.failures_told);
        (void)ignored;  // state_of tells
    }
}

Task<control::Answer> Daemon::handle(ConnectionId, control::Cancel request) {
    const Status cancelled = co_await node_.cancel(std::move(request.key), world_.clock.in(cancel_wait));
    co_return answer_of(cancelled);
}

Task<control::Answer> Daemon::handle(ConnectionId from, control::Images request) {
    const Status ready = co_await adopted();
    if (!ready.ok()) co_return answer_of(ready);
    if (!clients_.count(from)) co_return answer_of(unavailable("the client has gone"));
    control::ImageList list = slots_.pin_images(from, request.name);
    list.unread = adoption_.has_unread();
    co_return list;
}

Task<control::Answer> Daemon::handle(ConnectionId from, control::Unpin) {
    slots_.unpin(from);
    dead_images_.look_soon();  // what was held could not go
    co_return control::Done{};
}

control::NodeStatus Daemon::status() const {
    control::NodeStatus out;
    const NodeCounters& counters = node_.counters();
    const AnonymousMemory memory = sample_anonymous_memory();
    out.node = options_.node;
    out.pid = static_cast<std::uint64_t>(::getpid());
    out.address = network_->self();
    out.uptime_ms = static_cast<std::uint64_t>((world_.clock.now() - started_) / millisecond);
    out.storage_backend = real_->storage().backend_name();
    out.targets = node_.targets().names;
    out.sessions = sessions();
    out.io_node = options_.io_node;
    out.captured_bytes = counters.captured_bytes;
    out.sent_bytes = counters.sent_bytes;
    out.received_bytes = counters.received_bytes;
    out.written_bytes = counters.written_bytes;
    out.scratch_bytes = slots_.bytes();
    out.anonymous_bytes = memory.now_bytes;
    out.anonymous_peak_bytes = memory.peak_bytes;
    out.versions_committed = counters.versions_committed;
    out.attempts_failed = counters.attempts_failed;
    out.last_flush_s = counters.last_flush_s;
    out.last_flush_bytes = counters.last_flush_bytes;
    for (const WriterTimes& w : counters.writers)
        out.writers.push_back({w.received_s, w.local_s, w.received_bytes, w.local_bytes});
    for (const VersionKey& key : node_.versions()) {
        const VersionState state = node_.state(key);
        const bool ended = state.final && state.level < Level::committed;
        if (ended && (state.dead || !node_.is_newest(key.incarnation))) continue;  // nobody waits for it
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
    return out;
}

Task<control::Answer> Daemon::handle(ConnectionId, control::GetStatus) { co_return status(); }

Task<control::Answer> Daemon::handle(ConnectionId, control::Stop request) {
    control::Stopped stopped;
    stopped.unfinished = co_await stop(from_ms(request.wait_ms), "asked to", Ending::in_order);
    gate_.spawn(end_after_answers());
    co_return stopped;
}

}  // namespace cairn
