#include "cli/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <vector>

#include "base/text_table.hpp"
#include "base/units.hpp"

namespace cairn::cli {

void Console::document(const std::string& text) {
    out << text << "\n";
    answered = true;
}

std::optional<TerminalSize> terminal_size(int descriptor) {
    if (::isatty(descriptor) != 1) return std::nullopt;
    const char* kind = std::getenv("TERM");
    if (!kind || !*kind || std::string_view(kind) == "dumb") return std::nullopt;
    TerminalSize size;
    winsize said{};
    if (::ioctl(descriptor, TIOCGWINSZ, &said) != 0) return size;
    if (said.ws_col > 0) size.columns = said.ws_col;
    if (said.ws_row > 0) size.rows = said.ws_row;
    return size;
}

namespace {

// Bytes of the first `count` characters.
std::size_t bytes_of(std::string_view text, std::size_t count) {
    std::size_t at = 0;
    for (; at < text.size(); ++at)
        if ((text[at] & 0xC0) != 0x80 && count-- == 0) break;
    return at;
}

std::vector<std::string_view> rows_of(std::string_view text, std::size_t columns) {
    std::vector<std::string_view> rows;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        do {
            rows.push_back(line.substr(0, bytes_of(line, columns)));
            line.remove_prefix(rows.back().size());
        } while (!line.empty());
    }
    return rows;
}

}  // namespace

std::string screen_frame(std::string_view text, TerminalSize size) {
    const std::vector<std::string_view> rows = rows_of(text, std::max<std::size_t>(size.columns, 1));
    const std::size_t room = std::max<std::size_t>(size.rows, 2) - 1;  // the cursor rests below
    const std::size_t shown = rows.size() <= room ? rows.size() : room - 1;
    std::string frame = "\x1b[H";
    for (std::size_t i = 0; i < shown; ++i) frame += std::string(rows[i]) + "\x1b[K\n";
    if (shown < rows.size()) {
        const std::string more = "(" + plural(rows.size() - shown, "more row") + ")";
        frame += more.substr(0, size.columns) + "\x1b[K\n";
    }
    return frame + "\x1b[J";
}

std::string progress_line(const std::string& title, std::uint64_t bytes, std::uint64_t total_bytes, double seconds,
                          std::size_t columns) {
    const double share =
        total_bytes == 0 ? 1 : std::min(static_cast<double>(bytes) / static_cast<double>(total_bytes), 1.0);
    const double rate = seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
    const bool goes_on = rate > 0 && bytes < total_bytes;
    const std::string percent = std::to_string(static_cast<int>(share * 100));
    const std::string done = std::string(5 - std::min<std::size_t>(percent.size(), 4), ' ') + percent + " %";
    const std::string amount = "  " + format_bytes(bytes) + " of " + format_bytes(total_bytes);
    const std::string speed = goes_on ? "  " + format_rate(rate) : "";
    const std::string left =
        goes_on ? "  " + format_duration(static_cast<double>(total_bytes - bytes) / rate) + " left" : "";
    const std::string wide = title + "  " + format_bar(share, 24) + done, narrow = title + "  " + format_bar(share, 8) + done;
    for (const std::string& line : {wide + amount + speed + left, narrow + amount + speed + left, narrow + speed + left,
                                    narrow + left, narrow, title + done})
        if (characters(line) < columns) return line;
    return done.substr(0, columns - std::min<std::size_t>(columns, 1));
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
    const std::optional<TerminalSize> size = terminal_size(STDERR_FILENO);  // each time: windows change
    if (!size) return;
    visible_ = true;
    const double seconds = std::chrono::duration<double>(now - began_).count();
    console_.err << "\r" + progress_line(title_, bytes, total_bytes_, seconds, size->columns) + "\x1b[K" << std::flush;
}

}  // namespace cairn::cli
