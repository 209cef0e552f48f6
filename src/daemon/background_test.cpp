// The daemon in the background: the classes of its threads, and that it goes on while every processor is taken; its caps, and when they hold.
#include <sched.h>
#include <sys/resource.h>

#include <atomic>

#include <gmock/gmock.h>

#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;
constexpr std::uint64_t large_slot = 16 << 20;

// Threads that never sleep, one for each processor.
class Load {
  public:
    Load() {
        for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i)
            threads_.emplace_back([this] {
                while (!over_) count_.fetch_add(1, std::memory_order_relaxed);
            });
    }
    ~Load() {
        over_ = true;
        for (std::thread& thread : threads_) thread.join();
    }

  private:
    std::atomic<bool> over_ = false;
    std::atomic<std::uint64_t> count_ = 0;
    std::vector<std::thread> threads_;
};

struct Classes {
    int loop_policy = -1, loop_nice = -1;
    std::set<int> cpu_policies;
};
Classes classes_of(pid_t pid) {
    Classes found;
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
        const std::string name = read_text(entry.path().string() + "/comm");
        const pid_t thread = std::stoi(entry.path().filename());
        if (name.starts_with("cairn-cpu")) found.cpu_policies.insert(::sched_getscheduler(thread));
        if (!name.starts_with("cairn-loop")) continue;
        found.loop_policy = ::sched_getscheduler(thread);
        found.loop_nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
    }
    return found;
}

// Small images: the idle class gets 3 parts where each busy thread gets 1024, so a millisecond of work takes a second here, and several where
// other tests run beside.
TEST(Background, FlushesAndAnswersWhileEveryProcessorIsTaken) {
    for (const char* cpu : {"idle", "low"}) {
        Home home;
        home.set("CAIRN_BACKGROUND_CPU", cpu);
        ASSERT_EQ(home.start(), 0) << home.errors();
        Client client(home.layout);
        join(client, home.roster(1));
        const Load load;
        std::set<int> policies;
        Version versions = 0;  // two, and as many as it takes to see a thread of the pool: they end when there is no work
        while (versions < 2 || (policies.empty() && versions < 50)) {
            const Version version = ++versions;
            seal(client, home.roster(1), version, 0, {2'000'000, large_slot});
            EXPECT_TRUE(becomes_true([&] {
                policies.merge(classes_of(home.daemon_pid()).cpu_policies);
                return home.committed(key_of(home.roster(1), version));
            })) << home.log();
        }
        const auto status = [&] { return client.expect<control::NodeStatus>(control::GetStatus{}); };
        EXPECT_TRUE(becomes_true([&] { return status().versions_committed == versions; }));
        EXPECT_EQ(status().attempts_failed, 0u);
        const Classes classes = classes_of(home.daemon_pid());
        EXPECT_EQ(classes.loop_policy, SCHED_OTHER);  // it has to answer
        EXPECT_EQ(classes.loop_nice, 19);
        EXPECT_EQ(policies, std::set<int>{cpu == std::string("idle") ? SCHED_IDLE : SCHED_OTHER});
        const std::string group = read_text("/proc/" + std::to_string(home.daemon_pid()) + "/autogroup");
        if (!group.empty()) {
            EXPECT_TRUE(becomes_true([&] {
                return read_text("/proc/" + std::to_string(home.daemon_pid()) + "/autogroup").find("nice 19") != std::string::npos;
            })) << group;
        }
        EXPECT_EQ(home.log().find("can-not-give-way"), std::string::npos) << home.log();
    }
}

// Versions that come fast on the heels of each other, beside threads that never sleep: what the idle class would take minutes for.
TEST(Background, StepsUpWhereTheIdleClassWouldBeLateAndBack) {
    Home home;
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    const Load load;
    const auto status = [&] { return client.expect<control::NodeStatus>(control::GetStatus{}); };
    const auto stepped_up = [&] { return home.log().find("class from=idle") != std::string::npos; };
    for (Version version = 1; version <= 2 || (version <= 100 && !stepped_up()); ++version) {  // as many as it takes: now and then one is done before it is looked at
        seal(client, home.roster(1), version, 0, {large_slot - (1 << 20), large_slot});
        EXPECT_TRUE(becomes_true([&] { return home.committed(key_of(home.roster(1), version)); })) << home.log();
    }
    EXPECT_TRUE(stepped_up()) << home.log();
    EXPECT_TRUE(becomes_true([&] { return status().cpu_class == "idle"; })) << status().cpu_class << ": " << status().cpu_class_why;
    EXPECT_GT(status().processors, 0u);
    EXPECT_GE(status().processors_in_machine, status().processors);
    EXPECT_EQ(status().attempts_failed, 0u);
}

TEST(Background, NormalIsLikeAnyProcess) {
    Home home;
    home.set("CAIRN_BACKGROUND_CPU", "normal");
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    seal(client, home.roster(1), 1, 0, {8'000'000, large_slot});
    EXPECT_TRUE(becomes_true([&] { return home.committed(key_of(home.roster(1), 1)); })) << home.log();
    const Classes classes = classes_of(home.daemon_pid());
    EXPECT_EQ(classes.loop_nice, ::getpriority(PRIO_PROCESS, 0));
    EXPECT_EQ(classes.cpu_policies, std::set<int>{SCHED_OTHER});
}

// How long the flush of a version was held back by this cap, as the daemon says when nothing has moved for a second.
double held_back_s(const std::string& variable, const std::string& value, bool wait) {
    Home home;
    home.set(variable, value);
    home.set("CAIRN_BACKGROUND_CPU", "normal");  // what a starved flush does not use it need not be held back from
    EXPECT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    if (wait) client.send_request(control::Wait{key_of(home.roster(1), 1), Level::committed, 100'000});  // rank 0 waits already, on its connection
    Client second(home.layout);
    second.hello();
    seal(second, home.roster(1), 1, 0, {8'000'000, large_slot});
    EXPECT_TRUE(becomes_true([&] { return home.committed(key_of(home.roster(1), 1)); })) << home.log();
    const std::string word = "held_back_s=";
    EXPECT_TRUE(becomes_true([&] { return home.log().find(word) != std::string::npos; })) << home.log();
    const std::string log = home.log();
    const std::size_t at = log.find(word);
    return at == std::string::npos ? -1 : std::stod(log.substr(at + word.size()));
}

// 8 MB at 2 MiB a second: in pieces that are held back one after the other, for about four seconds in all, or for next to nothing.
TEST(Background, EachCapHoldsBackButForWhenEveryRankWaits) {
    const double network = held_back_s("CAIRN_BACKGROUND_NETWORK_BYTES_PER_S", "2 MiB", false);
    EXPECT_GT(network, 1);
    EXPECT_GT(held_back_s("CAIRN_BACKGROUND_MEMORY_BYTES_PER_S", "6 MiB", false), 1);
    EXPECT_LT(held_back_s("CAIRN_BACKGROUND_NETWORK_BYTES_PER_S", "2 MiB", true), network / 2);
}

}  // namespace
}  // namespace cairn
