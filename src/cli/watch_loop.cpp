#include "cli/watch_loop.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/text_table.hpp"
#include "cli/tree_files.hpp"

namespace cairn::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds commit_look{25};  // between looks while something is being flushed
constexpr milliseconds board_look{250};  // at other watchers' versions; a shared file system tells nothing by itself
constexpr milliseconds idle_look{1000};
constexpr milliseconds retry_wait{1000};       // after a capture that failed for want of room or of a daemon
constexpr milliseconds older_wait{5000};       // how long a version that nobody writes may hold up a complete newer one
constexpr milliseconds others_wait{10'000};    // how long other watchers may be behind without a word
constexpr milliseconds few_wait{30'000};       // how long files may be missing without a word
constexpr milliseconds incomplete_wait{1000};  // the same when ending
constexpr milliseconds board_wait{4000};       // when ending, for what the others still capture
constexpr std::size_t taken_max = 64;          // committed versions whose files are remembered

double seconds_since(WatchTime time) { return std::chrono::duration<double>(steady_clock::now() - time).count(); }

}  // namespace

Status WatchLoop::run(Version after, bool scan, int stop_descriptor, WatchedCommand& command) {
    watched_.close_until(after);
    if (after != 0) {
        Taken& earlier = taken_[after];
        earlier.earlier = true;
        earlier.captured_at = steady_clock::now();
        if (session_.committed(after).ok()) {
            earlier.committed = true;
            newest_committed_ = after;
        }
    }
    if (scan) TRY(watched_.scan());
    if (rules_.once) finish_within(rules_.once_wait);
    for (;;) {
        TRY(step());
        look_for_end();
        if (command_by_ && !finishing_ && steady_clock::now() >= *command_by_) finish_within(rules_.stop_wait, false);  // it goes on
        if (finishing_ && finished()) break;
        pollfd ready[] = {{watched_.descriptor(), POLLIN, 0}, {stop_descriptor, POLLIN, 0}};
        if (::poll(ready, 2, static_cast<int>(next_look().count())) < 0 && errno != EINTR)
            return Status::from_errno(errno, "can not wait for files");
        if (ready[1].revents != 0) look_at_signals(stop_descriptor, command);
    }
    report_.ended(committed_);
    if (command_by_ && command.runs() && !pending())
        return deadline_passed("the command did not end within daemon.stop_wait_ms after it was told to; it goes on, and nobody watches what it writes");
    if (!pending()) return {};
    std::string left;
    for (const auto& [version, taken] : taken_) {
        if (taken.committed) continue;
        const Status others = session_.captured_by_all(version);
        left += (left.empty() ? "" : "; ") +
                (others.code() == Code::deadline ? others.text()
                                                 : "version " + std::to_string(version) + " is not yet committed");
    }
    return deadline_passed(left + "; what was captured is in scratch, the daemons go on (`cairn status`)");
}

// While the command lives its end is ours: it is told, and has as long as we would have.
void WatchLoop::look_at_signals(int stop_descriptor, WatchedCommand& command) {
    char byte = 0;
    if (::read(stop_descriptor, &byte, 1) != 1) return;
    if (command.has_ended()) return finish_within(rules_.once_wait);
    if (byte == 'c') return;
    if (!command.runs()) return finish_within(rules_.stop_wait);
    command.pass_on(SIGTERM);
    command_by_ = steady_clock::now() + rules_.stop_wait;
}

Status WatchLoop::step() {
    TRY(watched_.read_events());
    look_at_late();
    TRY(rules_.no_files ? capture_announced() : capture_ready());
    if (!rules_.no_files) tell_standing();
    look_at_left_out();
    look_at_commits();
    remove_originals();
    return {};
}

// ---- capturing ----

// Versions only increase: a complete one waits for older ones that may still become complete, but not for ever.
Status WatchLoop::capture_ready() {
    auto& sets = watched_.sets();
    while (!sets.empty()) {
        auto ready = sets.begin();
        while (ready != sets.end() && !watched_.complete(ready->second)) ++ready;
        std::erase_if(sets, [](const auto& each) { return each.second.files.empty(); });  // they were links that lead nowhere, or are gone
        if (ready == sets.end()) return {};
        for (auto older = sets.begin(); older != ready; ++older)
            if (held_up(older->second, ready->first, ready->second)) return {};
        for (auto older = sets.begin(); older != ready; ++older)
            report_.lost(older->first, "left out, a newer version is complete and this one is not: " +
                                           watched_.what_is_missing(older->second));
        const Version version = ready->first;
        TRY(capture(version, ready->second));
        if (watched_.closed_until() < version) return {};  // to be tried again
    }
    return {};
}

// By an older one, which may still become complete: it was written lately. One that is written for ever, such as a log
// whose name fits, holds up for so long only.
bool WatchLoop::held_up(const FileSet& older, Version version, const FileSet& complete) {
    const WatchTime now = steady_clock::now();
    const milliseconds quiet = 2 * watched_.quiet(older);
    if (now - older.touched >= std::max(older_wait, quiet)) return false;
    const auto waited = now - complete.complete_since.value_or(now);
    if (waited >= std::max(rules_.older_wait, quiet)) return false;
    if (waited >= older_wait)
        report_.note(version, "complete; not captured yet, since an older version is still being written: " +
                                  watched_.what_is_missing(older));
    return true;
}

void WatchLoop::tell_standing() {
    const WatchTime now = steady_clock::now();
    for (auto& [version, set] : watched_.sets()) {
        const bool enough = watched_.count_fits(set);
        if (set.told || set.complete_since || (enough && set.obstacle.empty())) continue;
        const WatchTime since = finishing_ ? std::min(set.touched, finishing_since_) : set.touched;
        if (now - since < std::max(enough || finishing_ ? older_wait : few_wait, 2 * watched_.quiet(set))) continue;
        set.told = true;
        report_.note(version, "not captured yet: " + watched_.what_is_missing(set));
    }
}

Status WatchLoop::capture(Version version, FileSet set) {
    const WatchTime began = steady_clock::now();
    const auto bytes = session_.capture(version, watched_, set.files);
    if (!bytes.ok()) return capture_failed(version, watched_.sets()[version], bytes.status());
    if (!bytes->has_value()) {
        report_.note(version, "a file changed while it was captured; nothing is kept, tried again when it is complete");
        FileSet& again = watched_.sets()[version];
        again.touched = again.look_at = steady_clock::now();
        again.complete_since.reset();
        return {};
    }
    report_.captured(version, set.files.size(), **bytes, seconds_since(began));
    if (set.files.size() < files_before_)
        report_.note(version, plural(set.files.size(), "file") + ", the version before had " +
                                  std::to_string(files_before_) +
                                  "; when one is missing, say how many there must be (--files)");
    files_before_ = set.files.size();
    if (const Status told = board_.announce(version); !told.ok())
        report_.note(0, "watchers without files are not told of versions: " + told.text());
    taken_[version] = {std::move(set.files), steady_clock::now(), false, false, false};
    watched_.close_until(version);
    return {};
}

Status WatchLoop::capture_failed(Version version, FileSet& set, const Status& status) {
    switch (status.code()) {
        case Code::out_of_space:
        case Code::deadline:
        case Code::unavailable:
        case Code::io_error:
            report_.note(version, "not captured, tried again: " + status.text());
            set.look_at = steady_clock::now() + retry_wait;
            return {};
        case Code::invalid_argument:
        case Code::not_found:
        case Code::permission:
        case Code::cancelled:
            report_.lost(version, "not captured: " + status.text());
            watched_.close_until(version);
            return {};
        default:
            return status.within("version " + std::to_string(version));
    }
}

// --files 0: an empty image of each version that another watcher captured.
Status WatchLoop::capture_announced() {
    const WatchTime now = steady_clock::now();
    for (const auto& [version, set] : watched_.sets())
        report_.note(version,
                     "this watcher was told that it has no files (--files 0): " + watched_.what_is_missing(set));
    if (now < next_board_) return {};
    next_board_ = now + board_look;
    const auto announced = board_.announced();
    if (!announced.ok()) {
        report_.note(0, announced.status().text());
        return {};
    }
    for (const Version version : *announced) {
        if (version <= watched_.closed_until()) continue;
        TRY(capture(version, {}));
        if (watched_.closed_until() < version) return {};
    }
    return {};
}

// ---- after the capture ----

void WatchLoop::look_at_commits() {
    for (auto it = taken_.begin(); it != taken_.end();) {
        auto& [version, taken] = *it;
        if (taken.committed) {
            ++it;
            continue;
        }
        const Status status = session_.committed(version);
        bool gone = false;
        if (status.ok()) {
            commit_seen(version, taken);
        } else if (status.code() == Code::cancelled || status.code() == Code::superseded) {
            report_.lost(version, "will not be committed: " + status.text());
            gone = true;
        } else if (status.code() == Code::deadline) {
            tell_of_others(version, taken);
        } else {
            report_.note(version, "not committed yet, tried again in the background: " + status.text());
        }
        it = gone ? taken_.erase(it) : std::next(it);
    }
}

// A version is of all watchers or of none.
void WatchLoop::tell_of_others(Version version, Taken& taken) {
    constexpr int asked_most = 10;
    if (taken.earlier || taken.asked > asked_most || steady_clock::now() - taken.captured_at < others_wait * (1 << taken.asked)) return;
    ++taken.asked;
    const Status others = session_.captured_by_all(version);
    if (others.code() != Code::deadline || !taken.told.insert(others.text()).second) return;
    report_.note(version, "captured here, and not by all watchers: " + others.text() +
                              "; it waits until that watcher has all its files (one without files says --files 0)");
}

void WatchLoop::commit_seen(Version version, Taken& taken) {
    taken.committed = true;
    newest_committed_ = std::max(newest_committed_, version);
    ++committed_;
    const auto facts = session_.facts(version);
    if (!facts.ok()) report_.note(version, "committed, but its manifest can not be read now: " + facts.status().text());
    report_.committed(version, facts.ok() ? *facts : CommittedFacts{}, taken.files.size(),
                      seconds_since(taken.captured_at));
    if (index_ == 0) board_.retract(version);
}

void WatchLoop::look_at_left_out() {
    for (const auto& [version, name] : watched_.take_dangling())
        report_.note(version, name + " is a link that leads nowhere; it is left out");
}

// How to have it whole the next time.
std::string WatchLoop::late_advice(bool held) const {
    if (!watched_.count_told())
        return " Say how many files there are (--files), or wait longer for the last (--settle-ms)";
    if (held) return " The program closes its files before they are whole: wait after the last write (--settle-ms)";
    return " There are more files than --files says";
}

// A file of a version that was captured already, or that the series has behind it. A captured version that lacks it
// must not be committed.
void WatchLoop::look_at_late() {
    for (const auto& [version, name] : watched_.take_late()) {
        if (version == 0 || version == CAIRN_NEWEST) {
            report_.note(0, "files of number " + std::to_string(version) + ", such as " + name +
                                ", are left out: versions count from 1 to " + std::to_string(CAIRN_NEWEST - 1));
            continue;
        }
        const auto taken = taken_.find(version);
        if (taken == taken_.end() || taken->second.earlier) {
            report_.note(
                version,
                "files of this version are written again, but the series is past it; they are not captured (watch "
                "--from V goes on from an older version)");
            continue;
        }
        const auto file = taken->second.files.find(name);
        const auto mark = watched_.mark(name);
        if (!mark.ok() || (file != taken->second.files.end() && file->second.mark == *mark))
            continue;  // opened, not written
        const bool held = file != taken->second.files.end();
        const std::string what = name + " was written " + (held ? "again " : "") + "after the version was captured";
        const std::string advice = late_advice(held);
        if (taken->second.committed || session_.cancel(version).code() == Code::already_exists) {
            report_.lost(version, what + "; it is committed " +
                                      (held ? "with what the file held before" : "without that file") +
                                      ", and a restart would take it: if it is not whole, `cairn rm --force " +
                                      session_.name() + " " + std::to_string(version) + "` takes it away." + advice);
            taken->second.files.erase(name);  // so that it is not told again, and the file is not removed
            continue;
        }
        report_.lost(version, what + "; the version is given up." + advice);
        taken_.erase(taken);
    }
}

// Only files that are still what was captured.
void WatchLoop::remove_originals() {
    std::size_t committed = 0;
    for (auto it = taken_.rbegin(); it != taken_.rend(); ++it) {
        auto& [version, taken] = *it;
        if (!taken.committed || ++committed <= rules_.keep_originals || rules_.keep_originals == 0) continue;
        std::uint64_t removed = 0;
        for (const auto& [name, file] : taken.files) {
            const std::string path = watched_.path(name);
            const auto mark = watched_.mark(name);
            if (mark.ok() && *mark == file.mark && remove_tree(path).ok()) ++removed;
        }
        if (removed > 0) report_.removed(version, removed);
        taken.files.clear();
    }
    const std::size_t remembered = std::max<std::size_t>(taken_max, rules_.keep_originals + 1);
    while (taken_.size() > remembered && taken_.begin()->second.committed) taken_.erase(taken_.begin());
}

// ---- ending ----

bool WatchLoop::pending() const {
    return std::any_of(taken_.begin(), taken_.end(), [](const auto& taken) { return !taken.second.committed; });
}

bool WatchLoop::may_still_complete() const {
    const WatchTime now = steady_clock::now();
    const bool told_to_stop = finishing_ && !rules_.once;  // then a file may be open for as long as there is time
    return std::any_of(watched_.sets().begin(), watched_.sets().end(), [&](const auto& each) {
        const FileSet& set = each.second;
        if (now - set.touched < std::max(incomplete_wait, 2 * watched_.quiet(set))) return true;
        if (!watched_.count_fits(set) || set.look_at <= now) return false;
        return set.obstacle.empty() || told_to_stop || now - set.touched < older_wait;
    });
}

void WatchLoop::look_for_end() {
    const WatchTime now = steady_clock::now();
    const Version until = rules_.until_commit_of;
    const bool reached = until != 0 && (newest_committed_ >= until || (watched_.closed_until() >= until && !pending()));
    const bool idle = rules_.idle_exit.count() != 0 && !pending() && !may_still_complete() &&
                      now - watched_.last_event() >= rules_.idle_exit;
    if (!finishing_ && (reached || idle)) finish_within(rules_.stop_wait, !reached);
}

void WatchLoop::finish_within(milliseconds wait, bool is_written) {
    finishing_ = true;
    if (is_written) watched_.tell_end();
    finishing_since_ = steady_clock::now();
    finish_by_ = finishing_since_ + wait;
}

bool WatchLoop::finished() {
    const bool out_of_time = steady_clock::now() >= finish_by_;
    const bool more = rules_.no_files ? steady_clock::now() - finishing_since_ < board_wait : may_still_complete();
    if (!out_of_time && (pending() || more)) return false;
    if (!rules_.no_files)
        for (const auto& [version, set] : watched_.sets())
            report_.lost(version, "not captured, it was not complete at the end: " + watched_.what_is_missing(set));
    return true;
}

milliseconds WatchLoop::next_look() const {
    milliseconds wait = pending() ? commit_look : finishing_ ? milliseconds(50) : idle_look;
    if (rules_.no_files) wait = std::min(wait, board_look);
    const WatchTime now = steady_clock::now();
    if (command_by_ && !finishing_) wait = std::min(wait, std::chrono::ceil<milliseconds>(std::max(*command_by_ - now, WatchTime::duration(0))));
    for (const auto& [version, set] : watched_.sets())
        if (set.look_at > now) wait = std::min(wait, std::chrono::ceil<milliseconds>(set.look_at - now));
    return wait;
}

}  // namespace cairn::cli
