// `cairn rm` and `cairn gc`: what goes, what stays, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/version_testing.hpp"
#include "catalog/removal.hpp"

namespace cairn::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Gc : testing::Test {
    ProgramFolder folder;
    Melt melt{folder};
    void SetUp() override { melt.open(1, first); }
    Ran cairn(const std::string& arguments) { return folder.run(arguments); }
    static int exit_of(Code code) { return static_cast<int>(code); }

    static void make_old(const std::string& path) {
        fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(2));
    }
    // "1 2*": the committed versions, those outside the current lineage marked.
    std::string versions() {
        const Json listed = Json::parse(cairn("ls melt --json").out);
        std::string text;
        for (const Json& version : listed["checkpoints"][0]["versions"])
            if (version["state"] == "committed")
                text += (text.empty() ? "" : " ") + version["version"].dump() + (version["current"] == true ? "" : "*");
        return text;
    }
    std::size_t files_in(Version version) {
        std::error_code none;
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(melt.layout.version("melt", version), none), {}));
    }
};

TEST_F(Gc, rm_removes_versions_but_the_newest_only_by_force) {
    for (Version version = 1; version <= 4; ++version) melt.commit(version, first, 1);
    const Ran ran = cairn("rm melt 1 3");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("removed melt version 3"));
    EXPECT_EQ(versions(), "2 4");
    EXPECT_FALSE(fs::exists(melt.layout.version("melt", 1)));
    const Ran newest = cairn("rm melt 2 4");
    EXPECT_EQ(newest.exit, 1);
    EXPECT_THAT(newest.err, HasSubstr("melt version 4 is the newest committed one"));
    EXPECT_EQ(versions(), "2 4") << "all or nothing of a refused request";
    EXPECT_EQ(Json::parse(cairn("rm melt 4 --force --json").out)["removed"][0]["version"], 4);
    EXPECT_EQ(versions(), "2");
    EXPECT_EQ(cairn("rm melt 4").exit, exit_of(Code::not_found));
    EXPECT_EQ(cairn("rm melt").exit, 1);
}

TEST_F(Gc, rm_of_one_of_two_incarnations) {
    melt.commit(1, first, 1);
    melt.commit(2, first, 1);
    melt.open(2, second, {first, 1});
    melt.commit(2, second, 2, {first, 1});
    melt.commit(3, second, 2, {first, 1});
    EXPECT_THAT(cairn("rm melt 2").err, HasSubstr("--incarnation"));
    EXPECT_EQ(cairn("rm melt 2 --incarnation 1111").exit, 0);
    EXPECT_EQ(versions(), "1 2 3");
    EXPECT_EQ(files_in(2), 3u) << "manifest and parts of the other one";
}

TEST_F(Gc, rm_leaves_a_tombstone_while_somebody_may_commit_it_again) {
    for (Version version = 1; version <= 3; ++version) melt.commit(version, first, 1);
    for (Rank rank = 0; rank < 4; ++rank) static_cast<void>(melt.seal("n0", 1, first, 1, rank));
    const Ran in_scratch = cairn("rm melt 1");
    EXPECT_EQ(in_scratch.exit, 0) << in_scratch.err;
    EXPECT_THAT(in_scratch.err, HasSubstr("1 tombstone left"));
    EXPECT_EQ(files_in(1), 1u);
    EXPECT_THAT(cairn("ls melt").out, ContainsRegex("1 +given up +scratch "));
    const Ran gone = cairn("extract melt 1 --rank 0 -o -");
    EXPECT_EQ(gone.exit, exit_of(Code::not_found)) << "not out of scratch either";
    EXPECT_THAT(gone.err, HasSubstr("given up or removed"));
    EXPECT_EQ(cairn("rm melt 1").exit, exit_of(Code::not_found)) << "removed is removed";

    melt.record(first, 1);
    const Json recorded = Json::parse(cairn("rm melt 2 --json").out);
    EXPECT_EQ(recorded["removed"][0]["tombstone"], true) << "its job may be alive";
    EXPECT_EQ(files_in(2), 1u);
    make_old(melt.layout.manifest(Melt::key(1, first)));
    make_old(melt.layout.manifest(Melt::key(2, first)));
    EXPECT_THAT(cairn("gc").out, HasSubstr("nothing to remove"));
    fs::remove(melt.layout.job_roster(first));
    EXPECT_THAT(cairn("gc").out, ContainsRegex("melt +2 .*tombstone of a job that is over"));
    EXPECT_FALSE(fs::exists(melt.layout.version("melt", 2)));
    EXPECT_EQ(files_in(1), 1u) << "its images are in scratch";
    EXPECT_EQ(versions(), "3");
}

TEST_F(Gc, rm_of_a_damaged_version_and_of_what_a_killed_rm_left) {
    melt.commit(1, first, 1);
    melt.commit(2, first, 1);
    melt.commit(3, first, 1);
    Melt::flip(melt.layout.manifest(Melt::key(1, first)), 60);
    EXPECT_EQ(cairn("rm melt 1").exit, 0);
    EXPECT_FALSE(fs::exists(melt.layout.version("melt", 1)));
    // Killed after the tombstone.
    Melt::write(melt.layout.manifest(Melt::key(2, first)),
                encode_manifest(tombstone_of(Melt::key(2, first), 1, {}, 4)));
    const Ran ran = cairn("gc --dry-run");
    EXPECT_THAT(ran.out, ContainsRegex("melt +2 .*parts of a version that was given up or removed"));
    EXPECT_EQ(cairn("rm melt 2").exit, 0) << "once more";
    EXPECT_FALSE(fs::exists(melt.layout.version("melt", 2)));
    EXPECT_EQ(versions(), "3");
}

TEST_F(Gc, the_retention_rule) {
    for (Version version = 1; version <= 7; ++version) melt.commit(version, first, 1);
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n") << "0 keeps all";
    folder.environment = "CAIRN_RETENTION_PERSISTENT_LAST=2 CAIRN_RETENTION_PERSISTENT_EVERY=3";
    const Ran look = cairn("gc --dry-run");
    EXPECT_THAT(look.out, ContainsRegex("melt +5 +11111111 .*beyond the retention rule"));
    EXPECT_THAT(look.out, HasSubstr("would be freed"));
    EXPECT_EQ(versions(), "1 2 3 4 5 6 7");
    EXPECT_EQ(cairn("gc").exit, 0);
    EXPECT_EQ(versions(), "3 6 7");
    EXPECT_EQ(cairn("gc melt").out, "nothing to remove\n");
}

TEST_F(Gc, versions_of_other_lineages_go_when_asked_for) {
    melt.commit(1, first, 1);
    melt.commit(2, first, 1);
    melt.open(2, second, {first, 1});
    melt.commit(2, second, 2, {first, 1});
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n");
    EXPECT_EQ(versions(), "1 2* 2");
    EXPECT_EQ(cairn("gc --other-lineages").exit, 0);
    EXPECT_EQ(versions(), "1 2");
}

TEST_F(Gc, nothing_of_another_lineage_goes_while_the_current_one_can_not_be_told) {
    melt.commit(1, first, 1);
    melt.open(2, second);
    fs::remove(melt.layout.lineage_from("melt", 2));
    melt.commit(1, second, 2);
    const std::string manifest = melt.layout.manifest({"melt", 1, second});
    fs::resize_file(manifest, 10);
    const Ran ran = cairn("gc --other-lineages");
    EXPECT_THAT(ran.out + ran.err, HasSubstr("can not be read"));
    EXPECT_TRUE(fs::exists(melt.layout.manifest({"melt", 1, first})));
}

TEST_F(Gc, parts_of_attempts_that_did_not_commit) {
    melt.commit(1, first, 1);
    static_cast<void>(melt.part(1, first, 0, 6));
    const Ran ran = cairn("gc");
    EXPECT_THAT(ran.out, HasSubstr("parts of attempts that did not commit"));
    EXPECT_FALSE(fs::exists(melt.part_path(1, first, 0, 6)));
    EXPECT_EQ(cairn("verify").exit, 0);
}

TEST_F(Gc, what_an_older_incarnation_left_behind_is_fenced_then_removed) {
    melt.commit(1, first, 1);
    melt.record(first, 1);
    static_cast<void>(melt.part(2, first, 0));
    melt.open(2, second, {first, 1});
    melt.commit(2, second, 2, {first, 1});
    const Ran young = cairn("gc");
    EXPECT_THAT(young.out, StartsWith("nothing to remove\n"));
    EXPECT_THAT(young.out, ContainsRegex("spared:.*melt +2 +11111111 .*changed lately"));
    EXPECT_EQ(cairn("gc --age 0 --dry-run").exit, 0);
    make_old(melt.part_path(2, first, 0));
    const Ran ran = cairn("gc");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, ContainsRegex("melt +2 +11111111 .*left behind by a job that is over or superseded"));
    EXPECT_FALSE(fs::exists(melt.part_path(2, first, 0)));
    EXPECT_TRUE(fs::exists(melt.layout.manifest(Melt::key(2, first))))
        << "the tombstone: nobody can commit it any more";
    EXPECT_THAT(cairn("ls melt").out, ContainsRegex("2 +given up .* 11111111"));
    EXPECT_EQ(cairn("verify").exit, 0);
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n") << "the job is on record, and its record is young";
    make_old(melt.layout.job_roster(first));
    make_old(melt.layout.manifest(Melt::key(2, first)));
    const Ran last = cairn("gc");
    EXPECT_THAT(last.out, ContainsRegex("melt +- +11111111 .*record of a job that is over"));
    EXPECT_THAT(last.out, ContainsRegex("melt +2 +11111111 .*tombstone of a job that is over"));
    EXPECT_FALSE(fs::exists(melt.layout.job(first)));
    EXPECT_EQ(files_in(2), 3u) << "manifest and parts of the other one";
}

TEST_F(Gc, the_current_lineage_is_in_flight_while_its_job_is_on_record) {
    melt.commit(1, first, 1);
    melt.record(first, 1);
    static_cast<void>(melt.part(2, first, 0));
    make_old(melt.part_path(2, first, 0));
    make_old(melt.layout.job_roster(first));
    EXPECT_THAT(cairn("gc").out, ContainsRegex("^nothing to remove\n\nspared:.*melt +2 .*may be in flight"));
    EXPECT_TRUE(fs::exists(melt.part_path(2, first, 0)));
    fs::remove(melt.layout.job_roster(first));  // its coordinator's daemon has nothing left to finish
    EXPECT_THAT(cairn("gc").out, ContainsRegex("melt +2 .*left behind by a job that is over"));
    EXPECT_FALSE(fs::exists(melt.part_path(2, first, 0)));
    EXPECT_EQ(files_in(2), 1u) << "a restart would look for a version 2: the tombstone stays";
}

TEST_F(Gc, parts_of_which_nothing_tells_whose_they_are) {
    constexpr Id128 third{0x3333333333333333, 0xcccccccccccccccc};
    melt.commit(1, first, 1);
    for (Version version : {2u, 3u}) {
        static_cast<void>(melt.part(version, third, 0));
        if (version == 3) fs::resize_file(melt.part_path(version, third, 0), 5'000);
        make_old(melt.part_path(version, third, 0));
    }
    const Json json = Json::parse(cairn("gc --json").out);
    ASSERT_EQ(json["removed"].size(), 1u) << json;
    EXPECT_EQ(json["removed"][0]["version"], 2);
    EXPECT_EQ(json["removed"][0]["incarnation"], third.hex()) << "its footer tells";
    ASSERT_EQ(json["spared"].size(), 1u);
    EXPECT_EQ(json["spared"][0]["version"], 3);
    EXPECT_THAT(json["spared"][0]["why"].get<std::string>(), HasSubstr("--unknown"));
    EXPECT_TRUE(fs::exists(melt.part_path(3, third, 0)));
    EXPECT_EQ(cairn("gc --unknown").exit, 0);
    EXPECT_FALSE(fs::exists(melt.layout.version("melt", 3)));
    EXPECT_EQ(versions(), "1");
}

TEST_F(Gc, unpublished_files_and_empty_directories) {
    melt.commit(1, first, 1);
    const std::string manifest = melt.layout.temporary(Melt::key(1, first), {first.high, 9});
    const std::string record = melt.layout.lineage("melt") + "/" + temporary_file_name({8, 8});
    const std::string probe = melt.layout.persistent + "/" + temporary_file_name({9, 9});
    const std::string empty = melt.layout.version("melt", 9);
    for (const std::string& path : {manifest, record, probe}) Melt::write(path, as_bytes("torn"));
    fs::create_directories(empty);
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n");
    for (const std::string& path : {manifest, record, probe, empty}) make_old(path);
    const Ran ran = cairn("gc");
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("unpublished manifests"));
    EXPECT_THAT(ran.out, HasSubstr("unpublished records"));
    EXPECT_THAT(ran.out, HasSubstr("an empty directory"));
    EXPECT_THAT(ran.out, HasSubstr("temporary files"));
    for (const std::string& path : {manifest, record, probe, empty}) EXPECT_FALSE(fs::exists(path)) << path;
    EXPECT_EQ(cairn("verify").exit, 0);
}

TEST_F(Gc, an_empty_persistent_directory_stays) {
    fs::remove_all(melt.layout.series("melt"));
    const std::string probe = melt.layout.persistent + "/" + temporary_file_name({9, 9});
    Melt::write(probe, as_bytes("x"));
    make_old(probe);
    EXPECT_THAT(cairn("gc").out, HasSubstr("temporary files"));
    EXPECT_FALSE(fs::exists(probe));
    EXPECT_TRUE(fs::exists(melt.layout.persistent));
}

TEST_F(Gc, records_of_jobs) {
    melt.commit(1, first, 1);
    melt.record(first, 1);
    make_old(melt.layout.job_roster(first));
    EXPECT_THAT(cairn("gc").out, StartsWith("nothing to remove")) << "of the current lineage";
    melt.open(2, second, {first, 1});
    EXPECT_THAT(cairn("gc").out, StartsWith("nothing to remove")) << "the newer one has nothing committed yet";
    melt.commit(2, second, 2, {first, 1});
    EXPECT_THAT(cairn("gc").out, HasSubstr("record of a job that is over"));
    EXPECT_FALSE(fs::exists(melt.layout.job(first)));
    melt.record(second, 2);
    make_old(melt.layout.job_roster(second));
    fs::remove_all(melt.layout.series("melt"));
    EXPECT_THAT(cairn("gc").out, HasSubstr("record of a job that is over")) << "somebody removed all it had";
    EXPECT_FALSE(fs::exists(melt.layout.job(second)));
}

// As two killed ranks leave it; `incarnation` zero: they were killed before they had one.
struct Meetings : Gc {
    std::vector<std::string> files;
    std::string job = melt.layout.meeting("nightly"), steps = job + "/x-000000000000000000000000000000aa";
    void meet(Id128 incarnation) {
        files = {job + "/join-0", job + "/join-1", job + "/roster", job + "/ack-1", job + "/final", steps + "/4-all"};
        if (incarnation) files.push_back(steps + "/incarnation");
        for (const std::string& file : files) Melt::write(file, as_bytes(incarnation.hex()));
    }
    void age() {
        for (const std::string& file : files) make_old(file);
        make_old(steps);
    }
};

TEST_F(Meetings, one_of_a_job_that_is_over_goes) {
    melt.commit(1, first, 1);
    melt.record(first, 1);
    meet(first);
    EXPECT_THAT(cairn("gc --age 0").out, ContainsRegex("spared:.*11111111 .*changed lately: .* job nightly may be talking")) << "open may take so long";
    age();
    EXPECT_THAT(cairn("gc").out, ContainsRegex("^nothing to remove\n\nspared:.*melt +- +11111111 .*job nightly .*on record"));
    fs::remove_all(melt.layout.job(first));
    EXPECT_THAT(cairn("gc melt").out, StartsWith("nothing to remove")) << "it is of no series";
    EXPECT_THAT(cairn("gc --dry-run").out, ContainsRegex("11111111 .*left behind by the ranks of job nightly, which is over"));
    EXPECT_TRUE(fs::exists(files.back()));
    EXPECT_EQ(cairn("gc").exit, 0);
    EXPECT_FALSE(fs::exists(job));
    EXPECT_EQ(cairn("gc").out, "nothing to remove\n");
}

TEST_F(Meetings, one_of_a_job_that_was_killed_with_its_daemons_goes_when_a_newer_one_has_committed) {
    melt.commit(1, first, 1);
    melt.record(first, 1);
    make_old(melt.layout.job_roster(first));
    meet(first);
    age();
    EXPECT_THAT(cairn("gc").out, StartsWith("nothing to remove"));
    melt.open(2, second, {first, 1});
    melt.commit(2, second, 2, {first, 1});
    EXPECT_THAT(cairn("gc").out, HasSubstr("left behind by the ranks of job nightly"));
    EXPECT_FALSE(fs::exists(job));
}

TEST_F(Meetings, of_several_with_one_job_id_each_is_judged_by_itself) {
    melt.commit(1, first, 1);
    meet(second);  // over
    const std::string older = steps;
    age();
    steps = job + "/x-000000000000000000000000000000bb";
    meet(first);
    melt.record(first, 1);
    age();
    EXPECT_THAT(cairn("gc").out, HasSubstr("left behind by the ranks of job nightly"));
    EXPECT_FALSE(fs::exists(older));
    for (const std::string& file : files) EXPECT_TRUE(fs::exists(file)) << file;
}

TEST_F(Meetings, one_that_names_no_job_goes_when_asked_for) {
    meet({});
    age();
    EXPECT_THAT(cairn("gc").out, ContainsRegex("spared:.*nothing tells which job .*--unknown takes it"));
    EXPECT_THAT(cairn("gc --unknown").out, HasSubstr("job nightly"));
    EXPECT_FALSE(fs::exists(job));
    meet({});
    fs::remove_all(steps);  // nobody met anybody
    EXPECT_THAT(cairn("gc").out, ContainsRegex("spared:.*changed lately"));
    files.pop_back();
    for (const std::string& file : files) make_old(file);
    EXPECT_THAT(cairn("gc").out, HasSubstr("which nobody uses"));
    EXPECT_FALSE(fs::exists(job));
}

TEST_F(Gc, wrong_requests) {
    EXPECT_EQ(cairn("gc glass").exit, exit_of(Code::not_found));
    const Ran age = cairn("gc --age soon");
    EXPECT_EQ(age.exit, 1);
    EXPECT_THAT(age.err, HasSubstr("--age"));
}

TEST(Retention, the_newest_always_stays) {
    using Indices = std::vector<std::size_t>;
    EXPECT_EQ(beyond_retention({1, 2, 3, 4}, 0, 0), Indices{});
    EXPECT_EQ(beyond_retention({1, 2, 3, 4}, 1, 0), (Indices{0, 1, 2}));
    EXPECT_EQ(beyond_retention({1, 2, 3, 4}, 1, 2), (Indices{0, 2}));
    EXPECT_EQ(beyond_retention({}, 1, 0), Indices{});
}

}  // namespace
}  // namespace cairn::cli
