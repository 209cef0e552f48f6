#include "daemon/epochs.hpp"

#include "daemon/jobs_testing.hpp"

namespace cairn {
namespace {

class EpochsTest : public JobsTest {
  protected:
    void begin_epochs() {
        begin_jobs();
        epochs_.emplace(world(), layout(), io_wait_);
    }
    void TearDown() override {
        epochs_.reset();
        JobsTest::TearDown();
    }
    Status check(Version version, Nanos wait = 60 * second) { return run(epochs_->check({"heat", version, roster_.incarnation}, roster_.epoch, wait)); }
    std::optional<Epochs> epochs_;
};

TEST_F(EpochsTest, NobodyOpenedAfterThisOne) {
    begin_epochs();
    EXPECT_TRUE(check(1).ok());
    EXPECT_FALSE(epochs_->busy(roster_.incarnation));
}

TEST_F(EpochsTest, WhoOpenedAfterIsNamedForGood) {
    begin_epochs();
    stranger(2);
    const Status told = check(1);
    EXPECT_EQ(told.code(), Code::superseded);
    EXPECT_NE(told.text().find("process 1 on test"), std::string::npos) << told.text();
    fs::remove(layout().lineage_open("heat", 2));
    EXPECT_EQ(check(2).code(), Code::superseded) << "epochs only rise";
    epochs_->forget(roster_.incarnation);
    EXPECT_TRUE(check(3).ok());
}

// Damaged, it says as much as whole.
TEST_F(EpochsTest, ARecordThatCanNotBeReadIsAnOpen) {
    begin_epochs();
    std::ofstream(layout().lineage_open("heat", 2)) << "nonsense";
    EXPECT_EQ(check(1).code(), Code::superseded);
}

// One look a version: a rank that asks again hears what was found.
TEST_F(EpochsTest, AVersionIsLookedForOnce) {
    begin_epochs();
    EXPECT_TRUE(check(1).ok());
    stranger(2);
    EXPECT_TRUE(check(1).ok());
    EXPECT_EQ(check(2).code(), Code::superseded);
}

TEST_F(EpochsTest, NobodyWaitsLongerThanHeWants) {
    begin_epochs();
    stranger(2);
    EXPECT_TRUE(check(1, 0).ok());  // not known yet: the next checkpoint is told
    EXPECT_TRUE(epochs_->busy(roster_.incarnation));
    EXPECT_TRUE(eventually([&] { return !epochs_->busy(roster_.incarnation); }));
    EXPECT_EQ(check(2, 0).code(), Code::superseded);
}

}  // namespace
}  // namespace cairn
