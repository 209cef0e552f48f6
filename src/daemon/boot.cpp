#include "daemon/boot.hpp"

#include <fstream>

#include "daemon/slot_files.hpp"

namespace cairn {

namespace {

// Empty when there is none.
std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

}  // namespace

Boot Boot::look(const ScratchLayout& layout, const std::string& id_path) {
    Boot boot;
    boot.id = first_line(id_path);
    const std::string noted = first_line(layout.boot());
    boot.noted = !boot.id.empty() && noted == boot.id;
    // Without a note (an older release left none), or with nothing to compare it with, memory is proof enough: it was not there before.
    const bool unknown = noted.empty() || boot.id.empty();
    boot.is_same = boot.noted || (unknown && is_in_memory(layout.images()));
    if (boot.is_same) return boot;
    boot.why = unknown ? "scratch is on a disk, and nothing tells whether the machine was started again since it was used"
                       : "the machine was started again since scratch was used (" + layout.boot() + ")";
    return boot;
}

Status Boot::note(const ScratchLayout& layout) const { return write_private_file(layout.boot(), to_bytes(id + "\n")); }

}  // namespace cairn
