// What readers of a version do with one that is stored as differences to an older one: a restart's fetch, by one rank and by two of a node, a stream, and what is open.
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

// Scratch of a simulated node, and files in memory.
class ScratchAndFiles final : public Storage {
  public:
    ScratchAndFiles(Storage& scratch, Storage& files) : scratch_(scratch), files_(files) {}
    Result<BufferPtr> allocate(std::uint64_t bytes) override { return files_.allocate(bytes); }
    Task<Result<FilePtr>> open(std::string path, OpenOptions options, Nanos by) override { return of(path).open(path, options, by); }
    Task<Result<std::uint64_t>> write_some(FilePtr file, std::uint64_t at, Slice data, Nanos by) override { return of(file->path()).write_some(file, at, std::move(data), by); }
    Task<Result<std::uint64_t>> read_some(FilePtr file, std::uint64_t at, Slice into, Nanos by) override { return of(file->path()).read_some(file, at, std::move(into), by); }
    Task<Status> fsync(FilePtr file, Nanos by) override { return of(file->path()).fsync(file, by); }
    Task<Result<std::uint64_t>> file_bytes(FilePtr file, Nanos by) override { return of(file->path()).file_bytes(file, by); }
    Task<Status> resize(FilePtr file, std::uint64_t bytes, Nanos by) override { return of(file->path()).resize(file, bytes, by); }
    Task<Status> make_directory(std::string path, std::uint32_t mode, Nanos by) override { return of(path).make_directory(path, mode, by); }
    Task<Status> fsync_directory(std::string path, Nanos by) override { return of(path).fsync_directory(path, by); }
    Task<Status> publish(std::string from, std::string to, Nanos by) override { return of(from).publish(from, std::move(to), by); }
    Task<Status> replace(std::string from, std::string to, Nanos by) override { return of(from).replace(from, std::move(to), by); }
    Task<Status> remove(std::string path, Nanos by) override { return of(path).remove(path, by); }
    Task<Status> remove_directory(std::string path, Nanos by) override { return of(path).remove_directory(path, by); }
    Task<Result<std::vector<DirectoryEntry>>> list(std::string path, Nanos by) override { return of(path).list(path, by); }
    Task<Result<std::uint64_t>> free_bytes(std::string path, Nanos by) override { return of(path).free_bytes(path, by); }
    Task<Result<BufferPtr>> map(std::string path, bool is_writable, Nanos by) override { return of(path).map(path, is_writable, by); }

  private:
    Storage& of(const std::string& path) { return path.starts_with("/scratch") ? scratch_ : files_; }
    Storage& scratch_;
    Storage& files_;
};

// Ranks 1 and 2, whose images share a run with a base: of that one both of them need pieces, too.
class ReadTogether : public ::testing::Test, public testing::BasedVersions {
  protected:
    struct One {
        explicit One(ReadTogether& of, sim::Process& process) : storage(process.world().storage, of.files), world{process.world().clock, storage, process.world().network, process.world().random, of.cpu} {}
        ScratchAndFiles storage;
        World world;
        Fetched fetched;
        std::uint64_t got = 0;
    };
    void fetch(std::size_t shelves = 4) {
        ++restarts_;
        shelves_ = shelves;
        std::vector<Task<void>> tasks;
        for (const Rank rank : {1, 2}) {
            ones_[rank] = std::make_unique<One>(*this, process.node().start_process("rank"));
            tasks.push_back(fetch_one(rank, *ones_[rank]));
            tasks.back().start();
        }
        const auto is_over = [&] { return tasks[0].done() && tasks[1].done(); };
        EXPECT_TRUE(simulation.run_until(is_over, simulation.now() + 600 * second));
    }
    Task<void> fetch_one(Rank rank, One& one) {
        const Aim whole = [&](const ImageInfo& image) -> Result<HandOut> {
            HandOut out;
            out.add(image.rank, {0, image.bytes}, "image", [this, rank, &one](std::uint64_t at, const Slice& data) {
                EXPECT_EQ(std::memcmp(data.data(), newer[rank].data() + at, data.length), 0);
                one.got += data.length;
                return Status();
            });
            return out;
        };
        ImagePlaces places{version.key, rank, "", true};
        places.shared = SharedPlace{"/scratch/shared", "series", std::to_string(restarts_), {1, 2}, rank, shelves_};
        const Nanos deadline = one.world.clock.in(60 * second);
        Fetched got = co_await fetch_image(one.world, layout, std::move(places), whole, {}, deadline);
        one.fetched = std::move(got);
    }
    const Status& status(Rank rank) const { return ones_.at(rank)->fetched.status; }
    // Images of ranks 1 and 2 that end with an index, as captures leave them. The second run of the base is needed for it, and for more.
    void commit_indexed() {
        constexpr std::uint64_t block = testing::based_block_bytes;
        base = version = {};
        std::uint64_t index_bytes = 0;
        for (const Rank rank : {1, 2}) {
            Region region;
            region.name = "field";
            region.type = DataType::f64;
            region.length = 4 * block;
            region.shape = {region.length / 8};
            const Bytes index = encode_region_index({region}).bytes;
            index_bytes = index.size();
            older[rank] = newer[rank] = numbers(4 * block, 7 + rank);
            change(newer[rank], rank);
            for (testing::ImagesByHand* images : {&older, &newer}) (*images)[rank].insert((*images)[rank].end(), index.begin(), index.end());
        }
        const auto both = [](std::uint64_t from, std::uint64_t to, std::uint32_t of) { return testing::RunByHand{{{1, from, to - from}, {2, from, to - from}}, Codec::planes, of}; };
        const std::uint64_t end = 4 * block + index_bytes;
        commit(base, older, {{{{{0, 0, large}}}, both(0, 2 * block, 0), both(2 * block, end, 0)}});
        commit(version, newer, {{{{{0, 0, large}}}, both(0, 3 * block, 1), both(3 * block, end, 1)}});
        for (Manifest* each : {&base, &version}) {
            Footer footer = footer_of(*each, 0);
            for (const std::size_t i : {1, 2}) footer.images[i] = {footer.images[i].rank, end, {}, 0, index_bytes};
            write_footer(*each, 0, footer);
        }
    }

    int restarts_ = 0;
    std::size_t shelves_ = 0;
    std::map<Rank, std::unique_ptr<One>> ones_;
};

TEST_F(ReadTogether, WhatTwoRanksNeedIsDecodedOnceWithItsBase) {
    fetch();
    for (const Rank rank : {1, 2}) {
        EXPECT_TRUE(status(rank).ok()) << status(rank).to_string();
        EXPECT_EQ(ones_[rank]->got, newer[rank].size());
    }
    EXPECT_EQ(cpu.decodes, 2) << "their pack, and the base's";
}

// In two goes: the index, and then the rest. One shelf for either version.
TEST_F(ReadTogether, SoItIsWhereAnIndexIsReadFirst) {
    commit_indexed();
    fetch(2);
    for (const Rank rank : {1, 2}) {
        EXPECT_TRUE(status(rank).ok()) << status(rank).to_string();
        EXPECT_EQ(ones_[rank]->got, newer[rank].size());
        EXPECT_EQ(ones_[rank]->fetched.shared.alone, 0u);
    }
    EXPECT_EQ(cpu.decodes, 4) << "two runs of either";
}

TEST_F(ReadTogether, DamageInItIsToldByBoth) {
    for (const bool is_in_base : {true, false}) {
        std::byte& byte = is_in_base ? stored_byte(base, 1, 1, 20) : stored_byte(version, 0, 3, 20);
        byte ^= std::byte{1};
        fetch();
        byte ^= std::byte{1};
        for (const Rank rank : {1, 2}) {
            EXPECT_EQ(status(rank).code(), Code::corrupt) << status(rank).to_string();
            EXPECT_NE(status(rank).text().find("rank " + std::to_string(rank)), std::string::npos) << status(rank).text();
            EXPECT_EQ(status(rank).text().find("needs version 10, its base: ") != std::string::npos, is_in_base) << status(rank).text();
            EXPECT_EQ(ones_[rank]->got, 0u);
        }
    }
}

}  // namespace
}  // namespace cairn
