// Rules: what they say of files of any length, and what is told of one that is wrong.
#include "describe/rules.hpp"

#include <gtest/gtest.h>

#include "describe/file.hpp"

namespace cairn {
namespace {

FileRules rules_of(const std::string& text) {
    Result<FileRules> rules = parse_file_rules(text, "rules.toml");
    EXPECT_TRUE(rules.ok()) << rules.status().to_string();
    return rules.ok() ? std::move(rules).value() : FileRules();
}
std::string problem_of(const std::string& text) {
    const Result<FileRules> rules = parse_file_rules(text, "rules.toml");
    EXPECT_EQ(rules.code(), Code::invalid_argument) << text;
    return rules.status().text();
}

TEST(Rules, SayAllThatAnExtentDoes) {
    const FileRules rules = rules_of("[[rule]]\nfiles = '*.dat'\ntype = '>f4'\noffset = 64\nshape = [-1, 3]\nname = 'x'\n[[rule]]\nfiles = 'b*'\ntype = 'u1'\n");
    EXPECT_EQ(rules, (FileRules{{"*.dat", 64, DataType::f32, true, {-1, 3}, "x"}, {"b*", 0, DataType::u8, false, {-1}, ""}}));
    EXPECT_EQ(describe_by_rules(rules, "a.dat", 64 + 5 * 12 + 7), (std::vector<Extent>{{"x", DataType::f32, true, {5, 3}, 64, 60}}));
    EXPECT_EQ(describe_by_rules(rules, "b", 9), (std::vector<Extent>{{"", DataType::u8, false, {9}, 0, 9}}));
    EXPECT_EQ(describe_by_rules(rules, "b.dat", 100), (std::vector<Extent>{{"", DataType::u8, false, {100}, 0, 100}})) << "the first that lies there";
    EXPECT_EQ(describe_by_rules(rules_of("[[rule]]\nfiles = '*'\ntype = '|u1'\n"), "a", 5), (std::vector<Extent>{{"", DataType::u8, false, {5}, 0, 5}})) << "as NumPy writes it";
    EXPECT_TRUE(rules_of("").empty());
}

TEST(Rules, DescribeAsMuchOfAShortFileAsThereIs) {
    const FileRules fixed = rules_of("[[rule]]\nfiles = '*'\ntype = '<f8'\noffset = 8\nshape = [4, 2]\n"), last = rules_of("[[rule]]\nfiles = '*'\ntype = '<i2'\nshape = [3, -1]\n");
    EXPECT_EQ(describe_by_rules(fixed, "a", 1000).at(0).shape, (std::vector<std::uint64_t>{4, 2}));
    EXPECT_EQ(describe_by_rules(fixed, "a", 8 + 3 * 16 + 15), (std::vector<Extent>{{"", DataType::f64, false, {3, 2}, 8, 48}}));
    for (const std::uint64_t bytes : {0, 7, 8, 23}) EXPECT_TRUE(describe_by_rules(fixed, "a", bytes).empty()) << bytes;
    EXPECT_EQ(describe_by_rules(last, "a", 3 * 10 + 5), (std::vector<Extent>{{"", DataType::i16, false, {3, 5}, 0, 30}}));
    EXPECT_TRUE(describe_by_rules(last, "a", 5).empty());
}

TEST(Rules, SpeakOfFilesByTheLastPartOfTheirNameOrByAllOfIt) {
    const auto is_meant = [](const std::string& files, const std::string& name) { return !describe_by_rules({{files, 0, DataType::u8, false, {-1}, ""}}, name, 1).empty(); };
    EXPECT_TRUE(is_meant("r.?", "out/r.1"));
    EXPECT_TRUE(is_meant("out/*", "out/r.1"));
    EXPECT_FALSE(is_meant("out/*", "in/out/r.1"));
    EXPECT_FALSE(is_meant("*", ".hidden")) << "as a shell has it";
    EXPECT_FALSE(is_meant("r.[2-9]", "r.1"));
}

// They go before what a format says, and leave to it what they do not fit.
TEST(Rules, GoBeforeFormats) {
    const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n";
    const Bytes npy = to_bytes(std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + std::string(16, 'x'));
    const auto described = [&](const std::string& text) {
        const Result<Description> found = describe_file({"a.npy", npy, "/scratch/slot", 0}, {nullptr, std::make_shared<const FileRules>(rules_of(text))});
        EXPECT_TRUE(found.ok()) << found.status().to_string();
        return found.ok() ? std::string(found->format) : "";
    };
    EXPECT_EQ(described("[[rule]]\nfiles = '*.npy'\ntype = '<f4'\n"), "rule");
    EXPECT_EQ(described("[[rule]]\nfiles = '*.dat'\ntype = '<f4'\n"), "npy");
    EXPECT_EQ(described("[[rule]]\nfiles = '*.npy'\ntype = '<f4'\noffset = 1000\n"), "npy");
    EXPECT_EQ(describe_file({"a", to_bytes("no numbers"), "", 0}, {}).code(), Code::unsupported);
}

TEST(Rules, OneThatIsWrongIsNamedWithWhatIsAllowed) {
    const std::string good = "[[rule]]\nfiles = '*'\ntype = '<f8'\n";
    struct {
        std::string text, says;
    } const bad[] = {
        {good + good + "offset = -1\n", "rules.toml:4: rule 2: offset is no whole number of bytes"},
        {"[[rule]]\ntype = '<f8'\n", "rule 1: it lacks files"},
        {"[[rule]]\nfiles = '*'\n", "it lacks type; allowed: i1"},
        {"[[rule]]\nfiles = '*'\ntype = '|f8'\n", "write \"<f8\" (little endian) or \">f8\""},
        {"[[rule]]\nfiles = '*'\ntype = 'f8'\n", "write \"<f8\" (little endian) or \">f8\""},
        {"[[rule]]\nfiles = '*'\ntype = '<f16'\n", "type = \"<f16\" is none; allowed: i1"},
        {"[[rule]]\nfiles = '*'\ntype = 8\n", "type is no text"},
        {"[[rule]]\nfiles = '" + std::string(300, '*') + "'\ntype = '<f8'\n", "files is no text of at most 255 bytes"},
        {good + "shapes = [1]\n", "unknown key shapes; allowed: files, offset"},
        {good + "shape = 3\n", "at most once -1"},
        {good + "shape = []\n", "at most once -1"},
        {good + "shape = [-1, -1]\n", "at most once -1"},
        {good + "shape = [0]\n", "at most once -1"},
        {good + "shape = [-2]\n", "at most once -1"},
        {good + "shape = [1.5]\n", "at most once -1"},
        {good + "shape = [-1, 4294967296, 4294967296]\n", "more bytes than a file can have"},
        {"[rule]\nfiles = '*'\n", "rules.toml:1: no rule; allowed: [[rule]]"},
        {"rules = 1\n", "no rule; allowed: [[rule]]"},
        {"[[rule\n", "rules.toml:1: "},
    };
    for (const auto& [text, says] : bad) EXPECT_NE(problem_of(text).find(says), std::string::npos) << problem_of(text) << "\nof\n" << text;
    std::string many;
    for (std::size_t i = 0; i <= file_rules_max; ++i) many += good;
    EXPECT_NE(problem_of(many).find("more than 1000 rules"), std::string::npos);
}

}  // namespace
}  // namespace cairn
