// Files that are placed by a call, on this machine: by a placer that does, refuses, half does, or finds a file there; and what the one of the file systems says of it in the log.
#include "storage/placer.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/log.hpp"
#include "storage/detect.hpp"
#include "storage/driver_testing.hpp"
#include "storage/outside_testing.hpp"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct FakePlacer final : Placer {
    Status makes;
    bool leaves_file = true;
    std::uint32_t with_permissions = 0644;
    std::vector<Placing> asked;
    Status make(const std::string& path, std::uint32_t, const Placing& placing, Nanos) override {
        asked.push_back(placing);
        if (leaves_file) ::close(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, with_permissions));
        return makes;
    }
    Result<std::vector<TargetRoom>> rooms(const std::string&, const std::string&, Nanos) override { return std::vector<TargetRoom>{{"a", 7}}; }
};

struct PlacedFiles : testing::DriverTest<testing::RealPlace> {
    PlacedFiles() {
        RealWorldOptions options;
        options.storage.placer = placer;
        place.made = RealWorld::create(options).value();
    }
    std::unique_ptr<StorageDriver> driver(Stripe unasked = {}) {
        PlacementTargets targets{"fake", {"a", "b", "c"}, {}, "fake"};
        targets.spans = true;
        targets.unasked = unasked;
        return persistent_driver(place.world(), root, std::make_shared<PlacementTargets>(targets));
    }
    std::shared_ptr<FakePlacer> placer = std::make_shared<FakePlacer>();
    const std::string root = place.persistent();
};

TEST_F(PlacedFiles, AreMadeByThePlacer) {
    ASSERT_TRUE(create(*driver(), file_below(root, "part", "b")).ok());
    EXPECT_EQ(placed.target, "b");
    EXPECT_EQ(placed.path, root + "/part");
    EXPECT_THAT(placer->asked, ElementsAre(Placing{"fake", {"b"}, 0, 0}));
    struct stat about = {};
    ASSERT_EQ(::stat((root + "/part").c_str(), &about), 0);
    EXPECT_TRUE(S_ISREG(about.st_mode));
}

TEST_F(PlacedFiles, WithStripesOnOtherTargetsToo) {
    NewFile asked = file_below(root, "part", "c");
    asked.stripe = {2, 1 << 20};
    ASSERT_TRUE(create(*driver(), std::move(asked)).ok());
    EXPECT_THAT(placer->asked, ElementsAre(Placing{"fake", {"c", "a"}, 2, 1 << 20}));
}

TEST_F(PlacedFiles, ForWhichNobodyAsksAreNotThePlacers) {
    ASSERT_TRUE(create(*driver(), file_below(root, "part")).ok());
    ASSERT_TRUE(create(*driver(), file_below(root, "other", "unknown")).ok());
    EXPECT_TRUE(placer->asked.empty());
    ASSERT_TRUE(create(*driver({1, 0}), file_below(root, "third")).ok());
    EXPECT_THAT(placer->asked, ElementsAre(Placing{"fake", {}, 1, 0})) << "but where its file system needs to be told";
    EXPECT_EQ(placed.target, "");
}

TEST_F(PlacedFiles, ThatCouldNotBePlacedAreThereAllTheSame) {
    placer->makes = unavailable("no right");
    for (const bool leaves : {false, true}) {
        placer->leaves_file = leaves;
        const std::string name = leaves ? "half" : "none";
        ASSERT_TRUE(create(*driver(), file_below(root, name, "b")).ok());
        EXPECT_EQ(placed.target, "") << "it lies where the file system put it";
        EXPECT_EQ(found(root + "/" + name), Code::ok);
    }
}

TEST_F(PlacedFiles, AreNeverAnothers) {
    std::ofstream(root + "/part") << "mine";
    EXPECT_EQ(create(*driver(), file_below(root, "part", "b")).code(), Code::already_exists);
    EXPECT_TRUE(placer->asked.empty());
    EXPECT_FALSE(placed.file);
    placer->makes = Status(Code::already_exists, "there is one");
    EXPECT_EQ(create(*driver(), file_below(root, "meanwhile", "b")).code(), Code::already_exists);
    std::filesystem::create_directory_symlink(root, root + "/link");
    EXPECT_EQ(create(*driver(), file_below(root, "link", "b")).code(), Code::already_exists);
}

TEST_F(PlacedFiles, HaveThePermissionsThatWereAsked) {
    placer->with_permissions = 0666;
    const mode_t before = ::umask(0);
    ASSERT_TRUE(create(*driver(), file_below(root, "part", "b")).ok());
    ::umask(before);
    struct stat about = {};
    ASSERT_EQ(::stat((root + "/part").c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0644u);
}

TEST_F(PlacedFiles, TargetsSayWhatTheyTakeAndOneThatIsNotNamedTakesNothing) {
    const std::vector<TargetFill> fills = fill(*driver(), {"a", "b"});
    EXPECT_EQ(fills[0].free_bytes.value(), 7u);
    EXPECT_EQ(fills[1].free_bytes.value(), 0u);
}

// ---- all of it on this machine: a program in the place of lfs, which keeps what it is asked, makes the file as lfs does, and answers as recorded ----

struct WithFakeLfs : testing::DriverTest<testing::RealPlace> {
    WithFakeLfs() {
        RealWorldOptions options;
        options.storage.placer = make_placer();
        place.made = RealWorld::create(options).value();
        ::setenv("PATH", (programs.path() + ":" + path_before).c_str(), 1);
    }
    ~WithFakeLfs() override { ::setenv("PATH", path_before.c_str(), 1); }
    void install(const std::string& setstripe) {
        const std::string program = programs.path() + "/lfs";
        std::ofstream(program) << "#!/bin/sh\necho \"$@\" >> " << asked_path << "\nfor last; do :; done\ncase $1 in\n"
                               << "df) for i in 0 1 2; do echo t-OST000${i}_UUID 9 1 $((7 + i)) 1% \"/mnt[OST:$i]\"; done ;;\ngetstripe) echo ;;\nsetstripe) " << setstripe << " set -C; : > \"$last\" ;;\nesac\n";
        std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    }
    std::vector<std::string> asked(const std::string& word) {
        std::ifstream file(asked_path);
        std::vector<std::string> lines;
        for (std::string line; std::getline(file, line);)
            if (line.starts_with(word)) lines.push_back(line);
        return lines;
    }
    std::unique_ptr<StorageDriver> detected() {
        Result<PlacementTargets> targets = detect_targets(Settings::TargetsDriver::lustre, {}, root);
        EXPECT_TRUE(targets.ok()) << targets.status().to_string();
        return persistent_driver(place.world(), root, std::make_shared<PlacementTargets>(std::move(targets).value_or({})));
    }
    test::TemporaryDirectory programs;
    const std::string path_before = ::getenv("PATH"), asked_path = programs.path() + "/asked";
    const std::string root = place.persistent();
};

TEST_F(WithFakeLfs, AFileIsMadeOnItsOst) {
    install("");
    const auto driver = detected();
    EXPECT_THAT(driver->targets(), ElementsAre("t-OST0000", "t-OST0001", "t-OST0002"));
    EXPECT_TRUE(driver->spans_targets());
    EXPECT_EQ(fill(*driver, {"t-OST0002"})[0].free_bytes.value(), 9u << 10);
    ASSERT_TRUE(create(*driver, file_below(root, "part", "t-OST0001")).ok());
    EXPECT_EQ(placed.target, "t-OST0001");
    NewFile striped = file_below(root, "striped", "t-OST0002");
    striped.stripe = {3, 0};
    ASSERT_TRUE(create(*driver, std::move(striped)).ok());
    EXPECT_THAT(asked("setstripe"), ElementsAre("setstripe -c 1 -i 1 " + root + "/part", "setstripe -c 3 -o 2,0,1 " + root + "/striped"));
    Result<BufferPtr> buffer = place.world().storage.allocate(4096);
    ASSERT_TRUE(buffer.ok());
    EXPECT_TRUE(result_of(write_all(place.world().storage, placed.file, 0, Slice{*buffer, 0, 4096}, place.world().clock.in(io_wait))).ok());
    EXPECT_EQ(std::filesystem::file_size(root + "/striped"), 4096u);
}

TEST_F(WithFakeLfs, OneThatMayNotIsMadeAsEver) {
    install("echo 'setstripe error: Operation not permitted' >&2; exit 1;");
    const auto driver = detected();
    ASSERT_TRUE(create(*driver, file_below(root, "part", "t-OST0001")).ok());
    EXPECT_EQ(placed.target, "");
    EXPECT_EQ(found(root + "/part"), Code::ok);
}

TEST_F(WithFakeLfs, OneThatHangsGetsHalfOfTheTimeAndIsMadeAsEver) {
    install("sleep 1000;");
    const auto driver = detected();
    placed = {};
    ASSERT_TRUE(result_of(driver->create(file_below(root, "part", "t-OST0001"), placed, 4 * second)).ok());
    EXPECT_EQ(placed.target, "");
    ASSERT_TRUE(create(*driver, file_below(root, "another", "t-OST0001")).ok());
    EXPECT_EQ(asked("setstripe").size(), 1u) << "it is left alone for a while";
}

// ---- the placer of the file systems ----

struct Logged : ::testing::Test {
    Logged() { EXPECT_TRUE(log_to_file(path, LogLevel::info).ok()); }
    ~Logged() override { log_off(); }
    std::size_t lines(const std::string& with) {
        std::ifstream file(path);
        std::size_t count = 0;
        for (std::string line; std::getline(file, line);) count += line.find(with) != std::string::npos;
        return count;
    }
    test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/log";
    testing::RecordedOutside outside;
    const std::shared_ptr<Placer> placer = make_placer(outside);
    const Placing on_1{"lustre", {"t-OST0001"}, 0, 0};
};

TEST_F(Logged, WhatIsLostIsSaidOnce) {
    EXPECT_EQ(placer->make("/f", 0644, on_1, second).code(), Code::unsupported);
    EXPECT_EQ(placer->make("/g", 0644, on_1, second).code(), Code::unsupported);
    EXPECT_EQ(lines("not-placed"), 1u);
    EXPECT_EQ(lines("there is no program lfs"), 1u);
    outside.answers.insert({"lfs setstripe -c 1 -i 1 /h", unavailable("lfs failed: Operation not permitted")});
    EXPECT_EQ(placer->make("/h", 0644, on_1, second).code(), Code::unavailable);
    EXPECT_EQ(lines("Operation not permitted"), 1u) << "another reason is another loss";
}

TEST_F(Logged, WhatHangsIsLeftAloneForAWhile) {
    outside.answers.insert({"lfs setstripe -c 1 -i 1 /f", deadline_passed("lfs: it did not end in time")});
    EXPECT_EQ(placer->make("/f", 0644, on_1, second).code(), Code::deadline);
    const std::size_t asked = outside.asked.size();
    EXPECT_EQ(placer->make("/f", 0644, on_1, second).code(), Code::unavailable);
    EXPECT_EQ(outside.asked.size(), asked);
    EXPECT_EQ(placer->make("/c", 0644, {"cephfs", {"p"}, 0, 0}, second).code(), Code::ok) << "another file system is not to blame";
}

TEST_F(Logged, ADriverThatIsUnknownPlacesNothing) {
    EXPECT_EQ(placer->make("/f", 0644, {"sim", {"1"}, 0, 0}, second).code(), Code::unsupported);
    EXPECT_EQ(placer->rooms("/d", "sim", second).code(), Code::unsupported);
    EXPECT_EQ(placer->rooms("/d", "cephfs", second).code(), Code::unsupported);
}

}  // namespace
}  // namespace cairn
