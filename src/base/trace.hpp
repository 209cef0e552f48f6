// Trace: spans of time as Chrome trace JSON, which opens in Perfetto. Off until opened; a closed trace costs one
// relaxed load a span.
//
// Times are given by the caller, nanoseconds of its own clock, so that simulated time traces as well as real time. A
// track is a line in the picture: one a writer, one for elections, ... The file is a JSON array; a process that is
// killed leaves it without its closing bracket, which viewers accept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/log.hpp"

namespace cairn {

// `process` and the process number go before the extension: trace.json -> trace-cairnd-1234.json. Fails where the file
// can not be made, or when a trace is open already.
Status trace_open(const std::string& path, std::string_view process);
// The same at `path` itself, for a simulation: of its processes only those numbered below `processes_max`, at least 1. It is written beside
// `path` and appears there, whole, in trace_close(); what else but a file stands there is not replaced.
Status trace_open_simulated(const std::string& path, std::uint32_t processes_max);
// Ends a trace of a simulation without one: nothing is left of it.
void trace_discard();
// Removes what an unfinished trace of a simulation has written so far; for a signal handler that ends the process.
void trace_remove_unfinished() noexcept;
// What is traced from now on is of this process of a simulation; its name is asked for once. UINT32_MAX: of none, and left out.
void trace_as(std::uint32_t process, std::string (*name)(std::uint32_t));

// Writes what is buffered and the closing bracket; the error of any earlier write comes out here.
Status trace_close();
bool trace_is_open() noexcept;
Status trace_status();  // of the open one: what went wrong so far; it is logged at once, and nothing more is written

void trace_span(std::string_view track, std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
                Fields fields = {});
// A value over time, drawn as a curve.
void trace_counter(std::string_view name, std::int64_t now_ns, double value);

// From construction to destruction, by the clock given (anything with now() in nanoseconds; it outlives the span). A track whose spans
// overlap, so that neither contains the other, has a second line.
template <class Clock>
class TraceSpan {
  public:
    TraceSpan(Clock& clock, std::string_view track, std::string_view name) {
        if (!trace_is_open()) return;
        clock_ = &clock;
        track_ = track;
        name_ = name;
        begin_ns_ = clock.now();
    }
    TraceSpan(const TraceSpan&) = delete;
    ~TraceSpan() {
        if (clock_) trace_span(track_, name_, begin_ns_, clock_->now());
    }

  private:
    Clock* clock_ = nullptr;  // null: no trace was open
    std::string track_, name_;
    std::int64_t begin_ns_ = 0;
};

}  // namespace cairn
