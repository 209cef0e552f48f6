// Restores that are not the whole story of a session: after a checkpoint that failed somewhere, and from a scratch that somebody tidied up.
#include <gmock/gmock.h>

#include <filesystem>

#include "client/session_testing.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

// A checkpoint that one rank took and another could not is no reason for them to part ways.
int go_back(cairn_session* session, std::uint32_t rank) {
    RETURN_UNLESS(session != nullptr);
    Field field(10'000);
    int refuse = 0;
    const auto size = [](void*, std::uint64_t* bytes) {
        *bytes = 8;
        return 0;
    };
    const auto write = [](void* context, void* into, std::uint64_t bytes) {
        std::memset(into, 7, bytes);
        return *static_cast<int*>(context);
    };
    const auto read = [](void*, const void*, std::uint64_t) { return 0; };
    RETURN_UNLESS(field.protect(session) == CAIRN_OK);
    RETURN_UNLESS(cairn_protect_callbacks(session, "more", size, write, read, &refuse) == CAIRN_OK);
    field.fill(rank, 1);
    RETURN_UNLESS(cairn_checkpoint(session, 1) == CAIRN_OK);
    RETURN_UNLESS(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000) == CAIRN_OK);
    std::uint64_t version = 0;
    for (std::uint64_t next : {2, 3}) {
        RETURN_UNLESS(cairn_restore(session, CAIRN_NEWEST, &version) == CAIRN_OK);
        RETURN_UNLESS(version == 1 && field.holds(rank, 1));
        refuse = rank == 1 ? 5 : 0;
        RETURN_UNLESS((cairn_checkpoint(session, next) == CAIRN_OK) == (rank == 0));
    }
    RETURN_UNLESS(cairn_restore(session, CAIRN_NEWEST, &version) == CAIRN_OK);
    RETURN_UNLESS(version == 1 && field.holds(rank, 1));
    refuse = 0;
    field.fill(rank, 4);
    RETURN_UNLESS(cairn_checkpoint(session, 4) == CAIRN_OK);
    RETURN_UNLESS(cairn_wait(session, 4, CAIRN_COMMITTED, 30'000) == CAIRN_OK);
    return cairn_close(session) == CAIRN_OK ? 0 : 1;
}

TEST_F(Room, RanksGoBackTogetherAfterACheckpointThatOneOfThemCouldNotTake) {
    Child zero([&] { return go_back(open("n0", 0, 2), 0); }), one([&] { return go_back(open("n1", 1, 2), 1); });
    EXPECT_EQ(zero.wait(), 0);
    EXPECT_EQ(one.wait(), 0);
}

TEST_F(Room, AnImageThatWasTakenAwayFromScratchIsReadFromTheFiles) {
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    Field field(10'000);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    field.fill(0, 1);
    ASSERT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
    ASSERT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    for (const auto& slot : std::filesystem::directory_iterator(scratch_of("n0").images())) std::filesystem::remove(slot.path());
    field.fill(9, 9);
    std::uint64_t version = 0;
    ASSERT_EQ(cairn_restore(session, CAIRN_NEWEST, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(version, 1u);
    EXPECT_TRUE(field.holds(0, 1));
    EXPECT_THAT(cairn_warnings(session), HasSubstr("is not there any more"));
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// Whoever removes a series begins anew; what scratch has of the one before must not look newer than what is taken now.
TEST_F(Room, ASeriesThatWasRemovedDoesNotComeBackFromScratch) {
    Field field(10'000);
    std::uint64_t version = 0;
    const auto take = [&](cairn_session* session, std::uint64_t seed, std::initializer_list<std::uint64_t> versions) {
        for (const std::uint64_t each : versions) {
            field.fill(seed, each);
            EXPECT_EQ(cairn_checkpoint(session, each), CAIRN_OK) << cairn_last_error(session);
            EXPECT_EQ(cairn_wait(session, each, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
        }
    };
    // Several opens of the first run, all within a second or so: its epochs are ahead of the clock.
    for (std::uint64_t each : {1, 2, 3, 8}) {
        cairn_session* session = open();
        ASSERT_NE(session, nullptr);
        ASSERT_EQ(field.protect(session), CAIRN_OK);
        if (each > 1) {
            ASSERT_EQ(cairn_restore(session, CAIRN_NEWEST, &version), CAIRN_OK) << cairn_last_error(session);
        }
        take(session, 1, {each});
        ASSERT_EQ(cairn_close(session), CAIRN_OK);
    }
    std::filesystem::remove_all(persistent_ + "/" + name_);
    cairn_session* session = open();
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    take(session, 2, {3, 4});
    ASSERT_EQ(cairn_close(session), CAIRN_OK);
    session = open();
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(field.protect(session), CAIRN_OK);
    ASSERT_EQ(cairn_restore(session, CAIRN_NEWEST, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(version, 4u);
    EXPECT_TRUE(field.holds(2, 4));
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// Rank 2 finds its image in its node's scratch, and the others were elsewhere: those two share what they read, and what they share has no name when both have come.
TEST_F(Room, WhoHasItsImageInScratchIsNotAmongThoseWhoShare) {
    const auto job = [&](std::uint64_t from, const char* const(&nodes)[3]) {
        std::vector<std::unique_ptr<Child>> ranks;
        for (std::uint32_t rank = 0; rank < 3; ++rank)
            ranks.push_back(std::make_unique<Child>([&, rank] {
                cairn_session* const session = open(nodes[rank], rank, 3);
                RETURN_UNLESS(session != nullptr);
                Field field(10'000);
                RETURN_UNLESS(field.protect(session) == CAIRN_OK);
                std::uint64_t version = 0;
                if (from != 0) {
                    RETURN_UNLESS(cairn_restore(session, CAIRN_NEWEST, &version) == CAIRN_OK);
                    RETURN_UNLESS(version == from && field.holds(rank, from));
                    return cairn_close(session) == CAIRN_OK ? 0 : 1;
                }
                field.fill(rank, 1);
                RETURN_UNLESS(cairn_checkpoint(session, 1) == CAIRN_OK);
                RETURN_UNLESS(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000) == CAIRN_OK);
                return cairn_close(session) == CAIRN_OK ? 0 : 1;
            }));
        for (auto& rank : ranks) ASSERT_EQ(rank->wait(), 0);
    };
    ASSERT_NO_FATAL_FAILURE(job(0, {"n1", "n1", "n0"}));
    ASSERT_NO_FATAL_FAILURE(job(1, {"n0", "n0", "n0"}));
    const std::string shared = scratch_of("n0").shared();
    ASSERT_TRUE(std::filesystem::exists(shared)) << "nobody shared anything";
    EXPECT_TRUE(std::filesystem::is_empty(shared));
}

}  // namespace
}  // namespace cairn
