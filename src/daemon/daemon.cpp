#include "daemon/daemon.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <asio/signal_set.hpp>
#include <cstdio>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "daemon/blocking.hpp"
#include "daemon/keeper.hpp"
#include "daemon/memory.hpp"
#include "describer/describer.hpp"
#include "catalog/catalog.hpp"
#include "catalog/io_nodes.hpp"
#include "storage/detect.hpp"
#include "world/real/asio.hpp"

namespace cairn {

namespace {

constexpr Nanos tick = second;                   // idle nodes are left alone: one wake-up a second
constexpr Nanos busy_tick = 100 * millisecond;   // while a flush is under way: for the memory's peak
constexpr Nanos settle_down = 20 * millisecond;  // many changes at once are one look at retention
constexpr Nanos last_answers_wait = second;
constexpr Nanos spare_slot_wait = 30 * second;  // a free slot that a burst of checkpoints needed
constexpr Nanos tidy_wait = 5 * second;
constexpr Nanos remove_wait = 4 * second;  // for all slots that go together at the end
constexpr Nanos targets_again = 300 * second;
constexpr std::chrono::seconds describe_wait{1};  // a file takes milliseconds, and whoever encodes waits for it

// Ranks wait for slots, and copy on other processors: not the idle class, and not in the way of ranks that compute.
ThreadClass class_beside(const DaemonOptions& options) {
    const bool gives_way = options.stepping.follows_need || options.stepping.first != CpuClass::normal;
    return {gives_way ? CpuClass::low : CpuClass::normal, IoClass::normal};
}

WorkerPoolOptions worker_options(const DaemonOptions& daemon) {
    WorkerPoolOptions options;
    options.thread_class = class_beside(daemon);
    options.name = "cairn-slots";
    options.threads_max = 4;  // allocation is the kernel's work on memory: more threads do not help
    return options;
}

WorkerPoolOptions remover_options(const DaemonOptions& daemon) {
    WorkerPoolOptions options;
    options.thread_class = class_beside(daemon);
    options.name = "cairn-remove";
    return options;
}

}  // namespace

struct Daemon::Signals {
    Signals(Loop& loop, bool kept) : set(loop.context(), SIGTERM, SIGINT) {
        if (kept) set.add(keeper_says_stop());
    }
    asio::signal_set set;
};

Result<std::unique_ptr<Daemon>> Daemon::start(DaemonOptions options, Door door) {
    TRY_ASSIGN(std::unique_ptr<RealWorld> world, RealWorld::create(options.world));
    TRY_ASSIGN(std::unique_ptr<FabricNetwork> network, FabricNetwork::open(world->loop(), options.fabric));
    world->use_network(*network);
    std::unique_ptr<Daemon> daemon(
        new Daemon(std::move(options), std::move(door), std::move(world), std::move(network)));
    if (daemon->options_.io_node) TRY(daemon->offer_as_io_node());
    TRY(daemon->listen());
    return daemon;
}

Daemon::Daemon(DaemonOptions options, Door door, std::unique_ptr<RealWorld> world,
               std::unique_ptr<FabricNetwork> network)
    : options_(std::move(options)),
      door_(std::make_shared<Door>(std::move(door))),
      real_(std::move(world)),
      network_(std::move(network)),
      world_(real_->world()),
      workers_(real_->loop().remote(), worker_options(options_)),
      removers_(real_->loop().remote(), remover_options(options_)),
      node_(world_, options_.persistent, options_.flush),
      slots_(world_.clock, workers_, node_, options_.scratch.images(), options_.slots),
      job_files_(world_, workers_, options_.persistent, options_.scratch, options_.flush.io_wait),
      jobs_(world_, node_, job_files_, options_.node, options_.flush.io_wait),
      adoption_(world_, workers_, node_, slots_, job_files_, jobs_, options_.scratch, options_.node, options_.persistent,
                options_.persistent_rule, options_.flush.io_wait),
      left_slots_(world_, node_, slots_, options_.flush.io_wait),
      ended_jobs_(world_, node_, slots_, job_files_, jobs_, options_.node),
      epochs_(world_, options_.persistent, options_.flush.io_wait),
      persistent_retention_(world_, node_, options_.persistent, options_.persistent_rule, options_.flush.io_wait),
      dead_images_(world_, options_.persistent, node_, slots_, options_.flush.io_wait),
      asked_(world_, node_, options_.flush.version_wait),
      upkeep_(workers_, world_.clock, door_, options_.log_file, options_.log_level, options_.flush.io_wait),
      requests_({world_, node_, slots_, jobs_, adoption_, ended_jobs_, epochs_, dead_images_, asked_}, *this,
                {options_.node, std::string(real_->storage().backend_name()), options_.io_node, options_.persistent, options_.flush.io_wait}),
      server_(real_->loop(), *this),
      yielding_(world_.clock, node_.pace(), options_.yielding, [this] { return card_in_use(); }),
      relay_(real_->loop()),
      stepping_(*real_, relay_, node_, options_.stepping),
      signals_(std::make_unique<Signals>(real_->loop(), options_.life != nullptr)),
      last_busy_(world_.clock.now()),
      changed_(world_.clock),
      gate_(world_.clock) {
    const auto describer = std::make_shared<Describer>(describer_program());  // of threads that may outlive this
    const auto elsewhere = [describer](const std::string& path, std::uint64_t offset, std::uint64_t length) { return describer->describe(path, offset, length, describe_wait); };
    node_.set_describers({elsewhere, options_.file_rules, options_.names});
    // While it is not known whose some image is, it may be of any job.
    node_.set_unseen_images([this](Id128 incarnation) {
        return !adoption_.knows_images() || adoption_.has_unread() || left_slots_.is_looking() || adoption_.unseen().has_of(incarnation);
    });
}

Daemon::~Daemon() = default;

// Before it listens: whoever has seen it answer finds its record.
Status Daemon::offer_as_io_node() {
    node_.serve_as_io_node(options_.node);
    const Nanos deadline = world_.clock.in(static_cast<Nanos>(options_.start_wait_ms) * millisecond);
    const IoNodeRecord record{options_.node, network_->self()};
    Status published = real_->loop().run(publish_io_node(world_, options_.persistent, record, deadline));
    return std::move(published).within("offering this I/O node in " + options_.persistent.io_nodes());
}

Status Daemon::listen() {
    TRY_ASSIGN(Descriptor socket, door_->listen());
    TRY(server_.accept_on(std::move(socket)));
    if (options_.life) options_.life->began = true;
    log_info("started", {{"version", CAIRN_VERSION},
                         {"pid", ::getpid()},
                         {"node", options_.node},
                         {"scratch", options_.scratch.root},
                         {"persistent", options_.persistent.persistent},
                         {"address", network_->self()},
                         {"io_node", options_.io_node ? "yes" : "no"},
                         {"storage", real_->storage().backend_name()},
                         {"buffers", options_.flush.buffers},
                         {"buffer_bytes", options_.flush.buffer_bytes}});
    if (const FabricCard card = network_->card(); !card.interface.empty())
        log_info("card", {{"interface", card.interface}, {"rate", rate_text(card.rate_mbps)}, {"why", network_->card_choice()}});
    return {};
}

// Empty: none that is known.
std::string Daemon::card_in_use() const {
    const FabricCard card = network_->card();
    return card.interface.empty() ? interface_of(network_->self()) : card.interface;
}

void Daemon::tell_cards(control::NodeStatus& out) const {
    for (const FabricCard& card : network_->cards()) out.cards.push_back({card.interface, card.rate_mbps, static_cast<std::uint32_t>(card.nodes)});
    out.card = network_->card().interface;
    if (!out.cards.empty()) out.card_choice = network_->card_choice();
}

Exit Daemon::run() {
    wait_for_signals();
    gate_.spawn(adopt());
    gate_.spawn(find_targets());
    gate_.spawn(keep_retention());
    gate_.spawn(jobs_.publish_late([this] { return stopping_; }));
    gate_.spawn(adoption_.unseen().give_orphans_late([this] { return stopping_; }));
    gate_.spawn(dead_images_.watch_commits());
    gate_.spawn(watch());
    gate_.spawn(watch_scratch());
    gate_.spawn(stepping_.run());
    gate_.spawn(yielding_.run([this] { return requests_.clients().ranks(); }));
    relay_.run(options_.stepping.follows_need ? CpuClass::normal : options_.stepping.first);
    return unfinished_.empty() ? Exit::fine : Exit::unfinished;
}

// ---- requests ----

void Daemon::on_request(ConnectionId from, std::uint64_t number, control::Request request) {
    last_busy_ = world_.clock.now();
    gate_.spawn(serve(from, number, std::move(request)));
}

void Daemon::on_disconnect(ConnectionId from) {
    last_busy_ = world_.clock.now();
    requests_.disconnected(from);
}

Task<void> Daemon::serve(ConnectionId from, std::uint64_t number, control::Request request) {
    const control::Answer answer = co_await requests_.answer(from, std::move(request));
    server_.answer(from, number, answer);
    const bool hello_refused = std::holds_alternative<control::Failed>(answer) && !requests_.clients().has(from);
    if (hello_refused) server_.disconnect_after_answers(from);
}

Task<std::vector<VersionKey>> Daemon::finish(Nanos wait) {
    std::vector<VersionKey> unfinished = co_await stop(wait, "asked to", Ending::in_order);
    gate_.spawn(end_after_answers());
    co_return unfinished;
}

// ---- at the start, and beside all else ----

Task<void> Daemon::adopt() {
    const Status status = co_await adoption_.adopt([this] { return stopping_; });
    if (!status.ok()) log_info("scratch-not-adopted", {{"why", status}});
    is_adopted_ = true;
    changed_.notify_all();
    gate_.spawn(dead_images_.run());
    co_await adoption_.go_on([this] { return stopping_; });
}

Task<Status> Daemon::adopted() {
    const Nanos deadline = world_.clock.in(options_.flush.io_wait);
    while (!is_adopted_ && world_.clock.now() < deadline) co_await changed_.wait(deadline);
    if (is_adopted_) co_return Status();
    Status looking = deadline_passed("this daemon is still looking at what scratch holds");
    if (!adoption_.problem().ok()) looking = std::move(looking).within(adoption_.problem().text());
    co_return looking;
}

// At the start, whenever a job opens, and now and then while there are none: servers come and go, and a file system that
// hung may answer again. Until it is known, files lie where the file system puts them. A look that hangs leaves what was found before.
Task<void> Daemon::find_targets() {
    if (!targets_look_.expired()) co_return;  // one under way, or one that hangs: a second would only take another thread
    targets_looked_for_ = world_.clock.now();
    const auto found = std::make_shared<PlacementTargets>();
    targets_look_ = found;
    std::function<Status()> work = [found, driver = options_.targets_driver, only = options_.targets,
                                    directory = options_.persistent.persistent] {
        TRY_ASSIGN(*found, detect_targets(driver, only, directory));
        return Status();
    };
    const Nanos deadline = world_.clock.in(options_.flush.io_wait);
    Status status = co_await call_blocking(workers_, world_.clock, std::move(work), deadline);
    if (!status.ok()) status = std::move(status).within("looking for the storage targets of " + options_.persistent.persistent);
    if (status.ok())
        node_.set_targets(std::make_shared<const PlacementTargets>(*found));
    else if (status.code() != Code::deadline)
        node_.set_targets(std::make_shared<const PlacementTargets>());
    if (status.ok() && found->warning != warning_said_) {
        warning_said_ = found->warning;
        log_warning("storage-warning", {{"directory", options_.persistent.persistent}, {"warning", warning_said_}});
    }
    const std::string text = status.ok() ? names_text(found->names) : status.to_string();
    if (text == targets_said_) co_return;  // none at the start: nothing to say of a file system without targets
    targets_said_ = text;
    // A volume on which there is nothing to choose is nobody's mistake, unless it was asked for.
    const bool is_usual = status.code() == Code::unavailable && options_.targets_driver == Settings::TargetsDriver::automatic;
    if (status.ok())
        log_info("storage-targets", {{"driver", found->driver}, {"targets", text}});
    else
        log_event(is_usual ? LogLevel::info : LogLevel::warning, "no-storage-targets", {{"why", status}});
}

Task<void> Daemon::keep_retention() {
    for (;;) {
        co_await node_.changed().wait();
        co_await world_.clock.sleep(settle_down);
        slots_.apply_retention();
        if (!stopping_) gate_.spawn(slots_.prepare_next());
        for (const VersionKey& key : node_.versions())
            if (jobs_.coordinates(key.incarnation) && node_.state(key).level == Level::committed)
                persistent_retention_.committed(key);
    }
}

// ---- jobs ----

void Daemon::job_opened(Id128 incarnation) {
    stepping_.job_opened(incarnation);
    gate_.spawn(find_targets());
}

void Daemon::describe(control::NodeStatus& status) const {
    status.cpu_class = stepping_.text();
    status.cpu_class_why = stepping_.why();
    status.processors = static_cast<std::uint32_t>(stepping_.processors().count());
    status.processors_in_machine = stepping_.processors().in_machine();
}

void Daemon::forget_ended_jobs() {
    if (left_slots_.is_looking() || !is_adopted_) return;  // an image may be found whose rank could not tell of it
    for (const Id128 incarnation : ended_jobs_.left_for(options_.idle, requests_.clients().jobs())) forget_job(incarnation);
}

void Daemon::forget_job(Id128 incarnation) {
    if (persistent_retention_.busy(incarnation) || epochs_.busy(incarnation) || !node_.forget(incarnation)) return;
    jobs_.let_go(incarnation);
    epochs_.forget(incarnation);
    persistent_retention_.forget(incarnation);
    ended_jobs_.begin_anew(incarnation);
    stepping_.job_forgotten(incarnation);
    log_info("job-forgotten", {{"incarnation", incarnation}});
}

// ---- when to end ----

// Nor does it stay for a scratch that can not be read: the next one looks, too.
bool Daemon::idle() const {
    const bool has_looked = is_adopted_ || !adoption_.problem().ok();
    return has_looked && !adoption_.verifying() && requests_.clients().sessions() == 0 && node_.idle();
}

Task<void> Daemon::watch() {
    for (;;) {
        const bool busy = !node_.idle();
        co_await world_.clock.sleep(busy ? busy_tick : tick);
        sample_anonymous_memory();
        slots_.apply_retention();  // what was in use when its version ended
        slots_.trim_idle(spare_slot_wait);
        slots_.give_back_ahead();
        if (stopping_) continue;
        forget_ended_jobs();
        if (node_.targets().names.empty() && world_.clock.now() - targets_looked_for_ >= targets_again) gate_.spawn(find_targets());
        if (!idle()) {
            last_busy_ = world_.clock.now();
        } else if (!options_.io_node && world_.clock.now() - last_busy_ >= options_.idle) {
            gate_.spawn(stop_and_end(options_.stop_wait, "idle", Ending::in_order));  // which is over at once, unless something failed
        }
    }
}

Task<void> Daemon::watch_scratch() {
    for (;;) {
        co_await world_.clock.sleep(tick);
        const Status looked = co_await upkeep_.look();
        if (looked.ok() || stopping_) continue;
        log_error("scratch-was-removed", {{"path", options_.scratch.root}});
        gate_.spawn(stop_and_end(options_.stop_wait, "scratch was removed", Ending::by_signal));
    }
}

void Daemon::wait_for_signals() {
    signals_->set.async_wait([this](const asio::error_code& error, int number) {
        if (error) return;
        on_signal(number);
        wait_for_signals();
    });
}

// Who ends a job sends a signal to every process, the keeper among them, in any order: what the keeper is told and what the daemon
// is told are counted each by itself.
void Daemon::on_signal(int number) {
    const bool by_keeper = number == keeper_says_stop();
    const char* name = by_keeper ? "its keeper was told to end" : number == SIGTERM ? "SIGTERM" : "SIGINT";
    const int times = by_keeper ? ++keeper_told_ : ++told_;
    const bool at_once = times > 1 || (stopping_ && !by_keeper && keeper_told_ == 0);
    if (at_once && !std::exchange(ends_at_once_, true)) gate_.spawn(end_at_once(name));
    if (!at_once && !stopping_) gate_.spawn(stop_and_end(options_.stop_wait, name, Ending::by_signal));
}

Task<void> Daemon::end_at_once(const char* name) {
    log_warning("ended-at-once", {{"signal", name}});
    co_await upkeep_.remove_socket(world_.clock.in(second));
    ::_exit(static_cast<int>(Exit::at_once));
}

// Finishes what it can; the first call decides how long that takes, later ones wait for it.
Task<std::vector<VersionKey>> Daemon::stop(Nanos wait, const char* why, Ending ending) {
    const Nanos deadline = world_.clock.in(wait);
    // What scratch holds is known first: else nothing of it would be finished, or named.
    while (ending == Ending::in_order && !is_adopted_ && !stopping_ && world_.clock.now() < deadline) co_await changed_.wait(deadline);
    if (!stopping_) {
        stopping_ = true;
        slots_.end_ahead();
        if (options_.life) options_.life->stopping = true;
        log_info("stopping", {{"why", why}, {"wait_s", wait / second}});
        if (options_.io_node) {
            const IoNodeRecord record{options_.node, network_->self()};
            const Status withdrawn = co_await withdraw_io_node(world_, options_.persistent, record, world_.clock.in(tidy_wait));
            if (!withdrawn.ok()) log_warning("io-node-record-stays", {{"why", withdrawn}});
        }
        co_await dead_images_.look(world_.clock.in(tidy_wait));  // nothing of them is unfinished
        unfinished_ = co_await node_.stop(deadline);
        for (const VersionKey& key : slots_.unfinished())
            if (std::find(unfinished_.begin(), unfinished_.end(), key) == unfinished_.end()) unfinished_.push_back(key);
        for (const VersionKey& key : unfinished_)
            log_warning("unfinished", {{"name", key.name},
                                       {"version", key.version},
                                       {"incarnation", key.incarnation},
                                       {"state", node_.state(key).failure}});
        const Nanos tidy_deadline = world_.clock.in(tidy_wait);
        while (persistent_retention_.busy() && world_.clock.now() < tidy_deadline)
            co_await world_.clock.sleep(settle_down);
        const bool knows_all = adoption_.knows_images() && !adoption_.has_unsupported();
        if (!adoption_.has_unread()) co_await ended_jobs_.remove_files(knows_all, tidy_deadline);
        const bool is_told_to_end = told_ + keeper_told_ > 0;  // meanwhile
        if (ending == Ending::in_order && unfinished_.empty() && !is_told_to_end && options_.free_at_end) co_await free_scratch(world_.clock.in(remove_wait));
        stopped_ = true;
        changed_.notify_all();
    }
    while (!stopped_) co_await changed_.wait(world_.clock.in(tick));
    co_return unfinished_;
}

// What is committed is looked for once more, for half of the time: these may be the only other copies, so the manifest is read whole.
Task<void> Daemon::free_scratch(Nanos deadline) {
    const Nanos look_deadline = world_.clock.now() + (deadline - world_.clock.now()) / 2;
    std::vector<VersionKey> safe;
    for (const VersionKey& key : slots_.all_committed()) {
        const Result<Manifest> manifest = co_await read_manifest(world_, options_.persistent, key, look_deadline);
        const Status status = manifest.ok() && manifest->abandoned ? not_found("it was given up or removed") : manifest.status();
        if (status.ok()) safe.push_back(key);
        else log_warning("images-stay", {{"name", key.name}, {"version", key.version}, {"why", status}});
    }
    const std::uint64_t freed = co_await slots_.remove_versions(std::move(safe), removers_, deadline);
    if (freed != 0) log_info("scratch-freed", {{"bytes", freed}});
}

Task<void> Daemon::stop_and_end(Nanos wait, const char* why, Ending ending) {
    co_await stop(wait, why, ending);
    co_await end();
}

Task<void> Daemon::end_after_answers() {
    const Nanos deadline = world_.clock.in(last_answers_wait);
    do co_await world_.clock.sleep(10 * millisecond);  // the answer to whoever asked is queued meanwhile
    while (!server_.answers_are_out() && world_.clock.now() < deadline);
    co_await end();
}

// Under the lock to the last: whoever finds no socket now starts a daemon that finds no lock soon.
Task<void> Daemon::end() {
    if (std::exchange(ending_, true)) co_return;  // two were told; the first one's removals must not be cut short
    server_.stop_accepting();
    co_await upkeep_.remove_socket(world_.clock.in(tidy_wait));
    co_await slots_.remove_unsealed(removers_, world_.clock.in(remove_wait));
    log_info("ended", {{"unfinished", unfinished_.size()}});
    static_cast<void>(trace_close());  // which logs what went wrong
    relay_.end();
}

}  // namespace cairn
