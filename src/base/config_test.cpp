// Every key of the table is tried: its default, a good value from the file and from the environment, a bad one from
// both.
#include "base/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace cairn {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

struct ConfigTest : testing::Test {
    fs::path directory;
    ConfigSources sources;

    void SetUp() override {
        std::string pattern = testing::TempDir() + "cairn_config_XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        sources.directory = pattern;
        sources.system_file = pattern + "/etc.toml";
    }
    void TearDown() override { fs::remove_all(directory); }
    void write(const std::string& text, const std::string& file = "cairn.toml") {
        fs::create_directories((directory / file).parent_path());
        std::ofstream(directory / file) << text;
    }
    Config good() {
        auto config = load_config(sources);
        EXPECT_TRUE(config.ok()) << config.status().to_string();
        return config.ok() ? *config : Config{};
    }
    std::string bad() {
        const auto config = load_config(sources);
        EXPECT_FALSE(config.ok());
        return config.status().text();
    }
    std::string file_line(int line) { return (directory / "cairn.toml").string() + ":" + std::to_string(line) + ": "; }
};

// ---- every key
// --------------------------------------------------------------------------------------------------------------

struct Sample {
    ConfigValue value;
    std::string text;  // as the environment has it
    std::string toml;
};

// A value of the key that is allowed and is not its default.
Sample good_sample(const ConfigKey& key) {
    const ConfigValue preset = key.get(Settings{});
    switch (key.kind) {
        case ConfigKind::number:
        case ConfigKind::bytes:
        case ConfigKind::duration_ms:
        case ConfigKind::duration_s: {
            auto value = static_cast<std::uint64_t>(key.high);
            if (ConfigValue(value) == preset) value = static_cast<std::uint64_t>(key.low);
            return {value, std::to_string(value), std::to_string(value)};
        }
        case ConfigKind::fraction:
            if (ConfigValue(key.low) == preset) return {key.high, key.format(key.high), key.format(key.high)};
            return {key.low, key.format(key.low), key.format(key.low)};
        case ConfigKind::flag: {
            const bool value = !std::get<bool>(preset);
            return {value, value ? "true" : "false", value ? "true" : "false"};
        }
        case ConfigKind::choice: {
            const std::uint64_t value = key.choices.size() - 1 - std::get<std::uint64_t>(preset);
            const std::string text(key.choices[value]);
            return {value, text, "\"" + text + "\""};
        }
        case ConfigKind::text:
            if (key.full_name() == "network.rates") return {std::string("eth0=1000"), "eth0=1000", "\"eth0=1000\""};
            [[fallthrough]];
        case ConfigKind::path:
            return {std::string("/some/thing"), "/some/thing", "\"/some/thing\""};
    }
    return {};
}

// Texts that the key refuses, as TOML and as the environment has them. A text that may be anything refuses only another
// TOML type.
std::vector<std::pair<std::string, std::string>> bad_samples(const ConfigKey& key) {
    switch (key.kind) {
        case ConfigKind::number:
        case ConfigKind::bytes:
        case ConfigKind::duration_ms:
        case ConfigKind::duration_s: {
            std::vector<std::pair<std::string, std::string>> all = {
                {"\"many\"", "many"}, {"-1", "-1"}, {"true", "true"}};
            const auto over = std::to_string(static_cast<std::uint64_t>(key.high) + 1);
            all.emplace_back(over, over);
            if (key.low > 0) {
                const auto under = std::to_string(static_cast<std::uint64_t>(key.low) - 1);
                all.emplace_back(under, under);
            }
            if (key.power_of_two) all.emplace_back("12288", "12288");
            return all;
        }
        case ConfigKind::fraction:
            return {{key.format(key.high + 0.5), key.format(key.high + 0.5)},
                    {key.format(key.low - 0.0005), key.format(key.low - 0.0005)},
                    {"nan", "nan"},
                    {"\"half\"", "half"},
                    {"-0.5", "-0.5"}};
        case ConfigKind::flag:
            return {{"\"maybe\"", "maybe"}, {"2", "2"}};
        case ConfigKind::choice:
            return {{"\"whatever\"", "whatever"}, {"\"\"", ""}, {"1", "1"}};
        case ConfigKind::text:
        case ConfigKind::path:
            if (key.may_be_empty) return {{"5", "\0"}};
            return {{"\"\"", ""}, {"[\"a\"]", ""}};
    }
    return {};
}

struct EveryKey : ConfigTest, testing::WithParamInterface<std::size_t> {
    const ConfigKey& key = config_keys()[GetParam()];
};

TEST_P(EveryKey, has_a_valid_default_and_a_line_of_documentation) {
    const ConfigValue preset = key.get(Settings{});
    EXPECT_TRUE(key.check(preset).ok()) << key.format(preset);
    EXPECT_EQ(key.parse(key.format(preset)).value(), preset) << "the default is written as it is read";
    EXPECT_FALSE(key.doc.empty());
    EXPECT_TRUE(key.doc.ends_with('.'));
    const Config config = good();
    EXPECT_EQ(config.origins[GetParam()].to_string(), "default");
    EXPECT_THAT(config_markdown(), HasSubstr("| `" + std::string(key.name) + "` | "));
}

TEST_P(EveryKey, is_read_from_the_file) {
    const Sample sample = good_sample(key);
    write("\n[" + std::string(key.section) + "]\n" + std::string(key.name) + " = " + sample.toml + "\n" +
          (key.full_name() == "flush.block_bytes" ? "buffer_bytes = \"4 GiB\"\n" : "") +
          (key.name == "heartbeat_ms" ? "peer_timeout_ms = \"10 min\"\n" : "") +
          (key.name == "persistent_every" ? "persistent_last = 1\n" : ""));
    const Config config = good();
    EXPECT_EQ(key.get(config.settings), sample.value);
    EXPECT_EQ(config.origins[GetParam()].to_string(), (directory / "cairn.toml").string() + ":3");
    EXPECT_NE(key.get(Settings{}), sample.value) << "the sample is the default: the test could not fail";
}

TEST_P(EveryKey, is_read_from_the_environment_which_wins_over_the_file) {
    const Sample sample = good_sample(key);
    const std::string preset = key.format(key.get(Settings{}));
    write(
        "[flush]\nbuffer_bytes = \"4 GiB\"\n[network]\npeer_timeout_ms = \"10 min\"\n[retention]\npersistent_last = "
        "1\n");
    sources.variables = {{key.variable(), sample.text}};
    const Config config = good();
    EXPECT_EQ(key.get(config.settings), sample.value);
    EXPECT_EQ(config.origins[GetParam()].to_string(), key.variable());
}

TEST_P(EveryKey, refuses_a_bad_value_naming_file_line_key_and_what_is_allowed) {
    for (const auto& [toml, text] : bad_samples(key)) {
        write("\n\n[" + std::string(key.section) + "]\n" + std::string(key.name) + " = " + toml + "\n");
        sources.variables.clear();
        const std::string problem = bad();
        EXPECT_THAT(problem, HasSubstr(file_line(4))) << toml;
        EXPECT_THAT(problem, HasSubstr(key.full_name())) << toml;
        EXPECT_THAT(problem, HasSubstr("allowed: " + key.allowed())) << toml;
    }
    fs::remove(directory / "cairn.toml");
    if (key.may_be_empty) return;  // an environment variable can not hold anything that such a key refuses
    for (const auto& [toml, text] : bad_samples(key)) {
        if (key.kind == ConfigKind::flag && text == "1") continue;
        sources.variables = {{key.variable(), text}};
        const std::string problem = bad();
        EXPECT_THAT(problem, HasSubstr(key.variable())) << text;
        EXPECT_THAT(problem, HasSubstr(key.full_name())) << text;
        EXPECT_THAT(problem, HasSubstr("allowed: " + key.allowed())) << text;
    }
}

INSTANTIATE_TEST_SUITE_P(Config, EveryKey, testing::Range<std::size_t>(0, config_keys().size()), [](const auto& one) {
    const ConfigKey& key = config_keys()[one.param];
    return std::string(key.section) + "_" + std::string(key.name);
});

TEST_F(ConfigTest, every_choice_is_read) {
    for (const ConfigKey& key : config_keys())
        for (std::size_t i = 0; i < key.choices.size(); ++i) {
            sources.variables = {{key.variable(), std::string(key.choices[i])}};
            EXPECT_EQ(key.get(good().settings), ConfigValue(std::uint64_t{i})) << key.full_name();
        }
}

TEST_F(ConfigTest, names_are_unique_and_every_section_is_documented) {
    std::set<std::string> names, variables, sections;
    for (const ConfigSection& section : config_sections()) sections.insert(std::string(section.name));
    for (const ConfigKey& key : config_keys()) {
        EXPECT_TRUE(names.insert(key.full_name()).second) << key.full_name();
        EXPECT_TRUE(variables.insert(key.variable()).second) << key.variable();
        EXPECT_TRUE(sections.contains(std::string(key.section))) << key.full_name();
        EXPECT_EQ(find_config_key(key.full_name()), &key);
        if (key.kind == ConfigKind::bytes) {
            EXPECT_TRUE(key.name.ends_with("_bytes") || key.name.ends_with("_bytes_per_s"));
        }
        if (key.kind == ConfigKind::duration_ms) {
            EXPECT_TRUE(key.name.ends_with("_ms"));
        }
        if (key.kind == ConfigKind::duration_s) {
            EXPECT_TRUE(key.name.ends_with("_s"));
        }
    }
    EXPECT_EQ(find_config_key("flush.nothing"), nullptr);
}

// ---- files
// ------------------------------------------------------------------------------------------------------------------

TEST_F(ConfigTest, the_first_file_that_exists_is_read_and_only_that) {
    sources.variables = {{"HOME", (directory / "home").string()}};
    EXPECT_EQ(good().file, "");
    write("[flush]\nfiles = 4\nwriters = 9\n", "etc.toml");
    EXPECT_EQ(good().settings.flush.files, 4u);
    write("[flush]\nfiles = 3\n", "home/.config/cairn/cairn.toml");
    EXPECT_EQ(good().settings.flush.files, 3u);
    EXPECT_EQ(good().settings.flush.writers, 8u) << "files are not merged";
    write("[flush]\nfiles = 2\n");
    EXPECT_EQ(good().settings.flush.files, 2u);
    write("[flush]\nfiles = 1\n", "named.toml");
    sources.variables.emplace_back("CAIRN_CONFIG", "named.toml");
    const Config config = good();
    EXPECT_EQ(config.settings.flush.files, 1u);
    EXPECT_EQ(config.file, (directory / "named.toml").string());
    sources.variables.back().second = "";
    EXPECT_EQ(good().file, "") << "an empty CAIRN_CONFIG means no file";
}

TEST_F(ConfigTest, a_file_that_can_not_be_read_is_an_error) {
    sources.variables = {{"CAIRN_CONFIG", "missing.toml"}};
    auto config = load_config(sources);
    EXPECT_EQ(config.code(), Code::not_found);
    EXPECT_THAT(config.status().text(), HasSubstr((directory / "missing.toml").string()));
    EXPECT_THAT(config.status().text(), HasSubstr("CAIRN_CONFIG"));

    sources.variables.clear();
    fs::create_directory(directory / "cairn.toml");
    EXPECT_THAT(bad(), HasSubstr("cairn.toml: cannot read this file: not a regular file"));
    fs::remove(directory / "cairn.toml");

    fs::create_symlink("nowhere", directory / "cairn.toml");
    EXPECT_EQ(load_config(sources).code(), Code::not_found) << "a broken link is not passed over";
    fs::remove(directory / "cairn.toml");

    ASSERT_EQ(::mkfifo((directory / "cairn.toml").c_str(), 0600), 0);
    EXPECT_THAT(bad(), HasSubstr("not a regular file")) << "and does not hang";
    fs::remove(directory / "cairn.toml");

    write(std::string(2 << 20, '#'));
    EXPECT_THAT(bad(), HasSubstr("larger than 1 MiB"));
}

TEST_F(ConfigTest, a_file_that_may_not_be_read_is_an_error) {
    if (::geteuid() == 0) {
        GTEST_SKIP() << "needs an ordinary user: root reads everything";
    }
    write("[flush]\n");
    fs::permissions(directory / "cairn.toml", fs::perms::none);
    EXPECT_EQ(load_config(sources).code(), Code::permission);
}

TEST_F(ConfigTest, what_is_not_toml_is_named_with_its_line) {
    write("[flush]\nfiles = \n");
    EXPECT_THAT(bad(), HasSubstr(file_line(2) + "not TOML"));
    write("[flush]\nfiles = 1\nfiles = 2\n");
    EXPECT_THAT(bad(), HasSubstr(file_line(3)));
    write(std::string("\xff\xfe\x00[", 4));
    EXPECT_THAT(bad(), HasSubstr("not TOML"));
    write(std::string(100'000, '['));
    EXPECT_THAT(bad(), HasSubstr("not TOML"));
}

TEST_F(ConfigTest, an_unknown_key_or_section_is_an_error_with_a_guess) {
    write("fiels = 2\n");
    EXPECT_THAT(bad(), HasSubstr("did you mean flush.files?"));
    write("[storage]\ndirectories = [\"/a\", \"/b\"]\n");
    EXPECT_THAT(bad(), HasSubstr("storage.directories can not be an array (several go into one text: \"a, b\")"));
    write("speed = 3\n[flush]\nfils = 4\nidle_s = 3\n[flus]\n[[paths]]\n");
    const std::string problem = bad();
    EXPECT_THAT(problem, HasSubstr(file_line(1) + "unknown section or key speed."));
    EXPECT_THAT(problem, HasSubstr("Allowed sections: paths, flush, "));
    EXPECT_THAT(problem, HasSubstr(file_line(3) + "unknown key flush.fils; did you mean flush.files?"));
    EXPECT_THAT(problem, HasSubstr("Allowed in [flush]: layout, files, leaders, slots, writers, "));
    EXPECT_THAT(problem, HasSubstr(file_line(4) + "unknown key flush.idle_s; did you mean daemon.idle_s?"));
    EXPECT_THAT(problem, HasSubstr(file_line(5) + "unknown section or key flus; did you mean [flush]?"));
    EXPECT_THAT(problem, HasSubstr(file_line(6) + "paths is a section"));
}

// ---- environment
// ------------------------------------------------------------------------------------------------------------

TEST_F(ConfigTest, unknown_variables_of_a_known_section_are_errors_and_others_are_not_ours) {
    sources.variables = {
        {"CAIRN_NODE", "n1"}, {"CAIRN_JOB", "7"}, {"CAIRN_SOMETHING_ELSE", "x"}, {"FLUSH_FILES", "many"}};
    EXPECT_EQ(good().settings.flush.files, 0u);
    sources.variables = {{"CAIRN_FLUSH_FILEZ", "4"}};
    EXPECT_THAT(bad(), HasSubstr("CAIRN_FLUSH_FILEZ: no such setting; did you mean CAIRN_FLUSH_FILES?"));
    sources.variables = {{"CAIRN_FLUSH_ABSOLUTELY_EVERYTHING", "4"}};
    EXPECT_THAT(bad(), HasSubstr("CAIRN_FLUSH_ABSOLUTELY_EVERYTHING: no such setting."));
    sources.variables = {{"CAIRN_FLUHS_FILES", "4"}};
    EXPECT_THAT(bad(), HasSubstr("did you mean CAIRN_FLUSH_FILES?"));
}

TEST_F(ConfigTest, sizes_and_times_have_units) {
    write(
        "[flush]\nbuffer_bytes = \"128 MiB\"\n[daemon]\nidle_s = \"5 min\"\nstart_wait_ms = 250\n[capture]\nwait_ms = "
        "\"1.5 s\"\n");
    const Settings s = good().settings;
    EXPECT_EQ(s.flush.buffer_bytes, 128u << 20);
    EXPECT_EQ(s.daemon.idle_s, 300u);
    EXPECT_EQ(s.daemon.start_wait_ms, 250u);
    EXPECT_EQ(s.capture.wait_ms, 1500u);
    write("[daemon]\nidle_s = \"1500 ms\"\n");
    EXPECT_THAT(bad(), HasSubstr("not a whole number of seconds"));
}

// ---- several keys together
// --------------------------------------------------------------------------------------------------

TEST_F(ConfigTest, keys_that_contradict_each_other_are_named_with_their_places) {
    write("[flush]\nblock_bytes = \"64 MiB\"\nbuffer_bytes = \"1 MiB\"\n");
    EXPECT_THAT(bad(),
                HasSubstr("flush.buffer_bytes (" + (directory / "cairn.toml").string() + ":3) must be a multiple of"));
    write("[network]\npeer_timeout_ms = 900\n");
    EXPECT_THAT(bad(), HasSubstr("must be more than twice network.heartbeat_ms (default)"));
    write("[capture]\nmode = \"through\"\nchecksums = \"capture\"\n");
    EXPECT_THAT(bad(), HasSubstr("capture.checksums (" + (directory / "cairn.toml").string() + ":3) must be daemon with capture.mode"));
    write("[retention]\npersistent_every = 10\n");
    EXPECT_THAT(bad(), HasSubstr("retention.persistent_every"));
    write("[placement]\ndriver = \"none\"\ntargets = \"a\"\n");
    EXPECT_THAT(bad(), HasSubstr("placement.targets (" + (directory / "cairn.toml").string() + ":3) has no effect"));
    write("");
    sources.variables = {{"CAIRN_RETENTION_SCRATCH_LAST", "0"}, {"CAIRN_RETENTION_SCRATCH_EVERY", "2"}};
    EXPECT_THAT(bad(), HasSubstr("retention.scratch_every (CAIRN_RETENTION_SCRATCH_EVERY) has no effect"));
}

TEST_F(ConfigTest, io_nodes_are_none_all_or_named) {
    for (const char* text : {",", "a,,b", "io1, io1", " "}) {
        write("[flush]\nio_nodes = \"" + std::string(text) + "\"\n");
        EXPECT_THAT(bad(), HasSubstr("flush.io_nodes (" + (directory / "cairn.toml").string() + ":2): "));
        EXPECT_THAT(bad(), HasSubstr("allowed: none, all, or names of I/O nodes"));
    }
}

TEST_F(ConfigTest, a_list_has_each_name_once) {
    using Names = std::vector<std::string>;
    EXPECT_EQ(parse_list("").value(), Names());
    EXPECT_EQ(parse_list("  ").value(), Names());
    EXPECT_EQ(parse_list("a").value(), Names({"a"}));
    EXPECT_EQ(parse_list(" b,a ,\tc d").value(), Names({"b", "a", "c d"}));
    for (const char* text : {",", "a,", ",a", "a,,b", "a, ,b", "a,b,a"}) {
        EXPECT_EQ(parse_list(text).code(), Code::invalid_argument) << text;
        write("[placement]\ntargets = \"" + std::string(text) + "\"\n");
        EXPECT_THAT(bad(), HasSubstr("placement.targets (" + (directory / "cairn.toml").string() + ":2): "));
        EXPECT_THAT(bad(), HasSubstr("allowed: names of storage targets, each once"));
    }
}

TEST_F(ConfigTest, rates_name_interfaces) {
    using Rates = std::map<std::string, std::uint32_t>;
    EXPECT_EQ(parse_rates("").value(), Rates());
    EXPECT_EQ(parse_rates("eth0=1000, ib0=100000").value(), (Rates{{"eth0", 1000}, {"ib0", 100'000}}));
    for (const char* text : {"eth0", "=1000", "eth0=", "eth0=0", "eth0=-1", "eth0=1x", "eth0=1 000", "eth0=999999999", "eth0=99999999999999", "eth0=1,eth0=2", "eth0=1,"}) {
        EXPECT_EQ(parse_rates(text).code(), Code::invalid_argument) << text;
        write("[network]\nrates = \"" + std::string(text) + "\"\n");
        EXPECT_THAT(bad(), HasSubstr("network.rates (" + (directory / "cairn.toml").string() + ":2): "));
    }
}

TEST_F(ConfigTest, relative_paths_start_at_the_working_directory) {
    EXPECT_EQ(good().settings.paths.persistent, (directory / "checkpoints").string());
    sources.variables = {{"CAIRN_PATHS_SCRATCH", "a/../b"}, {"CAIRN_DAEMON_PROGRAM", ""}};
    EXPECT_EQ(good().settings.paths.scratch, (directory / "b").string());
    EXPECT_EQ(good().settings.daemon.program, "");
}

TEST_F(ConfigTest, two_spellings_of_a_path_are_one) {
    for (const char* spelling : {"/a/b", "/a/b/", "//a//b", "/a/./b/.", "/a/c/../b", "/../a/b//"}) {
        sources.variables = {{"CAIRN_PATHS_SCRATCH", spelling}};
        EXPECT_EQ(good().settings.paths.scratch, "/a/b") << spelling;
    }
    for (const char* spelling : {"x", "x/", "./x", "x//.", "y/../x"}) {
        sources.variables = {{"CAIRN_PATHS_PERSISTENT", spelling}};
        EXPECT_EQ(good().settings.paths.persistent, (directory / "x").string()) << spelling;
    }
    for (const char* spelling : {".", "./", "x/.."}) {
        sources.variables = {{"CAIRN_PATHS_PERSISTENT", spelling}};
        EXPECT_EQ(good().settings.paths.persistent, directory.string()) << spelling;
    }
    EXPECT_EQ(absolute_path("/anywhere", "/"), "/");
    EXPECT_EQ(absolute_path("/", ".."), "/");
}

TEST(Retention, keeps_the_last_and_every_mth) {
    EXPECT_TRUE(retention_keeps(0, 0, 7, 1000));
    EXPECT_TRUE(retention_keeps(2, 0, 7, 1));
    EXPECT_FALSE(retention_keeps(2, 0, 7, 2));
    EXPECT_TRUE(retention_keeps(2, 10, 20, 5));
    EXPECT_FALSE(retention_keeps(2, 10, 21, 5));
}

}  // namespace
}  // namespace cairn
