#include "peers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace bench {

namespace {

namespace fs = std::filesystem;

// What stands under `path` and, for libraries that add to the name, beside it.
std::vector<fs::path> made(const std::string& path) {
    std::vector<fs::path> files;
    const fs::path parent = fs::path(path).parent_path();
    for (const fs::directory_entry& top : fs::directory_iterator(parent)) {
        if (top.path().string().rfind(path, 0) != 0) continue;
        if (!top.is_directory())
            files.push_back(top.path());
        else
            for (const fs::directory_entry& inner : fs::recursive_directory_iterator(top))
                if (inner.is_regular_file()) files.push_back(inner.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

void make_durable(const Team& team, const std::string& path) {
    const std::vector<fs::path> files = made(path);
    for (std::size_t i = static_cast<std::size_t>(team.rank()); i < files.size(); i += static_cast<std::size_t>(team.ranks())) {
        const int fd = ::open(files[i].c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0 || ::fsync(fd) != 0) fail("fsync of " + files[i].string() + ": " + std::strerror(errno));
        ::close(fd);
    }
}

}  // namespace

double peer_s(const Team& team, const Peer& peer, const WarmMemory& image, const std::string& path, const Options& command) {
    team.meet();
    const double begin = now_s();
    peer.write(team, image, path, command);
    team.meet();
    make_durable(team, path);
    const double took = team.span_s(begin, now_s());
    if (team.rank() == 0) {
        std::error_code ignored;  // what could not be removed is found by the next run, which fails
        for (const fs::path& file : made(path)) fs::remove(file, ignored);
        fs::remove_all(path, ignored);
    }
    team.meet();
    return took;
}

}  // namespace bench
