// The simulated cluster's ranks: they write slots as the client library does (client/capture.cpp), new ones or such as an earlier image has left.
#include <algorithm>
#include <cstring>

#include "format/names.hpp"
#include "format/safetensors.hpp"
#include "model/checksum_units.hpp"
#include "proof/cluster.hpp"

namespace cairn::testing {

namespace {
Slice word(std::uint64_t value) {
    Bytes bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return Slice::of(std::move(bytes));
}

// Side by side, and every other one tiny: of so many, or of one, all bytes of an image.
std::vector<Region> regions_of(std::uint64_t bytes, std::uint32_t count, std::uint64_t seed) {
    std::vector<Region> regions;
    for (std::uint64_t at = 0, i = 0; at < bytes; ++i) {
        const std::uint64_t most = i % 2 == 1 ? 100 : 2 * bytes / std::max(count, 1u);
        const std::uint64_t length = i + 1 >= count ? bytes - at : std::min(bytes - at, 1 + sim::mix(seed + i) % (most + 1));
        Region region;
        region.name = count <= 1 ? "state" : "state-" + std::to_string(i);
        region.offset = at;
        region.length = length;
        region.shape = {length};
        regions.push_back(std::move(region));
        at += length;
    }
    return regions;
}

}  // namespace

// Only while no earlier daemon lives that may be writing there: it would hold the lock of this scratch.
void Cluster::free_slot(Host& host, const std::string& path) {
    if (!host.formers.empty()) return (void)host.node->scratch().remove(path, host.node->id()).ok();
    const Result<sim::InodePtr> slot = host.node->scratch().find(path);
    if (!slot.ok()) return;
    for (const std::uint64_t offset : {image_state_offset, image_checksummed_offset}) {
        const Slice nothing = word(0);
        host.node->scratch().write(**slot, offset, sim::runs_of(nothing), host.node->id());
    }
    host.free_slots.push_back(path);
}

// Invalid while it is written. A file never shrinks: others may have it mapped.
Task<Result<FilePtr>> Cluster::open_slot(World world, Host& host, NodeIndex node, std::uint64_t bytes, Nanos deadline) {
    OpenOptions opening;
    const bool again = !host.free_slots.empty();
    opening.mode = again ? OpenMode::write : OpenMode::create;
    std::string path;
    if (again) {
        path = host.free_slots.back();
        host.free_slots.pop_back();
        ++host.slots_reused;
    } else {
        path = scratch(node).images() + "/" + slot_file_name(SlotKind::image, host.next_slot++);
    }
    Result<FilePtr> file = co_await world.storage.open(path, opening, deadline);
    if (!file.ok()) co_return std::move(file).status();
    Result<std::uint64_t> had = co_await world.storage.file_bytes(*file, deadline);
    if (!had.ok()) co_return std::move(had).status();
    if (*had < bytes) {
        Status sized = co_await world.storage.resize(*file, bytes, deadline);
        if (!sized.ok()) co_return sized;
    }
    co_return file;
}

// A slot whose image nobody took, also when its rank is killed.
struct Cluster::GiveBack {
    Cluster* cluster;
    Host* host;
    std::string path;
    bool armed;
    bool hangs = false;  // a write may come late, and a file that nobody opens any more is all that it reaches then
    ~GiveBack() {
        if (armed && hangs) (void)host->node->scratch().remove(path, host->node->id()).ok();
        else if (armed) cluster->free_slot(*host, path);
    }
};

// What its daemon was told of an image that is being filled. It hears when the rank is done, or is killed.
struct Cluster::Filling {
    Host* host;
    VersionKey key;
    Rank rank;
    ~Filling() {
        if (host->daemon) host->daemon->leave_image(key, rank);
    }
};

ImageHeader Cluster::header_of(Rank rank, Version version) const {
    ImageHeader header;
    header.key = key(version);
    header.epoch = roster.epoch;
    header.parent = roster.parent;
    header.rank = rank;
    header.ranks = roster.ranks;
    header.block_bytes = options.block_bytes;
    header.image.rank = rank;
    header.image.bytes = options.image_bytes(rank, version);
    header.image.regions = regions_of(header.image.bytes, options.regions, sim::mix(version) ^ rank);
    if (options.regions > 0) header.cuts = cuts_of(header.image.regions, header.image.bytes, header.block_bytes);
    header.image.cuts = header.cuts.size();
    if (options.layout == FileLayout::tensors) header.image.naming_bytes = tensors_naming_bytes(header.image.regions);
    return header;
}

bool Cluster::has_unslotted(Version version) const {
    bool any = false;
    for (Rank rank = 0; rank < ranks(); ++rank) any |= options.once(rank, version) || options.asked(rank, version);
    return any;
}

// A daemon that starts answers nobody before it knows what scratch holds.
Task<Status> Cluster::wait_for_boot(World world, const Host& host) {
    const Nanos deadline = world.clock.in(io_span);
    while (host.daemon && !host.booted) {
        if (world.clock.now() >= deadline) co_return deadline_passed("the daemon did not boot");
        co_await world.clock.sleep(millisecond);
    }
    co_return host.daemon ? Status() : unavailable("no daemon");
}

// As a rank does that asks for a slot: its daemon knows the job. What it says is a hint only, and it fills its image for a while.
Task<void> Cluster::begin(World world, ImageHeader header) {
    const NodeIndex node = node_of(header.rank);
    const std::optional<std::uint64_t> bytes = options.begins(header.rank, header.key.version, header.image.bytes);
    if (!bytes || !hosts[node].booted) co_return;
    co_await introduce(world, node);
    if (!hosts[node].daemon) co_return;
    hosts[node].daemon->begin_image(header.key, {header.rank, *bytes, header.block_bytes});
    co_await world.clock.sleep(static_cast<Nanos>(sim::mix(header.key.version ^ header.rank << 8 ^ options.seed) % 50) * millisecond);
}

// From the rank's memory to its daemon.
Task<Status> Cluster::capture_unslotted(sim::Process& client, ImageHeader header, std::uint64_t seed, std::optional<GivingWay> way) {
    const NodeIndex node = node_of(header.rank);
    Host& host = hosts[node];
    World world = client.world();
    Status there = co_await wait_for_boot(world, host);
    if (!there.ok()) co_return there;
    co_await introduce(world, node);
    const Filling filling{&host, header.key, header.rank};
    co_await begin(world, header);
    if (!host.daemon) co_return unavailable("no daemon");
    LocalImage image;
    image.path = "memory " + std::to_string(host.next_slot++) + " of rank " + std::to_string(header.rank);
    image.data = {nullptr, 0, header.image.bytes};
    std::shared_ptr<Giving> state;
    if (way) {
        state = std::make_shared<Giving>();
        image.readable = Readable::asked;
        image.source = std::make_shared<GivingRank>(host.process->world(), sim::describe(seed, header.image.bytes), *way, state, ranks_may_be_late);
    } else {
        image.readable = Readable::once;
        image.data = sim::describe_once(seed, header.image.bytes);
    }
    image.header = std::move(header);
    const std::pair whose(image.header.key, image.header.rank);
    sealing[whose.first].insert(whose.second);
    const Status added = host.daemon->add_image(std::move(image));
    if (added.ok() && state) giving[whose] = state;  // one that is refused is not what the version waits for
    co_return added;
}

Task<Status> Cluster::capture(sim::Process& client, Rank rank, Version version, std::uint64_t twist) {
    const NodeIndex node = node_of(rank);
    Host& host = hosts[node];
    World world = client.world();
    const Nanos deadline = world.clock.in(io_span);
    ImageHeader header = header_of(rank, version);
    const std::uint64_t seed = content_seed(options, key(version), rank) ^ twist;
    std::optional<GivingWay> way = options.asked(rank, version);
    if (way || options.once(rank, version)) {
        Status captured = co_await capture_unslotted(client, std::move(header), seed, way);
        co_return captured;
    }
    const ImageLayout slot = image_layout(encode_image_header(header).size(), header.image, header.block_bytes);
    header.checksums_offset = slot.checksums_offset;
    header.data_offset = slot.data_offset;
    Result<FilePtr> file = co_await open_slot(world, host, node, slot.file_bytes, deadline);
    if (!file.ok()) co_return std::move(file).status();
    CO_TRY_ASSIGN(const FilePtr opened, std::move(file));
    const std::string path = opened->path();
    GiveBack give_back{this, &host, path, twist != 0, false};
    const Filling filling{&host, header.key, rank};
    co_await begin(world, header);
    Slice data = sim::describe(seed, header.image.bytes);
    Status status = co_await write_all(world.storage, opened, header.data_offset, data, deadline);
    give_back.hangs = status.code() == Code::deadline;
    if (!status.ok()) co_return status;
    Slice cuts = Slice::of(image_table(header, {}));
    status = co_await write_all(world.storage, opened, header.checksums_offset + 8 * image_units(header), cuts, deadline);
    give_back.hangs = status.code() == Code::deadline;
    if (!status.ok()) co_return status;
    Slice encoded = Slice::of(as_left(encode_image_header(header)));
    status = co_await write_all(world.storage, opened, image_header_offset, encoded, deadline);
    give_back.hangs = status.code() == Code::deadline;
    if (!status.ok()) co_return status;
    Slice sealed = word(image_sealed_word);
    sealing[header.key].insert(rank);
    status = co_await write_all(world.storage, opened, image_state_offset, sealed, deadline);
    give_back.hangs = status.code() == Code::deadline;
    if (!status.ok()) co_return status;
    // From here on the image is sealed, whatever becomes of this process.
    Status there = co_await wait_for_boot(world, host);
    if (!there.ok()) co_return there.code() == Code::unavailable ? Status() : there;
    co_await introduce(world, node);
    Result<std::optional<LocalImage>> image = co_await read_image(world, path, deadline);
    if (!image.ok()) co_return std::move(image).status();
    if (!image->has_value() || !host.daemon) co_return Status();
    LocalImage found = std::move(**image);
    Status added = host.daemon->add_image(std::move(found));
    give_back.armed &= !added.ok();
    if (added.code() == Code::unavailable) co_return Status();  // it is stopping: the next one finds the image
    co_return added;
}

Status Cluster::capture_all(Version version, Nanos limit) {
    std::vector<Status> statuses(ranks(), Status(Code::deadline, "not captured"));
    std::vector<sim::Process*> clients;
    {
        std::vector<Task<void>> tasks;
        const auto one = [](Cluster* c, sim::Process* p, Rank r, Version v, Status* out) -> Task<void> {
            Status status = co_await c->capture(*p, r, v);
            *out = std::move(status);
        };
        for (Rank rank = 0; rank < ranks(); ++rank) {
            Host& host = hosts[node_of(rank)];
            if (!host.node->alive()) continue;
            sim::Process& client = host.node->start_process("rank" + std::to_string(rank));
            clients.push_back(&client);
            tasks.push_back(one(this, &client, rank, version, &statuses[rank]));
            tasks.back().start();
        }
        sim.run_until([&] { return std::all_of(tasks.begin(), tasks.end(), [](const Task<void>& t) { return t.done(); }); }, sim.now() + limit);
        for (sim::Process* client : clients) client->kill();
    }
    for (const Status& status : statuses) TRY(status);
    return {};
}

}  // namespace cairn::testing
