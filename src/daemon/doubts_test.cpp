#include "daemon/doubts.hpp"

#include "daemon/jobs_testing.hpp"

namespace cairn {
namespace {

class DoubtsTest : public JobsTest {
  protected:
    // Version 1 of both ranks, committed, with its checksums in scratch; then another daemon, after a restart of the machine.
    void start_again(const std::string& noted_boot = "another boot") {
        begin_jobs();
        checkpoint(1);
        EXPECT_TRUE(eventually([&] {
            const ScratchScan scan = *run_scan();
            return scan.images.size() == 2 && check_proof(scan.images[0]).ok() && check_proof(scan.images[1]).ok();
        }));
        std::ofstream(scratch_layout().boot()) << noted_boot << "\n";
        slots_ = std::make_unique<Slots>(world_->loop(), *workers_, *node_, directory_, SlotSettings());
        doubts_.emplace(world(), *workers_, *slots_, scratch_layout(), io_wait_);
    }
    void TearDown() override {
        doubts_.reset();
        JobsTest::TearDown();
    }
    Result<ScratchScan> run_scan() {
        World world = this->world();
        return run(scan_scratch(world, scratch_layout(), io_wait_));
    }
    // Those that are left, adopted.
    std::vector<LocalImage> drop_unproved() {
        ScratchScan scan = *run_scan();
        EXPECT_TRUE(run(doubts_->drop_unproved(scan, never_over)).ok());
        for (const LocalImage& image : scan.images) slots_->adopt(image, false);
        return scan.images;
    }
    // How many of those that were settled are to be flushed, and how many are not.
    std::pair<int, int> verify() {
        std::pair<int, int> settled;
        const auto count = [](bool to_be_flushed, std::pair<int, int>& out) -> Task<void> {
            ++(to_be_flushed ? out.first : out.second);
            co_return;
        };
        Doubts::Settled hear = [&](const LocalImage&, bool to_be_flushed) { return count(to_be_flushed, settled); };
        run(doubts_->verify(hear, never_over));
        return settled;
    }
    std::string noted() {
        std::string id;
        std::getline(std::ifstream(scratch_layout().boot()), id);
        return id;
    }
    static std::string kernel_boot() {
        std::string id;
        std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
        return id;
    }

    std::optional<Doubts> doubts_;
};

TEST_F(DoubtsTest, OfTheSameBootNothingIsInDoubt) {
    start_again(kernel_boot());
    const std::vector<LocalImage> images = drop_unproved();
    ASSERT_EQ(images.size(), 2u);
    EXPECT_FALSE(doubts_->take(images[0], false));
    EXPECT_FALSE(doubts_->verifying());
}

TEST_F(DoubtsTest, WhatProvesItselfIsBelievedOnceItsDataWereRead) {
    start_again();
    const std::vector<LocalImage> images = drop_unproved();
    ASSERT_EQ(images.size(), 2u);
    EXPECT_TRUE(doubts_->take(images[0], false));
    EXPECT_TRUE(doubts_->take(images[1], true));
    EXPECT_TRUE(doubts_->verifying());
    EXPECT_EQ(noted(), kernel_boot());  // what is sealed from now on is not in doubt
    EXPECT_GT(fs::file_size(scratch_layout().boot()), kernel_boot().size() + 1);  // these still are
    EXPECT_EQ(verify(), std::pair(1, 1));  // who is committed need not be flushed
    EXPECT_FALSE(doubts_->verifying());
    EXPECT_EQ(fs::file_size(scratch_layout().boot()), kernel_boot().size() + 1);
}

TEST_F(DoubtsTest, WhatIsTornGoes) {
    start_again();
    const std::vector<LocalImage> images = drop_unproved();
    ASSERT_EQ(images.size(), 2u);
    for (const LocalImage& image : images) EXPECT_TRUE(doubts_->take(image, false));
    std::fstream file(images[0].path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(images[0].header.data_offset));
    file.put('x');
    file.close();
    EXPECT_EQ(verify(), std::pair(1, 1));
    EXPECT_FALSE(fs::exists(images[0].path));
    EXPECT_TRUE(fs::exists(images[1].path));
    EXPECT_FALSE(slots_->holds(images[0].header.key, images[0].header.rank, images[0].path));
}

TEST_F(DoubtsTest, WhatHasNoProofGoesAtOnce) {
    start_again();
    const LocalImage unproved = leave_image(roster_, 2);
    doubts_.emplace(world(), *workers_, *slots_, scratch_layout(), io_wait_);
    const std::vector<LocalImage> images = drop_unproved();
    EXPECT_EQ(images.size(), 2u);
    EXPECT_FALSE(fs::exists(unproved.path));
}

TEST_F(DoubtsTest, WhatScratchLetGoMeanwhileIsSettled) {
    start_again();
    const std::vector<LocalImage> images = drop_unproved();
    ASSERT_EQ(images.size(), 2u);
    for (const LocalImage& image : images) EXPECT_TRUE(doubts_->take(image, true));
    slots_->discard(images[0].path);
    EXPECT_EQ(verify(), std::pair(0, 2));
    EXPECT_FALSE(doubts_->verifying());
}

}  // namespace
}  // namespace cairn
