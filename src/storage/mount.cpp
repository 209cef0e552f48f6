#include "storage/mount.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

namespace cairn {

namespace {

// Mount points are written with \040 for a blank, and so on.
std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned code = 0;
        if (text[i] == '\\' && i + 3 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4) {
            out += static_cast<char>(code);
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

}  // namespace

std::optional<MountInfo> mount_of_device(std::string_view mountinfo, unsigned major, unsigned minor) {
    // 28 189 0:70 / /mnt/pfs rw,relatime shared:1 - fuse.glusterfs s0:gv rw
    const std::string device = std::to_string(major) + ":" + std::to_string(minor);
    std::optional<MountInfo> found;
    std::istringstream lines{std::string(mountinfo)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string id, parent, number, root, point, word, type;
        words >> id >> parent >> number >> root >> point;
        if (number != device) continue;
        while (words >> word && word != "-") continue;
        if (!(words >> type)) continue;
        if (!found) found = MountInfo{type, {}};
        if (root == "/") found->point = unescaped(point);
    }
    return found;
}

Result<MountInfo> mount_of(const std::string& directory) {
    struct stat about = {};
    if (::stat(directory.c_str(), &about) != 0) return Status::from_errno(errno, "can not look at " + directory);
    std::ifstream file("/proc/self/mountinfo");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::optional<MountInfo> mount = mount_of_device(text, major(about.st_dev), minor(about.st_dev));
    if (!mount) return Status(Code::unsupported, "/proc/self/mountinfo does not name the file system of " + directory);
    return *std::move(mount);
}

}  // namespace cairn
