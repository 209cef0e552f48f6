#include "storage/glusterfs.hpp"

#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "storage/detect.hpp"

namespace cairn {

namespace {

constexpr std::string_view distribute_suffix = "-dht";
constexpr std::size_t attribute_bytes_max = 64 << 10;  // Linux has no larger ones

// Takes `token` off the front of `text`.
bool take(std::string_view& text, std::string_view token) {
    if (!text.starts_with(token)) return false;
    text.remove_prefix(token.size());
    return true;
}

// A translator's name. It becomes part of a file's name and of a pattern that GlusterFS matches: nothing else gets in.
std::string_view take_name(std::string_view& text) {
    std::size_t length = 0;
    const auto is_plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    };
    while (length < text.size() && is_plain(text[length])) ++length;
    const std::string_view name = text.substr(0, length);
    text.remove_prefix(length);
    return name;
}

bool take_number(std::string_view& text, std::uint32_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

// The mount shows its graph of translators below .meta of the volume's root; where it does not (a mounted subdirectory of a
// volume), there is no telling, and the worst is that placing has no effect.
bool is_cut_into_pieces(const MountInfo& mount, const PlacementTargets& targets) {
    const std::string distribute = targets.before_target.substr(1, targets.before_target.size() - 2);
    const std::string volume = distribute.substr(0, distribute.size() - distribute_suffix.size());
    const std::string translator = mount.point + "/.meta/graphs/active/" + volume + "-shard/type";
    return !mount.point.empty() && ::access(translator.c_str(), F_OK) == 0;
}

}  // namespace

Result<PlacementTargets> targets_of_pathinfo(std::string_view pathinfo) {
    while (pathinfo.ends_with('\0')) pathinfo.remove_suffix(1);
    std::string_view text = pathinfo;
    if (!take(text, "((<DISTRIBUTE:"))
        return unavailable("its volume does not distribute files over several servers");
    const Status strange = unavailable("GlusterFS says in a way not known here where files lie: " +
                                       std::string(pathinfo.substr(0, 200)));
    const std::string distribute(take_name(text));
    if (!distribute.ends_with(distribute_suffix) || distribute.size() == distribute_suffix.size()) return strange;
    const std::string layout = ") (" + distribute + "-layout ";
    const std::size_t at = text.rfind(layout);  // the bricks before it have paths, in which anything may stand
    if (!take(text, "> ") || at == std::string_view::npos) return strange;
    text.remove_prefix(at - 2 + layout.size());

    PlacementTargets targets{"glusterfs", {}, "@" + distribute + ":"};
    do {
        std::uint32_t start = 0, end = 0;
        if (!take(text, "(")) return strange;
        const std::string child(take_name(text));
        if (child.empty() || !take(text, " ") || !take_number(text, start) || !take(text, " ") || !take_number(text, end) ||
            !take(text, ")"))
            return strange;
        if (end > start) targets.names.push_back(child);
    } while (take(text, " "));
    if (text != "))") return strange;

    // gv-client-9 before gv-client-10. Each directory's layout begins elsewhere; here all nodes come to one order.
    std::sort(targets.names.begin(), targets.names.end(), [](const std::string& a, const std::string& b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    if (std::adjacent_find(targets.names.begin(), targets.names.end()) != targets.names.end()) return strange;
    if (targets.names.size() < 2) return unavailable("its volume puts files on one server only");
    return targets;
}

std::vector<std::string> bricks_of_pathinfo(std::string_view text) {
    constexpr std::string_view mark = "<POSIX(";
    std::vector<std::string> bricks;
    for (auto at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at)) {
        at += mark.size();
        const auto path_end = text.find("):", at);
        const auto host_end = path_end == std::string_view::npos ? path_end : text.find(':', path_end + 2);
        if (host_end == std::string_view::npos) break;
        bricks.push_back(std::string(text.substr(path_end + 2, host_end - path_end - 2)) + ":" + std::string(text.substr(at, path_end - at)));
        at = host_end;
    }
    return bricks;
}

namespace {
Result<std::string> pathinfo_of(const std::string& path) {
    std::string text(attribute_bytes_max, '\0');
    const ssize_t bytes = ::getxattr(path.c_str(), "glusterfs.pathinfo", text.data(), text.size());
    if (bytes < 0 && (errno == ENOMEM || errno == ENODATA || errno == EOPNOTSUPP))
        return unavailable("GlusterFS does not say on which servers " + path + " lies; of dispersed volumes it never does");
    if (bytes < 0) return Status::from_errno(errno, "can not read the attribute glusterfs.pathinfo of " + path);
    text.resize(static_cast<std::size_t>(bytes));
    return text;
}
}  // namespace

Result<std::vector<std::string>> glusterfs_bricks_of(const std::string& path) {
    TRY_ASSIGN(const std::string text, pathinfo_of(path));
    return bricks_of_pathinfo(text);
}

Result<PlacementTargets> detect_glusterfs_targets(const std::string& directory) {
    TRY_ASSIGN(const std::string there, existing_directory(directory));
    TRY_ASSIGN(const MountInfo mount, mount_of(there));
    if (mount.type != "fuse.glusterfs")
        return Status(Code::unsupported, directory + " is not on GlusterFS but on " + mount.type + " (placement.driver)");
    TRY_ASSIGN(const std::string text, pathinfo_of(there));
    Result<PlacementTargets> targets = targets_of_pathinfo(text);
    if (!targets.ok()) return std::move(targets).status().within(there);
    if (is_cut_into_pieces(mount, *targets))
        return unavailable(there + " is on a volume with features.shard, which spreads each file over all servers");
    return targets;
}

}  // namespace cairn
