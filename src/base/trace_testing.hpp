// What the trace-event format asks of a file, for tests: "Trace Event Format" (Chromium), sections Metadata, Complete and
// Counter Events.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace cairn::trace_testing {

// The first event that breaks a rule, with the rule; empty: none does.
inline std::string broken_trace_rule(const nlohmann::json& events) {
    using Line = std::pair<std::int64_t, std::int64_t>;
    struct Span {
        std::int64_t begin_ns, end_ns;
        std::string event;
    };
    const auto nanos = [](const nlohmann::json& micros) { return static_cast<std::int64_t>(micros.get<double>() * 1e3 + 0.5); };
    std::map<Line, std::vector<Span>> lines;
    std::set<Line> named;
    std::set<std::int64_t> processes;
    if (!events.is_array()) return "the file is no array";
    for (const auto& event : events) {
        const std::string text = event.dump();
        const auto is_number = [&](const char* key) { return event.contains(key) && event[key].is_number() && event[key].get<double>() >= 0; };
        if (!event.is_object() || !event.contains("ph") || !event.contains("name") || !event["name"].is_string()) return "ph and name: " + text;
        if (!event.contains("pid") || !event["pid"].is_number_integer()) return "pid: " + text;
        const std::string phase = event["ph"];
        const std::int64_t pid = event["pid"];
        if (phase == "M") {
            if (!event["args"]["name"].is_string()) return "a name's args: " + text;
            if (event["name"] == "process_name" && !processes.insert(pid).second) return "a process named twice: " + text;
            if (event["name"] == "thread_name" && (!is_number("tid") || !named.insert({pid, event["tid"]}).second)) return "a line named twice: " + text;
            continue;
        }
        if (processes.count(pid) == 0) return "a process without a name: " + text;
        if (!is_number("ts")) return "ts: " + text;
        if (phase == "C") {
            if (!event["args"].is_object() || event["args"].empty()) return "a counter's args: " + text;
            for (const auto& [key, value] : event["args"].items())
                if (!value.is_number()) return "a counter's value: " + text;
            continue;
        }
        if (phase != "X") return "ph is none of M, C and X: " + text;
        if (!is_number("dur")) return "dur: " + text;
        if (!is_number("tid") || named.count({pid, event["tid"]}) == 0) return "a line without a name: " + text;
        const std::int64_t begin_ns = nanos(event["ts"]);
        lines[{pid, event["tid"]}].push_back({begin_ns, begin_ns + nanos(event["dur"]), text});
    }
    for (auto& [line, spans] : lines) {
        std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns; });
        std::vector<const Span*> open;
        for (const Span& span : spans) {
            while (!open.empty() && open.back()->end_ns <= span.begin_ns) open.pop_back();
            if (!open.empty() && span.end_ns > open.back()->end_ns) return "two spans of one line overlap: " + open.back()->event + " and " + span.event;
            open.push_back(&span);
        }
    }
    return "";
}

// How many of the trace's slices Perfetto's own reader finds; -1: its binary is not there, and that is said.
inline long slices_in_perfetto(const std::string& path) {
    for (const std::string program : {"trace_processor_shell", "trace_processor"}) {
        if (std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) != 0) continue;
        const std::string query = path + ".sql", answer = path + ".csv";
        std::ofstream(query) << "select count(*) as slices from slice;\n";
        if (std::system((program + " -q '" + query + "' '" + path + "' >'" + answer + "' 2>/dev/null").c_str()) != 0) return 0;
        std::ifstream in(answer);
        for (std::string line; std::getline(in, line);)
            if (!line.empty() && line.find_first_not_of("0123456789") == std::string::npos) return std::stol(line);
        return 0;
    }
    std::cout << "left out: Perfetto's trace_processor is not there, so the trace was not opened in it\n";
    return -1;
}

}  // namespace cairn::trace_testing
