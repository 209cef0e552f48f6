// Records of I/O nodes: they come and go, each with its own daemon, and a bad one hides no other.
#include "catalog/io_nodes.hpp"

#include <gtest/gtest.h>

#include "world/sim/simulation.hpp"

namespace cairn {
namespace {

Task<void> come_and_go(World w, Layout layout) {
    const IoNodeRecord mine{"n1", "here"}, other{"n2", "there"}, newer{"n1", "elsewhere"};
    for (const IoNodeRecord* record : {&mine, &other}) {
        const Status published = co_await publish_io_node(w, layout, *record, w.clock.in(second));
        EXPECT_TRUE(published.ok()) << published.to_string();
    }
    Result<IoNodes> found = co_await list_io_nodes(w, layout, w.clock.in(second));
    CAIRN_CHECK(found.ok());
    EXPECT_EQ(found->records.size(), 2u);
    EXPECT_TRUE(found->problems.empty());
    const Status published = co_await publish_io_node(w, layout, newer, w.clock.in(second));
    EXPECT_TRUE(published.ok());
    const Status left = co_await withdraw_io_node(w, layout, mine, w.clock.in(second));
    EXPECT_TRUE(left.ok());
    const Result<IoNodeRecord> stands = co_await read_io_node(w, layout, mine.node, w.clock.in(second));
    EXPECT_TRUE(stands.ok() && *stands == newer) << "another daemon's is not taken away";
    const Status withdrawn = co_await withdraw_io_node(w, layout, newer, w.clock.in(second));
    EXPECT_TRUE(withdrawn.ok());
    Bytes foreign = encode_io_node_record({"n9", "a"});
    const Status wrote = co_await write_file(w.storage, layout.io_node("n8"), std::move(foreign), 0600, w.clock.in(second));
    EXPECT_TRUE(wrote.ok());
    found = co_await list_io_nodes(w, layout, w.clock.in(second));
    CAIRN_CHECK(found.ok());
    EXPECT_EQ(found->records, std::vector<IoNodeRecord>{other});
    EXPECT_EQ(found->problems.size(), 1u);
}

TEST(IoNodes, RecordsComeAndGo) {
    sim::Simulation sim(1, {}, {});
    sim::Process& process = sim.add_node().start_process("cairnd");
    ASSERT_TRUE(sim.run(come_and_go(process.world(), Layout{"/persistent"}), sim.now() + 60 * second));
}

}  // namespace
}  // namespace cairn
