// One region by its name, out of very many in a committed version: how many reads of storage that takes.
#include "read/regions.hpp"

#include <gtest/gtest.h>

#include "copies/indexed_testing.hpp"
#include "world/sim/simulation.hpp"

namespace cairn {
namespace {

TEST(FindRegion, OneOfAHundredThousandTakesThreeReadsOfAPart) {
    const auto name_of = [](std::size_t i) { return "layers/" + std::to_string(i) + "/weight"; };
    std::vector<std::string> names;
    for (std::size_t i = 0; i < 100'000; ++i) names.push_back(name_of(i));
    sim::Simulation simulation{1, {}, {}};
    sim::Process& process = simulation.add_node().start_process("reader");
    testing::FilesInMemory files;
    const World world = files.in(process.world());
    const Layout layout{"/persistent"};
    std::vector<testing::IndexedImage> images;
    images.push_back(testing::indexed_image(names));
    const Manifest manifest = testing::commit_by_hand(files, layout, images);

    VersionCopies copies;
    copies.key = manifest.key;
    copies.ranks = manifest.ranks;
    const auto open = [](World w, Layout l, Manifest m, VersionCopies& out) -> Task<void> {
        Result<OpenVersion> version = co_await open_version(w, l, m, 0, {});
        if (version.ok()) out.parts = std::move(version).value();
    };
    ASSERT_TRUE(simulation.run(open(world, layout, manifest, copies), 60 * second));
    ASSERT_TRUE(copies.parts);
    EXPECT_GT(copies.parts->image(0)->index_bytes, 10 * region_index_first_read_bytes);

    const auto find = [&](std::string name) {
        Result<FoundRegion> found(Status(Code::deadline, ""));
        const auto task = [](World w, Layout l, const VersionCopies& c, std::string wanted, Result<FoundRegion>& out) -> Task<void> {
            Result<FoundRegion> region = co_await find_region(w, l, c, 0, wanted, {});
            out = std::move(region);
        };
        files.reads = 0;
        EXPECT_TRUE(simulation.run(task(world, layout, copies, std::move(name), found), simulation.now() + 60 * second));
        EXPECT_LE(files.reads, 3u);
        return found;
    };
    for (const std::size_t i : {0u, 1u, 777u, 50'000u, 99'999u}) {
        const Result<FoundRegion> found = find(name_of(i));
        ASSERT_TRUE(found.ok()) << found.status().to_string();
        ASSERT_TRUE(found->region) << name_of(i);
        EXPECT_EQ(found->region->offset, 8 * i);
        EXPECT_EQ(found->index_reads, files.reads);
    }
    const Result<FoundRegion> none = find("layers/7/bias");
    ASSERT_TRUE(none.ok()) << none.status().to_string();
    EXPECT_FALSE(none->region);
}

}  // namespace
}  // namespace cairn
