#include "tune/bench.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "base/units.hpp"
#include "catalog/catalog.hpp"
#include "format/image.hpp"
#include "storage/placer.hpp"
#include "world/real/memory.hpp"

namespace cairn::tune {

namespace {

constexpr std::uint64_t grain_bytes = 4096;
constexpr Nanos look = 50 * millisecond;         // how often a run asks whether it should stop
constexpr Nanos letting_go_wait = 5 * second;    // for what the daemons still do with images after the commit
constexpr Nanos clearing_wait = 10 * second;     // files that are still being closed keep a directory on some file systems
constexpr std::uint64_t piece_bytes = 4 << 20;
const std::string series = "tune";

// Bytes that no file system can compress or find twice.
void fill(std::byte* data, std::uint64_t bytes, std::uint64_t seed) {
    std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
    for (std::uint64_t at = 0; at + 8 <= bytes; at += 8) {
        std::uint64_t z = (state += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        z ^= z >> 31;
        std::memcpy(data + at, &z, 8);
    }
}

// The table of checksums has its room behind the data, for the smallest blocks: one layout for all variants.
struct SlotLayout {
    explicit SlotLayout(std::uint64_t bytes)
        : data_offset(2 * grain_bytes), checksums_offset(data_offset + round_up(bytes, grain_bytes)),
          file_bytes(round_up(checksums_offset + div_up(bytes, grain_bytes) * 8, grain_bytes)) {}
    std::uint64_t data_offset, checksums_offset, file_bytes;
};

struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

Status write_whole(int fd, const std::string& path, std::uint64_t offset, ByteView bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return Status::from_errno(wrote < 0 ? errno : EIO, "writing " + path);
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
        offset += static_cast<std::uint64_t>(wrote);
    }
    return {};
}

Task<void> nap(Loop& loop) { co_await loop.sleep(look); }

}  // namespace

// The daemons of one run, each with what it needs, and the job that they have in common.
struct Bench::Cluster {
    const Variant& variant;
    Layout layout;
    VersionKey key;
    Roster roster;
    WarmStorage storage;
    std::vector<std::unique_ptr<MemoryNetwork>> networks;
    std::vector<std::unique_ptr<Node>> nodes;  // last: use all of the above

    Node& leader() { return *nodes.at(coordinator_of(roster)); }  // its data are local, and it is the only one that writes
    Cluster(const Variant& v, Layout l, WarmStorage s) : variant(v), layout(std::move(l)), storage(std::move(s)) {}
};

Result<std::unique_ptr<Bench>> Bench::create(BenchOptions options) {
    std::unique_ptr<Bench> bench(new Bench(std::move(options)));
    TRY_ASSIGN(bench->loop_, Loop::create());
    StorageOptions storage;
    storage.local = bench->options_.scratch;
    storage.placer = make_placer();
    storage.backend = IoBackend::threads;
    TRY_ASSIGN(bench->threads_, RealStorage::create(*bench->loop_, storage));
    storage.backend = IoBackend::uring;
    Result<std::unique_ptr<RealStorage>> uring = RealStorage::create(*bench->loop_, storage);
    if (uring.ok()) bench->uring_ = std::move(uring).value();
    else bench->uring_reason_ = uring.status().text();
    bench->cpu_ = std::make_unique<RealCpu>(*bench->loop_, bench->options_.cpu_threads);
    bench->switch_ = std::make_unique<MemorySwitch>(*bench->loop_);
    bench->stock_ = std::make_shared<BufferStock>(bench->options_.memory_bytes_max);
    return bench;
}

Bench::~Bench() { remove_locals(); }

std::vector<std::uint64_t> image_sizes(std::uint32_t files_local, std::uint64_t seed, std::uint64_t file_bytes) {
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> sizes;
    for (std::uint32_t i = 0; i < files_local; ++i) {
        const double share = 0.8 + 0.4 * static_cast<double>(random() >> 11) / static_cast<double>(1ull << 53);
        sizes.push_back(std::max(grain_bytes, static_cast<std::uint64_t>(static_cast<double>(file_bytes) * share) / grain_bytes * grain_bytes));
    }
    return sizes;
}

std::uint64_t Bench::local_bytes(std::uint64_t file_bytes) const {
    const std::vector<std::uint64_t> all = image_sizes(options_.files_local, options_.seed, file_bytes);
    return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

void Bench::remove_locals() {
    for (const Local& local : locals_) ::unlink(local.path.c_str());
    locals_.clear();
}

Status Bench::make_local(std::size_t number, std::uint64_t bytes, Nanos until) {
    const SlotLayout layout(bytes);
    locals_.push_back({options_.scratch + "/local-" + std::to_string(number), bytes, nullptr});
    const std::string& path = locals_.back().path;
    const Descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    if (file.fd < 0) return Status::from_errno(errno, "creating " + path);
    // Before it is mapped: a full tmpfs would end the process.
    if (const int error = ::posix_fallocate(file.fd, 0, static_cast<off_t>(layout.file_bytes)); error != 0)
        return Status::from_errno(error, "allocating " + format_bytes(layout.file_bytes) + " for " + path);
    Bytes piece(std::min(piece_bytes, bytes));
    for (std::uint64_t at = 0; at < bytes; at += piece.size()) {
        if (options_.stop()) return Status(Code::cancelled, "stopped while local files were made");
        if (loop_->now() >= until)
            return deadline_passed("the time was over before the local files were made in scratch: ask for less (--size, --local-files), or for more "
                                   "time (--budget)");
        fill(piece.data(), piece.size(), options_.seed + (number + 1) * 1'000'003 + at);
        TRY(write_whole(file.fd, path, layout.data_offset + at, ByteView(piece).first(std::min<std::uint64_t>(piece.size(), bytes - at))));
    }
    return {};
}

Task<Status> Bench::map_locals() {
    for (Local& local : locals_) {
        Result<BufferPtr> map = co_await threads_->map(local.path, false, loop_->in(options_.flush.io_wait));
        if (!map.ok()) co_return std::move(map).status();
        local.map = std::move(map).value();
    }
    co_return Status();
}

Status Bench::prepare(std::uint64_t file_bytes, Nanos until) {
    remove_locals();
    received_.reset();
    received_checksums_.clear();
    file_bytes_ = file_bytes;
    const std::vector<std::uint64_t> all = image_sizes(options_.files_local, options_.seed, file_bytes);
    for (std::size_t i = 0; i < all.size(); ++i) TRY(make_local(i, all[i], until));
    TRY(loop_->run(map_locals()));
    TRY_ASSIGN(received_, allocate_memory(*std::max_element(all.begin(), all.end())));
    fill(received_->data(), received_->size(), options_.seed);
    return {};
}

const std::vector<std::uint64_t>& Bench::received_checksums(std::uint64_t bytes, std::uint64_t block_bytes) {
    std::vector<std::uint64_t>& made = received_checksums_[{bytes, block_bytes}];
    if (made.empty()) made = loop_->run(cpu_->checksums({received_, 0, bytes}, block_bytes));
    return made;
}

namespace {

LocalImage image_of(const VersionKey& key, Rank rank, std::uint32_t ranks, std::uint64_t bytes, std::uint64_t block_bytes) {
    const SlotLayout layout(bytes);
    LocalImage image;
    image.header = {key, 1, {}, rank, ranks, block_bytes, layout.data_offset, layout.checksums_offset, false, {rank, bytes, {}, 0}, {}};
    image.header.image.regions.push_back({"data", RegionKind::memory, DataType::bytes, {bytes}, 0, bytes});
    return image;
}

}  // namespace

Result<Measured> Bench::run(const Variant& variant, std::uint32_t followers) {
    RealStorage* const storage = variant.uring ? uring_.get() : threads_.get();
    if (!storage) return Status(Code::unsupported, uring_reason_);
    const Nanos began = loop_->now();
    const std::string directory = options_.target + "/run-" + std::to_string(++runs_);
    if (::mkdir(directory.c_str(), 0700) != 0) return Status::from_errno(errno, "making the directory " + directory);
    Result<Measured> measured = Status(Code::internal, "not measured");
    {
        Cluster cluster(variant, {directory}, WarmStorage(*storage, stock_));
        FlushSettings settings = options_.flush;
        settings.writers = variant.writers;
        settings.placement = variant.placement;
        settings.local_split = variant.local_split;
        settings.buffer_bytes = variant.buffer_bytes;
        settings.direct = variant.direct;
        settings.leaders = 1;
        settings.attempts_max = 1;
        const auto each = static_cast<std::uint32_t>(locals_.size());
        cluster.key = {series, 1, random_.id()};
        cluster.roster = {series, cluster.key.incarnation, random_.id(), 1, {}, each * (1 + followers), variant.files, {}};
        for (NodeIndex node = 0; node <= followers; ++node) {
            cluster.networks.push_back(std::make_unique<MemoryNetwork>(*switch_));
            Member member{"n" + std::to_string(node), cluster.networks.back()->self(), {}};
            for (std::uint32_t i = 0; i < each; ++i) member.ranks.push_back(node * each + i);
            cluster.roster.members.push_back(std::move(member));
        }
        for (const auto& network : cluster.networks)
            cluster.nodes.push_back(std::make_unique<Node>(World{*loop_, cluster.storage, *network, random_, *cpu_}, cluster.layout, settings));
        cluster.leader().set_targets(std::make_shared<const PlacementTargets>(targets_));
        for (const Local& local : locals_) received_checksums(local.bytes, variant.block_bytes);  // now: they cost nothing later
        measured = loop_->run(flush(cluster));
    }
    const Status cleared = clear(directory);
    if (measured.ok() && !cleared.ok()) return cleared;
    if (measured.ok()) measured->wall_s = static_cast<double>(loop_->now() - began) / second;
    return measured;
}

Task<Result<Measured>> Bench::flush(Cluster& cluster) {
    const auto each = static_cast<std::uint32_t>(locals_.size());
    const std::uint32_t ranks = cluster.roster.ranks;
    Measured measured;
    OpenRecord record;  // nothing is committed for a job that is not on record
    record.incarnation = cluster.key.incarnation;
    record.ranks = ranks;
    World world{*loop_, cluster.storage, *cluster.networks.at(coordinator_of(cluster.roster)), random_, *cpu_};
    Result<std::uint64_t> epoch = co_await claim_epoch(world, cluster.layout, cluster.key.name, record, 0, loop_->in(options_.flush.io_wait));
    if (!epoch.ok()) co_return std::move(epoch).status();
    cluster.roster.epoch = *epoch;
    const auto roster = std::make_shared<const Roster>(cluster.roster);
    for (NodeIndex node = 0; node < cluster.nodes.size(); ++node) CO_TRY(cluster.nodes[node]->join(roster, node));
    for (NodeIndex node = static_cast<NodeIndex>(cluster.nodes.size()); node-- > 0;)  // the leader last: then it waits for nobody
        for (std::uint32_t i = 0; i < each; ++i) {
            const Local& local = locals_[i];
            LocalImage image = image_of(cluster.key, node * each + i, ranks, local.bytes, cluster.variant.block_bytes);
            if (node == coordinator_of(*roster)) {
                image.path = local.path;
                image.data = {local.map, SlotLayout(local.bytes).data_offset, local.bytes};
                measured.local_bytes += local.bytes;
            } else {
                image.path = "memory";
                image.data = {received_, 0, local.bytes};
                image.checksums = received_checksums_.at({local.bytes, cluster.variant.block_bytes});
                measured.received_bytes += local.bytes;
            }
            CO_TRY(cluster.nodes[node]->add_image(std::move(image)));
        }
    Node& leader = cluster.leader();
    for (;;) {
        const VersionState state = leader.state(cluster.key);
        if (state.level == Level::committed) break;
        if (!state.failure.ok()) co_return state.failure;
        if (options_.stop()) co_return Status(Code::cancelled, "stopped in the middle of a run");
        co_await leader.changed().wait(loop_->in(look));
    }
    measured.write_s = leader.counters().last_write_s;
    measured.durable_s = leader.counters().last_flush_s;
    if (leader.counters().last_flush_bytes != measured.local_bytes + measured.received_bytes)
        co_return Status(Code::internal, "the leader wrote " + std::to_string(leader.counters().last_flush_bytes) + " bytes, not all of the version");
    co_await let_go(cluster);
    co_return measured;
}

// Checksums of local images are kept in scratch after the flush, as always; then nobody uses the files any more.
Task<void> Bench::let_go(Cluster& cluster) {
    const Nanos deadline = loop_->in(letting_go_wait);
    for (std::uint32_t i = 0; i < locals_.size(); ++i)
        while (!cluster.leader().drop_image(cluster.key, i).ok() && loop_->now() < deadline) co_await loop_->sleep(millisecond);
}

Status Bench::clear(const std::string& directory) {
    const Nanos deadline = loop_->in(clearing_wait);
    std::error_code error;
    for (;;) {
        std::filesystem::remove_all(directory, error);
        if (!error) return {};
        if (loop_->now() >= deadline) return Status::from_errno(error.value(), "removing " + directory);
        loop_->run(nap(*loop_));
    }
}

}  // namespace cairn::tune
