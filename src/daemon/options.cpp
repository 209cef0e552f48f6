#include "daemon/options.hpp"

#include <limits.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/log.hpp"
#include "base/units.hpp"
#include "daemon/memory.hpp"
#include "format/names.hpp"
#include "storage/placer.hpp"
#include "world/real/cpu.hpp"

namespace cairn {

namespace {

constexpr double tmpfs_share = 0.9;
constexpr std::uint64_t spare_memory_share = 32;  // of the node's memory: with less than this part left, slots that were made ahead are given back

Nanos from_ms(std::uint64_t ms) { return static_cast<Nanos>(ms) * millisecond; }

void compress(FlushSettings& flush, Settings::Compression by) {
    switch (by) {
        case Settings::Compression::off: break;
        case Settings::Compression::fast: flush.codec = Codec::planes; break;
        case Settings::Compression::small: flush.codec = Codec::planes_small; break;
        case Settings::Compression::automatic: flush.codecs = {Codec::planes, Codec::planes_small}, flush.codecs_soon = durable_soon; break;
        case Settings::Compression::zero_runs: flush.codec = Codec::zero_runs; break;
        case Settings::Compression::delta_shuffle_zstd: flush.codec = Codec::numbers; break;
    }
}

// With capture.mode = through all buffers together, and those of copies/once.hpp, are well below the 64 MiB that a node may have beside two images.
void bound_through(FlushSettings& flush, std::uint64_t block_bytes) {
    constexpr std::uint64_t piece_bytes = 4 << 20;
    constexpr std::uint32_t pieces = 4;
    flush.buffer_bytes = std::min(flush.buffer_bytes, std::max(block_bytes, piece_bytes / block_bytes * block_bytes));
    flush.buffers = std::min(flush.buffers, pieces);
}

FlushSettings flush_settings(const Settings& settings) {
    FlushSettings flush;
    flush.writers = settings.flush.writers;
    flush.buffer_bytes = settings.flush.buffer_bytes;
    flush.buffers = settings.flush.buffers;
    if (settings.capture.mode == Settings::CaptureMode::through) bound_through(flush, settings.flush.block_bytes);
    flush.leaders = settings.flush.leaders;
    flush.slots = settings.flush.slots;
    flush.placement = static_cast<Placement>(settings.flush.placement);  // the same names in the same order
    compress(flush, settings.flush.codec);
    flush.encode_at = static_cast<EncodeAt>(settings.flush.encode_at);
    flush.full_every = static_cast<std::uint32_t>(settings.flush.full_every);
    flush.encode_buffers = flush.encode_at == EncodeAt::follower || flush.full_every > 1 ? 2 : 0;
    flush.merge_ranks = settings.flush.merge_ranks;
    flush.merge_bytes = settings.flush.merge_bytes;
    flush.equal_pages = settings.flush.equal_pages;
    flush.local_split = static_cast<LocalSplit>(settings.flush.local_split);
    flush.direct = settings.flush.direct;
    flush.attempts_max = settings.flush.attempts_max;
    flush.io_wait = from_ms(settings.deadlines.io_ms);
    flush.target_wait = from_ms(settings.deadlines.target_ms);
    flush.heartbeat = from_ms(settings.network.heartbeat_ms);
    flush.peer_wait = from_ms(settings.network.peer_timeout_ms);
    flush.version_wait = from_ms(settings.deadlines.version_ms);
    return flush;
}
static_assert(static_cast<int>(Placement::append) == static_cast<int>(Settings::Placement::append) &&
              static_cast<int>(Placement::interleaved) == static_cast<int>(Settings::Placement::interleaved) &&
              static_cast<int>(Placement::contiguous) == static_cast<int>(Settings::Placement::contiguous) &&
              static_cast<int>(FileLayout::ranks) == static_cast<int>(Settings::Layout::file_per_rank) &&
              static_cast<int>(FileLayout::nodes) == static_cast<int>(Settings::Layout::file_per_node) &&
              static_cast<int>(FileLayout::tensors) == static_cast<int>(Settings::Layout::safetensors) &&
              static_cast<int>(EncodeAt::leader) == static_cast<int>(Settings::EncodeAt::leader) &&
              static_cast<int>(EncodeAt::follower) == static_cast<int>(Settings::EncodeAt::follower) &&
              static_cast<int>(LocalSplit::chunks) == static_cast<int>(Settings::LocalSplit::chunks) &&
              static_cast<int>(LocalSplit::files) == static_cast<int>(Settings::LocalSplit::files));

YieldSettings yield_settings(const Settings& settings) {
    YieldSettings yielding;
    yielding.caps.in_bytes_s = yielding.caps.out_bytes_s = static_cast<double>(settings.background.network_bytes_per_s);
    yielding.caps.memory_bytes_s = static_cast<double>(settings.background.memory_bytes_per_s);
    yielding.caps.cores = settings.background.cores;
    yielding.share_busy = settings.background.network_share_busy;
    yielding.busy_bytes_s = settings.background.busy_bytes_per_s;
    yielding.quiet = from_ms(settings.background.quiet_ms);
    yielding.link = settings.background.link;
    return yielding;
}
// The first one, where it follows need.
CpuClass cpu_class_of(Settings::BackgroundCpu wanted) {
    switch (wanted) {
        case Settings::BackgroundCpu::low: return CpuClass::low;
        case Settings::BackgroundCpu::normal: return CpuClass::normal;
        case Settings::BackgroundCpu::need:
        case Settings::BackgroundCpu::idle: break;
    }
    return CpuClass::idle;
}
static_assert(static_cast<int>(IoClass::idle) == static_cast<int>(Settings::BackgroundIo::idle) &&
              static_cast<int>(IoClass::normal) == static_cast<int>(Settings::BackgroundIo::normal));

// As settings are made absolute: client and daemon must call one directory by one name, it is part of the socket's
// path.
std::string absolute(const std::string& path) {
    std::error_code error;
    return absolute_path(std::filesystem::current_path(error).string(), path);
}

}  // namespace

std::string default_node_name() {
    if (const char* name = std::getenv("CAIRN_NODE"); name && *name) return name;
    char host[HOST_NAME_MAX + 1] = {};
    ::gethostname(host, HOST_NAME_MAX);
    const std::string name(host);
    return name.substr(0, name.find('.'));
}

Result<DaemonOptions> daemon_options(const Settings& settings, const DaemonPlace& place) {
    DaemonOptions options;
    options.node = place.node.empty() ? default_node_name() : place.node;
    options.io_node = place.io_node;
    const Status named = check_name(options.node);
    if (!named.ok()) return named.within("the node's name (--node, CAIRN_NODE, or the host's name)");
    options.scratch_directory = absolute(place.scratch.empty() ? settings.paths.scratch : place.scratch);
    options.persistent.persistent =
        absolute(place.persistent.empty() ? settings.paths.persistent : place.persistent);
    options.persistent.roots = roots_besides(options.persistent.persistent, storage_directories(settings));
    options.scratch =
        ScratchLayout::of(options.scratch_directory, ::geteuid(), options.node, options.persistent.persistent);
    options.flush = flush_settings(settings);
    options.slots.bytes_max = settings.capture.scratch_bytes;
    options.slots.bytes_max_from = "setting capture.scratch_bytes";
    options.slots.replace_oldest = settings.capture.when_full == Settings::WhenFull::replace_oldest;
    options.slots.keep_last = settings.retention.scratch_last;
    options.slots.keep_every = settings.retention.scratch_every;
    options.slots.allocate_wait = options.flush.io_wait;
    options.fabric.provider = settings.network.provider;
    options.fabric.interface = settings.network.interface;
    options.fabric.rates_mbps = parse_rates(settings.network.rates).value_or({});  // checked when they were loaded
    options.world.storage.local = options.scratch.root;
    options.world.storage.placer = make_placer();
    options.world.storage.backend = static_cast<IoBackend>(settings.flush.io);
    options.world.cpu_threads = settings.daemon.cpu_threads;
    options.world.cpu_class.cpu = cpu_class_of(settings.background.cpu);
    options.world.cpu_class.io = static_cast<IoClass>(settings.background.io);
    options.world.storage.thread_class = options.world.cpu_class;
    options.yielding = yield_settings(settings);
    options.stepping.follows_need = settings.background.cpu == Settings::BackgroundCpu::need;
    options.stepping.first = options.world.cpu_class.cpu;
    options.stepping.io = options.world.cpu_class.io;
    options.stepping.commit_within = settings.background.commit_within;
    options.idle = static_cast<Nanos>(settings.daemon.idle_s) * second;
    options.stop_wait = from_ms(settings.daemon.stop_wait_ms);
    options.start_wait_ms = settings.daemon.start_wait_ms;
    options.log_file = settings.daemon.log_file.empty() ? options.scratch.log() : settings.daemon.log_file;
    options.log_level = settings.daemon.log_level;
    options.persistent_rule = {settings.retention.persistent_last, settings.retention.persistent_every};
    options.free_at_end = settings.retention.free_at_end;
    options.targets_driver = settings.placement.driver;
    TRY_ASSIGN(options.targets, parse_list(settings.placement.targets));
    options.trace_file = settings.trace.file;
    TRY_ASSIGN(options.file_rules, load_file_rules(settings.describe.rules));
    options.names = static_cast<NameRule>(settings.describe.names);
    return options;
}
static_assert(static_cast<int>(NameRule::groups) == static_cast<int>(Settings::Names::groups) && static_cast<int>(NameRule::all) == static_cast<int>(Settings::Names::all) &&
              static_cast<int>(NameRule::exact) == static_cast<int>(Settings::Names::exact));
static_assert(static_cast<int>(IoBackend::automatic) == static_cast<int>(Settings::Io::automatic) &&
              static_cast<int>(IoBackend::uring) == static_cast<int>(Settings::Io::uring) &&
              static_cast<int>(IoBackend::threads) == static_cast<int>(Settings::Io::threads));

namespace {

std::uint64_t workspace_bytes_of(const FlushSettings& flush) {
    std::uint64_t most = workspace_bytes(flush.codec);
    for (const Codec codec : flush.codecs) most = std::max(most, workspace_bytes(codec));
    return most;
}

// What codecs work in comes out of the ring's memory.
void make_room_for_codecs(DaemonOptions& options) {
    FlushSettings& flush = options.flush;
    const unsigned threads = options.world.cpu_threads != 0 ? options.world.cpu_threads : RealCpu::default_threads();
    const std::uint64_t each = workspace_bytes_of(flush);
    const RingUse use = divide_ring({flush.buffers, flush.buffer_bytes}, each, threads, flush.encode_buffers);
    if (use.threads < threads) {
        options.world.cpu_threads = use.threads;
        log_info("fewer-threads", {{"threads", use.threads}, {"wanted", threads}, {"why", "each that encodes takes " + format_bytes(each) + " of flush.buffers x flush.buffer_bytes, and all of them half at most"}});
    }
    flush.buffers = use.buffers;
    flush.encode_buffers = use.encode_buffers;
}

void fit_ring_and_slots(DaemonOptions& options, const Settings& settings) {
    const Result<std::uint64_t> memory = node_memory_bytes();
    if (!memory.ok()) {
        log_warning("memory-unknown", {{"error", memory.status()}});
        return;
    }
    struct statfs about = {};
    const auto share = static_cast<std::uint64_t>(static_cast<double>(*memory) * tmpfs_share);
    const bool in_memory =
        ::statfs(options.scratch.images().c_str(), &about) == 0 && about.f_type == TMPFS_MAGIC;
    if (in_memory && (options.slots.bytes_max == 0 || options.slots.bytes_max > share)) {
        options.slots.bytes_max = share;
        options.slots.bytes_max_from = "nine tenths of this node's memory";
    }
    if (in_memory) options.slots.spare_memory_bytes = *memory / spare_memory_share;
    const Ring wanted{options.flush.buffers, options.flush.buffer_bytes};
    const Ring fitting = fit_ring(wanted, settings.flush.block_bytes, *memory, settings.flush.memory_share);
    if (fitting == wanted) return;
    options.flush.buffers = fitting.buffers;
    options.flush.buffer_bytes = fitting.buffer_bytes;
    log_warning("buffers-reduced", {{"memory", format_bytes(*memory)},
                                    {"flush.memory_share", settings.flush.memory_share},
                                    {"buffers", fitting.buffers},
                                    {"buffer_bytes", format_bytes(fitting.buffer_bytes)},
                                    {"buffers_wanted", wanted.buffers},
                                    {"buffer_bytes_wanted", format_bytes(wanted.buffer_bytes)}});
}

}  // namespace

void fit_memory(DaemonOptions& options, const Settings& settings) {
    fit_ring_and_slots(options, settings);
    make_room_for_codecs(options);
}

}  // namespace cairn
