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

// A record of the lineage that is damaged hides neither the other one of its job nor whose that is.
TEST(Catalog, WhereAnOpenIsDamagedItsFromTellsWhoWentOnFromWhat) {
    testing::Cluster cluster{{}};
    ASSERT_TRUE(cluster.open_job().ok() && cluster.open_job().ok());
    const FromRecord from{cluster.roster.incarnation, {{7, 7}, 3}};
    sim::Process& process = cluster.hosts[0].node->start_process("reader");
    const auto look = [](World world, testing::Cluster& c, FromRecord record, std::optional<LineageRecords>& out) -> Task<void> {
        const Status recorded = co_await record_parent(world, c.layout, "series", c.roster.epoch, std::move(record), world.clock.in(second));
        EXPECT_TRUE(recorded.ok()) << recorded.to_string();
        EXPECT_TRUE(c.sim.persistent().flip_bit(c.layout.lineage_open("series", c.roster.epoch), 60, 1).ok());
        Result<LineageRecords> records = co_await read_lineage(world, c.layout, "series", world.clock.in(second));
        if (records.ok()) out = std::move(records).value();
    };
    std::optional<LineageRecords> records;
    ASSERT_TRUE(cluster.sim.run(look(process.world(), cluster, from, records), cluster.sim.now() + 5 * second));
    ASSERT_TRUE(records && records->opens.size() == 2);
    const LineageEntry& damaged = records->opens.back();
    EXPECT_EQ(damaged.open.epoch, cluster.roster.epoch);
    ASSERT_TRUE(damaged.open_damage);
    EXPECT_EQ(damaged.open_damage->code(), Code::corrupt);
    ASSERT_TRUE(damaged.from);
    EXPECT_EQ(*damaged.from, from);
    EXPECT_EQ(damaged.open.incarnation, from.incarnation);
}

}  // namespace
}  // namespace cairn
