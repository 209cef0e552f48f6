// The command as a process sees it: exit codes, help for everything, the manual page, the page of settings.
#include "cli/app.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/config.hpp"
#include "cli/command.hpp"
#include "cli/program_testing.hpp"

namespace cairn::cli {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

struct App : testing::Test {
    ProgramFolder folder;
    Ran cairn(const std::string& arguments) { return folder.run(arguments); }
};

TEST_F(App, every_command_has_help_and_a_section_in_the_manual_page) {
    const Ran help = cairn("--help");
    EXPECT_EQ(help.exit, 0);
    const std::string manual = manual_page();
    for (const Command* command : commands()) {
        EXPECT_THAT(help.out, HasSubstr(std::string(command->line)));
        const Ran own = cairn(std::string(command->name) + " --help");
        EXPECT_EQ(own.exit, 0);
        EXPECT_THAT(manual, HasSubstr(".SS " + std::string(command->name) + " "));
        for (const OptionSpec& option : all_options(*command)) {
            EXPECT_THAT(own.out, HasSubstr(std::string(option.names))) << command->name;
            EXPECT_FALSE(option.doc.empty()) << command->name << " " << option.names;
            EXPECT_FALSE(option.key().empty());
        }
        EXPECT_FALSE(command->description.empty()) << command->name;
    }
}

TEST_F(App, the_manual_page_lists_every_exit_code_and_is_what_the_hidden_option_prints) {
    const Ran printed = cairn("--man");
    EXPECT_EQ(printed.exit, 0);
    EXPECT_EQ(printed.out, manual_page());
    EXPECT_TRUE(printed.out.starts_with(".\\\""));
    EXPECT_THAT(printed.out, HasSubstr(".TH CAIRN 1"));
    EXPECT_EQ(exit_codes().size(), static_cast<std::size_t>(Code::internal) + 1);
    for (std::size_t i = 0; i < exit_codes().size(); ++i) {
        EXPECT_EQ(static_cast<std::size_t>(exit_codes()[i].code), i);
        EXPECT_THAT(printed.out, HasSubstr(".TP\n" + std::to_string(i) + "\n"));
    }
}

TEST_F(App, wrong_usage_exits_1_and_says_where_help_is) {
    EXPECT_EQ(cairn("").exit, 1);
    EXPECT_THAT(cairn("").err, HasSubstr("Commands"));
    const Ran mistyped = cairn("confg");
    EXPECT_EQ(mistyped.exit, 1);
    EXPECT_THAT(mistyped.err, HasSubstr("no command is named 'confg'; there are "));
    EXPECT_THAT(cairn("help").err, HasSubstr("See `cairn --help`, and `cairn COMMAND --help`"));
    const Ran option = cairn("config --bogus");
    EXPECT_EQ(option.exit, 1);
    EXPECT_THAT(option.err, HasSubstr("--bogus"));
    EXPECT_THAT(option.err, HasSubstr("cairn config --help"));
    EXPECT_EQ(option.out, "");
}

TEST_F(App, an_empty_argument_is_wrong_usage) {
    for (const char* arguments : {"ls ''", "show melt ''", "extract melt --rank 0 -o ''", "extract melt --files ''",
                                  "rm melt ''", "gc --age ''", "verify melt '' --json", "config ''"}) {
        const Ran ran = cairn(arguments);
        EXPECT_EQ(ran.exit, 1) << arguments;
        EXPECT_THAT(ran.err, HasSubstr("is empty")) << arguments;
    }
}

TEST_F(App, an_error_does_not_write_control_characters_to_the_terminal) {
    const Ran ran = cairn("show \"$(printf 'me\\033[2Jlt')\" '\t' --json");
    EXPECT_EQ(ran.exit, 1);
    EXPECT_EQ(ran.err.find('\033'), std::string::npos) << ran.err;
    EXPECT_EQ(Json::parse(ran.out)["error"]["exit"], 1);
}

TEST_F(App, version_and_full_disk) {
    EXPECT_EQ(cairn("--version").out, "cairn " CAIRN_VERSION "\n");
    for (const char* printed : {"--help", "watch --help", "--version", "--man"}) {
        const Ran nowhere = cairn(std::string(printed) + " > /dev/full");
        EXPECT_EQ(nowhere.exit, static_cast<int>(Code::io_error)) << printed;
        EXPECT_EQ(nowhere.err, "cairn: cannot write the output\n") << printed;
    }
    const Ran full = cairn("config > /dev/full");
    EXPECT_EQ(full.exit, static_cast<int>(Code::io_error));
}

TEST_F(App, config_shows_values_and_where_they_came_from) {
    folder.write("cairn.toml", "[flush]\nfiles = 4\n");
    folder.environment = "CAIRN_FLUSH_WRITERS=3";
    const Ran table = cairn("config flush");
    EXPECT_EQ(table.exit, 0) << table.err;
    EXPECT_THAT(table.out, testing::ContainsRegex("flush\\.files +4 +" + folder.path("cairn.toml") + ":2\n"));
    EXPECT_THAT(table.out, testing::ContainsRegex("flush\\.writers +3 +CAIRN_FLUSH_WRITERS\n"));
    EXPECT_THAT(table.out, testing::ContainsRegex("flush\\.buffer_bytes +64 MiB +default\n"));
    EXPECT_THAT(table.out, testing::Not(HasSubstr("daemon.idle_s")));

    const Json all = Json::parse(cairn("config --json").out);
    EXPECT_EQ(all["file"], folder.path("cairn.toml"));
    EXPECT_EQ(all["settings"].size(), config_keys().size());
    const Json one = Json::parse(cairn("config flush.files --json").out);
    EXPECT_EQ(one["settings"][0]["value"], 4);
    EXPECT_EQ(one["settings"][0]["from"], folder.path("cairn.toml") + ":2");
}

TEST_F(App, config_names_mistakes_and_exits_with_their_code) {
    EXPECT_EQ(cairn("config nothing.there").exit, static_cast<int>(Code::not_found));
    folder.write("cairn.toml", "\n[flush]\nfiles = \"many\"\n");
    const Ran bad = cairn("config");
    EXPECT_EQ(bad.exit, 1);
    EXPECT_THAT(bad.err, HasSubstr("cairn config: " + folder.path("cairn.toml") + ":3: flush.files"));
    const Json error = Json::parse(cairn("config --json").out);
    EXPECT_EQ(error["error"]["exit"], 1);
    EXPECT_EQ(error["error"]["code"], "invalid argument");
    EXPECT_THAT(error["error"]["text"].get<std::string>(), HasSubstr("flush.files"));
    folder.environment = "CAIRN_CONFIG=missing.toml";
    EXPECT_EQ(cairn("config").exit, static_cast<int>(Code::not_found));
}

TEST_F(App, the_checked_in_page_of_settings_is_current) {
    std::ifstream in(CAIRN_SOURCE "/docs/settings.md");
    std::stringstream page;
    page << in.rdbuf();
    EXPECT_EQ(page.str(), cairn("config --markdown").out)
        << "run `cairn config --markdown > docs/settings.md` in the project's root";
}

TEST(Console, a_progress_line_says_share_amount_rate_and_time_left) {
    EXPECT_EQ(progress_line("verify", 1ull << 30, 2ull << 30, 2.0, 100),
              "verify  [############            ]   50 %  1.00 GiB of 2.00 GiB  512 MiB/s  2.00 s left");
    EXPECT_EQ(progress_line("verify", 0, 0, 0, 100), "verify  [########################]  100 %  0 B of 0 B");
}

TEST(Console, a_progress_line_is_shorter_than_the_terminal_is_wide) {
    EXPECT_EQ(progress_line("verify", 1ull << 30, 2ull << 30, 2.0, 80),
              "verify  [####    ]   50 %  1.00 GiB of 2.00 GiB  512 MiB/s  2.00 s left");
    EXPECT_EQ(progress_line("verify", 1ull << 30, 2ull << 30, 2.0, 60),
              "verify  [####    ]   50 %  512 MiB/s  2.00 s left");
    for (std::size_t columns = 0; columns < 120; ++columns)
        EXPECT_LT(progress_line("verify", 1ull << 30, 2ull << 30, 2.0, columns).size(), std::max(columns, 1ul));
}

TEST(Console, a_frame_draws_over_what_is_there) {
    EXPECT_EQ(screen_frame("one\ntwo\n", {10, 5}), "\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J");
    EXPECT_EQ(screen_frame("", {10, 5}), "\x1b[H\x1b[J");
    EXPECT_EQ(screen_frame("abcdef\n\nx\n", {4, 5}), "\x1b[Habcd\x1b[K\nef\x1b[K\n\x1b[K\nx\x1b[K\n\x1b[J");
    EXPECT_EQ(screen_frame("\u00fc\u00fc\u00fc\n", {2, 5}), "\x1b[H\u00fc\u00fc\x1b[K\n\u00fc\x1b[K\n\x1b[J");
    EXPECT_EQ(screen_frame("1\n2\n3\n4\n5\n", {20, 4}), "\x1b[H1\x1b[K\n2\x1b[K\n(3 more rows)\x1b[K\n\x1b[J");
}

TEST(Console, progress_is_drawn_on_terminals_only) {
    std::ostringstream out, err;
    Console console{out, err};
    { Progress(console, "x", 10).set(5); }
    EXPECT_EQ(err.str(), "");
}

TEST(OptionSpec, the_key_is_the_longest_name) {
    EXPECT_EQ((OptionSpec{"-o,--output", OptionKind::text, "PATH", "x"}).key(), "output");
    EXPECT_EQ((OptionSpec{"NAME", OptionKind::text, "", "x"}).key(), "NAME");
}

}  // namespace
}  // namespace cairn::cli
