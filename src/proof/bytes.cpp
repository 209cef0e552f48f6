// The bytes: what scratch holds is what was sealed, and what a disk made of a part is found.
#include <algorithm>

#include "proof/promise.hpp"
#include "copies/scratch.hpp"

namespace cairn::testing {

namespace {

// The runs of a part.
std::vector<StoredRun> runs_in(SeedRun& run, const std::string& path) {
    sim::Process& process = run.cluster.hosts[run.cluster.reader()].node->start_process("reader");
    Result<Footer> footer(Status(Code::deadline, "not read"));
    const auto task = [](World w, std::string file, Result<Footer>* out) -> Task<void> {
        Result<Footer> read = co_await read_footer(w, std::move(file), nullptr, {});
        *out = std::move(read);
    };
    (void)run.cluster.sim.run(task(process.world(), path, &footer), run.cluster.sim.now() + 60 * second);
    process.kill();
    return footer.ok() ? std::move(footer->runs) : std::vector<StoredRun>{};
}

// Every image in a node's scratch whose checksums were kept there, as a restarting rank reads it.
struct Looked {
    std::vector<LocalImage> images;
    std::map<std::string, Status> status;  // by path
};

Task<void> look_at(World world, ScratchLayout place, RestoreSettings settings, Looked* out) {
    Result<ScratchScan> scan = co_await scan_scratch(world, place, 60 * second);
    if (!scan.ok()) co_return;
    std::erase_if(scan->images, [](const LocalImage& image) { return image.checksums.empty(); });
    for (const LocalImage& image : scan->images) {
        const ImageSink sink = [](std::uint64_t, Slice) { return Status(); };
        Status status = co_await restore_local(world, image, {}, sink, settings);
        out->status.emplace(image.path, std::move(status));
    }
    out->images = std::move(scan->images);
}

Looked look_at(SeedRun& run, NodeIndex node) {
    Looked looked;
    sim::Process& process = run.cluster.hosts[node].node->start_process("reader");
    (void)run.cluster.sim.run(look_at(process.world(), run.cluster.scratch(node), run.cluster.options.restore, &looked), run.cluster.sim.now() + 60 * second);
    process.kill();
    return looked;
}

// Of one image in scratch: any bit of it.
void check_flipped_in_scratch(SeedRun& run, NodeIndex node) {
    const Looked before = look_at(run, node);
    if (before.images.empty()) return;
    const LocalImage& image = before.images[run.draw(before.images.size())];
    const std::uint64_t at = run.draw(image.header.image.bytes);
    (void)run.cluster.hosts[node].node->scratch().flip_bit(image.path, image.header.data_offset + at, static_cast<unsigned>(run.draw(8))).ok();
    const Looked after = look_at(run, node);
    const auto found = after.status.find(image.path);
    const std::string where = "byte " + std::to_string(at) + " of rank " + std::to_string(image.header.rank) + ", version " + std::to_string(image.header.key.version);
    if (found == after.status.end() || found->second.code() != Code::corrupt) return run.fail("a flipped bit in scratch was not found: " + where);
    // The rank itself says so, and takes the parts where there are any.
    const VersionKey key = image.header.key;
    const bool committed = run.known.reported.count(key) && !run.known.removed.count(key);
    const Fetched fetched = run.cluster.fetch_now(node, {key, image.header.rank, image.path, committed}, content_of(run, key));
    const bool is_told = committed ? fetched.passed_over && fetched.passed_over->code() == Code::corrupt : fetched.status.code() == Code::corrupt;
    if (!is_told) return run.fail("a rank restored from scratch, where a bit was flipped: " + where + ": " + fetched.status.to_string());
    if (committed && !fetched.status.ok()) run.fail("a rank did not take the parts where a bit of scratch was flipped: " + where + ": " + fetched.status.to_string());
}

// `cairn verify` names just the unit in which a byte of a part was changed, of each image that has it; of an encoded run all that is in it.
void check_damage_named(SeedRun& run, const Manifest& manifest, const std::string& part, const StoredRun& stored, std::uint64_t at) {
    sim::Process& process = run.cluster.hosts[run.cluster.reader()].node->start_process("verify");
    Result<std::vector<Damage>> found(Status(Code::deadline, "not verified"));
    const auto task = [](World w, Layout l, Manifest m, RestoreSettings settings, Result<std::vector<Damage>>* out) -> Task<void> {
        Result<std::vector<Damage>> damage = co_await verify_version(w, l, m, settings, nullptr);
        *out = std::move(damage);
    };
    (void)run.cluster.sim.run(task(process.world(), run.cluster.layout, manifest, run.cluster.options.restore, &found), run.cluster.sim.now() + 600 * second);
    process.kill();
    if (!found.ok()) return run.fail("a version with a flipped bit can not be verified: " + found.status().to_string());
    std::vector<Rank> hit, named;
    for (const StoredPiece& piece : stored.pieces)
        if (stored.codec != 0 || (at >= piece.at && at < piece.at + piece.length)) hit.push_back(piece.rank);
    const std::uint64_t block_bytes = run.cluster.options.block_bytes, block = (stored.part_offset + (stored.codec != 0 ? 0 : at)) / block_bytes;
    for (const Damage& damage : *found) {
        // Counted from where the unit begins, which may be in the block before.
        const bool is_there = damage.part == part && damage.block && (*damage.block == block || *damage.block + 1 == block);
        if (damage.status.code() != Code::corrupt || !is_there || !damage.rank) return run.fail("verification finds damage elsewhere than where a bit was flipped: " + damage.status.to_string());
        named.push_back(*damage.rank);
    }
    std::sort(hit.begin(), hit.end());
    std::sort(named.begin(), named.end());
    if (named != hit) run.fail("verification finds a flipped bit in " + std::to_string(named.size()) + " places, and it is in " + std::to_string(hit.size()));
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
            const std::uint64_t seed = Cluster::content_seed(*options, header.key, header.rank);
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
        if (run.cluster.is_io_node(node) || run.cluster.hosts[node].gone) continue;
        sim::Process& process = run.cluster.hosts[node].node->start_process("reader");
        Status status = deadline_passed("reading scratch");
        (void)run.cluster.sim.run(check(process.world(), run.cluster.scratch(node), &run.cluster.options, &status), run.cluster.sim.now() + 60 * second);
        process.kill();
        if (!status.ok()) return run.fail("an image in scratch is not what was sealed: " + status.to_string());
    }
}

// A flipped bit is found on read, wherever it is: in scratch once its checksums are kept there, and in a part, where the part and the rank are named. Verification
// finds that one, and nothing else.
void check_flipped_bit(SeedRun& run) {
    // First the daemons end: what one still flushes of an older job would take a flipped bit along.
    for (NodeIndex node = 0; node < run.cluster.hosts.size(); ++node)
        if (run.cluster.hosts[node].daemon) run.cluster.kill_daemon(node);
    for (NodeIndex node = 0; node < run.cluster.hosts.size() && run.result.ok; ++node)
        if (!run.cluster.is_io_node(node) && !run.cluster.hosts[node].gone) check_flipped_in_scratch(run, node);
    const auto newest = run.cluster.newest_committed();
    const VersionKey key = run.cluster.key(run.known.next_version);
    if (!newest.ok() || !*newest || (*newest)->key != key) return run.fail("the last version is not the newest");
    check_together(run, key);
    const std::vector<PartInfo>& parts = (*newest)->parts;
    const std::size_t first = run.draw(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const PartInfo& part = parts[(first + i) % parts.size()];
        const std::string path = run.cluster.layout.part(**newest, (first + i) % parts.size());
        const std::vector<StoredRun> runs = runs_in(run, path);
        if (runs.empty()) continue;
        const StoredRun& stored = runs[run.draw(runs.size())];
        const std::uint64_t at = run.draw(stored.stored_bytes);
        (void)run.cluster.sim.persistent().flip_bit(path, stored.part_offset + at, static_cast<unsigned>(run.draw(8))).ok();
        const Status status = run.cluster.check_committed(key);
        if (status.code() != Code::corrupt) return run.fail("a flipped bit was not found: " + part.file + ": " + status.to_string());
        const auto names = [&](const StoredPiece& piece) {
            const bool hit = stored.codec != 0 || (at >= piece.at && at < piece.at + piece.length);
            return hit && status.text().find("rank " + std::to_string(piece.rank)) != std::string::npos;
        };
        const bool named = status.text().find(part.file) != std::string::npos && std::any_of(stored.pieces.begin(), stored.pieces.end(), names);
        if (!named) return run.fail("a flipped bit was found, and not where it is: " + part.file + ", at " + std::to_string(stored.part_offset + at) + ": " + status.to_string());
        check_damage_named(run, **newest, part.file, stored, at);
        std::set<Rank> hit;
        for (const StoredPiece& piece : stored.pieces)
            if (stored.codec != 0 || (at >= piece.at && at < piece.at + piece.length)) hit.insert(piece.rank);
        return check_damage_together(run, key, part.file, hit);
    }
}

}  // namespace cairn::testing
