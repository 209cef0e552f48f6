// The C interface over real daemons: processes are killed for real, and what comes back is compared byte for byte.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>

#include "cairn/cairn.h"
#include "client/session_testing.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

TEST_F(Room, OneProcessComesBackBitForBit) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(100'003);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    std::uint64_t version = 0;
    EXPECT_EQ(cairn_newest(session, &version), CAIRN_NOT_FOUND);
    EXPECT_EQ(cairn_restore(session, CAIRN_NEWEST, &version), CAIRN_NOT_FOUND);
    for (std::uint64_t v = 1; v <= 4; ++v) {
        field.fill(0, v);
        ASSERT_EQ(cairn_checkpoint(session, v), CAIRN_OK) << cairn_last_error(session);
        ASSERT_EQ(cairn_wait(session, v, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
        EXPECT_EQ(cairn_test(session, v, CAIRN_COMMITTED), CAIRN_OK);
    }
    ASSERT_EQ(cairn_newest(session, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(version, 4u);
    ASSERT_EQ(cairn_newest_not_above(session, 2, &version), CAIRN_OK);
    EXPECT_EQ(version, 2u);
    cairn_version_info all[8];
    std::size_t count = 0;
    ASSERT_EQ(cairn_list(session, all, 8, &count), CAIRN_OK);
    ASSERT_EQ(count, 4u);
    EXPECT_EQ(all[0].version, 1u);
    EXPECT_EQ(all[3].level, CAIRN_COMMITTED);
    EXPECT_EQ(all[3].ranks, 1u);
    EXPECT_GE(all[3].bytes, 100'003u * 8);
    EXPECT_LT(all[3].bytes, 100'003u * 8 + 4096) << "what tells its regions is in it";
    std::uint64_t bytes = 0;
    ASSERT_EQ(cairn_region_bytes(session, 3, "field", &bytes), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(bytes, 100'003u * 8);
    EXPECT_EQ(cairn_region_bytes(session, 3, "feild", &bytes), CAIRN_NOT_FOUND);
    const char* const error = cairn_last_error(session);  // of both texts in one printf, each stays what it is
    EXPECT_STREQ(cairn_warnings(session), "");
    EXPECT_THAT(error, HasSubstr("rank 0 has no region \"feild\""));
    ASSERT_EQ(cairn_restore(session, 2, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_TRUE(field.holds(0, 2));
    // Going back makes another future: version 3 again.
    field.fill(7, 3);
    ASSERT_EQ(cairn_checkpoint(session, 3), CAIRN_OK) << cairn_last_error(session);
    ASSERT_EQ(cairn_wait(session, 3, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    field.fill(0, 0);
    ASSERT_EQ(cairn_restore(session, CAIRN_NEWEST, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(version, 3u);
    EXPECT_TRUE(field.holds(7, 3));
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// What one rank of a job does: goes on from what there is, checks it, takes `versions` more, and is killed or not.
int run_rank(cairn_session* session, std::uint32_t rank, std::uint64_t expected, std::uint64_t versions, bool dies) {
    RETURN_UNLESS(session != nullptr);
    Field field(50'000 + rank * 7'001);
    RETURN_UNLESS(field.protect(session) == CAIRN_OK);
    std::uint64_t at = 0;
    const int restored = cairn_restore(session, CAIRN_NEWEST, &at);
    RETURN_UNLESS(restored == (expected == 0 ? CAIRN_NOT_FOUND : CAIRN_OK));
    RETURN_UNLESS(at == expected);
    RETURN_UNLESS(expected == 0 || field.holds(rank, expected));
    for (std::uint64_t v = at + 1; v <= at + versions; ++v) {
        field.fill(rank, v);
        RETURN_UNLESS(cairn_checkpoint(session, v) == CAIRN_OK);
    }
    RETURN_UNLESS(versions == 0 || cairn_wait(session, at + versions, CAIRN_SEALED, 30'000) == CAIRN_OK);
    if (dies) ::kill(::getpid(), SIGKILL);
    RETURN_UNLESS(versions == 0 || cairn_wait(session, at + versions, CAIRN_COMMITTED, 30'000) == CAIRN_OK);
    return cairn_close(session) == CAIRN_OK ? 0 : 1;
}

TEST_F(Room, FourRanksOnTwoNodesAreKilledAndGoOn) {
    const auto job = [&](std::uint64_t expected, std::uint64_t versions, bool dies, const char* const(&nodes)[4]) {
        std::vector<std::unique_ptr<Child>> ranks;
        for (std::uint32_t rank = 0; rank < 4; ++rank)
            ranks.push_back(std::make_unique<Child>(
                [&, rank] { return run_rank(open(nodes[rank], rank, 4), rank, expected, versions, dies); }));
        for (auto& rank : ranks) ASSERT_EQ(rank->wait(), dies ? 128 + SIGKILL : 0);
    };
    ASSERT_NO_FATAL_FAILURE(job(0, 3, true, {"n0", "n0", "n1", "n1"}));  // sealed, perhaps not yet committed
    ASSERT_NO_FATAL_FAILURE(job(3, 2, false, {"n0", "n0", "n1", "n1"}));
    for (const char* node : {"n0", "n1"}) {
        stop(node);
        wipe(node);
    }
    ASSERT_NO_FATAL_FAILURE(
        job(5, 1, false, {"n2", "n0", "n3", "n2"}));  // other nodes, another number of them, nothing in scratch
    std::size_t parts = 0;
    for (const auto& file : std::filesystem::directory_iterator(persistent_ + "/series/6"))
        parts += file.path().filename().string().starts_with("part-");
    EXPECT_EQ(parts, 3u) << "one file a node by default";
}

TEST_F(Room, RanksThatWereKilledAreFlushedByTheirDaemon) {
    ASSERT_EQ(Child([&] { return run_rank(open(), 0, 0, 2, true); }).wait(), 128 + SIGKILL);
    const auto committed = [&] {
        for (const auto& file : std::filesystem::directory_iterator(persistent_ + "/series/2"))
            if (file.path().filename().string().starts_with("manifest.")) return true;
        return false;
    };
    for (int waited_ms = 0; waited_ms < 30'000; waited_ms += 10) {
        std::error_code error;
        if (std::filesystem::exists(persistent_ + "/series/2", error) && committed()) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "not committed";
}

TEST_F(Room, ADeadDaemonIsStartedAgainAndNothingIsLost) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(20'000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    field.fill(0, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK);
    const auto first = daemon_pid("n0");
    stop("n0");
    field.fill(0, 2);
    ASSERT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_wait(session, 2, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_NE(daemon_pid("n0"), first);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// Text through callbacks, a file that the application wrote, and plain memory.
struct Mixed {
    std::string text;
    std::string path;
    Field field{1000};
    int refuse = 0;

    int protect(cairn_session* session) {
        const auto size = [](void* c, std::uint64_t* bytes) {
            *bytes = static_cast<Mixed*>(c)->text.size();
            return 0;
        };
        const auto write = [](void* c, void* into, std::uint64_t bytes) {
            std::memcpy(into, static_cast<Mixed*>(c)->text.data(), bytes);
            return 0;
        };
        const auto read = [](void* c, const void* from, std::uint64_t bytes) {
            auto& self = *static_cast<Mixed*>(c);
            if (self.refuse == 0) self.text.assign(static_cast<const char*>(from), bytes);
            return self.refuse;
        };
        if (const int code = cairn_protect_callbacks(session, "text", size, write, read, this)) return code;
        if (const int code = cairn_route_file(session, "restart/file", path.c_str())) return code;
        return field.protect(session);
    }
};

TEST_F(Room, CallbacksFilesAndNamedRegions) {
    Mixed mixed;
    mixed.path = place_.file("restart.bin");
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(mixed.protect(session), CAIRN_OK) << cairn_last_error(session);
    mixed.text = "once upon a time";
    std::ofstream(mixed.path) << std::string(200'000, 'f');
    ::chmod(mixed.path.c_str(), 0600);
    mixed.field.fill(0, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    mixed.text = "";  // zero bytes are fine
    std::ofstream(mixed.path) << "";
    mixed.field.fill(0, 2);
    ASSERT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    ASSERT_EQ(cairn_wait(session, 2, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);

    mixed.text = "overwritten";
    std::ofstream(mixed.path) << "overwritten";
    const char* text_only[] = {"text"};
    std::uint64_t version = 0;
    ASSERT_EQ(cairn_restore_regions(session, 1, text_only, 1, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(mixed.text, "once upon a time");
    EXPECT_EQ(read_text(mixed.path), "overwritten");
    EXPECT_TRUE(mixed.field.holds(0, 2));

    mixed.refuse = 5;
    EXPECT_EQ(cairn_restore(session, 1, nullptr), CAIRN_CANCELLED);
    EXPECT_THAT(cairn_last_error(session), HasSubstr("refused with 5"));
    mixed.refuse = 0;
    ASSERT_EQ(cairn_restore(session, 1, nullptr), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(read_text(mixed.path), std::string(200'000, 'f'));
    EXPECT_TRUE(mixed.field.holds(0, 1));
    cairn_region_info regions[4];
    std::size_t count = 0;
    ASSERT_EQ(cairn_regions(session, CAIRN_NEWEST, regions, 4, &count), CAIRN_OK) << cairn_last_error(session);
    ASSERT_EQ(count, 3u);
    EXPECT_STREQ(regions[1].name, "restart/file");
    EXPECT_EQ(regions[2].type, CAIRN_U64);
    EXPECT_EQ(regions[2].shape[0], 1000u);

    const char* unknown[] = {"nothing"};
    EXPECT_EQ(cairn_restore_regions(session, 1, unknown, 1, nullptr), CAIRN_NOT_FOUND);
    for (const auto& file : std::filesystem::directory_iterator(place_.path()))
        EXPECT_FALSE(file.path().filename().string().starts_with(".tmp-")) << file.path();
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

TEST_F(Room, AThreadWaitsWhileAnotherCheckpoints) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(10'000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    // Nobody seals version 2 before the waiter waits for 1; a wait that held up checkpoints would end in its deadline.
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    std::thread waiter([&] {
        for (std::uint64_t v = 1; v <= 5; ++v) {
            int code = CAIRN_NOT_FOUND;  // until it is taken
            for (int tries = 0; code == CAIRN_NOT_FOUND && tries < 3000; ++tries) {
                code = cairn_wait(session, v, CAIRN_COMMITTED, 30'000);
                if (code == CAIRN_NOT_FOUND) std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
            EXPECT_EQ(code, CAIRN_OK) << v << ": " << cairn_last_error(session);
        }
    });
    for (std::uint64_t v = 2; v <= 5; ++v)
        EXPECT_EQ(cairn_checkpoint(session, v), CAIRN_OK) << cairn_last_error(session);
    waiter.join();
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

TEST_F(Room, WaitingKeepsNobodyFromTestingAndCancelling) {
    cairn_session *session = nullptr, *other = nullptr;
    std::thread opens([&] { other = open("n0", 1, 2); });
    session = open("n0", 0, 2);
    opens.join();
    ASSERT_TRUE(session && other);
    Field field(1000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);  // the other rank never does
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    int waited = -1;
    std::thread waiter([&] { waited = cairn_wait(session, 1, CAIRN_COMMITTED, 120'000); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(cairn_test(session, 1, CAIRN_COMMITTED), CAIRN_DEADLINE);
    EXPECT_EQ(cairn_cancel(session, 1), CAIRN_OK) << cairn_last_error(session);
    waiter.join();
    EXPECT_EQ(waited, CAIRN_CANCELLED);
    EXPECT_LT(Clock::now() - begun, std::chrono::seconds(60));
    std::thread closes([&] { EXPECT_EQ(cairn_close(other), CAIRN_OK); });
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
    closes.join();
}

TEST_F(Room, OneFileForAllRanksOrOneForEach) {
    const auto parts_of = [&](const std::string& files, Version version) {
        std::vector<std::unique_ptr<Child>> ranks;
        for (std::uint32_t rank = 0; rank < 3; ++rank)
            ranks.push_back(std::make_unique<Child>([&, rank] {
                return run_rank(open(rank == 2 ? "n1" : "n0", rank, 3, {"flush.files=" + files}), rank, version - 1, 1,
                                false);
            }));
        for (auto& rank : ranks) EXPECT_EQ(rank->wait(), 0);
        std::size_t parts = 0;
        for (const auto& file : std::filesystem::directory_iterator(persistent_ + "/series/" + std::to_string(version)))
            parts += file.path().filename().string().starts_with("part-");
        return parts;
    };
    EXPECT_EQ(parts_of("1", 1), 1u);
    EXPECT_EQ(parts_of("3", 2), 3u);
    EXPECT_EQ(parts_of("2", 3), 2u);
}

TEST_F(Room, CancelledVersionsDoNotComeBack) {
    cairn_session* session = open("n0", 0, 1);
    ASSERT_NE(session, nullptr);
    Field field(1000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    field.fill(0, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK);
    const int cancelled = cairn_cancel(session, 1);
    if (cancelled == CAIRN_OK) {
        EXPECT_NE(cairn_wait(session, 1, CAIRN_COMMITTED, 5'000), CAIRN_OK);
    } else {
        EXPECT_EQ(cancelled, CAIRN_ALREADY_EXISTS) << cairn_last_error(session);  // it was quicker
    }
    EXPECT_EQ(cairn_cancel(session, 9), CAIRN_NOT_FOUND);
    field.fill(0, 2);
    ASSERT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    ASSERT_EQ(cairn_wait(session, 2, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

TEST_F(Room, AnOlderSessionOfTheSameNameIsTold) {
    cairn_session* older = open();
    ASSERT_NE(older, nullptr);
    Field field(1000);
    ASSERT_EQ(field.protect(older), CAIRN_OK);
    cairn_session* newer = open("n1");
    ASSERT_NE(newer, nullptr) << cairn_last_error(nullptr);
    EXPECT_EQ(cairn_checkpoint(older, 1), CAIRN_SUPERSEDED);
    EXPECT_THAT(cairn_last_error(older), HasSubstr("process " + std::to_string(::getpid())));
    EXPECT_EQ(cairn_close(older), CAIRN_OK);
    EXPECT_EQ(cairn_close(newer), CAIRN_OK);
}

TEST_F(Room, RanksThatDisagreeAllHearIt) {
    const auto rank_of_two = [&](std::uint32_t rank, std::vector<std::string> more, const std::string& name) {
        name_ = name;
        cairn_session* session = nullptr;
        const int code = try_open(&session, rank == 0 ? "n0" : "n1", rank, 2, std::move(more));
        if (session) cairn_close(session);
        return std::pair(code, std::string(cairn_last_error(nullptr)));
    };
    Child one([&] { return rank_of_two(1, {}, "other").first; });
    const auto [code, text] = rank_of_two(0, {}, "series");
    EXPECT_EQ(code, CAIRN_INVALID_ARGUMENT);
    EXPECT_THAT(text, HasSubstr("rank 1 has another name than rank 0: \"other\", not \"series\""));
    EXPECT_EQ(one.wait(), CAIRN_INVALID_ARGUMENT);

    const auto [files_code, files_text] = rank_of_two(0, {"flush.files=3"}, "series");
    EXPECT_EQ(files_code, CAIRN_INVALID_ARGUMENT);
    EXPECT_THAT(files_text, HasSubstr("allowed are 1 to 2"));
}

TEST_F(Room, HandlesThatAreNoneAreErrors) {
    EXPECT_EQ(cairn_checkpoint(nullptr, 1), CAIRN_INVALID_ARGUMENT);
    EXPECT_THAT(cairn_last_error(nullptr), HasSubstr("NULL"));
    // Whoever did not look at the failed open is told by the next call.
    const char* const bad[] = {"flush.files=two", nullptr};
    cairn_options options = CAIRN_OPTIONS;
    options.name = "any";
    options.overrides = bad;
    cairn_session* none = nullptr;
    EXPECT_EQ(cairn_open(&options, &none), CAIRN_INVALID_ARGUMENT);
    EXPECT_EQ(cairn_checkpoint(none, 1), CAIRN_INVALID_ARGUMENT);
    EXPECT_THAT(cairn_last_error(nullptr),
                HasSubstr("\"flush.files=two\": not a whole number; allowed: a whole number from 0"));
    EXPECT_EQ(cairn_close(nullptr), CAIRN_OK);
    EXPECT_EQ(cairn_open(nullptr, nullptr), CAIRN_INVALID_ARGUMENT);
    cairn_session* session = nullptr;
    EXPECT_EQ(cairn_open(nullptr, &session), CAIRN_INVALID_ARGUMENT);
    EXPECT_EQ(session, nullptr);
    EXPECT_STREQ(cairn_status_name(CAIRN_SUPERSEDED), "superseded");
    EXPECT_STREQ(cairn_status_name(-3), "unknown");
}

// As with Python's multiprocessing: a child that was forked, and not exec'ed, outlives the rank that died.
TEST_F(Room, AForkedChildThatLivesOnDoesNotKeepItsDeadParentsSession) {
    int pipe_of_child[2];
    ASSERT_EQ(::pipe(pipe_of_child), 0);
    const auto sessions = [&] {
        auto connection = Connection::connect(scratch_of("n0"), Deadline::in_ms(1000));
        if (!connection.ok() || !(*connection)->hello(false, Deadline::in_ms(5000)).ok()) return std::size_t{99};
        const auto status = (*connection)->ask_for<control::NodeStatus>(control::GetStatus{}, Deadline::in_ms(5000));
        return status.ok() ? std::size_t{status->sessions} : std::size_t{99};
    };
    std::size_t left = 0;
    EXPECT_EQ(Child([&] {
                  cairn_session* session = open();
                  Field field(1000);
                  if (!session || field.protect(session) != CAIRN_OK || cairn_checkpoint(session, 1) != CAIRN_OK) return 1;
                  if (sessions() != 1) return 2;
                  const pid_t child = ::fork();
                  if (child == 0)
                      for (;;) ::pause();
                  return ::write(pipe_of_child[1], &child, sizeof child) == sizeof child ? 0 : 3;
              }).wait(),
              0);
    pid_t child = 0;
    ASSERT_EQ(::read(pipe_of_child[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
    for (int i = 0; i < 1000 && (left = sessions()) != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(left, 0u);
    ::kill(child, SIGKILL);
    ::close(pipe_of_child[0]);
    ::close(pipe_of_child[1]);
}

TEST_F(Room, AForkedChildIsRefusedAndHarmsNothing) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(1000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    EXPECT_EQ(Child([&] {
                  if (cairn_checkpoint(session, 1) != CAIRN_INVALID_ARGUMENT) return 1;
                  return cairn_close(session) == CAIRN_OK ? 0 : 2;
              }).wait(),
              0);
    EXPECT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

}  // namespace
}  // namespace cairn
