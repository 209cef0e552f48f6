// Manifests: every invariant violated once, and footers that are not the ones meant.
#include "format/manifest.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "format/samples.hpp"

namespace cairn {
namespace {

struct Violation {
    const char* called;
    std::function<void(Manifest&)> make;
    const char* told;
};

std::string other_part_file() { return part_file_name(0, 1, {1, 1}); }

const Violation violations[] = {
    {"name", [](Manifest& m) { m.key.name = ""; }, "name is not a valid one"},
    {"version", [](Manifest& m) { m.key.version = 0; }, "version 0"},
    {"incarnation", [](Manifest& m) { m.key.incarnation = {}; }, "no incarnation"},
    {"parent without version", [](Manifest& m) { m.parent.version = 0; },
     "a parent with an incarnation but no version"},
    {"parent without incarnation", [](Manifest& m) { m.parent.incarnation = {}; }, "or the reverse"},
    {"epoch zero", [](Manifest& m) { m.epoch = 0; }, "epoch 0"},
    {"epoch large", [](Manifest& m) { m.epoch = epoch_max + 1; }, "epoch 10000000000"},
    {"abandoned with parts", [](Manifest& m) { m.abandoned = true; }, "abandoned, and yet it names parts"},
    {"attempt", [](Manifest& m) { m.attempt_id = {}; }, "no attempt"},
    {"no ranks", [](Manifest& m) { m.ranks = 0; }, "0 ranks"},
    {"no nodes", [](Manifest& m) { m.nodes = 0; }, "0 nodes"},
    {"block size", [](Manifest& m) { m.block_bytes = 5000; }, "block size of 5000"},
    {"no parts", [](Manifest& m) { m.parts.clear(); }, "0 parts for 3 ranks"},
    {"more parts than ranks", [](Manifest& m) { m.parts.resize(4, m.parts[0]); }, "4 parts for 3 ranks"},
    {"file that is no part", [](Manifest& m) { m.parts[0].file = "../../etc/passwd"; }, "file name is not a part's"},
    {"file of another attempt", [](Manifest& m) { m.parts[0].file = other_part_file(); },
     "is not part 0 of 1 of its attempt"},
    {"file of another part", [](Manifest& m) { m.parts[0].file = part_file_name(1, 2, m.attempt_id); },
     "is not part 0 of 1"},
    {"part named twice", [](Manifest& m) { m.parts.push_back(m.parts[0]); }, "is not part 0 of 2"},
    {"footer beyond the file", [](Manifest& m) { m.parts[0].footer_offset = m.parts[0].bytes; }, "leave no room"},
    {"footer too near the end", [](Manifest& m) { m.parts[0].bytes = m.parts[0].footer_offset + part_trailer_bytes; },
     "leave no room"},
    {"footer beyond all bounds", [](Manifest& m) { m.parts[0].footer_offset = 1ull << 61; }, "leave no room"},
    {"footer that is not aligned", [](Manifest& m) { m.parts[0].footer_offset -= 1; }, "does not start on a multiple of 4096"},
    {"rank beyond",
     [](Manifest& m) {
         m.parts[0].ranks = {0, 1, 3};
     },
     "rank 3 of 3"},
    {"ranks not increasing",
     [](Manifest& m) {
         m.parts[0].ranks = {0, 2, 1};
     },
     "rank 1 after rank 2"},
    {"rank twice",
     [](Manifest& m) {
         m.parts[0].ranks = {0, 1, 1};
     },
     "rank 1 after rank 1"},
    {"rank in no part",
     [](Manifest& m) {
         m.parts[0].ranks = {0, 1};
     },
     "its parts hold 2 of 3 ranks"},
    {"rank in no part but another in two",
     [](Manifest& m) {
         m.parts = {m.parts[0], m.parts[0]};
         for (std::uint32_t i = 0; i < 2; ++i) m.parts[i].file = part_file_name(i, 2, m.attempt_id);
         m.parts[0].ranks = m.parts[1].ranks = {0, 2};
     },
     "no part holds rank 1"},
    {"root that is not named", [](Manifest& m) { m.parts[0].root = 1; }, "lies below root 1; the manifest names 0"},
    {"root beyond all bounds", [](Manifest& m) { m.parts[0].root = roots_max + 1; }, "there are at most 256"},
    {"root that is relative", [](Manifest& m) { m.roots = {"fast/a"}; }, "no absolute path"},
    {"root that is empty", [](Manifest& m) { m.roots = {""}; }, "no absolute path"},
    {"root that is the root of all", [](Manifest& m) { m.roots = {"/"}; }, "no absolute path"},
    {"root that goes up", [](Manifest& m) { m.roots = {"/fast/../etc"}; }, "no absolute path, or not in its one spelling"},
    {"root with a slash too many", [](Manifest& m) { m.roots = {"/fast/"}; }, "not in its one spelling"},
    {"root with a control character", [](Manifest& m) { m.roots = {"/fast\n"}; }, "no absolute path"},
    {"root that is too long", [](Manifest& m) { m.roots = {"/" + std::string(root_bytes_max, 'a')}; }, "no absolute path"},
    {"root twice", [](Manifest& m) { m.roots = {"/a", "/b", "/a"}; }, "root /a is there twice"},
    {"more roots than there can be",
     [](Manifest& m) {
         for (std::uint32_t i = 0; i <= roots_max; ++i) m.roots.push_back("/" + std::to_string(i));
     },
     "257 roots"},
    {"tombstone with a root that goes up",
     [](Manifest& m) {
         m.abandoned = true;
         m.parts.clear();
         m.roots = {"/fast/.."};
     },
     "no absolute path"},
    {"ranks beyond what parts could hold", [](Manifest& m) { m.ranks = ranks_max; },
     "its parts hold 3 of 16777216 ranks"},
};

class ManifestInvariants : public testing::TestWithParam<Violation> {};
TEST_P(ManifestInvariants, Violated) {
    Manifest manifest = samples::manifest();
    ASSERT_TRUE(check_manifest(manifest).ok());
    GetParam().make(manifest);
    EXPECT_EQ(check_manifest(manifest).code(), Code::corrupt);
    const auto result = decode_manifest(encode_manifest(manifest));
    ASSERT_EQ(result.code(), Code::corrupt);
    EXPECT_NE(result.status().text().find(GetParam().told), std::string::npos) << result.status().text();
}
INSTANTIATE_TEST_SUITE_P(Manifest, ManifestInvariants, testing::ValuesIn(violations), [](const auto& test) {
    std::string name = test.param.called;
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
});

TEST(Manifest, Roots) {
    for (const Manifest& manifest : {samples::manifest_with_roots(), samples::tombstone_with_roots()}) {
        const auto back = decode_manifest(encode_manifest(manifest));
        ASSERT_TRUE(back.ok()) << back.status().to_string();
        EXPECT_EQ(*back, manifest);
    }
}

TEST(Manifest, Tombstone) {
    const auto back = decode_manifest(encode_manifest(samples::tombstone()));
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(*back, samples::tombstone());
}

// Something of the footer is not what the manifest means.
TEST(Manifest, FooterOfAnother) {
    const Manifest manifest = samples::manifest();
    const Footer right = samples::footer();
    const Bytes part = samples::part();
    const auto place = decode_trailer(part, part.size());
    ASSERT_TRUE(place.ok());
    ASSERT_TRUE(check_part_of(manifest, 0, right, *place).ok());
    EXPECT_FALSE(check_part_of(manifest, 1, right, *place).ok());

    const std::pair<const char*, std::function<void(Footer&)>> footers[] = {
        {"name, version or incarnation", [](Footer& f) { f.key.name = "other"; }},
        {"name, version or incarnation", [](Footer& f) { f.key.version = 8; }},
        {"name, version or incarnation", [](Footer& f) { f.key.incarnation.low ^= 1; }},
        {"attempt", [](Footer& f) { f.attempt_id.low ^= 1; }},
        {"part number", [](Footer& f) { f.parts = 2; }},
        {"part number", [](Footer& f) { f.part = 1; }},
        {"number of ranks", [](Footer& f) { f.ranks = 4; }},
        {"block size", [](Footer& f) { f.block_bytes = 8192; }},
        {"list of ranks", [](Footer& f) { f.images.pop_back(); }}};
    for (const auto& [told, change] : footers) {
        Footer footer = right;
        change(footer);
        const Status status = check_part_of(manifest, 0, footer, *place);
        EXPECT_EQ(status.code(), Code::corrupt) << told;
        EXPECT_NE(status.text().find(told), std::string::npos) << status.text();
    }
    for (FooterPlace wrong : {FooterPlace{place->offset + 1, place->length, place->checksum},
                              FooterPlace{place->offset, place->length + 1, place->checksum},
                              FooterPlace{place->offset, place->length, place->checksum ^ 1}})
        EXPECT_EQ(check_part_of(manifest, 0, right, wrong).code(), Code::corrupt);
}

}  // namespace
}  // namespace cairn
