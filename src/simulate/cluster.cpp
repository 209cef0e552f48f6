// A table of keys; reading, checking, documentation and --set go along it.
#include "simulate/cluster.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <span>

#include "base/text_table.hpp"
#include "base/units.hpp"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace cairn::simulate {

namespace {

enum class Kind : std::uint8_t { count, bytes, rate, rates, number, placement, codec, encode_at, list };
constexpr std::string_view placements[] = {"append", "interleaved", "contiguous"}, codecs[] = {"off", "fast", "auto"}, encodes_at[] = {"leader", "follower"};
std::span<const std::string_view> names_of(Kind kind) {
    if (kind == Kind::placement) return placements;
    if (kind == Kind::codec) return codecs;
    if (kind == Kind::encode_at) return encodes_at;
    return {};
}

struct Key {
    std::string_view section, name;
    Kind kind;
    bool required;
    double low, high;  // allowed
    std::function<void(Cluster&, double, double)> set;  // twice the same value but for a span; of a list each in turn, and whether it is the first
    std::string_view doc;
    std::string full() const { return std::string(section) + "." + std::string(name); }
};

template <class Member>
auto to(Member Cluster::*member) {
    return [member](Cluster& c, double value, double) { c.*member = static_cast<Member>(value); };
}
auto to(std::vector<double> Cluster::*member) {
    return [member](Cluster& c, double value, double first) {
        if (first > 0) (c.*member).clear();
        (c.*member).push_back(value);
    };
}
auto to(Span Cluster::*member) {
    return [member](Cluster& c, double low, double high) { c.*member = {low, high}; };
}
template <class Member>
auto to(Member FlushSettings::*member) {
    return [member](Cluster& c, double value, double) { c.flush.*member = static_cast<Member>(value); };
}

constexpr double rate_max = 1e16, bytes_max = 1e15;
constexpr double all_bytes_max = 0x1p62;  // of all versions: sums of bytes stay below 2^64

const std::vector<Key>& keys() {
    static const std::vector<Key> table = {
        {"job", "nodes", Kind::count, true, 1, 1 << 20, to(&Cluster::nodes), "nodes with ranks"},
        {"job", "io_nodes", Kind::count, false, 0, 1 << 16, to(&Cluster::io_nodes), "dedicated I/O nodes beside them, which lead for all"},
        {"job", "ranks_per_node", Kind::count, true, 1, 1024, to(&Cluster::ranks_per_node), "ranks on each node"},
        {"job", "image_bytes", Kind::bytes, true, 1, bytes_max, to(&Cluster::image_bytes), "what a rank captures"},
        {"job", "images_bytes", Kind::list, false, 1, bytes_max, to(&Cluster::images_bytes), "what each rank captures, in turn and again from the first; instead of image_bytes with imbalance"},
        {"job", "imbalance", Kind::number, false, 0, 0.99, to(&Cluster::imbalance), "images differ by up to this share either way, each drawn"},
        {"job", "files", Kind::count, true, 1, 1 << 20, to(&Cluster::files), "K, the files of a version"},
        {"job", "versions", Kind::count, false, 1, 1000, to(&Cluster::versions), "checkpoints, one after the other"},
        {"job", "compute_s", Kind::number, false, 0, 1e6, to(&Cluster::compute_s), "time between two checkpoints"},
        {"job", "network_share", Kind::number, false, 0, 0.99, to(&Cluster::network_share), "of every card, taken by the application"},
        {"job", "restart", Kind::count, false, 0, 1, to(&Cluster::restart), "1: after the last version the whole job starts again with empty scratch, and every rank reads its image back; all at once"},
        {"node", "nic_out_bytes_per_s", Kind::rates, true, 1, rate_max, to(&Cluster::nic_out_bytes_per_s),
         "card out; [least, most] where nodes differ: each draws its own"},
        {"node", "nic_in_bytes_per_s", Kind::rates, true, 1, rate_max, to(&Cluster::nic_in_bytes_per_s), "card in"},
        {"node", "memory_bytes_per_s", Kind::rate, true, 1, rate_max, to(&Cluster::memory_bytes_per_s), "at which one process copies into scratch"},
        {"node", "scratch_bytes_per_s", Kind::rate, true, 1, rate_max, to(&Cluster::scratch_bytes_per_s), "at which all of a node's processes do together"},
        {"node", "checksum_bytes_per_s", Kind::rate, true, 1, rate_max, to(&Cluster::checksum_bytes_per_s), "at which a daemon makes checksums, and all ranks of a node together when they restart"},
        {"node", "client_bytes_per_s", Kind::rate, false, 0, rate_max, to(&Cluster::client_bytes_per_s),
         "what one node's client of the file system can do; 0: as its card"},
        {"node", "client_crowd", Kind::number, false, 0, 1e3, to(&Cluster::client_crowd), "what each further request under way costs all of a node's, as storage.crowd"},
        {"node", "client_crowd_from", Kind::count, false, 1, 1 << 16, to(&Cluster::client_crowd_from), "requests that a node's client serves at its full rate"},
        {"node", "writer_bytes_per_s", Kind::rate, false, 0, rate_max, to(&Cluster::writer_bytes_per_s), "what one writer reaches by itself; 0: no limit"},
        {"node", "network_latency_us", Kind::number, false, 0, 1e6, to(&Cluster::network_latency_us), "of a message"},
        {"node", "connections", Kind::count, false, 0, 1, to(&Cluster::connections),
         "1: each node has one connection to each other one and one to each server, as with TCP: what takes the same one goes in turn, and cards and servers are fair to connections; 0: to requests"},
        {"storage", "servers", Kind::count, true, 1, 1 << 16, to(&Cluster::servers), "storage servers"},
        {"storage", "server_bytes_per_s", Kind::rate, true, 1, rate_max, to(&Cluster::server_bytes_per_s), "of each"},
        {"storage", "servers_bytes_per_s", Kind::list, false, 1, rate_max, to(&Cluster::servers_bytes_per_s), "of each by itself, in turn and again from the first"},
        {"storage", "targets", Kind::count, true, 1, 1 << 16, to(&Cluster::targets), "storage targets, by turns on the servers"},
        {"storage", "target_bytes_per_s", Kind::rate, true, 1, rate_max, to(&Cluster::target_bytes_per_s), "of each"},
        {"storage", "stripes", Kind::count, false, 1, 1 << 16, to(&Cluster::stripes), "targets that a file lies on"},
        {"storage", "stripe_bytes", Kind::bytes, false, 4096, bytes_max, to(&Cluster::stripe_bytes), "of a file on one target before it goes on on the next"},
        {"storage", "placeable", Kind::count, false, 0, 1, to(&Cluster::placeable),
         "1: Cairn says on which target a part lies, where files are not striped; 0: the file system puts the parts on its targets in turn"},
        {"storage", "spans", Kind::count, false, 0, 1, to(&Cluster::spans),
         "1: with fewer parts than targets Cairn lays each over several of them, as on Lustre; 0: each on one"},
        {"storage", "whole_files", Kind::number, false, 0.01, 1, to(&Cluster::whole_files),
         "part of target_bytes_per_s that is reached where files are not striped; 1: all of it"},
        {"storage", "request_us", Kind::number, false, 0, 1e6, to(&Cluster::request_us), "that a request costs its target, beside the bytes"},
        {"storage", "crowd", Kind::number, false, 0, 1e3, to(&Cluster::crowd),
         "what each further writer costs all at one target: n of them get the target's rate / (1 + crowd x (n - crowd_from))"},
        {"storage", "crowd_from", Kind::count, false, 1, 1 << 16, to(&Cluster::crowd_from), "writers that a target serves at its full rate"},
        {"storage", "latency_us", Kind::number, false, 0, 1e7, to(&Cluster::latency_us), "of an operation"},
        {"storage", "fsync_ms", Kind::number, false, 0, 1e6, to(&Cluster::fsync_ms), "of an fsync, beside the bytes"},
        {"storage", "metadata_ops_per_s", Kind::number, false, 0, 1e9, to(&Cluster::metadata_ops_per_s),
         "operations on names that the metadata server does; 0: any number"},
        {"storage", "write_behind_bytes", Kind::bytes, false, 0, bytes_max, to(&Cluster::write_behind_bytes),
         "of each file, that a node's client holds while their writes are over for the writer already, until fsync; 0: every write waits for its target"},
        {"storage", "background", Kind::number, false, 0, 0.99, to(&Cluster::background), "share of every target that others take"},
        {"storage", "background_spread", Kind::number, false, 0, 1, to(&Cluster::background_spread),
         "targets differ: others take background x (1 - this ... 1 + this) of each"},
        {"flush", "writers", Kind::count, false, 1, 256, to(&FlushSettings::writers), "as in cairn.toml"},
        {"flush", "buffers", Kind::count, false, 1, 1024, to(&FlushSettings::buffers), "as in cairn.toml"},
        {"flush", "buffer_bytes", Kind::bytes, false, 65536, 4294967296.0, to(&FlushSettings::buffer_bytes), "as in cairn.toml"},
        {"flush", "block_bytes", Kind::bytes, false, 4096, 67108864, to(&Cluster::block_bytes), "as in cairn.toml"},
        {"flush", "leaders", Kind::count, false, 0, 1 << 20, to(&FlushSettings::leaders), "as in cairn.toml; 0: all nodes"},
        {"flush", "placement", Kind::placement, false, 0, 2, to(&FlushSettings::placement), "as in cairn.toml; with interleaved or contiguous no work changes hands, and leaders are as many as files"},
        {"flush", "codec", Kind::codec, false, 0, 2, to(&Cluster::codec), "as in cairn.toml, but that off is the default: what a codec makes of the data stands in codec.ratio, and is not known of itself"},
        {"flush", "encode_at", Kind::encode_at, false, 0, 1, to(&FlushSettings::encode_at), "as in cairn.toml: where what comes from other nodes is encoded"},
        {"codec", "ratio", Kind::number, false, 0.5, 1e3, to(&Cluster::codec_ratio), "raw bytes to stored ones, of what is encoded"},
        {"codec", "bytes_per_s", Kind::rate, false, 1, rate_max, to(&Cluster::codec_bytes_per_s), "raw bytes that all threads of a daemon encode"},
        {"codec", "decode_bytes_per_s", Kind::rate, false, 1, rate_max, to(&Cluster::decode_bytes_per_s), "raw bytes that all ranks of a node decode together when they restart, of any data"},
        {"codec", "hard_share", Kind::number, false, 0, 1, to(&Cluster::hard_share), "share of the data on which a codec is of less use; what auto does with each is its choice"},
        {"codec", "hard_ratio", Kind::number, false, 0.5, 1e3, to(&Cluster::hard_ratio), "codec.ratio, of these"},
        {"codec", "hard_bytes_per_s", Kind::rate, false, 1, rate_max, to(&Cluster::hard_bytes_per_s), "codec.bytes_per_s, of these"},
        {"rivals", "two_phase", Kind::number, false, 0.001, 1, [](Cluster& c, double v, double) { c.efficiency["two_phase"] = v; },
         "part of the cards' rate that synchronous two-phase aggregation (MPI-IO) reaches"},
        {"rivals", "at_offset", Kind::number, false, 0.001, 1, [](Cluster& c, double v, double) { c.efficiency["at_offset"] = v; },
         "the same of each rank at its offset (GenericIO without collectives)"},
        {"rivals", "every_node", Kind::number, false, 0.001, 1, [](Cluster& c, double v, double) { c.efficiency["every_node"] = v; },
         "the same of every node writing (ADIOS2, two levels)"},
        {"rivals", "every_node_uneven", Kind::number, false, 0.001, 1, [](Cluster& c, double v, double) { c.efficiency["every_node_uneven"] = v; },
         "what is left of that where images differ in size: writes that no longer fall on the file system's blocks"},
        {"rivals", "file_per_rank", Kind::number, false, 0.001, 1, [](Cluster& c, double v, double) { c.efficiency["file_per_rank"] = v; },
         "the same of a file per rank"},
    };
    return table;
}

std::string number_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, value == std::floor(value) && value < 1e9 ? "%.0f" : "%.6g", value);
    return text;
}

std::string allowed(const Key& key) {
    const std::string between = number_text(key.low) + " to " + number_text(key.high);
    switch (key.kind) {
        case Kind::count: return "a whole number from " + between;
        case Kind::number: return "a number from " + between;
        case Kind::bytes: return "a size from " + format_bytes_exact(static_cast<std::uint64_t>(key.low)) + " to " + format_bytes(static_cast<std::uint64_t>(key.high));
        case Kind::rate: return "bytes per second, as a number or a size, from " + between;
        case Kind::list: return "[number or size, ...], each from " + between;
        case Kind::placement: return "\"append\", \"interleaved\" or \"contiguous\"";
        case Kind::codec: return "\"off\", \"fast\" or \"auto\"";
        case Kind::encode_at: return "\"leader\" or \"follower\"";
        case Kind::rates: return "bytes per second, as a number or a size, or [least, most], from " + between;
    }
    return {};
}

std::optional<double> number_of(const Key& key, const toml::node& node) {
    const bool sized = key.kind == Kind::bytes || key.kind == Kind::rate || key.kind == Kind::rates || key.kind == Kind::list;
    if (const auto* text = node.as_string(); text && sized) {
        const Result<std::uint64_t> bytes = parse_bytes(text->get());
        if (bytes.ok()) return static_cast<double>(*bytes);
        return std::nullopt;
    }
    if (const std::span<const std::string_view> names = names_of(key.kind); !names.empty()) {
        const auto* text = node.as_string();
        const auto found = text ? std::find(names.begin(), names.end(), text->get()) : names.end();
        return found == names.end() ? std::nullopt : std::optional(static_cast<double>(found - names.begin()));
    }
    double value = 0;
    if (const auto* whole = node.as_integer()) value = static_cast<double>(whole->get());
    else if (const auto* real = node.as_floating_point(); real && key.kind != Kind::count) value = real->get();
    else return std::nullopt;
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// False: not what is allowed.
bool read_value(const Key& key, const toml::node& node, Cluster& cluster) {
    if (key.kind == Kind::list) {
        const toml::array* values = node.as_array();
        if (values == nullptr || values->empty()) return false;
        for (const toml::node& value : *values)
            if (const auto number = number_of(key, value); !number || *number < key.low || *number > key.high) return false;
        for (const toml::node& value : *values) key.set(cluster, *number_of(key, value), &value == values->get(0) ? 1 : 0);
        return true;
    }
    std::optional<double> low = number_of(key, node), high = low;
    if (const toml::array* both = node.as_array(); both && key.kind == Kind::rates && both->size() == 2) {
        low = number_of(key, *both->get(0));
        high = number_of(key, *both->get(1));
    }
    if (!low || !high || *low < key.low || *high > key.high || *low > *high) return false;
    key.set(cluster, *low, *high);
    return true;
}

std::string known_keys(std::string_view section) {
    std::string text;
    for (const Key& key : keys())
        if (key.section == section) text += (text.empty() ? "" : ", ") + std::string(key.name);
    return text;
}

class Reader {
  public:
    Reader(Cluster& cluster, std::string file) : cluster_(cluster), file_(std::move(file)) {}
    void read(const toml::table& table);
    Status result() const;

  private:
    void read_section(const std::string& section, const toml::table& table);
    void problem(const toml::source_region& source, const std::string& text) {
        problems_.emplace(source.begin.line, file_ + ":" + std::to_string(source.begin.line) + ": " + text);
    }

    Cluster& cluster_;
    const std::string file_;
    std::set<std::string> seen_;
    std::multimap<std::uint32_t, std::string> problems_;
};

void Reader::read(const toml::table& table) {
    for (const auto& [name, node] : table) {
        const std::string section(name.str());
        if (section == "name" && node.is_string()) cluster_.name = node.as_string()->get();
        else if (section == "name") problem(node.source(), "name: not a value it can have; allowed: text");
        else if (known_keys(section).empty()) problem(name.source(), "unknown section or key " + section + "; allowed: name, [job], [node], [storage], [flush], [rivals]");
        else if (!node.is_table()) problem(node.source(), section + " is a section: write [" + section + "] and its keys below");
        else read_section(section, *node.as_table());
    }
    for (const Key& key : keys())
        if (key.required && !seen_.count(key.full())) problems_.emplace(UINT32_MAX, file_ + ": " + key.full() + " is missing: " + std::string(key.doc) + "; " + allowed(key));
}

void Reader::read_section(const std::string& section, const toml::table& table) {
    for (const auto& [name, node] : table) {
        const std::string full = section + "." + std::string(name.str());
        const auto key = std::find_if(keys().begin(), keys().end(), [&](const Key& each) { return each.full() == full; });
        if (key == keys().end()) {
            problem(name.source(), "unknown key " + full + "; allowed in [" + section + "]: " + known_keys(section));
            continue;
        }
        seen_.insert(full);
        if (!read_value(*key, node, cluster_)) problem(node.source(), full + ": not a value it can have; allowed: " + allowed(*key));
    }
}

Status Reader::result() const {
    std::string text;
    for (const auto& [line, problem] : problems_) text += (text.empty() ? "" : "\n") + problem;
    return problems_.empty() ? Status() : invalid_argument(text);
}

}  // namespace

Status check_cluster(const Cluster& c) {
    std::string text;
    const auto wrong = [&](const std::string& problem) { text += (text.empty() ? "" : "\n") + c.file + ": " + problem; };
    if (c.files > c.ranks()) wrong("job.files is " + std::to_string(c.files) + ", and there are " + std::to_string(c.ranks()) + " ranks: at most a file for each");
    if (c.ranks() > (1u << 24)) wrong("job.nodes x job.ranks_per_node is " + std::to_string(c.ranks()) + "; at most " + std::to_string(1u << 24));
    double image = static_cast<double>(c.image_bytes) * (1 + c.imbalance);
    if (!c.images_bytes.empty()) image = *std::max_element(c.images_bytes.begin(), c.images_bytes.end());
    if (image * static_cast<double>(c.ranks()) * c.versions > all_bytes_max)
        wrong("job.image_bytes x ranks x job.versions may be at most " + format_bytes(static_cast<std::uint64_t>(all_bytes_max)));
    if (c.client_crowd > 0 && c.client_bytes_per_s == 0) wrong("node.client_crowd needs node.client_bytes_per_s: what is crowded");
    if (c.metadata_ops_per_s > 0 && c.metadata_ops_per_s < 1e-3) wrong("storage.metadata_ops_per_s must be 0 (no limit) or at least 0.001");
    if (c.writer_bytes_per_s > 0 && c.writer_bytes_per_s < 1) wrong("node.writer_bytes_per_s must be 0 (no limit) or at least 1");
    if ((c.block_bytes & (c.block_bytes - 1)) != 0) wrong("flush.block_bytes must be a power of two");
    else if (c.flush.buffer_bytes % c.block_bytes != 0) wrong("flush.buffer_bytes must be a multiple of flush.block_bytes");
    if (c.targets < c.servers) wrong("storage.targets must be at least storage.servers: a server without a target serves nothing");
    if (c.stripes > c.targets) wrong("storage.stripes must be at most storage.targets");
    if (c.flush.leaders > c.nodes + c.io_nodes) wrong("flush.leaders must be at most the number of nodes");
    if (c.background * (1 + c.background_spread) >= 1) wrong("storage.background x (1 + background_spread) must be below 1: nothing would be left of a target");
    return text.empty() ? Status() : invalid_argument(text);
}

Result<Cluster> parse_cluster(const std::string& text, const std::string& path) {
    Cluster cluster;
    cluster.file = path;
    cluster.name = for_terminal(path.substr(path.rfind('/') + 1));
    if (const auto dot = cluster.name.rfind('.'); dot != std::string::npos && dot > 0) cluster.name.resize(dot);
    const toml::parse_result parsed = toml::parse(text, path);
    if (!parsed)
        return invalid_argument(path + ":" + std::to_string(parsed.error().source().begin.line) + ": not TOML: " + std::string(parsed.error().description()));
    Reader reader(cluster, path);
    reader.read(parsed.table());
    TRY(reader.result());
    TRY(check_cluster(cluster));
    return cluster;
}

Result<Cluster> read_cluster(const std::string& path) {
    constexpr std::size_t file_bytes_max = 1 << 20;
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return Status::from_errno(errno, path + ": cannot read this cluster");
    struct stat status {};
    std::string text;
    Status problem;
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || static_cast<std::size_t>(status.st_size) > file_bytes_max)
        problem = invalid_argument(path + ": cannot read this cluster: not a regular file of at most 1 MiB");
    while (problem.ok() && text.size() <= file_bytes_max) {
        char buffer[16384];
        const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) problem = Status::from_errno(errno, path + ": cannot read this cluster");
        if (count <= 0) break;
        text.append(buffer, static_cast<std::size_t>(count));
    }
    ::close(descriptor);
    if (!problem.ok()) return problem;
    return parse_cluster(text, path);
}

Status set_key(Cluster& cluster, const std::string& assignment) {
    const auto equals = assignment.find('=');
    const std::string full = assignment.substr(0, equals);
    const auto key = std::find_if(keys().begin(), keys().end(), [&](const Key& each) { return each.full() == full; });
    if (equals == std::string::npos || key == keys().end() || assignment.find_first_of("\r\n") != std::string::npos)
        return invalid_argument("--set " + for_terminal(assignment) + ": write SECTION.KEY=VALUE with a key of a cluster file (`cairn simulate --keys` lists them)");
    const std::string value = assignment.substr(equals + 1);
    const auto parse = [&](const std::string& written) { return toml::parse("value = " + written, assignment); };
    toml::parse_result parsed = parse(value);
    if (!parsed) parsed = parse("\"" + value + "\"");
    const toml::node* node = parsed ? parsed.table().get("value") : nullptr;
    if (node == nullptr || !read_value(*key, *node, cluster)) return invalid_argument("--set " + assignment + ": not a value it can have; allowed: " + allowed(*key));
    return {};
}

std::string cluster_markdown() {
    std::string text = "| key | must be given | allowed | what it is |\n|---|---|---|---|\n";
    for (const Key& key : keys())
        text += "| `" + key.full() + "` | " + (key.required ? "yes" : "") + " | " + allowed(key) + " | " + std::string(key.doc) + " |\n";
    return text;
}

}  // namespace cairn::simulate
