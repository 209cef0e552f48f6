// Reading in the simulated world: the plan for any set of ranks, from scratch and from parts, and what happens when a copy is damaged.
#include "read/fetch.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "proof/cluster.hpp"
#include "read/restorable.hpp"
#include "read/verify.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

constexpr std::uint64_t image_bytes = 50'000;

// Four ranks on two nodes; version 1 is committed in two parts and still in scratch.
class Reading : public ::testing::Test {
  protected:
    Reading() : cluster_(options()) {
        CAIRN_CHECK(cluster_.open_job().ok());
        CAIRN_CHECK(cluster_.capture_all(1).ok());
        CAIRN_CHECK(cluster_.run_until_committed(1, 60 * second));
        manifest_ = **cluster_.newest_committed();
        settings_.buffer_bytes = 8192;
        for (const NodeIndex node : {0u, 1u}) look_into_scratch(node);
    }
    static ClusterOptions options() {
        ClusterOptions o;
        o.files = 2;
        o.image_bytes = [](Rank, Version) { return image_bytes; };
        return o;
    }

    // In a process of its own on this node.
    template <class T, class Make>
    T run(NodeIndex node, T otherwise, Make make) {
        sim::Process& process = cluster_.hosts[node].node->start_process("reader");
        T result = std::move(otherwise);
        World world = process.world();
        const auto task = [](World& w, Make& m, T& out) -> Task<void> {
            T got = co_await m(w);
            out = std::move(got);
        };
        EXPECT_TRUE(cluster_.sim.run(task(world, make, result), cluster_.sim.now() + 600 * second));
        process.kill();
        return result;
    }
    void look_into_scratch(NodeIndex node) {
        const auto scan = run(node, Result<ScratchScan>(Status(Code::deadline, "")), [&](World& w) { return scan_scratch(w, cluster_.scratch(node), 60 * second); });
        CAIRN_CHECK(scan.ok());
        for (const LocalImage& image : scan->images)
            images_[node].push_back({image.header.key, image.header.epoch, {}, image.header.rank, image.header.ranks, image.header.image.bytes, image.path, {}});
        CAIRN_CHECK(images_[node].size() == 2);
    }
    Seen seen(SeenState state) const {
        Seen s;
        s.key = manifest_.key;
        s.entry.manifest = manifest_;
        s.ranks = 4;
        s.image_bytes = 4 * image_bytes;
        s.state = state;
        return s;
    }
    Result<VersionCopies> open(NodeIndex node, SeenState state, std::vector<ScratchImage> images = {}, Rank rank = every_rank) {
        return run(node, Result<VersionCopies>(Status(Code::deadline, "")),
                   [&](World& w) { return open_copies(w, cluster_.layout, seen(state), images, rank, settings_); });
    }
    Verdict verify(NodeIndex node, SeenState state, std::vector<ScratchImage> images) {
        const Result<Verdict> got = run(node, Result<Verdict>(Status(Code::deadline, "")),
                                        [&](World& w) { return verify_seen(w, cluster_.layout, seen(state), images, settings_, nullptr); });
        CAIRN_CHECK(got.ok());
        return *got;
    }
    Slice captured(Rank rank, std::uint64_t offset, std::uint64_t length) const {
        return sim::describe(Cluster::content_seed(manifest_.key.incarnation, 1, rank), length, offset);
    }
    // Whoever gets other bytes than were captured says so.
    HandOut::Receiver expect(Rank rank, std::uint64_t offset) const {
        return [this, rank, offset](std::uint64_t at, const Slice& data) {
            return sim::content_equal(data, captured(rank, offset + at, data.length)) ? Status() : Status(Code::internal, "other bytes");
        };
    }
    Status read(NodeIndex node, const VersionCopies& copies, const ReadPlan& plan, HandOut& out) {
        return run(node, Status(Code::deadline, ""), [&](World& w) {
            return read_planned(w, cluster_.layout, copies, plan, out, settings_);
        });
    }
    Fetched fetch(Rank rank, bool committed, const Aim& aim) {
        const NodeIndex node = cluster_.node_of(rank);
        return run(node, Fetched{Status(Code::deadline, ""), false, {}}, [&](World& w) {
            return fetch_image(w, cluster_.layout, {manifest_.key, rank, slot(rank).path, committed}, aim, settings_, w.clock.in(60 * second));
        });
    }
    Aim whole(Rank rank) const {
        return [this, rank](const ImageInfo& image) -> Result<HandOut> {
            HandOut out;
            out.add(rank, {0, image.bytes}, "image", expect(rank, 0));
            return out;
        };
    }
    const ScratchImage& slot(Rank rank) const {
        for (const auto& [node, images] : images_)
            for (const ScratchImage& image : images)
                if (image.rank == rank) return image;
        return images_.at(0).at(0);
    }
    void damage_slot(Rank rank) {
        const NodeIndex node = cluster_.node_of(rank);
        ASSERT_TRUE(cluster_.hosts[node].node->scratch().flip_bit(slot(rank).path, 16'000, 2).ok());
    }

    Cluster cluster_;
    Manifest manifest_;
    RestoreSettings settings_;
    std::map<NodeIndex, std::vector<ScratchImage>> images_;
};

TEST_F(Reading, AnySetOfRanksInOnePassOverTheParts) {
    const auto copies = open(0, SeenState::committed);
    ASSERT_TRUE(copies.ok()) << copies.status().to_string();
    EXPECT_EQ(copies->find(3)->bytes, image_bytes);  // before a byte is read
    HandOut out;
    out.add(3, {0, image_bytes}, "image", expect(3, 0));
    out.add(0, {10'000, 100}, "region a", expect(0, 10'000));
    out.add(0, {45'000, 5'000}, "region b", expect(0, 45'000));
    out.add(1, {0, 4097}, "region c", expect(1, 0));
    const auto plan = plan_reads(*copies, out.wanted(), settings_.buffer_bytes);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    EXPECT_TRUE(plan->slots.empty());
    const auto place = [&](const PartRead& each) { return std::pair(each.footer, copies->parts->footers[each.footer].runs[each.run].part_offset + each.offset); };
    for (std::size_t i = 1; i < plan->parts.size(); ++i) EXPECT_LT(place(plan->parts[i - 1]), place(plan->parts[i]));
    // Whole blocks of 4096: all of rank 3, one and three of rank 0 (the last of them short), two of rank 1.
    EXPECT_EQ(plan->bytes(), image_bytes + 4096 + (image_bytes - 10 * 4096) + 2 * 4096);
    const Status got = read(0, *copies, *plan, out);
    EXPECT_TRUE(got.ok()) << got.to_string();
}

// Nobody is asked to take what has memory of its own; with damage there the reading is none.
TEST_F(Reading, WhatHasMemoryIsReadStraightThere) {
    const auto memory = [] {
        auto content = std::make_shared<sim::Content>();
        content->resize(image_bytes);
        return Slice::whole(std::make_shared<sim::SimBuffer>(std::move(content), image_bytes, std::make_shared<std::uint64_t>(0)));
    };
    const auto asked = [](std::uint64_t, const Slice&) { return Status(Code::internal, "it was asked to take what has memory"); };
    const auto get = [&](const VersionCopies& copies, const Slice& into) {
        HandOut out;
        out.add(0, {0, image_bytes}, "image", asked, into);
        const auto plan = plan_reads(copies, out.wanted(), settings_.buffer_bytes);
        return read(0, copies, *plan, out);
    };
    const auto parts = open(0, SeenState::committed), slots = open(0, SeenState::sealed, images_[0]);
    ASSERT_TRUE(parts.ok() && slots.ok());
    for (const VersionCopies* copies : {&*parts, &*slots}) {
        const Slice into = memory();
        const Status got = get(*copies, into);
        EXPECT_TRUE(got.ok()) << got.to_string();
        EXPECT_TRUE(sim::content_equal(into, captured(0, 0, image_bytes)));
    }
    damage_slot(0);
    const Status damaged = get(*slots, memory());
    EXPECT_EQ(damaged.code(), Code::corrupt) << damaged.to_string();
}

TEST_F(Reading, APlanThatLeavesSomebodyShortIsNoSuccess) {
    const auto copies = open(0, SeenState::committed);
    ASSERT_TRUE(copies.ok()) << copies.status().to_string();
    HandOut out;
    out.add(2, {10'000, 30'000}, "region grid", expect(2, 10'000));
    auto plan = plan_reads(*copies, out.wanted(), settings_.buffer_bytes);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    plan->parts.pop_back();
    const Status got = read(0, *copies, *plan, out);
    EXPECT_EQ(got.code(), Code::internal);
    EXPECT_NE(got.text().find("region grid of rank 2"), std::string::npos) << got.to_string();
}

TEST_F(Reading, ScratchIsTakenForTheRanksThatItHas) {
    auto copies = open(0, SeenState::committed);
    ASSERT_TRUE(copies.ok());
    const auto local = open(0, SeenState::sealed, images_[0]);
    ASSERT_TRUE(local.ok()) << local.status().to_string();
    copies->slots = local->slots;
    HandOut out;
    for (Rank rank = 0; rank < 4; ++rank) out.add(rank, {0, image_bytes}, "image", expect(rank, 0));
    const auto plan = plan_reads(*copies, out.wanted(), settings_.buffer_bytes);
    ASSERT_TRUE(plan.ok());
    for (const SlotRead& each : plan->slots) EXPECT_EQ(cluster_.node_of(each.rank), 0u);
    for (const PartRead& each : plan->parts) EXPECT_EQ(cluster_.node_of(copies->parts->footers[each.footer].runs[each.run].pieces[each.pieces.front()].rank), 1u);
    EXPECT_EQ(plan->bytes(), 4 * image_bytes);
    const Status got = read(0, *copies, *plan, out);
    EXPECT_TRUE(got.ok()) << got.to_string();
}

TEST_F(Reading, ARankThatIsNotThereIsNamed) {
    const auto copies = open(0, SeenState::committed);
    ASSERT_TRUE(copies.ok());
    EXPECT_EQ(plan_reads(*copies, {{7, {}}}, 8192).status().code(), Code::not_found);
    EXPECT_EQ(copies->image(7).status().text(), version_text(manifest_.key) + " has no rank 7; it was taken by 4 ranks, 0 to 3");
    const auto local = open(0, SeenState::partial, images_[0]);
    ASSERT_TRUE(local.ok());
    const Rank away = cluster_.ranks_on(1).front();
    EXPECT_NE(plan_reads(*local, {{away, {}}}, 8192).status().text().find("is not in this host's scratch, which has ranks"), std::string::npos);
}

// Scratch is tidied, and its slots are written, while somebody looks.
TEST_F(Reading, ASlotThatLeftSaysNothingOfTheOthers) {
    const Rank gone = images_[0][0].rank, whole = images_[0][1].rank;
    ASSERT_TRUE(cluster_.hosts[0].node->scratch().remove(images_[0][0].path, 0).ok());
    const auto copies = open(0, SeenState::partial, images_[0]);
    ASSERT_TRUE(copies.ok()) << copies.status().to_string();
    EXPECT_TRUE(copies->image(whole).ok());
    EXPECT_EQ(copies->image(gone).status().code(), Code::unavailable);
    EXPECT_NE(copies->image(gone).status().text().find("left scratch just now"), std::string::npos);
    EXPECT_EQ(copies->image(cluster_.ranks_on(1).front()).status().code(), Code::not_found);
    const Verdict verdict = verify(0, SeenState::partial, images_[0]);
    EXPECT_TRUE(verdict.damage.empty());
    EXPECT_EQ(verdict.absent.size(), 3u);  // not the other
}

TEST_F(Reading, ASlotThatCanNotBeReadSaysNothingOfTheOthers) {
    const Rank torn = images_[1][0].rank, whole = images_[1][1].rank;
    ASSERT_TRUE(cluster_.hosts[1].node->scratch().flip_bit(images_[1][0].path, image_header_offset + 9, 2).ok());
    const auto copies = open(1, SeenState::partial, images_[1]);
    ASSERT_TRUE(copies.ok()) << copies.status().to_string();
    EXPECT_TRUE(copies->image(whole).ok());
    EXPECT_EQ(copies->image(torn).status().code(), Code::corrupt);
    const Verdict verdict = verify(1, SeenState::partial, images_[1]);
    EXPECT_EQ(verdict.absent, cluster_.ranks_on(0));
    ASSERT_EQ(verdict.damage.size(), 1u);
    const std::string& text = verdict.damage[0].status.text();
    EXPECT_NE(text.find("the image of rank " + std::to_string(torn)), std::string::npos) << text;
    EXPECT_NE(text.find(images_[1][0].path), std::string::npos) << text;
}

// Each would take a thread, and the whole wait for it.
TEST_F(Reading, SlotsThatHangAreNotWaitedForOneByOne) {
    std::vector<ScratchImage> images(100, images_[0][0]);
    for (Rank rank = 0; rank < images.size(); ++rank) images[rank].rank = rank;
    cluster_.sim.faults().hang_scratch = 1;
    cluster_.sim.faults().hang_never = 1;
    const auto copies = open(0, SeenState::partial, images);
    ASSERT_TRUE(copies.ok()) << copies.status().to_string();
    EXPECT_EQ(copies->doubts.size(), images.size());
    for (const auto& [rank, doubt] : copies->doubts) EXPECT_EQ(doubt.code(), Code::deadline);
}

TEST_F(Reading, OnlyTheSlotThatIsWantedIsOpened) {
    const Rank wanted = images_[0][1].rank;
    const auto copies = open(0, SeenState::partial, images_[0], wanted);
    ASSERT_TRUE(copies.ok()) << copies.status().to_string();
    ASSERT_EQ(copies->slots.size(), 1u);
    EXPECT_TRUE(copies->image(wanted).ok());
    const Rank away = cluster_.ranks_on(1).front();
    const auto none = open(0, SeenState::partial, images_[0], away);
    ASSERT_TRUE(none.ok());
    EXPECT_TRUE(none->slots.empty());
    EXPECT_NE(none->image(away).status().text().find("which has ranks"), std::string::npos) << none->image(away).status().to_string();
}

TEST_F(Reading, DamageInScratchIsPassedOverWherePartsAreCommitted) {
    damage_slot(0);
    const Fetched from_parts = fetch(0, true, whole(0));
    EXPECT_TRUE(from_parts.status.ok()) << from_parts.status.to_string();
    ASSERT_TRUE(from_parts.passed_over);
    EXPECT_EQ(from_parts.passed_over->code(), Code::corrupt);
    EXPECT_NE(from_parts.passed_over->text().find("region state"), std::string::npos) << from_parts.passed_over->to_string();
    const Fetched nowhere = fetch(0, false, whole(0));
    EXPECT_EQ(nowhere.status.code(), Code::corrupt);
    EXPECT_FALSE(nowhere.refused);
    EXPECT_TRUE(fetch(1, false, whole(1)).status.ok());  // its neighbour
}

// No other level would do: it is asked once.
TEST_F(Reading, AnApplicationThatDoesNotFitIsRefusedAtOnce) {
    int asked = 0;
    const Fetched fetched = fetch(0, true, [&](const ImageInfo& image) -> Result<HandOut> {
        EXPECT_EQ(image.bytes, image_bytes);
        ++asked;
        return invalid_argument("too small");
    });
    EXPECT_TRUE(fetched.refused);
    EXPECT_EQ(fetched.status.code(), Code::invalid_argument);
    EXPECT_EQ(asked, 1);
}

TEST_F(Reading, AFullReceiverEndsItWithoutAnotherLevel) {
    const Fetched fetched = fetch(0, true, [&](const ImageInfo& image) -> Result<HandOut> {
        HandOut out;
        out.add(0, {0, image.bytes}, "image", [](std::uint64_t, const Slice&) { return Status(Code::out_of_space, "full"); });
        return out;
    });
    EXPECT_EQ(fetched.status.code(), Code::out_of_space);
    EXPECT_FALSE(fetched.passed_over);
}

TEST_F(Reading, VerdictsNameWhatIsDamagedUncheckedAndAbsent) {
    EXPECT_TRUE(verify(0, SeenState::committed, {}).whole());
    const Verdict partial = verify(0, SeenState::partial, images_[0]);
    EXPECT_TRUE(partial.damage.empty());
    EXPECT_TRUE(partial.from_scratch);
    EXPECT_EQ(partial.absent, cluster_.ranks_on(1));
    std::vector<ScratchImage> doubted = images_[0];
    doubted[1].doubt = corrupt("not believed");
    damage_slot(doubted[0].rank);
    const Verdict damaged = verify(0, SeenState::partial, doubted);
    ASSERT_EQ(damaged.damage.size(), 2u);
    EXPECT_FALSE(damaged.whole());
}

// A manifest whose head is longer than the first read, so that nobody who only looks for versions sees its records.
Manifest with_a_long_head(Manifest manifest) {
    for (std::uint64_t i = 1; i <= 2000; ++i) manifest.bases.push_back({1, {7, i}});
    return manifest;
}

// Scratch that does not answer takes one wait; the rest of the time is there for the parts.
TEST_F(Reading, ASlotThatHangsLeavesTimeForTheParts) {
    settings_.io_wait = 5 * second;
    cluster_.sim.faults().hang_scratch = 1;
    const Fetched fetched = fetch(0, true, whole(0));
    cluster_.sim.faults() = {};
    ASSERT_TRUE(fetched.status.ok()) << fetched.status.to_string();
    ASSERT_TRUE(fetched.passed_over);
    EXPECT_EQ(fetched.passed_over->code(), Code::deadline);
}

// It is found, and passed over for the older one when a rank's records are read: as where a part is damaged.
TEST_F(Reading, DamageBehindAManifestsHeadLeadsToTheOlderVersion) {
    const Manifest first = manifest_;
    ASSERT_TRUE(cluster_.capture_all(2).ok());
    ASSERT_TRUE(cluster_.run_until_committed(2, 60 * second));
    manifest_ = with_a_long_head(**cluster_.newest_committed());
    const std::string path = cluster_.layout.manifest(manifest_.key);
    Bytes bytes = encode_manifest(manifest_);
    const std::uint64_t last = bytes.size() - 1;
    ASSERT_GT(last, manifest_first_read_bytes);
    ASSERT_TRUE(cluster_.sim.persistent().remove(path, 0).ok());
    const Status wrote = run(0, deadline_passed(""), [&](World& w) { return write_file(w.storage, path, bytes, 0644, w.clock.in(60 * second)); });
    ASSERT_TRUE(wrote.ok()) << wrote.to_string();
    const auto from_parts = [&](const VersionKey& key) {
        return run(0, Fetched{Status(Code::deadline, ""), false, {}}, [&](World& w) {
            const Aim nothing = [](const ImageInfo&) -> Result<HandOut> { return HandOut(); };
            return fetch_image(w, cluster_.layout, {key, 0, "", true}, nothing, settings_, w.clock.in(60 * second));
        });
    };
    const auto newest = [&] {
        const auto found = run(0, Result<RestorableSeries>(Status(Code::deadline, "")),
                               [&](World& w) { return load_restorable(w, cluster_.layout, first.key.name, {}, {}, w.clock.in(60 * second)); });
        EXPECT_TRUE(found.ok() && found->versions.back().key.name == first.key.name) << "who asks for it by this key finds it";
        return found.ok() ? newest_of(found->versions) : 0;
    };
    EXPECT_EQ(newest(), 2u);
    EXPECT_TRUE(from_parts(manifest_.key).status.ok()) << from_parts(manifest_.key).status.to_string();
    ASSERT_TRUE(cluster_.sim.persistent().flip_bit(path, last, 0).ok());
    EXPECT_EQ(newest(), 2u);
    const Fetched damaged = from_parts(manifest_.key);
    EXPECT_EQ(damaged.status.code(), Code::corrupt);
    EXPECT_NE(damaged.status.text().find(path), std::string::npos) << damaged.status.text();
    EXPECT_FALSE(damaged.refused);
    EXPECT_TRUE(another_may_do(damaged.status));
    EXPECT_TRUE(from_parts(first.key).status.ok());
    EXPECT_EQ(open(0, SeenState::committed).status().code(), Code::corrupt);
    const Verdict verdict = verify(0, SeenState::committed, {});
    ASSERT_EQ(verdict.damage.size(), 1u);
    EXPECT_EQ(verdict.damage[0].status.code(), Code::corrupt);
}

}  // namespace
}  // namespace cairn
