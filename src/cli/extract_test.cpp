// `cairn extract` and `cairn verify`: bytes come out as they went in, or damage is named and nothing comes out.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/version_testing.hpp"

namespace cairn::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

struct Extract : testing::Test {
    ProgramFolder folder;
    Melt melt{folder};
    void SetUp() override {
        melt.open(1, first);
        melt.commit(1, first, 1);
        melt.commit(2, first, 1);
    }
    Ran cairn(const std::string& arguments) { return folder.run(arguments); }
    static int exit_of(Code code) { return static_cast<int>(code); }
};

TEST_F(Extract, an_image_to_a_file_and_to_standard_output) {
    for (Rank rank = 0; rank < 4; ++rank) {
        const std::string number = std::to_string(rank);
        const Ran ran = cairn("extract melt 1 --rank " + number + " -o out/image." + number);
        EXPECT_EQ(ran.exit, 0) << ran.err;
        EXPECT_EQ(folder.read("out/image." + number), Melt::image(rank, 1)) << rank;
        EXPECT_EQ(cairn("extract melt 2 --rank " + number + " -o -").out, Melt::image(rank, 2)) << rank;
    }
    // A window of several blocks, so that the stream is put together from many.
    folder.environment = "CAIRN_FLUSH_BUFFER_BYTES=65536 CAIRN_FLUSH_BLOCK_BYTES=4096";
    EXPECT_EQ(cairn("extract melt latest --rank 2 -o -").out, Melt::image(2, 2));
}

TEST_F(Extract, a_region_and_the_routed_files) {
    const std::string image = Melt::image(1, 2);
    EXPECT_EQ(cairn("extract melt --rank 1 --region grid -o -").out, image.substr(0, 18'896));
    EXPECT_EQ(cairn("extract melt --rank 1 --region restart/melt.1 -o one").exit, 0);
    EXPECT_EQ(folder.read("one"), image.substr(19'000));
    const Ran files = cairn("extract melt --files back --json");
    EXPECT_EQ(files.exit, 0) << files.err;
    EXPECT_EQ(Json::parse(files.out)["files"].size(), 3u);
    for (Rank rank = 0; rank < 3; ++rank)
        EXPECT_EQ(folder.read("back/restart/melt." + std::to_string(rank)),
                  Melt::image(rank, 2).substr(Melt::image_bytes(rank) - 1'000));
    EXPECT_EQ(cairn("extract melt --files one_rank --rank 2").exit, 0);
    EXPECT_FALSE(std::filesystem::exists(folder.path("one_rank/restart/melt.1")));
}

// Rank 1's grid has 2362 numbers. Committed, and from scratch, by a file and as a stream.
TEST_F(Extract, a_slice_of_a_region) {
    static_cast<void>(melt.seal("n0", 4, first, 1, 1, {}, true));
    for (const Version version : {2u, 4u}) {
        const std::string number = std::to_string(version), grid = Melt::image(1, version).substr(0, 18'896);
        const Ran ran = cairn("extract melt " + number + " --rank 1 --region grid --slice 1000:-1000 -o slice." + number);
        EXPECT_EQ(ran.exit, 0) << ran.err;
        EXPECT_THAT(ran.out, HasSubstr("f64, 362 of 2362"));
        EXPECT_EQ(folder.read("slice." + number), grid.substr(8'000, 362 * 8)) << version;
        EXPECT_EQ(cairn("extract melt " + number + " --rank 1 --region grid --slice -1 -o -").out, grid.substr(18'888)) << version;
        EXPECT_EQ(cairn("extract melt " + number + " --rank 1 --region grid --slice 5:5 -o -").out, "") << version;
        EXPECT_EQ(cairn("extract melt " + number + " --rank 1 --region restart/melt.1 --slice 10:20 -o -").out, Melt::image(1, version).substr(19'010, 10)) << "of no type, so of bytes";
    }
    const Ran both = cairn("extract melt --files back --slice 1");
    EXPECT_EQ(both.exit, exit_of(Code::invalid_argument));
    EXPECT_THAT(both.err, HasSubstr("does not go with --slice"));
    const Ran none = cairn("extract melt 2 --rank 1 --region grid --array u -o -");
    EXPECT_EQ(none.exit, exit_of(Code::not_found));
    EXPECT_THAT(none.err, HasSubstr("none is described in it"));
}

// Images of `files` routed files of `file_bytes` each.
void make_large(Melt& melt, std::uint64_t files, std::uint64_t file_bytes) {
    melt.describe = [=](Rank rank) {
        ImageInfo image{rank, files * file_bytes, {}};
        for (std::uint64_t i = 0; i < files; ++i)
            image.regions.push_back({"r" + std::to_string(rank) + "/" + std::to_string(i), RegionKind::file, DataType::bytes, {file_bytes}, i * file_bytes, file_bytes});
        return image;
    };
    melt.bytes_of = [=](Rank rank, Version version) {
        std::string bytes(files * file_bytes, '\0');
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + i / 251 + rank * 7 + version * 13);
        return bytes;
    };
}

// Each has a descriptor while it is written; so many at once are not to be had.
TEST_F(Extract, more_files_than_can_be_open) {
    make_large(melt, 250, 100);
    melt.commit(3, first, 1);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{400, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const Ran ran = cairn("extract melt 3 --files back");
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    for (Rank rank = 0; rank < 4; ++rank) {
        const std::string image = melt.bytes_of(rank, 3);
        for (std::size_t i = 0; i < 250; ++i)
            ASSERT_EQ(folder.read("back/r" + std::to_string(rank) + "/" + std::to_string(i)), image.substr(i * 100, 100)) << rank << " " << i;
    }
}

// Of several pieces, which do not begin where what is wanted does.
TEST_F(Extract, a_stream_larger_than_the_buffer) {
    make_large(melt, 3, 123'456);
    melt.commit(3, first, 1);
    static_cast<void>(melt.seal("n0", 4, first, 1, 1, {}, true));
    folder.environment = "CAIRN_FLUSH_BUFFER_BYTES=65536 CAIRN_FLUSH_BLOCK_BYTES=4096";
    for (const Version version : {3u, 4u}) {
        const std::string number = std::to_string(version), image = melt.bytes_of(1, version);
        EXPECT_EQ(cairn("extract melt " + number + " --rank 1 -o -").out, image) << version;
        EXPECT_EQ(cairn("extract melt " + number + " --rank 1 --region r1/1 -o -").out, image.substr(123'456, 123'456)) << version;
        EXPECT_EQ(cairn("extract melt " + number + " --rank 1 -o image." + number).exit, 0);
        EXPECT_EQ(folder.read("image." + number), image) << version;
    }
}

TEST_F(Extract, a_name_may_be_as_long_as_names_can_be) {
    const std::string name(255, 'n');
    const Ran ran = cairn("extract melt --rank 0 -o out/" + name);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_EQ(folder.read("out/" + name), Melt::image(0, 2));
}

TEST_F(Extract, what_is_there_is_not_replaced) {
    folder.write("out", "precious");
    const Ran ran = cairn("extract melt --rank 0 -o out");
    EXPECT_EQ(ran.exit, exit_of(Code::already_exists));
    EXPECT_THAT(ran.err, HasSubstr("--force"));
    EXPECT_EQ(folder.read("out"), "precious");
    EXPECT_EQ(cairn("extract melt --rank 0 -o out --force").exit, 0);
    EXPECT_EQ(folder.read("out"), Melt::image(0, 2));
}

TEST_F(Extract, wrong_requests_say_what_is_right) {
    EXPECT_EQ(cairn("extract melt").exit, 1);
    EXPECT_THAT(cairn("extract melt").err, HasSubstr("--rank N"));
    EXPECT_THAT(cairn("extract melt --rank 0").err, HasSubstr("--output"));
    EXPECT_EQ(cairn("extract melt --rank x -o -").exit, 1);
    EXPECT_EQ(cairn("extract melt --files a --region grid").exit, 1);
    const Ran rank = cairn("extract melt --rank 4 -o -");
    EXPECT_EQ(rank.exit, exit_of(Code::not_found));
    EXPECT_THAT(rank.err, HasSubstr("no rank 4; it was taken by 4 ranks, 0 to 3"));
    EXPECT_EQ(cairn("extract melt --rank 99999999999 -o -").exit, exit_of(Code::not_found));
    const Ran region = cairn("extract melt --rank 0 --region gird -o -");
    EXPECT_EQ(region.exit, exit_of(Code::not_found));
    EXPECT_THAT(region.err, HasSubstr("it has grid, restart/melt.0"));
    EXPECT_EQ(cairn("extract melt --rank 0 -o /dev/full").exit, exit_of(Code::already_exists));
    EXPECT_EQ(cairn("extract melt --rank 0 -o - > /dev/full").exit, exit_of(Code::io_error));
}

TEST_F(Extract, a_flipped_bit_is_named_and_nothing_comes_out) {
    Melt::flip(melt.part_path(2, first, 0), 12'288 + 4096 + 5);  // second block of rank 1
    const Ran ran = cairn("extract melt 2 --rank 1 -o out");
    EXPECT_EQ(ran.exit, exit_of(Code::corrupt));
    EXPECT_THAT(ran.err, HasSubstr("part-0000-of-0002"));
    EXPECT_THAT(ran.err, HasSubstr("block 4, rank 1, region grid"));
    EXPECT_FALSE(std::filesystem::exists(folder.path("out")));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path(".")), {}), 4)
        << "checkpoints, scratch and the two outputs";
    EXPECT_EQ(cairn("extract melt 2 --rank 0 -o -").out, Melt::image(0, 2)) << "the rest is not affected";
    EXPECT_EQ(cairn("extract melt 2 --rank 1 --region restart/melt.1 -o -").out, Melt::image(1, 2).substr(19'000));
}

// They are read together.
TEST_F(Extract, damage_in_one_of_the_files_is_named_and_none_appears) {
    Melt::flip(melt.part_path(2, first, 0), 12'288 + 19'500);  // in rank 1's
    const Ran ran = cairn("extract melt 2 --files back");
    EXPECT_EQ(ran.exit, exit_of(Code::corrupt));
    EXPECT_THAT(ran.err, HasSubstr("rank 1, region grid, restart/melt.1"));
    EXPECT_FALSE(std::filesystem::exists(folder.path("back/restart/melt.0")));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path("back/restart")));
    EXPECT_EQ(cairn("extract melt 2 --files back --rank 0").exit, 0);
}

TEST_F(Extract, damage_in_another_part_does_not_matter) {
    std::filesystem::remove(melt.part_path(2, first, 1));
    EXPECT_EQ(cairn("extract melt 2 --rank 1 -o -").out, Melt::image(1, 2));
    const Ran gone = cairn("extract melt 2 --rank 2 -o -");
    EXPECT_EQ(gone.exit, exit_of(Code::corrupt));
    EXPECT_THAT(gone.err, HasSubstr("part-0001-of-0002"));
}

TEST_F(Extract, verify_of_whole_versions) {
    const Ran ran = cairn("verify");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out,
                ContainsRegex("melt +1 +persistent +58\\.6 KiB +whole\nmelt +2 +persistent +58\\.6 KiB +whole\n"));
    EXPECT_EQ(Json::parse(cairn("verify melt 1 --json").out)["versions"].size(), 1u);
    EXPECT_EQ(Json::parse(cairn("verify melt latest --json").out)["versions"][0]["version"], 2);
    EXPECT_EQ(cairn("verify melt 7").exit, exit_of(Code::not_found));
    EXPECT_EQ(cairn("verify glass").exit, exit_of(Code::not_found));
}

TEST_F(Extract, verify_says_whose_version_it_is_where_several_have_it) {
    EXPECT_THAT(cairn("verify").out, Not(HasSubstr("incarnation")));
    melt.open(2, second, {first, 1});
    melt.commit(2, second, 2, {first, 1});
    const Ran ran = cairn("verify");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, ContainsRegex("checkpoint +version +incarnation +level"));
    EXPECT_THAT(ran.out, ContainsRegex("melt +1 +11111111 +persistent"));
    EXPECT_THAT(ran.out, ContainsRegex("melt +2 +11111111 +persistent +58\\.6 KiB +whole\n"));
    EXPECT_THAT(ran.out, ContainsRegex("melt +2 +22222222 +persistent +58\\.6 KiB +whole\n"));
    EXPECT_THAT(cairn("verify melt 1").out, Not(HasSubstr("incarnation")));
    Melt::flip(melt.part_path(2, second, 0), 3);
    const Ran damaged = cairn("verify melt 2");
    EXPECT_EQ(damaged.exit, exit_of(Code::corrupt));
    EXPECT_THAT(damaged.err, HasSubstr("1 of 2 versions damaged; the first is melt version 2 of incarnation 22222222: "));
    EXPECT_THAT(damaged.out, ContainsRegex("melt +2 +11111111 +persistent +58\\.6 KiB +whole\n"));
    EXPECT_THAT(damaged.out, ContainsRegex("melt +2 +22222222 +part-0000-of-0002[^ ]* +0 +0 +grid "));
}

TEST_F(Extract, verify_lists_all_damage) {
    Melt::flip(melt.part_path(2, first, 0), 3);                      // first block of rank 0
    Melt::flip(melt.part_path(2, first, 0), 12'288 + 4 * 4096 + 9);  // last block of rank 1
    std::filesystem::resize_file(melt.part_path(1, first, 1), 5'000);
    const Ran ran = cairn("verify melt");
    EXPECT_EQ(ran.exit, exit_of(Code::corrupt));
    EXPECT_THAT(ran.err, HasSubstr("2 of 2 versions damaged"));
    EXPECT_THAT(ran.out, ContainsRegex("melt +2 +persistent +58\\.6 KiB +damaged in 2 places"));
    EXPECT_THAT(ran.out, ContainsRegex("melt +2 +part-0000-of-0002[^ ]* +0 +0 +grid "));
    EXPECT_THAT(ran.out, ContainsRegex("melt +2 +part-0000-of-0002[^ ]* +7 +1 +grid, restart/melt\\.1 "));
    EXPECT_THAT(ran.out, ContainsRegex("melt +1 +part-0001-of-0002[^ ]* +- +- "));
    const Ran programs = cairn("verify melt 2 --json");
    EXPECT_EQ(programs.exit, exit_of(Code::corrupt));
    const Json json = Json::parse(programs.out);  // one document, also when something is damaged
    EXPECT_EQ(json["versions"][0]["whole"], false);
    EXPECT_EQ(json["versions"][0]["damage"][1]["rank"], 1);
    EXPECT_EQ(json["versions"][0]["damage"][1]["block"], 7);
}

TEST_F(Extract, verify_decodes_what_is_encoded_where_it_is_told_to) {
    melt.bytes_of = [](Rank rank, Version) { return std::string(Melt::image_bytes(rank), static_cast<char>(rank)); };
    melt.codec = Codec::numbers;
    melt.commit(3, first, 1);
    melt.spoil = [](StoredRun& run) {
        ASSERT_EQ(run.codec, 1u);
        if (run.pieces.front().rank == 1) run.pieces.front().checksums[2] ^= 1;
    };
    melt.commit(4, first, 1);
    EXPECT_EQ(cairn("verify melt 3 --decode").exit, 0);
    const Ran stored = cairn("verify melt 4");
    EXPECT_EQ(stored.exit, 0) << stored.err;
    EXPECT_THAT(stored.out, ContainsRegex("melt +4 +persistent +58\\.6 KiB +whole\n"));
    const Ran decoded = cairn("verify melt 4 --decode");
    EXPECT_EQ(decoded.exit, exit_of(Code::corrupt));
    EXPECT_THAT(decoded.out, ContainsRegex("melt +4 +persistent +58\\.6 KiB +damaged in 1 place"));
    EXPECT_THAT(decoded.out, ContainsRegex("melt +4 +part-0000-of-0002[^ ]* +1 +1 +grid +checksum differs"));
    EXPECT_EQ(Json::parse(cairn("verify melt 4 --json").out)["decoded"], false);
    EXPECT_EQ(Json::parse(cairn("verify melt 4 --decode --json").out)["decoded"], true);
    EXPECT_EQ(cairn("extract melt 4 --rank 1 -o image").exit, exit_of(Code::corrupt)) << "as a restart finds it";
    Melt::flip(melt.part_path(4, first, 0), 20);
    EXPECT_THAT(cairn("verify melt 4").out, ContainsRegex("part-0000-of-0002[^ ]* +0 +0 +grid, restart/melt\\.0 +checksum of the encoded bytes differs"));
}

TEST_F(Extract, verify_calls_damage_only_what_is_damaged) {
    // What is leased can not be opened until it is let go, as little as what one may not read; root may read everything.
    const int held = ::open(melt.part_path(2, first, 1).c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::fcntl(held, F_SETSIG, SIGURG), 0);  // who is asked to let go is told by a signal: one that does nothing
    ASSERT_EQ(::fcntl(held, F_SETLEASE, F_WRLCK), 0);
    folder.environment = "CAIRN_DEADLINES_IO_MS=1000";
    const Ran ran = cairn("verify melt");
    EXPECT_EQ(ran.exit, exit_of(Code::deadline));
    EXPECT_THAT(ran.err, HasSubstr("1 of 2 versions can not be read; the first is melt version 2"));
    EXPECT_THAT(ran.out, ContainsRegex("melt +2 +persistent +58\\.6 KiB +can not be read"));
    EXPECT_EQ(Json::parse(cairn("verify melt 2 --json").out)["versions"][0]["whole"], false);
    Melt::flip(melt.part_path(1, first, 0), 3);
    EXPECT_EQ(cairn("verify melt").exit, exit_of(Code::corrupt));
    ::close(held);
}

TEST_F(Extract, verify_calls_a_newer_format_no_damage) {
    const std::string path = melt.part_path(2, first, 1);
    std::string part = folder.read(std::filesystem::relative(path, folder.path("")));
    char* const trailer = part.data() + part.size() - part_trailer_bytes;
    const std::uint32_t newer = format_version + 1;
    std::memcpy(trailer + 24, &newer, sizeof newer);
    const std::uint64_t checked = checksum(as_bytes({trailer, 32}));
    std::memcpy(trailer + 32, &checked, sizeof checked);
    Melt::write(path, as_bytes(part));
    const Ran ran = cairn("verify melt");
    EXPECT_EQ(ran.exit, exit_of(Code::unsupported)) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("1 of 2 versions can not be read; the first is melt version 2"));
    EXPECT_THAT(ran.out, ContainsRegex("melt +1 +persistent +58\\.6 KiB +whole\nmelt +2 +persistent +58\\.6 KiB +can not be read"));
    Melt::flip(melt.part_path(2, first, 0), 3);  // damage is told before what could not be read
    const Ran both = cairn("verify melt");
    EXPECT_EQ(both.exit, exit_of(Code::corrupt));
    EXPECT_THAT(both.out, ContainsRegex("melt +2 +persistent +58\\.6 KiB +damaged in 1 place\n"));
}

TEST_F(Extract, verify_tells_a_damaged_manifest) {
    Melt::flip(melt.layout.manifest(Melt::key(1, first)), 70);
    const Ran ran = cairn("verify melt 1");
    EXPECT_EQ(ran.exit, exit_of(Code::corrupt));
    EXPECT_THAT(ran.err, HasSubstr("manifest"));
    EXPECT_EQ(cairn("verify melt 2").exit, 0);
}

// ---- not committed: this host's scratch ----

TEST_F(Extract, from_scratch_what_is_not_committed) {
    for (Rank rank = 0; rank < 4; ++rank)
        static_cast<void>(melt.seal(rank < 2 ? "n0" : "n1", 3, first, 1, rank, {}, true));
    const Ran ran = cairn("extract melt 3 --rank 1 -o out --json");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_EQ(folder.read("out"), Melt::image(1, 3));
    EXPECT_THAT(ran.err, HasSubstr("melt version 3 is not committed; taken from this host's scratch"));
    const Json json = Json::parse(ran.out);
    EXPECT_EQ(json["level"], "scratch");
    EXPECT_EQ(json["files"][0]["verified"], true);
    EXPECT_EQ(cairn("extract melt 3 --rank 2 --region restart/melt.2 -o -").out, Melt::image(2, 3).substr(29'000));
    EXPECT_EQ(cairn("extract melt 3 --files all").exit, 0);
    EXPECT_EQ(folder.read("all/restart/melt.0"), Melt::image(0, 3).substr(9'000));
    EXPECT_EQ(cairn("extract melt 3 --rank 4 -o -").exit, exit_of(Code::not_found));
    EXPECT_EQ(Json::parse(cairn("extract melt newest --rank 0 -o newest --json").out)["version"], 2)
        << "the newest that is committed";
    folder.environment = "CAIRN_FLUSH_BUFFER_BYTES=65536 CAIRN_FLUSH_BLOCK_BYTES=4096";
    EXPECT_EQ(cairn("extract melt 3 --rank 2 -o -").out, Melt::image(2, 3));
}

TEST_F(Extract, from_scratch_when_nothing_is_committed_or_not_all_is_here) {
    static_cast<void>(melt.seal("n0", 3, second, 2, 1));
    const Ran other = cairn("extract melt 3 --rank 2 -o -");
    EXPECT_EQ(other.exit, exit_of(Code::not_found));
    EXPECT_THAT(other.err, HasSubstr("not in this host's scratch, which has rank 1"));
    EXPECT_EQ(cairn("extract melt 3 --files all").exit, exit_of(Code::not_found));
    EXPECT_EQ(cairn("extract melt 3 --files one --rank 1").exit, 0);
    const Ran newest = cairn("extract melt --rank 1 -o -");
    EXPECT_EQ(newest.out, Melt::image(1, 3)) << "nothing of the current lineage is committed";
    EXPECT_THAT(newest.err, HasSubstr("can not be verified"));
    static_cast<void>(melt.part(4, first, 0));
    const Ran unfinished = cairn("extract melt 4 --rank 0 -o -");
    EXPECT_EQ(unfinished.exit, exit_of(Code::not_found));
    EXPECT_THAT(unfinished.err, HasSubstr("parts of it are there without a manifest"));
}

TEST_F(Extract, damage_in_scratch_is_named) {
    const std::string slot = melt.seal("n0", 3, first, 1, 1, {}, true);
    Melt::flip(slot, std::filesystem::file_size(slot) - 8192);
    const Ran ran = cairn("extract melt 3 --rank 1 -o out");
    EXPECT_EQ(ran.exit, exit_of(Code::corrupt));
    EXPECT_THAT(ran.err, ContainsRegex("block [0-9]+, rank 1, region grid"));
    EXPECT_FALSE(std::filesystem::exists(folder.path("out")));
    const Ran verify = cairn("verify melt 3 --json");
    EXPECT_EQ(verify.exit, exit_of(Code::corrupt));
    EXPECT_EQ(Json::parse(verify.out)["versions"][0]["damage"][0]["part"], slot);
}

TEST_F(Extract, verify_of_images_in_scratch) {
    static_cast<void>(melt.seal("n0", 3, first, 1, 0, {}, true));
    static_cast<void>(melt.seal("n0", 3, first, 1, 1));
    static_cast<void>(melt.seal("n1", 3, first, 1, 3));  // empty
    const Ran ran = cairn("verify melt 3");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out,
                ContainsRegex("melt +3 +scratch +29\\.3 KiB +no damage in 2 images of 4; no checksums yet: rank 1; "
                              "not on this host: rank 2\n"));
    const Json json = Json::parse(cairn("verify melt 3 --json").out)["versions"][0];
    EXPECT_EQ(json["level"], "scratch");
    EXPECT_EQ(json["whole"], false);
    EXPECT_EQ(json["unchecked_ranks"], Json::parse("[1]"));
    EXPECT_EQ(json["absent_ranks"], Json::parse("[2]"));
    EXPECT_EQ(Json::parse(cairn("verify --json").out)["versions"].size(), 3u);
    for (Rank rank = 1; rank < 3; ++rank) static_cast<void>(melt.seal("n0", 3, first, 1, rank, {}, true));
    EXPECT_EQ(Json::parse(cairn("verify melt 3 --json").out)["versions"][0]["whole"], true);
    EXPECT_EQ(cairn("verify melt 7").exit, exit_of(Code::not_found));
}

// The machine was started again: what lost power may have left of an image says "sealed" of anything. The daemon would remove what can not prove
// itself, and reads the rest.
TEST_F(Extract, images_that_a_restart_of_the_machine_may_have_torn_must_prove_themselves) {
    const std::string proved = melt.seal("n0", 3, first, 1, 0, {}, true), torn = melt.seal("n0", 3, first, 1, 2, {}, true);
    static_cast<void>(melt.seal("n0", 3, first, 1, 1));  // without checksums
    static_cast<void>(melt.seal("n1", 3, first, 1, 3));  // empty: its header has a checksum of its own
    Melt::flip(torn, image_proof_offset);                // a table, and bytes, of the image before
    EXPECT_EQ(cairn("verify melt 3").exit, 0);
    EXPECT_EQ(cairn("extract melt 3 --rank 1 -o -").out, Melt::image(1, 3));
    melt.note_boot("n0", "another boot");
    for (const Rank rank : {1u, 2u}) {
        const Ran ran = cairn("extract melt 3 --rank " + std::to_string(rank) + " -o out");
        EXPECT_EQ(ran.exit, exit_of(Code::corrupt));
        EXPECT_THAT(ran.err, HasSubstr("the image of rank " + std::to_string(rank) + " of melt version 3: not believed (the machine was started again"));
        EXPECT_FALSE(std::filesystem::exists(folder.path("out")));
    }
    EXPECT_EQ(cairn("extract melt 3 --rank 0 -o -").out, Melt::image(0, 3));
    EXPECT_EQ(cairn("extract melt 3 --files all").exit, exit_of(Code::corrupt));
    const Ran verify = cairn("verify melt 3 --json");
    EXPECT_EQ(verify.exit, exit_of(Code::corrupt));
    const Json version = Json::parse(verify.out)["versions"][0];
    EXPECT_EQ(version["damage"].size(), 2u);
    EXPECT_EQ(version["absent_ranks"], Json::array());
    EXPECT_EQ(cairn("ls melt").exit, 0);
    Melt::flip(proved, std::filesystem::file_size(proved) - 8192);  // a sector that was not written
    EXPECT_EQ(Json::parse(cairn("verify melt 3 --json").out)["versions"][0]["damage"].size(), 3u);
}

}  // namespace
}  // namespace cairn::cli
