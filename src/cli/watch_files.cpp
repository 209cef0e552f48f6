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
constexpr milliseconds look_again{50}, look_again_max{1000};  // at a quiet file that somebody still has open

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

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

Result<FileMark> FileMark::of(const std::string& path) {
    struct stat about = {};
    if (::stat(path.c_str(), &about) != 0)
        return errno == ELOOP ? not_found(path + " is a link that leads nowhere") : Status::from_errno(errno, path);
    if (!S_ISREG(about.st_mode)) return invalid_argument(path + " is not a regular file");
    return FileMark{about.st_dev,
                    about.st_ino,
                    static_cast<std::uint64_t>(about.st_size),
                    about.st_mode & 07777u,
                    nanoseconds(about.st_mtim),
                    nanoseconds(about.st_ctim)};
}

constexpr std::chrono::nanoseconds kernel_tick = std::chrono::milliseconds(10);

// Nobody tells the tick of a file system's clock. Where it is coarse the stamp shows it: a whole number of milliseconds
// or seconds (FAT counts every other second), which a clock of nanoseconds hits once in a million times or less. Where
// it does not show, stamps come with the tick of a kernel, this one's or a server's: 10 ms at most.
std::chrono::nanoseconds FileMark::tick() const {
    std::int64_t grain_ns = 1;
    while (grain_ns < 1'000'000'000 && changed_ns % (10 * grain_ns) == 0) grain_ns *= 10;
    return kernel_tick + std::chrono::nanoseconds(grain_ns < 1'000'000'000 ? grain_ns : 2 * grain_ns);
}

// The kernel refuses a read lease while somebody has the file open for writing. It is given back at once; a writer that
// comes in between waits for that long (SIGIO, which asks us to give it back, is ignored by the watcher).
Writers writers_of(const std::string& path) {
    const files::Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file) return Writers::unknown;
    if (::fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN ? Writers::some : Writers::unknown;
    ::fcntl(file.get(), F_SETLEASE, F_UNLCK);
    return Writers::none;
}

Result<WatchedFiles> WatchedFiles::open(const std::string& folder, FilePattern pattern, Completeness completeness) {
    WatchedFiles watched(folder, std::move(pattern), completeness);
    watched.inotify_ = files::Descriptor(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!watched.inotify_) {
        const std::string what = "can not watch " + folder;
        return errno == EMFILE ? limit_reached(errno, what, "max_user_instances") : Status::from_errno(errno, what);
    }
    if (::inotify_add_watch(watched.inotify_.get(), folder.c_str(), folder_mask) < 0) {
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
        forget(name);  // a folder, a socket
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

void WatchedFiles::look_at_writers(FileSet& set) const {
    for (const auto& [name, file] : set.files) {
        const Writers writers = writers_of(path(name));
        if (writers == Writers::some) set.obstacle = name + " is open for writing";
        if (writers == Writers::unknown && file.seen == WatchedFile::Seen::created)
            set.obstacle =
                name + " was not closed since it was made, or is a link, and this file system can not tell who has it open";
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
    closed_until_ = std::max(closed_until_, version);
    sets_.erase(sets_.begin(), sets_.upper_bound(version));
}

}  // namespace cairn::cli
