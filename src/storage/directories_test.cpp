// The driver of several roots: each a target, one that is away, one that hangs; and which driver a job has.
#include "storage/driver_testing.hpp"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Place>
struct DirectoriesDriverTest : testing::DriverTest<Place> {
    const std::string persistent = this->place.persistent();
    const std::string a = this->make_root("a"), b = this->make_root("b"), away = persistent + "/away";
    const std::unique_ptr<StorageDriver> driver = directories_driver(this->place.world(), persistent, {b, a, away});
};
TYPED_TEST_SUITE(DirectoriesDriverTest, testing::DriverPlaces);

TYPED_TEST(DirectoriesDriverTest, EachRootIsATarget) {
    EXPECT_THAT(this->driver->targets(), ElementsAre(this->b, this->a, this->away)) << "in the order of the setting";
    EXPECT_TRUE(this->driver->needs_target());
    const Status made = this->create(*this->driver, this->file_below(this->a, "part", this->a));
    ASSERT_TRUE(made.ok()) << made.to_string();
    EXPECT_EQ(this->placed.root, this->a);
    EXPECT_EQ(this->placed.target, this->a);
    EXPECT_EQ(this->placed.path, this->a + "/part");
    ASSERT_TRUE(this->placed.file);
    EXPECT_EQ(this->found(this->a + "/part"), Code::ok);
    EXPECT_EQ(this->create(*this->driver, this->file_below(this->a, "part", this->a)).code(), Code::already_exists);
    EXPECT_FALSE(this->placed.file);
}

TYPED_TEST(DirectoriesDriverTest, ARootThatIsAwayIsNamed) {
    const Status made = this->create(*this->driver, this->file_below(this->away, "part", this->away));
    EXPECT_EQ(made.code(), Code::unavailable) << made.to_string();
    EXPECT_THAT(made.text(), AllOf(HasSubstr("creating a part"), HasSubstr("somebody, has made its directory"), HasSubstr("mounted at " + this->away)));
    EXPECT_FALSE(this->placed.file);
    EXPECT_EQ(this->found(this->away), Code::not_found) << "nothing is made below a mount point";
    EXPECT_EQ(this->create(*this->driver, this->file_below(this->persistent, "no/part")).code(), Code::not_found) << "persistent is checked otherwise";
}

// Of a peer that has another list of roots.
TYPED_TEST(DirectoriesDriverTest, ATargetThatIsUnknownIsNoTarget) {
    ASSERT_EQ(root_of({this->a, this->b}, "/elsewhere"), 0u) << "so its file lies below persistent";
    ASSERT_TRUE(this->create(*this->driver, this->file_below(this->persistent, "part", "/elsewhere")).ok());
    EXPECT_EQ(this->placed.root, this->persistent);
    EXPECT_EQ(this->placed.target, "");
}

TYPED_TEST(DirectoriesDriverTest, PersistentMayBeOneOfThem) {
    const auto both = directories_driver(this->place.world(), this->persistent, {this->persistent, this->a});
    ASSERT_TRUE(this->create(*both, this->file_below(this->persistent, "part", this->persistent)).ok());
    EXPECT_EQ(this->placed.target, this->persistent);
}

TYPED_TEST(DirectoriesDriverTest, WhatRootsStillTakeIsToldOfEach) {
    const std::vector<TargetFill> fills = this->fill(*this->driver, {this->b, this->away, this->a});
    ASSERT_EQ(fills.size(), 3u);
    EXPECT_EQ(fills[0].name, this->a) << "by name";
    EXPECT_EQ(fills[1].name, this->away);
    EXPECT_EQ(fills[2].name, this->b);
    ASSERT_TRUE(fills[0].free_bytes.ok() && fills[2].free_bytes.ok());
    EXPECT_GT(*fills[0].free_bytes, 0u);
    EXPECT_EQ(fills[1].free_bytes.code(), Code::not_found);
}

using OnSimulatedRoots = DirectoriesDriverTest<testing::SimPlace>;

TEST_F(OnSimulatedRoots, SeveralThatHangTakeTheTimeOfOne) {
    const std::string bad_a = make_root("bad-a"), bad_b = make_root("bad-b");
    place.sim.faults().below = persistent + "/bad";
    place.sim.faults().below_is = sim::Faults::Below::hangs;
    const Nanos begun = place.sim.now();
    const std::vector<TargetFill> fills = fill(*driver, {a, bad_a, bad_b});
    EXPECT_LT(place.sim.now() - begun, io_wait + second);
    ASSERT_EQ(fills.size(), 3u);
    EXPECT_TRUE(fills[0].free_bytes.ok()) << "those that are there are not blamed";
    EXPECT_EQ(fills[1].free_bytes.code(), Code::deadline);
    EXPECT_EQ(fills[2].free_bytes.code(), Code::deadline);
}

TEST_F(OnSimulatedRoots, OneThatHangsIsWaitedForToTheDeadline) {
    place.sim.faults().below = a;
    place.sim.faults().below_is = sim::Faults::Below::hangs;
    const Nanos begun = place.sim.now();
    EXPECT_EQ(create(*driver, file_below(a, "part", a)).code(), Code::deadline);
    EXPECT_LT(place.sim.now() - begun, io_wait + second);
    EXPECT_FALSE(placed.file);
}

using OnRealRoots = DirectoriesDriverTest<testing::RealPlace>;

// Nothing is added to a name here, so only one that no file system takes is too long.
TEST_F(OnRealRoots, ANameThatIsTooLongIsRefused) {
    ASSERT_TRUE(create(*driver, file_below(a, std::string(255, 'n'), a)).ok());
    EXPECT_EQ(placed.target, a);
    const Status made = create(*driver, file_below(a, std::string(256, 'n'), a));
    EXPECT_FALSE(made.ok());
    EXPECT_NE(made.code(), Code::unavailable) << "its root is there: " << made.to_string();
    EXPECT_FALSE(placed.file);
}

using WhichDriver = testing::DriverTest<testing::SimPlace>;

TEST_F(WhichDriver, ItFollowsFromTheRoots) {
    const auto targets = std::make_shared<PlacementTargets>(PlacementTargets{"sim", {"0", "1"}, std::string(sim::target_mark)});
    EXPECT_THAT(storage_driver(place.world(), place.persistent(), {}, targets)->targets(), ElementsAre("0", "1"));
    EXPECT_THAT(storage_driver(place.world(), place.persistent(), {"/r"}, targets)->targets(), ElementsAre("/r")) << "roots, and the file system's targets, not both";
}

}  // namespace
}  // namespace cairn
