#include "daemon/outcomes.hpp"

#include "daemon/jobs_testing.hpp"
#include "format/manifest.hpp"

namespace cairn {
namespace {

TEST_F(JobsTest, AManifestTellsHowAVersionEnded) {
    begin_jobs();
    checkpoint(1);
    const VersionKey given_up{"heat", 2, roster_.incarnation}, never_begun{"heat", 3, roster_.incarnation};
    fs::create_directories(layout().version(given_up));
    const Bytes tombstone = encode_manifest(tombstone_of(given_up, 1, {}, 2));
    std::ofstream(layout().manifest(given_up), std::ios::binary).write(reinterpret_cast<const char*>(tombstone.data()), static_cast<std::streamsize>(tombstone.size()));
    Outcomes outcomes(world(), layout(), {}, io_wait_);
    EXPECT_EQ(run(outcomes.of({"heat", 1, roster_.incarnation}, 0)), Code::ok);
    EXPECT_EQ(run(outcomes.of(given_up, 0)), Code::cancelled);
    EXPECT_EQ(run(outcomes.of(never_begun, 0)), Code::not_found);
}

// It is not committed again, or it would come back each time a daemon is started.
TEST_F(JobsTest, WhatTheRuleLetsGoCountsAsCommitted) {
    begin_jobs();
    for (const Version version : {1u, 2u}) checkpoint(version);
    const VersionKey key{"heat", 1, roster_.incarnation};
    fs::remove(layout().manifest(key));
    Outcomes keeps_all(world(), layout(), {}, io_wait_), keeps_one(world(), layout(), {1, 0}, io_wait_), keeps_two(world(), layout(), {2, 0}, io_wait_);
    EXPECT_EQ(run(keeps_all.of(key, 0)), Code::not_found);
    EXPECT_EQ(run(keeps_one.of(key, 0)), Code::ok);
    EXPECT_EQ(run(keeps_two.of(key, 0)), Code::not_found);
}

TEST_F(JobsTest, AVersionIsLookedAtOnce) {
    begin_jobs();
    checkpoint(1);
    const VersionKey key{"heat", 1, roster_.incarnation};
    Outcomes outcomes(world(), layout(), {}, io_wait_);
    EXPECT_EQ(run(outcomes.of(key, 0)), Code::ok);
    fs::remove(layout().manifest(key));
    EXPECT_EQ(run(outcomes.of(key, 1)), Code::ok);  // of its other rank
}

}  // namespace
}  // namespace cairn
