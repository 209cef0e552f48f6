// A codec that errs is told, and not for ever.
#include "codec/comes_back.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/log.hpp"

namespace cairn {
namespace {

TEST(ComesBack, WhatDoesNotIsToldLessAndLessOften) {
    const std::string log = ::testing::TempDir() + "comes-back-" + std::to_string(::getpid());
    ASSERT_TRUE(log_to_file(log, LogLevel::warning).ok());
    const Bytes raw(100, std::byte{1}), other(100, std::byte{2});
    EXPECT_TRUE(comes_back(Status(), raw, raw));
    for (int i = 0; i < 500; ++i) EXPECT_FALSE(comes_back(Status(), other, raw));
    EXPECT_FALSE(comes_back(corrupt("no stream"), raw, raw));
    std::ifstream told(log);
    int lines = 0;
    for (std::string line; std::getline(told, line);) {
        EXPECT_NE(line.find("codec-erred"), std::string::npos) << line;
        ++lines;
    }
    EXPECT_GE(lines, 1);
    EXPECT_LE(lines, 9);
    log_off();
    ::unlink(log.c_str());
}

}  // namespace
}  // namespace cairn
