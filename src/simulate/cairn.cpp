// Cairn in the simulated cluster: a daemon a node over the production engine, ranks that capture as the client library does.
//
// What is left out of a daemon's life is what costs no time in a flush: its door and its start from scratch. A job's roster is handed to all daemons
// at once.
//
// A restart is of new processes that read what persistent holds (restart.hpp); the daemons of before have nothing to do in it.
#include <cstring>

#include "catalog/catalog.hpp"
#include "copies/scratch.hpp"
#include "engine/router/node.hpp"
#include "format/image.hpp"
#include "format/names.hpp"
#include "format/roster.hpp"
#include "storage/targets.hpp"
#include "simulate/machine.hpp"
#include "simulate/restart.hpp"

namespace cairn::simulate {

namespace {

constexpr std::uint64_t looks_apart = 1024;  // events, at a version that nobody begins to publish

Slice word(std::uint64_t value) {
    Bytes bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return Slice::of(std::move(bytes));
}

struct Host {
    sim::SimNode* node = nullptr;
    sim::Process* client = nullptr;
    std::unique_ptr<Node> daemon;
    std::unique_ptr<Gate> ranks;  // captures under way
    std::uint64_t written_bytes = 0;  // so far, when the version under way began
};

class Run {
  public:
    Run(const Cluster& cluster, const Question& question, sim::Simulation& sim) : cluster_(cluster), question_(question), sim_(sim) {}
    ~Run();
    Status start();
    Result<VersionOutcome> version(Version version);
    Result<double> restart(Version version);  // seconds

  private:
    FlushSettings settings() const;
    Nanos limit() const { return sim::span_of(question_.limit_s); }
    void make_roster();
    Status claim();
    Status put_roster();
    Task<void> capture(std::uint32_t node, Rank rank, Version version);
    Task<Status> capture_image(std::uint32_t node, Rank rank, Version version);
    ImageHeader header_of(Rank rank, Version version) const;
    void forget(Version version);
    void observe(const char* what, const std::string& detail);
    void take_leaders(VersionOutcome& outcome);

    const Cluster& cluster_;
    const Question& question_;
    sim::Simulation& sim_;
    const Layout layout_{"/persistent"};
    std::shared_ptr<Roster> roster_ = std::make_shared<Roster>();
    std::vector<Host> hosts_;
    // of the version under way
    Nanos begun_ = 0, sealed_ = 0, first_part_ = 0, published_ = 0;
    std::uint32_t captured_ = 0;
    double capture_sum_s_ = 0;
    Status failed_;
    std::vector<std::vector<std::string>> slots_;  // of each node
};

Run::~Run() {  // processes die first, then their memory goes
    sim_.set_observer(nullptr);
    for (Host& host : hosts_) {
        const std::vector<sim::Process*> alive = host.node->processes();
        for (sim::Process* process : alive) process->kill();
        host.ranks.reset();
        host.daemon.reset();
    }
}

// Deadlines are for what hangs; here nothing does, and what is slow shall be waited for.
FlushSettings Run::settings() const {
    FlushSettings settings = cluster_.flush;
    settings.io_wait = settings.target_wait = limit();  // slow storage is what is asked about, and none that fails
    settings.version_wait = limit();
    const bool is_chosen = cluster_.codec == Cluster::Codec::automatic;
    if (cluster_.codec == Cluster::Codec::fast) settings.codec = Codec::planes;
    if (is_chosen) settings.codecs = {Codec::planes}, settings.codecs_soon = durable_soon;
    settings.encode_buffers = settings.encode_at == EncodeAt::follower ? 2 : 0;  // as a daemon has
    return settings;
}

Status Run::start() {
    const std::uint32_t count = cluster_.nodes + cluster_.io_nodes;
    auto targets = std::make_shared<PlacementTargets>(PlacementTargets{"sim", {}, std::string(sim::target_mark)});
    for (std::uint32_t target = 0; target < cluster_.targets; ++target) targets->names.push_back(std::to_string(target));
    if (cluster_.spans != 0) {
        targets->by = targets->driver;
        targets->before_target.clear();
        targets->spans = true;
    }
    for (std::uint32_t node = 0; node < count; ++node) {
        Host host;
        host.node = &sim_.add_node();
        sim::Process& process = host.node->start_process("cairnd");
        host.client = &host.node->start_process("ranks");
        host.daemon = std::make_unique<Node>(process.world(), layout_, settings());
        if (node >= cluster_.nodes) host.daemon->serve_as_io_node(node_text(node));
        if (cluster_.stripes == 1 && cluster_.placeable) host.daemon->set_targets(targets);  // a striped file is the file system's to place
        host.ranks = std::make_unique<Gate>(host.client->world().clock);
        const ScratchLayout scratch = ScratchLayout::of("/scratch", 0, node_text(node), layout_.persistent);
        for (const std::string& directory : {scratch.root, scratch.images()}) TRY(host.node->scratch().make_directory(directory, node));
        roster_->members.push_back({node_text(node), process.address(), {}});
        hosts_.push_back(std::move(host));
    }
    slots_.resize(count);
    make_roster();
    TRY(claim());
    if (cluster_.io_nodes > 0) TRY(put_roster());
    for (std::uint32_t node = 0; node < count; ++node) TRY(hosts_[node].daemon->join(roster_, node));
    sim_.set_observer([this](sim::Process&, const char* what, const std::string& detail) { observe(what, detail); });
    return {};
}

void Run::make_roster() {
    sim::Prng prng(question_.seed);
    roster_->name = "simulated";
    roster_->incarnation = {prng.next(), prng.next() | 1};
    roster_->secret = {prng.next(), prng.next() | 1};
    roster_->ranks = static_cast<std::uint32_t>(cluster_.ranks());
    roster_->files = cluster_.files;
    Rank rank = 0;
    for (std::uint32_t node = 0; node < cluster_.nodes; ++node)
        for (std::uint32_t i = 0; i < cluster_.ranks_per_node; ++i) roster_->members[node].ranks.push_back(rank++);
}

Status Run::claim() {
    Result<std::uint64_t> epoch(Status(Code::deadline, "not claimed"));
    OpenRecord record;
    record.incarnation = roster_->incarnation;
    record.ranks = roster_->ranks;
    record.host = "simulated";
    record.pid = 1;
    const auto task = [](World w, Layout l, std::string name, OpenRecord r, Nanos span, Result<std::uint64_t>* out) -> Task<void> {
        Result<std::uint64_t> claimed = co_await claim_epoch(w, l, name, r, 0, w.clock.in(span));
        *out = std::move(claimed);
    };
    if (!sim_.run(task(hosts_[0].client->world(), layout_, roster_->name, record, limit(), &epoch), limit()))
        return not_over("opening the job", sim_.now());
    TRY(epoch.status());
    roster_->epoch = *epoch;
    return {};
}

// I/O nodes look for it now and then, and forget a job that has none.
Status Run::put_roster() {
    std::optional<Status> done;
    const auto task = [](World w, Layout l, Id128 incarnation, Bytes bytes, Nanos span, std::optional<Status>* out) -> Task<void> {
        const Nanos deadline = w.clock.in(span);
        Status made = co_await make_directories(w.storage, l.persistent, l.job(incarnation), deadline);
        *out = made;
        if (!made.ok()) co_return;
        OpenOptions create;
        create.mode = OpenMode::create;
        Result<FilePtr> file = co_await w.storage.open(l.job_roster(incarnation), create, deadline);
        *out = file.status();
        if (!file.ok()) co_return;
        FilePtr opened = *file;
        Slice data = Slice::of(std::move(bytes));
        Status written = co_await write_all(w.storage, opened, 0, std::move(data), deadline);
        *out = std::move(written);
    };
    sim_.run(task(hosts_[0].client->world(), layout_, roster_->incarnation, encode_roster(*roster_), limit(), &done), limit());
    return done ? *done : not_over("opening the job", sim_.now());
}

// What daemons do tells where one phase ends and the next begins.
void Run::observe(const char* what, const std::string& detail) {
    if (first_part_ == 0 && std::strcmp(what, "create") == 0 && detail.find("/part-") != std::string::npos) first_part_ = sim_.now();
    else if (std::strcmp(what, "publish") == 0 && detail.find("/manifest") != std::string::npos) published_ = sim_.now();
}

ImageHeader Run::header_of(Rank rank, Version version) const {
    ImageHeader header;
    header.key = {roster_->name, version, roster_->incarnation};
    header.epoch = roster_->epoch;
    header.rank = rank;
    header.ranks = roster_->ranks;
    header.block_bytes = cluster_.block_bytes;
    header.image.rank = rank;
    header.image.bytes = image_bytes_of(cluster_, question_.seed, rank, static_cast<std::uint32_t>(version));
    Region region;
    region.name = "state";
    region.length = header.image.bytes;
    region.shape = {header.image.bytes};
    header.image.regions.push_back(std::move(region));
    const ImageLayout slot = image_layout(encode_image_header(header).size(), header.image, header.block_bytes);
    header.checksums_offset = slot.checksums_offset;
    header.data_offset = slot.data_offset;
    return header;
}

// As read_image does, operation by operation, but that what is read stays described: to make the bytes that stand behind a header, which nobody looks at, was a fifth of
// all instructions.
Task<Result<LocalImage>> find_image(World& world, std::string path, ImageHeader header, Nanos deadline) {
    constexpr std::uint64_t front_bytes = image_header_offset + (64u << 10);
    OpenOptions options;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    if (!file.ok()) co_return std::move(file).status();
    Result<std::uint64_t> size = co_await world.storage.file_bytes(*file, deadline);
    if (!size.ok()) co_return std::move(size).status();
    FilePtr opened = *file;
    const Slice front{std::make_shared<sim::SimBuffer>(std::make_shared<sim::Content>(), front_bytes), 0, std::min(*size, front_bytes)};
    CO_TRY(co_await read_all(world.storage, opened, 0, front, deadline));
    Result<BufferPtr> mapped = co_await world.storage.map(path, false, deadline);
    if (!mapped.ok()) co_return std::move(mapped).status();
    LocalImage image;
    image.path = path;
    image.data = {std::move(mapped).value(), header.data_offset, header.image.bytes};
    image.header = std::move(header);
    co_return image;
}

Task<Status> Run::capture_image(std::uint32_t node, Rank rank, Version version) {
    Host& host = hosts_[node];
    World world = host.client->world();
    const Nanos deadline = world.clock.in(limit()), begun = world.clock.now();
    const ImageHeader header = header_of(rank, version);
    const ImageLayout slot = image_layout(encode_image_header(header).size(), header.image, header.block_bytes);
    const std::string path = ScratchLayout::of("/scratch", 0, node_text(node), layout_.persistent).images() + "/" +
                             slot_file_name(SlotKind::image, version * roster_->ranks + rank);
    OpenOptions create;
    create.mode = OpenMode::create;
    Result<FilePtr> file = co_await world.storage.open(path, create, deadline);
    if (!file.ok()) co_return std::move(file).status();
    slots_[node].push_back(path);
    CO_TRY_ASSIGN(const FilePtr opened, std::move(file));
    CO_TRY(co_await world.storage.resize(opened, slot.file_bytes, deadline));
    Slice encoded = Slice::of(encode_image_header(header));
    CO_TRY(co_await write_all(world.storage, opened, image_header_offset, std::move(encoded), deadline));
    Slice data = sim::describe(content_seed(question_, version, rank), header.image.bytes);
    CO_TRY(co_await write_all(world.storage, opened, header.data_offset, std::move(data), deadline));
    const Nanos copied = begun + sim::span_of(static_cast<double>(header.image.bytes) / cluster_.memory_bytes_per_s);
    if (copied > world.clock.now()) co_await world.clock.sleep_until(copied);
    Slice sealed = word(image_sealed_word);
    CO_TRY(co_await write_all(world.storage, opened, image_state_offset, std::move(sealed), deadline));
    Result<LocalImage> image = co_await find_image(world, path, header, deadline);
    if (!image.ok()) co_return std::move(image).status();
    LocalImage found = std::move(image).value();
    co_return host.daemon->add_image(std::move(found));
}

Task<void> Run::capture(std::uint32_t node, Rank rank, Version version) {
    Status status = co_await capture_image(node, rank, version);
    if (!status.ok() && failed_.ok()) failed_ = std::move(status);
    capture_sum_s_ += static_cast<double>(sim_.now() - begun_) / second;
    ++captured_;
    sealed_ = sim_.now();
}

Result<VersionOutcome> Run::version(Version version) {
    VersionOutcome outcome;
    begun_ = sim_.now();
    first_part_ = published_ = 0;
    captured_ = 0;
    capture_sum_s_ = 0;
    for (Host& host : hosts_) host.written_bytes = host.daemon->counters().written_bytes;
    for (std::uint32_t node = 0; node < cluster_.nodes; ++node)
        for (const Rank rank : roster_->members[node].ranks) {
            outcome.bytes += image_bytes_of(cluster_, question_.seed, rank, static_cast<std::uint32_t>(version));
            hosts_[node].ranks->spawn(capture(node, rank, version));
        }
    const VersionKey key{roster_->name, version, roster_->incarnation};
    const Node& coordinator = *hosts_[0].daemon;
    std::uint64_t looks = 0;
    const auto over = [&] {
        if (published_ == 0 && failed_.ok() && ++looks % looks_apart != 0) return false;  // asked after every event, and only a publication makes it true in a good run
        const VersionState state = coordinator.state(key);
        return state.final || !state.failure.ok() || !failed_.ok();
    };
    Status ran = run_until(sim_, question_, outcome.bytes * version, "flushing version " + std::to_string(version), over);
    TRY(failed_);
    const VersionState state = coordinator.state(key);
    if (state.failure.ok()) TRY(std::move(ran));
    if (state.level != Level::committed) return state.failure.ok() ? Status(Code::internal, "the version was not committed") : state.failure;
    const Nanos committed = sim_.now();
    const auto seconds = [](Nanos from, Nanos to) { return static_cast<double>(to - from) / second; };
    outcome.capture_s = seconds(begun_, sealed_);
    outcome.capture_mean_s = capture_sum_s_ / captured_;
    outcome.elect_s = seconds(sealed_, first_part_);
    outcome.write_s = seconds(first_part_, published_);
    outcome.commit_s = seconds(published_, committed);
    take_leaders(outcome);
    forget(version);
    return outcome;
}

Result<double> Run::restart(Version version) {
    std::vector<sim::SimNode*> nodes;
    for (std::uint32_t node = 0; node < cluster_.nodes; ++node) nodes.push_back(hosts_[node].node);
    const VersionKey key{roster_->name, version, roster_->incarnation};
    return restart_s(cluster_, question_, sim_, {layout_, key, std::move(nodes)});
}

void Run::take_leaders(VersionOutcome& outcome) {
    for (std::uint32_t node = 0; node < hosts_.size(); ++node) {
        const NodeCounters& counters = hosts_[node].daemon->counters();
        if (counters.written_bytes == hosts_[node].written_bytes) continue;  // did not lead; what the counters say is of an earlier version
        LeaderOutcome leader;
        leader.node = node;
        leader.seconds = counters.last_flush_s;
        leader.bytes = counters.last_flush_bytes;
        for (const WriterTimes& writer : counters.writers) leader.writers.push_back({writer.received_s, writer.local_s, writer.received_bytes, writer.local_bytes});
        outcome.leaders.push_back(std::move(leader));
    }
}

// What a version took in scratch is free again, when all nodes have heard of its commit.
void Run::forget(Version version) {
    const VersionKey key{roster_->name, version, roster_->incarnation};
    sim_.run_until(sim_.now() + static_cast<Nanos>(100 * cluster_.network_latency_us * microsecond) + second);
    for (std::uint32_t node = 0; node < cluster_.nodes; ++node) {
        Node& daemon = *hosts_[node].daemon;
        for (const Rank rank : roster_->members[node].ranks) (void)daemon.drop_image(key, rank).ok();
        for (const std::string& slot : slots_[node]) (void)hosts_[node].node->scratch().lose(slot).ok();
        slots_[node].clear();
    }
}

}  // namespace

Status run_cairn(const Cluster& cluster, const Question& question, sim::Simulation& sim, Outcome& outcome) {
    Run run(cluster, question, sim);
    TRY(run.start());
    for (Version version = 1; version <= cluster.versions; ++version) {
        const Nanos begun = sim.now();
        TRY_ASSIGN(VersionOutcome one, run.version(version));
        outcome.versions.push_back(std::move(one));
        const Nanos next = std::min(begun + sim::span_of(cluster.compute_s), sim::span_of(question.limit_s));
        if (version < cluster.versions && next > sim.now()) sim.run_until(next);
    }
    take_targets(*sim.machine(), outcome);
    if (cluster.restart != 0) {
        TRY_ASSIGN(outcome.restart_s, run.restart(cluster.versions));
    }
    return {};
}

}  // namespace cairn::simulate
