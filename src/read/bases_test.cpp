// What readers of a version do with one that is stored as differences to an older one: a restart's fetch, a stream, and what is open.
#include <gtest/gtest.h>

#include "copies/based_testing.hpp"
#include "read/fetch.hpp"
#include "read/regions.hpp"

namespace cairn {
namespace {

class ReadWithBase : public ::testing::Test, public testing::BasedVersions {
  protected:
    Fetched fetch(Rank rank) {
        Fetched fetched;
        got_ = 0;
        const Aim whole = [&](const ImageInfo& image) -> Result<HandOut> {
            HandOut out;
            out.add(image.rank, {0, image.bytes}, "image", [this, rank](std::uint64_t at, const Slice& data) {
                EXPECT_EQ(std::memcmp(data.data(), newer[rank].data() + at, data.length), 0);
                got_ += data.length;
                return Status();
            });
            return out;
        };
        const auto task = [](World w, Layout l, ImagePlaces places, Aim aim, Fetched& into) -> Task<void> {
            Fetched got = co_await fetch_image(w, l, places, aim, {}, w.clock.in(60 * second));
            into = std::move(got);
        };
        run(task(world(), layout, {version.key, rank, "", true}, whole, fetched));
        return fetched;
    }
    VersionCopies open(Rank rank) {
        Seen seen;
        seen.key = version.key;
        seen.ranks = version.ranks;
        seen.state = SeenState::committed;
        Result<VersionCopies> copies(Status(Code::deadline, ""));
        const auto task = [](World w, Layout l, Seen which, Rank of, Result<VersionCopies>& out) -> Task<void> {
            std::vector<ScratchImage> none;
            Result<VersionCopies> opened = co_await open_copies(w, l, which, std::move(none), of, {});
            out = std::move(opened);
        };
        run(task(world(), layout, seen, rank, copies));
        EXPECT_TRUE(copies.ok()) << copies.status().to_string();
        return copies.ok() ? std::move(copies).value() : VersionCopies();
    }
    // Rank 0's image, in windows of so many bytes.
    std::uint64_t stream(std::uint64_t window, RestoreSettings settings) {
        VersionCopies copies = open(0);
        const Result<ReadPlan> plan = plan_reads(copies, {{0, {}}}, settings.buffer_bytes);
        EXPECT_TRUE(plan.ok());
        std::uint64_t at = 0;
        const auto task = [](ReadWithBase* self, const VersionCopies& of, ReadPlan all, std::uint64_t piece_bytes, RestoreSettings how, std::uint64_t& done) -> Task<void> {
            World w = self->world();
            EncodedRuns encoded(w, how.encoded_bytes);
            for (PlanPiece& piece : in_image_order(of, std::move(all), piece_bytes)) {
                HandOut out;
                out.add(0, piece.range, "window", [self, &piece](std::uint64_t offset, const Slice& data) {
                    EXPECT_EQ(std::memcmp(data.data(), self->newer[0].data() + piece.range.offset + offset, data.length), 0);
                    return Status();
                });
                Status status = co_await read_planned(w, self->layout, of, std::move(piece.plan), out, how, &encoded);
                EXPECT_TRUE(status.ok()) << status.to_string();
                EXPECT_EQ(piece.range.offset, done);
                done += piece.range.length;
            }
        };
        run(task(this, copies, *plan, window, settings, at));
        return at;
    }

    std::uint64_t got_ = 0;
};

TEST_F(ReadWithBase, ARestartTakesIt) {
    for (Rank rank = 0; rank < 3; ++rank) {
        const Fetched fetched = fetch(rank);
        EXPECT_TRUE(fetched.status.ok()) << fetched.status.to_string();
        EXPECT_EQ(got_, newer[rank].size());
    }
}

TEST_F(ReadWithBase, AStreamTakesItAlsoWithoutRoomToKeepAnything) {
    RestoreSettings settings;
    EXPECT_EQ(stream(4096, settings), large);
    EXPECT_EQ(cpu.decodes, 4) << "two runs, and two of the base: the third is not encoded";
    settings.buffer_bytes = 4096;
    settings.encoded_bytes = 1;
    EXPECT_EQ(stream(4096, settings), large);
}

TEST_F(ReadWithBase, OnlyTheBaseOfWhoIsOpenIsOpened) {
    EXPECT_EQ(open(1).parts->bases.at(0)->version.footers.size(), 1u);
    EXPECT_EQ(open(every_rank).parts->bases.at(0)->version.footers.size(), 2u);
    version.parts.clear();
    version.bases.clear();
    version.image_bytes = 0;
    commit(version, newer, {{{{{0, 0, large}}}}, {pack(1, 2, Codec::planes, 1)}});
    EXPECT_TRUE(open(0).parts->bases.empty());
    EXPECT_EQ(open(2).parts->bases.size(), 1u);
}

TEST_F(ReadWithBase, ARestartGoesBackWhereTheBaseIsDamagedOrGone) {
    stored_byte(base, 1, 1, 20) ^= std::byte{1};
    Fetched fetched = fetch(1);
    EXPECT_EQ(fetched.status.code(), Code::corrupt) << fetched.status.to_string();
    EXPECT_TRUE(another_may_do(fetched.status));
    EXPECT_FALSE(fetched.refused);
    EXPECT_TRUE(fetch(0).status.ok());
    files.files.erase(layout.manifest(base.key));
    fetched = fetch(0);
    EXPECT_TRUE(another_may_do(fetched.status)) << fetched.status.to_string();
    EXPECT_FALSE(fetched.refused);
}

// Nothing is damaged, and who went back would give the newer one up.
TEST_F(ReadWithBase, ARestartDoesNotGoBackWhereARootOfTheBaseIsAway) {
    const std::string before = layout.part(base, 1);
    base.roots.push_back("/elsewhere");
    base.parts[1].root = 1;
    publish(base);
    files.files[layout.part(base, 1)] = files.files.at(before);
    EXPECT_TRUE(fetch(1).status.ok()) << fetch(1).status.to_string();
    files.files.erase(layout.part(base, 1));
    const Fetched fetched = fetch(1);
    EXPECT_FALSE(fetched.status.ok());
    EXPECT_TRUE(fetched.refused) << fetched.status.to_string();
    EXPECT_NE(fetched.status.text().find("needs version 10, its base: "), std::string::npos) << fetched.status.text();
}

}  // namespace
}  // namespace cairn
