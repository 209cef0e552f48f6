// An I/O node alone: which strangers it believes, how often it looks, and when it forgets a job. The test is the node's jobs, and writes their rosters.
#include "engine/io_node/io_node.hpp"

#include <algorithm>
#include <set>

#include "engine/role_testing.hpp"
#include "format/roster.hpp"

namespace cairn::engine {
namespace {

using testing::Alone;
using testing::RoleOptions;

// As a router has them, but that nothing is done with what is said.
struct FakeJobs : IoNode::Jobs {
    const std::map<Id128, JobPtr>& known() const override { return jobs; }
    void join(Id128 incarnation, JobPtr job) override { jobs.emplace(incarnation, std::move(job)); }
    bool forget(Id128 incarnation) override { return !written.count(incarnation) && jobs.erase(incarnation) == 1; }
    void handle(message::Message message) override { handled.push_back(std::move(message)); }

    std::map<Id128, JobPtr> jobs;
    std::set<Id128> written;  // something of them is being written here
    std::vector<message::Message> handled;
};

struct Subject : FakeJobs {
    explicit Subject(Common& common) : io_node(common, *this) {}
    IoNode io_node;
};

// Node 1 of two has no ranks.
struct IoNodeTest : ::testing::Test {
    static RoleOptions options() {
        RoleOptions options;
        options.ranks = {{0}, {}};
        options.self = 1;
        return options;
    }
    void begin(const RoleOptions& options = IoNodeTest::options(), const std::string& name = "n1") {
        node = std::make_unique<Alone<Subject>>(options);
        if (!name.empty()) io_node().serve_as(name);
    }
    IoNode& io_node() { return node->subject.io_node; }
    // Of another job of the same nodes.
    Roster roster_of(std::uint64_t number) const {
        Roster roster = *node->job->roster;
        roster.incarnation = {9, number};
        return roster;
    }
    void put(const std::string& path, Bytes bytes) {
        World& w = node->world;
        ASSERT_TRUE(node->result_of(make_directories(w.storage, node->layout.persistent, path.substr(0, path.rfind('/')), w.clock.in(second))).ok());
        ASSERT_TRUE(node->result_of(write_file(w.storage, path, std::move(bytes), 0600, w.clock.in(second))).ok());
    }
    void publish(const Roster& roster) { put(node->layout.job_roster(roster.incarnation), encode_roster(roster)); }
    void remove_roster(Id128 incarnation) {
        ASSERT_TRUE(node->result_of(node->world.storage.remove(node->layout.job_roster(incarnation), node->world.clock.in(second))).ok());
    }
    // As the coordinator of that job would say it; for so long it is looked into.
    message::Message say(const Roster& roster, Nanos span = 2 * second) {
        const message::Message said{roster.secret, {roster.name, 1, roster.incarnation}, 0, node->process(0).address(), message::Noted{{0}}};
        io_node().on_stranger(said);
        node->run(span);
        return said;
    }
    void joins(const Roster& roster) {
        publish(roster);
        say(roster);
        EXPECT_TRUE(knows(roster)) << roster.incarnation.hex();
    }
    bool knows(const Roster& roster) const { return node->subject.jobs.count(roster.incarnation) == 1; }
    // How often that job's roster was opened since watch_operations().
    std::size_t looks(const std::vector<std::string>& operations, const Roster& roster) const {
        return static_cast<std::size_t>(std::count(operations.begin(), operations.end(), "open " + node->layout.job_roster(roster.incarnation)));
    }

    std::unique_ptr<Alone<Subject>> node;
};

TEST_F(IoNodeTest, LearnsOfAJobFromItsRoster) {
    begin();
    Roster roster = roster_of(1);
    roster.members[1].address = "of a daemon that was killed";
    say(roster);
    EXPECT_FALSE(knows(roster)) << "no such roster";
    publish(roster);
    const message::Message said = say(roster);
    ASSERT_TRUE(knows(roster));
    const Job& job = *node->subject.jobs.at(roster.incarnation);
    roster.members[1].address = node->process(1).address();
    EXPECT_EQ(*job.roster, roster) << "its own address is the present one";
    EXPECT_EQ(job.self, 1u);
    ASSERT_EQ(node->subject.handled.size(), 1u) << "what was said is heard as soon as the job is known";
    EXPECT_EQ(encode(node->subject.handled[0]), encode(said));
}

TEST_F(IoNodeTest, BelievesNobodyWhomTheRosterDoesNotBearOut) {
    begin();
    const Roster other = roster_of(1), torn = roster_of(2), elsewhere = roster_of(3);
    Roster liar = other;
    liar.secret = {1, 1};
    publish(other);
    put(node->layout.job_roster(torn.incarnation), Bytes(100));
    put(node->layout.job_roster(elsewhere.incarnation), encode_roster(other));
    for (const Roster& roster : {liar, torn, elsewhere}) {
        say(roster);
        EXPECT_TRUE(node->subject.jobs.empty()) << roster.incarnation.hex();
    }
    EXPECT_TRUE(node->subject.handled.empty());
    say(other);
    EXPECT_TRUE(knows(other));
}

// A daemon that is no I/O node does not look; one of another name does not find itself, and one that runs ranks of the job is called by them.
TEST_F(IoNodeTest, OthersDoNotJoinUncalledFor) {
    for (const char* name : {"", "n7", "n0"}) {
        begin(options(), name);
        const Roster roster = roster_of(1);
        publish(roster);
        const std::vector<std::string>& operations = node->watch_operations();
        say(roster);
        EXPECT_TRUE(node->subject.jobs.empty()) << name;
        EXPECT_EQ(looks(operations, roster), *name ? 1u : 0u) << name;
    }
}

TEST_F(IoNodeTest, LearnsNothingMoreWhenItEnds) {
    begin();
    const Roster first = roster_of(1), next = roster_of(2);
    for (const Roster* roster : {&first, &next}) publish(*roster);
    say(first, 0);  // its roster is being read
    node->common.stopping = node->world.clock.now();
    node->run(2 * second);
    const std::vector<std::string>& operations = node->watch_operations();
    say(next);
    EXPECT_TRUE(node->subject.jobs.empty());
    EXPECT_EQ(looks(operations, next), 0u);
}

// Its storage must not pay for what strangers say.
TEST_F(IoNodeTest, LooksOnceASecondForAJobAndForFewAtATime) {
    begin();
    const std::vector<std::string>& operations = node->watch_operations();
    const Roster roster = roster_of(1);
    for (int times = 0; times < 9; ++times) say(roster, 100 * millisecond);
    EXPECT_EQ(looks(operations, roster), 1u);
    say(roster, 200 * millisecond);
    say(roster, 100 * millisecond);
    EXPECT_EQ(looks(operations, roster), 2u);
    std::size_t all = 0;
    for (std::uint64_t number = 100; number < 120; ++number) say(roster_of(number), 0);
    node->run(2 * second);
    for (std::uint64_t number = 100; number < 120; ++number) all += looks(operations, roster_of(number));
    EXPECT_EQ(all, 8u);
    say(roster_of(119), 100 * millisecond);
    EXPECT_EQ(looks(operations, roster_of(119)), 1u) << "one that was not looked for need not wait";
}

TEST_F(IoNodeTest, RemembersSoManyStrangersThatItLookedFor) {
    RoleOptions few = options();
    few.settings.limits.strangers = 2;
    begin(few);
    const std::vector<std::string>& operations = node->watch_operations();
    for (const std::uint64_t number : {1u, 2u, 3u, 2u, 1u}) say(roster_of(number), 50 * millisecond);
    EXPECT_EQ(looks(operations, roster_of(2)), 1u);
    EXPECT_EQ(looks(operations, roster_of(1)), 2u) << "the one longest ago was forgotten";
}

// With as many jobs as it may have it forgets the one longest silent, none that it is writing for, and none of its own ranks.
TEST_F(IoNodeTest, ForgetsTheLongestSilentGuestForANewOne) {
    RoleOptions few = options();
    few.settings.limits.guests = 2;
    begin(few);
    Roster own = roster_of(1);
    own.members[1].ranks = {1};
    own.ranks = 2;
    node->subject.join(own.incarnation, std::make_shared<Job>(node->world, node->layout.persistent, std::make_shared<const Roster>(own), 1));
    const Roster first = roster_of(2), next = roster_of(3), third = roster_of(4), last = roster_of(5);
    joins(first);
    joins(next);
    EXPECT_TRUE(knows(first)) << "a job with ranks here is no guest";
    node->subject.jobs.at(first.incarnation)->heard[0] = node->world.clock.now();
    joins(third);
    EXPECT_FALSE(knows(next));
    EXPECT_TRUE(knows(first) && knows(own));
    node->subject.written.insert(first.incarnation);
    publish(last);
    say(last);
    EXPECT_TRUE(knows(first) && knows(third) && !knows(last)) << "the one longest silent is being written";
    node->subject.written.clear();
    say(last);
    EXPECT_TRUE(knows(last) && !knows(first));
}

// Its roster says that it is not over; a directory that can not be read says nothing.
TEST_F(IoNodeTest, ForgetsAJobThatIsOver) {
    begin();
    const Roster over = roster_of(1), goes_on = roster_of(2);
    Roster own = roster_of(3);
    own.members[1].ranks = {1};
    own.ranks = 2;
    node->subject.join(own.incarnation, std::make_shared<Job>(node->world, node->layout.persistent, std::make_shared<const Roster>(own), 1));
    joins(over);
    joins(goes_on);
    remove_roster(over.incarnation);
    node->sim.faults().metadata_error = 1;
    node->run(100 * second);
    EXPECT_TRUE(knows(over));
    node->sim.faults().metadata_error = 0;
    node->run(40 * second);
    EXPECT_FALSE(knows(over));
    EXPECT_TRUE(knows(goes_on));
    EXPECT_TRUE(knows(own)) << "no guest, whatever lies under persistent";
}

TEST_F(IoNodeTest, KeepsAJobThatIsOverWhileItWritesForIt) {
    begin();
    const Roster over = roster_of(1);
    joins(over);
    remove_roster(over.incarnation);
    node->subject.written.insert(over.incarnation);
    node->run(100 * second);
    EXPECT_TRUE(knows(over));
    node->subject.written.clear();
    node->run(40 * second);
    EXPECT_FALSE(knows(over));
}

}  // namespace
}  // namespace cairn::engine
