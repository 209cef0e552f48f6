#include "cli/place.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace cairn::cli {

namespace {

std::string origin_of(const Config& config, std::string_view key) {
    const auto row = static_cast<std::size_t>(find_config_key(key) - config_keys().data());
    return config.origins[row].to_string();
}

IoBackend backend(Settings::Io io) {
    switch (io) {
        case Settings::Io::uring:
            return IoBackend::uring;
        case Settings::Io::threads:
            return IoBackend::threads;
        case Settings::Io::automatic:
            break;
    }
    return IoBackend::automatic;
}

Status check_directory(const std::string& path, const std::string& named_by) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        return Status::from_errno(errno, "persistent directory " + path + " (" + named_by + ")");
    if (!S_ISDIR(status.st_mode))
        return not_found("persistent directory " + path + " (" + named_by + ") is not a directory");
    return {};
}

}  // namespace

Result<Config> load_settings(const Arguments& arguments) {
    ConfigSources sources = ConfigSources::of_process();
    // As if set in the environment: relative paths become absolute in the same way, for the daemon and for us.
    const auto set = [&](const ConfigKey& key, const std::string& value) {
        const std::string variable = key.variable();
        std::erase_if(sources.variables, [&](const auto& each) { return each.first == variable; });
        sources.variables.emplace_back(variable, value);
    };
    for (const char* name : {"persistent", "scratch"})
        if (arguments.given(name)) set(*find_config_key(std::string("paths.") + name), arguments.text(name));
    for (const std::string& each : arguments.texts("set")) {
        const std::size_t equals = each.find('=');
        const ConfigKey* key = equals == std::string::npos ? nullptr : find_config_key(each.substr(0, equals));
        if (!key)
            return invalid_argument("--set " + each + ": no such key; `cairn config` lists all, the form is section.key=value");
        const std::string value = each.substr(equals + 1);
        const auto parsed = key->parse(value);
        const Status fits = parsed.ok() ? key->check(*parsed) : parsed.status();
        if (!fits.ok()) return invalid_argument("--set " + each + ": " + fits.text() + "; allowed: " + key->allowed());
        set(*key, value);
    }
    return load_config(sources);
}

std::vector<std::string> scratch_nodes(const Settings& settings) {
    // The node's name stands in the middle of the directory's.
    const std::string marker = "NODE";
    const std::string pattern =
        ScratchLayout::of(settings.paths.scratch, ::geteuid(), marker, settings.paths.persistent).root;
    const std::size_t folder = pattern.rfind('/') + 1;
    const std::size_t at = pattern.find(marker, folder);
    const std::string head = pattern.substr(folder, at - folder), tail = pattern.substr(at + marker.size());
    std::vector<std::string> nodes;
    std::error_code error;  // a machine without this scratch, such as a login node, has none
    for (const auto& entry : std::filesystem::directory_iterator(settings.paths.scratch, error)) {
        const std::string name = entry.path().filename().string();
        if (name.size() > head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail) &&
            entry.is_directory(error))
            nodes.push_back(name.substr(head.size(), name.size() - head.size() - tail.size()));
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
}

std::vector<ScratchLayout> scratch_roots(const Settings& settings) {
    std::vector<ScratchLayout> roots;
    for (const std::string& node : scratch_nodes(settings))
        roots.push_back(ScratchLayout::of(settings.paths.scratch, ::geteuid(), node, settings.paths.persistent));
    return roots;
}

void Place::know_roots(const std::set<std::string>& roots) {
    for (const std::string& root : roots_besides(layout_.persistent, {roots.begin(), roots.end()}))
        if (std::find(layout_.roots.begin(), layout_.roots.end(), root) == layout_.roots.end()) layout_.roots.push_back(root);
}

Result<Place> Place::open(const Arguments& arguments) {
    TRY_ASSIGN(const Config config, load_settings(arguments));
    Place place;
    place.settings_ = config.settings;
    const Settings::Paths& paths = place.settings_.paths;
    TRY(check_directory(paths.persistent, arguments.given("persistent")
                                              ? "--persistent"
                                              : "paths.persistent, from " + origin_of(config, "paths.persistent")));
    place.layout_ = {paths.persistent, roots_besides(paths.persistent, storage_directories(place.settings_))};
    place.restore_.buffer_bytes = place.settings_.flush.buffer_bytes;
    place.restore_.direct = place.settings_.flush.direct;
    place.restore_.io_wait = static_cast<Nanos>(place.settings_.deadlines.io_ms) * millisecond;
    RealWorldOptions options;
    options.storage.backend = backend(place.settings_.flush.io);
    options.cpu_threads = place.settings_.daemon.cpu_threads;
    TRY_ASSIGN(place.real_, RealWorld::create(options));
    place.world_ = std::make_unique<World>(place.real_->world());
    return place;
}

}  // namespace cairn::cli
