#include "daemon/upkeep.hpp"

#include "daemon/slots_testing.hpp"

namespace cairn {
namespace {

class UpkeepTest : public testing::Test {
  protected:
    void SetUp() override {
        layout_ = ScratchLayout::of(scratch_.path(), ::geteuid(), "n0", "/persistent");
        Result<Door> door = Door::open(scratch_.path(), layout_);
        ASSERT_TRUE(door.ok() && door->lock().value_or(false));
        door_ = std::make_shared<Door>(std::move(door).value());
        upkeep_.emplace(workers_, *loop_, door_, log_file(), LogLevel::info, 60 * second);
    }
    void TearDown() override { log_off(); }
    std::string log_file() const { return scratch_ / "log"; }

    test::TemporaryDirectory scratch_;
    std::unique_ptr<Loop> loop_ = test::make_loop();
    WorkerPool workers_{loop_->remote(), {}};
    ScratchLayout layout_;
    std::shared_ptr<Door> door_;
    std::optional<Upkeep> upkeep_;
};

TEST_F(UpkeepTest, NoticesThatScratchWasRemoved) {
    EXPECT_TRUE(loop_->run(upkeep_->look()).ok());
    fs::rename(layout_.root, scratch_ / "away");
    EXPECT_EQ(loop_->run(upkeep_->look()).code(), Code::not_found);
    fs::rename(scratch_ / "away", layout_.root);
    EXPECT_TRUE(loop_->run(upkeep_->look()).ok());
    fs::remove(layout_.lock());
    EXPECT_EQ(loop_->run(upkeep_->look()).code(), Code::not_found);
}

TEST_F(UpkeepTest, TakesTheSocketAwayThatIsItsOwn) {
    ASSERT_TRUE(door_->listen().ok());
    ASSERT_TRUE(fs::exists(layout_.socket()));
    loop_->run(upkeep_->remove_socket(loop_->in(60 * second)));
    EXPECT_FALSE(fs::exists(layout_.socket()));
}

TEST_F(UpkeepTest, ALongLogIsContinuedInANewOne) {
    ASSERT_TRUE(log_to_file(log_file(), LogLevel::info).ok());
    log_info("first");
    ASSERT_TRUE(keep_log_short(log_file(), LogLevel::info, 1 << 20).ok());
    EXPECT_FALSE(fs::exists(log_file() + ".1"));
    ASSERT_TRUE(keep_log_short(log_file(), LogLevel::info, 1).ok());
    EXPECT_TRUE(fs::exists(log_file() + ".1"));
    std::string line;
    std::getline(std::ifstream(log_file()), line);
    EXPECT_NE(line.find("log-continued"), std::string::npos) << line;
}

// Under the name lies what another daemon writes, who has the scratch now.
TEST_F(UpkeepTest, OnlyTheLogOfItsOwnScratchIsContinued) {
    ASSERT_TRUE(log_to_file(log_file(), LogLevel::info).ok());
    fs::resize_file(log_file(), 16 << 20);
    const std::string lock = layout_.lock();
    fs::rename(lock, scratch_ / "lock");
    std::ofstream(lock) << "1\n";
    EXPECT_EQ(loop_->run(upkeep_->look()).code(), Code::not_found);
    EXPECT_FALSE(fs::exists(log_file() + ".1"));
    fs::rename(scratch_ / "lock", lock);
    EXPECT_TRUE(loop_->run(upkeep_->look()).ok());
    EXPECT_TRUE(fs::exists(log_file() + ".1"));
}

TEST_F(UpkeepTest, NoLogFileIsKeptShort) { EXPECT_TRUE(keep_log_short("", LogLevel::info, 0).ok()); }

}  // namespace
}  // namespace cairn
