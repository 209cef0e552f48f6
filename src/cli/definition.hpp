// The CLI11 definition of the command line, shared by app.cpp (parsing, --help) and manual.cpp (cairn.1).
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace cairn::cli {

inline constexpr const char* program_line =
    "asynchronous multi-level checkpoints: N process images become K committed files";

// One CLI::App for each row of the table; its options in the order of all_options().
std::unique_ptr<CLI::App> define();

}  // namespace cairn::cli
