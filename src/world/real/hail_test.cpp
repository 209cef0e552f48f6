#include "world/real/hail.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "world/real/test_world.hpp"

namespace cairn {
namespace {

using test::patience;

// Accepts nothing, so it says nothing, as behind a hole: the kernel alone answers.
class Silent {
  public:
    Silent() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof address;
        EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), bytes), 0);
        EXPECT_EQ(::listen(fd_, 8), 0);
        EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
        port_ = ntohs(address.sin_port);
    }
    Silent(const Silent&) = delete;
    ~Silent() { close(); }
    void close() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    std::uint16_t port() const { return port_; }

  private:
    int fd_;
    std::uint16_t port_ = 0;
};

class HailTest : public ::testing::Test {
  protected:
    std::unique_ptr<Beacon> beacon(std::uint64_t id) {
        auto opened = Beacon::open(*loop_, "127.0.0.1", id);
        EXPECT_TRUE(opened.ok()) << opened.status().to_string();
        return std::move(opened).value();
    }
    static std::string at(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }
    // The way that was found; -1: none, -2: it was not said.
    int hail(std::vector<std::string> to, Nanos wait = patience, Nanos at_most = patience) {
        int found = -2;
        Hail::To where{7, std::move(to), "", wait, at_most};
        std::unique_ptr<Hail> hail;
        hail = std::make_unique<Hail>(*loop_, std::move(where), [&](std::optional<std::size_t> way, const std::vector<Heard>& heard) {
            heard_ = heard;
            found = way ? static_cast<int>(*way) : -1;
            hail.reset();
        });
        EXPECT_EQ(found, -2) << "never from within";
        const Nanos deadline = loop_->in(patience);
        while (found == -2 && loop_->now() < deadline) loop_->run(pass(*loop_));
        return found;
    }
    static Task<int> pass(Loop& loop) {
        co_await loop.sleep(millisecond);
        co_return 0;
    }
    std::unique_ptr<Loop> loop_ = test::make_loop();
    std::vector<Heard> heard_;
};

TEST_F(HailTest, FindsWhoIsMeant) {
    const auto one = beacon(7);
    EXPECT_EQ(hail({at(one->port())}), 0);
    EXPECT_EQ(hail({at(one->port()), at(one->port())}), 0) << "the first of both";
}

TEST_F(HailTest, AnotherDaemonAtTheAddressIsNotIt) {
    const auto other = beacon(8), meant = beacon(7);
    EXPECT_EQ(hail({at(other->port()), at(meant->port())}), 1);
    EXPECT_EQ(heard_, (std::vector{Heard::not_it, Heard::it}));
    EXPECT_EQ(hail({at(other->port())}), -1);
}

TEST_F(HailTest, WhoDoesNotListenIsNotWaitedFor) {
    Silent gone;
    gone.close();
    const auto meant = beacon(7);
    EXPECT_EQ(hail({at(gone.port()), at(meant->port())}), 1) << "patience would be longer than the test";
    EXPECT_EQ(hail({at(gone.port())}), -1);
    EXPECT_EQ(hail({"nonsense"}), -1);
}

TEST_F(HailTest, SilenceIsWaitedForOnlySoLong) {
    const Silent silent;
    const auto meant = beacon(7);
    EXPECT_EQ(hail({at(silent.port()), at(meant->port())}, 50 * millisecond), 1);
    EXPECT_EQ(hail({at(silent.port())}, 10 * millisecond, 50 * millisecond), -1);
    EXPECT_EQ(heard_, (std::vector{Heard::nothing}));
}

// Behind what is under way over it the answer of the way in use is late.
TEST_F(HailTest, TheWayInUseIsWaitedForBeforeAnotherIsTaken) {
    const Silent silent;
    const auto meant = beacon(7);
    for (const Nanos at_most : {100 * millisecond, 200 * millisecond}) {
        std::optional<std::size_t> found;
        std::vector<Heard> heard;
        const Nanos begun = loop_->now();
        Hail::To to{7, {at(meant->port()), at(silent.port())}, "", 10 * millisecond, at_most};
        to.in_use = 1;
        const Hail hail(*loop_, to, [&](std::optional<std::size_t> way, const auto& all) { found = way, heard = all; });
        while (!found) loop_->run(pass(*loop_));
        const bool was_early = loop_->now() - begun < at_most;
        EXPECT_FALSE(was_early);
        EXPECT_EQ(found, 0u);
        EXPECT_EQ(heard, (std::vector{Heard::it, Heard::nothing}));
    }
}

// Everything had come before this host's own loop looked.
TEST_F(HailTest, ALoopThatWasLateHearsAllBeforeItChooses) {
    const auto theirs = test::make_loop();
    auto meant = Beacon::open(*theirs, "127.0.0.1", 7);
    ASSERT_TRUE(meant.ok());
    for (int tries = 0; tries < 5; ++tries) {
        std::optional<std::size_t> found;
        const std::string place = at((*meant)->port());
        const Hail hail(*loop_, {7, {place, place, place}, "", millisecond, millisecond}, [&](std::optional<std::size_t> way, const auto&) { found = way.value_or(9); });
        for (int i = 0; i < 10; ++i) theirs->run(pass(*theirs));
        while (!found) loop_->run(pass(*loop_));
        EXPECT_EQ(found, 0u);
    }
}

TEST_F(HailTest, EndsWithItsOwner) {
    const Silent silent;
    const auto meant = beacon(7);
    bool said = false;
    {
        const Hail hail(*loop_, {7, {at(silent.port()), at(meant->port())}, "", second, second}, [&](auto, const auto&) { said = true; });
        loop_->run(pass(*loop_));
    }
    for (int i = 0; i < 20; ++i) loop_->run(pass(*loop_));
    EXPECT_FALSE(said);
}

TEST_F(HailTest, ABeaconThatIsOutOfDescriptorsAnswersLater) {
    const auto meant = beacon(7);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    int found = -2;
    const Hail hail(*loop_, {7, {at(meant->port())}, "", patience, patience}, [&](std::optional<std::size_t> way, const auto&) { found = way ? 0 : -1; });
    rlimit none = before;
    none.rlim_cur = 3;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 20; ++i) loop_->run(pass(*loop_));
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(found, -2);
    const Nanos deadline = loop_->in(patience);
    while (found == -2 && loop_->now() < deadline) loop_->run(pass(*loop_));
    EXPECT_EQ(found, 0);
}

TEST_F(HailTest, RoutesSayWhichCardLeadsWhere) {
    const std::vector<HostCard> host = {{"lo", "127.0.0.1", 8, 5, CardMake::device, true, true}};
    const Route route = find_route("127.0.0.1", "", host);
    EXPECT_TRUE(route.exists);
    EXPECT_EQ(route.over, host[0]);
    EXPECT_TRUE(find_route("127.0.0.1", "127.0.0.1", host).exists);
    EXPECT_FALSE(find_route("127.0.0.1", "192.0.2.77", host).exists) << "no address of this host";
    EXPECT_TRUE(find_route("127.0.0.1", "", {}).over.interface.empty());
    EXPECT_FALSE(find_route("nonsense", "", host).exists);
}

}  // namespace
}  // namespace cairn
