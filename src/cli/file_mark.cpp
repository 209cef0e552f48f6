#include "cli/file_mark.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "cli/tree_files.hpp"
#include "client/files.hpp"

namespace cairn::cli {

namespace {

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

bool is_directory(const std::string& path) {
    struct stat about = {};
    return ::lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

// The kernel refuses a read lease while somebody has the file open for writing. It is given back at once; a writer that
// comes in between waits for that long (SIGIO, which asks us to give it back, is ignored by the watcher).
Writers writers_of_file(const std::string& path) {
    const files::Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file) return Writers::unknown;
    if (::fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN ? Writers::some : Writers::unknown;
    ::fcntl(file.get(), F_SETLEASE, F_UNLCK);
    return Writers::none;
}

}  // namespace

FileMark FileMark::of_file(const struct stat& about) {
    return FileMark{about.st_dev,
                    about.st_ino,
                    static_cast<std::uint64_t>(about.st_size),
                    about.st_mode & 07777u,
                    nanoseconds(about.st_mtim),
                    nanoseconds(about.st_ctim)};
}

Result<FileMark> FileMark::of(const std::string& path) {
    if (is_directory(path)) {
        TRY_ASSIGN(const std::vector<TreeItem> items, list_tree(path));
        return mark_of(items);
    }
    struct stat about = {};
    if (::stat(path.c_str(), &about) != 0)
        return errno == ELOOP ? not_found(path + " is a link that leads nowhere") : Status::from_errno(errno, path);
    if (!S_ISREG(about.st_mode)) return invalid_argument(path + " is not a regular file");
    return of_file(about);
}

// Nobody tells the tick of a file system's clock. Where it is coarse the stamp shows it: a whole number of milliseconds
// or seconds (FAT counts every other second), which a clock of nanoseconds hits once in a million times or less. Where
// it does not show, stamps come with the tick of a kernel, this one's or a server's: 10 ms at most.
std::chrono::nanoseconds FileMark::tick() const {
    std::int64_t grain_ns = 1;
    while (grain_ns < 1'000'000'000 && changed_ns % (10 * grain_ns) == 0) grain_ns *= 10;
    return kernel_tick + std::chrono::nanoseconds(grain_ns < 1'000'000'000 ? grain_ns : 2 * grain_ns);
}

Writers writers_of(const std::string& path, std::string* which) {
    if (!is_directory(path)) return writers_of_file(path);
    const auto items = list_tree(path);
    if (!items.ok()) return Writers::unknown;
    Writers worst = Writers::none;
    for (const TreeItem& item : *items) {
        if (!S_ISREG(item.about.st_mode)) continue;
        const Writers writers = writers_of_file(path + "/" + item.path);
        if (writers == Writers::none) continue;
        worst = writers;
        if (which) *which = item.path;
        if (writers == Writers::some) break;
    }
    return worst;
}

}  // namespace cairn::cli
