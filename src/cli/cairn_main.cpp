// The `cairn` command.
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "cli/app.hpp"
#include "world/real/memory.hpp"

int main(int count, char** arguments) {
    std::ios::sync_with_stdio(false);
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like any other, which says which
    cairn::survive_lost_bytes();      // of scratch that is read: damage, and not this program's end
    cairn::cli::Console console{std::cout, std::cerr, false, ::isatty(STDERR_FILENO) == 1};
    return cairn::cli::run(console, {arguments + 1, arguments + count});
}
