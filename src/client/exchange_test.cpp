// The ways ranks talk: through files between real processes, leftovers of a dead run among them, and through a caller's
// own collectives.
#include "client/exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <fstream>
#include <memory>

#include "client/files.hpp"
#include "client/rendezvous.hpp"
#include "client/testing.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

Bytes bytes_of(Rank rank, std::uint64_t round) {
    return Bytes((rank * 37 + round * 101) % 5000, static_cast<std::byte>(rank + round));
}

// What every rank of an exchange does in these tests; 0 when all it saw was right.
int talk(Exchange& exchange, int rounds) {
    const auto soon = [] { return Deadline::in_ms(20'000); };
    for (int round = 0; round < rounds; ++round) {
        const auto n = static_cast<std::uint64_t>(round);
        const auto all = exchange.allgather(bytes_of(exchange.rank(), n), soon());
        if (!all.ok() || all->size() != exchange.ranks()) return 1;
        for (Rank rank = 0; rank < exchange.ranks(); ++rank)
            if ((*all)[rank] != bytes_of(rank, n)) return 2;
        const auto told = exchange.broadcast(exchange.rank() == 0 ? bytes_of(99, n) : Bytes{}, soon());
        if (!told.ok() || *told != bytes_of(99, n)) return 3;
        if (!exchange.agree({}, soon()).ok()) return 4;
        const Status mine = exchange.rank() == 1 ? not_found("left my keys") : Status();
        const Status agreed = exchange.agree(mine, soon());
        if (agreed.code() != Code::not_found || agreed.text().find("rank 1: left my keys") == std::string::npos)
            return 5;
    }
    return 0;
}

int meet_and_talk(const std::string& place, Rank rank, std::uint32_t ranks, int rounds,
                  std::uint64_t wait_ms = 20'000) {
    auto exchange = FileExchange::meet(place, rank, ranks, Deadline::in_ms(wait_ms));
    return exchange.ok() ? talk(**exchange, rounds) : 100 + static_cast<int>(exchange.code());
}

TEST(FileExchange, RanksMeetAndTalk) {
    TemporaryPlace temporary;
    const std::string place = temporary.file("job");
    std::vector<std::unique_ptr<Child>> ranks;
    for (Rank rank = 0; rank < 5; ++rank)
        ranks.push_back(std::make_unique<Child>([=] { return meet_and_talk(place, rank, 5, 10); }));
    for (auto& rank : ranks) EXPECT_EQ(rank->wait(), 0);
    EXPECT_FALSE(std::filesystem::exists(place)) << "the meeting place is left clean";
}

TEST(FileExchange, LeftoversOfADeadRunTakeNoPart) {
    TemporaryPlace temporary;
    const std::string place = temporary.file("job");
    for (int run = 0; run < 3; ++run) {
        std::vector<std::unique_ptr<Child>> ranks;
        for (Rank rank = 0; rank < 3; ++rank)
            ranks.push_back(std::make_unique<Child>([=] {
                auto exchange = FileExchange::meet(place, rank, 3, Deadline::in_ms(20'000));
                if (!exchange.ok() || !(*exchange)->allgather(bytes_of(rank, 0), Deadline::in_ms(20'000)).ok())
                    return 1;
                return ::kill(::getpid(), SIGKILL);  // files of the meeting and of a step stay behind
            }));
        for (auto& rank : ranks) ASSERT_EQ(rank->wait(), 128 + SIGKILL);
        ASSERT_TRUE(std::filesystem::exists(place + "/final"));
    }
    // Rank 2 comes late, so that its stale join stands when the others look.
    std::vector<std::unique_ptr<Child>> ranks;
    for (Rank rank = 0; rank < 3; ++rank)
        ranks.push_back(std::make_unique<Child>([=] {
            std::this_thread::sleep_for(std::chrono::milliseconds(rank == 2 ? 300 : 0));
            return meet_and_talk(place, rank, 3, 3);
        }));
    for (auto& rank : ranks) EXPECT_EQ(rank->wait(), 0);
}

TEST(FileExchange, NamesTheRanksThatNeverCame) {
    TemporaryPlace temporary;
    Child one([&] { return meet_and_talk(temporary.path(), 1, 4, 1, 8000); });
    const auto alone = FileExchange::meet(temporary.path(), 0, 4, Deadline::in_ms(3000));
    EXPECT_EQ(alone.code(), Code::deadline);
    EXPECT_THAT(alone.status().text(), HasSubstr("ranks 2-3 of 4 never called"));
    EXPECT_EQ(one.wait(), 100 + static_cast<int>(Code::deadline));
}

TEST(FileExchange, NamesARankThatLeavesInTheMiddle) {
    TemporaryPlace temporary;
    Child one([&] {
        auto exchange = FileExchange::meet(temporary.path(), 1, 2, Deadline::in_ms(20'000));
        return exchange.ok() ? ::kill(::getpid(), SIGKILL) : 1;
    });
    auto exchange = FileExchange::meet(temporary.path(), 0, 2, Deadline::in_ms(20'000));
    ASSERT_TRUE(exchange.ok()) << exchange.status().to_string();
    EXPECT_EQ(one.wait(), 128 + SIGKILL);
    const Status first = (*exchange)->agree({}, Deadline::in_ms(200));
    EXPECT_EQ(first.code(), Code::deadline);
    EXPECT_THAT(first.text(), HasSubstr("rank 1 never made"));
    const Status second = (*exchange)->agree({}, Deadline::in_ms(20'000));
    EXPECT_THAT(second.text(), HasSubstr("open again")) << "a broken exchange is not waited for again";
}

// A limit on the size of files stands for a file system that is full, or away, for a moment. For a child's process.
class FullForAMoment {
  public:
    FullForAMoment() {
        ::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &room_);
        const rlimit none = {0, room_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &none);
        later_ = std::thread([this] {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            ::setrlimit(RLIMIT_FSIZE, &room_);
        });
    }
    ~FullForAMoment() { later_.join(); }

  private:
    rlimit room_ = {};
    std::thread later_;
};

TEST(FileExchange, WhoLeavesLastWaitsForNobody) {
    for (const Rank late : {0, 1}) {
        TemporaryPlace temporary;
        const std::string place = temporary.file("job");
        const auto meet = [&](Rank rank) { return FileExchange::meet(place, rank, 2, Deadline::in_ms(20'000)); };
        Child other([&] {
            auto exchange = meet(1 - late);
            return exchange.ok() ? static_cast<int>((*exchange)->leave(Deadline::in_ms(100)).code()) : 100;
        });
        {
            auto exchange = meet(late);
            ASSERT_TRUE(exchange.ok()) << exchange.status().to_string();
            EXPECT_EQ(other.wait(), static_cast<int>(Code::deadline));
            const Status left = (*exchange)->leave(Deadline::in_ms(5000));
            EXPECT_TRUE(left.ok()) << left.to_string();
        }
        EXPECT_FALSE(std::filesystem::exists(place)) << "the meeting place is left clean";
    }
}

TEST(FileExchange, WaitsForAFileSystemThatTakesNothingForAMoment) {
    TemporaryPlace temporary;
    Child one([&] {
        auto exchange = FileExchange::meet(temporary.path(), 1, 2, Deadline::in_ms(20'000));
        if (!exchange.ok()) return 1;
        const FullForAMoment full;
        return (*exchange)->allgather(bytes_of(1, 0), Deadline::in_ms(20'000)).ok() ? 0 : 2;
    });
    auto exchange = FileExchange::meet(temporary.path(), 0, 2, Deadline::in_ms(20'000));
    ASSERT_TRUE(exchange.ok()) << exchange.status().to_string();
    const auto all = (*exchange)->allgather(bytes_of(0, 0), Deadline::in_ms(20'000));
    EXPECT_TRUE(all.ok()) << all.status().to_string();
    exchange->reset();
    EXPECT_EQ(one.wait(), 0);
}

TEST(FileExchange, WaitsForItAlsoWhileTheyMeet) {
    TemporaryPlace temporary;
    Child one([&] {
        const FullForAMoment full;
        return meet_and_talk(temporary.path(), 1, 2, 1);
    });
    EXPECT_EQ(meet_and_talk(temporary.path(), 0, 2, 1), 0);
    EXPECT_EQ(one.wait(), 0);
}

TEST(Files, PatienceIsForWhatMayPass) {
    const Status away = Status::from_errno(ENOTCONN, "away"), forbidden = Status::from_errno(EACCES, "forbidden");
    int tries = 0;
    EXPECT_TRUE(files::patiently(Deadline::in_ms(10000), is_away, [&] { return ++tries < 4 ? away : Status(); }).ok());
    EXPECT_EQ(tries, 4);
    EXPECT_EQ(files::patiently(Deadline::in_ms(10000), is_away, [&] { return ++tries < 6 ? away : forbidden; }).code(), Code::permission);
    EXPECT_EQ(tries, 6);
    EXPECT_EQ(files::patiently(Deadline::in_ms(30), is_away, [&] { return away; }).code(), Code::unavailable) << "not that time is over";
}

TEST(FileExchange, TwoProcessesOfOneRankAreToldApart) {
    TemporaryPlace temporary;
    Child first([&] { return meet_and_talk(temporary.path(), 1, 3, 1, 5'000); });
    while (!std::filesystem::exists(temporary.file("join-1")))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Child second([&] { return meet_and_talk(temporary.path(), 1, 3, 1, 300); });
    EXPECT_EQ(first.wait(), 100 + static_cast<int>(Code::already_exists));
    EXPECT_EQ(second.wait(), 100 + static_cast<int>(Code::deadline));
}

// Two ranks of a caller with collectives of its own: here, a FileExchange below C functions.
struct Caller {
    std::unique_ptr<FileExchange> below;
    int calls_until_failure = -1;
    bool* released = nullptr;

    static int allgather(void* context, const void* send, void* receive, std::uint64_t bytes,
                         std::uint64_t timeout_ms) {
        auto& self = *static_cast<Caller*>(context);
        if (self.calls_until_failure >= 0 && self.calls_until_failure-- == 0) return 17;
        const auto* from = static_cast<const std::byte*>(send);
        const auto all = self.below->allgather(Bytes(from, from + bytes), Deadline::in_ms(timeout_ms));
        if (!all.ok()) return 1;
        auto* to = static_cast<std::byte*>(receive);
        for (const Bytes& each : *all) to = std::copy(each.begin(), each.end(), to);
        return 0;
    }
    static int broadcast(void* context, void* buffer, std::uint64_t bytes, std::uint64_t timeout_ms) {
        auto& self = *static_cast<Caller*>(context);
        auto* at = static_cast<std::byte*>(buffer);
        const auto told = self.below->broadcast(Bytes(at, at + bytes), Deadline::in_ms(timeout_ms));
        if (!told.ok() || told->size() != bytes) return 1;
        std::copy(told->begin(), told->end(), at);
        return 0;
    }
    static void release(void* context) {
        if (auto* released = static_cast<Caller*>(context)->released) *released = true;
    }
    cairn_exchange calls() { return {sizeof(cairn_exchange), this, &allgather, &broadcast, &release}; }
};

TEST(CallerExchange, CarriesContributionsOfAnySize) {
    TemporaryPlace temporary;
    const auto rank_of_two = [&](Rank rank) {
        auto below = FileExchange::meet(temporary.path(), rank, 2, Deadline::in_ms(20'000));
        if (!below.ok()) return 50;
        Caller caller{std::move(below).value(), -1, nullptr};
        bool released = false;
        caller.released = &released;
        int code = 0;
        {
            CallerExchange exchange(rank, 2, caller.calls());
            code = talk(exchange, 5);
        }
        return code != 0 ? code : released ? 0 : 51;
    };
    Child one([&] { return rank_of_two(1); });
    EXPECT_EQ(rank_of_two(0), 0);
    EXPECT_EQ(one.wait(), 0);
}

TEST(CallerExchange, AFailureOfTheCallerIsAStatus) {
    TemporaryPlace temporary;
    Caller caller{FileExchange::meet(temporary.path(), 0, 1, Deadline::in_ms(5'000)).value(), 0, nullptr};
    CallerExchange exchange(0, 1, caller.calls());
    const Status status = exchange.agree({}, Deadline::in_ms(1000));
    EXPECT_EQ(status.code(), Code::unavailable);
    EXPECT_THAT(status.text(), HasSubstr("17"));
}

TEST(Exchange, OneRankAgreesWithItself) {
    SelfExchange self;
    EXPECT_TRUE(self.agree({}, Deadline::in_ms(0)).ok());
    const Status status = self.agree(corrupt("mine"), Deadline::in_ms(0));
    EXPECT_EQ(status.to_string(), corrupt("mine").to_string()) << "no rank 0 where there is only one";
}

TEST(Exchange, ListsRanks) {
    EXPECT_EQ(rank_list({3}), "rank 3");
    EXPECT_EQ(rank_list({0, 1, 2, 7}), "ranks 0-2, 7");
}

}  // namespace
}  // namespace cairn
