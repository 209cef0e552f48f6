#include "cli/console.hpp"

#include <algorithm>
#include <ostream>

#include "base/text_table.hpp"
#include "base/units.hpp"

namespace cairn::cli {

void Console::document(const std::string& text) {
    out << text << "\n";
    answered = true;
}

std::string progress_line(const std::string& title, std::uint64_t bytes, std::uint64_t total_bytes, double seconds) {
    const double share = total_bytes == 0 ? 1 : static_cast<double>(bytes) / static_cast<double>(total_bytes);
    const double rate = seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
    const std::string percent = std::to_string(static_cast<int>(share * 100));
    std::string line = title + "  " + format_bar(share, 24) +
                       std::string(5 - std::min<std::size_t>(percent.size(), 4), ' ') + percent + " %  " +
                       format_bytes(bytes) + " of " + format_bytes(total_bytes);
    if (rate > 0 && bytes < total_bytes)
        line += "  " + format_rate(rate) + "  " + format_duration(static_cast<double>(total_bytes - bytes) / rate) +
                " left";
    return line;
}

Progress::Progress(Console& console, std::string title, std::uint64_t total_bytes)
    : console_(console),
      title_(std::move(title)),
      total_bytes_(total_bytes),
      began_(std::chrono::steady_clock::now()),
      drawn_(began_) {}

Progress::~Progress() {
    if (visible_) console_.err << "\r\x1b[K" << std::flush;
}

void Progress::set(std::uint64_t bytes) {
    using namespace std::chrono_literals;
    if (!console_.terminal || console_.json) return;
    const Time now = std::chrono::steady_clock::now();
    if (now - drawn_ < 100ms) return;
    drawn_ = now;
    visible_ = true;
    const double seconds = std::chrono::duration<double>(now - began_).count();
    console_.err << "\r\x1b[K" << progress_line(title_, bytes, total_bytes_, seconds) << std::flush;
}

}  // namespace cairn::cli
