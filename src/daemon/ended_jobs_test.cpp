#include "daemon/ended_jobs.hpp"

#include "daemon/jobs_testing.hpp"

namespace cairn {
namespace {

class EndedJobsTest : public JobsTest {
  protected:
    void begin_ended() {
        begin_jobs();
        ended_.emplace(world(), *node_, *slots_, *files_, *jobs_, "n0");
    }
    Roster joined(std::uint64_t epoch) {
        const Roster roster = stranger(epoch);
        EXPECT_TRUE(run(jobs_->join(roster, 0)).ok());
        return roster;
    }
    bool has_files(const Roster& roster) {
        const bool in_scratch = fs::exists(scratch_layout().job(roster.incarnation));
        EXPECT_EQ(in_scratch, fs::exists(layout().job(roster.incarnation)));
        return in_scratch;
    }
    std::optional<EndedJobs> ended_;
};

TEST_F(EndedJobsTest, IsWhatNobodyHasForAWhile) {
    begin_ended();
    const Id128 had = joined(2).incarnation, left = joined(3).incarnation;
    EXPECT_TRUE(ended_->left_for(3600 * second, {had}).empty());
    EXPECT_EQ(ended_->left_for(0, {had}), std::vector<Id128>{left});
    run(short_sleep(world_->loop()));
    EXPECT_EQ(ended_->left_for(10 * millisecond, {had}), std::vector<Id128>{left});  // since the first look
    ended_->begin_anew(left);
    EXPECT_TRUE(ended_->left_for(10 * millisecond, {had}).empty());
    EXPECT_TRUE(ended_->left_for(3600 * second, {}).empty());
}

TEST_F(EndedJobsTest, IsNothingThatHasAnImageToFinish) {
    begin_ended();
    const Roster open = joined(2);
    const LocalImage image = leave_image(open, 1);
    slots_->adopt(image, false);
    ended_.emplace(world(), *node_, *slots_, *files_, *jobs_, "n0");
    EXPECT_TRUE(ended_->left_for(0, {}).empty());
    run(ended_->remove_files(true, in(io_wait_)));
    EXPECT_TRUE(has_files(open));
    slots_->discard(image.path);
    EXPECT_EQ(ended_->left_for(0, {}), std::vector<Id128>{open.incarnation});
    run(ended_->remove_files(true, in(io_wait_)));
    EXPECT_FALSE(has_files(open));
}

// Of a job that was let go of only its file tells, and of its images only who has looked.
TEST_F(EndedJobsTest, IsForgottenByItsFileWhereAllOfScratchWasSeen) {
    begin_ended();
    const Roster known = joined(2), let_go = joined(3);
    jobs_->let_go(let_go.incarnation);
    run(ended_->remove_files(false, in(io_wait_)));
    EXPECT_FALSE(has_files(known));
    EXPECT_TRUE(has_files(let_go));
    run(ended_->remove_files(true, in(io_wait_)));
    EXPECT_FALSE(has_files(let_go));
}

}  // namespace
}  // namespace cairn
