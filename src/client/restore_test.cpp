// Restore over a real daemon: many regions from each level, some of them by name, and what a damaged image in scratch leads to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "catalog/manifest_lookup.hpp"
#include "client/session_testing.hpp"
#include "format/manifest.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

constexpr std::size_t region_values = 16;

std::string region_name(std::size_t i) { return "field/" + std::to_string(i); }

struct Restore : Room {
    std::vector<Field> fields;

    void SetUp() override {
        Room::SetUp();
        fields.assign(3000, Field(region_values));
    }
    void protect_all(cairn_session* session) {
        for (std::size_t i = 0; i < fields.size(); ++i) ASSERT_EQ(fields[i].protect(session, region_name(i).c_str()), CAIRN_OK) << cairn_last_error(session);
    }
    void fill(std::uint64_t version) {
        for (std::size_t i = 0; i < fields.size(); ++i) fields[i].fill(i, version);
    }
    std::size_t held(std::uint64_t version) const {
        std::size_t count = 0;
        for (std::size_t i = 0; i < fields.size(); ++i) count += fields[i].holds(i, version);
        return count;
    }
    // Version 1, committed; in memory are other bytes afterwards.
    cairn_session* committed() {
        cairn_session* session = open();
        if (!session) return nullptr;
        protect_all(session);
        fill(1);
        EXPECT_EQ(cairn_checkpoint(session, 1), CAIRN_OK) << cairn_last_error(session);
        EXPECT_EQ(cairn_wait(session, 1, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
        fill(9);
        return session;
    }
};

TEST_F(Restore, ManyRegionsComeBackFromScratchAndFromParts) {
    cairn_session* session = committed();
    ASSERT_NE(session, nullptr);
    std::uint64_t version = 0;
    ASSERT_EQ(cairn_restore(session, CAIRN_NEWEST, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(held(1), fields.size());
    EXPECT_EQ(cairn_close(session), CAIRN_OK);

    fill(9);
    session = open("n1");  // whose scratch is empty
    ASSERT_NE(session, nullptr);
    protect_all(session);
    ASSERT_EQ(cairn_restore(session, 1, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(held(1), fields.size());
    std::uint64_t bytes = 0;
    ASSERT_EQ(cairn_region_bytes(session, 1, region_name(2999).c_str(), &bytes), CAIRN_OK);
    EXPECT_EQ(bytes, 8 * region_values);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

TEST_F(Restore, OnlyTheNamedOnesAreTouched) {
    cairn_session* session = committed();
    ASSERT_NE(session, nullptr);
    const std::string first = region_name(0), last = region_name(2999);
    const char* const names[] = {last.c_str(), first.c_str(), last.c_str()};
    ASSERT_EQ(cairn_restore_regions(session, 1, names, 3, nullptr), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(held(1), 2u);
    EXPECT_TRUE(fields[0].holds(0, 1) && fields[2999].holds(2999, 1));
    EXPECT_EQ(held(9), fields.size() - 2);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

TEST_F(Restore, ARegionThatTheVersionLacksIsNamedAndNothingIsTouched) {
    cairn_session* session = committed();
    ASSERT_NE(session, nullptr);
    Field more(4);
    ASSERT_EQ(more.protect(session, "more"), CAIRN_OK);
    EXPECT_EQ(cairn_restore(session, 1, nullptr), CAIRN_NOT_FOUND);
    EXPECT_THAT(cairn_last_error(session), HasSubstr("version 1 has no region \"more\" of rank 0"));
    EXPECT_EQ(held(9), fields.size());
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// What scratch holds of the index can not be believed, and the parts hold it, too.
TEST_F(Restore, ADamagedRegionIndexInScratchKeepsNothingFromBeingTold) {
    cairn_session* session = committed();
    ASSERT_NE(session, nullptr);
    std::size_t flipped = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.file("n0"))) {
        if (!entry.is_regular_file()) continue;
        const std::size_t end = read_text(entry.path().string()).find("CAIRNreg");
        if (end == std::string::npos) continue;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(end - 1));
        file.put('x');
        ++flipped;
    }
    ASSERT_EQ(flipped, 1u);
    std::uint64_t version = 0, bytes = 0;
    ASSERT_EQ(cairn_newest(session, &version), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_region_bytes(session, 1, region_name(7).c_str(), &bytes), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(bytes, 8 * region_values);
    ASSERT_EQ(cairn_restore(session, CAIRN_NEWEST, nullptr), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(held(1), fields.size());
    EXPECT_THAT(cairn_warnings(session), HasSubstr("(the region index)"));
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// The checksums of an image in scratch are made with its first read, so the flush has made them.
TEST_F(Restore, ADamagedImageInScratchIsToldAndThePartsAreTaken) {
    cairn_session* session = committed();
    ASSERT_NE(session, nullptr);
    Field kept(region_values);
    kept.fill(1500, 1);
    const std::string bytes(reinterpret_cast<const char*>(kept.values.data()), 8 * region_values);
    std::size_t flipped = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.file("n0"))) {
        if (!entry.is_regular_file()) continue;
        const std::size_t at = read_text(entry.path().string()).find(bytes);
        if (at == std::string::npos) continue;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(at));
        file.put(static_cast<char>(bytes[0] ^ 1));
        ++flipped;
    }
    ASSERT_EQ(flipped, 1u);
    ASSERT_EQ(cairn_restore(session, CAIRN_NEWEST, nullptr), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(held(1), fields.size());
    EXPECT_THAT(cairn_warnings(session), HasSubstr("rank 0: the image in scratch is damaged, taking the committed files"));
    EXPECT_THAT(cairn_warnings(session), HasSubstr(region_name(1500)));
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
}

// Of a manifest that is longer than a first read the survey sees the head, which is whole; its rank meets the damage, and all go back.
TEST_F(Restore, ADamagedRecordOfALongManifestLeadsToTheOlderVersion) {
    cairn_session* session = committed();
    ASSERT_NE(session, nullptr);
    fill(2);
    ASSERT_EQ(cairn_checkpoint(session, 2), CAIRN_OK) << cairn_last_error(session);
    ASSERT_EQ(cairn_wait(session, 2, CAIRN_COMMITTED, 30'000), CAIRN_OK) << cairn_last_error(session);
    EXPECT_EQ(cairn_close(session), CAIRN_OK);
    std::string path;
    for (const auto& entry : std::filesystem::directory_iterator(Layout{persistent_}.version(name_, 2)))
        if (entry.path().filename().string().starts_with("manifest.")) path = entry.path().string();
    const std::string text = read_text(path);
    Result<Manifest> manifest = decode_manifest(Bytes(reinterpret_cast<const std::byte*>(text.data()), reinterpret_cast<const std::byte*>(text.data() + text.size())));
    ASSERT_TRUE(manifest.ok()) << manifest.status().to_string();
    for (std::uint64_t i = 1; i <= 2000; ++i) manifest->bases.push_back({1, {7, i}});
    const Bytes whole = encode_manifest(*manifest);
    ASSERT_GT(whole.size(), manifest_first_read_bytes);
    for (const bool damaged : {false, true}) {
        Bytes bytes = whole;
        if (damaged) bytes.back() ^= std::byte(1);
        std::filesystem::remove(path);
        std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        fill(9);
        session = open("n1");  // whose scratch is empty
        ASSERT_NE(session, nullptr);
        protect_all(session);
        std::uint64_t version = 0;
        ASSERT_EQ(cairn_restore(session, CAIRN_NEWEST, &version), CAIRN_OK) << cairn_last_error(session);
        EXPECT_EQ(version, damaged ? 1u : 2u);
        EXPECT_EQ(held(version), fields.size());
        if (damaged) {
            EXPECT_THAT(cairn_warnings(session), HasSubstr("version 2 is damaged, going back to an older one"));
            EXPECT_THAT(cairn_warnings(session), HasSubstr(path));
        }
        EXPECT_EQ(cairn_close(session), CAIRN_OK);
    }
}

}  // namespace
}  // namespace cairn
