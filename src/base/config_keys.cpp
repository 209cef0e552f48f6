// Config: the table of keys, and what a single key knows of itself (its names, what it allows, how it is read and
// written).
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/config.hpp"
#include "base/units.hpp"

namespace cairn {

namespace {

using S = Settings;

// Settings::*group, then group::*member, as the common form and back. The caller of set() has checked range and type.
template <auto group, auto member>
struct Access {
    using Type = std::remove_cvref_t<decltype((std::declval<S&>().*group).*member)>;

    static ConfigValue get(const S& settings) {
        const Type& value = (settings.*group).*member;
        if constexpr (std::is_same_v<Type, bool> || std::is_same_v<Type, double> || std::is_same_v<Type, std::string>)
            return value;
        else
            return static_cast<std::uint64_t>(value);
    }
    static void set(S& settings, const ConfigValue& value) {
        if constexpr (std::is_same_v<Type, bool> || std::is_same_v<Type, double> || std::is_same_v<Type, std::string>)
            (settings.*group).*member = std::get<Type>(value);
        else
            (settings.*group).*member = static_cast<Type>(std::get<std::uint64_t>(value));
    }
};

template <auto group, auto member>
constexpr ConfigKey key(std::string_view section, std::string_view name, ConfigKind kind, double low, double high,
                        std::string_view doc) {
    using A = Access<group, member>;
    return {section, name, kind, low, high, {}, false, false, &A::get, &A::set, doc};
}
constexpr ConfigKey power_of_two(ConfigKey row) {
    row.power_of_two = true;
    return row;
}
constexpr ConfigKey may_be_empty(ConfigKey row) {
    row.may_be_empty = true;
    return row;
}
constexpr ConfigKey one_of(ConfigKey row, std::span<const std::string_view> choices) {
    row.choices = choices;
    return row;
}

constexpr double kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
constexpr double minute_ms = 60e3, day_ms = 86400e3, week_ms = 7 * day_ms;

// Each list in the order of its enum.
constexpr std::array<std::string_view, 6> codecs = {"off", "fast", "small", "auto", "zero-runs", "delta-shuffle-zstd"};
constexpr std::array<std::string_view, 4> layouts = {"aggregated", "file-per-rank", "file-per-node", "safetensors"};
constexpr std::array<std::string_view, 2> encoders = {"leader", "follower"};
constexpr std::array<std::string_view, 3> placements = {"append", "interleaved", "contiguous"};
constexpr std::array<std::string_view, 2> local_splits = {"chunks", "files"};
constexpr std::array<std::string_view, 3> io_ways = {"automatic", "uring", "threads"};
constexpr std::array<std::string_view, 7> targets_drivers = {"automatic", "none", "glusterfs", "lustre", "cephfs", "beegfs", "orangefs"};
constexpr std::array<std::string_view, 2> checksum_makers = {"daemon", "capture"};
constexpr std::array<std::string_view, 2> capture_modes = {"scratch", "through"};
constexpr std::array<std::string_view, 2> when_full = {"wait", "replace_oldest"};
constexpr std::array<std::string_view, 4> cpu_classes = {"need", "idle", "low", "normal"};
constexpr std::array<std::string_view, 2> io_classes = {"idle", "normal"};
constexpr std::array<std::string_view, 3> name_rules = {"groups", "all", "exact"};
constexpr std::array<std::string_view, 4> log_levels = {"error", "warning", "info", "debug"};

constexpr std::array sections = {
    ConfigSection{
        "paths",
        "Where images and checkpoints are kept. Relative paths start at the working directory of whoever reads them. "
        "Doubled and trailing slashes, `.` and `..` make no difference (`..` is taken by name, whatever is a symbolic "
        "link)."},
    ConfigSection{"flush", "How sealed images become K files."},
    ConfigSection{"storage", "Below which directories the files of a version lie."},
    ConfigSection{
        "placement",
        "Which storage target (a disk server of the file system) holds which file. Where targets can be chosen, the K "
        "files of a version are made and sized so that every target gets the same bytes. What was found, and why "
        "nothing was, is in the daemon's log."},
    ConfigSection{"capture", "What the application waits for."},
    ConfigSection{"retention",
                  "Which versions stay. A rule keeps the newest `last` versions (0: all of them) and, besides, each "
                  "version whose number is divisible by `every` (0: none). The newest committed version always stays."},
    ConfigSection{"network", "Between the daemons of a job."},
    ConfigSection{"background",
                  "How the daemon's work gives way to the application. No cap holds while every rank of a node waits for Cairn, in "
                  "`checkpoint` or `wait`: nobody is in the way then. Caps delay a flush and fail nothing: what would wait for longer than "
                  "half of `deadlines.io_ms` goes ahead."},
    ConfigSection{"daemon", "The node daemon, `cairnd`."},
    ConfigSection{"deadlines",
                  "How long anything may take before it is given up with an error. Nothing waits without a bound."},
    ConfigSection{"describe", "What is known of files, for codecs that predict numbers (`flush.codec` = fast, small or auto). Files come back byte for byte, whatever is said of them."},
    ConfigSection{"trace", "Timings, for people who look for lost time."},
};

// Columns: section, key, kind, lowest and highest value, what it does.
using K = ConfigKind;
// clang-format off
constexpr std::array table = {
    key<&S::paths, &S::Paths::scratch>("paths", "scratch", K::path, 0, 0,
        "Node-local directory for images: tmpfs or NVMe. Must not be shared between nodes."),
    key<&S::paths, &S::Paths::persistent>("paths", "persistent", K::path, 0, 0,
        "Directory for committed checkpoints, on storage that every node sees."),

    one_of(key<&S::flush, &S::Flush::layout>("flush", "layout", K::choice, 0, 3,
        "How the images of a version lie in files: together in as many as `files` says (aggregated); each rank's in a file of its own, or each node's; or in as many as "
        "`files` says, each of which is a safetensors file with the regions of whole ranks as its tensors. With file-per-rank and file-per-node each node writes what it "
        "holds, all of it on one storage target, and `files` must be 0. With safetensors nothing is encoded. Checksums, commit and tools are the same."), layouts),
    key<&S::flush, &S::Flush::files>("flush", "files", K::number, 0, 1 << 20,
        "Files a version becomes (K), at most the number of ranks. 0: as many as the job has nodes."),
    key<&S::flush, &S::Flush::leaders>("flush", "leaders", K::number, 0, 1 << 20,
        "Nodes that write; several may write one file. 0: chosen from what the last flushes reached: all that hold images at first, then fewer, as many for "
        "each file, while that loses nothing (with more files than 3/8 of the nodes, all). With another placement than append each file has one."),
    key<&S::flush, &S::Flush::slots>("flush", "slots", K::number, 0, 1024,
        "With a file for each rank or node: how many files a node writes at a time, one after the other, while as many more are made ready. 0: all at once."),
    key<&S::flush, &S::Flush::writers>("flush", "writers", K::number, 1, 256,
        "Concurrent writers on each leading node."),
    key<&S::flush, &S::Flush::buffer_bytes>("flush", "buffer_bytes", K::bytes, 64 * kib, 4 * gib,
        "Size of one buffer for received data; a multiple of block_bytes."),
    key<&S::flush, &S::Flush::buffers>("flush", "buffers", K::number, 1, 1024,
        "Buffers of a daemon. It never allocates more than this many, nor more than memory_share allows; what codecs work in (4 MiB for each of daemon.cpu_threads, 11 MiB with small or auto) and, with encode_at = follower or full_every above 1, two buffers for it come out of them."),
    power_of_two(key<&S::flush, &S::Flush::block_bytes>("flush", "block_bytes", K::bytes, 4 * kib, 64 * mib,
        "Aligned unit of data in the files. A checksum is of a block, or of less where a region begins or ends.")),
    one_of(key<&S::flush, &S::Flush::placement>("flush", "placement", K::choice, 0, 2,
        "Where concurrent writers put their chunks: at the end in order of arrival, in turns, or each in a "
        "run of its own."), placements),
    one_of(key<&S::flush, &S::Flush::local_split>("flush", "local_split", K::choice, 0, 1,
        "How the writers of a node share its own images: chunk by chunk, whoever is free; or whole images, dealt out to writers beforehand. "
        "`cairn tune` tells which is faster where."), local_splits),
    key<&S::flush, &S::Flush::direct>("flush", "direct", K::flag, 0, 0,
        "Write and read parts past the page cache where the file system can: half the CPU time, and the node's memory is left to the application."),
    one_of(key<&S::flush, &S::Flush::codec>("flush", "codec", K::choice, 0, 5,
        "How data are stored, where that makes a chunk a sixteenth shorter or more. off: as they are. fast: as arrays of numbers, of the types and shapes that regions were protected with or that files tell of themselves "
        "(`cairn describe`), each number predicted from its neighbours along the axes that tell something of it; what nothing describes is taken on a sample. That makes fields of simulations 1.5 to 3 times shorter, in "
        "some 2 s of processor time for a GB (`bench/results/codecs.txt`). small: the same, as short as it gets, in some 10 s for a GB. auto, the default: off, fast or small, version by version and variable by variable, whichever makes versions durable soonest; where storage takes more than a codec encodes, no core is idle, or versions are durable within a quarter of a second without one, that is off. The log says `codec` when it changes. Rank 0's node decides by what storage took and what encoding took in the "
        "versions before; the first one is stored as it is, and so are all where the nodes that write have no images of their own but small ones that share a pack, or where caps (`background`) hold versions back. zero-runs: without runs of zeros, and nothing else is looked at. delta-shuffle-zstd: as records of numbers whose width is found on a sample of each MiB, whatever is "
        "known of them. A codec costs the ring half of its buffers for received "
        "data, and a file that several nodes write a message for each run, as it does without a codec where a version has several files. Packs of images of less than 4 KiB each, and with another placement than append all data (only off and auto are allowed with it), are stored as they are."), codecs),
    one_of(key<&S::flush, &S::Flush::encode_at>("flush", "encode_at", K::choice, 0, 1,
        "Where data that one node writes for another are encoded, with a codec: leader: by the node that writes, so that the application's nodes lose no time to it; follower: by "
        "the node whose data they are, before they are sent, where the network is what lacks. That takes up to two buffers more on each such node. What it has no buffer or no time for is sent as it is, and encoded by "
        "the node that writes. Rank 0's node decides for a version; a node whose own setting is leader sends data as they are."), encoders),
    key<&S::flush, &S::Flush::full_every>("flush", "full_every", K::number, 1, 1000,
        "Of so many versions one is stored whole, and of the others what changed since that one, its base, wherever that is shorter; 1: all are whole. For codecs fast, small and auto. Data with a base are encoded by the node whose data they are, as with encode_at = follower. "
        "The base stays in scratch while there is room for it; without it a version is whole. Images of less than 512 KiB share runs, and are stored whole. Reading a version takes reading its base, too, and while versions depend on a base it is not removed. "
        "Rank 0's node decides; between its start and the first version that it commits, and after an attempt that failed, nothing has a base."),
    key<&S::flush, &S::Flush::merge_ranks>("flush", "merge_ranks", K::number, 0, 64,
        "How many images of one node share encoded runs, so that a codec sees what is alike in them side by side (the merge group of mcrEngine); 1: each image has runs of its own. 0: 16, or 1, version by version: now and then leaders encode some 2 MiB of several of their node's images both ways, and throw the result away; "
        "where two such trials in a row made them a tenth shorter, and by a hundredth of what they are raw, versions are merged, until two in a row make them less than a twentieth shorter. The first two or three versions of a daemon's life are not, nor those where no core is idle for a trial. It is apart from `files` and `leaders`. "
        "Each image gives merge_bytes by turns, and a run is of at most 4 MiB, or a buffer. A rank that restores alone reads and decodes the runs of its whole group; the ranks of a node together do so once. Images of less than 512 KiB are not merged: they share runs anyway. "
        "Nor are versions with a base (full_every), what a node encodes before it sends it (encode_at = follower), and data without a codec or with another placement than append. Rank 0's node decides. `docs/tune.md` tells mcrEngine's schemes by these settings, and `bench/results/codecs.txt` where it pays."),
    key<&S::flush, &S::Flush::merge_bytes>("flush", "merge_bytes", K::bytes, 4 * kib, 64 * mib,
        "With merge_ranks above 1, or 0: what each image gives to a run by turns, in whole blocks: where block_bytes is more than this, one block. So 32 KiB need a block_bytes of 32 KiB or less, and with blocks of 1 MiB no more than four images share a run. Where turns of all images do not fit into a run they are shorter, so 64 MiB means: "
        "each image once. Short turns take room in the files' footers, some 30 bytes each, and in the memory of the node that writes, some 120 bytes each until the version is committed."),
    key<&S::flush, &S::Flush::equal_pages>("flush", "equal_pages", K::flag, 0, 0,
        "Store what several images of one node have in common once, before any codec, wherever in the images it lies: for images of processes that share libraries or data page for page, such as the trees and files that `cairn watch` takes of them. What looks the same by its checksum is compared byte for byte, and each image keeps checksums of its own. Sought in blocks of block_bytes, "
        "or less where a region is cut; so pages are found with 4 KiB, for 8 bytes of checksum each; with 1 MiB hardly anything that does not begin at the same place. Stretches of 64 KiB and more, of images of 512 KiB and more that one node writes into one file itself (nothing of other nodes). A rank that restores alone may read up to 4 MiB for a piece, and its node's others with it once. "
        "It takes up to 25 MiB of memory while a version is written. Versions with a base (full_every), and the layouts file-per-rank and safetensors, share nothing; others are not merged (merge_ranks). Rank 0's node decides."),
    one_of(key<&S::flush, &S::Flush::io>("flush", "io", K::choice, 0, 2,
        "How files are written: io_uring, a pool of threads, or io_uring wherever the kernel has it."), io_ways),
    key<&S::flush, &S::Flush::memory_share>("flush", "memory_share", K::fraction, 0.001, 0.9,
        "Part of the node's memory that all buffers together may take."),
    key<&S::flush, &S::Flush::attempts_max>("flush", "attempts_max", K::number, 1, 100,
        "Attempts at one version, each with fresh files, before the flush is reported as failed."),
    key<&S::flush, &S::Flush::io_nodes>("flush", "io_nodes", K::text, 0, 0,
        "Dedicated I/O nodes (`cairn start --io-node`) that write for this job instead of the nodes of its ranks, as long as one of them answers: "
        "none; all that there are for this persistent directory when the job opens; or their names, with commas between. Rank 0's counts."),

    may_be_empty(key<&S::storage, &S::Storage::directories>("storage", "directories", K::text, 0, 0,
        "Directories for the files of versions, with commas between: each a target of its own, such as a mount of a file system, and all the same on all nodes. "
        "They must exist: one that is missing or can not be written gets no files, and where that is so of all of them an open fails. The files go round them with the same bytes for each; one that has no room for that gets none, and one that fails is left out for a while. Manifests, which are the commit, stay below `paths.persistent`, which can be "
        "named here to hold files, too. Empty: it holds all of them. Rank 0's counts, for the whole job.")),
    one_of(key<&S::placement, &S::Targets::driver>("placement", "driver", K::choice, 0, 6,
        "How targets are found and chosen. automatic: by the file system that `paths.persistent` lies on; none: the "
        "file system puts the files where it likes; else the file system is taken for the one that is named."), targets_drivers),
    may_be_empty(key<&S::placement, &S::Targets::targets>("placement", "targets", K::text, 0, 0,
        "Only these targets, in this order: their names, with commas between (`vol-client-0, vol-client-2`). Empty: "
        "all that are found. On CephFS data pools, and on OrangeFS servers (`tcp://io1:3334`): nobody but you can name these.")),

    one_of(key<&S::capture, &S::Capture::mode>("capture", "mode", K::choice, 0, 1,
        "scratch: a checkpoint copies its image to scratch and returns. through: there is no copy, for nodes without local storage. A checkpoint returns when the version "
        "is committed, or with an error; meanwhile the node's daemon fetches the image piece by piece, and fetches it again for another try. No rank may miss one. Rank 0's counts, for the whole job. Buffers "
        "of a daemon that is started with it are at most 4, of at most 4 MiB (or one block). Callback regions and `cairn watch` need scratch."), capture_modes),
    one_of(key<&S::capture, &S::Capture::checksums>("capture", "checksums", K::choice, 0, 1,
        "Who makes the checksums: the daemon in the background, or the capture pass while the application "
        "waits."), checksum_makers),
    key<&S::capture, &S::Capture::scratch_bytes>("capture", "scratch_bytes", K::bytes, 0, 1024 * 1024 * gib,
        "Most that the images of all checkpoints of this daemon may take in scratch; what a node captures needs room "
        "for two versions. 0: what the file system has (where it is tmpfs, nine tenths of the node's memory)."),
    one_of(key<&S::capture, &S::Capture::when_full>("capture", "when_full", K::choice, 0, 1,
        "When scratch has no room: wait for the flush, or give up the oldest version (only when a newer one "
        "is sealed everywhere)."), when_full),
    key<&S::capture, &S::Capture::wait_ms>("capture", "wait_ms", K::duration_ms, 0, week_ms,
        "Longest wait for room in scratch; with mode = through, for other ranks to come to the same checkpoint. Then the checkpoint fails with an error."),
    key<&S::capture, &S::Capture::ahead>("capture", "ahead", K::flag, 0, 0,
        "Room in scratch for the next checkpoint is made while the application computes: for the first one as soon as memory is protected, for the second after the first. "
        "Where there is room to spare only, and given back where memory gets short. false: a checkpoint makes what it needs, which for a fresh gigabyte takes several times the copy."),

    key<&S::retention, &S::Retention::scratch_last>("retention", "scratch_last", K::number, 0, 1e9,
        "Newest versions that stay in scratch; 0 keeps all."),
    key<&S::retention, &S::Retention::scratch_every>("retention", "scratch_every", K::number, 0, 1e9,
        "Besides, each version divisible by this stays in scratch; 0: none."),
    key<&S::retention, &S::Retention::free_at_end>("retention", "free_at_end", K::flag, 0, 0,
        "A daemon that ends by `cairn stop`, or for want of work, lets its images in scratch go when all of them are committed: the memory is somebody "
        "else's then. The next start reads persistent instead. false: they stay for it. They always stay after a signal, a crash, or with anything uncommitted."),
    key<&S::retention, &S::Retention::persistent_last>("retention", "persistent_last", K::number, 0, 1e9,
        "Newest committed versions that stay; 0 keeps all."),
    key<&S::retention, &S::Retention::persistent_every>("retention", "persistent_every", K::number, 0, 1e9,
        "Besides, each committed version divisible by this stays; 0: none."),

    key<&S::network, &S::Network::provider>("network", "provider", K::text, 0, 0,
        "libfabric provider: tcp everywhere; verbs, cxi, efa, opx where the machine has them."),
    may_be_empty(key<&S::network, &S::Network::interface>("network", "interface", K::text, 0, 0,
        "Local address or interface to bind to, and no other. Empty: with provider tcp the fastest card over which each other node is reached, of equally "
        "fast ones libfabric's choice; with another provider libfabric's choice.")),
    may_be_empty(key<&S::network, &S::Network::rates>("network", "rates", K::text, 0, 0,
        "Rates of network cards in Mb/s, as eth0=1000,ib0=100000, where the driver tells none or a wrong one (virtual cards; `cairn status` shows which). A card "
        "without a known rate counts as the slowest.")),
    key<&S::network, &S::Network::heartbeat_ms>("network", "heartbeat_ms", K::duration_ms, 10, minute_ms,
        "Daemons that work together say that often that they are alive, and ask again for what did not come."),
    key<&S::network, &S::Network::peer_timeout_ms>("network", "peer_timeout_ms", K::duration_ms, 100, 10 * minute_ms,
        "A daemon silent for so long is lost; more than twice heartbeat_ms."),

    one_of(key<&S::background, &S::Background::cpu>("background", "cpu", K::choice, 0, 3,
        "Class of the daemon's threads. need, the default: where a processor would idle (SCHED_IDLE), and higher for as long as a flush would miss "
        "commit_within that way: nice 19, 10, 5, and as the daemon was started. idle, low (nice 19) and normal (like any process) are the same all the time; "
        "the thread that answers others is never less than nice 19. Where the application leaves no processor idle, idle gets next to nothing."), cpu_classes),
    key<&S::background, &S::Background::commit_within>("background", "commit_within", K::fraction, 0.01, 1,
        "Part of the interval between checkpoints (the shortest of the last few; at the first checkpoint the time since the job opened) within which a version shall be "
        "committed, with cpu = need."),
    one_of(key<&S::background, &S::Background::io>("background", "io", K::choice, 0, 1,
        "Class of its reads and writes; for local disks whose scheduler knows classes."), io_classes),
    key<&S::background, &S::Background::cores>("background", "cores", K::fraction, 0, 1024,
        "CPU seconds a second that the daemon may take while it flushes, as 0.5. 0: no cap."),
    key<&S::background, &S::Background::network_bytes_per_s>("background", "network_bytes_per_s", K::bytes, 0, 1024 * gib,
        "Bytes a second that a node may receive, and that it may send (to leaders and to storage), for the flush. 0: no cap."),
    key<&S::background, &S::Background::memory_bytes_per_s>("background", "memory_bytes_per_s", K::bytes, 0, 1024 * gib,
        "Bytes a second that the daemon may move through memory; a byte that is received and written counts five times, one that is "
        "sent or written from here three times. 0: no cap. No cap of this section holds where no rank has a session open (on I/O nodes, after "
        "cairn_close) and while all ranks of the node wait for Cairn."),
    key<&S::background, &S::Background::network_share_busy>("background", "network_share_busy", K::fraction, 0.01, 1,
        "Part of the network card, and of memory_bytes_per_s, that the flush may take while the application communicates without pauses; where "
        "there are pauses it keeps to those. 1: it does not look."),
    key<&S::background, &S::Background::busy_bytes_per_s>("background", "busy_bytes_per_s", K::bytes, 1, 1024 * gib,
        "The application communicates when its ranks on this node receive or send so much a second, from one look to the next (25 to 250 ms)."),
    key<&S::background, &S::Background::quiet_ms>("background", "quiet_ms", K::duration_ms, 10, minute_ms,
        "It has ended communicating when it has been silent for so long."),
    may_be_empty(key<&S::background, &S::Background::link>("background", "link", K::path, 0, 0,
        "Directory of a card's byte counters, where ranks do not communicate by TCP: as "
        "/sys/class/infiniband/mlx5_0/ports/1/counters; what is not the daemon's is the application's then. Empty: the TCP connections "
        "of the ranks' processes.")),

    key<&S::daemon, &S::Daemon::idle_s>("daemon", "idle_s", K::duration_s, 1, week_ms / 1000,
        "The daemon ends when it has had no client and no work for so long. It forgets a job that has ended and that no process has had for so long."),
    key<&S::daemon, &S::Daemon::start_wait_ms>("daemon", "start_wait_ms", K::duration_ms, 100, 10 * minute_ms,
        "Longest wait of a client for its daemon to answer."),
    key<&S::daemon, &S::Daemon::stop_wait_ms>("daemon", "stop_wait_ms", K::duration_ms, 0, day_ms,
        "On SIGTERM the daemon finishes what it can within this time and says what it did not."),
    key<&S::daemon, &S::Daemon::restart>("daemon", "restart", K::flag, 0, 0,
        "A daemon in the background that is killed or crashes is started again by its keeper, a small process beside it: at once, then "
        "after 1, 2, 4 ... 60 s. false: by the next call of a client on its node. With --foreground that is for whoever started it."),
    key<&S::daemon, &S::Daemon::cpu_threads>("daemon", "cpu_threads", K::number, 0, 1024,
        "Threads for checksums. 0: chosen from the machine."),
    may_be_empty(key<&S::daemon, &S::Daemon::program>("daemon", "program", K::path, 0, 0,
        "The cairnd to start. Empty: the one beside the running program or library, then the one in $PATH.")),
    one_of(key<&S::daemon, &S::Daemon::log_level>("daemon", "log_level", K::choice, 0, 3,
        "What the daemon logs: this and all that is more urgent."), log_levels),
    may_be_empty(key<&S::daemon, &S::Daemon::log_file>("daemon", "log_file", K::path, 0, 0,
        "The daemon's log. Empty: beside its socket in scratch.")),

    key<&S::deadlines, &S::Deadlines::io_ms>("deadlines", "io_ms", K::duration_ms, 10, day_ms,
        "One read, write or fsync."),
    key<&S::deadlines, &S::Deadlines::target_ms>("deadlines", "target_ms", K::duration_ms, 10, day_ms,
        "The same of a part, where the flush can take another storage target for it (at most io_ms): a target that takes longer counts as failed, and what it has of the version is "
        "written again to another one. Syncs are waited for so only with flush.direct."),
    key<&S::deadlines, &S::Deadlines::version_ms>("deadlines", "version_ms", K::duration_ms, 100, week_ms,
        "From the first to the last rank that seals a version; then it is abandoned, naming the ranks."),
    key<&S::deadlines, &S::Deadlines::open_ms>("deadlines", "open_ms", K::duration_ms, 100, day_ms,
        "Opening a checkpoint, all ranks together."),
    key<&S::deadlines, &S::Deadlines::restore_ms>("deadlines", "restore_ms", K::duration_ms, 100, week_ms,
        "Restoring a version, all ranks together."),

    may_be_empty(key<&S::describe, &S::Describe::rules>("describe", "rules", K::path, 0, 0,
        "A file of rules for files that no format describes: which numbers lie in them, from where on and in which shape "
        "(`cairn describe --help`). A daemon reads it when it starts. Empty: no rules.")),
    one_of(key<&S::describe, &S::Describe::names>("describe", "names", K::choice, 0, 2,
        "Which arrays are taken for the same variable of several ranks, groups or files: those of one type and byte order whose names match, where each run of digits is one sign. groups: digits of the groups above a variable "
        "(`Grid00000037/Density` is alike to `Grid00000038/Density`, and `x1` is not to `x2`); all: those of the variable, too; exact: no digits, only the same name. Records of one variable (`u[17]`) are alike in all three. What is alike is encoded side by side where it is short, and "
        "has one effort of its codec. `cairn describe` shows the keys that it makes. A daemon reads it when it starts."), name_rules),

    may_be_empty(key<&S::trace, &S::Trace::file>("trace", "file", K::path, 0, 0,
        "Chrome trace JSON (opens in Perfetto); every process puts its name and number before the extension. "
        "Empty: no trace.")),
};
// clang-format on

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return out;
}

// Without an exponent and without trailing zeros: 0.25, 604800000.
std::string plain_number(double value) {
    std::array<char, 64> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed).ptr;
    return {buffer.data(), end};
}

std::uint64_t unit_ns(ConfigKind kind) { return kind == ConfigKind::duration_s ? 1'000'000'000 : 1'000'000; }

std::string alternatives(std::span<const std::string_view> choices) {
    std::string text;
    for (std::size_t i = 0; i < choices.size(); ++i) {
        if (i != 0) text += i + 1 == choices.size() ? " or " : ", ";
        text += choices[i];
    }
    return text;
}

Result<ConfigValue> parse_fraction(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        return invalid_argument("not a number");
    return ConfigValue(value);
}

Result<ConfigValue> parse_whole(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) return invalid_argument("too large");
    if (error != std::errc{} || end != text.data() + text.size()) return invalid_argument("not a whole number");
    return ConfigValue(value);
}

Result<ConfigValue> parse_time(std::string_view text, ConfigKind kind) {
    TRY_ASSIGN(const std::uint64_t value, parse_duration(text, unit_ns(kind)));
    if (value % unit_ns(kind) != 0)
        return invalid_argument(kind == ConfigKind::duration_s ? "not a whole number of seconds"
                                                               : "not a whole number of milliseconds");
    return ConfigValue(value / unit_ns(kind));
}

}  // namespace

std::span<const ConfigSection> config_sections() { return sections; }
std::span<const ConfigKey> config_keys() { return table; }

const ConfigKey* find_config_key(std::string_view full_name) {
    for (const ConfigKey& row : table)
        if (row.full_name() == full_name) return &row;
    return nullptr;
}

std::string ConfigKey::full_name() const { return std::string(section) + "." + std::string(name); }
std::string ConfigKey::variable() const { return "CAIRN_" + upper(section) + "_" + upper(name); }

std::string ConfigKey::format(const ConfigValue& value) const {
    switch (kind) {
        case ConfigKind::number:
            return std::to_string(std::get<std::uint64_t>(value));
        case ConfigKind::bytes:
            return format_bytes_exact(std::get<std::uint64_t>(value));
        case ConfigKind::duration_ms:
        case ConfigKind::duration_s:
            return format_duration_exact(std::get<std::uint64_t>(value) * unit_ns(kind));
        case ConfigKind::fraction:
            return plain_number(std::get<double>(value));
        case ConfigKind::flag:
            return std::get<bool>(value) ? "true" : "false";
        case ConfigKind::choice:
            return std::string(choices[std::get<std::uint64_t>(value)]);
        case ConfigKind::text:
        case ConfigKind::path:
            return std::get<std::string>(value);
    }
    return {};
}

std::string ConfigKey::allowed() const {
    const auto bound = [&](double value) { return format(ConfigValue(static_cast<std::uint64_t>(value))); };
    switch (kind) {
        case ConfigKind::number:
            return "a whole number from " + bound(low) + " to " + bound(high);
        case ConfigKind::bytes:
            return (power_of_two ? "a power of two from " : "a size from ") + bound(low) + " to " + bound(high);
        case ConfigKind::duration_ms:
        case ConfigKind::duration_s:
            return "a time from " + bound(low) + " to " + bound(high);
        case ConfigKind::fraction:
            return "a number from " + plain_number(low) + " to " + plain_number(high);
        case ConfigKind::flag:
            return "true or false";
        case ConfigKind::choice:
            return alternatives(choices);
        case ConfigKind::text:
            return may_be_empty ? "any text, or none" : "a text that is not empty";
        case ConfigKind::path:
            return may_be_empty ? "a path, or none" : "a path that is not empty";
    }
    return {};
}

Result<ConfigValue> ConfigKey::parse(std::string_view text) const {
    switch (kind) {
        case ConfigKind::number:
            return parse_whole(text);
        case ConfigKind::bytes: {
            TRY_ASSIGN(const std::uint64_t value, parse_bytes(text));
            return ConfigValue(value);
        }
        case ConfigKind::duration_ms:
        case ConfigKind::duration_s:
            return parse_time(text, kind);
        case ConfigKind::fraction:
            return parse_fraction(text);
        case ConfigKind::flag:
            if (text == "true" || text == "1" || text == "on" || text == "yes") return ConfigValue(true);
            if (text == "false" || text == "0" || text == "off" || text == "no") return ConfigValue(false);
            return invalid_argument("not true or false");
        case ConfigKind::choice: {
            const auto found = std::find(choices.begin(), choices.end(), text);
            if (found == choices.end()) return invalid_argument("not one of the choices");
            return ConfigValue(static_cast<std::uint64_t>(found - choices.begin()));
        }
        case ConfigKind::text:
        case ConfigKind::path:
            return ConfigValue(std::string(text));
    }
    return invalid_argument("not understood");
}

Status ConfigKey::check(const ConfigValue& value) const {
    if (const auto* number = std::get_if<std::uint64_t>(&value)) {
        if (static_cast<double>(*number) < low) return invalid_argument("too small");
        if (static_cast<double>(*number) > high) return invalid_argument("too large");
        if (power_of_two && (*number & (*number - 1)) != 0) return invalid_argument("not a power of two");
    } else if (const auto* real = std::get_if<double>(&value)) {
        if (*real < low) return invalid_argument("too small");
        if (*real > high) return invalid_argument("too large");
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        if (text->empty() && !may_be_empty) return invalid_argument("empty");
        if (text->find('\0') != std::string::npos) return invalid_argument("holds a NUL byte");
    }
    return {};
}

}  // namespace cairn
