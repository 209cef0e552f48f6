#include "client/memory_map.hpp"

#include <algorithm>
#include <charconv>

#include "client/files.hpp"

namespace cairn {

void MemoryMap::add(std::vector<Run>& runs, Run run) {
    if (!runs.empty() && runs.back().end == run.begin)
        runs.back().end = run.end;
    else
        runs.push_back(run);
}

Result<MemoryMap> MemoryMap::read() {
    TRY_ASSIGN(const Bytes bytes, files::read_whole("/proc/self/maps", 1ull << 30));
    MemoryMap map;
    std::string_view rest = as_text(bytes);
    while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));  // "7f00-7f10 rw-p ..."
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        Run run{};
        const auto begin = std::from_chars(line.data(), line.data() + line.size(), run.begin, 16);
        if (begin.ec != std::errc() || begin.ptr == line.data() + line.size() || *begin.ptr != '-') continue;
        const auto end = std::from_chars(begin.ptr + 1, line.data() + line.size(), run.end, 16);
        if (end.ec != std::errc() || line.data() + line.size() - end.ptr < 3) continue;
        if (end.ptr[1] == 'r') add(map.readable_, run);
        if (end.ptr[2] == 'w') add(map.writable_, run);
    }
    return map;
}

bool MemoryMap::covered(const std::vector<Run>& runs, const void* data, std::uint64_t bytes) {
    const auto begin = reinterpret_cast<std::uint64_t>(data);
    if (bytes == 0) return true;
    if (begin + bytes < begin) return false;
    const auto after = std::upper_bound(runs.begin(), runs.end(), begin,
                                        [](std::uint64_t at, const Run& run) { return at < run.begin; });
    return after != runs.begin() && std::prev(after)->end >= begin + bytes;
}

}  // namespace cairn
