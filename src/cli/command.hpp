// The subcommands of `cairn` as a table. One row says all there is to say of one: its name, options, what it does and
// how it exits. Parsing, --help, the man page and the tests are made from these rows; the code of a subcommand is in
// the file of its name.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "cli/console.hpp"

namespace cairn::cli {

enum class OptionKind : std::uint8_t { flag, text, number };

struct OptionSpec {
    std::string_view names;  // "--all", "-o,--output", or for a positional its name in capitals: "NAME"
    OptionKind kind;
    std::string_view value;  // what stands for the value in the help; empty for flags and positionals
    std::string_view doc;
    bool required = false;
    bool repeated = false;

    std::string key() const;  // the longest name without dashes
};

// What was given on the command line, checked against the specs.
class Arguments {
  public:
    void set(const std::string& key, std::vector<std::string> values) { values_[key] = std::move(values); }

    bool given(std::string_view key) const { return !texts(key).empty(); }
    const std::string& text(std::string_view key) const;  // empty when not given
    std::uint64_t number(std::string_view key, std::uint64_t otherwise = 0) const;
    const std::vector<std::string>& texts(std::string_view key) const;

  private:
    std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// What one exit code means to one command, where the general meaning (exit_codes) does not say enough.
struct ExitNote {
    Code code;
    std::string_view text;
};

struct Command {
    std::string_view name;
    std::string_view line;         // one line, for the list of commands
    std::string_view description;  // paragraphs, separated by an empty line
    std::vector<OptionSpec> options;
    std::vector<ExitNote> exits;
    bool uses_storage;  // takes --persistent and --scratch
    Status (*run)(Console&, const Arguments&);
};

std::span<const Command* const> commands();

// --json for all, and --persistent and --scratch for those that use storage.
std::vector<OptionSpec> all_options(const Command& command);

// The exit code of the process is the number of the code. 0: ok.
struct ExitCode {
    Code code;
    std::string_view text;
};
std::span<const ExitCode> exit_codes();

extern const Command ls_command, show_command, layout_command, verify_command, extract_command, rm_command, gc_command, repair_command;
extern const Command start_command, stop_command, status_command, config_command, watch_command, describe_command, tune_command, simulate_command;

}  // namespace cairn::cli
