// App: the table of commands as a command line.
#pragma once

#include <string>
#include <vector>

#include "cli/console.hpp"

namespace cairn::cli {

// Everything main() does; `arguments` without the program's name. Returns the exit code.
int run(Console& console, const std::vector<std::string>& arguments);

// cairn.1, from the same definitions as --help.
std::string manual_page();

}  // namespace cairn::cli
