// The `cairn` command.
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "cli/app.hpp"

int main(int count, char** arguments) {
    std::ios::sync_with_stdio(false);
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like any other, which says which
    cairn::cli::Console console{std::cout, std::cerr, false, ::isatty(STDERR_FILENO) == 1};
    return cairn::cli::run(console, {arguments + 1, arguments + count});
}
