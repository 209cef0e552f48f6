#include "daemon/scratch_look.hpp"

#include "daemon/jobs_testing.hpp"

namespace cairn {
namespace {

TEST_F(JobsTest, ALookFindsJobsAndImages) {
    begin_jobs();
    const Roster roster = stranger(2);
    ASSERT_TRUE(run(files_->keep(roster)).ok());
    const LocalImage left = leave_image(roster, 1);
    std::ofstream(directory_ + "/slot-1") << "nothing";
    ScratchLook look(world(), scratch_layout(), io_wait_);
    const auto jobs = run(look.jobs(never_over));
    ASSERT_TRUE(jobs.ok() && jobs->rosters.size() == 1);
    EXPECT_EQ(jobs->rosters[0].incarnation, roster.incarnation);
    const auto images = run(look.images(never_over));
    ASSERT_TRUE(images.ok() && images->images.size() == 1);
    EXPECT_EQ(images->images[0].path, left.path);
    EXPECT_EQ(images->free_slots, std::vector<std::string>{directory_ + "/slot-1"});
    EXPECT_TRUE(look.problem().ok());
}

Task<void> look_into(ScratchLook& look, std::function<bool()> over, std::optional<Code>* out) {
    const Result<ScratchScan> scan = co_await look.images(std::move(over));
    *out = scan.code();
}

TEST_F(JobsTest, ADirectoryIsAskedUntilItAnswersOrNobodyWaits) {
    begin_jobs();
    for (const bool answers : {true, false}) {
        storage_->hang_at = directory_;
        ScratchLook look(world(), scratch_layout(), 20 * millisecond);
        bool over = false;
        std::optional<Code> code;
        Gate gate(world_->loop());
        gate.spawn(look_into(look, [&over] { return over; }, &code));
        EXPECT_TRUE(eventually([&] { return !look.problem().ok(); }));
        EXPECT_FALSE(code.has_value());
        if (answers) storage_->hang_at.clear();
        else over = true;
        EXPECT_TRUE(eventually([&] { return code.has_value(); }));
        EXPECT_EQ(code, answers ? Code::ok : Code::cancelled);
    }
}

TEST(ScratchLook, OnlyWhatMayPassIsWorthAnotherLook) {
    const Unread damaged{"a", corrupt("x")}, away{"b", unavailable("y")};
    EXPECT_EQ(first_passing({damaged}), nullptr);
    const std::vector<Unread> both = {damaged, away};
    EXPECT_EQ(first_passing(both), &both[1]);
}

}  // namespace
}  // namespace cairn
