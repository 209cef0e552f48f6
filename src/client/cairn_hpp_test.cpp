// The C++ interface, call by call, over a real daemon: what it hands back is what the C interface said. Includes no
// room's types: they share the namespace with the interface's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <complex>
#include <cstring>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include "cairn/cairn.hpp"
#include "client/testing.hpp"

namespace {

using cairn::Level;
using testing::HasSubstr;
using namespace std::chrono_literals;

class Interface : public testing::Test {
  protected:
    void SetUp() override {
        for (const char* each : {"scratch", "persistent"}) std::filesystem::create_directory(place_.file(each));
    }
    // The lock names the daemon that this test's session started.
    void TearDown() override {
        for (const auto& each : std::filesystem::directory_iterator(place_.file("scratch"))) {
            pid_t pid = 0;
            std::ifstream(each.path() / "lock") >> pid;
            if (pid <= 0) continue;
            ::kill(pid, SIGKILL);
            while (::kill(pid, 0) == 0) std::this_thread::sleep_for(1ms);
        }
    }
    cairn::Result<cairn::Session> open() {
        return cairn::Session::open(
            {.name = "plain",
             .node = "n0",
             .overrides = {"paths.scratch=" + place_.file("scratch"), "paths.persistent=" + place_.file("persistent"),
                           "flush.block_bytes=65536", "daemon.program=" CAIRND_PROGRAM, "daemon.idle_s=30", "daemon.restart=false"}});
    }
    cairn::TemporaryPlace place_;
};

TEST_F(Interface, HandsBackWhatEachCallFound) {
    auto opened = open();
    ASSERT_TRUE(opened) << opened.status().text();
    cairn::Session session = std::move(*opened);
    EXPECT_EQ(session.newest_version().code(), CAIRN_NOT_FOUND);
    EXPECT_EQ(session.restore().code(), CAIRN_NOT_FOUND);

    std::vector<double> u(600);
    std::vector<std::complex<float>> z(7);
    std::int64_t step = 0;
    ASSERT_TRUE(session.protect("u", std::span(u), {20, 30}));
    ASSERT_TRUE(session.protect("z", z));
    ASSERT_TRUE(session.protect_value("step", step));
    for (step = 1; step <= 3; ++step) {
        std::iota(u.begin(), u.end(), static_cast<double>(step));
        ASSERT_TRUE(session.checkpoint(static_cast<cairn::Version>(step)));
    }
    EXPECT_EQ(session.wait(9, Level::committed, 0ms).code(), CAIRN_NOT_FOUND);
    const auto committed = session.wait(3, Level::committed, 60s);
    ASSERT_TRUE(committed) << committed.text();
    EXPECT_TRUE(session.test(3, Level::committed));

    const auto newest = session.newest_version();
    ASSERT_TRUE(newest);
    EXPECT_EQ(*newest, 3u);
    const auto older = session.newest_not_above(2);
    ASSERT_TRUE(older);
    EXPECT_EQ(*older, 2u);
    const auto bytes = session.region_bytes(3, "u");
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*bytes, 600 * sizeof(double));
    const auto regions = session.regions(cairn::newest);
    ASSERT_TRUE(regions);
    ASSERT_EQ(regions->size(), 3u);
    EXPECT_STREQ((*regions)[0].name, "u");
    EXPECT_EQ((*regions)[0].shape[1], 30u);
    EXPECT_EQ((*regions)[1].type, CAIRN_C64);
    const auto all = session.list();
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 3u);
    EXPECT_EQ(all->back().version, 3u);

    const auto one = session.restore_regions(1, {"u"});
    ASSERT_TRUE(one) << one.status().text();
    EXPECT_EQ(*one, 1u);
    EXPECT_EQ(u[599], 600.0);
    EXPECT_EQ(step, 4);
    const auto whole = session.restore(1);
    ASSERT_TRUE(whole) << whole.status().text();
    EXPECT_EQ(*whole, 1u);
    EXPECT_EQ(step, 1);
}

TEST_F(Interface, CallbacksMoveWithTheirSessionAndMayThrow) {
    auto opened = open();
    ASSERT_TRUE(opened) << opened.status().text();
    cairn::Session session = std::move(*opened);
    std::string text = "before";
    bool fails = false;
    ASSERT_TRUE(session.protect_callbacks("text", {.size = [&] { return text.size(); },
                                                   .write =
                                                       [&](std::span<std::byte> into) {
                                                           if (fails) throw std::runtime_error("no");
                                                           std::memcpy(into.data(), text.data(), into.size());
                                                           return true;
                                                       },
                                                   .read =
                                                       [&](std::span<const std::byte> from) {
                                                           text.assign(reinterpret_cast<const char*>(from.data()),
                                                                       from.size());
                                                           return true;
                                                       }}));
    EXPECT_TRUE(session.describe("text", 0, CAIRN_I16 | CAIRN_BIG_ENDIAN, {CAIRN_TO_END, 3}, "Grid/text"));
    EXPECT_EQ(session.describe("text", 6, CAIRN_U8, {1}).code(), CAIRN_INVALID_ARGUMENT);
    EXPECT_EQ(session.describe("none", 0, CAIRN_U8, {1}).code(), CAIRN_NOT_FOUND);
    cairn::Session moved = std::move(session);
    ASSERT_TRUE(moved.checkpoint(1));
    fails = true;
    const auto refused = moved.checkpoint(2);
    EXPECT_EQ(refused.code(), CAIRN_CANCELLED);
    EXPECT_THAT(refused.text(), HasSubstr("text"));
    text = "after";
    const auto restored = moved.restore();
    ASSERT_TRUE(restored) << restored.status().text();
    EXPECT_EQ(*restored, 1u);
    EXPECT_EQ(text, "before");

    EXPECT_TRUE(moved.close());
    EXPECT_EQ(moved.checkpoint(3).code(), CAIRN_INVALID_ARGUMENT);
}

TEST_F(Interface, SaysWhyItDidNotOpenOrProtect) {
    EXPECT_EQ(cairn::Session::open({.name = "a/b"}).code(), CAIRN_INVALID_ARGUMENT);
    auto session = open();
    ASSERT_TRUE(session) << session.status().text();
    std::vector<float> u(6);
    const auto wrong = session->protect("u", std::span(u), {2, 4});
    EXPECT_EQ(wrong.code(), CAIRN_INVALID_ARGUMENT);
    EXPECT_THAT(wrong.text(), HasSubstr("8 elements, its memory 6"));
    EXPECT_TRUE(session->protect("u", std::span(u), {2, 3}));
    EXPECT_EQ(session->protect("u", std::span(u)).code(), CAIRN_ALREADY_EXISTS);
    EXPECT_TRUE(session->unprotect("u"));
    std::array<double, 3> a{};
    std::span<double> s(a);
    EXPECT_TRUE(session->protect("array", a, {3, 1}));
    EXPECT_TRUE(session->protect("span", s));
    EXPECT_EQ(session->unprotect("u").code(), CAIRN_NOT_FOUND);
}

}  // namespace
