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
// Writes what is buffered and the closing bracket; the error of any earlier write comes out here.
Status trace_close();
bool trace_is_open() noexcept;

void trace_span(std::string_view track, std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
                Fields fields = {});
// A value over time, drawn as a curve.
void trace_counter(std::string_view name, std::int64_t now_ns, double value);

// From construction to destruction in real (monotonic) time.
class TraceScope {
  public:
    TraceScope(std::string_view track, std::string_view name);
    TraceScope(const TraceScope&) = delete;
    ~TraceScope();

  private:
    std::string_view track_, name_;  // literals
    std::int64_t begin_ns_ = -1;     // -1: no trace was open
};

}  // namespace cairn
