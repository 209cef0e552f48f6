// Config: finds and reads the file, then the environment, then checks what concerns several keys. Collects every
// problem before it gives up, so that one run shows them all.
#include "base/config.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

extern char** environ;

namespace cairn {

namespace {

constexpr std::size_t file_bytes_max = 1 << 20;

// Optimal string alignment: insertions, deletions, changes and swaps of neighbours cost one each.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.size()][b.size()];
}

// The candidate nearest to what was written, or empty when none is near.
std::string nearest(std::string_view written, const std::vector<std::string>& candidates) {
    if (written.size() > 64) return {};
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(2, written.size() / 4) + 1;
    for (const std::string& candidate : candidates)
        if (const std::size_t d = distance(written, candidate); d < best_distance) {
            best_distance = d;
            best = candidate;
        }
    return best;
}

std::string shorten(std::string_view text) {
    std::string out;
    for (const char c : text.substr(0, 80)) out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    return text.size() > 80 ? out + "..." : out;
}

// Reads into a Config; remembers every problem.
class Reader {
  public:
    Reader(const ConfigSources& sources, Config& config) : sources_(sources), config_(config) {
        config_.origins.resize(config_keys().size());
    }

    Status find_file();
    Status read_file();
    void read_environment();
    void check_together();
    void check_directories(const std::string& where);
    void make_paths_absolute();
    Status result() const {
        if (problems_.empty()) return {};
        std::string text;
        for (const auto& [line, problem] : problems_) text += (text.empty() ? "" : "\n") + problem;
        return invalid_argument(text);
    }

  private:
    void read_section(const std::string& section, const toml::table& table);
    void read_key(const ConfigKey& key, const toml::node& node);
    void unknown_key(const std::string& section, const toml::key& name);
    void unknown_variable(const std::string& variable);
    void store(const ConfigKey& key, const Result<ConfigValue>& value, std::string_view written, ConfigOrigin origin);
    // toml++ hands keys out by name, people read files by line.
    void problem_at(const toml::source_region& source, const std::string& text) {
        problems_.emplace(source.begin.line, config_.file + ":" + std::to_string(source.begin.line) + ": " + text);
    }
    void problem(std::string text) { problems_.emplace(UINT32_MAX, std::move(text)); }
    ConfigOrigin& origin_of(std::string_view full_name) {
        return config_.origins[static_cast<std::size_t>(find_config_key(full_name) - config_keys().data())];
    }

    const ConfigSources& sources_;
    Config& config_;
    std::multimap<std::uint32_t, std::string> problems_;  // by line; those of the environment last
};

Status Reader::find_file() {
    const auto absolute = [&](const std::string& path) { return absolute_path(sources_.directory, path); };
    if (const std::string* named = sources_.find("CAIRN_CONFIG")) {
        if (named->empty()) return {};
        config_.file = absolute(*named);
        return {};
    }
    std::vector<std::string> candidates = {absolute("cairn.toml")};
    const std::string* home = sources_.find("HOME");
    if (home && !home->empty()) candidates.push_back(absolute(*home + "/.config/cairn/cairn.toml"));
    candidates.push_back(sources_.system_file);
    for (const std::string& candidate : candidates) {
        struct stat status {};
        // Anything but "there is none" is a file that must be read: a broken link to the settings must not be passed
        // over.
        if (::lstat(candidate.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) continue;
        config_.file = candidate;
        return {};
    }
    return {};
}

}  // namespace

Result<std::string> read_settings_text(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return Status::from_errno(errno, path + ": cannot read this file");
    struct stat status {};
    std::string text;
    Status problem;
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        problem = invalid_argument(path + ": cannot read this file: not a regular file");
    } else if (static_cast<std::size_t>(status.st_size) > file_bytes_max) {
        problem = invalid_argument(path + ": cannot read this file: larger than 1 MiB");
    }
    while (problem.ok()) {
        char buffer[16384];
        const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) problem = Status::from_errno(errno, path + ": cannot read this file");
        if (count <= 0 || text.size() > file_bytes_max) break;
        text.append(buffer, static_cast<std::size_t>(count));
    }
    ::close(descriptor);
    if (!problem.ok()) return problem;
    return text;
}

namespace {

Status Reader::read_file() {
    if (config_.file.empty()) return {};
    auto text = read_settings_text(config_.file);
    if (!text.ok()) {
        Status status = text.status();
        if (sources_.find("CAIRN_CONFIG"))
            status = {status.code(), status.text() + " (named by " + sources_.file_named_by + ")"};
        return status;
    }
    const toml::parse_result parsed = toml::parse(*text, config_.file);
    if (!parsed) {
        problem_at(parsed.error().source(), "not TOML: " + std::string(parsed.error().description()));
        return {};
    }
    for (const auto& [name, node] : parsed.table()) {
        const std::string section(name.str());
        const bool known = std::any_of(config_sections().begin(), config_sections().end(),
                                       [&](const ConfigSection& row) { return row.name == section; });
        if (known && node.is_table()) {
            read_section(section, *node.as_table());
        } else if (known) {
            problem_at(node.source(), section + " is a section: write [" + section + "] and its keys below");
        } else {
            unknown_key("", name);
        }
    }
    return {};
}

void Reader::read_section(const std::string& section, const toml::table& table) {
    for (const auto& [name, node] : table) {
        if (const ConfigKey* key = find_config_key(section + "." + std::string(name.str())))
            read_key(*key, node);
        else
            unknown_key(section, name);
    }
}

void Reader::unknown_key(const std::string& section, const toml::key& name) {
    const std::string written(name.str());
    std::vector<std::string> here, names, sections;
    for (const ConfigSection& row : config_sections()) sections.emplace_back(row.name);
    std::string elsewhere;
    for (const ConfigKey& key : config_keys()) {
        if (key.section == section) here.emplace_back(key.name);
        names.emplace_back(key.name);
        if (key.name == written) elsewhere = key.full_name();
    }
    if (section.empty() && elsewhere.empty()) {  // somebody may have forgotten in which one it is
        const std::string meant = nearest(written, names);
        for (const ConfigKey& key : config_keys())
            if (key.name == meant) elsewhere = key.full_name();
    }
    const auto list = [](const std::vector<std::string>& items) {
        std::string text;
        for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
        return text;
    };
    const bool top = section.empty();
    const std::string near = nearest(written, top ? sections : here);
    std::string text =
        std::string("unknown ") + (top ? "section or key " : "key ") + (top ? "" : section + ".") + shorten(written);
    if (!near.empty())
        text += "; did you mean " + (top ? "[" + near + "]" : section + "." + near) + "?";
    else if (!elsewhere.empty())
        text += "; did you mean " + elsewhere + "?";
    text += std::string(near.empty() && elsewhere.empty() ? "." : "") + " Allowed " +
            (top ? "sections: " + list(sections) : "in [" + section + "]: " + list(here));
    problem_at(name.source(), text);
}

// The text of a value as the key's parser reads it, or nothing when TOML's type can not be meant.
std::optional<std::string> text_of(const ConfigKey& key, const toml::node& node) {
    const bool unit =
        key.kind == ConfigKind::bytes || key.kind == ConfigKind::duration_ms || key.kind == ConfigKind::duration_s;
    if (const auto* text = node.as_string())
        return unit || key.kind == ConfigKind::choice || key.kind == ConfigKind::text || key.kind == ConfigKind::path
                   ? std::optional(text->get())
                   : std::nullopt;
    if (const auto* number = node.as_integer())
        return unit || key.kind == ConfigKind::number || key.kind == ConfigKind::fraction
                   ? std::optional(std::to_string(number->get()))
                   : std::nullopt;
    if (const auto* real = node.as_floating_point(); real && key.kind == ConfigKind::fraction)
        return key.format(real->get());
    if (const auto* flag = node.as_boolean(); flag && key.kind == ConfigKind::flag)
        return flag->get() ? "true" : "false";
    return std::nullopt;
}

void Reader::read_key(const ConfigKey& key, const toml::node& node) {
    ConfigOrigin origin{ConfigOrigin::From::file, config_.file, node.source().begin.line, {}};
    const std::optional<std::string> text = text_of(key, node);
    if (text) {
        store(key, key.parse(*text), *text, std::move(origin));
        return;
    }
    static constexpr std::string_view kinds[] = {"nothing",        "a table",          "an array",      "a text",
                                                 "a whole number", "a decimal number", "true or false", "a date",
                                                 "a time",         "a date and time"};
    const auto type = static_cast<std::size_t>(node.type());
    problem_at(node.source(), key.full_name() + " can not be " +
                                  std::string(kinds[std::min(type, std::size(kinds) - 1)]) +
                                  (node.is_array() && key.kind == ConfigKind::text ? " (several go into one text: \"a, b\")" : "") +
                                  "; allowed: " + key.allowed());
}

void Reader::store(const ConfigKey& key, const Result<ConfigValue>& value, std::string_view written,
                   ConfigOrigin origin) {
    const Status status = value.ok() ? key.check(*value) : value.status();
    if (!status.ok()) {
        const std::string what = " = '" + shorten(written) + "': " + status.text() + "; allowed: " + key.allowed();
        if (origin.from == ConfigOrigin::From::file)
            problems_.emplace(origin.line, origin.to_string() + ": " + key.full_name() + what);
        else
            problem("environment variable " + origin.variable + " (" + key.full_name() + ")" + what);
        return;
    }
    key.set(config_.settings, *value);
    origin_of(key.full_name()) = std::move(origin);
}

void Reader::read_environment() {
    for (const auto& [variable, text] : sources_.variables) {
        if (!variable.starts_with("CAIRN_") || variable == "CAIRN_NODE" || variable == "CAIRN_CONFIG" ||
            variable == "CAIRN_JOB")
            continue;
        const auto keys = config_keys();
        const auto key = std::find_if(keys.begin(), keys.end(),
                                      [&name = variable](const ConfigKey& row) { return row.variable() == name; });
        if (key == keys.end())
            unknown_variable(variable);
        else
            store(*key, key->parse(text), text, {ConfigOrigin::From::environment, {}, 0, variable});
    }
}

// Only what was meant for Cairn's settings is an error: a known section, or a near miss of a known variable.
void Reader::unknown_variable(const std::string& variable) {
    std::vector<std::string> all;
    bool known_section = false;
    for (const ConfigKey& key : config_keys()) {
        all.push_back(key.variable());
        known_section |= variable.starts_with(all.back().substr(0, all.back().size() - key.name.size()));
    }
    const std::string near = nearest(variable, all);
    if (!known_section && (near.empty() || distance(variable, near) > 2)) return;
    problem("environment variable " + shorten(variable) + ": no such setting" +
            (near.empty() ? "" : "; did you mean " + near + "?") + (near.empty() ? "." : "") +
            " `cairn config` lists all");
}

void Reader::check_together() {
    const Settings& s = config_.settings;
    const auto where = [&](const char* name) { return std::string(name) + " (" + origin_of(name).to_string() + ")"; };
    if (s.flush.buffer_bytes % s.flush.block_bytes != 0)
        problem(where("flush.buffer_bytes") + " must be a multiple of " + where("flush.block_bytes") + ", which is " +
                find_config_key("flush.block_bytes")->format(s.flush.block_bytes));
    const bool is_safetensors = s.flush.layout == Settings::Layout::safetensors;
    if (s.flush.layout != Settings::Layout::aggregated && !is_safetensors && s.flush.files != 0)
        problem(where("flush.files") + " must be 0 with " + where("flush.layout") + ", which makes a file for each rank or node");
    if (s.capture.mode == Settings::CaptureMode::through && s.capture.checksums == Settings::Checksums::capture)
        problem(where("capture.checksums") + " must be daemon with " + where("capture.mode") + " = through: nothing is captured there, and the daemon makes them of what it fetches");
    const bool may_be_raw = s.flush.codec == Settings::Compression::off || s.flush.codec == Settings::Compression::automatic;
    if (is_safetensors && !may_be_raw)
        problem(where("flush.codec") + " can not be with " + where("flush.layout") + ": a safetensors file holds tensors as they are; allowed with it: off, auto");
    if (is_safetensors && s.flush.placement != Settings::Placement::append)
        problem(where("flush.placement") + " must be append with " + where("flush.layout") + ", in which every tensor has its place");
    if (s.flush.placement != Settings::Placement::append && !may_be_raw)
        problem(where("flush.codec") + " needs flush.placement = append: with " + where("flush.placement") + " every place is fixed before it is known how long what is encoded gets; allowed with it: off, auto");
    if (s.network.peer_timeout_ms <= 2 * s.network.heartbeat_ms)
        problem(where("network.peer_timeout_ms") + " must be more than twice " + where("network.heartbeat_ms"));
    const auto rule = [&](std::uint64_t last, std::uint64_t every, const char* last_name, const char* every_name) {
        if (last == 0 && every != 0)
            problem(where(every_name) + " has no effect: " + where(last_name) +
                    " is 0, which keeps all; set it to 1 or more");
    };
    const Result<std::vector<std::string>> targets = parse_list(s.placement.targets);
    if (!targets.ok())
        problem(where("placement.targets") + ": " + targets.status().text() +
                "; allowed: names of storage targets, each once, with commas between");
    else if (!targets->empty() && s.placement.driver == Settings::TargetsDriver::none)
        problem(where("placement.targets") + " has no effect: " + where("placement.driver") + " is none");
    check_directories(where("storage.directories"));
    const Result<std::vector<std::string>> io_nodes = parse_list(s.flush.io_nodes);
    if (!io_nodes.ok() || io_nodes->empty())
        problem(where("flush.io_nodes") + ": " + (io_nodes.ok() ? "it names nobody" : io_nodes.status().text()) +
                "; allowed: none, all, or names of I/O nodes, each once, with commas between");
    if (const auto rates = parse_rates(s.network.rates); !rates.ok())
        problem(where("network.rates") + ": " + rates.status().text() + "; allowed: as in eth0=1000,ib0=100000");
    rule(s.retention.scratch_last, s.retention.scratch_every, "retention.scratch_last", "retention.scratch_every");
    rule(s.retention.persistent_last, s.retention.persistent_every, "retention.persistent_last",
         "retention.persistent_every");
}

// A directory below persistent would be taken for a checkpoint, and its checkpoints for versions.
void Reader::check_directories(const std::string& where) {
    const Settings& s = config_.settings;
    const Result<std::vector<std::string>> directories = parse_list(s.storage.directories);
    if (!directories.ok()) return problem(where + ": " + directories.status().text() + "; allowed: directories, each once, with commas between");
    const std::string persistent = absolute_path(sources_.directory, s.paths.persistent);
    std::vector<std::string> seen;
    for (const std::string& each : *directories) {
        const std::string path = absolute_path(sources_.directory, each);
        if (path == "/" || path.starts_with(persistent + "/")) problem(where + ": " + path + " can not be one: it is " + (path == "/" ? "the root of all" : "below paths.persistent"));
        if (std::find(seen.begin(), seen.end(), path) != seen.end()) problem(where + ": " + path + " stands there twice");
        seen.push_back(path);
    }
}

void Reader::make_paths_absolute() {
    std::string directories;
    for (const std::string& each : parse_list(config_.settings.storage.directories).value_or({}))
        directories += (directories.empty() ? "" : ", ") + absolute_path(sources_.directory, each);
    config_.settings.storage.directories = std::move(directories);
    for (const ConfigKey& key : config_keys()) {
        if (key.kind != ConfigKind::path) continue;
        const ConfigValue value = key.get(config_.settings);
        const auto* text = std::get_if<std::string>(&value);
        if (text && !text->empty()) key.set(config_.settings, absolute_path(sources_.directory, *text));
    }
}

}  // namespace

std::string absolute_path(const std::string& directory, const std::string& path) {
    std::string whole = (std::filesystem::path(directory) / path).lexically_normal().string();
    while (whole.size() > 1 && whole.back() == '/') whole.pop_back();
    return whole;
}

Result<std::vector<std::string>> parse_list(std::string_view text) {
    const auto trimmed = [](std::string_view part) {
        const auto first = part.find_first_not_of(" \t");
        return first == part.npos ? part.substr(0, 0) : part.substr(first, part.find_last_not_of(" \t") - first + 1);
    };
    std::vector<std::string> names;
    if (trimmed(text).empty()) return names;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        std::string name(trimmed(text.substr(at, comma - at)));
        if (name.empty()) return invalid_argument("a name is missing in '" + std::string(text) + "'");
        if (std::find(names.begin(), names.end(), name) != names.end())
            return invalid_argument("'" + name + "' stands twice in '" + std::string(text) + "'");
        names.push_back(std::move(name));
        at = comma + 1;
    }
    return names;
}

Result<std::map<std::string, std::uint32_t>> parse_rates(std::string_view text) {
    constexpr std::uint32_t most_mbps = 100'000'000;
    std::map<std::string, std::uint32_t> rates;
    TRY_ASSIGN(const std::vector<std::string> entries, parse_list(text));
    for (const std::string& entry : entries) {
        const std::size_t equals = entry.find('=');
        const char* const end = entry.data() + entry.size();
        std::uint32_t rate = 0;
        const bool is_number = equals != std::string::npos && std::from_chars(entry.data() + equals + 1, end, rate).ptr == end;
        if (!is_number || equals == 0 || rate == 0 || rate > most_mbps || !rates.emplace(entry.substr(0, equals), rate).second)
            return invalid_argument("'" + entry + "' is not an interface, named once, and its rate in Mb/s");
    }
    return rates;
}

std::vector<std::string> storage_directories(const Settings& settings) { return parse_list(settings.storage.directories).value_or({}); }

ConfigSources ConfigSources::of_process() {
    ConfigSources sources;
    for (char** entry = environ; entry && *entry; ++entry) {
        const std::string_view text(*entry);
        const auto equals = text.find('=');
        if (equals == std::string_view::npos) continue;
        sources.variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    std::error_code error;
    sources.directory = std::filesystem::current_path(error).string();
    return sources;
}

const std::string* ConfigSources::find(std::string_view variable) const {
    for (const auto& [name, value] : variables)
        if (name == variable) return &value;
    return nullptr;
}

std::string ConfigOrigin::to_string() const {
    switch (from) {
        case From::file:
            return file + ":" + std::to_string(line);
        case From::environment:
            return variable;
        case From::preset:
            break;
    }
    return "default";
}

Result<Config> load_config(const ConfigSources& sources) {
    Config config;
    Reader reader(sources, config);
    TRY(reader.find_file());
    TRY(reader.read_file());
    reader.read_environment();
    TRY(reader.result());
    reader.check_together();
    TRY(reader.result());
    reader.make_paths_absolute();
    return config;
}

}  // namespace cairn
