// Scenarios that once failed and that random seeds reach too seldom: shrunk, with what was wrong. A change of what a scenario draws may lead one past its
// defect, so that each defect here has a check or a mutant, too.
#include <gtest/gtest.h>

#include "proof/seeds.hpp"

namespace cairn::testing {
namespace {

struct Once {
    const char* what;
    const char* scenario;
};

const Once once[] = {
    {"sizing a part of several leaders was lost, work that moved filled it to exactly its size, and a hole stayed where two nodes made it longer",
     "seed=2817 files=4 block=8192 image=157937 image_seed=538992 writers=8 buffer=8192 buffers=2 attempts=2 guests=1 storage=2775842 placed=1 gone=1 apart_s=1 "
     "ranks=3,1,3,2,1,3,0,0,0 targets=36000000,1200000 short=86100 full=5180 slow_io=28900 repeat=14100 resize_lost=149100 grow_lost=870000 "
     "steps=capture:21646,end:14477,end:70369"},
    {"a simulated daemon that could not see whether persistent was the job's wrote its address into another tree, and nobody found it",
     "seed=7352 image=65593 image_seed=304450 ranks=1,1,1,0 short=86400 metadata_error=17220 steps=strike:49539,mount:77751,kill:69793,stop:57046"},
    {"a version that had left one node alone was counted as forgotten there, though its coordinator told of it again",
     "seed=4046 files=30 image=71948 image_seed=149923 writers=7 buffer=32768 buffers=6 placement=2 versions=1 answers=4 nic=4154857 delay_ms=3000 "
     "ranks=1,2,2,1,2,2,1,2,1,2,1,1,1,2,1,2,2,1,2,1,1,1,1,0 slow_io=95300 hang_scratch=380 repeat=48600 rename=594000 "
     "steps=start:29063,forget:11991,strike:95735,mount:27138,forget:75663,succeed:74979,let_go:77218"},
    {"work moved in a daemon that has a successor, and left a gap in its part",
     "seed=8771 files=4 image=159397 image_seed=947499 buffer=32768 storage=5357101 placed=1 ranks=4 targets=26400000,18300000 slow_scratch=182000 grow_lost=881000 "
     "rename=921000 steps=capture:14233,succeed:66517"},
    {"small ends of images that moved were packed anew within a part whose ranges are planned, left pages there, and the check of its length took that for a gap",
     "seed=3060 image=168550 image_seed=604940 writers=4 buffer=16384 storage=5338581 nic=4967992 ranks=1,3,3 steps=stop:10924"},
    {"parts whose directory was made durable while another tree lay over it were in a manifest that came after it was gone",
     "seed=12207 files=7 image=74921 image_seed=870854 writers=7 buffers=3 message_units=4 begins=2 storage=5894131 nic=4690271 ranks=2,2,1,2 short=92100 hang_io=6430 "
     "loss=279600 repeat=37800 payload_loss=52900 steps=mount:77094,kill:63927,end:50268,mount:69363"},
    {"and so was the name of a version's directory",
     "seed=12922 files=8 image=83122 image_seed=582634 writers=6 buffer=16384 buffers=4 placement=2 begins=1 read=32768 ranks=2,2,1,4,1,2 targets=600000,30600000,20400000,1200000 "
     "steps=strike:32222,capture:99117,restore:97069,kill:24632,end:32368,lose:43243,capture:40649,mount:53469"},
};

TEST(Seeds, WhatOnceFailedFailsNoMore) {
    for (const Once& each : once) {
        const Result<Scenario> scenario = parse_scenario(each.scenario);
        ASSERT_TRUE(scenario.ok()) << each.scenario << ": " << scenario.status().text();
        const SeedResult result = run_scenario(*scenario);
        EXPECT_TRUE(result.ok) << each.what << ": " << result.failure;
    }
}

}  // namespace
}  // namespace cairn::testing
