#include "daemon/manual.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstdio>

namespace cairn {
namespace {

using testing::HasSubstr;

std::string printed(const std::string& option) {
    std::FILE* pipe = ::popen(("'" CAIRND_PROGRAM "' " + option + " 2>&1").c_str(), "r");
    std::string text;
    std::array<char, 4096> piece;
    while (pipe) {
        const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe);
        if (got == 0) break;
        text.append(piece.data(), got);
    }
    EXPECT_EQ(pipe ? ::pclose(pipe) : -1, 0) << option << ": " << text;
    return text;
}

TEST(Manual, HelpAndManualPageSayTheSame) {
    EXPECT_EQ(printed("--help"), daemon_help());
    EXPECT_EQ(printed("--man"), daemon_manual_page());
    EXPECT_EQ(printed("--version"), "cairnd " CAIRN_VERSION "\n");
    for (const std::string option : {"--help", "--man", "--version"})
        EXPECT_NE(std::system(("'" CAIRND_PROGRAM "' " + option + " >/dev/full 2>/dev/null").c_str()), 0) << option;
    EXPECT_THAT(daemon_manual_page(), HasSubstr(".TH CAIRND 8 "));
    for (const char* option :
         {"--foreground", "--node NAME", "--scratch DIRECTORY", "--persistent DIRECTORY", "--help"})
        EXPECT_THAT(daemon_help(), HasSubstr(option));
    for (const char* option : {"\\-\\-foreground", "\\-\\-node", "\\-\\-scratch", "\\-\\-persistent"})
        EXPECT_THAT(daemon_manual_page(), HasSubstr(std::string("\\fB") + option + "\\fR"));
    for (int exit = 0; exit <= 4; ++exit) {
        EXPECT_THAT(daemon_help(), HasSubstr("\n  " + std::to_string(exit) + "  "));
        EXPECT_THAT(daemon_manual_page(), HasSubstr(".TP\n" + std::to_string(exit) + "\n"));
    }
}

}  // namespace
}  // namespace cairn
