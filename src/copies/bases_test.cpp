// A version whose runs are differences to an older one: what is restored of it, and what is said where that one is damaged, gone, or not what it should be.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "copies/based_testing.hpp"

namespace cairn {
namespace {

class WithBase : public ::testing::Test, public testing::BasedVersions {
  protected:
    // Whose bytes are lost, and that each is told with the base, its part and its region.
    std::set<Rank> lost(const std::vector<Damage>& damages, Code code = Code::corrupt) {
        std::set<Rank> ranks;
        for (const Damage& damage : damages) {
            EXPECT_EQ(damage.status.code(), code) << damage.status.to_string();
            EXPECT_NE(damage.status.text().find("needs version 10, its base: "), std::string::npos) << damage.status.text();
            EXPECT_EQ(damage.part, version.parts[0].file);
            EXPECT_TRUE(damage.block.has_value());
            if (!damage.rank) continue;
            EXPECT_EQ(damage.region, "field-" + std::to_string(*damage.rank));
            ranks.insert(*damage.rank);
        }
        return ranks;
    }
    // Restores that fail name both versions, and another version may do.
    void expect_lost(Rank rank, const std::string& why, Code code = Code::corrupt) {
        const Status status = restore(rank);
        EXPECT_EQ(status.code(), code) << status.to_string();
        EXPECT_NE(status.text().find("based version 12: "), std::string::npos) << status.text();
        EXPECT_NE(status.text().find("needs version 10, its base: " + why), std::string::npos) << status.text();
    }
};

TEST_F(WithBase, EveryImageIsRestoredAndVerified) {
    for (const std::uint64_t buffer : {64ull << 20, 4096ull})
        for (const std::uint64_t encoded : {256ull << 20, 1ull}) {
            RestoreSettings settings;
            settings.buffer_bytes = buffer;
            settings.encoded_bytes = encoded;
            for (Rank rank = 0; rank < 3; ++rank) {
                const Status status = restore(rank, {}, settings);
                EXPECT_TRUE(status.ok()) << status.to_string();
                EXPECT_EQ(restored_bytes, newer[rank].size());
            }
            for (const VerifyDepth depth : {VerifyDepth::stored, VerifyDepth::decoded}) {
                const std::vector<Damage> found = verify(depth, settings);
                EXPECT_TRUE(found.empty()) << found.front().status.to_string();
                EXPECT_EQ(verified_bytes, version.image_bytes);
            }
        }
}

TEST_F(WithBase, ARangeOfAnImageIsRestored) {
    EXPECT_TRUE(restore(0, {{large / 2 + 100, 50}}).ok()) << "what has no base needs none";
    EXPECT_EQ(cpu.decodes, 0);
    EXPECT_TRUE(restore(0, {{5000, 50}}).ok());
    EXPECT_EQ(cpu.decodes, 2) << "its run, and one of the base's: the other two are not encoded, or not needed";
}

// The two runs with a base of rank 0 need three of the base, the middle one both: here it is encoded.
TEST_F(WithBase, ARunOfTheBaseIsDecodedOnceWhereThereIsMemory) {
    base.parts.clear();
    base.image_bytes = 0;
    commit(base, older, {{{{{0, 0, large}}, Codec::planes}, {{{1, 0, small}, {2, 0, small}}, Codec::planes}}});
    EXPECT_TRUE(restore(0).ok());
    EXPECT_EQ(cpu.decodes, 3);
    cpu.decodes = 0;
    RestoreSettings settings;
    settings.readers = 1;
    settings.encoded_bytes = 1;
    EXPECT_TRUE(restore(0, {}, settings).ok());
    EXPECT_EQ(cpu.decodes, 3) << "one run is kept as long as nobody needs the room";
}

// Each has the first run of its first part decoded, and they are not the same.
TEST_F(WithBase, TwoBasesAreKeptApart) {
    others = newer;
    for (Rank rank = 0; rank < 3; ++rank) change(others[rank], rank);
    commit(other, others, {{pack(1, 2, Codec::planes, 0)}, {{{{0, 0, large}}}}});
    for (Manifest* each : {&base, &version}) {
        each->parts.clear();
        each->bases.clear();
        each->image_bytes = 0;
    }
    commit(base, older, {{{{{0, 0, large}}, Codec::planes}, {{{1, 0, small}, {2, 0, small}}}}});
    commit(version, newer, {{{{{0, 0, large}}, Codec::planes, 1}, pack(2, 1, Codec::planes, 2)}});
    const std::vector<Damage> found = verify();
    EXPECT_TRUE(found.empty()) << found.front().status.to_string();
    files.files.erase(layout.manifest(other.key));
    EXPECT_TRUE(restore(0).ok());
    EXPECT_NE(restore(1).text().find("needs version 11, its base: it is not there any more"), std::string::npos);
}

TEST_F(WithBase, DamageInTheBaseIsTheLossOfWhatDependsOnIt) {
    stored_byte(base, 1, 1, 20) ^= std::byte{1};  // the pack of ranks 1 and 2
    for (const VerifyDepth depth : {VerifyDepth::stored, VerifyDepth::decoded}) EXPECT_EQ(lost(verify(depth)), (std::set<Rank>{1, 2}));
    EXPECT_TRUE(restore(0).ok());
    expect_lost(1, base.parts[1].file + " block ");
    expect_lost(2, base.parts[1].file + " block ");
}

TEST_F(WithBase, ADamagedBlockOfTheBaseIsNamed) {
    stored_byte(base, 0, 1, 5 * 4096 + 7) ^= std::byte{1};  // stored as it is: the middle of rank 0, which both of its runs need
    for (const VerifyDepth depth : {VerifyDepth::stored, VerifyDepth::decoded}) {
        const std::vector<Damage> found = verify(depth);
        EXPECT_EQ(found.size(), 1u) << "the other run needs none of that block";
        EXPECT_EQ(lost(found), (std::set<Rank>{0}));
        const std::uint64_t block = (footer_of(base, 0).runs[1].part_offset + 5 * 4096) / 4096;
        EXPECT_NE(found[0].status.text().find(base.parts[0].file + " block " + std::to_string(block) + ", rank 0, region field-0: checksum differs"), std::string::npos) << found[0].status.text();
    }
    EXPECT_TRUE(restore(0, {{large - 100, 100}}).ok());
    EXPECT_TRUE(restore(1).ok());
}

TEST_F(WithBase, ABaseThatIsGoneIsNamed) {
    files.files.erase(layout.manifest(base.key));
    for (const VerifyDepth depth : {VerifyDepth::stored, VerifyDepth::decoded}) EXPECT_EQ(lost(verify(depth)), (std::set<Rank>{0, 1, 2}));
    for (Rank rank = 0; rank < 3; ++rank) expect_lost(rank, "it is not there any more");
    EXPECT_TRUE(restore(0, {{large / 2, 4096}}).ok()) << "what has no base needs none";

    Manifest tombstone;
    tombstone.key = base.key;
    tombstone.epoch = base.epoch;
    tombstone.abandoned = true;
    publish(tombstone);
    expect_lost(0, "it was given up or removed");
}

TEST_F(WithBase, APartOfTheBaseThatIsGoneIsNamed) {
    files.files.erase(layout.part(base, 1));
    expect_lost(0, "");
    expect_lost(1, "");
    EXPECT_EQ(lost(verify()), (std::set<Rank>{0, 1, 2}));
}

TEST_F(WithBase, ADamagedManifestOfTheBaseIsNamed) {
    files.files.at(layout.manifest(base.key))[60] ^= std::byte{1};
    expect_lost(0, "");
    EXPECT_EQ(lost(verify()), (std::set<Rank>{0, 1, 2}));
}

TEST_F(WithBase, ABaseThatHasBasesIsRefused) {
    Footer footer = footer_of(base, 1);
    footer.bases.push_back({{9, base.key.incarnation}, 0, 0});
    base.bases.push_back({9, base.key.incarnation});
    footer.runs[1].base = 1;
    write_footer(base, 1, footer);
    expect_lost(1, "it has a base itself", Code::unsupported);
    EXPECT_TRUE(restore(0).ok()) << "it needs no such run of it";
    EXPECT_EQ(lost(verify(), Code::unsupported), (std::set<Rank>{1, 2}));
}

TEST_F(WithBase, ABaseOfOtherImagesIsRefused) {
    testing::ImagesByHand others = older;
    others[0].resize(large / 2);
    others.pop_back();
    base.parts.clear();
    base.image_bytes = 0;
    commit(base, others, {{{{{0, 0, large / 2}}}, {{{1, 0, small}}}}});
    expect_lost(1, "it has no image of rank 2");
    expect_lost(0, "its image of rank 0 has " + std::to_string(large / 2) + " bytes, and those up to " + std::to_string(large));
    EXPECT_TRUE(restore(0, {{0, large / 2}}).ok());
    EXPECT_EQ(lost(verify()), (std::set<Rank>{0, 1, 2}));
}

TEST_F(WithBase, ABaseWithOtherBytesIsFound) {
    testing::ImagesByHand others = older;
    others[0][8 * 100] ^= std::byte{64};
    base.parts.clear();
    base.image_bytes = 0;
    commit(base, others, {{{{{0, 0, large}}}, {{{1, 0, small}, {2, 0, small}}}}});
    EXPECT_TRUE(verify(VerifyDepth::stored).empty()) << "all is as it was written";
    EXPECT_EQ(restore(0).code(), Code::corrupt);
    const std::vector<Damage> found = verify();
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].rank, 0u);
}

TEST_F(WithBase, OneThatNamesARunIsUnsupported) {
    Footer footer = footer_of(version, 0);
    footer.bases[0].part_offset = 4096;
    write_footer(version, 0, footer);
    EXPECT_EQ(restore(0).code(), Code::unsupported);
    EXPECT_EQ(restore(1).code(), Code::unsupported);
}

TEST_F(WithBase, ABaseThatAFooterDoesNotHaveIsDamage) {
    Footer footer = footer_of(version, 0);
    footer.runs[0].base = 2;
    write_footer(version, 0, footer);
    EXPECT_EQ(restore(0).code(), Code::corrupt);
}

TEST_F(WithBase, PiecesThatShareBytesHaveNoOneBase) {
    Footer footer = footer_of(version, 0);
    StoredRun& pack = footer.runs.back();
    pack.pieces[1].at = 0;
    pack.stored_bytes = std::min(pack.stored_bytes, small - 1);
    write_footer(version, 0, footer);
    const Status status = restore(1);
    EXPECT_EQ(status.code(), Code::corrupt);
    EXPECT_NE(status.text().find("share bytes"), std::string::npos) << status.text();
}

// Files of such a pair as an earlier Cairn wrote them. `CAIRN_WRITE_GOLDEN=1 test_copies` writes those that are absent.
TEST(Golden, APairOfVersionsIsReadAsItWasWritten) {
    testing::BasedVersions made(6);
    for (auto& [name, bytes] : made.files.files) {
        const std::filesystem::path path = std::filesystem::path(CAIRN_GOLDEN) / "v2" / name.substr(made.layout.persistent.size() + 1);
        if (std::getenv("CAIRN_WRITE_GOLDEN") && !std::filesystem::exists(path)) {
            std::filesystem::create_directories(path.parent_path());
            std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        }
        std::ifstream stream(path, std::ios::binary);
        ASSERT_TRUE(stream) << path;
        bytes = to_bytes(std::string(std::istreambuf_iterator<char>(stream), {}));
    }
    for (Manifest* manifest : {&made.base, &made.version}) {
        const Result<Manifest> read = decode_manifest(made.files.files.at(made.layout.manifest(manifest->key)));
        ASSERT_TRUE(read.ok()) << read.status().to_string();
        *manifest = *read;
    }
    for (Rank rank = 0; rank < 3; ++rank) {
        const Status status = made.restore(rank);
        EXPECT_TRUE(status.ok()) << status.to_string();
        EXPECT_EQ(made.restored_bytes, made.newer[rank].size());
    }
    EXPECT_TRUE(made.verify().empty());
}

}  // namespace
}  // namespace cairn
