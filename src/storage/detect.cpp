#include "storage/detect.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace cairn {

Result<PlacementTargets> detect_targets(Settings::TargetsDriver driver, const std::vector<std::string>& only,
                                        const std::string& directory) {
    if (driver == Settings::TargetsDriver::none) return PlacementTargets{};
    Result<PlacementTargets> found = detect_glusterfs_targets(directory);
    const bool is_unknown = found.code() == Code::unsupported && driver == Settings::TargetsDriver::automatic;
    if (is_unknown && only.empty()) return PlacementTargets{};
    if (is_unknown)
        return Status(Code::unsupported, "placement.targets names " + names_text(only) + ", but " + directory +
                                             " is on no file system whose targets Cairn can choose");
    if (!found.ok()) return found;
    return found->only(only);
}

Result<std::string> existing_directory(std::string path) {
    for (;;) {
        struct stat about = {};
        if (::stat(path.c_str(), &about) == 0) return path;
        if (errno != ENOENT || path == "/" || path.empty()) return Status::from_errno(errno, "can not look at " + path);
        const std::size_t slash = path.rfind('/');
        path.resize(slash == std::string::npos || slash == 0 ? 0 : slash);
        if (path.empty()) path = '/';
    }
}

}  // namespace cairn
