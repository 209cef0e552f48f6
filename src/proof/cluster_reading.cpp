// The simulated cluster's readers: what a restarting job finds, and whether the bytes that its ranks get are those that were captured. They read with the functions
// of `read`, as ranks do; what is expected comes from the cluster alone.
#include <algorithm>

#include "catalog/manifest_lookup.hpp"
#include "proof/cluster.hpp"

namespace cairn::testing {

namespace {

// What a rank was given of its image.
class Received {
  public:
    Received(std::uint64_t seed, std::uint64_t bytes, bool has_slot) : seed_(seed), bytes_(bytes), from_parts_(!has_slot) {}

    // Each region by itself, as the application has them. Called again for the parts, where scratch was damaged: that begins anew.
    Result<HandOut> aim(const ImageInfo& image) {
        got_.clear();
        landed_.clear();
        is_wrong_ = false;
        from_parts_ |= std::exchange(is_aimed_, true);
        if (image.bytes != bytes_) return Status(Code::internal, "the image of rank " + std::to_string(image.rank) + " has another size than was captured");
        HandOut out;
        for (const Region& region : image.regions) {
            const std::uint64_t from = region.offset;
            // Some are read straight into memory of theirs, others are given what was verified.
            const bool has_memory = region.length != 0 && sim::mix(seed_ ^ from ^ 0x6d656d) % 2 == 0;
            Slice memory;
            if (has_memory) memory = landed_.emplace_back(Landed{from, memory_of(region.length)}).memory;
            out.add(image.rank, {from, region.length}, "region " + region.name, [this, from, memory](std::uint64_t at, const Slice& data) { return take(from, at, data, memory); }, memory);
        }
        return out;
    }

    // Of parts nobody sees a byte that is wrong, whatever comes after it. What was read of a slot counts when all was read.
    Status check(const Status& fetched) {
        if (is_wrong_ && (fetched.ok() || from_parts_)) return {Code::internal, "other bytes than were captured"};
        if (!fetched.ok()) return fetched;
        for (const Landed& each : landed_) {
            if (!sim::content_equal(each.memory, sim::describe(seed_, each.memory.length, each.offset))) return {Code::internal, "other bytes than were captured, in memory"};
            got_.push_back({each.offset, each.memory.length});
        }
        const auto is_before = [](const ImageRange& a, const ImageRange& b) { return a.offset < b.offset; };
        std::sort(got_.begin(), got_.end(), is_before);
        std::uint64_t end = 0;
        for (const ImageRange& each : got_) {
            if (each.offset != end) return {Code::internal, "bytes are missing before " + std::to_string(each.offset) + ", or came twice"};
            end += each.length;
        }
        return end == bytes_ ? Status() : Status(Code::internal, "bytes are missing at the end");
    }

  private:
    struct Landed {
        std::uint64_t offset = 0;
        Slice memory;
    };

    static Slice memory_of(std::uint64_t bytes) {
        auto content = std::make_shared<sim::Content>();
        content->resize(bytes);
        return Slice::whole(std::make_shared<sim::SimBuffer>(std::move(content), bytes, std::make_shared<std::uint64_t>(0)));
    }

    // `region`: where it begins. `memory`: its own, if it has any.
    Status take(std::uint64_t region, std::uint64_t at, const Slice& data, const Slice& memory) {
        is_wrong_ |= !sim::content_equal(data, sim::describe(seed_, data.length, region + at));
        if (memory.buffer) sim::put(memory.part(at, data.length), sim::runs_of(data));
        else got_.push_back({region + at, data.length});
        return {};
    }

    std::uint64_t seed_, bytes_;
    bool from_parts_;
    bool is_aimed_ = false, is_wrong_ = false;
    std::vector<ImageRange> got_;
    std::vector<Landed> landed_;
};

}  // namespace

Task<Result<RestorableSeries>> Cluster::look(World world, std::vector<SealedVersion> sealed) const {
    const std::string name = roster.name;
    const Id128 nobody;
    const Nanos deadline = world.clock.in(io_span);
    Result<RestorableSeries> found = co_await load_restorable(world, layout, name, std::move(sealed), nobody, deadline);
    co_return found;
}

Task<Fetched> Cluster::fetch(World world, ImagePlaces places, VersionKey content) const {
    Received received(content_seed(options, content, places.rank), options.image_bytes(places.rank, content.version), !places.slot_path.empty());
    const Aim aim = [&received](const ImageInfo& image) { return received.aim(image); };
    const Nanos deadline = world.clock.in(options.restore.io_wait + io_span);  // a slot that hangs takes a wait of its own
    const std::string whose = "rank " + std::to_string(places.rank);
    Fetched fetched = co_await fetch_image(world, layout, std::move(places), aim, options.restore, deadline);
    fetched.status = received.check(fetched.status);
    if (fetched.status.code() == Code::internal) fetched.status = fetched.status.within(whose);
    co_return fetched;
}

Fetched Cluster::fetch_now(NodeIndex on, ImagePlaces places, VersionKey content, Nanos limit) {
    Fetched fetched{deadline_passed("restoring"), false, {}};
    const auto task = [](const Cluster* cluster, World world, ImagePlaces its, VersionKey whose, Fetched* out) -> Task<void> {
        Fetched got = co_await cluster->fetch(world, std::move(its), std::move(whose));
        *out = std::move(got);
    };
    sim::Process& process = hosts[on].node->start_process("reader");
    (void)sim.run(task(this, process.world(), std::move(places), std::move(content), &fetched), sim.now() + limit);
    process.kill();
    return fetched;
}

void Cluster::share(NodeIndex on, std::vector<ImagePlaces>& places) const {
    SharedPlace place{scratch(on).shared(), "series", std::to_string(++shares_), {}, 0, options.share};
    for (const ImagePlaces& each : places)
        if (each.slot_path.empty()) place.ranks.push_back(each.rank);
    if (place.ranks.size() < 2) return;
    for (ImagePlaces& each : places) {
        place.self = each.rank;
        if (each.slot_path.empty()) each.shared = place;
    }
}

std::vector<Fetched> Cluster::fetch_together(NodeIndex on, std::vector<ImagePlaces> places, VersionKey content, std::optional<Killed> killed, Nanos limit) {
    share(on, places);
    return fetch_as_told(on, places, std::move(content), killed, limit);
}

std::vector<Fetched> Cluster::fetch_as_told(NodeIndex on, const std::vector<ImagePlaces>& places, VersionKey content, std::optional<Killed> killed, Nanos limit) {
    std::vector<Fetched> fetched(places.size(), Fetched{deadline_passed("restoring"), false, {}});
    const auto task = [](const Cluster* cluster, World world, ImagePlaces its, VersionKey whose, Fetched* out) -> Task<void> {
        Fetched got = co_await cluster->fetch(world, std::move(its), std::move(whose));
        *out = std::move(got);
    };
    std::vector<sim::Process*> processes;
    std::vector<Task<void>> tasks;
    for (std::size_t i = 0; i < places.size(); ++i) {
        processes.push_back(&hosts[on].node->start_process("rank"));
        tasks.push_back(task(this, processes.back()->world(), places[i], content, &fetched[i]));
        tasks.back().start();
    }
    const auto is_over = [&] {
        for (std::size_t i = 0; i < tasks.size(); ++i)
            if (processes[i]->alive() && !tasks[i].done()) return false;
        return true;
    };
    const Nanos until = sim.now() + limit;
    if (killed) {
        (void)sim.run_until(is_over, sim.now() + killed->after);
        processes[killed->at]->kill();
    }
    (void)sim.run_until(is_over, until);
    for (sim::Process* process : processes) process->kill();
    return fetched;
}

Task<Status> Cluster::restore(World world, VersionKey key, VersionKey content) const {
    Result<Manifest> manifest = co_await read_manifest(world, layout, key, world.clock.in(io_span));
    if (!manifest.ok()) co_return std::move(manifest).status();
    if (manifest->abandoned) co_return not_found("given up");
    if (manifest->parts.size() != files(content.incarnation)) co_return Status(Code::internal, "not K parts");
    for (Rank rank = 0; rank < ranks(); ++rank) {
        const ImagePlaces places{key, rank, "", true};
        const Fetched fetched = co_await fetch(world, places, content);
        if (!fetched.status.ok()) co_return fetched.status;
    }
    co_return Status();
}

Status Cluster::check_committed(VersionKey key, VersionKey content, std::optional<NodeIndex> on, Nanos limit) {
    sim::Process& process = hosts[on.value_or(reader())].node->start_process("reader");
    Status result = deadline_passed("reading back");
    const auto check = [](const Cluster* cluster, World world, VersionKey version, VersionKey its, Status* out) -> Task<void> {
        Status status = co_await cluster->restore(world, std::move(version), std::move(its));
        *out = std::move(status);
    };
    (void)sim.run(check(this, process.world(), std::move(key), std::move(content), &result), sim.now() + limit);
    process.kill();
    return result;
}

Result<RestorableSeries> Cluster::look_now(Nanos limit) {
    sim::Process& process = hosts[reader()].node->start_process("reader");
    Result<RestorableSeries> found(deadline_passed("listing"));
    const auto find = [](const Cluster* cluster, World world, Result<RestorableSeries>* out) -> Task<void> {
        Result<RestorableSeries> looked = co_await cluster->look(world, {});
        *out = std::move(looked);
    };
    (void)sim.run(find(this, process.world(), &found), sim.now() + limit);
    process.kill();
    return found;
}

Result<Manifest> Cluster::manifest_now(VersionKey key, Nanos limit) {
    sim::Process& process = hosts[reader()].node->start_process("reader");
    Result<Manifest> manifest(deadline_passed("reading a manifest"));
    const auto read = [](Layout l, World world, VersionKey version, Result<Manifest>* out) -> Task<void> {
        Result<Manifest> got = co_await read_manifest(world, std::move(l), std::move(version), world.clock.in(io_span));
        *out = std::move(got);
    };
    (void)sim.run(read(layout, process.world(), std::move(key), &manifest), sim.now() + limit);
    process.kill();
    return manifest;
}

Result<std::optional<Manifest>> Cluster::newest_committed(Nanos limit) {
    TRY_ASSIGN(const RestorableSeries found, look_now(limit));
    std::optional<VersionKey> newest;
    for (const RestorableVersion& each : found.versions)
        if (each.committed) newest = each.key;
    if (!newest) return std::optional<Manifest>();
    TRY_ASSIGN(Manifest manifest, manifest_now(*newest, limit));
    return std::optional<Manifest>(std::move(manifest));
}

}  // namespace cairn::testing
