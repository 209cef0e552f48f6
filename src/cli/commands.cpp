// The table of subcommands, what they have in common, and the exit codes.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "cli/command.hpp"

namespace cairn::cli {

std::span<const Command* const> commands() {
    static constexpr std::array table = {
        &ls_command, &show_command, &layout_command, &verify_command, &extract_command, &rm_command,
        &gc_command, &repair_command, &start_command, &stop_command, &status_command, &config_command,
        &watch_command, &describe_command, &tune_command, &simulate_command,
    };
    return table;
}

std::span<const ExitCode> exit_codes() {
    static constexpr std::array table = {
        ExitCode{Code::ok, "success"},
        ExitCode{Code::invalid_argument,
                 "the command line or the settings are wrong, or ask for something that can not be"},
        ExitCode{Code::not_found, "no such checkpoint, version, rank, region or file"},
        ExitCode{Code::already_exists, "something is there already and is not replaced"},
        ExitCode{Code::out_of_space, "scratch, persistent or the output is full"},
        ExitCode{Code::io_error, "the operating system refused an operation"},
        ExitCode{Code::corrupt, "damage: bytes are not what their checksum says, or not Cairn's format"},
        ExitCode{Code::unavailable, "a daemon can not be reached"},
        ExitCode{Code::deadline, "the time allowed ran out"},
        ExitCode{Code::superseded, "a newer open of the checkpoint replaced this one"},
        ExitCode{Code::cancelled, "stopped by somebody"},
        ExitCode{Code::permission, "not yours to touch"},
        ExitCode{Code::unsupported, "a newer version of the format or of the protocol"},
        ExitCode{Code::internal, "a defect in Cairn; please report it"},
    };
    return table;
}

std::vector<OptionSpec> all_options(const Command& command) {
    std::vector<OptionSpec> all = command.options;
    if (command.uses_storage) {
        all.push_back(
            {"--persistent", OptionKind::text, "PATH", "Directory of the checkpoints, instead of paths.persistent."});
        all.push_back({"--scratch", OptionKind::text, "PATH", "Node-local directory, instead of paths.scratch."});
    }
    all.push_back({"--json", OptionKind::flag, "", "One JSON document for programs instead of a table."});
    return all;
}

std::string OptionSpec::key() const {
    std::string best;
    for (std::size_t from = 0; from <= names.size();) {
        const std::size_t end = std::min(names.find(',', from), names.size());
        const std::string_view name = names.substr(from, end - from);
        const std::string bare(name.substr(std::min(name.find_first_not_of('-'), name.size())));
        if (bare.size() > best.size()) best = bare;
        from = end + 1;
    }
    return best;
}

const std::vector<std::string>& Arguments::texts(std::string_view key) const {
    static const std::vector<std::string> none;
    const auto found = values_.find(key);
    return found == values_.end() ? none : found->second;
}

const std::string& Arguments::text(std::string_view key) const {
    static const std::string none;
    const auto& all = texts(key);
    return all.empty() ? none : all.back();
}

std::uint64_t Arguments::number(std::string_view key, std::uint64_t otherwise) const {
    return given(key) ? std::strtoull(text(key).c_str(), nullptr, 10) : otherwise;  // app.cpp checked the digits
}

}  // namespace cairn::cli
