// Config: `cairn.toml` and the environment, read once into the typed struct Settings.
//
// One table (config_keys) drives parsing, validation, `cairn config`, docs/settings.md and the tests. The default of a
// key is the initialiser of its member. An unknown key, a bad value or an unreadable file is an error that names file,
// line, key and what is allowed; nothing is guessed. Environment variables (CAIRN_SECTION_KEY) win over the file, the
// file wins over the defaults.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "base/status.hpp"

namespace cairn {

struct Settings {
    enum class Placement : std::uint8_t { append, interleaved, contiguous };
    enum class LocalSplit : std::uint8_t { chunks, files };
    enum class Io : std::uint8_t { automatic, uring, threads };
    enum class Checksums : std::uint8_t { daemon, capture };
    enum class CaptureMode : std::uint8_t { scratch, through };
    enum class WhenFull : std::uint8_t { wait, replace_oldest };
    enum class TargetsDriver : std::uint8_t { automatic, none, glusterfs, lustre, cephfs, beegfs, orangefs };
    enum class BackgroundCpu : std::uint8_t { need, idle, low, normal };
    enum class Compression : std::uint8_t { off, fast, small, automatic, zero_runs, delta_shuffle_zstd };
    enum class EncodeAt : std::uint8_t { leader, follower };
    enum class Names : std::uint8_t { groups, all, exact };
    enum class Layout : std::uint8_t { aggregated, file_per_rank, file_per_node, safetensors };
    enum class BackgroundIo : std::uint8_t { idle, normal };

    struct Paths {
        std::string scratch = "/dev/shm";          // absolute once loaded
        std::string persistent = "./checkpoints";  // absolute once loaded
    } paths;

    struct Flush {
        Layout layout = Layout::aggregated;
        std::uint32_t files = 0;  // K; 0: as many as the job has nodes
        std::uint32_t leaders = 0;  // 0: the fewest that were as fast as any, from the last flushes
        std::uint32_t slots = 1;
        std::uint32_t writers = 8;
        std::uint64_t buffer_bytes = 64ull << 20;
        std::uint32_t buffers = 8;
        std::uint64_t block_bytes = 1ull << 20;
        Placement placement = Placement::append;
        LocalSplit local_split = LocalSplit::chunks;
        bool direct = true;
        Compression codec = Compression::automatic;
        EncodeAt encode_at = EncodeAt::leader;
        std::uint64_t full_every = 1;
        std::uint32_t merge_ranks = 0;  // 0: chosen by trials
        std::uint64_t merge_bytes = 32ull << 10;
        bool equal_pages = false;
        Io io = Io::automatic;
        double memory_share = 0.25;
        std::uint32_t attempts_max = 3;
        std::string io_nodes = "none";  // none, all, or parse_list
    } flush;

    struct Storage {
        std::string directories;  // parse_list; absolute once loaded; empty: parts lie below persistent, like all else
    } storage;

    struct Targets {
        TargetsDriver driver = TargetsDriver::automatic;
        std::string targets;  // parse_list; empty: all that the driver finds
    } placement;

    struct Capture {
        CaptureMode mode = CaptureMode::scratch;
        Checksums checksums = Checksums::daemon;
        std::uint64_t scratch_bytes = 0;  // 0: no limit of its own
        WhenFull when_full = WhenFull::wait;
        std::uint64_t wait_ms = 60'000;
        bool ahead = true;
    } capture;

    struct Retention {
        std::uint64_t scratch_last = 2;
        std::uint64_t scratch_every = 0;
        bool free_at_end = true;
        std::uint64_t persistent_last = 0;
        std::uint64_t persistent_every = 0;
    } retention;

    struct Network {
        std::string provider = "tcp";
        std::string interface;
        std::string rates;  // parse_rates
        std::uint64_t heartbeat_ms = 500;
        std::uint64_t peer_timeout_ms = 10'000;
    } network;

    struct Background {
        BackgroundCpu cpu = BackgroundCpu::need;
        double commit_within = 0.5;              // of the interval between checkpoints
        BackgroundIo io = BackgroundIo::idle;
        double cores = 0;                    // 0: no cap
        std::uint64_t network_bytes_per_s = 0;   // 0: no cap
        std::uint64_t memory_bytes_per_s = 0;    // 0: no cap
        double network_share_busy = 0.2;
        std::uint64_t busy_bytes_per_s = 1 << 20;
        std::uint64_t quiet_ms = 100;
        std::string link;  // empty: the application's TCP connections
    } background;

    struct Daemon {
        std::uint64_t idle_s = 60;
        std::uint64_t start_wait_ms = 10'000;
        std::uint64_t stop_wait_ms = 30'000;
        bool restart = true;
        std::uint32_t cpu_threads = 0;  // 0: chosen from the machine
        std::string program;            // empty: beside the running program, then $PATH
        LogLevel log_level = LogLevel::info;
        std::string log_file;  // empty: beside the daemon's socket
    } daemon;

    struct Deadlines {
        std::uint64_t io_ms = 60'000;
        std::uint64_t target_ms = 10'000;
        std::uint64_t version_ms = 600'000;
        std::uint64_t open_ms = 60'000;
        std::uint64_t restore_ms = 600'000;
    } deadlines;

    struct Describe {
        std::string rules;  // empty: none
        Names names = Names::groups;
    } describe;

    struct Trace {
        std::string file;  // empty: no trace
    } trace;
};

// Does a retention rule keep this version? `newer` counts the versions of the series that are newer. `last` 0 keeps
// all; else the newest `last` and, where `every` is not 0, each version divisible by it.
constexpr bool retention_keeps(std::uint64_t last, std::uint64_t every, std::uint64_t version, std::uint64_t newer) {
    return last == 0 || newer < last || (every != 0 && version % every == 0);
}

enum class ConfigKind : std::uint8_t { number, bytes, duration_ms, duration_s, fraction, flag, choice, text, path };

// A value in its common form: number, bytes, durations (in the key's unit) and choices (their index) are the integer.
using ConfigValue = std::variant<std::uint64_t, double, bool, std::string>;

struct ConfigKey {
    std::string_view section;
    std::string_view name;
    ConfigKind kind;
    double low, high;                           // numbers only, inclusive
    std::span<const std::string_view> choices;  // choice only
    bool power_of_two;
    bool may_be_empty;  // text and path only
    ConfigValue (*get)(const Settings&);
    void (*set)(Settings&, const ConfigValue&);
    std::string_view doc;

    std::string full_name() const;                       // "flush.files"
    std::string variable() const;                        // "CAIRN_FLUSH_FILES"
    std::string allowed() const;                         // "a whole number from 1 to 256"
    std::string format(const ConfigValue& value) const;  // for people: "64 MiB", "append"
    Result<ConfigValue> parse(
        std::string_view text) const;              // the error says what is wrong, not where or what is allowed
    Status check(const ConfigValue& value) const;  // range
};

struct ConfigSection {
    std::string_view name;
    std::string_view doc;
};

std::span<const ConfigSection> config_sections();  // in the order of the documentation
std::span<const ConfigKey> config_keys();          // by section, in the order of the documentation
const ConfigKey* find_config_key(std::string_view full_name);

// Where the value of a key came from.
struct ConfigOrigin {
    enum class From : std::uint8_t { preset, file, environment } from = From::preset;
    std::string file;  // From::file
    std::uint32_t line = 0;
    std::string variable;           // From::environment
    std::string to_string() const;  // "default", "cairn.toml:12", "CAIRN_FLUSH_FILES"
};

struct Config {
    Settings settings;
    std::string file;                   // the file that was read, absolute; empty when there is none
    std::vector<ConfigOrigin> origins;  // one a key, as config_keys()
};

// What load_config looks at; tests make their own.
struct ConfigSources {
    std::vector<std::pair<std::string, std::string>> variables;
    std::string directory;  // where ./cairn.toml and relative paths are
    std::string system_file = "/etc/cairn.toml";
    std::string file_named_by = "CAIRN_CONFIG";  // for texts

    static ConfigSources of_process();
    const std::string* find(std::string_view variable) const;
};

// The first that exists of $CAIRN_CONFIG (which must exist), ./cairn.toml, $HOME/.config/cairn/cairn.toml,
// /etc/cairn.toml; then the environment. All problems are reported, one a line. invalid_argument, or the code of the
// failed read.
Result<Config> load_config(const ConfigSources& sources);
inline Result<Config> load_config() { return load_config(ConfigSources::of_process()); }

// All of a file that people write, where it is a regular one of at most 1 MiB.
Result<std::string> read_settings_text(const std::string& path);

// One spelling of a path: absolute, starting at `directory` when it is relative, without ".", "..", doubled and
// trailing slashes. A daemon is known by the paths it serves, so two spellings of one path would be two daemons. By
// name alone:
// ".." takes a name away also where that is a symbolic link.
std::string absolute_path(const std::string& directory, const std::string& path);

// The names in a text such as "a, b": blanks around a name do not count; no name is empty or stands twice. Of an empty
// text: none.
Result<std::vector<std::string>> parse_list(std::string_view text);

// The rates in Mb/s of interfaces, in a text such as "eth0=1000, ib0=100000". Of an empty text: none.
Result<std::map<std::string, std::uint32_t>> parse_rates(std::string_view text);

// The directories of a loaded `storage.directories`; paths.persistent may be one of them.
std::vector<std::string> storage_directories(const Settings& settings);

// docs/settings.md, made from the table.
std::string config_markdown();

}  // namespace cairn
