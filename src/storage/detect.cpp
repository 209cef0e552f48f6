#include "storage/detect.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>

#include "storage/mount.hpp"

namespace cairn {

namespace {

using Driver = Settings::TargetsDriver;

// Where one is known, that nothing can be chosen is told; of any other it is nobody's surprise.
Result<PlacementTargets> targets_of(const ParallelFileSystem& system, Outside& outside, const std::string& there, const std::vector<std::string>& only) {
    Result<PlacementTargets> found = system.targets(outside, there, only);
    if (found.ok()) return found->only(only);
    if (found.code() != Code::unsupported) return found;
    return unavailable(there + ": no storage target of " + std::string(system.name()) + " can be chosen: " + found.status().text());
}

}  // namespace

Result<const ParallelFileSystem*> file_system_at(Driver driver, const std::string& directory) {
    switch (driver) {
        case Driver::none:
        case Driver::glusterfs: return &plain_file_system();
        case Driver::lustre: return &lustre();
        case Driver::cephfs: return &cephfs();
        case Driver::beegfs: return &beegfs();
        case Driver::orangefs: return &orangefs();
        case Driver::automatic: break;
    }
    TRY_ASSIGN(const std::string there, existing_directory(directory));
    struct statfs about = {};
    if (::statfs(there.c_str(), &about) != 0) return Status::from_errno(errno, "can not look at the file system of " + there);
    const Result<MountInfo> mount = mount_of(there);
    return &file_system_of(static_cast<std::uint32_t>(about.f_type), mount.ok() ? mount->type : std::string());
}

Result<PlacementTargets> detect_targets(Driver driver, const std::vector<std::string>& only, const std::string& directory, Outside& outside) {
    if (driver == Driver::none) return PlacementTargets{};
    TRY_ASSIGN(const ParallelFileSystem* const system, file_system_at(driver, directory));
    if (system != &plain_file_system()) {
        TRY_ASSIGN(const std::string there, existing_directory(directory));
        return targets_of(*system, outside, there, only);
    }
    Result<PlacementTargets> found = detect_glusterfs_targets(directory);
    const bool is_unknown = found.code() == Code::unsupported && driver == Driver::automatic;
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
