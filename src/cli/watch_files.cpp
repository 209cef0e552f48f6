#include "cli/watch_files.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/text_table.hpp"
#include "cairn/cairn.h"

namespace cairn::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Not IN_MODIFY: it would wake us at every write of the application.
constexpr std::uint32_t folder_mask =
    IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr std::uint32_t tree_mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW;
constexpr milliseconds look_again{50}, look_again_max{1000};  // at a quiet file that somebody still has open

Status limit_reached(int error, const std::string& what, const std::string& key) {
    const Status status = Status::from_errno(error, what);
    return {status.code(), status.text() + ": the limit of the system is reached; raise fs.inotify." + key +
                               " (sysctl) or end other watchers"};
}

std::string names_of(const std::map<std::string, WatchedFile>& files) {
    std::string text;
    for (const auto& [name, file] : files) {
        if (text.size() > 200) return text + ", ...";
        text += (text.empty() ? "" : ", ") + name;
    }
    return text.empty() ? "none" : text;
}

}  // namespace

Result<WatchedFiles> WatchedFiles::open(const std::string& folder, FilePattern pattern, Completeness completeness) {
    WatchedFiles watched(folder, std::move(pattern), completeness);
    watched.inotify_ = files::Descriptor(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!watched.inotify_) {
        const std::string what = "can not watch " + folder;
        return errno == EMFILE ? limit_reached(errno, what, "max_user_instances") : Status::from_errno(errno, what);
    }
    watched.folder_watch_ = ::inotify_add_watch(watched.inotify_.get(), folder.c_str(), folder_mask);
    if (watched.folder_watch_ < 0) {
        const std::string what = "can not watch the folder of the pattern, " + folder + " (--directory)";
        if (errno == ENOSPC) return limit_reached(errno, what, "max_user_watches");
        if (errno == ENOTDIR) return invalid_argument(what + ": it is not a directory");
        const Status status = Status::from_errno(errno, what);
        if (status.code() != Code::not_found) return status;
        return not_found(status.text() + "; make it before the watcher starts");
    }
    return watched;
}

void WatchedFiles::note(const std::string& name, WatchedFile::Seen seen) {
    const auto version = pattern_.match(name);
    if (!version) return;
    const bool no_version = *version == 0 || *version == CAIRN_NEWEST;
    if (*version <= closed_until_ || no_version) {
        if (seen == WatchedFile::Seen::closed || no_version) late_.push_back({*version, name});
        return;
    }
    FileSet& set = sets_[*version];
    set.touched = set.look_at = last_event_ = steady_clock::now();
    set.told = false;
    const auto [file, fresh] = set.files.try_emplace(name);
    if (!fresh && seen == WatchedFile::Seen::found) return;
    file->second.seen = seen;
    const auto mark = this->mark(name);
    file->second.marked = steady_clock::now();
    if (mark.ok())
        file->second.mark = *mark;
    else if (mark.code() == Code::invalid_argument)
        return forget(name);  // a socket, a link to a folder
    if (mark.ok() && mark->tree && !completeness_.last_file.empty()) watch_last_file(name, file->second);
}

bool WatchedFiles::has_last_file(const std::string& name) const {
    const auto mark = FileMark::of(path(name) + "/" + completeness_.last_file);
    return mark.ok() && !mark->tree;
}

// A last file that was closed before we looked is one that was found. Where no more can be watched it is found by looking.
void WatchedFiles::watch_last_file(const std::string& name, WatchedFile& file) {
    const int watch = ::inotify_add_watch(inotify_.get(), path(name).c_str(), tree_mask);
    if (watch < 0 || !tree_watches_.try_emplace(watch, name).second) return;
    if (file.seen == WatchedFile::Seen::created && has_last_file(name)) file.seen = WatchedFile::Seen::found;
}

void WatchedFiles::stop_watching(Version until) {
    std::erase_if(tree_watches_, [&](const auto& each) { return pattern_.match(each.second).value_or(0) <= until && ::inotify_rm_watch(inotify_.get(), each.first) == 0; });
}

void WatchedFiles::tell_end() {
    if (std::exchange(ending_, true)) return;
    for (auto& [version, set] : sets_)
        if (std::any_of(set.files.begin(), set.files.end(), [](const auto& file) { return file.second.mark.tree; })) set.touched = set.look_at = steady_clock::now();
}

Result<FileMark> WatchedFiles::mark(const std::string& name) const {
    TRY_ASSIGN(FileMark mark, FileMark::of(path(name)));
    if (const std::int64_t tick_ns = completeness_.tick.count(); tick_ns != 0) {
        mark.modified_ns -= mark.modified_ns % tick_ns;
        mark.changed_ns -= mark.changed_ns % tick_ns;
    }
    return mark;
}

void WatchedFiles::forget(const std::string& name) {
    std::erase_if(tree_watches_, [&](const auto& each) { return each.second == name && ::inotify_rm_watch(inotify_.get(), each.first) == 0; });
    const auto version = pattern_.match(name);
    const auto set = version ? sets_.find(*version) : sets_.end();
    if (set == sets_.end() || set->second.files.erase(name) == 0) return;
    if (set->second.files.empty())
        sets_.erase(set);
    else
        set->second.touched = set->second.look_at = steady_clock::now();
}

Status WatchedFiles::scan() {
    std::error_code error;
    for (auto entry = std::filesystem::directory_iterator(folder_, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
        note(entry->path().filename().string(), WatchedFile::Seen::found);
    return error ? Status::from_errno(error.value(), "can not list " + folder_) : Status();
}

Status WatchedFiles::read_events() {
    alignas(inotify_event) char buffer[16 << 10];
    for (;;) {
        const ssize_t got = ::read(inotify_.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return {};
        if (got <= 0) return Status::from_errno(got < 0 ? errno : EIO, "can not read what happens in " + folder_);
        for (ssize_t at = 0; at < got;) {
            const auto* const event = reinterpret_cast<const inotify_event*>(buffer + at);
            at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
            if (const auto tree = tree_watches_.find(event->wd); tree != tree_watches_.end()) {
                if (event->mask & IN_IGNORED)
                    tree_watches_.erase(tree);
                else if (event->len != 0 && event->name == completeness_.last_file)
                    note(std::string(tree->second), WatchedFile::Seen::closed);
                continue;
            }
            if (event->wd != folder_watch_ && event->wd >= 0) continue;  // of a tree that is no longer watched
            if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED))
                return not_found("the watched folder " + folder_ + " was removed, moved or unmounted");
            if (event->mask & IN_Q_OVERFLOW) TRY(scan());
            if (event->len == 0) continue;
            const std::string name(event->name);
            if (event->mask & (IN_MOVED_FROM | IN_DELETE))
                forget(name);
            else
                note(name, event->mask & IN_CREATE ? WatchedFile::Seen::created : WatchedFile::Seen::closed);
        }
    }
}

bool WatchedFiles::count_fits(const FileSet& set) const {
    return completeness_.files < 0 ? !set.files.empty()
                                   : set.files.size() == static_cast<std::size_t>(completeness_.files);
}

milliseconds WatchedFiles::quiet(const FileSet& set) const {
    const bool all_closed = std::all_of(set.files.begin(), set.files.end(),
                                        [](const auto& file) { return file.second.seen == WatchedFile::Seen::closed; });
    return milliseconds(all_closed ? completeness_.settle_ms
                                   : std::max(completeness_.settle_ms, completeness_.found_ms));
}

void WatchedFiles::drop_gone(FileSet& set) {
    std::erase_if(set.files, [&](const auto& file) {
        const std::string& name = file.first;
        if (mark(name).code() != Code::not_found) return false;
        std::error_code error;
        const auto about = std::filesystem::symlink_status(path(name), error);
        if (std::filesystem::is_symlink(about)) dangling_.push_back({pattern_.match(name).value_or(0), name});
        return true;
    });
}

// A mark that is another one is a sign of writing.
void WatchedFiles::look_at_marks(FileSet& set) {
    for (auto& [name, file] : set.files) {
        const auto mark = this->mark(name);
        const WatchTime now = steady_clock::now();  // behind the look: the stamp was given before
        if (!mark.ok()) {
            set.obstacle = mark.status().text();
        } else if (*mark != file.mark) {
            file.mark = *mark;
            file.marked = set.touched = last_event_ = now;
            set.told = false;
            set.obstacle = name + " is being written";
        }
    }
}

// Why a tree may get more files; empty: it does not.
std::string WatchedFiles::still_filled(const std::string& name, const WatchedFile& file) const {
    const std::string& last = completeness_.last_file;
    if (!last.empty()) return has_last_file(name) ? "" : name + " has no " + last + " yet";
    if (file.seen != WatchedFile::Seen::created || ending_) return "";
    return name + " is a directory that was made here; it is complete when it is moved here, or has its last file (--last-file), or at the end";
}

void WatchedFiles::look_at_writers(FileSet& set, const std::string& name, const WatchedFile& file) const {
    if (file.mark.tree) set.obstacle = still_filled(name, file);
    if (!set.obstacle.empty()) return;
    std::string which;
    const Writers writers = writers_of(path(name), &which);
    if (writers == Writers::some) set.obstacle = name + (which.empty() ? "" : "/" + which) + " is open for writing";
    if (writers != Writers::unknown || file.seen != WatchedFile::Seen::created || (file.mark.tree && ending_)) return;
    set.obstacle = file.mark.tree ? "the last file of " + name + " was not closed, and this file system can not tell who has it open"
                                  : name + " was not closed since it was made, or is a link, and this file system can not tell who has it open";
}

void WatchedFiles::look_at_writers(FileSet& set) const {
    for (const auto& [name, file] : set.files) {
        look_at_writers(set, name, file);
        if (!set.obstacle.empty()) return;
    }
}

WatchTime WatchedFiles::settled_at(const WatchedFile& file) const {
    return file.marked + (completeness_.tick.count() != 0 ? completeness_.tick + kernel_tick : file.mark.tick());
}

bool WatchedFiles::complete(FileSet& set) {
    const WatchTime now = steady_clock::now();
    if (!count_fits(set) || now < set.look_at) return false;
    const milliseconds wait = quiet(set);
    if (now - set.touched < wait) {
        set.look_at = set.touched + wait;
        return false;
    }
    drop_gone(set);
    if (!count_fits(set)) return false;
    set.obstacle.clear();
    look_at_marks(set);
    if (set.obstacle.empty()) look_at_writers(set);
    if (!set.obstacle.empty()) {
        set.complete_since.reset();
        const auto since = std::chrono::duration_cast<milliseconds>(now - set.touched);
        set.look_at = now + std::clamp(since / 20, look_again, look_again_max);
        return false;
    }
    WatchTime settled = now;
    for (const auto& [name, file] : set.files) settled = std::max(settled, settled_at(file));
    if (settled > now) {
        set.look_at = settled;
        return false;
    }
    if (!set.complete_since) set.complete_since = now;
    return true;
}

std::string WatchedFiles::what_is_missing(const FileSet& set) const {
    const std::string found = plural(set.files.size(), "file") + " (" + names_of(set.files) + ")";
    if (!count_fits(set)) return found + (count_told() ? ", and --files says " + std::to_string(completeness_.files) : "");
    return found + ", " + (set.obstacle.empty() ? "written lately" : set.obstacle);
}

void WatchedFiles::close_until(Version version) {
    stop_watching(closed_until_);  // those of the version that is closed now tell of what comes too late
    closed_until_ = std::max(closed_until_, version);
    sets_.erase(sets_.begin(), sets_.upper_bound(version));
}

}  // namespace cairn::cli
