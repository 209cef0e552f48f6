#include "daemon/jobs.hpp"

#include "daemon/jobs_testing.hpp"

namespace cairn {
namespace {

std::uint64_t file_number(const std::string& path) {
    struct stat about = {};
    return ::stat(path.c_str(), &about) == 0 ? about.st_ino : 0;
}

TEST_F(JobsTest, AJobThatJoinsIsOnRecordInBothPlaces) {
    begin_jobs();
    const Roster roster = stranger(2);
    EXPECT_EQ(jobs_->roster_of(roster.incarnation), nullptr);
    ASSERT_TRUE(run(jobs_->join(roster, 0)).ok());
    EXPECT_TRUE(node_->knows(roster.incarnation));
    EXPECT_TRUE(fs::exists(scratch_layout().job(roster.incarnation)));
    EXPECT_TRUE(fs::exists(layout().job_node(roster.incarnation, 0)));
    ASSERT_NE(jobs_->roster_of(roster.incarnation), nullptr);
    EXPECT_EQ(jobs_->roster_of(roster.incarnation)->epoch, 2u);
    EXPECT_TRUE(jobs_->coordinates(roster.incarnation));
    EXPECT_EQ(jobs_->known(), std::vector<Id128>{roster.incarnation});
    jobs_->let_go(roster.incarnation);
    EXPECT_TRUE(jobs_->known().empty());
    EXPECT_TRUE(fs::exists(scratch_layout().job(roster.incarnation)));  // for the next daemon
}

TEST_F(JobsTest, ARosterNamesThisNodeAtItsPlace) {
    begin_jobs();
    Roster roster = stranger(2);
    roster.members[0].node = "n7";
    EXPECT_EQ(run(jobs_->join(roster, 0)).code(), Code::invalid_argument);
    roster.members.push_back({"n0", "", {}});
    EXPECT_EQ(run(jobs_->join(roster, 2)).code(), Code::invalid_argument);
    ASSERT_TRUE(run(jobs_->join(roster, 1)).ok());
    EXPECT_FALSE(jobs_->coordinates(roster.incarnation));
}

TEST_F(JobsTest, OnlyWhatIsNewIsWritten) {
    begin_jobs();
    Roster roster = stranger(2);
    roster.members.push_back({"n1", "tcp://192.0.2.7:1", {}});
    ASSERT_TRUE(run(jobs_->join(roster, 0)).ok());
    const std::string path = scratch_layout().job(roster.incarnation);
    const std::uint64_t first = file_number(path);
    ASSERT_TRUE(run(jobs_->join(roster, 0)).ok());
    EXPECT_EQ(file_number(path), first);
    roster.members[1].address = "tcp://192.0.2.7:2";  // started again
    ASSERT_TRUE(run(jobs_->join(roster, 0)).ok());
    EXPECT_NE(file_number(path), first);
}

TEST_F(JobsTest, ManyRanksThatJoinAtOnceTakeTurns) {
    begin_jobs();
    const Roster roster = stranger(2);
    const auto join = [](Jobs& jobs, Roster of, std::size_t& joined) -> Task<void> {
        const Status status = co_await jobs.join(std::move(of), 0);
        joined += status.ok();
    };
    std::size_t joined = 0;
    Gate gate(world_->loop());
    for (int rank = 0; rank < 4; ++rank) gate.spawn(join(*jobs_, roster, joined));
    EXPECT_TRUE(jobs_->is_joining(roster.incarnation));
    EXPECT_TRUE(jobs_->known().empty());
    EXPECT_TRUE(run(gate.close(in(60 * second))));
    EXPECT_EQ(joined, 4u);
    EXPECT_FALSE(jobs_->is_joining(roster.incarnation));
}

TEST_F(JobsTest, AJobIsJoinedAgainByWhatScratchOrPersistentSaysOfIt) {
    begin_jobs();
    const Roster in_scratch = stranger(2), published = stranger(3), neither = stranger(4);
    jobs_->found({in_scratch});
    ASSERT_TRUE(run(files_->publish(published, 0)).ok());
    EXPECT_TRUE(run(jobs_->join_again(in_scratch.incarnation)).ok());
    EXPECT_TRUE(run(jobs_->join_again(published.incarnation)).ok());
    EXPECT_EQ(run(jobs_->join_again(neither.incarnation)).code(), Code::not_found);
    EXPECT_TRUE(node_->knows(in_scratch.incarnation) && node_->knows(published.incarnation));
}

// The node goes on with the job; the others hear of its address when persistent is back.
TEST_F(JobsTest, AJobOfAPersistentThatIsAwayIsPublishedLater) {
    begin_jobs();
    const Roster roster = stranger(2);
    fs::rename(persistent / "files", persistent / "away");
    ASSERT_TRUE(run(jobs_->join(roster, 0)).ok());
    fs::rename(persistent / "away", persistent / "files");
    EXPECT_FALSE(fs::exists(layout().job_roster(roster.incarnation)));
    bool over = false;
    Gate gate(world_->loop());
    gate.spawn(jobs_->publish_late([&over] { return over; }));
    EXPECT_TRUE(eventually([&] { return fs::exists(layout().job_node(roster.incarnation, 0)); }));
    over = true;
    EXPECT_TRUE(run(gate.close(in(60 * second))));
}

}  // namespace
}  // namespace cairn
