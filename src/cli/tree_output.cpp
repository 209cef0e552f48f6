#include "cli/tree_output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/text_table.hpp"
#include "cli/tree_files.hpp"

namespace cairn::cli {

namespace {

constexpr int of_directory = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool all_zeros(ByteView bytes) { return bytes.empty() || (bytes[0] == std::byte(0) && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0); }

Status write_all_at(int file, std::uint64_t offset, ByteView bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return Status::from_errno(count < 0 ? errno : EIO, "can not write");
        bytes = bytes.subspan(static_cast<std::size_t>(count));
        offset += static_cast<std::uint64_t>(count);
    }
    return {};
}

timespec time_of(const TreeTime& time) { return {static_cast<time_t>(time.seconds), static_cast<long>(time.nanoseconds)}; }

mode_t type_of(TreeEntryKind kind) {
    switch (kind) {
        case TreeEntryKind::fifo: return S_IFIFO;
        case TreeEntryKind::socket: return S_IFSOCK;
        case TreeEntryKind::character_device: return S_IFCHR;
        default: return S_IFBLK;
    }
}

}  // namespace

Result<std::unique_ptr<TreeOutput>> TreeOutput::create(const std::string& folder, Tree tree, bool replace, std::size_t open_max) {
    TRY(check_trees({tree}));
    std::unique_ptr<TreeOutput> output(new TreeOutput(folder, std::move(tree), replace, open_max));
    TRY(output->begin());
    return output;
}

TreeOutput::~TreeOutput() {
    open_.clear();
    if (!temporary_.empty()) static_cast<void>(remove_tree(temporary_));
}

Status TreeOutput::failed(const TreeEntry& entry, const char* what) const {
    const int error = errno;
    return Status::from_errno(error, std::string("cannot ") + what + " " + folder_ + "/" + for_terminal(tree_.name + (entry.path.empty() ? "" : "/") + entry.path));
}

Status TreeOutput::begin() {
    struct stat there = {};
    const std::string path = folder_ + "/" + tree_.name;
    if (!replace_ && ::lstat(path.c_str(), &there) == 0) return {Code::already_exists, path + " exists and is not replaced; --force replaces it"};
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) return Status::from_errno(error.value(), "cannot make the directory " + folder_);
    std::string temporary = folder_ + "/.cairn-XXXXXX";
    if (!::mkdtemp(temporary.data())) return Status::from_errno(errno, "cannot write in " + folder_);
    temporary_ = temporary;
    root_ = files::Descriptor(::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!root_) return Status::from_errno(errno, "cannot write in " + temporary_);
    made_.resize(tree_.entries.size());
    for (const TreeEntry& entry : tree_.entries) {
        if (entry.kind != TreeEntryKind::directory || entry.path.empty()) continue;
        TRY_ASSIGN(const int directory, directory_of(entry));
        if (::mkdirat(directory, leaf_of(entry).c_str(), 0700) != 0) return failed(entry, "make");
    }
    return {};
}

Result<int> TreeOutput::directory_of(const TreeEntry& entry) {
    const std::size_t slash = entry.path.rfind('/');
    if (slash == std::string::npos) return root_.get();
    const std::string above = entry.path.substr(0, slash);
    if (directory_ && directory_path_ == above) return directory_.get();
    files::Descriptor at;
    for (std::size_t from = 0; from < above.size();) {
        const std::size_t end = std::min(above.find('/', from), above.size());
        at = files::Descriptor(::openat(at ? at.get() : root_.get(), above.substr(from, end - from).c_str(), of_directory));
        if (!at) return failed(entry, "reach");
        from = end + 1;
    }
    directory_ = std::move(at);
    directory_path_ = above;
    return directory_.get();
}

Result<int> TreeOutput::file_of(std::size_t index) {
    if (const auto found = open_.find(index); found != open_.end()) return found->second.get();
    const TreeEntry& entry = tree_.entries[index];
    TRY_ASSIGN(const int directory, directory_of(entry));
    files::Descriptor file(::openat(directory, leaf_of(entry).c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (made_[index] ? 0 : O_CREAT | O_EXCL), 0600));
    if (!file) return failed(entry, "make");
    made_[index] = true;
    while (open_.size() >= open_max_) {
        open_.erase(opened_.front());
        opened_.pop_front();
    }
    opened_.push_back(index);
    return open_.emplace(index, std::move(file)).first->second.get();
}

Status TreeOutput::write_at(std::size_t index, std::uint64_t offset, ByteView bytes) {
    const TreeEntry& entry = tree_.entries[index];
    TRY_ASSIGN(const int file, file_of(index));
    const std::string what = folder_ + "/" + for_terminal(tree_.name + "/" + entry.path);
    auto hole = std::upper_bound(entry.holes.begin(), entry.holes.end(), offset, [](std::uint64_t at, const TreeHole& each) { return at < each.offset + each.length; });
    while (!bytes.empty()) {
        const bool inside = hole != entry.holes.end() && hole->offset <= offset;
        const std::uint64_t end = hole == entry.holes.end() ? offset + bytes.size() : inside ? hole->offset + hole->length : hole->offset;
        const ByteView piece = bytes.first(std::min<std::uint64_t>(bytes.size(), end - offset));
        if (!inside || !all_zeros(piece)) TRY(write_all_at(file, offset, piece).within(what));
        bytes = bytes.subspan(piece.size());
        offset += piece.size();
        if (inside) ++hole;
    }
    return {};
}

// Also one that no bytes came for.
Status TreeOutput::finish_file(std::size_t index) {
    TRY_ASSIGN(const int file, file_of(index));
    if (::ftruncate(file, static_cast<off_t>(tree_.entries[index].bytes)) != 0) return failed(tree_.entries[index], "write");
    open_.erase(index);
    std::erase(opened_, index);
    return {};
}

void TreeOutput::miss(Missing& missing, const TreeEntry& entry, int error) {
    if (missing.entries++ > 0) return;
    missing.first = tree_.name + (entry.path.empty() ? "" : "/") + entry.path;
    missing.why = std::strerror(error);
}

Status TreeOutput::make_special(const TreeEntry& entry) {
    TRY_ASSIGN(const int directory, directory_of(entry));
    if (::mknodat(directory, leaf_of(entry).c_str(), type_of(entry.kind) | 0600, ::gnu_dev_makedev(entry.major, entry.minor)) == 0) return {};
    if (errno != EPERM && errno != ENOTSUP) return failed(entry, "make");
    miss(nodes_, entry, errno);
    return {};
}

Status TreeOutput::make_link(const TreeEntry& entry) {
    if (entry.kind == TreeEntryKind::symbolic_link) {
        TRY_ASSIGN(const int directory, directory_of(entry));
        return ::symlinkat(entry.target.c_str(), directory, leaf_of(entry).c_str()) == 0 ? Status() : failed(entry, "make");
    }
    const TreeEntry& first = tree_.entries[entry.link];
    TRY_ASSIGN(const int from_cached, directory_of(first));
    const files::Descriptor from(::fcntl(from_cached, F_DUPFD_CLOEXEC, 0));
    if (!from) return failed(entry, "make");
    TRY_ASSIGN(const int directory, directory_of(entry));
    if (::linkat(from.get(), leaf_of(first).c_str(), directory, leaf_of(entry).c_str(), 0) == 0) return {};
    if (errno != ENOENT || nodes_.entries == 0) return failed(entry, "make");
    miss(nodes_, entry, EPERM);  // of a device that could not be made
    return {};
}

Status TreeOutput::set_attributes(const TreeEntry& entry, int directory) {
    const std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + leaf_of(entry);
    for (const TreeAttribute& each : entry.attributes) {
        if (::lsetxattr(path.c_str(), each.name.c_str(), each.value.data(), each.value.size(), 0) == 0) continue;
        constexpr std::array can_not_be = {EPERM, EACCES, ENOTSUP, EINVAL, ENOENT, E2BIG, ERANGE, ENOSPC};  // the last three: longer than this file system takes
        if (std::find(can_not_be.begin(), can_not_be.end(), errno) == can_not_be.end()) return failed(entry, "give extended attributes to");
        miss(attributes_, entry, errno);
    }
    return {};
}

// The owner comes first: it takes rights and capabilities away. Whoever gets a file that was another's does not get it with that one's rights.
Status TreeOutput::describe(const TreeEntry& entry) {
    TRY_ASSIGN(const int directory, directory_of(entry));
    const std::string leaf = leaf_of(entry);
    struct stat now = {};
    if (::fstatat(directory, leaf.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT && nodes_.entries > 0 ? Status() : failed(entry, "look at");
    mode_t mode = entry.mode;
    if ((now.st_uid != entry.uid || now.st_gid != entry.gid) && ::fchownat(directory, leaf.c_str(), entry.uid, entry.gid, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != EPERM && errno != EINVAL && errno != ENOTSUP) return failed(entry, "give its owner to");
        miss(owners_, entry, errno);
        if (entry.kind != TreeEntryKind::directory) mode &= ~static_cast<mode_t>(S_ISUID | S_ISGID);
    }
    TRY(set_attributes(entry, directory));
    if (entry.kind != TreeEntryKind::symbolic_link && ::fchmodat(directory, leaf.c_str(), mode, 0) != 0) return failed(entry, "give its mode to");
    const timespec times[2] = {time_of(entry.accessed), time_of(entry.modified)};
    if (::utimensat(directory, leaf.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) return failed(entry, "give its times to");
    return {};
}

Status TreeOutput::commit() {
    const std::vector<TreeEntry>& entries = tree_.entries;
    for (std::size_t i = 0; i < entries.size(); ++i)
        if (entries[i].kind == TreeEntryKind::file) TRY(finish_file(i));
    for (const TreeEntry& entry : entries)
        if (entry.kind >= TreeEntryKind::fifo) TRY(make_special(entry));
    for (const TreeEntryKind kind : {TreeEntryKind::symbolic_link, TreeEntryKind::hard_link})
        for (const TreeEntry& entry : entries)
            if (entry.kind == kind) TRY(make_link(entry));
    for (const TreeEntry& entry : entries)
        if (entry.kind != TreeEntryKind::directory && entry.kind != TreeEntryKind::hard_link) TRY(describe(entry));
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
        if (entry->kind == TreeEntryKind::directory) TRY(describe(*entry));
    if (::syncfs(root_.get()) != 0) return Status::from_errno(errno, "cannot write " + folder_ + "/" + tree_.name);
    return publish();
}

Status TreeOutput::publish() {
    const std::string path = folder_ + "/" + tree_.name;
    int renamed = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
    if (renamed != 0 && errno == EEXIST && !replace_) return {Code::already_exists, path + " exists and is not replaced; --force replaces it"};
    if (renamed != 0 && errno == EEXIST) {
        if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) return Status::from_errno(errno, "cannot replace " + path);
        TRY(remove_tree(temporary_).within("what was replaced"));
        renamed = 0;
    }
    if (renamed != 0 && errno == EINVAL) renamed = ::rename(temporary_.c_str(), path.c_str());  // a file system that knows one way only; what is there is a directory with something in it, or nothing
    if (renamed != 0) return Status::from_errno(errno, "cannot write " + path);
    temporary_.clear();
    const files::Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return folder && ::fsync(folder.get()) == 0 ? Status() : Status::from_errno(errno, "cannot write " + path);
}

std::vector<std::string> TreeOutput::not_restored() const {
    std::vector<std::string> told;
    const auto tell = [&](const Missing& missing, const char* what, const char* so) {
        if (missing.entries > 0) told.push_back(std::string(what) + " of " + std::to_string(missing.entries) + " of the " + std::to_string(tree_.entries.size()) + " entries of " + tree_.name + ", such as " + missing.first + ", could not be restored (" + missing.why + ")" + so);
    };
    tell(owners_, "the owners", "; they are yours, without set-user-ID and set-group-ID");
    tell(attributes_, "extended attributes", "");
    tell(nodes_, "the device nodes", "; they are left out");
    return told;
}

}  // namespace cairn::cli
