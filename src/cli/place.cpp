#include "cli/place.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace cairn::cli {

namespace {

std::string absolute(const std::string& path) {
    std::error_code error;
    std::string whole = std::filesystem::absolute(path, error).lexically_normal().string();
    while (whole.size() > 1 && whole.back() == '/') whole.pop_back();
    return whole;
}

std::string origin_of(const Config& config, std::string_view key) {
    const auto row = static_cast<std::size_t>(find_config_key(key) - config_keys().data());
    return config.origins[row].to_string();
}

IoBackend backend(Settings::Io io) {
    switch (io) {
        case Settings::Io::uring: return IoBackend::uring;
        case Settings::Io::threads: return IoBackend::threads;
        case Settings::Io::automatic: break;
    }
    return IoBackend::automatic;
}

Status check_directory(const std::string& path, const std::string& named_by) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return Status::from_errno(errno, "persistent directory " + path + " (" + named_by + ")");
    if (!S_ISDIR(status.st_mode)) return not_found("persistent directory " + path + " (" + named_by + ") is not a directory");
    return {};
}

}  // namespace

Result<Place> Place::open(const Arguments& arguments) {
    TRY_ASSIGN(Config config, load_config());
    Place place;
    place.settings_ = config.settings;
    Settings::Paths& paths = place.settings_.paths;
    std::string named_by = "paths.persistent, from " + origin_of(config, "paths.persistent");
    if (arguments.given("persistent")) {
        paths.persistent = arguments.text("persistent");
        named_by = "--persistent";
    }
    if (arguments.given("scratch")) paths.scratch = arguments.text("scratch");
    paths.persistent = absolute(paths.persistent);
    paths.scratch = absolute(paths.scratch);
    TRY(check_directory(paths.persistent, named_by));
    place.layout_ = {paths.persistent};
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

std::vector<ScratchLayout> Place::scratch_roots() {
    // The node's name stands in the middle of the directory's.
    const std::string marker = "NODE";
    const std::string pattern = ScratchLayout::of(settings_.paths.scratch, ::getuid(), marker, layout_.persistent).root;
    const std::size_t folder = pattern.rfind('/') + 1;
    const std::size_t at = pattern.find(marker, folder);
    const std::string head = pattern.substr(folder, at - folder), tail = pattern.substr(at + marker.size());
    std::vector<ScratchLayout> roots;
    const Result<std::vector<DirectoryEntry>> entries = run(world_->storage.list(settings_.paths.scratch, deadline()));
    if (!entries.ok()) return roots;  // a machine without this scratch, such as a login node
    for (const DirectoryEntry& entry : *entries)
        if (entry.is_directory && entry.name.size() > head.size() + tail.size() && entry.name.starts_with(head) && entry.name.ends_with(tail))
            roots.push_back({settings_.paths.scratch + "/" + entry.name});
    return roots;
}

}  // namespace cairn::cli
