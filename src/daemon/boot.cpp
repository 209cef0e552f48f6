#include "daemon/boot.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include "daemon/slot_files.hpp"

namespace cairn {

namespace {

// None when there is no file.
std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
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
    boot.why = unknown ? "scratch is on a disk, and nothing tells whether the machine was started again since it was used"
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
