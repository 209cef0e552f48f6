// A room of real daemons for tests of the C interface, and what their processes capture.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "cairn/cairn.h"
#include "client/connection.hpp"
#include "client/testing.hpp"

namespace cairn {

inline std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A room of virtual nodes with a scratch each and one persistent directory. What it starts, it stops.
class Room : public testing::Test {
  protected:
    Room() = default;
    explicit Room(const std::string& below) : place_(below) {}
    void SetUp() override {
        persistent_ = place_.file("persistent");
        std::filesystem::create_directory(persistent_);
        ::setenv("CAIRN_DAEMON_PROGRAM", CAIRND_PROGRAM, 1);
        ::setenv("CAIRN_DAEMON_IDLE_S", "30", 1);
        ::setenv("CAIRN_DAEMON_RESTART", "false", 1);  // what is killed here stays dead
    }
    void TearDown() override {
        for (const std::string node : {"n0", "n1", "n2", "n3"}) stop(node);
    }
    ScratchLayout scratch_of(const std::string& node) const {
        return ScratchLayout::of(place_.file(node), ::geteuid(), node, persistent_);
    }
    // 0 when none ran.
    std::uint64_t daemon_pid(const std::string& node) {
        auto connection = Connection::connect(scratch_of(node), Deadline::in_ms(1000));
        if (!connection.ok()) return 0;
        const auto welcome = (*connection)->hello(false, Deadline::in_ms(5000));
        return welcome.ok() ? welcome->pid : 0;
    }
    void stop(const std::string& node) {
        if (const auto pid = daemon_pid(node)) {
            ::kill(static_cast<pid_t>(pid), SIGKILL);
            while (::kill(static_cast<pid_t>(pid), 0) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    void wipe(const std::string& node) { std::filesystem::remove_all(place_.file(node)); }

    // Opens as one of several ranks; fails the test's process with a text on stderr.
    cairn_session* open(const std::string& node = "n0", std::uint32_t rank = 0, std::uint32_t ranks = 1,
                        std::vector<std::string> more = {}) {
        cairn_session* session = nullptr;
        const int code = try_open(&session, node, rank, ranks, std::move(more));
        if (code != CAIRN_OK) std::fprintf(stderr, "rank %u: %s\n", rank, cairn_last_error(nullptr));
        return session;
    }
    int try_open(cairn_session** session, const std::string& node = "n0", std::uint32_t rank = 0,
                 std::uint32_t ranks = 1, std::vector<std::string> more = {}) {
        const std::string scratch = place_.file(node);
        std::filesystem::create_directories(scratch);
        more.push_back("paths.scratch=" + scratch);
        more.push_back("paths.persistent=" + persistent_);
        more.push_back("flush.block_bytes=65536");
        more.insert(more.begin(), "deadlines.open_ms=20000");  // what the test asks for comes later, and wins
        std::vector<const char*> overrides;
        for (const std::string& each : more) overrides.push_back(each.c_str());
        overrides.push_back(nullptr);
        cairn_options options = CAIRN_OPTIONS;
        options.name = name_.c_str();
        options.rank = rank;
        options.ranks = ranks;
        options.job = "job";
        options.node = node.c_str();
        options.overrides = overrides.data();
        return cairn_open(&options, session);
    }

    TemporaryPlace place_;
    std::string persistent_;
    std::string name_ = "series";
};

// A field whose every element depends on rank, version and place.
struct Field {
    std::vector<std::uint64_t> values;
    explicit Field(std::size_t count) : values(count) {}
    void fill(std::uint64_t rank, std::uint64_t version) {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = (i + 1) * 0x9E3779B97F4A7C15ull ^ (rank << 48) ^ (version << 32);
    }
    bool holds(std::uint64_t rank, std::uint64_t version) const {
        Field expected(values.size());
        expected.fill(rank, version);
        return values == expected.values;
    }
    int protect(cairn_session* session, const char* name = "field") {
        const std::uint64_t shape[] = {values.size()};
        return cairn_protect(session, name, values.data(), CAIRN_U64, 1, shape);
    }
};

#define RETURN_UNLESS(expression)                                                                        \
    do {                                                                                                 \
        if (!(expression)) {                                                                             \
            std::fprintf(stderr, "line %d: %s: %s\n", __LINE__, #expression, cairn_last_error(session)); \
            return __LINE__ % 120 + 1;                                                                   \
        }                                                                                                \
    } while (false)

}  // namespace cairn
