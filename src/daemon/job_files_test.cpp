#include "daemon/job_files.hpp"

#include "daemon/jobs_testing.hpp"

namespace cairn {
namespace {

TEST_F(JobsTest, FilesOfAJobComeAndGo) {
    begin_jobs();
    const Roster roster = stranger(2);
    ASSERT_TRUE(run(files_->keep(roster)).ok());
    ASSERT_TRUE(run(files_->publish(roster, 0)).ok());
    struct stat about = {};
    ASSERT_EQ(::stat(scratch_layout().job(roster.incarnation).c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u);  // there is a secret in it
    const auto kept = run(files_->scan(in(io_wait_)));
    ASSERT_TRUE(kept.ok() && kept->rosters.size() == 1);
    EXPECT_EQ(kept->rosters[0], roster);
    const auto published = run(files_->read_published(roster.incarnation));
    ASSERT_TRUE(published.ok()) << published.status().to_string();
    EXPECT_EQ(*published, roster);
    run(files_->remove(roster, "n0", in(io_wait_)));
    EXPECT_FALSE(fs::exists(scratch_layout().job(roster.incarnation)));
    EXPECT_FALSE(fs::exists(layout().job(roster.incarnation)));
}

TEST_F(JobsTest, TheRosterIsTheCoordinatorsToTakeAway) {
    begin_jobs();
    Roster roster = stranger(2);
    roster.members.push_back({"n1", "", {}});
    ASSERT_TRUE(run(files_->publish(roster, 0)).ok());
    ASSERT_TRUE(run(files_->publish(roster, 1)).ok());
    run(files_->remove(roster, "n1", in(io_wait_)));
    EXPECT_FALSE(fs::exists(layout().job_node(roster.incarnation, 1)));
    EXPECT_TRUE(fs::exists(layout().job_node(roster.incarnation, 0)));
    EXPECT_TRUE(fs::exists(layout().job_roster(roster.incarnation)));
}

TEST_F(JobsTest, APersistentThatIsNotThereSaysNothingOfAJob) {
    begin_jobs();
    const Roster roster = stranger(2);
    EXPECT_EQ(run(files_->read_published(roster.incarnation)).code(), Code::not_found);
    fs::rename(persistent / "files", persistent / "away");
    EXPECT_EQ(run(files_->read_published(roster.incarnation)).code(), Code::unavailable);
    EXPECT_EQ(run(files_->publish(roster, 0)).code(), Code::unavailable);
}

// Whatever stands in the way of a record, it is not this job's.
TEST_F(JobsTest, ARosterOfAnotherJobIsCorrupt) {
    begin_jobs();
    const Roster roster = stranger(2), other = stranger(3);
    ASSERT_TRUE(run(files_->publish(roster, 0)).ok());
    fs::rename(layout().job(roster.incarnation), layout().job(other.incarnation));
    EXPECT_EQ(run(files_->read_published(other.incarnation)).code(), Code::corrupt);
}

// Nobody waits longer for scratch than the deadline, and the loop not at all.
TEST_F(JobsTest, ARosterThatDoesNotGoHoldsNobodyUp) {
    begin_jobs();
    const Roster roster = stranger(2);
    ASSERT_TRUE(run(files_->keep(roster)).ok());
    storage_->hang_at = scratch_layout().job(roster.incarnation);
    run(files_->remove(roster, "n0", in(20 * millisecond)));
    EXPECT_TRUE(fs::exists(storage_->hang_at));
}

}  // namespace
}  // namespace cairn
