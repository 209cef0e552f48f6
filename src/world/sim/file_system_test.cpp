// What survives a crash, and what a failed fsync leaves.
#include "world/sim/file_system.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace cairn::sim {
namespace {

constexpr NodeId ours = 1, other = 2;
const Runs a_kib = runs_of_description(1, 0, 4096);

FileSystem make() { return FileSystem("/p", true, UINT64_MAX); }

InodePtr durable_file(FileSystem& fs, const std::string& path) {
    Result<InodePtr> file = fs.create(path, ours);
    EXPECT_TRUE(file.ok());
    EXPECT_TRUE(fs.fsync_directory("/p").ok());
    return *file;
}

// How often something holds after crashes with many seeds.
int count(const std::function<bool(FileSystem&, Prng&)>& holds) {
    int result = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        FileSystem fs = make();
        Prng prng(seed);
        result += holds(fs, prng);
    }
    return result;
}

TEST(FileSystem, SyncedWritesSurviveOthersMayNot) {
    EXPECT_EQ(count([](FileSystem& fs, Prng& prng) {
                  const InodePtr file = durable_file(fs, "/p/f");
                  fs.write(*file, 0, a_kib, ours);
                  fs.fsync(*file, ours);
                  fs.crash(ours, prng);
                  return equal(file->content->read(0, 4096), a_kib);
              }),
              100);
    std::set<std::uint64_t> sizes;
    const int whole = count([&](FileSystem& fs, Prng& prng) {
        const InodePtr file = durable_file(fs, "/p/f");
        fs.write(*file, 0, a_kib, ours);
        fs.crash(ours, prng);
        sizes.insert(file->content->size());
        return file->content->size() == 4096 && equal(file->content->read(0, 4096), a_kib);
    });
    EXPECT_GT(whole, 10);
    EXPECT_LT(whole, 90);
    EXPECT_GT(sizes.size(), 3u);  // torn ones, too
    EXPECT_EQ(sizes.count(0), 1u);
}

TEST(FileSystem, KeptIsWhatIsLeftWhenNothingUnsyncedStays) {
    FileSystem fs = make();
    const InodePtr file = *fs.create("/p/f", ours);
    EXPECT_EQ(fs.find_kept("/p/f").code(), Code::not_found);
    fs.write(*file, 0, a_kib, ours);
    ASSERT_TRUE(fs.fsync_directory("/p").ok());
    EXPECT_EQ(FileSystem::kept(**fs.find_kept("/p/f"))->size(), 0u);
    fs.write(*file, 4096, a_kib, other);
    fs.fsync(*file, other);  // behind a write that is not durable
    const std::shared_ptr<Content> kept = FileSystem::kept(*file);
    EXPECT_EQ(kept->stored_bytes(), 4096u);
    EXPECT_TRUE(equal(kept->read(4096, 4096), a_kib));
    fs.fsync(*file, ours);
    EXPECT_EQ(FileSystem::kept(*file)->stored_bytes(), 8192u);
    ASSERT_TRUE(fs.remove("/p/f", ours).ok());
    EXPECT_TRUE(fs.find_kept("/p/f").ok());
    EXPECT_FALSE(fs.find_kept("/p/f/g").ok());
}

TEST(FileSystem, AnotherNodesCrashTakesNothingOfOurs) {
    EXPECT_EQ(count([](FileSystem& fs, Prng& prng) {
                  const InodePtr file = durable_file(fs, "/p/f");
                  fs.write(*file, 0, a_kib, ours);
                  const bool created = fs.create("/p/g", ours).ok();
                  fs.crash(other, prng);
                  return created && equal(file->content->read(0, 4096), a_kib) && fs.find("/p/g").ok();
              }),
              100);
    // Our fsync covers our writes only: every node that writes must fsync its own descriptor (rule 3).
    const int kept = count([](FileSystem& fs, Prng& prng) {
        const InodePtr file = durable_file(fs, "/p/f");
        fs.write(*file, 0, a_kib, ours);
        fs.write(*file, 4096, a_kib, other);
        fs.fsync(*file, ours);
        fs.crash(other, prng);
        EXPECT_TRUE(equal(file->content->read(0, 4096), a_kib));
        return equal(file->content->read(4096, 4096), a_kib);
    });
    EXPECT_LT(kept, 90);
}

TEST(FileSystem, SurvivorsAreSettledForGood) {
    EXPECT_EQ(count([](FileSystem& fs, Prng& prng) {
                  const InodePtr file = durable_file(fs, "/p/f");
                  for (std::uint64_t i = 0; i < 8; ++i) fs.write(*file, i * 4096, a_kib, ours);
                  fs.crash(ours, prng);
                  const Bytes then = materialise(file->content->read(0, file->content->size()));
                  fs.crash(ours, prng);
                  fs.crash(other, prng);
                  return materialise(file->content->read(0, file->content->size())) == then;
              }),
              100);
}

TEST(FileSystem, NamesNeedTheirDirectorySynced) {
    const int kept = count([](FileSystem& fs, Prng& prng) {
        EXPECT_TRUE(fs.make_directory("/p/d", ours).ok());
        EXPECT_TRUE(fs.create("/p/d/f", ours).ok());
        EXPECT_TRUE(fs.fsync_directory("/p/d").ok());  // but not /p
        fs.crash(ours, prng);
        return fs.find("/p/d/f").ok();
    });
    EXPECT_GT(kept, 10);
    EXPECT_LT(kept, 90);
    EXPECT_EQ(count([](FileSystem& fs, Prng& prng) {
                  EXPECT_TRUE(fs.make_directory("/p/d", ours).ok());
                  EXPECT_TRUE(fs.create("/p/d/f", ours).ok());
                  EXPECT_TRUE(fs.fsync_directory("/p/d").ok());
                  EXPECT_TRUE(fs.fsync_directory("/p").ok());
                  fs.crash(ours, prng);
                  return fs.find("/p/d/f").ok();
              }),
              100);
}

TEST(FileSystem, ARemovalMayComeBack) {
    const int back = count([](FileSystem& fs, Prng& prng) {
        durable_file(fs, "/p/f");
        EXPECT_TRUE(fs.remove("/p/f", ours).ok());
        fs.crash(ours, prng);
        return fs.find("/p/f").ok();
    });
    EXPECT_GT(back, 10);
    EXPECT_LT(back, 90);
}

TEST(FileSystem, ARenamingPublishIsAtomicAcrossACrash) {
    int published = 0;
    EXPECT_EQ(count([&](FileSystem& fs, Prng& prng) {
                  durable_file(fs, "/p/temporary");
                  EXPECT_TRUE(fs.publish("/p/temporary", "/p/manifest", true, ours).ok());
                  fs.crash(ours, prng);
                  published += fs.find("/p/manifest").ok();
                  return fs.find("/p/manifest").ok() != fs.find("/p/temporary").ok();
              }),
              100);
    EXPECT_GT(published, 10);
    EXPECT_LT(published, 90);
}

TEST(FileSystem, AReplacedNameIsTheOldFileOrTheNewAfterACrash) {
    int replaced = 0;
    EXPECT_EQ(count([&](FileSystem& fs, Prng& prng) {
                  const InodePtr before = durable_file(fs, "/p/manifest");
                  const InodePtr after = durable_file(fs, "/p/temporary");
                  EXPECT_TRUE(fs.replace("/p/temporary", "/p/manifest", ours).ok());
                  fs.crash(ours, prng);
                  const bool is_new = *fs.find("/p/manifest") == after;
                  replaced += is_new;
                  return (is_new || *fs.find("/p/manifest") == before) && fs.find("/p/temporary").ok() != is_new;
              }),
              100);
    EXPECT_GT(replaced, 10);
    EXPECT_LT(replaced, 90);
}

TEST(FileSystem, AFailedFsyncIsNeverMadeUpFor) {
    int at_once = 0, later = 0;
    count([&](FileSystem& fs, Prng& prng) {
        const InodePtr file = durable_file(fs, "/p/f");
        fs.write(*file, 0, a_kib, ours);
        fs.fail_fsync(*file, ours, prng);
        const bool before = file->content->size() == 4096;
        fs.fsync(*file, ours);  // says ok
        fs.crash(ours, prng);
        const bool after = file->content->size() == 4096 && equal(file->content->read(0, 4096), a_kib);
        at_once += !before;
        later += before && !after;
        return true;
    });
    EXPECT_GT(at_once, 10);
    EXPECT_GT(later, 10);
}

TEST(FileSystem, SpaceIsCountedAndFreed) {
    FileSystem fs("/p", true, 10'000);
    Result<InodePtr> file = fs.create("/p/f", ours);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(fs.room(**file, 0, 20'000), 10'000u);
    fs.write(**file, 0, runs_of_description(1, 0, 8'000), ours);
    EXPECT_EQ(fs.used_bytes(), 8'000u);
    EXPECT_EQ(fs.room(**file, 8'000, 4'000), 2'000u);
    EXPECT_EQ(fs.room(**file, 0, 4'000), 4'000u);  // over what is there
    ASSERT_TRUE(fs.publish("/p/f", "/p/g", false, ours).ok());
    ASSERT_TRUE(fs.remove("/p/f", ours).ok());
    EXPECT_EQ(fs.used_bytes(), 8'000u);
    ASSERT_TRUE(fs.remove("/p/g", ours).ok());
    EXPECT_EQ(fs.used_bytes(), 0u);
    Prng prng(3);
    for (int i = 0; i < 20 && fs.used_bytes() == 0; ++i) fs.crash(ours, prng);
    Result<InodePtr> scratch = FileSystem("/s", false, 100).create("/s/f", ours);
    EXPECT_TRUE(scratch.ok());
}

TEST(FileSystem, DamageOnDemand) {
    FileSystem fs = make();
    const InodePtr file = durable_file(fs, "/p/f");
    fs.write(*file, 0, a_kib, ours);
    fs.fsync(*file, ours);
    ASSERT_TRUE(fs.flip_bit("/p/f", 17, 2).ok());
    Bytes expected = materialise(a_kib);
    expected[17] ^= std::byte{4};
    EXPECT_TRUE(materialise(file->content->read(0, 4096)) == expected);
    Prng prng(1);
    fs.crash(ours, prng);
    EXPECT_TRUE(materialise(file->content->read(0, 4096)) == expected);
    ASSERT_TRUE(fs.truncate("/p/f", 100).ok());
    EXPECT_EQ(file->content->size(), 100u);
    ASSERT_TRUE(fs.lose("/p/f").ok());
    EXPECT_EQ(fs.find("/p/f").code(), Code::not_found);
    for (int i = 0; i < 20; ++i) fs.crash(ours, prng);
    EXPECT_EQ(fs.find("/p/f").code(), Code::not_found);
    EXPECT_EQ(fs.flip_bit("/p/f", 0, 0).code(), Code::not_found);
}

}  // namespace
}  // namespace cairn::sim
