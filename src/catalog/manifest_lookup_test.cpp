// One rank's parts out of a manifest: how many reads that takes, and that it says what all of the manifest says.
#include "catalog/manifest_lookup.hpp"

#include <gtest/gtest.h>

#include "catalog/catalog.hpp"
#include "proof/cluster.hpp"
#include "world/sim/machine.hpp"

namespace cairn {
namespace {

constexpr Nanos span = 600 * second;

Manifest manifest_of(std::uint32_t ranks, std::uint32_t parts, FileLayout layout) {
    Manifest m;
    m.key = {"wide", 7, {1, 2}};
    m.epoch = 1;
    m.attempt_id = {1, 3};
    m.ranks = ranks;
    m.nodes = std::min(ranks, 8u);
    m.block_bytes = 4096;
    for (std::uint32_t i = 0; i < parts; ++i) {
        PartInfo& part = m.parts.emplace_back();
        part.file = part_file_name({i, parts, m.attempt_id, layout, i % 3});
        part.footer_offset = 4096ull * (i + 1);
        part.bytes = part.footer_offset + 500;
        part.footer_checksum = 77 * i;
        for (Rank rank = i; rank < ranks; rank += parts) part.ranks.push_back(rank);
    }
    return m;
}

struct ManifestLookup : ::testing::Test {
    void write(Bytes bytes) {
        const auto task = [](World w, Layout l, VersionKey k, Bytes b, Status& out) -> Task<void> {
            Status made = co_await make_directories(w.storage, l.persistent, l.version(k), w.clock.in(span));
            const std::string path = l.manifest(k);
            const Status before = co_await w.storage.remove(path, w.clock.in(span));
            (void)before;
            if (made.ok()) made = co_await write_file(w.storage, path, std::move(b), 0644, w.clock.in(span));
            out = std::move(made);
        };
        Status wrote = deadline_passed("");
        EXPECT_TRUE(cluster.sim.run(task(process.world(), cluster.layout, manifest.key, std::move(bytes), wrote), cluster.sim.now() + span));
        ASSERT_TRUE(wrote.ok()) << wrote.to_string();
    }
    Result<Manifest> read_of(std::optional<Rank> rank) {
        Result<Manifest> found(Status(Code::deadline, ""));
        const auto task = [](World w, Layout l, VersionKey k, std::optional<Rank> r, Result<Manifest>& out) -> Task<void> {
            Task<Result<Manifest>> reading = r ? read_manifest_of(w, l, k, *r, w.clock.in(span)) : read_manifest(w, l, k, w.clock.in(span));
            Result<Manifest> of = co_await reading;
            out = std::move(of);
        };
        reads = 0;
        cluster.sim.set_observer([this](sim::Process&, std::string_view what, const std::string&) { reads += what == "read"; });
        EXPECT_TRUE(cluster.sim.run(task(process.world(), cluster.layout, manifest.key, rank, found), cluster.sim.now() + span));
        cluster.sim.set_observer(nullptr);
        return found;
    }
    std::vector<CatalogEntry> list(Manifests manifests) {
        Result<std::vector<CatalogEntry>> found(Status(Code::deadline, ""));
        const auto task = [](World w, Layout l, Manifests how, Result<std::vector<CatalogEntry>>& out) -> Task<void> {
            Result<std::vector<CatalogEntry>> entries = co_await list_versions(w, l, "wide", w.clock.in(span), how);
            out = std::move(entries);
        };
        EXPECT_TRUE(cluster.sim.run(task(process.world(), cluster.layout, manifests, found), cluster.sim.now() + span));
        EXPECT_TRUE(found.ok()) << found.status().to_string();
        return found.ok() ? *found : std::vector<CatalogEntry>();
    }
    // Just those parts that all of the manifest names for the rank.
    void expect_of(Rank rank) {
        const Result<Manifest> of = read_of(rank);
        ASSERT_TRUE(of.ok()) << of.status().to_string();
        std::vector<PartInfo> expected;
        for (PartInfo part : manifest.parts)
            if (std::binary_search(part.ranks.begin(), part.ranks.end(), rank)) {
                part.ranks = {rank};
                expected.push_back(part);
            }
        EXPECT_EQ(of->parts, expected);
        EXPECT_EQ(of->of_rank, rank);
        EXPECT_EQ(of->ranks, manifest.ranks);
    }

    testing::Cluster cluster{{}};
    sim::Process& process = cluster.hosts[0].node->start_process("reader");
    Manifest manifest;
    int reads = 0;
};

// Told by the bytes that persistent's one target carries.
TEST_F(ManifestLookup, AListOfVersionsReadsHeadsAlone) {
    manifest = manifest_of(100'000, 100'000, FileLayout::ranks);
    const Bytes bytes = encode_manifest(manifest);
    ASSERT_GT(bytes.size(), 40 * manifest_first_read_bytes);
    write(bytes);
    sim::MachineModel model;
    model.nic_out_rates = model.nic_in_rates = std::vector<double>(cluster.hosts.back().node->id() + 1, 0);
    model.server_rates = model.target_rates = {1e9};
    cluster.sim.set_machine(std::make_unique<sim::Machine>(cluster.sim, model));
    const std::uint64_t before = cluster.sim.machine()->target_bytes(0);
    const std::vector<CatalogEntry> heads = list(Manifests::heads);
    const std::uint64_t listed = cluster.sim.machine()->target_bytes(0);
    ASSERT_EQ(heads.size(), 1u);
    EXPECT_TRUE(heads[0].committed());
    EXPECT_EQ(*heads[0].manifest, static_cast<const ManifestFacts&>(manifest));
    EXPECT_FALSE(heads[0].whole);
    EXPECT_GT(listed, before);
    EXPECT_LE(listed - before, manifest_first_read_bytes);
    const std::vector<CatalogEntry> whole = list(Manifests::whole);
    ASSERT_TRUE(whole.size() == 1 && whole[0].whole);
    EXPECT_EQ(*whole[0].whole, manifest);
    EXPECT_GE(cluster.sim.machine()->target_bytes(0) - listed, bytes.size());
}

// Who wants parts meets the damage; a length that is wrong, and what a first read shows, everybody does.
TEST_F(ManifestLookup, DamageBehindAHeadIsOfItsRecords) {
    manifest = manifest_of(20'000, 20'000, FileLayout::ranks);
    const Bytes right = encode_manifest(manifest);
    Bytes wrong = right;
    wrong.back() ^= std::byte(1);
    write(wrong);
    EXPECT_TRUE(list(Manifests::heads).at(0).committed());
    const CatalogEntry damaged = list(Manifests::whole).at(0);
    EXPECT_FALSE(damaged.manifest || damaged.whole);
    ASSERT_TRUE(damaged.damage);
    EXPECT_EQ(damaged.damage->code(), Code::corrupt);
    Bytes cut = right;
    cut.pop_back();
    write(cut);
    EXPECT_EQ(list(Manifests::heads).at(0).damage->code(), Code::corrupt);
    manifest = manifest_of(64, 8, FileLayout::parts);
    Bytes small = encode_manifest(manifest);
    small.back() ^= std::byte(1);
    write(small);
    EXPECT_EQ(list(Manifests::heads).at(0).damage->code(), Code::corrupt);
}

// Bytes behind a manifest are none of it, however many they are: they are not read.
TEST_F(ManifestLookup, WhatTheHeadDoesNotTellIsNotRead) {
    manifest = manifest_of(20'000, 3, FileLayout::parts);
    Bytes bytes = encode_manifest(manifest);
    ASSERT_GT(bytes.size(), manifest_first_read_bytes);
    bytes.resize(bytes.size() + 40'000'000);
    write(std::move(bytes));
    const Result<Manifest> all = read_of(std::nullopt);
    EXPECT_EQ(all.code(), Code::corrupt);
    EXPECT_EQ(reads, 1);
    EXPECT_EQ(read_of(7).code(), Code::corrupt);
}

TEST_F(ManifestLookup, AllOfALongOneTakesTwoReads) {
    manifest = manifest_of(20'000, 3, FileLayout::parts);
    write(encode_manifest(manifest));
    const Result<Manifest> all = read_of(std::nullopt);
    ASSERT_TRUE(all.ok()) << all.status().to_string();
    EXPECT_EQ(*all, manifest);
    EXPECT_EQ(reads, 2);
}

TEST_F(ManifestLookup, AMillionFilesOfAMillionRanksTakeFourReads) {
    manifest = manifest_of(1'000'000, 1'000'000, FileLayout::ranks);
    write(encode_manifest(manifest));
    for (const Rank rank : {0u, 1u, 524'288u, 999'999u}) {
        const Result<Manifest> of = read_of(rank);
        ASSERT_TRUE(of.ok()) << of.status().to_string();
        ASSERT_EQ(of->parts.size(), 1u);
        EXPECT_EQ(of->parts[0], manifest.parts[rank]);
        EXPECT_LE(reads, 4);
    }
    EXPECT_TRUE(read_of(1'000'000).ok());
}

TEST_F(ManifestLookup, OfARankInManyParts) {
    manifest = manifest_of(40'000, 2'000, FileLayout::parts);
    for (std::uint32_t i = 0; i < 2'000; ++i)
        if (i != 17 && i % 97 != 5) manifest.parts[i].ranks.insert(std::lower_bound(manifest.parts[i].ranks.begin(), manifest.parts[i].ranks.end(), 17u), 17u);
    ASSERT_TRUE(check_manifest(manifest).ok()) << check_manifest(manifest).to_string();
    write(encode_manifest(manifest));
    for (const Rank rank : {0u, 16u, 17u, 18u, 39'999u}) {
        expect_of(rank);
        EXPECT_LE(reads, 4);
    }
}

// One that depends on very many versions begins with more than the first read shows.
TEST_F(ManifestLookup, AHeadMayBeLongerThanTheFirstRead) {
    manifest = manifest_of(64, 8, FileLayout::parts);
    manifest.key.version = 9'000;
    for (Version version = 1; version <= bases_max; ++version) manifest.bases.push_back({version, {1, 2}});
    ASSERT_TRUE(check_manifest(manifest).ok()) << check_manifest(manifest).to_string();
    const Bytes bytes = encode_manifest(manifest);
    ASSERT_GT(bytes.size(), manifest_first_read_bytes);
    write(bytes);
    const CatalogEntry head = list(Manifests::heads).at(0);
    ASSERT_TRUE(head.committed()) << (head.damage ? head.damage->to_string() : "");
    EXPECT_EQ(head.manifest->bases, manifest.bases);
    expect_of(3);
}

TEST_F(ManifestLookup, ASmallOneIsReadWholeAtOnce) {
    manifest = manifest_of(64, 8, FileLayout::parts);
    write(encode_manifest(manifest));
    const Result<Manifest> of = read_of(3);
    ASSERT_TRUE(of.ok()) << of.status().to_string();
    EXPECT_EQ(*of, manifest);
    EXPECT_EQ(reads, 1);
}

// What is read is verified: damage anywhere is told, or is of other ranks' pages.
TEST_F(ManifestLookup, DamageIsToldOrElsewhere) {
    manifest = manifest_of(20'000, 20'000, FileLayout::parts);
    const Bytes right = encode_manifest(manifest);
    int told = 0;
    for (std::size_t at = 3; at < right.size(); at += 20'011) {
        Bytes wrong = right;
        wrong[at] ^= std::byte(4);
        write(std::move(wrong));
        const Result<Manifest> of = read_of(9'999);
        if (!of.ok()) {
            EXPECT_EQ(of.code(), Code::corrupt);
            EXPECT_NE(of.status().text().find("manifest."), std::string::npos) << of.status().text();
            ++told;
            continue;
        }
        ASSERT_EQ(of->parts.size(), 1u);
        EXPECT_EQ(of->parts[0], manifest.parts[9'999]);
    }
    EXPECT_GT(told, 3);
    Bytes cut = right;
    cut.resize(right.size() - 1);
    write(std::move(cut));
    EXPECT_EQ(read_of(0).code(), Code::corrupt);
}

}  // namespace
}  // namespace cairn
