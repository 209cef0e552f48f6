// Damaged records of a lineage, and directories: each damage against each command that looks at the series, and `cairn repair`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "cli/version_testing.hpp"

namespace cairn::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr Id128 third{0x3333333333333333, 0xcccccccccccccccc};

// A job that took 1 to 3, and one that went back to 2 and took 3 and 4.
struct DamagedLineage : testing::Test {
    ProgramFolder folder;
    Melt melt{folder};

    void SetUp() override { build(); }
    void build() {
        fs::remove_all(melt.layout.persistent);
        melt.open(1, first);
        for (const Version version : {1, 2, 3}) melt.commit(version, first, 1);
        melt.open(2, second, {first, 2});
        for (const Version version : {3, 4}) melt.commit(version, second, 2, {first, 2});
    }
    // A third one, which went back to 1 and committed nothing.
    void go_back() { melt.open(3, third, {first, 1}); }

    Ran cairn(const std::string& arguments) { return folder.run(arguments); }
    static int exit_of(Code code) { return static_cast<int>(code); }
    std::string open_record(std::uint64_t epoch) const { return melt.layout.lineage_open("melt", epoch); }
    std::string from_record(std::uint64_t epoch) const { return melt.layout.lineage_from("melt", epoch); }

    // "1 2 3*": what is committed, those outside the current lineage marked.
    std::string versions() {
        const Ran ran = cairn("ls melt --json");
        EXPECT_EQ(ran.exit, 0) << ran.err;
        std::string text;
        const Json listed = Json::parse(ran.out);
        for (const Json& version : listed["checkpoints"][0]["versions"])
            if (version["state"] == "committed")
                text += (text.empty() ? "" : " ") + version["version"].dump() + (version["current"] == true ? "" : "*");
        return text;
    }
    std::string newest() {
        const Ran ran = cairn("show melt --json");
        return ran.exit == 0 ? Json::parse(ran.out)["version"].dump() : ran.err;
    }
    void expect_named(const Ran& ran, const std::string& path) {
        EXPECT_EQ(ran.exit, 0) << ran.err;
        EXPECT_THAT(ran.err, HasSubstr(path));
        EXPECT_THAT(ran.err, HasSubstr("cairn repair melt"));
    }
    // By `cairn verify` of all versions: in its table, and by its exit code.
    void expect_verdict(const std::string& path) {
        const Ran ran = cairn("verify melt");
        EXPECT_EQ(ran.exit, exit_of(Code::corrupt)) << ran.err;
        EXPECT_THAT(ran.out, HasSubstr(path));
        EXPECT_THAT(ran.out, HasSubstr("cairn repair melt"));
    }
};

TEST_F(DamagedLineage, a_record_that_versions_tell_too_stops_no_command_and_is_named_by_each) {
    using Damage = std::function<void(const std::string&)>;
    const std::vector<std::pair<const char*, Damage>> damages = {
        {"a flipped bit", [](const std::string& path) { Melt::flip(path, 50); }},
        {"a flipped bit of the magic", [](const std::string& path) { Melt::flip(path, 3); }},
        {"cut", [](const std::string& path) { fs::resize_file(path, 30); }},
        {"empty", [](const std::string& path) { fs::resize_file(path, 0); }},
        {"a directory", [](const std::string& path) {
             fs::remove(path);
             fs::create_directory(path);
         }},
        {"a directory with something in it", [](const std::string& path) {
             fs::remove(path);
             Melt::write(path + "/x", as_bytes("x"));
         }},
        {"a FIFO", [](const std::string& path) {
             fs::remove(path);
             ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
         }},
        {"a link that leads nowhere", [](const std::string& path) {
             fs::remove(path);
             fs::create_symlink("nowhere", path);
         }},
    };
    for (const std::string& record : {open_record(1), from_record(1), open_record(2), from_record(2)}) {
        for (const auto& [what, damage] : damages) {
            SCOPED_TRACE(record.substr(record.rfind('/')) + " is " + what);
            build();
            damage(record);
            expect_named(cairn("ls melt"), record);
            EXPECT_EQ(versions(), "1 2 3* 3 4");
            expect_named(cairn("show melt"), record);
            EXPECT_EQ(newest(), "4");
            expect_named(cairn("extract melt --rank 1 -o " + folder.path("image") + " --force"), record);
            expect_named(cairn("rm melt 1"), record);
            EXPECT_EQ(versions(), "2 3* 3 4");
            expect_named(cairn("gc melt --other-lineages --age 0"), record);
            EXPECT_EQ(versions(), "2 3 4");
            expect_verdict(record);
            const Ran looked = cairn("repair melt --dry-run");
            EXPECT_EQ(looked.exit, 0) << looked.err;
            EXPECT_THAT(looked.out, HasSubstr(record));
            EXPECT_THAT(cairn("ls melt").err, HasSubstr(record)) << "nothing was done";
            const Ran repaired = cairn("repair melt");
            EXPECT_EQ(repaired.exit, 0) << repaired.err;
            EXPECT_THAT(repaired.out, HasSubstr(record));
            EXPECT_THAT(repaired.out, HasSubstr("a restart takes version 4"));
            EXPECT_EQ(cairn("ls melt").err, "");
            EXPECT_EQ(versions(), "2 3 4");
            EXPECT_THAT(cairn("repair melt").out, HasSubstr("nothing of its lineage is damaged"));
        }
    }
}

TEST_F(DamagedLineage, a_record_that_nothing_else_tells_stops_the_newest_alone) {
    for (const bool both : {false, true}) {
        SCOPED_TRACE(both);
        build();
        go_back();
        EXPECT_EQ(newest(), "1");
        Melt::flip(from_record(3), 60);
        if (both) Melt::flip(open_record(3), 60);
        const std::string copy = folder.path("image");
        for (const std::string& command : {std::string("show melt"), "extract melt newest --rank 1 --force -o " + copy, std::string("verify melt newest")}) {
            const Ran ran = cairn(command);
            EXPECT_EQ(ran.exit, exit_of(Code::corrupt)) << command << ran.out;
            EXPECT_THAT(ran.err, HasSubstr(from_record(3))) << command;
            EXPECT_THAT(ran.err, HasSubstr("cairn repair melt")) << command;
        }
        expect_named(cairn("ls melt"), from_record(3));
        EXPECT_EQ(versions(), "1* 2* 3* 3* 4*");
        expect_verdict(from_record(3));
        expect_named(cairn("extract melt 4 --rank 1 --force -o " + copy), from_record(3));
        EXPECT_EQ(cairn("extract melt 3 --rank 1 --force -o " + copy).exit, exit_of(Code::invalid_argument)) << "of two incarnations";
        expect_named(cairn("rm melt 2"), from_record(3));
        EXPECT_EQ(cairn("rm melt 4").exit, exit_of(Code::invalid_argument)) << "it may be what a restart takes";
        EXPECT_EQ(versions(), "1* 3* 3* 4*");
        const Ran gc = cairn("gc melt --other-lineages --age 0");
        expect_named(gc, from_record(3));
        EXPECT_THAT(gc.out, HasSubstr("spared"));
        EXPECT_EQ(versions(), "1* 3* 3* 4*") << "any of them may be what a restart needs";
        const Ran refused = cairn("repair melt");
        EXPECT_EQ(refused.exit, exit_of(Code::corrupt)) << refused.out;
        EXPECT_THAT(refused.err, HasSubstr("--forget"));
        EXPECT_THAT(cairn("ls melt").err, HasSubstr(from_record(3)));
        const Ran forgot = cairn("repair melt --forget");
        EXPECT_EQ(forgot.exit, 0) << forgot.err;
        EXPECT_THAT(forgot.out, HasSubstr("a restart takes version 4"));
        EXPECT_EQ(cairn("ls melt").err, "");
        EXPECT_EQ(newest(), "4");
    }
}

// Rosters of running jobs tell, too; and what is written anew says of a running job what it says of itself.
TEST_F(DamagedLineage, a_roster_tells_whose_a_record_is) {
    melt.open(3, third);
    fs::remove(from_record(3));
    melt.record(third, 3);
    Melt::flip(open_record(3), 60);
    EXPECT_THAT(cairn("repair melt").out, HasSubstr(third.hex()));
    fs::resize_file(melt.layout.job_roster(third), 20);
    Melt::flip(open_record(3), 60);
    const Ran ran = cairn("repair melt");
    EXPECT_EQ(ran.exit, exit_of(Code::corrupt)) << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("roster"));
}

TEST_F(DamagedLineage, a_lineage_that_is_no_directory_stops_the_newest_alone) {
    const std::string lineage = melt.layout.lineage("melt");
    fs::remove_all(lineage);
    Melt::write(lineage, as_bytes("not a directory"));
    expect_named(cairn("ls melt"), lineage);
    EXPECT_EQ(versions(), "1* 2* 3* 3* 4*");
    expect_verdict(lineage);
    expect_named(cairn("extract melt 4 --rank 1 -o " + folder.path("image")), lineage);
    EXPECT_EQ(cairn("show melt").exit, exit_of(Code::corrupt));
    expect_named(cairn("show melt 2"), lineage);
    EXPECT_EQ(cairn("rm melt 4").exit, exit_of(Code::invalid_argument));
    expect_named(cairn("rm melt 1"), lineage);
    expect_named(cairn("gc --other-lineages --age 0"), lineage);
    EXPECT_EQ(versions(), "2* 3* 3* 4*");
    const Ran refused = cairn("repair melt");
    EXPECT_EQ(refused.exit, exit_of(Code::corrupt));
    EXPECT_THAT(refused.err, HasSubstr("--forget"));
    const Ran repaired = cairn("repair melt --forget");
    EXPECT_EQ(repaired.exit, 0) << repaired.err;
    EXPECT_THAT(repaired.out, HasSubstr("a restart takes version 4"));
    EXPECT_EQ(versions(), "2 3* 3 4");
    EXPECT_EQ(cairn("ls melt").err, "");
}

TEST_F(DamagedLineage, a_version_directory_that_is_none_is_a_damaged_version) {
    const std::string directory = melt.layout.version("melt", 1);
    for (const bool link : {false, true}) {
        SCOPED_TRACE(link);
        build();
        fs::remove_all(directory);
        if (link) fs::create_symlink("1", directory);
        else Melt::write(directory, as_bytes("not a directory"));
        expect_named(cairn("ls melt"), directory);
        EXPECT_EQ(versions(), "2 3* 3 4");
        EXPECT_EQ(newest(), "4");
        const Ran verified = cairn("verify melt");
        EXPECT_EQ(verified.exit, exit_of(Code::corrupt));
        EXPECT_THAT(verified.err, HasSubstr(directory));
        EXPECT_EQ(cairn("verify melt 4").exit, 0);
        expect_named(cairn("rm melt 2"), directory);
        const Ran refused = cairn("rm melt 1");
        EXPECT_EQ(refused.exit, exit_of(Code::corrupt));
        EXPECT_THAT(refused.err, HasSubstr("cairn repair melt"));
        expect_named(cairn("gc --other-lineages --age 0"), directory);
        EXPECT_EQ(versions(), "3 4");
        const Ran repaired = cairn("repair melt");
        EXPECT_EQ(repaired.exit, 0) << repaired.err;
        EXPECT_FALSE(fs::exists(fs::symlink_status(directory)));
        EXPECT_EQ(cairn("verify melt").exit, 0);
        EXPECT_EQ(cairn("ls melt").err, "");
    }
}

// It may hold all that a later open, which left nothing else, committed.
TEST_F(DamagedLineage, a_version_directory_above_all_that_can_be_seen_may_be_another_opens) {
    melt.open(3, third);
    fs::remove(from_record(3));
    const std::string directory = melt.layout.version("melt", 9);
    Melt::write(directory, as_bytes("not a directory"));
    const Ran newest_of = cairn("show melt");
    EXPECT_EQ(newest_of.exit, exit_of(Code::corrupt)) << newest_of.out;
    EXPECT_THAT(newest_of.err, HasSubstr(directory));
    EXPECT_EQ(cairn("gc --other-lineages --age 0").exit, 0);
    EXPECT_EQ(versions(), "1 2 3* 3 4");
    EXPECT_EQ(cairn("repair melt").exit, exit_of(Code::corrupt));
    EXPECT_EQ(cairn("repair melt --forget").exit, 0);
    EXPECT_EQ(newest(), "4");
}

TEST_F(DamagedLineage, repair_of_what_is_whole_or_not_there) {
    const Ran whole = cairn("repair melt");
    EXPECT_EQ(whole.exit, 0) << whole.err;
    EXPECT_THAT(whole.out, HasSubstr("nothing of its lineage is damaged"));
    EXPECT_EQ(cairn("repair nothing").exit, exit_of(Code::not_found));
    Melt::flip(open_record(1), 60);
    const Json document = Json::parse(cairn("repair melt --json").out);
    EXPECT_EQ(document["repaired"][0]["path"], open_record(1));
    EXPECT_TRUE(document["left"].empty());
}

}  // namespace
}  // namespace cairn::cli
