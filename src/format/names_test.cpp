// Names: what is let in, and that printers and parsers agree.
#include "format/names.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Names, CheckpointNames) {
    for (const char* good : {"a", "melt", "LLM-7B_step.1", "0", "-", "_", "a..b", "a."}) {
        EXPECT_TRUE(valid_name(good)) << good;
        EXPECT_TRUE(check_name(good).ok()) << good;
    }
    EXPECT_TRUE(valid_name(std::string(128, 'x')));
    for (const std::string& bad : {std::string(), std::string("."), std::string(".."), std::string(".cairn"),
                                   std::string("a/b"), std::string("/"), std::string("a b"), std::string("a\0b", 3),
                                   std::string("\xC3\xA4"), std::string(129, 'x'), std::string("a\n")}) {
        EXPECT_FALSE(valid_name(bad)) << bad;
        const Status status = check_name(bad);
        EXPECT_EQ(status.code(), Code::invalid_argument) << bad;
        EXPECT_NE(status.text().find("allowed are 1 to 128 of"), std::string::npos) << status.text();
        EXPECT_EQ(status.text().find('\n'), std::string::npos) << "a control character reached the text";
        EXPECT_EQ(status.text().find('\0'), std::string::npos);
    }
}

TEST(Names, RegionNames) {
    for (const char* good :
         {"x", "model.layers.0/weight", "a b", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x99\x82", "...", "a..b/.c", "%"}) {
        EXPECT_TRUE(valid_region_name(good)) << good;
        EXPECT_TRUE(check_region_name(good).ok()) << good;
    }
    EXPECT_TRUE(valid_region_name(std::string(512, 'x')));
    for (const std::string& bad : {std::string(),
                                   std::string("/etc/passwd"),
                                   std::string("a//b"),
                                   std::string("a/"),
                                   std::string("."),
                                   std::string(".."),
                                   std::string("../x"),
                                   std::string("a/../b"),
                                   std::string("a/."),
                                   std::string("a\0b", 3),
                                   std::string("tab\t"),
                                   std::string("\x7F"),
                                   std::string("\xC2\x80"),
                                   std::string("\xC3"),
                                   std::string("\xC0\x80"),
                                   std::string("\xE0\x80\x80"),
                                   std::string("\xED\xA0\x80"),
                                   std::string("\xF0\x80\x80\x80"),
                                   std::string("\xF4\x90\x80\x80"),
                                   std::string("\xF8"),
                                   std::string("\x80"),
                                   std::string("\xE2\x82"),
                                   std::string(513, 'x')}) {
        EXPECT_FALSE(valid_region_name(bad)) << bad;
        EXPECT_EQ(check_region_name(bad).code(), Code::invalid_argument) << bad;
    }
}

TEST(Names, PartFiles) {
    const Id128 id{0xFEDCBA9876543210, 0x0123456789ABCDEF};
    const std::string file = part_file_name(3, 16, id);
    EXPECT_EQ(file, "part-0003-of-0016.fedcba98765432100123456789abcdef");
    EXPECT_EQ(parse_part_file_name(file), (PartFileName{3, 16, id}));
    const std::string wide = part_file_name(12345, 4294967295u, id);
    EXPECT_EQ(parse_part_file_name(wide), (PartFileName{12345, 4294967295u, id}));
    const std::string tensors = part_file_name({3, 16, id, FileLayout::tensors, 2});
    EXPECT_EQ(tensors, "tensors-0003-of-0016.fedcba98765432100123456789abcdef.2.safetensors");
    EXPECT_EQ(parse_part_file_name(tensors), (PartFileName{3, 16, id, FileLayout::tensors, 2}));
    EXPECT_EQ(parse_part_index_file_name(tensors + ".index"), parse_part_file_name(tensors));
    EXPECT_TRUE(is_part_path("/p/melt/1/" + tensors));
    for (const char* bad :
         {"", "part-", "part-0003", "part-0003-of-0016", "part-0003-of-0016.",
          "part-3-of-0016.fedcba98765432100123456789abcdef", "part-00003-of-0016.fedcba98765432100123456789abcdef",
          "part-0016-of-0016.fedcba98765432100123456789abcdef", "part-0003-of-0016.FEDCBA98765432100123456789ABCDEF",
          "part-0003-of-0016.fedcba98765432100123456789abcdef0",
          "part-0003-of-0016.fedcba98765432100123456789abcdef/..",
          "xpart-0003-of-0016.fedcba98765432100123456789abcdef",
          "part-0003-of-9999999999.fedcba98765432100123456789abcdef",
          "part-+003-of-0016.fedcba98765432100123456789abcdef", "part-0003.-of-0016.fedcba98765432100123456789abcdef",
          "part-0000-of-0000.fedcba98765432100123456789abcdef",
          "tensors-0003-of-0016.fedcba98765432100123456789abcdef", "part-0003-of-0016.fedcba98765432100123456789abcdef.safetensors"})
        EXPECT_FALSE(parse_part_file_name(bad)) << bad;
}

TEST(Names, ManifestFiles) {
    const Id128 id{1, 2};
    EXPECT_EQ(manifest_file_name(id), "manifest.00000000000000010000000000000002");
    EXPECT_EQ(parse_manifest_file_name(manifest_file_name(id)), id);
    for (const char* bad : {"", "manifest", "manifest.", "manifest.1", "manifest.00000000000000010000000000000002.tmp",
                            "Manifest.00000000000000010000000000000002"})
        EXPECT_FALSE(parse_manifest_file_name(bad)) << bad;
}

TEST(Names, VersionDirectories) {
    EXPECT_EQ(version_directory_name(18446744073709551615u), "18446744073709551615");
    EXPECT_EQ(parse_version_directory_name("18446744073709551615"), 18446744073709551615u);
    EXPECT_EQ(parse_version_directory_name("7"), 7u);
    for (const char* bad : {"", "0", "007", "-1", "+1", " 1", "1 ", "18446744073709551616", "1x", "lineage"})
        EXPECT_FALSE(parse_version_directory_name(bad)) << bad;
}

TEST(Names, LineageFiles) {
    EXPECT_EQ(lineage_open_name(7), "0000000007.open");
    EXPECT_EQ(lineage_from_name(epoch_max), "9999999999.from");
    EXPECT_EQ(parse_lineage_open_name("0000000007.open"), 7u);
    EXPECT_EQ(parse_lineage_from_name("9999999999.from"), epoch_max);
    for (const char* bad : {"", ".open", "7.open", "0000000000.open", "0000000007.from", "00000000007.open",
                            "0000000007.open.tmp", "10000000000.open"})
        EXPECT_FALSE(parse_lineage_open_name(bad)) << bad;
    EXPECT_FALSE(parse_lineage_from_name("0000000007.open"));
    const std::string aside = aside_name("0000000007.open", {1, 2});
    EXPECT_EQ(aside, "0000000007.open.damaged-00000000000000010000000000000002");
    EXPECT_FALSE(parse_lineage_open_name(aside) || parse_version_directory_name(aside_name("7", {1, 2})));
    for (const std::string& taken : {std::string("0000000007.open"), std::string("0000000007.from"), aside}) EXPECT_EQ(parse_epoch_taken(taken), 7u) << taken;
    for (const std::string& free : {aside + "0", aside.substr(0, 20), std::string("7.damaged-") + Id128{1, 2}.hex()}) EXPECT_FALSE(parse_epoch_taken(free)) << free;
}

TEST(Names, TemporaryFilesAreNobodysElse) {
    const std::string file = temporary_file_name({1, 2});
    EXPECT_EQ(file, ".tmp-00000000000000010000000000000002");
    EXPECT_EQ(parse_temporary_file_name(file), (Id128{1, 2}));
    EXPECT_FALSE(parse_part_file_name(file) || parse_manifest_file_name(file) || parse_lineage_open_name(file) ||
                 parse_version_directory_name(file));
    EXPECT_FALSE(valid_name(file));
    EXPECT_EQ(parse_attempt_of(file), (Id128{1, 2}));
    EXPECT_EQ(parse_attempt_of(part_file_name(0, 1, {3, 4})), (Id128{3, 4}));
    EXPECT_FALSE(parse_attempt_of(manifest_file_name({1, 2})));
    for (const std::string& bad : {std::string(".tmp-"), std::string(".tmp-1"), file + "0", file.substr(1),
                                   std::string(".tmp-0000000000000001000000000000000A"), manifest_file_name({1, 2})})
        EXPECT_FALSE(parse_temporary_file_name(bad)) << bad;
}

TEST(Names, SlotFiles) {
    EXPECT_EQ(slot_file_name(SlotKind::image, 18446744073709551615u), "slot-18446744073709551615");
    for (const SlotKindRow& row : slot_kinds) EXPECT_EQ(parse_slot_file_name(slot_file_name(row.kind, 7)), (SlotFileName{row.kind, 7}));
    for (const char* bad : {"", "slot", "slot-", "slot--1", "slot-+1", "slot-07", "slot-1-2", "slot-1x", "slot-18446744073709551616", "Slot-1", "xslot-1",
                            "slots-1", "partner-1", ".tmp-00000000000000010000000000000002", "slot-1.damaged-00000000000000010000000000000002"})
        EXPECT_FALSE(parse_slot_file_name(bad)) << bad;
}

}  // namespace
}  // namespace cairn
