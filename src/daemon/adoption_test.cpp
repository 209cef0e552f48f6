#include "daemon/adoption.hpp"

#include <sstream>

#include "base/log.hpp"
#include "daemon/jobs_testing.hpp"
#include "daemon/unreadable_testing.hpp"

namespace cairn {
namespace {

class AdoptionTest : public JobsTest {
  protected:
    void start_again() {
        note_boot();
        adoption_.emplace(world(), *workers_, *node_, *slots_, *files_, *jobs_, scratch_layout(), "n0", layout(), RetentionRule(), io_wait_);
    }
    std::optional<Adoption> adoption_;
};

TEST_F(AdoptionTest, TakesWhatIsThereAndFlushesWhatIsNotCommitted) {
    begin_jobs();
    checkpoint(1);
    const Roster unfinished = stranger(2), ended = stranger(3);
    for (const Roster& roster : {unfinished, ended}) {
        ASSERT_TRUE(run(files_->keep(roster)).ok());
        ASSERT_TRUE(run(files_->publish(roster, 0)).ok());
    }
    const LocalImage image = leave_image(unfinished, 2);
    const std::string torn = directory_ + "/slot-1";
    std::ofstream(torn) << "nothing";
    start_again();
    EXPECT_FALSE(adoption_->knows_images());
    ASSERT_TRUE(run(adoption_->adopt(never_over)).ok());
    EXPECT_TRUE(adoption_->knows_images());
    EXPECT_FALSE(adoption_->has_unread() || adoption_->verifying());
    EXPECT_EQ(held(), (std::vector<Version>{1, 2}));
    EXPECT_TRUE(slots_->knows_committed({"heat", 1, roster_.incarnation}));
    EXPECT_TRUE(run(node_->wait(image.header.key, Level::committed, in(60 * second))).ok());
    EXPECT_TRUE(eventually([&] { return !fs::exists(torn); }));
    EXPECT_TRUE(fs::exists(scratch_layout().job(unfinished.incarnation)));
    EXPECT_FALSE(fs::exists(scratch_layout().job(ended.incarnation)));
    EXPECT_FALSE(fs::exists(layout().job(ended.incarnation)));
    EXPECT_TRUE(jobs_->found().empty());
}

TEST_F(AdoptionTest, GoesOnWhenPersistentIsBack) {
    begin_jobs();
    const Roster roster = stranger(2);
    ASSERT_TRUE(run(files_->publish(roster, 0)).ok());
    const LocalImage image = leave_image(roster, 1);
    fs::rename(persistent / "files", persistent / "away");
    start_again();
    ASSERT_TRUE(run(adoption_->adopt(never_over)).ok());
    EXPECT_TRUE(adoption_->unseen().has_of(roster.incarnation));
    EXPECT_FALSE(node_->knows(roster.incarnation));
    fs::rename(persistent / "away", persistent / "files");
    run(adoption_->go_on(never_over));
    EXPECT_FALSE(adoption_->unseen().has_of(roster.incarnation));
    EXPECT_TRUE(run(node_->wait(image.header.key, Level::committed, in(60 * second))).ok());
}

TEST_F(AdoptionTest, LeavesJobsAloneWhereAFileCanNotBeRead) {
    begin_jobs();
    const Roster ended = stranger(2);
    ASSERT_TRUE(run(files_->keep(ended)).ok());
    const LocalImage image = leave_image(stranger(3), 1);
    io_wait_ = 100 * millisecond;
    test::Unreadable unreadable(image.path);
    start_again();
    ASSERT_TRUE(run(adoption_->adopt(never_over)).ok());
    unreadable.end();
    EXPECT_TRUE(adoption_->has_unread());
    EXPECT_FALSE(adoption_->problem().ok());
    EXPECT_TRUE(fs::exists(scratch_layout().job(ended.incarnation)));
    EXPECT_TRUE(fs::exists(image.path));
}

// A newer Cairn's, whatever it holds: it stays, is nobody's image here, and is told with what to do. The job that it may be of stays, too.
TEST_F(AdoptionTest, LeavesSlotsOfAKindThatItDoesNotKnow) {
    begin_jobs();
    const Roster ended = stranger(2);
    ASSERT_TRUE(run(files_->keep(ended)).ok());
    const LocalImage image = leave_image(stranger(3), 1);
    const std::string sealed = directory_ + "/another-1", torn = directory_ + "/another-2", known = directory_ + "/slot-1";
    fs::rename(image.path, sealed);
    for (const std::string& path : {torn, known}) std::ofstream(path) << "nothing";
    const std::string log = scratch / "log";
    ASSERT_TRUE(log_to_file(log, LogLevel::warning).ok());
    start_again();
    const Status adopted = run(adoption_->adopt(never_over));
    log_off();
    ASSERT_TRUE(adopted.ok());
    EXPECT_TRUE(held().empty());
    EXPECT_TRUE(adoption_->has_unsupported());
    EXPECT_FALSE(adoption_->has_unread()) << "no image of this Cairn's is missing";
    std::stringstream told;
    told << std::ifstream(log).rdbuf();
    EXPECT_TRUE(eventually([&] { return !fs::exists(known); }));
    for (const std::string& path : {sealed, torn}) {
        EXPECT_TRUE(fs::exists(path)) << path;
        EXPECT_NE(told.str().find("warning slot-of-another-release path=" + path), std::string::npos) << told.str();
    }
    EXPECT_NE(told.str().find("Start the release of Cairn that wrote it"), std::string::npos) << told.str();
    EXPECT_TRUE(fs::exists(scratch_layout().job(ended.incarnation)));
}

}  // namespace
}  // namespace cairn
