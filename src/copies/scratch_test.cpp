// Looking through scratch: files that hang, one or many, hold up no other, and the look ends in time.
#include "copies/scratch.hpp"

#include <gtest/gtest.h>

#include "format/image.hpp"
#include "format/names.hpp"
#include "proof/cluster.hpp"

namespace cairn {
namespace {

using testing::Cluster;
using testing::ClusterOptions;

constexpr Nanos io_wait = 8 * second;

// Scratch of one node with an image of each of so many ranks, of which those below `hung` hang when they are opened.
class Scan : public ::testing::Test {
  protected:
    void make(std::uint32_t images) {
        ClusterOptions options;
        options.ranks_per_node = {images};
        cluster_ = std::make_unique<Cluster>(options);
        ASSERT_TRUE(cluster_->open_job().ok());
        ASSERT_TRUE(cluster_->capture_all(1).ok());
        ASSERT_TRUE(cluster_->run_until_committed(1, 60 * second));
        cluster_->kill_daemon(0);
        cluster_->sim.faults().hang_io_max = sim::horizon;
        cluster_->sim.set_observer([this](sim::Process&, const char* what, const std::string& path) {
            const auto slot = parse_slot_file_name(path.substr(path.rfind('/') + 1));
            const bool hangs = what == std::string("open") && slot && slot->number < hung_;
            begun_hung_ += hangs;
            cluster_->sim.faults().hang_scratch = hangs ? 1 : 0;
        });
        reader_ = &cluster_->hosts[0].node->start_process("reader");
    }
    // Whether it ended in time.
    bool look(bool again) {
        static const auto first = [](World world, ScratchLayout layout, ScratchScan& out) -> Task<void> {
            Result<ScratchScan> scan = co_await scan_scratch(world, layout, io_wait);
            EXPECT_TRUE(scan.ok());
            out = std::move(scan).value();
        };
        static const auto next = [](World world, ScratchScan& out) -> Task<void> { co_await scan_again(world, out, io_wait); };
        const Nanos limit = cluster_->sim.now() + io_wait + second;
        return again ? cluster_->sim.run(next(reader_->world(), scan_), limit)
                     : cluster_->sim.run(first(reader_->world(), cluster_->scratch(0), scan_), limit);
    }

    std::unique_ptr<Cluster> cluster_;
    sim::Process* reader_ = nullptr;
    ScratchScan scan_;
    std::size_t hung_ = 0, begun_hung_ = 0;
};

TEST_F(Scan, FilesThatHangHoldUpNoOther) {
    make(60);
    hung_ = 20;
    ASSERT_TRUE(look(false));
    EXPECT_EQ(scan_.images.size(), 40u);
    ASSERT_EQ(scan_.unread.size(), 20u);
    for (const Unread& each : scan_.unread) EXPECT_TRUE(may_pass(each.why) && each.tried) << each.why.to_string();
    hung_ = 5;  // some answer again
    ASSERT_TRUE(look(true));
    EXPECT_EQ(scan_.images.size(), 55u);
    EXPECT_EQ(scan_.unread.size(), 5u);
    for (std::size_t i = 1; i < scan_.images.size(); ++i) EXPECT_LT(scan_.images[i - 1].path, scan_.images[i].path);
}

// Each of them keeps a thread, and whoever captures needs threads, too.
TEST_F(Scan, SoManyThatHangAreNotAllLookedAt) {
    make(100);
    hung_ = 80;
    for (int looks = 0; looks < 3; ++looks) ASSERT_TRUE(look(looks > 0));
    EXPECT_LE(begun_hung_, ScratchScan::hang_max);
    EXPECT_EQ(scan_.images.size() + scan_.unread.size(), 100u);
}

// After a loss of power any page may be another's: the last one, too, of an image smaller than what is read at once.
TEST_F(Scan, ATornEndIsFound) {
    make(1);
    ASSERT_TRUE(look(false));
    ASSERT_EQ(scan_.images.size(), 1u);
    const LocalImage& image = scan_.images.front();
    ASSERT_FALSE(image.checksums.empty());
    const auto check = [&] {
        Status status(Code::deadline, "not done");
        const auto task = [](World world, const LocalImage& of, Status& out) -> Task<void> {
            Status checked = co_await check_data(world, of, io_wait);
            out = std::move(checked);
        };
        EXPECT_TRUE(cluster_->sim.run(task(reader_->world(), image, status), cluster_->sim.now() + 60 * second));
        return status;
    };
    EXPECT_TRUE(check().ok());
    ASSERT_TRUE(cluster_->hosts[0].node->scratch().flip_bit(image.path, image.header.data_offset + image.header.image.bytes - 1, 3).ok());
    EXPECT_EQ(check().code(), Code::corrupt);
}

// Whoever may write there can make a sparse file that says to be an image of 2^59 bytes, all of them checksummed.
TEST_F(Scan, ASlotThatAsksForMoreMemoryThanThereIsIsToldAndNoOther) {
    make(2);
    ASSERT_TRUE(look(false));
    ASSERT_EQ(scan_.images.size(), 2u);
    ImageHeader header = scan_.images.front().header;
    header.image = {header.rank, 1ull << 59, {}};
    const ImageLayout layout = image_layout(encode_image_header(header).size(), header.image, header.block_bytes);
    header.checksums_offset = layout.checksums_offset;
    header.data_offset = layout.data_offset;
    const auto inode = cluster_->hosts[0].node->scratch().find(scan_.images.front().path);
    ASSERT_TRUE(inode.ok());
    (*inode)->content->write(image_header_offset, sim::runs_of_bytes(encode_image_header(header)));
    (*inode)->content->resize(layout.file_bytes);
    ASSERT_TRUE(look(false));
    EXPECT_EQ(scan_.images.size(), 1u);
    ASSERT_EQ(scan_.unread.size(), 1u);
    EXPECT_EQ(scan_.unread.front().why.code(), Code::out_of_space) << scan_.unread.front().why.to_string();
}

// After a restart of the machine: in steps of 8 MiB, whose units end where the image's do.
TEST(CheckData, AnImageWithCutsIsComparedStepByStep) {
    constexpr std::uint64_t bytes = (8 << 20) + 50'000, cut = (8 << 20) + 9'000, seed = 3;
    sim::Simulation simulation{1, {}, {}};
    auto& node = simulation.add_node();
    World world = node.start_process("cairnd").world();
    LocalImage image;
    image.path = "/scratch/slot";
    image.header.block_bytes = 4096;
    image.header.image.bytes = bytes;
    image.header.cuts = {cut};
    image.checksums = sim::checksums_of(sim::runs_of_description(seed, 0, bytes), {4096, 0, {cut}});
    const auto file = node.scratch().create(image.path, node.id());
    ASSERT_TRUE(file.ok());
    (*file)->content->write(0, sim::runs_of_description(seed, 0, bytes));
    const auto check = [&] {
        Status status = deadline_passed("checking");
        const auto task = [](World& w, const LocalImage& of, Status& out) -> Task<void> {
            Status checked = co_await check_data(w, of, io_wait);
            out = std::move(checked);
        };
        EXPECT_TRUE(simulation.run(task(world, image, status), simulation.now() + 60 * second));
        return status;
    };
    EXPECT_TRUE(check().ok()) << check().to_string();
    (*file)->content->flip_bit(cut, 1);
    EXPECT_EQ(check().code(), Code::corrupt);
}

}  // namespace
}  // namespace cairn
