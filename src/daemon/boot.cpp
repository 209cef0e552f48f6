#include "daemon/boot.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <vector>

#include "daemon/door.hpp"
#include "daemon/slot_files.hpp"

namespace cairn {

namespace {

// None when there is no file, or something else in its place, such as a FIFO, for which nobody waits.
std::vector<std::string> lines_of(const std::string& path) {
    constexpr std::size_t bytes_max = 64 << 20;  // a line for each image in doubt
    std::vector<std::string> lines;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat about = {};
    if (file.get() < 0 || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return lines;
    std::string text;
    char buffer[4096];
    while (text.size() < bytes_max) {
        const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
    }
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string first_of(const std::vector<std::string>& lines) { return lines.empty() ? std::string() : lines.front(); }

}  // namespace

Boot Boot::look(const ScratchLayout& layout, const std::string& id_path) {
    Boot boot;
    boot.id = first_of(lines_of(id_path));
    const std::vector<std::string> note = lines_of(layout.boot());
    const std::string noted = first_of(note);
    boot.noted = !boot.id.empty() && noted == boot.id;
    if (boot.noted) boot.doubtful = {note.begin() + 1, note.end()};
    // Without a note (an older release left none), or with nothing to compare it with, memory is proof enough: it was not there before.
    const bool unknown = noted.empty() || boot.id.empty();
    boot.is_same = boot.noted || (unknown && is_in_memory(layout.images()));
    if (!boot.doubtful.empty()) boot.why = "the machine was started again, and nobody has looked at it since";
    if (boot.is_same) return boot;
    boot.why = unknown ? "scratch is on a disk, and " + layout.boot() + ", which would tell whether the machine was started again since it was used, can not be read"
                       : "the machine was started again since scratch was used (" + layout.boot() + ")";
    return boot;
}

Status Boot::note(const ScratchLayout& layout) const {
    std::string text = id + "\n";
    for (const std::string& doubt : doubtful) text += doubt + "\n";
    return write_private_file(layout.boot(), to_bytes(text));
}

std::string doubt_of(const LocalImage& image) {
    const ImageHeader& header = image.header;
    return header.key.incarnation.hex() + " " + std::to_string(header.key.version) + " " + std::to_string(header.rank) + " " +
           name_of(image.path);
}

std::string doubt_of_file(const std::string& path) { return "unread " + name_of(path); }

bool Boot::doubts(const LocalImage& image) const {
    return !is_same || doubtful.count(doubt_of(image)) || doubtful.count(doubt_of_file(image.path));
}

bool Boot::doubts_file(const std::string& path) const {
    const std::string ending = " " + name_of(path);
    return !is_same || std::any_of(doubtful.begin(), doubtful.end(), [&](const std::string& doubt) { return doubt.ends_with(ending); });
}

}  // namespace cairn
