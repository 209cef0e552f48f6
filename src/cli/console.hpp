// Console: where a command writes, for people or for programs. Results go to `out`, everything else to `err`.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::cli {

struct Console {
    std::ostream& out;
    std::ostream& err;
    bool json = false;      // one document on `out`, no table, no progress
    bool terminal = false;  // `err` is a terminal: progress bars may be drawn
    bool answered = false;  // the document is out: an error after it is told by `err` and the exit code alone

    void document(const std::string& text);
};

// Of the terminal behind a descriptor, now; nothing where there is none, or one that knows no control sequences.
struct TerminalSize {
    std::size_t columns = 80, rows = 24;
};
std::optional<TerminalSize> terminal_size(int descriptor);

// `text` drawn over what a terminal shows, from the top left corner: one write that erases nothing first, so nothing
// flickers. Lines too long go on in the next row; rows that there is no room for are left out, and counted. Hides no
// cursor and sets no mode: whoever is interrupted leaves the terminal as it was.
std::string screen_frame(std::string_view text, TerminalSize size);

// A progress bar on the last line of a terminal: share, amount, rate, time left. Draws a few times a second; leaves
// nothing behind. Where there is no terminal it does nothing.
class Progress {
  public:
    Progress(Console& console, std::string title, std::uint64_t total_bytes);
    Progress(const Progress&) = delete;
    ~Progress();
    void set(std::uint64_t bytes);

  private:
    using Time = std::chrono::steady_clock::time_point;
    Console& console_;
    std::string title_;
    std::uint64_t total_bytes_;
    Time began_, drawn_;
    bool visible_ = false;
};

// The line without control sequences: "verify  [####    ]  50 %  1.00 GiB of 2.00 GiB  512 MiB/s  2.00 s left". In a
// narrow terminal with a shorter bar, then with less and less, so that it never wraps: `\r` goes back one row only.
std::string progress_line(const std::string& title, std::uint64_t bytes, std::uint64_t total_bytes, double seconds,
                          std::size_t columns);

}  // namespace cairn::cli
