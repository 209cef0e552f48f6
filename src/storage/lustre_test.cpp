// Lustre: what is asked of lfs and of liblustreapi, and what their answers mean. Recorded: the formats are those of lfs-df(1) and lfs-getstripe(1), release 2.15.
#include "storage/lustre.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "storage/outside_testing.hpp"

namespace cairn {
namespace {

using testing::RecordedOutside;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string directory = "/mnt/testfs/ck";
const std::string pool_words = "lfs getstripe --directory --pool " + directory;
const std::string df_words = "lfs df --lazy " + directory;

const std::string df =
    "UUID                   1K-blocks        Used   Available Use% Mounted on\n"
    "testfs-MDT0000_UUID      1165900       72292     1000548   7% /mnt/testfs[MDT:0]\n"
    "testfs-OST0000_UUID      7397448      127564     6860848   2% /mnt/testfs[OST:0]\n"
    "testfs-OST000a_UUID      7397448     7397448        1024 100% /mnt/testfs[OST:10] S\n"
    "testfs-OST0001_UUID      7397448      227564     6760848   4% /mnt/testfs[OST:1] D\n"
    "OST0002             : inactive device\n"
    "\n"
    "filesystem_summary:     22192344     7752576    13622720  37% /mnt/testfs\n";

Placing placing(std::vector<std::string> targets, std::uint32_t stripes = 0, std::uint64_t bytes = 0) { return {"lustre", std::move(targets), stripes, bytes}; }
std::string create(const Placing& told) { return RecordedOutside::text_of(lustre_create_words("/f", lustre_layout(told).value())); }

TEST(Lustre, AnIndexIsHexAndBelongsToTheName) {
    EXPECT_EQ(ost_index("testfs-OST0000"), 0u);
    EXPECT_EQ(ost_index("a-OST-b-OST00ff"), 255u);
    for (const char* name : {"testfs-MDT0000", "OST0001", "testfs-OST", "testfs-OST00x0", "testfs-OST10000", ""}) EXPECT_FALSE(ost_index(name)) << name;
}

TEST(Lustre, DfTellsOstsByIndexAndTheirRoom) {
    const std::vector<Ost> expected = {{{"testfs-OST0000", 6860848ull << 10}, true}, {{"testfs-OST0001", 6760848ull << 10}, true}, {{"testfs-OST000a", 0}, false}};
    EXPECT_EQ(osts_of_df(df).value(), expected) << "a degraded one takes files, one out of space does not, of one that is away nobody knows";
    EXPECT_EQ(osts_of_df("testfs-OST0003_UUID 10 1 9 1% /mnt/with a blank[OST:3]\n").value().size(), 1u);
}

TEST(Lustre, AnswersThatAreNotThatAreNone) {
    for (const char* text : {"", "lfs: cannot find filesystem\n", "testfs-OST0000_UUID 1 2 x 3% /m[OST:0]\n", "testfs-OST0000_UUID 1 2 18446744073709551615 3% /m[OST:0]\n", "a/b-OST0000_UUID 1 2 3 3% /m[OST:0]\n",
                             "testfs-OST0000_UUID[OST:\n"})
        EXPECT_EQ(osts_of_df(text).code(), Code::unavailable) << text;
    EXPECT_THAT(osts_of_df(df + df).status().text(), HasSubstr("twice"));
}

TEST(Lustre, VerticalIsOneStripeOnThatOst) { EXPECT_EQ(create(placing({"testfs-OST000a"})), "lfs setstripe -c 1 -i 10 /f"); }

TEST(Lustre, StripesLieOnNamedOstsAndMoreOfThemAreOverstriped) {
    EXPECT_EQ(create(placing({"t-OST0003", "t-OST0004", "t-OST0000"}, 3, 1 << 20)), "lfs setstripe -c 3 -S 1048576 -o 3,4,0 /f");
    EXPECT_EQ(create(placing({"t-OST0003"}, 16, 1)), "lfs setstripe -C 16 -S 65536 -i 3 /f");
    EXPECT_EQ(create(placing({}, 1)), "lfs setstripe -c 1 /f");
    EXPECT_EQ(create(placing({}, 4)), "lfs setstripe -C 4 /f");
    EXPECT_EQ(lustre_layout(placing({"gv-client-0"})).code(), Code::invalid_argument);
}

TEST(Lustre, TargetsAreThoseThatTakeFiles) {
    RecordedOutside outside;
    outside.answers.insert({{df_words, df}, {pool_words, std::string("\n")}});
    const Result<PlacementTargets> targets = lustre().targets(outside, directory, {});
    ASSERT_TRUE(targets.ok()) << targets.status().to_string();
    EXPECT_EQ(targets->driver, "lustre");
    EXPECT_EQ(targets->by, "lustre");
    EXPECT_THAT(targets->names, ElementsAre("testfs-OST0000", "testfs-OST0001"));
    EXPECT_EQ(targets->create_path("/f", "testfs-OST0001"), "/f") << "not by its name";
    EXPECT_EQ(lustre().rooms(outside, directory, second)->size(), 3u);
}

TEST(Lustre, APoolOfTheDirectoryIsHonoured) {
    RecordedOutside outside;
    outside.answers.insert({{pool_words, std::string("flash\n")}, {"lfs df --lazy --pool flash " + directory, df}});
    EXPECT_TRUE(lustre().targets(outside, directory, {}).ok());
    EXPECT_THAT(outside.asked, ElementsAre(pool_words, "lfs df --lazy --pool flash " + directory));
    EXPECT_EQ(pool_of_getstripe("flash\ndisk\n"), "") << "each component of a progressive layout has its own";
    EXPECT_EQ(pool_of_getstripe("flash\nflash\n"), "flash");
    EXPECT_EQ(pool_of_getstripe("--evil\n/x"), "");
}

TEST(Lustre, WithoutTheToolNothingCanBeChosen) {
    RecordedOutside outside;
    EXPECT_EQ(lustre().targets(outside, directory, {}).code(), Code::unsupported);
    EXPECT_EQ(lustre().make(outside, "/f", 0644, placing({"t-OST0001"}), second).code(), Code::unsupported);
    outside.answers.insert({pool_words, deadline_passed("lfs: it did not end in time")});
    outside.asked.clear();
    EXPECT_EQ(lustre().targets(outside, directory, {}).code(), Code::deadline);
    EXPECT_EQ(outside.asked.size(), 1u) << "what hangs is waited for once";
}

TEST(Lustre, OneOstIsNoChoice) {
    RecordedOutside outside;
    outside.answers.insert({df_words, std::string("t-OST0000_UUID 10 1 9 1% /mnt[OST:0]\n")});
    EXPECT_EQ(lustre().targets(outside, directory, {}).code(), Code::unavailable);
}

TEST(Lustre, WhereAFileLies) {
    RecordedOutside outside;
    outside.answers.insert({"lfs getstripe --yaml /f", std::string("lmm_stripe_count:  2\nlmm_stripe_size:   1048576\nlmm_pattern:       raid0\nlmm_layout_gen:    0\nlmm_stripe_offset: 11\nlmm_objects:\n"
                                                                   "      - l_ost_idx: 11\n        l_fid:     0x1000b0000:0x2:0x0\n      - l_ost_idx: 2\n        l_fid:     0x100020000:0x2:0x0\n      - l_ost_idx: 11\n")});
    EXPECT_THAT(lustre().lies_on(outside, "/f"), ElementsAre("OST000b", "OST0002"));
    EXPECT_TRUE(lustre().lies_on(outside, "/g").empty());
}

TEST(Lustre, TheNaturalBlockIsTheStripe) {
    RecordedOutside outside;
    EXPECT_EQ(lustre().block_bytes(outside, "/d").value(), 4096u);
    outside.answers.insert({"lfs getstripe --directory --stripe-size /d", std::string("1048576\n")});
    EXPECT_EQ(lustre().block_bytes(outside, "/d").value(), 1048576u);
}

// ---- liblustreapi: what is called of it, in order ----

std::string calls;
int refuses = 0;

void* fake_alloc() { return calls += "alloc ", &calls; }
void fake_free(void*) { calls += "free"; }
int fake_count(void*, std::uint64_t count) { return calls += "count=" + std::to_string(count) + " ", 0; }
int fake_size(void*, std::uint64_t bytes) { return calls += "size=" + std::to_string(bytes) + " ", 0; }
int fake_pattern(void*, std::uint64_t pattern) { return calls += "pattern=" + std::to_string(pattern) + " ", 0; }
int fake_index(void*, int stripe, std::uint64_t index) {
    calls += "ost[" + std::to_string(stripe) + "]=" + std::to_string(index) + " ";
    errno = refuses;
    return refuses == 0 ? 0 : -1;
}
int fake_create(const char* path, int, int permissions, const void*) {
    calls += "create(" + std::string(path) + "," + std::to_string(permissions) + ") ";
    return ::open("/dev/null", O_WRONLY | O_CLOEXEC);
}
void fake_level(int level) { calls = "level=" + std::to_string(level) + " "; }

struct WithLibrary : ::testing::Test {
    WithLibrary() {
        refuses = 0;
        const auto has = [this](const char* name, auto* function) { outside.functions[std::string("liblustreapi.so.1 ") + name] = reinterpret_cast<void*>(function); };
        has("llapi_msg_set_level", &fake_level);
        has("llapi_layout_alloc", &fake_alloc);
        has("llapi_layout_free", &fake_free);
        has("llapi_layout_stripe_count_set", &fake_count);
        has("llapi_layout_stripe_size_set", &fake_size);
        has("llapi_layout_pattern_set", &fake_pattern);
        has("llapi_layout_ost_index_set", &fake_index);
        has("llapi_layout_file_create", &fake_create);
    }
    std::string made(const Placing& told) {
        const Status status = lustre().make(outside, "/f", 0644, told, second);
        return status.ok() ? calls : status.text() + "; " + calls;
    }
    RecordedOutside outside;
};

TEST_F(WithLibrary, ItMakesTheFileAndNoProgramIsRun) {
    EXPECT_EQ(made(placing({"t-OST000a"})), "level=0 alloc count=1 ost[0]=10 create(/f,420) free");
    EXPECT_EQ(made(placing({"t-OST0001", "t-OST0002"}, 2, 1 << 20)), "level=0 alloc count=2 size=1048576 ost[0]=1 ost[1]=2 create(/f,420) free");
    EXPECT_EQ(made(placing({"t-OST0001"}, 8)), "level=0 alloc count=8 pattern=4 ost[0]=1 create(/f,420) free");
    EXPECT_TRUE(outside.asked.empty());
}

TEST_F(WithLibrary, WhatItRefusesIsTold) {
    refuses = EINVAL;
    EXPECT_THAT(made(placing({"t-OST0001"})), ::testing::StartsWith("llapi_layout_ost_index_set of /f"));
    EXPECT_THAT(calls, ::testing::EndsWith("free"));
    EXPECT_THAT(calls, ::testing::Not(HasSubstr("create")));
}

TEST_F(WithLibrary, OneThatLacksAFunctionIsLeftAlone) {
    outside.functions.erase("liblustreapi.so.1 llapi_layout_pattern_set");  // before 2.13
    outside.answers.insert({"lfs setstripe -c 1 -i 1 /f", std::string()});
    EXPECT_TRUE(lustre().make(outside, "/f", 0644, placing({"t-OST0001"}), second).ok());
    EXPECT_THAT(outside.asked, ElementsAre("lfs setstripe -c 1 -i 1 /f"));
}

}  // namespace
}  // namespace cairn
