// The manual page: a walk over the CLI11 definition, in roff (man macros).
#include "base/roff.hpp"
#include "cli/app.hpp"
#include "cli/definition.hpp"

namespace cairn::cli {

namespace {

std::string usage(const CLI::App& app) {
    std::string line = "\\fBcairn " + roff(app.get_name()) + "\\fR [\\fIoptions\\fR]";
    for (const CLI::Option* option : app.get_options())
        if (option->get_positional()) {
            const std::string name =
                "\\fI" + roff(option->get_name(true)) + "\\fR" + (option->get_expected_max() > 1 ? "..." : "");
            line += option->get_required() ? " " + name : " [" + name + "]";
        }
    return line;
}

std::string option_entry(const CLI::Option& option) {
    std::string name;
    if (option.get_positional()) {
        name = "\\fI" + roff(option.get_name(true)) + "\\fR";
    } else {
        name = "\\fB" + roff(option.get_name(false, true)) + "\\fR";
        if (!option.get_type_name().empty()) name += " \\fI" + roff(option.get_type_name()) + "\\fR";
    }
    return ".TP\n" + name + "\n" + roff(option.get_description()) + "\n";
}

std::string command_section(const CLI::App& app, const Command& command) {
    std::string out = ".SS " + roff(app.get_name()) + " \\- " + roff(app.get_description()) + "\n" + usage(app) + "\n";
    out += roff_paragraphs(app.get_footer());
    for (const CLI::Option* option : app.get_options())
        if (option->get_name(false, true) != "-h,--help") out += option_entry(*option);
    for (const ExitNote& note : command.exits)
        out += ".TP\nExit " + std::to_string(static_cast<int>(note.code)) + "\n" + roff(note.text) + "\n";
    return out;
}

}  // namespace

std::string manual_page() {
    const auto app = define();
    std::string page =
        ".\\\" Made by `cairn --man`; do not edit.\n"
        ".TH CAIRN 1 \"\" \"cairn " CAIRN_VERSION
        "\" \"Cairn\"\n"
        ".SH NAME\ncairn \\- " +
        roff(program_line) +
        "\n"
        ".SH SYNOPSIS\n\\fBcairn\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n.br\n\\fBcairn\\fR [\\fICOMMAND\\fR] "
        "\\fB\\-\\-help\\fR\n"
        ".SH DESCRIPTION\n"
        "Cairn takes the state of every process of a parallel job into node\\-local scratch, lets the job go on, and "
        "in the background\n"
        "turns N images into K checksummed, self\\-describing files on shared storage, from which a job starts again.\n"
        "This command lists, checks, takes apart and removes what it wrote, and speaks with its daemons.\n"
        ".SH COMMANDS\n";
    for (const Command* command : commands())
        page += command_section(*app->get_subcommand(std::string(command->name)), *command);
    page += ".SH EXIT STATUS\n";
    for (const ExitCode& code : exit_codes())
        page += ".TP\n" + std::to_string(static_cast<int>(code.code)) + "\n" + roff(code.text) + "\n";
    page +=
        ".SH ENVIRONMENT\n"
        "Each setting can be given as \\fBCAIRN_SECTION_KEY\\fR; \\fBcairn config\\fR lists them.\n"
        ".TP\n\\fBCAIRN_CONFIG\\fR\nThe settings file; empty: none.\n"
        ".TP\n\\fBCAIRN_NODE\\fR\nThe name of a virtual node, so that one host can play several.\n"
        ".TP\n\\fBCAIRN_JOB\\fR\nWhat all processes of one run share where no launcher joins them, such as the batch "
        "job's number.\n"
        ".SH FILES\n"
        "The first of these that exists holds the settings: \\fI./cairn.toml\\fR, "
        "\\fI$HOME/.config/cairn/cairn.toml\\fR,\n"
        "\\fI/etc/cairn.toml\\fR.\n"
        ".SH SEE ALSO\n\\fBcairnd\\fR(8)\n";
    return page;
}

}  // namespace cairn::cli
