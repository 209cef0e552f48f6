// cairn_targets DIRECTORY [FILE]: the storage targets of a directory, one a line; with FILE, an empty file FILE-<target> is
// made on each. For the test on a real volume.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "storage/detect.hpp"

int main(int count, char** words) {
    using namespace cairn;
    if (count < 2 || count > 3) return std::fprintf(stderr, "usage: cairn_targets DIRECTORY [FILE]\n"), 2;
    const std::string directory = words[1];
    const Result<PlacementTargets> found = detect_targets(Settings::TargetsDriver::glusterfs, {}, directory);
    if (!found.ok()) return std::fprintf(stderr, "%s\n", found.status().to_string().c_str()), 1;
    for (const std::string& target : found->names) {
        std::printf("%s\n", target.c_str());
        if (count == 2) continue;
        const std::string path = found->create_path(directory + "/" + words[2] + "-" + target, target);
        const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
        if (file < 0) return std::perror(path.c_str()), 1;
        ::close(file);
    }
    return 0;
}
