// Scratch that takes bytes away under a daemon that has mapped them: it lives on, and says which image it was.
#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

TEST(LostBytes, AnImageThatWasMadeShorterCostsItsVersionOnly) {
    Home home;
    home.set("CAIRN_FLUSH_ATTEMPTS_MAX", "1");
    ASSERT_EQ(home.start(), 0) << home.errors();
    const pid_t pid = home.daemon_pid();
    Client client(home.layout);
    const Roster roster = home.roster(2);
    home.put_on_record(roster);
    join(client, roster);
    std::string lost;
    for (Version version : {1u, 2u}) {
        for (Rank rank : {0u, 1u}) {  // the flush begins with the second
            const control::Slot slot = seal(client, roster, version, rank);
            if (version == 1 && rank == 0) {
                lost = slot.path;
                fs::resize_file(lost, 64 << 10);
            }
        }
        const auto state = await_commit(client, roster, version);
        EXPECT_EQ(state.level == Level::committed, version == 2) << state.text;
        if (version == 1) {
            EXPECT_NE(state.text.find(lost + ": a part of it can not be read any more"), std::string::npos) << state.text;
        }
    }
    EXPECT_EQ(home.daemon_pid(), pid);
    EXPECT_FALSE(home.committed({"heat", 1, {1, 2}}));
}

}  // namespace
}  // namespace cairn
