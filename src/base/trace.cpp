// Trace: events go to a buffer under one lock, the buffer to the file when it is full and at the end. A full disk ends
// the trace, never the flush.
#include "base/trace.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace cairn {

namespace {

constexpr std::size_t buffer_bytes = 256 << 10;

// One line in the picture. Viewers draw the spans of a line by nesting, so of two one must contain the other, or end before it begins.
class Lane {
  public:
    explicit Lane(int number) : number_(number) {}
    int number() const noexcept { return number_; }
    // Whether the span nests with all that were taken; then it is taken. Spans come in the order of their ends.
    bool take(std::int64_t begin, std::int64_t end) {
        if (begin < forgotten_ || end < last_end_) return false;
        std::size_t inside = outermost_.size();  // from here on they lie within the new one
        while (inside > 0 && outermost_[inside - 1].begin >= begin) --inside;
        if (inside > 0 && outermost_[inside - 1].end > begin) return false;
        outermost_.resize(inside);
        outermost_.push_back({begin, end});
        last_end_ = end;
        if (outermost_.size() > outermost_max) {
            forgotten_ = outermost_[outermost_max / 2].end;
            outermost_.erase(outermost_.begin(), outermost_.begin() + outermost_max / 2 + 1);
        }
        return true;
    }

  private:
    struct Span {
        std::int64_t begin = 0, end = 0;
    };
    static constexpr std::size_t outermost_max = 1024;
    int number_;
    std::vector<Span> outermost_;  // no other contains them; by time
    std::int64_t forgotten_ = INT64_MIN, last_end_ = INT64_MIN;
};

struct TraceSink {
    std::mutex mutex;
    std::atomic<bool> open{false};
    int descriptor = -1;
    std::string path;
    std::string beside;  // of a simulation: where it is written
    std::atomic<const char*> unfinished{nullptr};  // the same, for a signal handler
    std::string buffer;
    Status failed;
    std::map<std::pair<std::string, std::uint32_t>, std::vector<Lane>> tracks;
    int lanes = 0;
    std::uint32_t process = 0, processes_max = UINT32_MAX;  // of a simulation, else this one
    std::vector<bool> named;
    bool left_out() const { return process >= processes_max; }
};

TraceSink& trace_sink() {
    static TraceSink* one = new TraceSink;  // never destroyed: threads may trace while the process ends
    return *one;
}

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < ' ') {
            char hex[8];
            std::snprintf(hex, sizeof hex, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            out += hex;
        } else {
            out += c;
        }
    }
    return out + '"';
}

void write_out(TraceSink& s) {
    std::string_view left = s.buffer;
    while (!left.empty() && s.failed.ok()) {
        const ssize_t count = ::write(s.descriptor, left.data(), left.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            s.failed = Status::from_errno(count < 0 ? errno : EIO, "cannot write the trace " + s.path);
            log_warning("trace-incomplete", {{"why", s.failed}});
        } else {
            left.remove_prefix(static_cast<std::size_t>(count));
        }
    }
    s.buffer.clear();
}

// Chrome counts in microseconds.
std::string micros(std::int64_t ns) {
    char text[48];
    std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(ns / 1000), static_cast<int>(ns % 1000));
    return text;
}

void append(TraceSink& s, const std::string& event) {
    s.buffer += ",\n";  // the first event, the name of the process, came with the opening bracket
    s.buffer += event;
    if (s.buffer.size() >= buffer_bytes) write_out(s);
}

// Where spans of a track overlap it has several lines: "leader", "leader (2)".
int lane_number(TraceSink& s, std::string_view track, std::int64_t begin, std::int64_t end) {
    std::vector<Lane>& lanes = s.tracks[{std::string(track), s.process}];
    for (Lane& lane : lanes)
        if (lane.take(begin, end)) return lane.number();
    lanes.emplace_back(++s.lanes);
    lanes.back().take(begin, end);
    const std::string name = std::string(track) + (lanes.size() == 1 ? "" : " (" + std::to_string(lanes.size()) + ")");
    append(s, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" + std::to_string(s.process) +
                  ",\"tid\":" + std::to_string(s.lanes) + ",\"args\":{\"name\":" + quoted(name) + "}}");
    return s.lanes;
}

std::string with_process(const std::string& path, std::string_view process) {
    const std::string tail = "-" + std::string(process) + "-" + std::to_string(::getpid());
    const auto slash = path.rfind('/');
    const auto dot = path.rfind('.');
    if (dot == std::string::npos || dot == 0 || (slash != std::string::npos && dot <= slash + 1)) return path + tail;
    return path.substr(0, dot) + tail + path.substr(dot);
}

std::string process_name(std::uint32_t process, std::string_view name) {
    return "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + std::to_string(process) + ",\"args\":{\"name\":" + quoted(name) + "}}";
}

// Under the sink's lock.
Status open_at(TraceSink& s, std::string path, std::string beside, std::uint32_t process, std::string_view name) {
    if (s.open) return Status(Code::already_exists, "a trace is open already: " + s.path);
    s.path = std::move(path);
    s.beside = std::move(beside);
    s.descriptor = ::open((s.beside.empty() ? s.path : s.beside).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (s.descriptor < 0) return Status::from_errno(errno, "cannot write the trace " + s.path);
    s.failed = {};
    s.tracks.clear();
    s.lanes = 0;
    s.named.clear();
    s.process = process;
    s.processes_max = UINT32_MAX;
    s.buffer = "[" + process_name(process, name);
    s.open = true;
    return {};
}

}  // namespace

bool trace_is_open() noexcept { return trace_sink().open.load(std::memory_order_relaxed); }

Status trace_open(const std::string& path, std::string_view process) {
    TraceSink& s = trace_sink();
    const std::lock_guard lock(s.mutex);
    Status opened = open_at(s, with_process(path, process), {}, static_cast<std::uint32_t>(::getpid()), process);
    if (opened.ok() || opened.code() == Code::already_exists) return opened;
    return {opened.code(), opened.text() + " (setting trace.file)"};
}

Status trace_open_simulated(const std::string& path, std::uint32_t processes_max) {
    TraceSink& s = trace_sink();
    const std::lock_guard lock(s.mutex);
    struct stat there = {};
    const bool is_there = ::stat(path.c_str(), &there) == 0;
    if (is_there && !S_ISREG(there.st_mode)) return invalid_argument("cannot write the trace " + path + ": not a regular file stands there");
    std::string real = path;
    if (char* leads_to = is_there ? ::realpath(path.c_str(), nullptr) : nullptr) {  // what a link leads to is replaced, not the link
        real = leads_to;
        std::free(leads_to);
    }
    TRY(open_at(s, real, real + ".cairn-" + std::to_string(::getpid()), 0, "cluster"));
    s.unfinished = s.beside.c_str();
    s.processes_max = processes_max;
    s.named.assign(processes_max, false);
    s.named[0] = true;
    return {};
}

void trace_as(std::uint32_t process, std::string (*name)(std::uint32_t)) {
    if (!trace_is_open()) return;
    TraceSink& s = trace_sink();
    const std::lock_guard lock(s.mutex);
    s.process = process;
    if (!s.open || process >= s.named.size() || s.named[process]) return;
    s.named[process] = true;
    append(s, process_name(process, name(process)));
}

Status trace_close() {
    TraceSink& s = trace_sink();
    const std::lock_guard lock(s.mutex);
    if (!s.open) return {};
    s.open = false;
    s.buffer += "]\n";
    write_out(s);
    if (::close(s.descriptor) != 0 && s.failed.ok()) {
        s.failed = Status::from_errno(errno, "cannot write the trace " + s.path);
        log_warning("trace-incomplete", {{"why", s.failed}});
    }
    s.descriptor = -1;
    if (s.unfinished == nullptr) return s.failed;
    if (s.failed.ok() && ::rename(s.beside.c_str(), s.path.c_str()) != 0) s.failed = Status::from_errno(errno, "cannot write the trace " + s.path);
    if (!s.failed.ok()) ::unlink(s.beside.c_str());
    s.unfinished = nullptr;
    return s.failed;
}

Status trace_status() {
    TraceSink& s = trace_sink();
    const std::lock_guard lock(s.mutex);
    return s.open ? s.failed : Status();
}

void trace_discard() {
    TraceSink& s = trace_sink();
    const std::lock_guard lock(s.mutex);
    if (!s.open || s.unfinished == nullptr) return;
    s.open = false;
    ::close(s.descriptor);
    s.descriptor = -1;
    ::unlink(s.beside.c_str());
    s.unfinished = nullptr;
}

void trace_remove_unfinished() noexcept {
    if (const char* name = trace_sink().unfinished) ::unlink(name);
}

void trace_span(std::string_view track, std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
                Fields fields) {
    if (!trace_is_open()) return;
    TraceSink& s = trace_sink();
    const std::lock_guard lock(s.mutex);
    if (!s.open || !s.failed.ok() || s.left_out()) return;
    end_ns = std::max(begin_ns, end_ns);
    const int number = lane_number(s, track, begin_ns, end_ns);
    std::string event = "{\"ph\":\"X\",\"name\":" + quoted(name) + ",\"pid\":" + std::to_string(s.process) +
                        ",\"tid\":" + std::to_string(number) + ",\"ts\":" + micros(begin_ns) +
                        ",\"dur\":" + micros(end_ns - begin_ns);
    std::string args;
    for (const Field& field : fields)
        args +=
            (args.empty() ? "" : ",") + quoted(field.key) + ":" + (field.is_number ? field.value : quoted(field.value));
    if (!args.empty()) event += ",\"args\":{" + args + "}";
    append(s, event + "}");
}

void trace_counter(std::string_view name, std::int64_t now, double value) {
    if (!trace_is_open() || !std::isfinite(value)) return;
    TraceSink& s = trace_sink();
    const std::lock_guard lock(s.mutex);
    if (!s.open || !s.failed.ok() || s.left_out()) return;
    append(s, "{\"ph\":\"C\",\"name\":" + quoted(name) + ",\"pid\":" + std::to_string(s.process) +
                  ",\"ts\":" + micros(now) + ",\"args\":{\"value\":" + Field("value", value).value + "}}");
}

}  // namespace cairn
