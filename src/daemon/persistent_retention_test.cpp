// Which job's daemon applies the rule on persistent, and which no longer does.
#include "daemon/daemon_testing.hpp"
#include "format/lineage.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"

namespace cairn {
namespace {

using namespace cairn::test;

// Whoever opened the series after this job may be restoring one of its older versions at this moment.
TEST(PersistentRetention, RemovesNothingOnceAnotherJobOpened) {
    Home home;
    home.set("CAIRN_RETENTION_PERSISTENT_LAST", "1");
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    const auto key = [](Version version) { return VersionKey{"heat", version, {1, 2}}; };
    for (Version version : {1u, 2u}) commit(client, home.roster(1), version);
    ASSERT_TRUE(becomes_true([&] { return !home.committed(key(1)); }));
    const auto slot = client.expect<control::Slot>(control::Acquire{key(3), 0, slot_bytes, 60'000});  // being captured when the other job opens
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
    write_image(slot, home.roster(1), 3, 0, image_bytes);
    client.expect<control::Done>(control::Sealed{key(3), 0, slot.path});
    EXPECT_EQ(await_commit(client, home.roster(1), 3).level, Level::committed);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // a hundred times what removing takes
    EXPECT_TRUE(home.committed(key(2)));
    EXPECT_TRUE(home.committed(key(3)));
}

// A version that only such need which go with it goes with them, and not one commit later.
TEST(PersistentRetention, WhatOnlyAVersionThatGoesNeedsGoesAtOnce) {
    Home home;
    home.set("CAIRN_RETENTION_PERSISTENT_LAST", "1");
    ASSERT_EQ(home.start(), 0) << home.errors();
    Client client(home.layout);
    join(client, home.roster(1));
    const auto key = [](Version version) { return VersionKey{"heat", version, {1, 2}}; };
    const Layout layout{home.persistent};
    commit(client, home.roster(1), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the rule was applied: once more is with version 3
    std::ifstream file(layout.manifest(key(1)), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    Result<Manifest> manifest = decode_manifest(ByteView(reinterpret_cast<const std::byte*>(text.data()), text.size()));
    ASSERT_TRUE(manifest.ok()) << manifest.status().to_string();
    manifest->key = key(2);
    manifest->attempt_id.low += 1;
    manifest->bases.push_back({1, {1, 2}});
    for (PartInfo& part : manifest->parts) part.origin = 1;
    ASSERT_TRUE(check_manifest(*manifest).ok()) << check_manifest(*manifest).to_string();
    const Bytes dependent = encode_manifest(*manifest);
    ASSERT_TRUE(decode_manifest(dependent).ok());
    fs::create_directories(layout.version(key(2)));
    std::ofstream(layout.manifest(key(2)), std::ios::binary).write(reinterpret_cast<const char*>(dependent.data()), static_cast<std::streamsize>(dependent.size()));
    ASSERT_TRUE(home.committed(key(2)));
    commit(client, home.roster(1), 3);
    EXPECT_TRUE(becomes_true([&] { return !home.committed(key(2)); }));
    EXPECT_TRUE(becomes_true([&] { return !home.committed(key(1)); }));
    EXPECT_TRUE(home.committed(key(3)));
}

}  // namespace
}  // namespace cairn
