// What stands under persistent in a record's place may be anything, of any size.
#include "catalog/record.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "client/testing.hpp"
#include "catalog/catalog.hpp"
#include "format/manifest.hpp"
#include "world/real/storage.hpp"
#include "world/real/world.hpp"

namespace cairn {
namespace {

TEST(Records, OfALargeFileOnlyTheBeginningIsReadWhereItIsNoRecord) {
    const TemporaryPlace place;
    const Layout layout{place.path()};
    const VersionKey key{"melt", 3, {1, 2}};
    std::filesystem::create_directories(layout.version(key));
    Manifest manifest;
    manifest.key = key;
    manifest.epoch = 1;
    manifest.abandoned = true;
    manifest.ranks = manifest.nodes = 1;
    manifest.attempt_id = {1, 3};
    const Bytes whole = encode_manifest(manifest);
    Result<std::unique_ptr<RealWorld>> real = RealWorld::create({});
    ASSERT_TRUE(real.ok()) << real.status().to_string();
    World world = (*real)->world();
    for (const bool begins_well : {false, true}) {  // nothing but a hole; and a manifest that was made longer
        std::ofstream(layout.manifest(key), std::ios::binary).write(reinterpret_cast<const char*>(whole.data()), begins_well ? static_cast<std::streamsize>(whole.size()) : 0);
        std::filesystem::resize_file(layout.manifest(key), (2ull << 30) - 1);
        const std::uint64_t before = (*real)->storage().statistics().read_bytes;
        const Result<Manifest> read = (*real)->loop().run(read_manifest(world, layout, key, (*real)->loop().now() + 60 * second));
        EXPECT_EQ(read.code(), Code::corrupt) << read.status().to_string();
        EXPECT_NE(read.status().text().find(layout.manifest(key)), std::string::npos) << read.status().text();
        EXPECT_LE((*real)->storage().statistics().read_bytes - before, manifest_first_read_bytes);
    }
}

// More than its first 4 KiB are read of one that is whole.
TEST(Records, ALongOneIsReadWhole) {
    const TemporaryPlace place;
    const Bytes body(100'000, std::byte{7});
    const Bytes framed = frame(FrameKind::roster, body);
    std::ofstream(place.file("roster"), std::ios::binary).write(reinterpret_cast<const char*>(framed.data()), static_cast<std::streamsize>(framed.size()));
    Result<std::unique_ptr<RealWorld>> real = RealWorld::create({});
    ASSERT_TRUE(real.ok()) << real.status().to_string();
    World world = (*real)->world();
    const Nanos until = (*real)->loop().now() + 60 * second;
    const Result<Bytes> read = (*real)->loop().run(read_record(world, place.file("roster"), FrameKind::roster, 1 << 20, until));
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_TRUE(*read == framed);
    const Result<Bytes> other = (*real)->loop().run(read_record(world, place.file("roster"), FrameKind::manifest, 1 << 20, until));
    EXPECT_EQ(other.code(), Code::corrupt);
}

}  // namespace
}  // namespace cairn
