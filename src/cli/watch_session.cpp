#include "cli/watch_session.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/text_table.hpp"
#include "cli/series.hpp"
#include "cli/tree_files.hpp"
#include "client/handles.hpp"
#include "format/manifest.hpp"
#include "world/real/files.hpp"

namespace cairn::cli {

namespace {

constexpr const char* description_region = "watch";  // no file has this name, nor that of tree_index_region: a pattern's names hold a number
constexpr std::uint64_t manifest_bytes_max = 1ull << 31;

// The text of the region "watch".
std::string describe(const std::map<std::string, WatchedFile>& files) {
    std::string text = "# mode, bytes, modified (ns since 1970), name of each file; a directory tree's ends with /\n";
    for (const auto& [name, file] : files) {
        char line[96];
        std::snprintf(line, sizeof line, "%04llo %llu %lld ", static_cast<unsigned long long>(file.mark.mode),
                      static_cast<unsigned long long>(file.mark.bytes), static_cast<long long>(file.mark.modified_ns));
        text += line + name + (file.mark.tree ? "/\n" : "\n");
    }
    return text;
}

// The last region of the image: when it is written all files have been copied, and nothing is sealed yet. So it is here
// that a file which changed while it was copied keeps the image from existing.
struct LastLook {
    const WatchedFiles& watched;
    const std::map<std::string, WatchedFile>& files;
    std::string text;
    bool changed = false;

    bool same() const {
        return std::all_of(files.begin(), files.end(), [&](const auto& file) {
            const auto mark = watched.mark(file.first);
            return mark.ok() && *mark == file.second.mark && writers_of(watched.path(file.first)) != Writers::some;
        });
    }
};

int last_look_bytes(void* context, std::uint64_t* bytes) {
    *bytes = static_cast<LastLook*>(context)->text.size();
    return 0;
}
int last_look(void* context, void* into, std::uint64_t bytes) {
    auto* const look = static_cast<LastLook*>(context);
    look->changed = !look->same();
    std::memcpy(into, look->text.data(), bytes);
    return look->changed ? 1 : 0;
}
int index_bytes(void* context, std::uint64_t* bytes) {
    *bytes = static_cast<const Bytes*>(context)->size();
    return 0;
}
int give_index(void* context, void* into, std::uint64_t bytes) {
    std::memcpy(into, static_cast<const Bytes*>(context)->data(), bytes);
    return 0;
}
int no_restore(void*, const void*, std::uint64_t) { return 0; }

// What becomes of the files of a version.
struct Routes {
    std::vector<std::pair<std::string, std::string>> files;  // region and path
    Bytes tree_index;                                        // empty: there are no trees
    bool changed = false;                                    // a tree is not what it was when it was complete
};

Result<Routes> routes_of(const WatchedFiles& watched, const std::map<std::string, WatchedFile>& files) {
    Routes routes;
    std::vector<Tree> trees;
    for (const auto& [name, file] : files) {
        const std::string path = watched.path(name);
        if (!file.mark.tree) {
            routes.files.emplace_back(name, path);
            continue;
        }
        auto read = read_tree(path, name);
        if (!read.ok()) return read.status().within("tree " + for_terminal(name));
        routes.changed |= !(read->mark == file.mark);
        for (const TreeEntry& entry : read->tree.entries)
            if (entry.bytes > 0) routes.files.emplace_back(tree_region_name(read->tree, entry), path + "/" + entry.path);
        trees.push_back(std::move(read->tree));
    }
    if (!trees.empty()) routes.tree_index = encode_tree_index(trees);
    return routes;
}

}  // namespace

Result<ContinueFrom> ContinueFrom::parse(const std::string& text) {
    if (text.empty() || text == "newest") return ContinueFrom{};
    if (text == "none") return ContinueFrom{Where::none, 0};
    const auto version = parse_version(text);
    if (!version.ok()) return invalid_argument("--from '" + text + "': newest, none, or the number of a version");
    return ContinueFrom{Where::version, *version};
}

Status WatchSession::status(int code) const {
    if (code == CAIRN_OK) return {};
    std::string text = cairn_last_error(handle_);
    const std::string prefix = std::string(code_name(static_cast<Code>(code))) + ": ";
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
    return {static_cast<Code>(code), text};
}

Result<WatchSession> WatchSession::open(WatchOptions options) {
    WatchSession session(std::move(options));
    const WatchOptions& given = session.options_;
    std::vector<const char*> overrides;
    for (const std::string& each : given.overrides) overrides.push_back(each.c_str());
    overrides.push_back(nullptr);
    cairn_options wanted = CAIRN_OPTIONS;
    wanted.name = given.name.c_str();
    wanted.rank = given.index;
    wanted.ranks = given.watchers;
    wanted.job = given.job.empty() ? nullptr : given.job.c_str();
    wanted.overrides = overrides.data();
    TRY(session.status(cairn_open(&wanted, &session.handle_)));
    return session;
}

WatchSession::~WatchSession() {
    if (const std::shared_ptr<Session> session = handle_ ? handles::close(handle_) : nullptr) session->part();
}

Result<Version> WatchSession::continue_from(const ContinueFrom& from) {
    if (from.where == ContinueFrom::Where::none) return Version{0};
    const bool newest = from.where == ContinueFrom::Where::newest;
    std::uint64_t restored = 0;
    // Nothing is protected yet, so nothing is read back: what counts is which version the next ones follow.
    const Status status = this->status(cairn_restore(handle_, newest ? CAIRN_NEWEST : from.version, &restored));
    if (status.ok()) return Version{restored};
    if (newest && status.code() == Code::not_found) return Version{0};
    return Status(status.code(), status.text() + " (--from says where the series goes on; none begins it anew)");
}

std::string WatchSession::warnings() const { return cairn_warnings(handle_); }

Result<std::optional<std::uint64_t>> WatchSession::capture(Version version, const WatchedFiles& watched,
                                                           const std::map<std::string, WatchedFile>& files) {
    LastLook look{watched, files, describe(files)};
    const auto routed = routes_of(watched, files);
    if (!routed.ok() && !look.same()) return std::optional<std::uint64_t>();
    TRY(routed.status());
    const Routes& routes = *routed;
    if (routes.changed) return std::optional<std::uint64_t>();
    Status status;
    for (const auto& [region, path] : routes.files)
        if (status.ok()) status = this->status(cairn_route_file(handle_, region.c_str(), path.c_str())).within("file " + for_terminal(region));
    if (status.ok() && !routes.tree_index.empty())
        status = this->status(cairn_protect_callbacks(handle_, tree_index_region, &index_bytes, &give_index, &no_restore, const_cast<Bytes*>(&routes.tree_index)));
    if (status.ok())
        status = this->status(
            cairn_protect_callbacks(handle_, description_region, &last_look_bytes, &last_look, &no_restore, &look));
    if (status.ok()) {
        status = this->status(cairn_checkpoint(handle_, version));
        // Gone, or of another length than at first: also changed.
        if (!status.ok() && status.code() != Code::superseded && !look.same()) look.changed = true;
    }
    for (const auto& [region, path] : routes.files) cairn_unprotect(handle_, region.c_str());
    cairn_unprotect(handle_, tree_index_region);
    cairn_unprotect(handle_, description_region);
    if (!status.ok() && look.changed) return std::optional<std::uint64_t>();
    TRY(status);
    std::uint64_t bytes = 0;
    for (const auto& [name, file] : files) bytes += file.mark.bytes;
    return std::optional<std::uint64_t>(bytes);
}

Status WatchSession::committed(Version version) { return status(cairn_test(handle_, version, CAIRN_COMMITTED)); }
Status WatchSession::captured_by_all(Version version) { return status(cairn_test(handle_, version, CAIRN_SEALED)); }
Status WatchSession::cancel(Version version) { return status(cairn_cancel(handle_, version)); }

Result<CommittedFacts> WatchSession::facts(Version version) const {
    const Layout layout{options_.persistent};
    std::optional<Manifest> newest;
    std::error_code error;
    for (auto entry = std::filesystem::directory_iterator(layout.version(options_.name, version), error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
        if (!entry->path().filename().string().starts_with("manifest.")) continue;
        TRY_ASSIGN(const Bytes bytes, files::read_whole(entry->path().string(), manifest_bytes_max));
        Result<Manifest> manifest = decode_manifest(bytes);
        if (!manifest.ok() || manifest->abandoned) continue;
        if (!newest || manifest->epoch > newest->epoch) newest = std::move(manifest).value();
    }
    if (!newest) return not_found("no manifest of version " + std::to_string(version));
    CommittedFacts facts{newest->ranks, newest->image_bytes, newest->parts.size(), 0};
    for (const auto& part : newest->parts) facts.stored_bytes += part.bytes;
    return facts;
}

// ---- the board ----

WatchBoard::WatchBoard(const std::string& persistent, const std::string& job) {
    if (!job.empty()) folder_ = persistent + "/.cairn/watch/" + job;
}

Status WatchBoard::clear() {
    if (folder_.empty()) return {};
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
    return error ? Status::from_errno(error.value(), "can not remove " + folder_) : Status();
}

Status WatchBoard::announce(Version version) {
    if (folder_.empty()) return {};
    for (std::size_t at = folder_.rfind("/.cairn") + 1; at != std::string::npos;) {  // of all who share persistent; what can not be made is said by the file
        at = folder_.find('/', at + 1);
        static_cast<void>(make_directory(folder_.substr(0, at), 0755));
    }
    const std::string path = folder_ + "/" + std::to_string(version);
    const files::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    return file ? Status() : Status::from_errno(errno, "can not make " + path);
}

Result<std::vector<Version>> WatchBoard::announced() const {
    std::vector<Version> versions;
    std::error_code error;
    for (auto entry = std::filesystem::directory_iterator(folder_, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
        if (const auto version = parse_version(entry->path().filename().string()); version.ok())
            versions.push_back(*version);
    if (error && error != std::errc::no_such_file_or_directory)
        return Status::from_errno(error.value(), "can not list " + folder_);
    std::sort(versions.begin(), versions.end());
    return versions;
}

void WatchBoard::retract(Version version) {
    if (!folder_.empty()) ::unlink((folder_ + "/" + std::to_string(version)).c_str());
}

}  // namespace cairn::cli
