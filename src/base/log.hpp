// Log: events with fields, one line each: time, level, event, key=value, and of a failure cause=capacity or cause=fault. Nothing is logged per chunk.
//
// Silent until somebody opens it: the daemon and the command do, the client library never does (rule 8: it does not
// print). Thread-safe; every line goes out in one write(2), so that lines of several processes in one file do not mix.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace cairn {

enum class LogLevel : std::uint8_t { error, warning, info, debug };
std::string_view log_level_name(LogLevel level) noexcept;

// A named value of an event, or of a trace span.
struct Field {
    std::string_view key;
    std::string value;
    bool is_number = false;
    std::string_view cause;  // of a failure: a field of the line of its own

    Field(std::string_view k, std::string_view v) : key(k), value(v) {}
    Field(std::string_view k, const char* v) : key(k), value(v) {}
    Field(std::string_view k, const std::string& v) : key(k), value(v) {}
    Field(std::string_view k, bool v)
        : key(k), value(v ? "true" : "false"), is_number(true) {}  // bare in JSON, as numbers are
    Field(std::string_view k, double v);
    Field(std::string_view k, const Id128& v) : key(k), value(v.hex()) {}
    Field(std::string_view k, const Status& v) : key(k), value(v.to_string()), cause(cause_of(v.code())) {}
    template <class T>
    requires std::is_integral_v<T> Field(std::string_view k, T v) : key(k), value(std::to_string(v)), is_number(true) {}
};
using Fields = std::initializer_list<Field>;

// Appends to `path` (mode 0600, close-on-exec); replaces what was open. The old log stays open when this fails.
Status log_to_file(const std::string& path, LogLevel level);
// Writes to a descriptor the caller keeps open, such as 2.
void log_to_descriptor(int descriptor, LogLevel level);
void log_off();
bool log_wants(LogLevel level) noexcept;

void log_event(LogLevel level, std::string_view event, Fields fields);
inline void log_error(std::string_view event, Fields fields = {}) { log_event(LogLevel::error, event, fields); }
inline void log_warning(std::string_view event, Fields fields = {}) { log_event(LogLevel::warning, event, fields); }
inline void log_info(std::string_view event, Fields fields = {}) { log_event(LogLevel::info, event, fields); }
inline void log_debug(std::string_view event, Fields fields = {}) { log_event(LogLevel::debug, event, fields); }

// One line without time and newline, as log_event writes it after the time: `info started node=n0 path="/a b"`.
std::string log_line(LogLevel level, std::string_view event, Fields fields);

}  // namespace cairn
