// What the regions of a version's images are, where not all of its bytes are there.
#include "copies/regions.hpp"

#include <gtest/gtest.h>

#include "copies/indexed_testing.hpp"
#include "copies/restore.hpp"
#include "world/sim/simulation.hpp"

namespace cairn {
namespace {

TEST(LoadRegions, AnImageThatIsNotWholeHidesNoOthersRegions) {
    sim::Simulation simulation{1, {}, {}};
    sim::Process& process = simulation.add_node().start_process("reader");
    testing::FilesInMemory files;
    const Layout layout{"/persistent"};
    const Manifest manifest = testing::commit_by_hand(files, layout, std::vector<testing::IndexedImage>(3, testing::indexed_image({"a", "b", "c"})));
    std::map<Rank, Status> unknown;
    std::optional<OpenVersion> loaded;
    const auto task = [](World w, Layout l, Manifest m, std::map<Rank, Status>& out, std::optional<OpenVersion>& opened) -> Task<void> {
        Result<OpenVersion> version = co_await open_version(w, l, m, every_rank, RestoreSettings{});
        if (!version.ok()) co_return;
        version->footers.at(1).runs.front().pieces.front().image_offset += 1;  // as if what lies before it were in a part that is gone
        std::map<Rank, Status> found = co_await load_what_can_be(w, l, *version, RestoreSettings{});
        out = std::move(found);
        opened = std::move(version).value();
    };
    ASSERT_TRUE(simulation.run(task(files.in(process.world()), layout, manifest, unknown, loaded), 60 * second));
    ASSERT_TRUE(loaded);
    ASSERT_EQ(unknown.size(), 1u);
    EXPECT_EQ(unknown.begin()->first, 1u);
    EXPECT_EQ(unknown.begin()->second.code(), Code::corrupt) << unknown.begin()->second.to_string();
    for (const Rank rank : {0u, 2u}) EXPECT_EQ(loaded->image(rank)->regions.size(), 3u) << rank;
    EXPECT_TRUE(loaded->image(1)->regions.empty());
}

}  // namespace
}  // namespace cairn
