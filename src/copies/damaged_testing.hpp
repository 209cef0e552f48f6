// For tests: a committed version of four ranks in two parts, what damages it, and how that is told.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "copies/cpu_testing.hpp"
#include "copies/restore.hpp"
#include "format/part.hpp"
#include "proof/cluster.hpp"

namespace cairn::testing {

class Damaged : public ::testing::Test {
  protected:
    explicit Damaged(ClusterOptions chosen = options()) : cluster_(std::move(chosen)) {
        CAIRN_CHECK(cluster_.open_job().ok());
        CAIRN_CHECK(cluster_.capture_all(1).ok());
        CAIRN_CHECK(cluster_.run_until_committed(1, 60 * second));
        manifest_ = **cluster_.newest_committed();
    }
    static ClusterOptions options() {
        ClusterOptions o;
        o.files = 2;
        o.image_bytes = [](Rank, Version) { return 50'000; };
        return o;
    }
    std::string part(std::size_t i) const { return cluster_.layout.version(manifest_.key) + "/" + manifest_.parts[i].file; }
    std::vector<Damage> verify(RestoreSettings settings = {}, VerifyDepth depth = VerifyDepth::decoded) {
        const Result<std::vector<Damage>> found = look(settings, {}, depth);
        EXPECT_TRUE(found.ok()) << found.status().to_string();
        return found.ok() ? *found : std::vector<Damage>{};
    }
    Result<std::vector<Damage>> look(RestoreSettings settings = {}, Status decode_fails = {}, VerifyDepth depth = VerifyDepth::decoded) {
        sim::Process& process = cluster_.hosts[0].node->start_process("verify");
        Result<std::vector<Damage>> found(Status(Code::deadline, ""));
        verified_bytes_ = 0;
        const auto task = [](World w, Layout l, Manifest m, RestoreSettings s, VerifyDepth d, std::uint64_t& sum, Result<std::vector<Damage>>& out) -> Task<void> {
            const std::function<void(std::uint64_t)> progress = [&sum](std::uint64_t bytes) { sum += bytes; };
            Result<std::vector<Damage>> damage = co_await verify_version(w, l, m, s, progress, d);
            out = std::move(damage);
        };
        testing::WatchedCpu cpu(process.world().cpu);
        cpu.fails = std::move(decode_fails);
        EXPECT_TRUE(cluster_.sim.run(task(testing::with_cpu(process.world(), cpu), cluster_.layout, manifest_, settings, depth, verified_bytes_, found), cluster_.sim.now() + 60 * second));
        decodes_ = cpu.decodes;
        memory_peak_ = process.buffer_bytes_peak();
        process.kill();
        return found;
    }
    Footer footer_of(std::size_t i) {
        sim::Process& process = cluster_.hosts[0].node->start_process("reader");
        Result<Footer> found(Status(Code::deadline, ""));
        const auto task = [](World w, std::string path, Result<Footer>& out) -> Task<void> {
            Result<Footer> footer = co_await read_footer(w, std::move(path), nullptr, {});
            out = std::move(footer);
        };
        EXPECT_TRUE(cluster_.sim.run(task(process.world(), part(i), found), cluster_.sim.now() + 60 * second));
        process.kill();
        return found.ok() ? *found : Footer();
    }
    // In place of what stands behind its data, and the manifest says so.
    void write_footer(std::size_t i, const Footer& footer) {
        const Bytes tail = encode_footer(footer);
        PartInfo& info = manifest_.parts[i];
        info.footer_offset = footer.data_bytes;
        info.bytes = info.footer_offset + tail.size();
        info.footer_checksum = footer_checksum(tail);
        const auto inode = cluster_.sim.persistent().find(part(i));
        CAIRN_CHECK(inode.ok());
        sim::Content& content = *(*inode)->content;
        content.resize(info.bytes);
        content.write(info.footer_offset, sim::runs_of_bytes(tail));
    }
    // A rank's image, in reads of a few blocks.
    Status restore(Rank rank, ImageSink sink) {
        sim::Process& process = cluster_.hosts[0].node->start_process("reader");
        Status status = deadline_passed("not read");
        const auto task = [](World w, Layout l, Manifest m, Rank r, ImageSink s, Status& out) -> Task<void> {
            RestoreSettings settings;
            settings.buffer_bytes = 16'384;
            Result<OpenVersion> version = co_await open_version(w, l, m, r, settings);
            out = version.status();
            if (!version.ok()) co_return;
            std::vector<ImageRange> all;
            Status restored = co_await restore_image(w, l, *version, r, all, s, settings);
            out = std::move(restored);
        };
        EXPECT_TRUE(cluster_.sim.run(task(process.world(), cluster_.layout, manifest_, rank, std::move(sink), status), cluster_.sim.now() + 60 * second));
        process.kill();
        return status;
    }
    std::uint64_t seed(Rank rank) const { return Cluster::content_seed(manifest_.key.incarnation, manifest_.key.version, rank); }
    // The same, compared with what was captured.
    Status restore(Rank rank) {
        std::uint64_t bytes = 0;
        const ImageSink sink = [&](std::uint64_t offset, Slice data) {
            bytes += data.length;
            return sim::content_equal(data, sim::describe(seed(rank), data.length, offset)) ? Status() : Status(Code::internal, "other bytes");
        };
        const Status status = restore(rank, sink);
        EXPECT_EQ(bytes == cluster_.options.image_bytes(rank, 1), status.ok());
        return status;
    }
    void expect_corrupt(const std::string& named) {
        const Status status = cluster_.check_committed(manifest_.key);
        EXPECT_EQ(status.code(), Code::corrupt) << status.to_string();
        EXPECT_NE(status.text().find(named), std::string::npos) << status.to_string();
    }

    Cluster cluster_;
    Manifest manifest_;
    std::uint64_t memory_peak_ = 0, verified_bytes_ = 0;  // of the last verify()
    int decodes_ = 0;                                      // by it
};

// The same with a codec that shortens most of what it is given.
class DamagedEncoded : public Damaged {
  protected:
    DamagedEncoded() : Damaged([] {
        ClusterOptions o = options();
        o.settings.codec = Codec::zero_runs;
        o.settings.buffer_bytes = 16'384;
        o.settings.writers = 1;
        o.model.codec_shrinks = true;
        o.model.stored_max = 0.8;
        return o;
    }()) {}
};

}  // namespace cairn::testing
