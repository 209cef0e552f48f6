// Which job's daemon applies the rule on persistent, and which no longer does.
#include "daemon/daemon_testing.hpp"
#include "format/lineage.hpp"
#include "format/names.hpp"

namespace cairn {
namespace {

using namespace cairn::test;
constexpr std::uint64_t image_bytes = 200'000, slot_bytes = 1 << 20;

// Whoever opened the series after this job may be restoring one of its older versions at this moment.
TEST(PersistentRetention, RemovesNothingOnceAnotherJobOpened) {
    Home home;
    home.set("CAIRN_RETENTION_PERSISTENT_LAST", "1");
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    client.hello(true);
    client.expect<control::Done>(control::Join{home.roster(1), 0, 0});
    const auto key = [](Version version) { return VersionKey{"heat", version, {1, 2}}; };
    const auto acquire = [&](Version version) {
        return client.expect<control::Slot>(control::Acquire{key(version), 0, slot_bytes, 60'000});
    };
    const auto take = [&](Version version, const control::Slot& slot) {
        write_image(slot, home.roster(1), version, 0, image_bytes);
        client.expect<control::Done>(control::Sealed{key(version), 0, slot.path});
        EXPECT_EQ(client.expect<control::State>(control::Wait{key(version), Level::committed, 60'000}).level, Level::committed);
    };
    take(1, acquire(1));
    take(2, acquire(2));
    ASSERT_TRUE(becomes_true([&] { return !home.committed(key(1)); }));
    const control::Slot slot = acquire(3);  // being captured when the other job opens
    // The daemon looks for another job's open beside the capture, and must have found none: a question that is refused waits for that look,
    // a while each time.
    std::string no_slot = slot.path;
    no_slot += ".other";
    const control::Request refused = control::Sealed{key(3), 0, no_slot};
    for (int i = 0; i < 50; ++i) client.expect<control::Failed>(refused);
    OpenRecord open;
    open.incarnation = {7, 8};
    open.ranks = 1;
    open.host = "other";
    open.pid = 1;
    const std::string lineage = Layout{home.persistent}.lineage("heat");
    fs::create_directories(lineage);
    for (open.epoch = home.roster(1).epoch + 1; open.epoch <= home.roster(1).epoch + 1; ++open.epoch) {
        const Bytes record = encode_open_record(open);
        std::ofstream(lineage + "/" + lineage_open_name(open.epoch), std::ios::binary)
            .write(reinterpret_cast<const char*>(record.data()), static_cast<std::streamsize>(record.size()));
        ++open.incarnation.low;
    }
    take(3, slot);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // a hundred times what removing takes
    EXPECT_TRUE(home.committed(key(2)));
    EXPECT_TRUE(home.committed(key(3)));
}

}  // namespace
}  // namespace cairn
