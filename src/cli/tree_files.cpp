#include "cli/tree_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "base/checksum.hpp"
#include "base/text_table.hpp"
#include "client/files.hpp"
#include "format/names.hpp"

namespace cairn::cli {

namespace {

std::string below(const std::string& root, const std::string& path) { return path.empty() ? root : root + "/" + path; }

// What was there a moment ago: the tree is being written, and not gone.
Status unreadable(const TreeItem& item, const std::string& path, int error) {
    if (!item.path.empty() && (error == ENOENT || error == ENOTDIR || error == ELOOP)) return {Code::io_error, path + " went away while it was looked at"};
    return Status::from_errno(error, path);
}

Result<std::vector<std::string>> names_in(const TreeItem& item, const std::string& directory) {
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) return unreadable(item, directory, errno);
    const std::unique_ptr<DIR, int (*)(DIR*)> listed(::fdopendir(descriptor), [](DIR* each) { return each ? ::closedir(each) : 0; });
    if (!listed) return Status::from_errno(errno, "can not list " + directory);
    std::vector<std::string> names;
    for (errno = 0; const dirent* const entry = ::readdir(listed.get()); errno = 0) {
        const std::string name(entry->d_name);
        if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) return Status::from_errno(errno, "can not list " + directory);
    return names;
}

TreeTime time_of(const timespec& time) { return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)}; }

TreeEntryKind kind_of(mode_t mode) {
    switch (mode & S_IFMT) {
        case S_IFDIR: return TreeEntryKind::directory;
        case S_IFLNK: return TreeEntryKind::symbolic_link;
        case S_IFIFO: return TreeEntryKind::fifo;
        case S_IFSOCK: return TreeEntryKind::socket;
        case S_IFCHR: return TreeEntryKind::character_device;
        case S_IFBLK: return TreeEntryKind::block_device;
        default: return TreeEntryKind::file;
    }
}

// Where a file system knows none there are none.
Result<std::vector<TreeAttribute>> attributes_of(const std::string& path) {
    std::vector<TreeAttribute> attributes;
    std::string names(65536, '\0'), value(attribute_value_bytes_max, '\0');  // as much as the kernel gives
    const ssize_t bytes = ::llistxattr(path.c_str(), names.data(), names.size());
    if (bytes < 0 && (errno == ENOTSUP || errno == EPERM)) return attributes;
    if (bytes < 0) return Status::from_errno(errno, "can not read the extended attributes of " + path);
    for (std::size_t from = 0; from < static_cast<std::size_t>(bytes); from += attributes.back().name.size() + 1) {
        const char* const name = names.data() + from;
        const ssize_t got = ::lgetxattr(path.c_str(), name, value.data(), value.size());
        if (got < 0) return Status::from_errno(errno, "can not read the extended attribute " + for_terminal(name) + " of " + path);
        attributes.push_back({name, value.substr(0, static_cast<std::size_t>(got))});
    }
    std::sort(attributes.begin(), attributes.end(), [](const TreeAttribute& a, const TreeAttribute& b) { return a.name < b.name; });
    return attributes;
}

// A file system that does not tell has none. A file that is written meanwhile is another one by its mark, and the tree is not taken.
Result<std::vector<TreeHole>> holes_of(const std::string& path, const struct stat& about) {
    std::vector<TreeHole> holes;
    if (about.st_size == 0) return holes;
    const files::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) return Status::from_errno(errno, "can not open " + path);
    for (off_t at = 0; at < about.st_size;) {
        const off_t hole = ::lseek(file.get(), at, SEEK_HOLE);
        if (hole < 0 || hole >= about.st_size) break;
        const off_t data = ::lseek(file.get(), hole, SEEK_DATA);
        at = data < 0 ? about.st_size : std::min<off_t>(data, about.st_size);
        holes.push_back({static_cast<std::uint64_t>(hole), static_cast<std::uint64_t>(at - hole)});
    }
    return holes;
}

Result<std::string> target_of(const std::string& path) {
    std::string target(tree_path_bytes_max + 1, '\0');
    const ssize_t bytes = ::readlink(path.c_str(), target.data(), target.size());
    if (bytes <= 0) return Status::from_errno(bytes < 0 ? errno : EINVAL, "can not read the link " + path);
    target.resize(static_cast<std::size_t>(bytes));
    return target;
}

Result<TreeEntry> entry_of(const std::string& root, const TreeItem& item) {
    const std::string path = below(root, item.path);
    const struct stat& about = item.about;
    TreeEntry entry{item.path, kind_of(about.st_mode), about.st_mode & 07777u, about.st_uid, about.st_gid, time_of(about.st_mtim), time_of(about.st_atim)};
    TRY_ASSIGN(entry.attributes, attributes_of(path));
    if (entry.kind == TreeEntryKind::symbolic_link) {
        TRY_ASSIGN(entry.target, target_of(path));
    }
    if (entry.kind >= TreeEntryKind::character_device) entry.major = ::gnu_dev_major(about.st_rdev), entry.minor = ::gnu_dev_minor(about.st_rdev);
    if (entry.kind == TreeEntryKind::file) {
        entry.bytes = static_cast<std::uint64_t>(about.st_size);
        TRY_ASSIGN(entry.holes, holes_of(path, about));
    }
    return entry;
}

// Where a path is no name of a region, a number is.
void name_regions(Tree& tree) {
    std::set<std::string> taken;
    for (const TreeEntry& entry : tree.entries) taken.insert(tree.name + "/" + entry.path);
    for (std::size_t i = 0; i < tree.entries.size(); ++i) {
        TreeEntry& entry = tree.entries[i];
        if (entry.kind != TreeEntryKind::file || entry.bytes == 0 || valid_region_name(tree.name + "/" + entry.path)) continue;
        entry.region = tree.name + "/.cairn-file-" + std::to_string(i);
        while (!taken.insert(entry.region).second) entry.region += "-";
    }
}

}  // namespace

Result<std::vector<TreeItem>> list_tree(const std::string& root) {
    std::vector<TreeItem> items;
    std::vector<std::string> to_look_at = {""};
    while (!to_look_at.empty()) {
        TreeItem item{std::move(to_look_at.back())};
        to_look_at.pop_back();
        const std::string path = below(root, item.path);
        if (path.size() >= PATH_MAX) return Status(Code::unsupported, for_terminal(path.substr(0, 200)) + "...: a path longer than any that can be opened");
        if (::lstat(path.c_str(), &item.about) != 0) return unreadable(item, path, errno);
        if (S_ISDIR(item.about.st_mode)) {
            TRY_ASSIGN(const std::vector<std::string> names, names_in(item, path));
            for (const std::string& name : names) to_look_at.push_back(item.path.empty() ? name : item.path + "/" + name);
        }
        items.push_back(std::move(item));
    }
    std::sort(items.begin(), items.end(), [](const TreeItem& a, const TreeItem& b) { return a.path < b.path; });
    return items;
}

FileMark mark_of(const std::vector<TreeItem>& items) {
    FileMark mark = FileMark::of_file(items.front().about);
    mark.tree = true;
    mark.bytes = 0;
    for (const TreeItem& item : items) {
        const FileMark one = FileMark::of_file(item.about);
        if (S_ISREG(item.about.st_mode)) mark.bytes += one.bytes;
        mark.modified_ns = std::max(mark.modified_ns, one.modified_ns);
        mark.changed_ns = std::max(mark.changed_ns, one.changed_ns);
        const std::uint64_t numbers[] = {mark.inside, checksum(as_bytes(item.path)), one.device, one.inode, one.bytes, item.about.st_mode, static_cast<std::uint64_t>(one.modified_ns),
                                         static_cast<std::uint64_t>(one.changed_ns)};
        mark.inside = checksum(std::as_bytes(std::span(numbers)));
    }
    return mark;
}

Result<TreeOnDisk> read_tree(const std::string& root, const std::string& name) {
    TRY(check_region_name(name));
    TRY_ASSIGN(const std::vector<TreeItem> items, list_tree(root));
    TreeOnDisk on_disk{{name, {}}, mark_of(items)};
    Tree& tree = on_disk.tree;
    std::map<std::pair<dev_t, ino_t>, std::uint64_t> first_names;  // of what has several
    for (const TreeItem& item : items) {
        if (!S_ISDIR(item.about.st_mode) && item.about.st_nlink > 1) {
            const auto [first, fresh] = first_names.try_emplace({item.about.st_dev, item.about.st_ino}, tree.entries.size());
            if (!fresh) {
                TreeEntry& link = tree.entries.emplace_back(TreeEntry{item.path, TreeEntryKind::hard_link});
                link.link = first->second;
                continue;
            }
        }
        TRY_ASSIGN(TreeEntry entry, entry_of(root, item));
        tree.entries.push_back(std::move(entry));
    }
    name_regions(tree);
    return on_disk;
}

Status remove_tree(const std::string& root) {
    std::error_code error;
    struct stat about = {};
    if (::geteuid() != 0 && ::lstat(root.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) {
        static_cast<void>(::chmod(root.c_str(), 0700));  // what can not be listed or removed says so below
        for (std::filesystem::recursive_directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error))
            if (entry->symlink_status(error).type() == std::filesystem::file_type::directory) static_cast<void>(::chmod(entry->path().c_str(), 0700));
    }
    std::filesystem::remove_all(root, error);
    return error ? Status::from_errno(error.value(), "can not remove " + root) : Status();
}

}  // namespace cairn::cli
