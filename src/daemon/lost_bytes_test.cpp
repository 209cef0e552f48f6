// Scratch that takes bytes away under a daemon that has mapped them: it lives on, and says which image it was.
#include "daemon/daemon_testing.hpp"

namespace cairn {
namespace {

using namespace cairn::test;
constexpr std::uint64_t image_bytes = 200'000, slot_bytes = 1 << 20;

TEST(LostBytes, AnImageThatWasMadeShorterCostsItsVersionOnly) {
    Home home;
    home.set("CAIRN_FLUSH_ATTEMPTS_MAX", "1");
    ASSERT_EQ(home.start(), 0) << home.errors();
    const pid_t pid = home.daemon_pid();
    Client client(home.layout);
    client.hello(true);
    home.put_on_record(home.roster(2));
    client.expect<control::Done>(control::Join{home.roster(2), 0, 0});
    std::string lost;
    for (Version version : {1u, 2u}) {
        const VersionKey key{"heat", version, {1, 2}};
        for (Rank rank : {0u, 1u}) {  // the flush begins with the second
            const auto slot = client.expect<control::Slot>(control::Acquire{key, rank, slot_bytes, 60'000});
            write_image(slot, home.roster(2), version, rank, image_bytes);
            client.expect<control::Done>(control::Sealed{key, rank, slot.path});
            if (version == 1 && rank == 0) {
                lost = slot.path;
                fs::resize_file(lost, 64 << 10);
            }
        }
        const auto state = client.expect<control::State>(control::Wait{key, Level::committed, 60'000});
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
