// Checkpoints: taking them, waiting for them, giving them up.
#include "client/session.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "client/guarded.hpp"
#include "format/manifest.hpp"
#include "world/real/world.hpp"

namespace cairn {

namespace {
constexpr std::uint64_t answer_poll_ms = 20;           // for it where the caller does not want to wait; the next poll takes the one that came late
constexpr std::uint64_t adopt_wait_ms = 2'000;
constexpr std::uint64_t ahead_wait_ms = 100;  // a call of the application may come meanwhile, and waits as long
constexpr std::uint64_t wait_slice_ms = 1'000;  // so that a dead daemon is noticed while we wait
}  // namespace

std::string Session::warnings() const {
    const std::lock_guard lock(state_);
    return warnings_;
}
void Session::set_last_error(const Status& status) {
    const std::lock_guard lock(state_);
    last_error_ = status.to_string();
}
std::string Session::last_error() const {
    const std::lock_guard lock(state_);
    return last_error_;
}
bool Session::in_this_process() const { return pid_ == static_cast<std::uint64_t>(::getpid()); }

Status Session::close() {
    const Status status = exchange_->leave(Deadline::in_ms(settings_.deadlines.open_ms));
    return std::move(status).within("closing \"" + name_ + "\"");
}

Status Session::check_version(Version version) const {
    if (version == 0 || version == CAIRN_NEWEST)
        return invalid_argument("versions count from 1; " + std::to_string(version) + " can not be taken");
    if (version > last_version_) return {};
    return invalid_argument("version " + std::to_string(version) + " is not increasing: the newest of \"" + name_ +
                            "\" is " + std::to_string(last_version_));
}

Status Session::checkpoint(Version version) {
    TRY(check_version(version));
    TRY_ASSIGN(const MemoryMap map, MemoryMap::read());
    ImageHeader header;
    header.key = {name_, version, roster_.incarnation};
    header.epoch = roster_.epoch;
    header.parent = roster_.parent;
    header.rank = rank_;
    header.ranks = ranks_;
    header.block_bytes = block_bytes_;
    TRY_ASSIGN(const CapturePlan plan, plan_capture(std::move(header), regions_, map, layout_of_files_));
    bool is_taken = false;  // perhaps: its number is used up
    Status status = is_through_ ? give_through(plan, is_taken) : capture_with_patience(plan);
    const std::lock_guard lock(state_);
    if (status.ok() || (is_through_ && is_taken)) {
        last_version_ = version;
        took_any_ = true;
    }
    if (status.ok()) taken_[version] = {roster_.incarnation, is_through_};
    else if (is_taken) taken_.erase(version);
    if (status.ok()) {
        other_bytes_ = plan.slot_bytes - std::min(plan.slot_bytes, slot_bytes_ahead(regions_, block_bytes_));
        prepare_next();
    }
    return std::move(status).within("version " + std::to_string(version) + " of \"" + name_ + "\"");
}

// A daemon that is started again finds a slot that is being filled, holding nothing sealed, and gives it up. What is to be captured is still
// there, and nobody else has it: once more, into another slot. Not when nobody knows whether the image was taken.
Status Session::capture_with_patience(const CapturePlan& plan) {
    const Deadline own = Deadline::in_ms(settings_.capture.wait_ms);
    bool slot_lost = false;
    Status status = capture_into_slot(plan, own, slot_lost);
    if (!slot_lost) return status;
    slot_lost = false;
    return capture_into_slot(plan, own, slot_lost).within("captured once more after its slot was lost (" + status.text() + ")");
}

Status Session::capture_into_slot(const CapturePlan& plan, Deadline own, bool& slot_lost) {
    control::Acquire acquire;
    acquire.key = plan.header.key;
    acquire.rank = rank_;
    acquire.bytes = plan.slot_bytes;
    acquire.wait_ms = own.left_ms();
    acquire.image_bytes = plan.header.image.bytes;
    acquire.block_bytes = plan.header.block_bytes;
    slots_.forget_gone();
    // It may find room at the very end of the wait, and allocate then.
    const auto acquired = ask_while_it_lives<control::Slot>(acquire, own, settings_.deadlines.io_ms);
    // A slot that comes after we stopped waiting would be nobody's as long as this connection lives.
    if (acquired.code() == Code::deadline) daemon_->disconnect();
    if (acquired.code() == Code::out_of_space) return acquired.status().within("scratch " + settings_.paths.scratch);
    TRY(acquired.status());
    const control::Slot& slot = *acquired;
    Status status;
    const Result<SlotMaps::Map*> mapped = slots_.map(slot.path, plan.slot_bytes);
    if (mapped.ok())
        status = capture(plan, regions_, **mapped, settings_.capture.checksums == Settings::Checksums::capture);
    else
        status = mapped.status();
    slot_lost = mapped.code() == Code::not_found;  // between the daemon's answer and our opening it
    if (!status.ok()) {
        // A daemon that can not be told finds the slot unsealed when our connection ends.
        const auto released = daemon_->ask_for<control::Done>(control::Release{slot.path}, Deadline::in_ms(sign_of_life_ms));
        if (released.code() == Code::deadline) daemon_->disconnect();
        return status;
    }
    // Sealed: this image outlives us from here on. A daemon that dies now finds it in scratch when it is started again.
    status = say_sealed({plan.header.key, rank_, slot.path}, own);
    slot_lost = status.code() == Code::not_found;
    if (!status.ok()) {
        image_set_invalid((*mapped)->base);
        daemon_->disconnect();  // its slots are looked into then: this one holds nothing
    }
    return status;
}

// ---- before the next checkpoint ----

// Another thread of the application may be calling, on another processor: a hint, no more.
void Session::prepare_next() {
    if (is_through_ || !settings_.capture.ahead || !daemon_) return;
    unsigned processor = 0, node = 0;
    if (::getcpu(&processor, &node) == 0) numa_node_ = static_cast<std::int32_t>(node);
    asked_ahead_ = 0;
    const Status ignored = guarded([&]() -> Status {
        if (!ahead_) ahead_ = std::make_unique<Ahead>([this] { return prepare_some(); });
        ahead_->changed();
        return {};
    });
    static_cast<void>(ignored);  // without it a capture does all by itself
}

// Mapping needs no turn of the session's: the application can go on calling.
std::optional<std::chrono::milliseconds> Session::prepare_some() {
    if (slots_.populate_some()) return std::chrono::milliseconds(0);
    std::optional<std::chrono::milliseconds> next;
    const std::lock_guard guard(main);
    const Status ignored = guarded([&]() -> Status {
        next = ask_ahead();
        return {};
    });
    static_cast<void>(ignored);  // a capture will say what is wrong
    return next;
}

// Whatever the daemon can not do now is left to the next checkpoint, which asks in earnest.
std::optional<std::chrono::milliseconds> Session::ask_ahead() {
    constexpr std::size_t slots_each = 2;  // as many as the daemon makes ahead
    constexpr std::chrono::milliseconds mapped_now{0}, look_again{100};
    constexpr unsigned turns_to_double = 16, doubled_max = 7;  // to 13 s: a version that is never sealed, a daemon that stands still
    const std::uint64_t bytes = other_bytes_ + slot_bytes_ahead(regions_, block_bytes_);
    slots_.forget_gone();
    if (bytes == 0 || !daemon_->welcome().prepares || slots_.count_of(bytes) >= slots_each) return std::nullopt;
    const auto prepared = daemon_->ask_if_connected<control::Prepared>(control::Prepare{rank_, bytes, numa_node_}, Deadline::in_ms(ahead_wait_ms));
    const auto later = look_again * (1 << std::min(doubled_max, asked_ahead_++ / turns_to_double));
    if (prepared.code() == Code::deadline) return later;  // in the idle class, beside its own flush
    if (!prepared.ok()) return std::nullopt;
    const std::size_t before = slots_.count_of(0);
    for (const control::Slot& slot : prepared->slots) static_cast<void>(slots_.map_ahead(slot.path, bytes));  // one that is gone again is asked for later
    if (slots_.count_of(0) > before) return mapped_now;
    return prepared->more_to_come ? std::optional<std::chrono::milliseconds>(later) : std::nullopt;
}

// After a broken connection the daemon finds the image by itself, a little later than we ask: not_found is no answer at
// first, unless the slot's file is gone.
Status Session::say_sealed(const control::Sealed& sealed, Deadline own) {
    const Deadline adopted = Deadline::in_ms(adopt_wait_ms);
    Backoff backoff;
    for (;;) {
        Status status = ask_while_it_lives<control::Done>(sealed, own, settings_.daemon.start_wait_ms).status();
        if (status.code() != Code::not_found || !slots_.still_there(sealed.path) || !backoff.pause(adopted)) return status;
    }
}

Result<VersionKey> Session::key_of(Version version) const {
    const std::lock_guard lock(state_);
    const auto found = taken_.find(version);
    if (found == taken_.end())
        return not_found("version " + std::to_string(version) + " was not taken by this session");
    return VersionKey{name_, version, found->second.incarnation};
}

// False also when that can not be told in time. Through a world of its own, whose calls have deadlines: a file system that hangs must not hold
// the caller longer than it wants to wait.
Result<bool> Session::committed_on_disk(const VersionKey& key, Deadline deadline) const {
    TRY_ASSIGN(const std::unique_ptr<RealWorld> real, open_world());
    World world = real->world();
    const std::uint64_t wait_ms = std::clamp<std::uint64_t>(deadline.left_ms(), 1, answer_allowance_ms);
    const Nanos until = real->loop().now() + static_cast<Nanos>(wait_ms) * millisecond;
    const auto manifest = real->loop().run(read_manifest_facts(world, layout_, key, until));
    if (manifest.code() == Code::not_found || manifest.code() == Code::deadline) return false;
    TRY(manifest.status());
    if (manifest->abandoned) return Status(Code::cancelled, "version " + std::to_string(key.version) + " was abandoned");
    return true;
}

// Over a connection that nobody else uses at this time: as many as calls that wait at once.
template <class A>
Result<A> Session::ask_beside(const control::Request& request, Deadline deadline) {
    std::unique_ptr<DaemonLink> link;
    {
        const std::lock_guard lock(state_);
        if (!spare_links_.empty()) {
            link = std::move(spare_links_.back());
            spare_links_.pop_back();
        }
    }
    if (!link) link = std::make_unique<DaemonLink>(place_, false, settings_.daemon.start_wait_ms);
    auto answer = link->template ask_for<A>(request, deadline);
    const std::lock_guard lock(state_);
    spare_links_.push_back(std::move(link));
    return answer;
}

// The numbers of cairn.h are those of the table of levels, of which a program sees all but the first.
static_assert(CAIRN_CAPTURED == static_cast<int>(Level::captured) && CAIRN_SEALED == static_cast<int>(Level::sealed) &&
              CAIRN_COMMITTED == static_cast<int>(highest_level));

Status Session::wait(Version version, int level, std::uint64_t timeout_ms) {
    const std::optional<Level> wanted = level < CAIRN_CAPTURED ? std::nullopt : level_of(static_cast<std::uint64_t>(level));
    if (!wanted)
        return invalid_argument("there is no level " + std::to_string(level));
    TRY_ASSIGN(const VersionKey key, key_of(version));
    if (*wanted == Level::captured || told(version).committed) return {};
    const Deadline deadline = Deadline::in_ms(timeout_ms);
    for (;;) {
        control::Wait request;
        request.key = key;
        request.level = *wanted;
        request.wait_ms = std::min(deadline.left_ms(), wait_slice_ms);
        request.failures_told = told(version).failures_told;
        // Whoever waits said for how long: a daemon that has much to do, or stands still, is no reason to stay longer.
        const Deadline slice = Deadline::in_ms(std::min(request.wait_ms + answer_allowance_ms, deadline.left_ms() + answer_poll_ms));
        const auto state = ask_beside<control::State>(request, slice);
        if (!state.ok() && state.code() != Code::not_found && state.code() != Code::deadline) return state.status();
        if (state.ok() && state->level >= *wanted) return tell_reached(version, state->level);
        if (state.ok() && state->code != Code::ok && (state->final || state->failures > request.failures_told || deadline.passed()))
            return tell_failure(version, *state);
        // The daemon has forgotten it, or does not answer; the file system has not. (One that answers has looked there, too.)
        if ((!state.ok() || state->level == Level::none) && !deadline.passed()) {
            TRY_ASSIGN(const bool committed, committed_on_disk(key, deadline));
            if (committed) return tell_reached(version, Level::committed);
        }
        if (deadline.passed())
            return deadline_passed("version " + std::to_string(version) + " is not yet " +
                                   std::string(row_of(*wanted).reached) +
                                   (!state.ok()               ? ", as far as can be told: " + state.status().text()
                                    : !state->text.empty() ? ": " + state->text + " has not sealed it"
                                                           : ""));
        if (!state.ok() || state->level == Level::none)
            std::this_thread::sleep_for(std::chrono::milliseconds(std::min<std::uint64_t>(deadline.left_ms(), 200)));
    }
}

Session::Taken Session::told(Version version) const {
    const std::lock_guard lock(state_);
    const auto found = taken_.find(version);
    return found == taken_.end() ? Taken() : found->second;
}

Status Session::tell_reached(Version version, Level level) {
    const std::lock_guard lock(state_);
    taken_[version].committed |= level == Level::committed;
    return {};
}

// Told once: whoever waits again waits for what becomes of the next try.
Status Session::tell_failure(Version version, const control::State& state) {
    const std::lock_guard lock(state_);
    taken_[version].failures_told = state.failures;
    return {state.code, state.text};
}

Status Session::cancel(Version version) {
    TRY_ASSIGN(const VersionKey key, key_of(version));
    return ask_beside<control::Done>(control::Cancel{key},
                                     Deadline::in_ms(settings_.network.peer_timeout_ms + answer_allowance_ms))
        .status();
}

}  // namespace cairn
