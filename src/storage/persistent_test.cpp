// The driver of persistent: files without targets, on a target, and where the file system does not do as it was told.
#include "storage/driver_testing.hpp"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<StorageDriver> persistent_with(World world, const std::string& persistent, std::vector<std::string> names) {
    return persistent_driver(world, persistent, std::make_shared<PlacementTargets>(PlacementTargets{"sim", std::move(names), std::string(sim::target_mark)}));
}

template <class Place>
struct PersistentDriverTest : testing::DriverTest<Place> {};
TYPED_TEST_SUITE(PersistentDriverTest, testing::DriverPlaces);

TYPED_TEST(PersistentDriverTest, WithoutTargetsFilesGoWhereTheyGo) {
    const std::string root = this->place.persistent();
    const auto driver = persistent_with(this->place.world(), root, {});
    EXPECT_TRUE(driver->targets().empty());
    EXPECT_FALSE(driver->needs_target());
    EXPECT_TRUE(this->fill(*driver, {}).empty());
    const Status made = this->create(*driver, this->file_below(root, "part"));
    ASSERT_TRUE(made.ok()) << made.to_string();
    EXPECT_EQ(this->placed.root, root);
    EXPECT_EQ(this->placed.path, root + "/part");
    EXPECT_EQ(this->placed.target, "");
    ASSERT_TRUE(this->placed.file);
    EXPECT_EQ(this->placed.file->path(), root + "/part");
    EXPECT_EQ(this->found(root + "/part"), Code::ok);
}

TYPED_TEST(PersistentDriverTest, ATargetThatIsUnknownIsTheFileSystemsChoice) {
    const std::string root = this->place.persistent();
    const auto driver = persistent_with(this->place.world(), root, {"0", "1"});
    const Status made = this->create(*driver, this->file_below(root, "part", "2"));
    ASSERT_TRUE(made.ok()) << made.to_string();
    EXPECT_EQ(this->placed.target, "") << "another node may have found others";
    EXPECT_EQ(this->found(root + "/part"), Code::ok);
}

TYPED_TEST(PersistentDriverTest, AFileThatCanNotBeMadeIsNobodys) {
    const std::string root = this->place.persistent();
    const auto driver = persistent_with(this->place.world(), root, {});
    const Status nowhere = this->create(*driver, this->file_below(root, "away/part"));
    EXPECT_EQ(nowhere.code(), Code::not_found) << "a leader's persistent is checked otherwise";
    EXPECT_THAT(nowhere.text(), HasSubstr("creating a part"));
    EXPECT_FALSE(this->placed.file);
    ASSERT_TRUE(this->create(*driver, this->file_below(root, "part")).ok());
    EXPECT_EQ(this->create(*driver, this->file_below(root, "part")).code(), Code::already_exists);
    EXPECT_FALSE(this->placed.file) << "it is another's";
}

struct OnSimulatedTargets : testing::DriverTest<testing::SimPlace> {
    OnSimulatedTargets() { place.sim.model().target_rates = {1e9, 1e9, 1e9}; }
    std::optional<std::size_t> target_of(const std::string& path) { return place.sim.persistent().find(path).value()->target; }
    const std::string root = place.persistent();
    const std::unique_ptr<StorageDriver> driver = persistent_with(place.world(), root, {"0", "1", "2"});
};

TEST_F(OnSimulatedTargets, AFileLiesOnItsTargetUnderItsOwnName) {
    EXPECT_THAT(driver->targets(), ElementsAre("0", "1", "2"));
    const Status made = create(*driver, file_below(root, "part-0", "2"));
    ASSERT_TRUE(made.ok()) << made.to_string();
    EXPECT_EQ(placed.target, "2");
    EXPECT_EQ(placed.path, root + "/part-0");
    EXPECT_EQ(target_of(root + "/part-0"), 2u);
}

TEST_F(OnSimulatedTargets, ANameThatWouldBecomeTooLongIsTheFileSystemsToPlace) {
    const std::string name = "part-0-of-9." + std::string(255 - 12 - sim::target_mark.size(), 'n');  // without room for the target
    ASSERT_TRUE(create(*driver, file_below(root, name, "2")).ok());
    EXPECT_EQ(placed.target, "");
    EXPECT_EQ(target_of(root + "/" + name), 0u);
    const std::string fits = name.substr(0, name.size() - 1);
    ASSERT_TRUE(create(*driver, file_below(root, fits, "2")).ok());
    EXPECT_EQ(placed.target, "2");
}

TEST_F(OnSimulatedTargets, AFileThatGotAnotherNameIsNotTakenForMade) {
    place.sim.model().targets_gone = {2};
    const Status made = create(*driver, file_below(root, "part-0", "2"));
    EXPECT_EQ(made.code(), Code::io_error);
    EXPECT_THAT(made.text(), HasSubstr("does not know the storage target 2 any more"));
    EXPECT_TRUE(placed.file) << "it was made, so whoever asked removes it";
    EXPECT_EQ(placed.target, "");
    EXPECT_EQ(found(root + "/part-0"), Code::not_found);
    EXPECT_EQ(found(root + "/part-0" + std::string(sim::target_mark) + "2"), Code::not_found) << "the other name is cleared away";
}

TEST_F(OnSimulatedTargets, WhatTheyStillTakeIsAskedOfNobody) {
    int operations = 0;
    place.sim.set_observer([&](sim::Process&, const char*, const std::string&) { ++operations; });
    const std::vector<TargetFill> fills = fill(*driver, {"0", "2"});
    ASSERT_EQ(fills.size(), 2u);
    EXPECT_EQ(fills[0].name, "0");
    EXPECT_EQ(fills[1].name, "2");
    for (const TargetFill& each : fills) EXPECT_EQ(each.free_bytes.code(), Code::unsupported);
    EXPECT_EQ(operations, 0);
}

struct OnTargetsThatAreTold : OnSimulatedTargets {
    static std::shared_ptr<PlacementTargets> told() { return std::make_shared<PlacementTargets>(PlacementTargets{"sim", {"0", "1", "2"}, {}, "sim"}); }
    const std::unique_ptr<StorageDriver> by_call = persistent_driver(place.world(), root, told());
};

TEST_F(OnTargetsThatAreTold, AFileLiesOnItsTarget) {
    ASSERT_TRUE(create(*by_call, file_below(root, "part-0", "2")).ok());
    EXPECT_EQ(placed.target, "2");
    EXPECT_EQ(placed.path, root + "/part-0");
    EXPECT_EQ(target_of(root + "/part-0"), 2u);
    const std::string long_name(255, 'n');
    ASSERT_TRUE(create(*by_call, file_below(root, long_name, "1")).ok());
    EXPECT_EQ(target_of(root + "/" + long_name), 1u) << "its name has nothing to do with it";
}

TEST_F(OnTargetsThatAreTold, OneThatIsGoneCostsNothingButThePlace) {
    place.sim.model().targets_gone = {2};
    ASSERT_TRUE(create(*by_call, file_below(root, "part-0", "2")).ok());
    EXPECT_EQ(placed.target, "");
    EXPECT_EQ(found(root + "/part-0"), Code::ok);
    ASSERT_TRUE(create(*by_call, file_below(root, "part-1", "7")).ok());
    EXPECT_EQ(placed.target, "") << "another node may have found others";
}

TEST_F(OnTargetsThatAreTold, WhoCanNotSayWhatTheyTakeIsNoTargetsFault) {
    for (const TargetFill& each : fill(*by_call, {"0", "1"})) EXPECT_EQ(each.free_bytes.code(), Code::unsupported);
}

TEST_F(OnSimulatedTargets, AFileSystemThatHangsIsWaitedForOnce) {
    place.sim.faults().below = root + "/part";
    place.sim.faults().below_is = sim::Faults::Below::hangs;
    const Nanos begun = place.sim.now();
    EXPECT_EQ(create(*driver, file_below(root, "part-0", "2")).code(), Code::deadline);
    EXPECT_LT(place.sim.now() - begun, io_wait + second);
    EXPECT_FALSE(placed.file);
}

}  // namespace
}  // namespace cairn
