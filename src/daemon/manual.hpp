// What `cairnd --help` and cairnd(8) say, from one source.
#pragma once

#include <string>

namespace cairn {

std::string daemon_help();
std::string daemon_manual_page();  // roff

}  // namespace cairn
