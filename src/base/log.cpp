// Log: formats a line, then one write(2). A failed write is dropped: a full disk must not stop a flush.
#include "base/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <mutex>

namespace cairn {

namespace {

struct LogSink {
    std::mutex mutex;
    int descriptor = -1;
    bool owned = false;
    std::atomic<int> level{-1};  // -1: off
};

LogSink& log_sink() {
    static LogSink* one = new LogSink;  // never destroyed: threads may log while the process ends
    return *one;
}

void replace(int descriptor, bool owned, int level) {
    LogSink& s = log_sink();
    const std::lock_guard lock(s.mutex);
    if (s.owned && s.descriptor >= 0) ::close(s.descriptor);
    s.descriptor = descriptor;
    s.owned = owned;
    s.level = level;
}

std::string time_text() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    tm parts{};
    gmtime_r(&now.tv_sec, &parts);
    char date[32], text[48];
    std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
    std::snprintf(text, sizeof text, "%s.%03ldZ", date, now.tv_nsec / 1'000'000);
    return text;
}

bool is_plain(std::string_view value) {
    if (value.empty()) return false;
    for (const char c : value)
        if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f) return false;
    return true;
}

void append_value(std::string& line, std::string_view value) {
    if (is_plain(value)) {
        line += value;
        return;
    }
    line += '"';
    for (const char c : value) {
        if (c == '"' || c == '\\') {
            line += '\\';
            line += c;
        } else if (c == '\n') {
            line += "\\n";
        } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
            char hex[8];
            std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            line += hex;
        } else {
            line += c;
        }
    }
    line += '"';
}

}  // namespace

std::string_view log_level_name(LogLevel level) noexcept {
    static constexpr std::array<std::string_view, 4> names = {"error", "warning", "info", "debug"};
    return names[static_cast<std::size_t>(level) % names.size()];
}

Field::Field(std::string_view k, double v) : key(k), is_number(std::isfinite(v)) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.6g", v);
    value = buffer;
}

Status log_to_file(const std::string& path, LogLevel level) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);  // a pipe that nobody reads is no reason to wait
    if (descriptor < 0) return Status::from_errno(errno, "cannot write the log " + path);
    replace(descriptor, true, static_cast<int>(level));
    return {};
}

void log_to_descriptor(int descriptor, LogLevel level) { replace(descriptor, false, static_cast<int>(level)); }
void log_off() { replace(-1, false, -1); }
bool log_wants(LogLevel level) noexcept {
    return static_cast<int>(level) <= log_sink().level.load(std::memory_order_relaxed);
}

std::string log_line(LogLevel level, std::string_view event, Fields fields) {
    std::string line(log_level_name(level));
    line += ' ';
    append_value(line, event);
    for (const Field& field : fields) {
        line += ' ';
        line += field.key;
        line += '=';
        append_value(line, field.value);
        if (!field.cause.empty()) line.append(" cause=").append(field.cause);
    }
    return line;
}

void log_event(LogLevel level, std::string_view event, Fields fields) {
    if (!log_wants(level)) return;
    const std::string line = time_text() + " " + log_line(level, event, fields) + "\n";
    LogSink& s = log_sink();
    const std::lock_guard lock(s.mutex);
    if (s.descriptor >= 0) {
        const ssize_t written = ::write(s.descriptor, line.data(), line.size());
        static_cast<void>(written);
    }
}

}  // namespace cairn
