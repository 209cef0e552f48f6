#include "daemon/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "copies/once.hpp"
#include "daemon/memory.hpp"

namespace cairn {
namespace {

using testing::HasSubstr;

TEST(DaemonOptions, PlacesOfTheCommandLineComeBeforeSettings) {
    Settings settings;
    settings.paths.scratch = "/settings/scratch";
    settings.paths.persistent = "/settings/persistent";
    const auto set = daemon_options(settings, {});
    ASSERT_TRUE(set.ok()) << set.status().to_string();
    EXPECT_EQ(set->scratch_directory, "/settings/scratch");
    EXPECT_EQ(set->persistent.persistent, "/settings/persistent");
    EXPECT_EQ(set->node, default_node_name());
    EXPECT_EQ(set->log_file, set->scratch.log());
    settings.daemon.log_file = "/logs/cairnd";
    const auto given = daemon_options(settings, {"n7", "/given/scratch//", "/given/./persistent", true});
    ASSERT_TRUE(given.ok()) << given.status().to_string();
    EXPECT_EQ(given->scratch_directory, "/given/scratch");
    EXPECT_EQ(given->persistent.persistent, "/given/persistent");
    EXPECT_EQ(given->scratch.root, ScratchLayout::of("/given/scratch", ::geteuid(), "n7", "/given/persistent").root);
    EXPECT_EQ(given->world.storage.local, given->scratch.root);
    EXPECT_EQ(given->log_file, "/logs/cairnd");
    EXPECT_TRUE(given->io_node);
}

TEST(DaemonOptions, ANodeNeedsANameThatAFileCanHave) {
    const auto refused = daemon_options({}, {"../n7", "/s", "/p", false});
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_THAT(refused.status().text(), HasSubstr("--node"));
}

TEST(DaemonOptions, TimesAndShapesAreThoseOfTheSettings) {
    Settings settings;
    settings.deadlines.io_ms = 1'500;
    settings.deadlines.version_ms = 7'000;
    settings.daemon.idle_s = 3;
    settings.daemon.stop_wait_ms = 250;
    settings.flush.placement = Settings::Placement::contiguous;
    settings.capture.when_full = Settings::WhenFull::replace_oldest;
    settings.retention.scratch_last = 5;
    settings.retention.persistent_every = 10;
    settings.background.network_bytes_per_s = 1'000;
    settings.background.cpu = Settings::BackgroundCpu::low;
    settings.placement.targets = "a,b";
    settings.describe.names = Settings::Names::exact;
    const auto options = daemon_options(settings, {"n0", "/s", "/p", false});
    ASSERT_TRUE(options.ok()) << options.status().to_string();
    EXPECT_EQ(options->flush.io_wait, 1500 * millisecond);
    EXPECT_EQ(options->slots.allocate_wait, options->flush.io_wait);
    EXPECT_EQ(options->flush.version_wait, 7 * second);
    EXPECT_EQ(options->names, NameRule::exact);
    EXPECT_EQ(options->idle, 3 * second);
    EXPECT_EQ(options->stop_wait, 250 * millisecond);
    EXPECT_EQ(options->flush.placement, Placement::contiguous);
    EXPECT_TRUE(options->slots.replace_oldest);
    EXPECT_EQ(options->slots.keep_last, 5u);
    EXPECT_EQ(options->persistent_rule.every, 10u);
    EXPECT_EQ(options->yielding.caps.in_bytes_s, 1000);
    EXPECT_EQ(options->yielding.caps.out_bytes_s, 1000);
    EXPECT_EQ(options->world.cpu_class.cpu, CpuClass::low);
    EXPECT_EQ(options->world.storage.thread_class.cpu, CpuClass::low);
    EXPECT_EQ(options->targets, (std::vector<std::string>{"a", "b"}));
}

// Unless one is named, those that know arrays take part in the choice; another placement is no error then, nor where one is named: its data are stored as they are.
TEST(DaemonOptions, TheCodecIsChosenUnlessItIsNamed) {
    Settings settings;
    for (const Settings::Placement placement : {Settings::Placement::append, Settings::Placement::interleaved}) {
        settings.flush.placement = placement;
        const auto chosen = daemon_options(settings, {"n0", "/s", "/p", false});
        ASSERT_TRUE(chosen.ok()) << chosen.status().to_string();
        EXPECT_EQ(chosen->flush.codec, Codec::none);
        EXPECT_EQ(chosen->flush.codecs, (std::vector<Codec>{Codec::planes, Codec::planes_small}));
    }
    for (const auto& [by, codec] : {std::pair{Settings::Compression::off, Codec::none}, std::pair{Settings::Compression::fast, Codec::planes}}) {
        settings.flush.codec = by;
        const auto named = daemon_options(settings, {"n0", "/s", "/p", false});
        ASSERT_TRUE(named.ok()) << named.status().to_string();
        EXPECT_EQ(named->flush.codec, codec);
        EXPECT_TRUE(named->flush.codecs.empty());
    }
}

// With those of images that ranks give, and of who encodes, they stay below 64 MiB.
TEST(DaemonOptions, ThroughBoundsTheBuffers) {
    Settings settings;
    settings.flush.encode_at = Settings::EncodeAt::follower;
    const auto plain = daemon_options(settings, {"n0", "/s", "/p", false})->flush;
    EXPECT_EQ(plain.buffer_bytes, settings.flush.buffer_bytes);
    EXPECT_EQ(plain.buffers, settings.flush.buffers);
    settings.capture.mode = Settings::CaptureMode::through;
    const auto through = daemon_options(settings, {"n0", "/s", "/p", false})->flush;
    EXPECT_LE((through.buffers + through.encode_buffers + OnceReads::buffers_most) * through.buffer_bytes, 48u << 20);
    settings.flush.block_bytes = 3 << 20;
    EXPECT_EQ(daemon_options(settings, {"n0", "/s", "/p", false})->flush.buffer_bytes, 3u << 20) << "whole blocks";
    settings.flush.block_bytes = settings.flush.buffer_bytes;
    EXPECT_EQ(daemon_options(settings, {"n0", "/s", "/p", false})->flush.buffer_bytes, settings.flush.block_bytes) << "a block must fit";
    settings.flush.buffers = 2;
    settings.flush.buffer_bytes = settings.flush.block_bytes = 64 << 10;
    EXPECT_EQ(daemon_options(settings, {"n0", "/s", "/p", false})->flush.buffers, 2u);
    EXPECT_EQ(daemon_options(settings, {"n0", "/s", "/p", false})->flush.buffer_bytes, 64u << 10);
}

TEST(DaemonOptions, TheRingFitsTheMemoryOfTheNode) {
    Settings settings;
    auto options = daemon_options(settings, {"n0", "/s", "/p", false});
    ASSERT_TRUE(options.ok());
    const Result<std::uint64_t> memory = node_memory_bytes();
    ASSERT_TRUE(memory.ok());
    options->flush.buffers = 64;
    options->flush.buffer_bytes = *memory / 16 / settings.flush.block_bytes * settings.flush.block_bytes;
    fit_memory(*options, settings);
    const double share = static_cast<double>(options->flush.buffers * options->flush.buffer_bytes) / static_cast<double>(*memory);
    EXPECT_LE(share, settings.flush.memory_share);
    EXPECT_GE(options->flush.buffers, 2u);
    EXPECT_EQ(options->slots.bytes_max, settings.capture.scratch_bytes) << "of memory only where scratch is memory";
}

// Of the same memory, and the ring's two come first.
TEST(DaemonOptions, AFollowersBuffersFitBesideTheRing) {
    Settings settings;
    EXPECT_EQ(daemon_options(settings, {"n0", "/s", "/p", false})->flush.encode_buffers, 0u);
    settings.flush.encode_at = Settings::EncodeAt::follower;
    const Result<std::uint64_t> memory = node_memory_bytes();
    ASSERT_TRUE(memory.ok());
    for (const std::uint64_t part : {32, 8}) {  // the share is a quarter: eight buffers, or two
        auto options = daemon_options(settings, {"n0", "/s", "/p", false});
        ASSERT_TRUE(options.ok());
        EXPECT_EQ(options->flush.encode_at, EncodeAt::follower);
        EXPECT_EQ(options->flush.encode_buffers, 2u);
        options->flush.buffers = 64;
        options->flush.buffer_bytes = *memory / part / settings.flush.block_bytes * settings.flush.block_bytes;
        fit_memory(*options, settings);
        const std::uint32_t all = options->flush.buffers + options->flush.encode_buffers;
        EXPECT_LE(static_cast<double>(all * options->flush.buffer_bytes) / static_cast<double>(*memory), settings.flush.memory_share);
        EXPECT_GE(options->flush.buffers, 2u);
        EXPECT_EQ(options->flush.encode_buffers, part == 32 ? 2u : 0u);
    }
    auto options = daemon_options(settings, {"n0", "/s", "/p", false});
    options->flush.buffers = 2;
    options->flush.buffer_bytes = *memory / 13 / settings.flush.block_bytes * settings.flush.block_bytes;  // three in a quarter
    fit_memory(*options, settings);
    EXPECT_EQ(options->flush.buffers, 2u) << "no more than were asked for";
    EXPECT_EQ(options->flush.encode_buffers, 0u);
}

// Where its data go to another node, it encodes them itself, whatever `encode_at` says: the base is here.
TEST(DaemonOptions, AFollowerOfVersionsWithABaseHasBuffersToEncodeIn) {
    Settings settings;
    settings.flush.full_every = 3;
    settings.flush.merge_ranks = 5;
    settings.flush.merge_bytes = 1 << 14;
    const auto options = daemon_options(settings, {"n0", "/s", "/p", false});
    ASSERT_TRUE(options.ok());
    EXPECT_EQ(options->flush.encode_at, EncodeAt::leader);
    EXPECT_EQ(options->flush.full_every, 3u);
    EXPECT_EQ(options->flush.merge_ranks, 5u);
    EXPECT_EQ(options->flush.merge_bytes, 1u << 14);
    EXPECT_EQ(options->flush.encode_buffers, 2u);
}

}  // namespace
}  // namespace cairn
