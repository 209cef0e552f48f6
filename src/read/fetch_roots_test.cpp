// A restart whose version has parts below a root in trouble, on a simulated cluster.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "catalog/roots.hpp"
#include "proof/cluster.hpp"
#include "read/fetch.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;
using Below = sim::Faults::Below;

// Version 1 is committed, a part below each of two roots.
class FetchBelowRoots : public ::testing::Test {
  protected:
    static ClusterOptions options() {
        ClusterOptions o;
        o.ranks_per_node = {2, 2};
        o.files = 2;
        o.image_bytes = [](Rank, Version) { return 50'000; };
        o.roots = {"/persistent/.roots/a", "/persistent/.roots/b"};
        return o;
    }
    void SetUp() override {
        ASSERT_TRUE(cluster_.open_job().ok());
        ASSERT_TRUE(cluster_.capture_all(1).ok());
        ASSERT_TRUE(cluster_.run_until_committed(1, 60 * second));
        manifest_ = *cluster_.newest_committed().value();
        process_ = &cluster_.hosts[0].node->start_process("restart");
    }
    // Every rank's image, from the parts.
    std::vector<Fetched> fetch_all() {
        const Aim whole = [](const ImageInfo& image) -> Result<HandOut> {
            HandOut out;
            out.add(image.rank, {0, image.bytes}, "image", [](std::uint64_t, Slice) { return Status(); });
            return out;
        };
        const auto task = [](World world, Layout layout, ImagePlaces places, Aim aim, Fetched& into) -> Task<void> {
            RestoreSettings settings;
            settings.io_wait = 4 * second;
            Fetched fetched = co_await fetch_image(world, std::move(layout), std::move(places), std::move(aim), settings, world.clock.in(60 * second));
            into = std::move(fetched);
        };
        std::vector<Fetched> all(manifest_.ranks);
        for (Rank rank = 0; rank < manifest_.ranks; ++rank) {
            const ImagePlaces places{manifest_.key, rank, "", true};
            EXPECT_TRUE(cluster_.sim.run(task(process_->world(), cluster_.layout, places, whole, all[rank]), cluster_.sim.now() + 600 * second));
        }
        return all;
    }

    Cluster cluster_{options()};
    Manifest manifest_;
    sim::Process* process_ = nullptr;
};

bool is_whole(const Fetched& each) { return each.status.ok(); }
bool is_refused(const Fetched& each) { return !each.status.ok() && each.refused; }

// A version that can not be read for now is not damaged: who went on from an older one would give it up.
TEST_F(FetchBelowRoots, ARootInTroubleSendsNobodyBackToAnOlderVersion) {
    std::vector<Fetched> all = fetch_all();
    EXPECT_TRUE(std::all_of(all.begin(), all.end(), is_whole));
    for (const Below trouble : {Below::fails, Below::away}) {
        cluster_.sim.faults().below = roots_with_parts(manifest_).at(1);
        cluster_.sim.faults().below_is = trouble;
        all = fetch_all();
        EXPECT_TRUE(std::any_of(all.begin(), all.end(), is_refused)) << static_cast<int>(trouble);
        EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](const Fetched& each) { return is_whole(each) || is_refused(each); })) << static_cast<int>(trouble);
    }
    cluster_.sim.faults() = {};
    all = fetch_all();
    EXPECT_TRUE(std::all_of(all.begin(), all.end(), is_whole));
}

TEST_F(FetchBelowRoots, AMissingPartBelowARootThatAnswersIsDamage) {
    ASSERT_TRUE(cluster_.sim.persistent().lose(cluster_.layout.part(manifest_, 0)).ok());
    const std::vector<Fetched> all = fetch_all();
    EXPECT_FALSE(std::all_of(all.begin(), all.end(), is_whole));
    EXPECT_FALSE(std::any_of(all.begin(), all.end(), is_refused));
}

}  // namespace
}  // namespace cairn
