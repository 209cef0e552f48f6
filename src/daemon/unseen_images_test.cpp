#include "daemon/unseen_images.hpp"

#include "daemon/jobs_testing.hpp"

namespace cairn {
namespace {

class UnseenImagesTest : public JobsTest {
  protected:
    // An image of a job that has not joined, in scratch since before.
    LocalImage left_by(const Roster& roster) {
        const LocalImage image = leave_image(roster, 1);
        slots_->adopt(image, false);
        unseen_.emplace(world(), *node_, *slots_, *jobs_, io_wait_);
        unseen_->add(image.path, roster.incarnation);
        EXPECT_TRUE(unseen_->has_of(roster.incarnation));
        EXPECT_FALSE(unseen_->has_of(roster_.incarnation));
        return image;
    }
    bool is_given(const LocalImage& image) {
        return !unseen_->has_of(image.header.key.incarnation) && node_->state(image.header.key).level >= Level::captured;
    }
    std::optional<UnseenImages> unseen_;
};

TEST_F(UnseenImagesTest, OneWhoseJobIsKnownIsGiven) {
    begin_jobs();
    const Roster roster = stranger(2);
    jobs_->found({roster});
    const LocalImage image = left_by(roster);
    run(unseen_->give(image));
    EXPECT_TRUE(is_given(image));
    EXPECT_FALSE(unseen_->has_waiting());
}

TEST_F(UnseenImagesTest, OneOfWhoseJobNothingTellsWaitsForSomebodyWhoDoes) {
    begin_jobs();
    const Roster roster = stranger(2);
    const LocalImage image = left_by(roster);
    run(unseen_->give(image));
    EXPECT_FALSE(is_given(image));
    EXPECT_FALSE(unseen_->has_waiting());
    run(unseen_->give_orphans(roster.incarnation));  // nobody told
    EXPECT_TRUE(unseen_->has_of(roster.incarnation));
    ASSERT_TRUE(run(jobs_->join(roster, 0)).ok());
    run(unseen_->give_orphans(roster.incarnation));
    EXPECT_TRUE(is_given(image));
}

TEST_F(UnseenImagesTest, OneWhoseJobCanNotBeLookedUpIsTriedAgain) {
    begin_jobs();
    const Roster roster = stranger(2);
    ASSERT_TRUE(run(files_->publish(roster, 0)).ok());
    const LocalImage image = left_by(roster);
    fs::rename(persistent / "files", persistent / "away");
    run(unseen_->give(image));
    EXPECT_TRUE(unseen_->has_waiting());
    run(unseen_->give_waiting());
    EXPECT_TRUE(unseen_->has_waiting());
    EXPECT_TRUE(unseen_->has_of(roster.incarnation));
    fs::rename(persistent / "away", persistent / "files");
    run(unseen_->give_waiting());
    EXPECT_TRUE(is_given(image));
    EXPECT_FALSE(unseen_->has_waiting());
}

TEST_F(UnseenImagesTest, OneThatLeftScratchMeanwhileIsNobodys) {
    begin_jobs();
    const Roster roster = stranger(2);
    jobs_->found({roster});
    const LocalImage image = left_by(roster);
    slots_->discard(image.path);
    run(unseen_->give(image));
    EXPECT_FALSE(unseen_->has_of(roster.incarnation));
    EXPECT_EQ(node_->state(image.header.key).level, Level::none);
}

}  // namespace
}  // namespace cairn
