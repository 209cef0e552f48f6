#include "cli/output_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

namespace cairn::cli {

namespace {

Status taken(const std::string& path) {
    return Status(Code::already_exists, path + " exists and is not replaced; --force replaces it");
}

// ---- names that go when a signal ends the process: of so many files at once, and of the others they stay ----

std::atomic<char*> unfinished[4096];  // whoever takes a name out owns it

extern "C" void remove_unfinished(int signal) {
    for (std::atomic<char*>& each : unfinished)
        if (const char* const name = each.exchange(nullptr)) ::unlink(name);
    ::raise(signal);  // the default again, which comes when this returns
}

// Not where somebody else listens, or nobody shall.
void listen_for_the_end() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before = {};
        if (::sigaction(signal, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) continue;
        struct sigaction action = {};
        action.sa_handler = remove_unfinished;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        ::sigaction(signal, &action, nullptr);
    }
}

// Its place; none: there is none left.
std::atomic<char*>* remember_unfinished(const std::string& name) {
    static const bool listens = (listen_for_the_end(), true);
    static_cast<void>(listens);
    static std::atomic<std::size_t> next = 0;
    for (std::size_t tries = 0; tries < std::size(unfinished); ++tries) {
        std::atomic<char*>& place = unfinished[next++ % std::size(unfinished)];
        char* none = nullptr;
        if (place.load() != nullptr) continue;
        char* const copy = ::strdup(name.c_str());
        if (copy && place.compare_exchange_strong(none, copy)) return &place;
        ::free(copy);
    }
    return nullptr;
}

void forget_unfinished(std::atomic<char*>* place) {
    if (place) ::free(place->exchange(nullptr));
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path, bool replace) {
    struct stat status {};
    std::optional<struct stat> before;
    if (::stat(path.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) return invalid_argument(path + " is a directory; name a file");
        if (!replace) return taken(path);
        if (!S_ISREG(status.st_mode)) return invalid_argument(path + " is no regular file; name one, or a name that is free");
        before = status;
    }
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    if (error) return Status::from_errno(error.value(), "cannot make the directory " + folder.string());
    OutputFile file;
    file.path_ = before ? std::filesystem::canonical(path, error).string() : path;
    if (error) return Status::from_errno(error.value(), "cannot write " + path);
    file.replace_ = replace;
    file.temporary_ = file.path_.substr(0, file.path_.rfind('/') + 1) + ".cairn-XXXXXX";  // of its own: a name may be as long as names can be
    file.descriptor_ = ::mkostemp(file.temporary_.data(), O_CLOEXEC);
    if (file.descriptor_ < 0) {
        file.temporary_.clear();
        return Status::from_errno(errno, "cannot write " + path);
    }
    file.remembered_ = remember_unfinished(file.temporary_);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    file.mode_ = before ? before->st_mode & 0777 : 0666 & ~mask;
    if (before) file.owner_ = before->st_uid, file.group_ = before->st_gid;
    return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      remembered_(std::exchange(other.remembered_, nullptr)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      replace_(other.replace_),
      mode_(other.mode_),
      owner_(other.owner_),
      group_(other.group_) {}

OutputFile::~OutputFile() {
    close();
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    forget_unfinished(remembered_);
}

void OutputFile::close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Status OutputFile::open() {
    if (descriptor_ < 0) descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor_ < 0 ? Status::from_errno(errno, "cannot write " + path_) : Status();
}

Status OutputFile::write_at(std::uint64_t offset, ByteView bytes) {
    TRY(open());
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return Status::from_errno(count < 0 ? errno : EIO, "cannot write " + path_);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
        offset += static_cast<std::uint64_t>(count);
    }
    return {};
}

// Owner and mode come last: a file that may not be written could not be opened again.
Status OutputFile::commit(std::uint64_t bytes) {
    TRY(open());
    if (owner_ != static_cast<uid_t>(-1) && ::fchown(descriptor_, owner_, group_) != 0 && errno != EPERM) return Status::from_errno(errno, "cannot write " + path_);
    if (::fchmod(descriptor_, mode_) != 0 || ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0 || ::fsync(descriptor_) != 0) return Status::from_errno(errno, "cannot write " + path_);
    if (replace_) {
        if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Status::from_errno(errno, "cannot write " + path_);
        temporary_.clear();
        return {};
    }
    // link(2) does not replace what appeared meanwhile; the temporary name goes with the object.
    if (::link(temporary_.c_str(), path_.c_str()) == 0) return {};
    if (errno == EEXIST) return taken(path_);
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
        return Status::from_errno(errno, "cannot write " + path_);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Status::from_errno(errno, "cannot write " + path_);
    temporary_.clear();
    return {};
}

Status OutputFiles::add(const std::string& path) {
    TRY_ASSIGN(OutputFile file, OutputFile::create(path, replace_));
    files_.push_back(std::move(file));
    is_open_.push_back(false);
    note_open(files_.size() - 1);
    return {};
}

void OutputFiles::note_open(std::size_t file) {
    if (is_open_[file]) return;
    is_open_[file] = true;
    open_.push_back(file);
    if (open_.size() <= open_max) return;
    files_[open_.front()].close();
    is_open_[open_.front()] = false;
    open_.pop_front();
}

Status OutputFiles::write_at(std::size_t file, std::uint64_t offset, ByteView bytes) {
    note_open(file);
    return files_[file].write_at(offset, bytes);
}

Status OutputFiles::commit(std::size_t file, std::uint64_t bytes) {
    note_open(file);
    return files_[file].commit(bytes);
}

Status check_output(const std::string& path) {
    struct stat there {};
    const bool is_there = ::stat(path.c_str(), &there) == 0;
    if (is_there && !S_ISREG(there.st_mode)) return invalid_argument(path + ": not a regular file stands there");
    if (is_there && ::access(path.c_str(), W_OK) != 0) return Status::from_errno(errno, path + ": must not be written");
    std::error_code error;
    const std::filesystem::path real = std::filesystem::weakly_canonical(path, error), folder = error ? std::filesystem::path(path).parent_path() : real.parent_path();
    if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) return Status::from_errno(errno, path + ": cannot write into its directory");
    return {};
}

bool is_same_file(const std::string& a, const std::string& b) {
    std::error_code error;
    const std::filesystem::path first = std::filesystem::weakly_canonical(std::filesystem::absolute(a), error);
    return !error && first == std::filesystem::weakly_canonical(std::filesystem::absolute(b), error) && !error;
}

Status put_file(const std::string& path, std::string_view text) {
    TRY(check_output(path));
    TRY_ASSIGN(OutputFile file, OutputFile::create(path, true));
    const ByteView bytes(reinterpret_cast<const std::byte*>(text.data()), text.size());
    TRY(file.write_at(0, bytes));
    return file.commit(text.size());
}

}  // namespace cairn::cli
