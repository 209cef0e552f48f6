// A checkpoint with capture.mode = through: no copy is made anywhere. This rank waits until its version is committed, and meanwhile gives its image's bytes, range by
// range, to whoever of the engine wants them. Its memory does not change, for the application is in this call; so what is wanted again is given again, also to a
// daemon that was started in place of one that died. Whatever ends the call before the commit gives the version up.
#include <algorithm>

#include "client/image_bytes.hpp"
#include "client/session.hpp"
#include "client/windows.hpp"
#include "format/control.hpp"

namespace cairn {

namespace {

constexpr std::uint64_t slice_ms = 1'000;           // of waiting for something to be wanted
constexpr std::uint64_t offer_bytes_max = control_payload_bytes_max - (1 << 20);

Status check_offer(const CapturePlan& plan) {
    if (plan.encoded.size() + 8 * plan.header.cuts.size() <= offer_bytes_max) return {};
    return {Code::unsupported, "with capture.mode = through an image can not be cut in " + std::to_string(plan.header.cuts.size()) + " places: protect fewer regions, or set capture.mode = scratch"};
}

}  // namespace

Status Session::give_through(const CapturePlan& plan, bool& offered) {
    ImageBytes bytes(plan, regions_);
    TRY(bytes.check());
    TRY(check_offer(plan));
    const Deadline longest = Deadline::in_ms(settings_.deadlines.version_ms);
    for (;;) {
        bool daemon_lost = false;
        Status status = offer_and_give(plan, bytes, offered, daemon_lost);
        if (!daemon_lost || longest.passed()) return status;
    }
}

Status Session::offer_and_give(const CapturePlan& plan, ImageBytes& bytes, bool& offered, bool& daemon_lost) {
    TRY(daemon_->ensure(Deadline::in_ms(settings_.daemon.start_wait_ms)));
    if (!daemon_->welcome().through)
        return {Code::unsupported, daemon_->who() + " is Cairn " + daemon_->welcome().program_version + ", which knows no capture.mode = through: stop it with `cairn stop`, or let it end"};
    const auto taken = ask_while_it_lives<control::Offered>(control::Offer{plan.header}, Deadline::in_ms(settings_.daemon.start_wait_ms), settings_.deadlines.io_ms);
    // An image that is taken after we stopped waiting would be given by nobody.
    if (taken.code() == Code::deadline) daemon_->disconnect();
    TRY(taken.status());
    offered = true;
    {
        const std::lock_guard lock(state_);
        taken_[plan.header.key.version] = {roster_.incarnation};  // others may wait for it, or give it up
    }
    Status status = give(bytes, taken->image, plan.header.key, daemon_lost);
    if (!status.ok()) daemon_->disconnect();  // the daemon sees that nobody gives it any more
    return status;
}

// Ends when the version is committed, or can not be.
Status Session::give(ImageBytes& bytes, std::uint64_t image, const VersionKey& key, bool& daemon_lost) {
    const Deadline joined = Deadline::in_ms(settings_.capture.wait_ms);
    Windows windows;
    std::uint64_t piece = 0;
    Deadline heard = Deadline::in_ms(settings_.deadlines.version_ms);
    for (;;) {
        const auto wanted = ask_while_it_lives<control::Wanted>(control::Give{image, piece, slice_ms, 0}, Deadline::in_ms(slice_ms + settings_.daemon.start_wait_ms), 0);  // it may be a new one, and that takes a while
        daemon_lost = wanted.code() == Code::not_found;  // this is another one
        TRY(wanted.status());
        piece = wanted->piece;
        const control::State& state = wanted->state;
        if (piece != 0) {
            TRY(write_piece(bytes, windows, *wanted));
            heard = Deadline::in_ms(settings_.deadlines.version_ms);
            continue;
        }
        if (state.level >= Level::committed) return {};
        if (state.code == Code::cancelled) return {state.code, state.text + ": a rank that was to give its image has ended, or somebody gave the version up"};
        if (state.code != Code::ok && (state.final || state.failures > 0)) return take_back(key, {state.code, state.text});
        if (state.final) return {Code::cancelled, "it was given up"};
        if (state.level < Level::sealed && joined.passed())
            return take_back(key, deadline_passed("other ranks did not come to this checkpoint (capture.wait_ms)" + (state.text.empty() ? "" : ": " + state.text)));
        if (state.level >= Level::sealed && state.code == Code::ok) heard = Deadline::in_ms(settings_.deadlines.version_ms);  // from here on the engine has bounds of its own, and tells of them as a failure
        if (heard.passed()) return take_back(key, deadline_passed("nothing was heard of its flush (deadlines.version_ms)"));
    }
}

Status Session::write_piece(ImageBytes& bytes, Windows& windows, const control::Wanted& wanted) {
    TRY_ASSIGN(const std::span<std::byte> window, windows.map(wanted.window, wanted.window_bytes, daemon_->take_descriptor()));
    return bytes.read(wanted.offset, window.first(wanted.length));
}

// It may be committed this very moment.
Status Session::take_back(const VersionKey& key, Status why) {
    const auto cancelled = daemon_->ask_for<control::Done>(control::Cancel{key}, Deadline::in_ms(settings_.network.peer_timeout_ms + answer_allowance_ms));
    return cancelled.code() == Code::already_exists ? Status() : why;
}

}  // namespace cairn
