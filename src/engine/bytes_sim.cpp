// The bytes: what scratch holds is what was sealed, and what a disk made of a part is found.
#include "engine/promise_sim.hpp"
#include "engine/scratch.hpp"

namespace cairn::testing {

namespace {

// Where a part holds data.
std::optional<std::uint64_t> data_in(SeedRun& run, const std::string& path) {
    sim::Process& process = run.cluster.hosts[0].node->start_process("reader");
    Result<Footer> footer(Status(Code::deadline, "not read"));
    const auto task = [](World w, std::string file, Result<Footer>* out) -> Task<void> {
        Result<Footer> read = co_await read_footer(w, std::move(file), nullptr, {});
        *out = std::move(read);
    };
    (void)run.cluster.sim.run(task(process.world(), path, &footer), run.cluster.sim.now() + 60 * second);
    process.kill();
    for (const Extent& extent : footer.ok() ? footer->extents : std::vector<Extent>())
        if (extent.length > 0) return extent.part_offset;
    return std::nullopt;
}

}  // namespace

// What looks like a sealed image in scratch is one, bit for bit: a daemon that starts takes it for that.
void check_scratch(SeedRun& run) {
    const auto check = [](World world, ScratchLayout place, const ClusterOptions* options, Status* out) -> Task<void> {
        Result<ScratchScan> scan = co_await scan_scratch(world, place, 60 * second);
        *out = scan.status();
        if (!scan.ok()) co_return;
        for (const Unread& unread : scan->unread) *out = unread.why;
        for (const LocalImage& image : scan->images) {
            const ImageHeader& header = image.header;
            if (header.image.bytes != options->image_bytes(header.rank, header.key.version)) *out = corrupt(image.path + ": of another size");
            const std::uint64_t seed = Cluster::content_seed(header.key.incarnation, header.key.version, header.rank);
            const ImageSink sink = [&](std::uint64_t offset, Slice data) {
                Slice expected = sim::describe(seed, data.length, offset);
                return sim::content_equal(data, expected) ? Status() : corrupt(image.path + ": other bytes than were captured");
            };
            const RestoreSettings& settings = options->restore;
            Status status = co_await restore_local(world, image, {}, sink, settings);
            if (!status.ok()) *out = std::move(status);
        }
    };
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node) {
        if (run.cluster.is_io_node(node)) continue;
        sim::Process& process = run.cluster.hosts[node].node->start_process("reader");
        Status status = deadline_passed("reading scratch");
        (void)run.cluster.sim.run(check(process.world(), run.cluster.scratch(node), &run.cluster.options, &status), run.cluster.sim.now() + 60 * second);
        process.kill();
        if (!status.ok()) return run.fail("an image in scratch is not what was sealed: " + status.to_string());
    }
}

// A flipped bit is found on read.
void check_flipped_bit(SeedRun& run) {
    const VersionKey key = run.cluster.key(run.known.next_version);
    const auto newest = run.cluster.newest_committed();
    if (!newest.ok() || !*newest || (*newest)->key != key) return run.fail("the last version is not the newest");
    for (const PartInfo& part : (*newest)->parts) {
        if (part.footer_offset == 0) continue;
        const std::string path = run.cluster.layout.version(key) + "/" + part.file;
        const std::optional<std::uint64_t> at = data_in(run, path);  // a part may have gaps, also at its beginning
        if (!at) continue;
        (void)run.cluster.sim.persistent().flip_bit(path, *at, static_cast<unsigned>(run.draw(8))).ok();
        const Status status = run.cluster.check_committed(key);
        if (status.code() != Code::corrupt) return run.fail("a flipped bit was not found: " + part.file + ": " + status.to_string());
        return;
    }
}

}  // namespace cairn::testing
