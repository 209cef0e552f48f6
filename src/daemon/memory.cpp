// Reads /proc and the control groups (version 2, and the memory controller of version 1).
#include "daemon/memory.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/bytes.hpp"

namespace cairn {

namespace {

std::string read_text(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// A whole number at the start of `text` behind blanks; nothing when there is none ("max").
bool number_of(std::string_view text, std::uint64_t& value) {
    const std::size_t start = text.find_first_not_of(" \t");
    if (start == std::string_view::npos) return false;
    text.remove_prefix(start);
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
}

// "Name:   123 kB" in /proc files.
bool kib_line(const std::string& text, std::string_view name, std::uint64_t& bytes) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':' &&
            number_of(std::string_view(line).substr(name.size() + 1), bytes)) {
            bytes *= 1024;
            return true;
        }
    return false;
}

// "name 123" in a group's memory.stat; 0 when it is not there.
std::uint64_t stat_line(const std::string& text, std::string_view name) {
    std::istringstream lines(text);
    std::uint64_t value = 0;
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ' ' &&
            number_of(std::string_view(line).substr(name.size()), value))
            return value;
    return 0;
}

// Where groups are mounted, and their files.
struct GroupFiles {
    const char *mount, *limit, *used, *cache;
};
constexpr GroupFiles version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

// The lowest from our group up to the root of the hierarchy, of limits, or of what they leave.
std::uint64_t lowest(const std::string& root, const GroupFiles& files, std::string group, bool left) {
    std::uint64_t lowest = UINT64_MAX;
    for (;;) {
        const std::string directory = root + files.mount + group + "/";
        std::uint64_t limit = 0, used = 0;
        if (number_of(read_text(directory + files.limit), limit)) {
            if (left && number_of(read_text(directory + files.used), used)) {
                used -= std::min(used, stat_line(read_text(directory + "memory.stat"), files.cache));
                limit -= std::min(limit, used);
            }
            lowest = std::min(lowest, limit);
        }
        const std::size_t slash = group.rfind('/');
        if (slash == std::string::npos) return lowest;
        group.resize(slash);
    }
}

Result<std::uint64_t> memory_of(const std::string& root, std::string_view line_name, bool left) {
    std::uint64_t memory = 0;
    if (!kib_line(read_text(root + "/proc/meminfo"), line_name, memory) || memory == 0)
        return Status(Code::unsupported, root + "/proc/meminfo does not tell how much memory there is");
    std::istringstream groups(read_text(root + "/proc/self/cgroup"));
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        std::string group = line.substr(second + 1);
        if (group == "/") group.clear();
        if (controllers.empty()) memory = std::min(memory, lowest(root, version_2, group, left));
        else if (("," + controllers + ",").find(",memory,") != std::string::npos) memory = std::min(memory, lowest(root, version_1, group, left));
    }
    return memory;
}

}  // namespace

Result<std::uint64_t> node_memory_bytes(const std::string& root) { return memory_of(root, "MemTotal", false); }
Result<std::uint64_t> available_memory_bytes(const std::string& root) { return memory_of(root, "MemAvailable", true); }

Ring fit_ring(Ring wanted, std::uint64_t block_bytes, std::uint64_t memory_bytes, double share) {
    const auto allowed = static_cast<std::uint64_t>(static_cast<double>(memory_bytes) * share);
    Ring ring = wanted;
    const std::uint32_t least = std::min<std::uint32_t>(2, ring.buffers);
    if (ring.buffer_bytes * ring.buffers <= allowed) return ring;
    ring.buffers =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(allowed / ring.buffer_bytes, least, ring.buffers));
    if (ring.buffer_bytes * ring.buffers > allowed)
        ring.buffer_bytes = std::max(block_bytes, allowed / ring.buffers / block_bytes * block_bytes);
    return ring;
}

RingUse divide_ring(Ring ring, std::uint64_t thread_bytes, unsigned threads, std::uint32_t encode_buffers) {
    const std::uint32_t least = std::min<std::uint32_t>(2, ring.buffers);
    RingUse use{ring.buffers, encode_buffers, threads};
    if (use.buffers < encode_buffers + 2) use.encode_buffers = 0;  // the ring's come first
    use.buffers -= use.encode_buffers;
    if (thread_bytes == 0) return use;
    const std::uint64_t half = ring.buffers * ring.buffer_bytes / 2;
    use.threads = static_cast<unsigned>(std::clamp<std::uint64_t>(half / thread_bytes, 1, std::max(1u, threads)));
    const std::uint64_t taken = div_up(use.threads * thread_bytes, ring.buffer_bytes);
    use.buffers = static_cast<std::uint32_t>(use.buffers > least + taken ? use.buffers - taken : std::min(use.buffers, least));
    return use;
}

AnonymousMemory sample_anonymous_memory() {
    static std::uint64_t peak = 0;  // the loop's thread only
    std::uint64_t now = 0;
    kib_line(read_text("/proc/self/status"), "RssAnon", now);
    peak = std::max(peak, now);
    return {now, peak};
}

}  // namespace cairn
