// Listing what lies under persistent.
#include "catalog/catalog.hpp"

#include <gtest/gtest.h>

#include "proof/cluster.hpp"

namespace cairn {
namespace {

// A file system that is not mounted is not one without versions.
TEST(Catalog, OfAPersistentDirectoryThatIsNotThereIsAnError) {
    testing::Cluster cluster{{}};
    sim::Process& reader = cluster.hosts[0].node->start_process("reader");
    Status nothing_yet(Code::deadline, "not done"), not_there(Code::deadline, "not done");
    const auto list = [](World world, Layout layout, Status& out) -> Task<void> {
        const Result<std::vector<CatalogEntry>> found = co_await list_versions(world, layout, "series", world.clock.in(second));
        EXPECT_TRUE(!found.ok() || found->empty());
        out = found.status();
    };
    ASSERT_TRUE(cluster.sim.run(list(reader.world(), cluster.layout, nothing_yet), cluster.sim.now() + 5 * second));
    const Layout elsewhere{"/persistent/elsewhere"};
    ASSERT_TRUE(cluster.sim.run(list(reader.world(), elsewhere, not_there), cluster.sim.now() + 5 * second));
    EXPECT_TRUE(nothing_yet.ok()) << nothing_yet.to_string();
    EXPECT_EQ(not_there.code(), Code::unavailable) << not_there.to_string();
}

}  // namespace
}  // namespace cairn
