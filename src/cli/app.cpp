// App: rows to CLI11, the command line to Arguments, a Status to an exit code.
#include "cli/app.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <new>
#include <ostream>
#include <set>

#include "base/text_table.hpp"
#include "cli/definition.hpp"

namespace cairn::cli {

namespace {

std::string check_number(const std::string& text) {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return digits && text.size() < 20 ? "" : "'" + text + "' is not a whole number";
}

void define_option(CLI::App& app, const OptionSpec& spec) {
    const std::string names(spec.names), doc(spec.doc);
    if (spec.kind == OptionKind::flag) {
        app.add_flag(names, doc);
        return;
    }
    CLI::Option* option = app.add_option(names, doc);
    option->type_name(std::string(spec.value));
    if (spec.required) option->required();
    if (spec.repeated) option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
    if (spec.kind == OptionKind::number) option->check(CLI::Validator(check_number, ""));
}

Arguments collect(const CLI::App& app, const Command& command) {
    Arguments arguments;
    for (const OptionSpec& spec : all_options(command)) {
        const std::string names(spec.names);
        const CLI::Option* option = app.get_option(names.substr(0, names.find(',')));
        if (option->count() != 0) arguments.set(spec.key(), option->results());
    }
    return arguments;
}

// No argument means anything when empty; a shell variable that is not set must not choose "the newest", or the root
// directory.
Status check_not_empty(const Command& command, const Arguments& arguments) {
    for (const OptionSpec& spec : all_options(command))
        if (spec.kind != OptionKind::flag && spec.names != "COMMAND")  // another program's arguments are its own
            for (const std::string& text : arguments.texts(spec.key()))
                if (text.empty())
                    return invalid_argument(std::string(spec.names) + " is empty\nSee `cairn " +
                                            std::string(command.name) + " --help`");
    return {};
}

// Of two values for one key the last would win without a word.
Status check_keys_once(const Command& command, const Arguments& arguments) {
    for (const OptionSpec& spec : all_options(command)) {
        if (spec.value != "KEY=VALUE") continue;
        std::set<std::string> keys;
        for (const std::string& text : arguments.texts(spec.key()))
            if (const std::string key = text.substr(0, text.find('=')); !keys.insert(key).second)
                return invalid_argument(std::string(spec.names) + " " + key + " is given twice; leave one out");
    }
    return {};
}

// CLI11 says only "a subcommand is required" of a mistyped one.
Status check_command(const std::vector<std::string>& arguments) {
    if (arguments.empty() || arguments[0].starts_with("-")) return {};
    std::string names;
    for (const Command* command : commands()) {
        if (command->name == arguments[0]) return {};
        names += (names.empty() ? "" : ", ") + std::string(command->name);
    }
    return invalid_argument("no command is named '" + for_terminal(arguments[0]) + "'; there are " + names +
                            "\nSee `cairn --help`, and `cairn COMMAND --help` of one of them");
}

// Texts may quote what the user or a disk said; lines stay lines.
std::string printable_lines(std::string text) {
    for (char& c : text)
        if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == 0x7f) c = '?';
    return text;
}

int finish(Console& console, std::string_view command, const Status& status) {
    if (status.ok()) return 0;
    console.out.flush();
    const std::string prefix = "cairn" + (command.empty() ? std::string() : " " + std::string(command));
    console.err << prefix << ": " << printable_lines(status.text()) << "\n";
    if (console.json && !console.answered) {
        using Json = nlohmann::ordered_json;
        const Json error = {
            {"code", code_name(status.code())}, {"exit", static_cast<int>(status.code())}, {"text", status.text()}};
        console.out << Json{{"error", error}}.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    }
    return static_cast<int>(status.code());
}

// What was printed must have got out.
int finish_output(Console& console, std::string_view command, Status status) {
    console.out.flush();
    if (status.ok() && !console.out) status = Status(Code::io_error, "cannot write the output");
    return finish(console, command, status);
}

// CLI11 reports --help and mistakes alike by exception.
int explain(Console& console, const CLI::App& app, const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
        static_cast<void>(app.exit(error, console.out, console.err));
        return finish_output(console, "", {});
    }
    const auto chosen = app.get_subcommands();
    const std::string where = chosen.empty() ? "" : chosen.front()->get_name();
    const Status status =
        invalid_argument(std::string(error.what()) + "\nSee `cairn " + (where.empty() ? "" : where + " ") + "--help`");
    return finish(console, where, status);
}

}  // namespace

std::unique_ptr<CLI::App> define() {
    auto app = std::make_unique<CLI::App>("Cairn: " + std::string(program_line) + ".", "cairn");
    app->require_subcommand(1);
    app->get_formatter()->label("SUBCOMMAND", "COMMAND");
    app->get_formatter()->column_width(24);
    app->set_version_flag("--version", "cairn " CAIRN_VERSION);
    const std::string manual_doc = "Prints the manual page (roff).";
    app->add_flag("--man", manual_doc)->group("");  // hidden: for the build
    app->footer("`cairn COMMAND --help` describes one command. Exit codes: 0 ok, 1 wrong usage, others in cairn(1).");
    for (const Command* command : commands()) {
        CLI::App* sub = app->add_subcommand(std::string(command->name), std::string(command->line));
        sub->group("Commands");
        sub->footer(std::string(command->description));
        for (const OptionSpec& spec : all_options(*command)) define_option(*sub, spec);
    }
    return app;
}

int run(Console& console, const std::vector<std::string>& arguments) {
    if (arguments.size() == 1 && arguments[0] == "--man") {
        console.out << manual_page();
        return finish_output(console, "", {});
    }
    console.json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
    const auto app = define();
    if (arguments.empty()) {
        console.err << app->help();
        return static_cast<int>(Code::invalid_argument);
    }
    if (const Status status = check_command(arguments); !status.ok()) return finish(console, "", status);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    try {
        app->parse(reversed);
    } catch (const CLI::ParseError& error) {
        return explain(console, *app, error);
    }
    for (const Command* command : commands()) {
        const CLI::App* sub = app->get_subcommand(std::string(command->name));
        if (!sub->parsed()) continue;
        const Arguments given = collect(*sub, *command);
        Status status = check_not_empty(*command, given);
        if (status.ok()) status = check_keys_once(*command, given);
        try {
            if (status.ok()) status = command->run(console, given);
        } catch (const std::bad_alloc&) {
            status = Status(Code::out_of_space, "out of memory");
        }
        return finish_output(console, command->name, std::move(status));
    }
    return finish(console, "", invalid_argument("no command given"));
}

}  // namespace cairn::cli
