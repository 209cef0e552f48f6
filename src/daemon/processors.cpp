#include "daemon/processors.hpp"

#include <dirent.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

namespace cairn {

namespace {

constexpr Nanos shortest_look = 100 * millisecond;
constexpr int idle_column = 3, waiting_for_disk_column = 4;  // of a processor's line: user, nice, system, idle, iowait

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
}

// Of a line "cpu12 1 2 3 4 5 ...".
std::optional<std::pair<unsigned, std::uint64_t>> idle_of_line(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    unsigned number = 0;
    if (!name.starts_with("cpu") || std::from_chars(name.data() + 3, name.data() + name.size(), number).ec != std::errc()) return std::nullopt;
    std::uint64_t ticks = 0, sum = 0;
    for (int column = 0; words >> ticks; ++column)
        if (column == idle_column || column == waiting_for_disk_column) sum += ticks;
    return std::pair(number, sum);
}

}  // namespace

std::optional<std::uint64_t> idle_ticks(std::string_view proc_stat, const std::vector<unsigned>& processors) {
    std::istringstream lines{std::string(proc_stat)};
    std::optional<std::uint64_t> sum;
    for (std::string line; std::getline(lines, line);)
        if (const auto each = idle_of_line(line); each && std::binary_search(processors.begin(), processors.end(), each->first)) sum = sum.value_or(0) + each->second;
    return sum;
}

Processors::Processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
        for (unsigned i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &set)) allowed_.push_back(i);
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; allowed_.empty() && i < std::max(1L, online); ++i) allowed_.push_back(static_cast<unsigned>(i));  // more than a set holds
    in_machine_ = std::max(static_cast<unsigned>(allowed_.size()), online > 0 ? static_cast<unsigned>(online) : 1);
    idle_ = count();
}

double Processors::idle(Nanos now) {
    if (ticks_ && now - looked_ < shortest_look) return idle_;
    const std::optional<std::uint64_t> ticks = idle_ticks(text_of("/proc/stat"), allowed_);
    const Nanos own = used();
    if (ticks_ && ticks) {
        const auto idle = static_cast<double>(*ticks - std::min(*ticks, *ticks_)) / static_cast<double>(::sysconf(_SC_CLK_TCK));
        idle_ = std::clamp((idle + static_cast<double>(own - used_) / second) * second / static_cast<double>(now - looked_), 0.0, count());
    }
    ticks_ = ticks;
    looked_ = now;
    used_ = own;
    return idle_;
}

Nanos Processors::used() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<Nanos>(time.tv_sec) * second + time.tv_nsec;
}

// A thread that ends takes what it waited with it, so that is added up.
Nanos Processors::waited() {
    std::map<std::string, Nanos> now;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/task"), ::closedir);
    while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
        Nanos ran = 0, waited = 0;
        const std::string thread = entry->d_name;
        if (thread.front() == '.' || !(std::ifstream("/proc/self/task/" + thread + "/schedstat") >> ran >> waited)) continue;
        const auto before = waited_of_.find(thread);
        const bool is_same = before != waited_of_.end() && before->second <= waited;  // else the number is another thread's now
        waited_ += waited - (is_same ? before->second : 0);
        now[thread] = waited;
    }
    waited_of_ = std::move(now);
    return waited_;
}

}  // namespace cairn
