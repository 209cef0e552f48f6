#include "cli/watch_files.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace cairn::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Not IN_MODIFY: it would wake us at every write of the application.
constexpr std::uint32_t folder_mask =
    IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr milliseconds look_again{50};  // at a quiet file that somebody still has open

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

Status limit_reached(int error, const std::string& what, const std::string& key) {
    const Status status = Status::from_errno(error, what);
    return {status.code(), status.text() + ": the limit of the system is reached; raise fs.inotify." + key +
                               " (sysctl) or end other watchers"};
}

}  // namespace

Result<FileMark> FileMark::of(const std::string& path) {
    struct stat about = {};
    if (::stat(path.c_str(), &about) != 0) return Status::from_errno(errno, path);
    if (!S_ISREG(about.st_mode)) return invalid_argument(path + " is not a regular file");
    return FileMark{about.st_dev,
                    about.st_ino,
                    static_cast<std::uint64_t>(about.st_size),
                    about.st_mode & 07777u,
                    nanoseconds(about.st_mtim),
                    nanoseconds(about.st_ctim)};
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
    if (*version <= closed_until_) {
        if (seen == WatchedFile::Seen::closed || *version == 0) late_.push_back({*version, name});
        return;
    }
    FileSet& set = sets_[*version];
    set.touched = set.look_at = last_event_ = steady_clock::now();
    const auto [file, fresh] = set.files.try_emplace(name);
    if (!fresh && seen == WatchedFile::Seen::found) return;
    file->second.seen = seen;
    if (const auto mark = FileMark::of(path(name)); mark.ok())
        file->second.mark = *mark;
    else if (mark.code() == Code::invalid_argument)
        forget(name);  // a folder, a socket
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

// Not written since we last looked, and by nobody now.
bool WatchedFiles::steady(const std::string& name, WatchedFile& file) {
    const auto mark = FileMark::of(path(name));
    if (!mark.ok()) return false;
    if (*mark != file.mark) {
        file.mark = *mark;
        return false;
    }
    const Writers writers = writers_of(path(name));
    return writers == Writers::none || (writers == Writers::unknown && file.seen != WatchedFile::Seen::created);
}

bool WatchedFiles::complete(FileSet& set) {
    const WatchTime now = steady_clock::now();
    if (!count_fits(set) || now < set.look_at) return false;
    const milliseconds wait = quiet(set);
    if (now - set.touched < wait) {
        set.look_at = set.touched + wait;
        return false;
    }
    std::erase_if(set.files,
                  [&](const auto& file) { return FileMark::of(path(file.first)).code() == Code::not_found; });
    if (!count_fits(set)) return false;
    for (auto& [name, file] : set.files) {
        if (steady(name, file)) continue;
        set.touched = now;
        set.look_at = now + std::max(wait, look_again);
        return false;
    }
    return true;
}

void WatchedFiles::close_until(Version version) {
    closed_until_ = std::max(closed_until_, version);
    sets_.erase(sets_.begin(), sets_.upper_bound(version));
}

}  // namespace cairn::cli
