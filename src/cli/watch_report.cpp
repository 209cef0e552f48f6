#include "cli/watch_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text_table.hpp"
#include "base/units.hpp"

namespace cairn::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t notes_max = 1000;  // told apart; then all are forgotten

Json event(const WatchOptions& options, const char* name) {
    return {{"event", name}, {"checkpoint", options.name}, {"watcher", options.index}, {"watchers", options.watchers}};
}

void say(Console& console, const Json& line) {
    console.out << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    console.answered = true;
}

}  // namespace

std::string WatchReport::label(Version version) const {
    return version_text(options_.name, version) + ": ";
}

void WatchReport::watching(const std::string& folder, const std::string& pattern, Version after) {
    if (console_.json) {
        Json line = event(options_, "watching");
        line.update({{"folder", folder}, {"pattern", pattern}, {"from", after}});
        return say(console_, line);
    }
    console_.out << "watching " << for_terminal(folder) << " for " << for_terminal(pattern) << " as watcher "
                 << options_.index << " of " << options_.watchers
                 << (after == 0 ? "; a new series" : "; goes on after version " + std::to_string(after)) << std::endl;
}

void WatchReport::captured(Version version, std::uint64_t files, std::uint64_t bytes, double capture_s) {
    if (console_.json) {
        Json line = event(options_, "captured");
        line.update({{"version", version}, {"files", files}, {"bytes", bytes}, {"capture_s", capture_s}});
        return say(console_, line);
    }
    console_.out << label(version) << "captured " << plural(files, "file") << ", " << format_bytes(bytes) << ", in "
                 << format_duration(capture_s) << std::endl;
}

void WatchReport::committed(Version version, const CommittedFacts& facts, std::uint64_t files, double flush_s) {
    if (console_.json) {
        Json line = event(options_, "committed");
        line.update({{"version", version},
                     {"images", facts.images},
                     {"image_bytes", facts.image_bytes},
                     {"files", files},
                     {"parts", facts.parts},
                     {"stored_bytes", facts.stored_bytes},
                     {"flush_s", flush_s}});
        return say(console_, line);
    }
    console_.out << label(version) << "committed after " << format_duration(flush_s)
                 << " in the background: " << plural(facts.images, "image") << ", " << format_bytes(facts.image_bytes)
                 << ", in " << plural(facts.parts, "file") << std::endl;
}

void WatchReport::removed(Version version, std::uint64_t files) {
    if (console_.json) {
        Json line = event(options_, "removed");
        line.update({{"version", version}, {"files", files}});
        return say(console_, line);
    }
    console_.out << label(version) << "removed " << plural(files, "original file") << std::endl;
}

void WatchReport::note(Version version, const std::string& text) {
    if (noted_.size() >= notes_max) noted_.clear();
    if (!noted_.insert(std::to_string(version) + text).second) return;
    if (console_.json) {
        Json line = event(options_, "note");
        line.update({{"version", version}, {"text", text}});
        return say(console_, line);
    }
    console_.err << "cairn watch: " << (version == 0 ? "" : label(version)) << for_terminal(text) << std::endl;
}

void WatchReport::notes(const std::string& lines) {
    for (std::size_t from = 0; from < lines.size();) {
        const std::size_t end = std::min(lines.find('\n', from), lines.size());
        if (end > from) note(0, lines.substr(from, end - from));
        from = end + 1;
    }
}

void WatchReport::lost(Version version, const std::string& text) {
    if (first_lost_.empty()) first_lost_ = label(version) + text;
    if (console_.json) {
        Json line = event(options_, "lost");
        line.update({{"version", version}, {"text", text}});
        return say(console_, line);
    }
    console_.err << "cairn watch: " << label(version) << for_terminal(text) << std::endl;
}

void WatchReport::ended(std::uint64_t committed) {
    if (console_.json) {
        Json line = event(options_, "ended");
        line.update({{"committed", committed}});
        return say(console_, line);
    }
    console_.out << "ended: " << plural(committed, "version") << " committed" << std::endl;
}

}  // namespace cairn::cli
