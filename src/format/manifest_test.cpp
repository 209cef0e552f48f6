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
    bool is_on_disk = true;  // false: records of parts can not say it, their names being computed and their ranks sorted
};

std::string other_part_file() { return part_file_name(0, 1, {1, 1}); }

// The fourth of five parts of a base, which has rank 2 here.
PartInfo base_part(const Manifest& m, std::uint32_t base) {
    PartInfo part = m.parts[0];
    part.file = part_file_name(3, 5, {1, 1});
    part.origin = base;
    part.ranks = {2};
    return part;
}
void depend(Manifest& m, std::vector<BaseVersion> bases) {
    m.bases = std::move(bases);
    for (std::uint32_t base = 1; base <= m.bases.size(); ++base) m.parts.push_back(base_part(m, base));
}

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
    {"file that is no part", [](Manifest& m) { m.parts[0].file = "../../etc/passwd"; }, "file name is not a part's", false},
    {"file of another attempt", [](Manifest& m) { m.parts[0].file = other_part_file(); },
     "is not part 0 of 1 of its attempt", false},
    {"file of another part", [](Manifest& m) { m.parts[0].file = part_file_name(1, 2, m.attempt_id); },
     "is not part 0 of 1"},
    {"part named twice", [](Manifest& m) { m.parts.push_back(m.parts[0]); }, "is not part 0 of 2"},
    {"footer beyond the file", [](Manifest& m) { m.parts[0].footer_offset = m.parts[0].bytes; }, "leave no room"},
    {"footer too near the end", [](Manifest& m) { m.parts[0].bytes = m.parts[0].footer_offset + part_trailer_bytes; },
     "leave no room"},
    {"footer beyond all bounds", [](Manifest& m) { m.parts[0].footer_offset = 1ull << 61; }, "leave no room"},
    {"index beside of no length", [](Manifest& m) { m.parts[0].footer_offset = 0, m.parts[0].index_bytes = part_trailer_bytes; }, "leave no room"},
    {"index beside that does not begin with the footer", [](Manifest& m) { m.parts[0].index_bytes = m.parts[0].bytes; }, "is its footer alone"},
    {"file of more ranks than one", [](Manifest& m) { m.parts[0].file = part_file_name({0, 1, m.attempt_id, FileLayout::ranks, 0}); }, "is not the file of one rank of 3"},
    {"file of another number of nodes", [](Manifest& m) { m.parts[0].file = part_file_name({0, 1, m.attempt_id, FileLayout::nodes, 0}); }, "is not the file of one node of 2"},
    {"part of a base that is not named", [](Manifest& m) { m.parts.push_back(base_part(m, 1)); }, "is of base 1; the manifest names 0", false},
    {"base that is newer", [](Manifest& m) { depend(m, {{m.key.version, {5, 5}}}); }, "can not be a base of version 7"},
    {"base of no version", [](Manifest& m) { depend(m, {{0, {5, 5}}}); }, "version 0 can not be a base"},
    {"base of no incarnation", [](Manifest& m) { depend(m, {{1, {}}}); }, "version 1 can not be a base"},
    {"base twice", [](Manifest& m) { depend(m, {{1, {5, 5}}, {1, {5, 5}}}); }, "version 1 is twice among its bases"},
    {"part of a base twice", [](Manifest& m) { depend(m, {{1, {5, 5}}}), m.parts.push_back(m.parts.back()); }, "is out of order"},
    {"bases out of order", [](Manifest& m) { depend(m, {{1, {5, 5}}, {2, {5, 5}}}), std::swap(m.parts[1], m.parts[2]); }, "is out of order"},
    {"abandoned with bases", [](Manifest& m) { m.abandoned = true, m.parts.clear(), m.bases = {{1, {5, 5}}}; }, "abandoned, and yet it names parts"},
    {"more bases than there can be", [](Manifest& m) { m.bases.resize(bases_max + 1, {1, {5, 5}}); }, "4097 bases"},
    {"footer that is not aligned", [](Manifest& m) { m.parts[0].footer_offset -= 1; }, "does not start on a multiple of 4096"},
    {"rank beyond",
     [](Manifest& m) {
         m.parts[0].ranks = {0, 1, 3};
     },
     "rank 3 of 3", false},
    {"ranks not increasing",
     [](Manifest& m) {
         m.parts[0].ranks = {0, 2, 1};
     },
     "rank 1 after rank 2", false},
    {"rank twice",
     [](Manifest& m) {
         m.parts[0].ranks = {0, 1, 1};
     },
     "rank 1 after rank 1", false},
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
    const Status checked = check_manifest(manifest);
    EXPECT_EQ(checked.code(), Code::corrupt);
    EXPECT_NE(checked.text().find(GetParam().told), std::string::npos) << checked.text();
    if (!GetParam().is_on_disk) return;
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

TEST(Manifest, Bases) {
    Manifest manifest = samples::manifest();
    depend(manifest, {{1, {5, 5}}, {6, manifest.key.incarnation}});
    ASSERT_TRUE(check_manifest(manifest).ok()) << check_manifest(manifest).to_string();
    EXPECT_EQ(*decode_manifest(encode_manifest(manifest)), manifest);
    EXPECT_EQ(key_of(manifest, manifest.parts[0]), manifest.key);
    EXPECT_EQ(key_of(manifest, manifest.parts[1]), (VersionKey{manifest.key.name, 1, {5, 5}}));
    // One that is needed to decode what others hold has none here.
    manifest.bases.insert(manifest.bases.begin(), {3, {5, 5}});
    for (PartInfo& part : manifest.parts) part.origin += part.origin == 0 ? 0 : 1;
    EXPECT_EQ(*decode_manifest(encode_manifest(manifest)), manifest);
    // A version in which nothing changed has no part of its own.
    manifest.parts.erase(manifest.parts.begin());
    manifest.parts[0].ranks = {0, 1, 2};
    const auto back = decode_manifest(encode_manifest(manifest));
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(*back, manifest);
}

// A base's part has images that the newer version took anew: those are not in the manifest's list, and are no contradiction.
TEST(Manifest, FooterOfABase) {
    Manifest manifest = samples::manifest();
    depend(manifest, {{1, {5, 5}}});
    Footer footer = samples::footer();
    footer.key = key_of(manifest, manifest.parts[1]);
    footer.attempt_id = {1, 1};
    footer.part = 3, footer.parts = 5;
    EXPECT_TRUE(check_part_of(manifest, 1, footer).ok()) << check_part_of(manifest, 1, footer).to_string();
    footer.images.erase(std::find_if(footer.images.begin(), footer.images.end(), [](const ImageInfo& image) { return image.rank == 2; }));
    EXPECT_EQ(check_part_of(manifest, 1, footer).code(), Code::corrupt);
}

// Who keeps to what a manifest names keeps all that its runs need.
TEST(Manifest, RunsAgainstABase) {
    Manifest manifest = samples::manifest();
    Footer footer = samples::footer();
    footer.bases = {{{5, {5, 5}}, 0, 4096}};
    const Status checked = check_part_of(manifest, 0, footer);
    EXPECT_EQ(checked.code(), Code::corrupt);
    EXPECT_NE(checked.text().find("its runs need version 5"), std::string::npos) << checked.text();
    manifest.bases = {{5, {5, 5}}};
    EXPECT_TRUE(check_part_of(manifest, 0, footer).ok());
}

TEST(Manifest, FooterBeside) {
    Manifest manifest = samples::manifest();
    Footer footer = samples::footer();
    PartInfo& part = manifest.parts[0];
    part.index_bytes = part.bytes - part.footer_offset;
    part.bytes = footer.data_bytes;
    part.footer_offset = 0;
    const Bytes index = encode_footer(footer, IndexPlace::beside);
    part.footer_checksum = footer_checksum(index);
    const auto place = decode_trailer(index, index.size());
    ASSERT_TRUE(place.ok()) << place.status().to_string();
    EXPECT_TRUE(check_footer_place(*place, part).ok());
    EXPECT_EQ(*decode_footer(ByteView(index).first(place->length), *place), footer);
    EXPECT_EQ(*decode_manifest(encode_manifest(manifest)), manifest);
    EXPECT_TRUE(check_part_of(manifest, 0, footer).ok());
    part.bytes += 4096;
    EXPECT_EQ(check_part_of(manifest, 0, footer).code(), Code::corrupt);
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
    ASSERT_TRUE(check_part_of(manifest, 0, right).ok());
    ASSERT_TRUE(check_footer_place(*place, manifest.parts[0]).ok());
    EXPECT_FALSE(check_part_of(manifest, 1, right).ok());

    const std::pair<const char*, std::function<void(Footer&)>> footers[] = {
        {"name, version or incarnation", [](Footer& f) { f.key.name = "other"; }},
        {"name, version or incarnation", [](Footer& f) { f.key.version = 8; }},
        {"name, version or incarnation", [](Footer& f) { f.key.incarnation.low ^= 1; }},
        {"attempt", [](Footer& f) { f.attempt_id.low ^= 1; }},
        {"part number", [](Footer& f) { f.parts = 2; }},
        {"part number", [](Footer& f) { f.part = 1; }},
        {"number of ranks", [](Footer& f) { f.ranks = 4; }},
        {"block size", [](Footer& f) { f.block_bytes = 8192; }},
        {"size of the part", [](Footer& f) { f.data_bytes += 4096; }},
        {"list of ranks", [](Footer& f) { f.images.pop_back(); }}};
    for (const auto& [told, change] : footers) {
        Footer footer = right;
        change(footer);
        const Status status = check_part_of(manifest, 0, footer);
        EXPECT_EQ(status.code(), Code::corrupt) << told;
        EXPECT_NE(status.text().find(told), std::string::npos) << status.text();
    }
    for (FooterPlace wrong : {FooterPlace{place->offset + 1, place->length, place->checksum},
                              FooterPlace{place->offset, place->length + 1, place->checksum},
                              FooterPlace{place->offset, place->length, place->checksum ^ 1}})
        EXPECT_EQ(check_footer_place(wrong, manifest.parts[0]).code(), Code::corrupt);
}

}  // namespace
}  // namespace cairn
