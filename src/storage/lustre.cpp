#include "storage/lustre.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <sstream>

namespace cairn {

namespace {

constexpr std::uint64_t stripe_unit = 64 << 10;  // LOV_MIN_STRIPE_SIZE
constexpr std::uint32_t osts_max = 65536;

bool is_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    });
}

template <class Number>
std::optional<Number> number_of(std::string_view text, int base = 10) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

// "testfs-OST0001_UUID  7397448  127564  6860848  2% /mnt/testfs[OST:1] RS": kilobytes; the letters behind say what ails it. A mount point may have blanks in it.
std::optional<Ost> ost_of_line(std::string_view line) {
    const std::size_t mark = line.rfind("[OST:"), end = mark == std::string_view::npos ? mark : line.find(']', mark);
    if (end == std::string_view::npos) return std::nullopt;
    std::istringstream words{std::string(line.substr(0, mark))};
    std::string uuid, all, used, available;
    if (!(words >> uuid >> all >> used >> available)) return std::nullopt;
    constexpr std::string_view suffix = "_UUID";
    if (uuid.ends_with(suffix)) uuid.resize(uuid.size() - suffix.size());
    const auto kilobytes = number_of<std::uint64_t>(available);
    if (!is_name(uuid) || !ost_index(uuid) || !kilobytes || *kilobytes > UINT64_MAX >> 10) return std::nullopt;
    Ost ost{{uuid, *kilobytes << 10}};
    // Read-only, without new objects, out of space, out of inodes.
    ost.takes_files = line.find_first_of("RNSI", end) == std::string_view::npos;
    if (!ost.takes_files) ost.room.free_bytes = 0;
    return ost;
}

// ---- liblustreapi ----

constexpr const char* library_name = "liblustreapi.so";
constexpr const char* library_name_since_2_15 = "liblustreapi.so.1";

// Of lustreapi.h. The layout is opaque.
struct Library {
    void* (*layout_alloc)();
    void (*layout_free)(void*);
    int (*stripe_count_set)(void*, std::uint64_t);
    int (*stripe_size_set)(void*, std::uint64_t);
    int (*pattern_set)(void*, std::uint64_t);
    int (*ost_index_set)(void*, int, std::uint64_t);
    int (*file_create)(const char*, int, int, const void*);
};
constexpr std::uint64_t pattern_overstriping = 4;  // LLAPI_LAYOUT_OVERSTRIPING

template <class Function>
bool find(Outside& outside, const char* name, Function& function) {
    void* found = outside.function(library_name_since_2_15, name);
    if (!found) found = outside.function(library_name, name);
    function = reinterpret_cast<Function>(found);
    return found != nullptr;
}

std::optional<Library> load(Outside& outside) {
    Library library{};
    void (*set_level)(int) = nullptr;
    const bool all = find(outside, "llapi_layout_alloc", library.layout_alloc) && find(outside, "llapi_layout_free", library.layout_free) &&
                     find(outside, "llapi_layout_stripe_count_set", library.stripe_count_set) && find(outside, "llapi_layout_stripe_size_set", library.stripe_size_set) &&
                     find(outside, "llapi_layout_pattern_set", library.pattern_set) && find(outside, "llapi_layout_ost_index_set", library.ost_index_set) &&
                     find(outside, "llapi_layout_file_create", library.file_create) && find(outside, "llapi_msg_set_level", set_level);
    if (!all) return std::nullopt;
    set_level(0);  // LLAPI_MSG_OFF: what went wrong is in errno
    return library;
}

Status create_by_library(const Library& library, const std::string& path, std::uint32_t permissions, const LustreLayout& wanted) {
    void* const layout = library.layout_alloc();
    if (!layout) return Status::from_errno(errno, "llapi_layout_alloc");
    int file = -1;
    const char* doing = "llapi_layout_stripe_count_set";
    bool set = wanted.stripes == 0 || library.stripe_count_set(layout, wanted.stripes) == 0;
    if (set && wanted.stripe_bytes != 0) doing = "llapi_layout_stripe_size_set", set = library.stripe_size_set(layout, wanted.stripe_bytes) == 0;
    if (set && wanted.overstriped) doing = "llapi_layout_pattern_set", set = library.pattern_set(layout, pattern_overstriping) == 0;
    for (std::size_t i = 0; set && i < wanted.osts.size(); ++i) doing = "llapi_layout_ost_index_set", set = library.ost_index_set(layout, static_cast<int>(i), wanted.osts[i]) == 0;
    if (set) doing = "llapi_layout_file_create", file = library.file_create(path.c_str(), O_WRONLY | O_CLOEXEC, static_cast<int>(permissions), layout);
    const int error = errno;
    library.layout_free(layout);
    if (file < 0) return Status::from_errno(error, std::string(doing) + " of " + path);
    ::close(file);
    return {};
}

class Lustre final : public ParallelFileSystem {
  public:
    std::string_view name() const override { return "lustre"; }

    Result<PlacementTargets> targets(Outside& outside, const std::string& directory, const std::vector<std::string>&) const override {
        TRY_ASSIGN(const std::vector<Ost> osts, look(outside, directory, looking_limit));
        PlacementTargets targets{"lustre", {}, {}, "lustre"};
        targets.spans = true;
        for (const Ost& ost : osts)
            if (ost.takes_files) targets.names.push_back(ost.room.name);
        if (targets.names.size() < 2) return unavailable(directory + ": its Lustre file system has " + std::to_string(targets.names.size()) + " OSTs that take new files here");
        return targets;
    }

    Result<std::vector<TargetRoom>> rooms(Outside& outside, const std::string& directory, Nanos limit) const override {
        TRY_ASSIGN(const std::vector<Ost> osts, look(outside, directory, limit));
        std::vector<TargetRoom> rooms;
        for (const Ost& ost : osts) rooms.push_back(ost.room);
        return rooms;
    }

    Status make(Outside& outside, const std::string& path, std::uint32_t permissions, const Placing& placing, Nanos limit) const override {
        TRY_ASSIGN(const LustreLayout layout, lustre_layout(placing));
        if (const std::optional<Library> library = load(outside)) return create_by_library(*library, path, permissions, layout);
        return outside.run(lustre_create_words(path, layout), limit).status();
    }

    Result<std::uint64_t> block_bytes(Outside& outside, const std::string& directory) const override {
        const Result<std::string> printed = outside.run({"lfs", "getstripe", "--directory", "--stripe-size", directory}, looking_limit);
        if (printed.ok())
            if (const auto bytes = number_of<std::uint64_t>(std::string_view(*printed).substr(0, printed->find('\n'))); bytes && *bytes != 0) return *bytes;
        return outside.block_bytes(directory);
    }

    std::vector<std::string> lies_on(Outside& outside, const std::string& path) const override {
        const Result<std::string> printed = outside.run({"lfs", "getstripe", "--yaml", path}, looking_limit);
        std::vector<std::string> names;
        if (!printed.ok()) return names;
        for (const std::uint32_t index : osts_of_getstripe(*printed)) {
            char name[16];
            std::snprintf(name, sizeof name, "OST%04x", index);
            names.emplace_back(name);
        }
        return names;
    }

    std::string how() const override {
        return "a file is made with one stripe on its OST, as by lfs setstripe -c 1 -i INDEX; one without a target has the layout of its directory (lfs getstripe -d)";
    }

  private:
    static Result<std::vector<Ost>> look(Outside& outside, const std::string& directory, Nanos limit) {
        Words words = {"lfs", "df", "--lazy"};  // asks no OST that is not connected now, and so would not answer
        const Result<std::string> pool = outside.run({"lfs", "getstripe", "--directory", "--pool", directory}, limit);
        if (pool.code() == Code::deadline) return pool.status();  // lfs df would, too
        if (pool.ok())
            if (std::string name = pool_of_getstripe(*pool); !name.empty()) words.insert(words.end(), {std::string("--pool"), std::move(name)});
        words.push_back(directory);
        TRY_ASSIGN(const std::string printed, outside.run(words, limit));
        return osts_of_df(printed);
    }
};

}  // namespace

std::optional<std::uint32_t> ost_index(std::string_view name) {
    constexpr std::string_view mark = "-OST";
    const std::size_t at = name.rfind(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const auto index = number_of<std::uint32_t>(name.substr(at + mark.size()), 16);
    return index && *index < osts_max ? index : std::nullopt;
}

Result<LustreLayout> lustre_layout(const Placing& placing) {
    LustreLayout layout;
    for (const std::string& target : placing.targets) {
        const auto index = ost_index(target);
        if (!index) return invalid_argument("the storage target " + target + " is no OST of Lustre: these are called FSNAME-OSTnnnn");
        layout.osts.push_back(*index);
    }
    layout.stripes = std::max<std::uint64_t>(placing.stripes, layout.osts.size());
    layout.overstriped = layout.stripes > std::max<std::size_t>(1, layout.osts.size());
    layout.stripe_bytes = (placing.stripe_bytes + stripe_unit - 1) / stripe_unit * stripe_unit;
    return layout;
}

Words lustre_create_words(const std::string& path, const LustreLayout& layout) {
    Words words = {"lfs", "setstripe"};
    const auto add = [&words](const char* option, std::uint64_t number) { words.insert(words.end(), {std::string(option), std::to_string(number)}); };
    if (layout.stripes != 0) add(layout.overstriped ? "-C" : "-c", layout.stripes);
    if (layout.stripe_bytes != 0) add("-S", layout.stripe_bytes);
    if (layout.osts.size() == 1) add("-i", layout.osts.front());
    if (layout.osts.size() > 1) {
        std::string list;
        for (const std::uint32_t index : layout.osts) list += (list.empty() ? "" : ",") + std::to_string(index);
        words.insert(words.end(), {std::string("-o"), list});
    }
    words.push_back(path);
    return words;
}

Result<std::vector<Ost>> osts_of_df(std::string_view printed) {
    std::vector<Ost> osts;
    std::istringstream lines{std::string(printed)};
    for (std::string line; std::getline(lines, line);)
        if (std::optional<Ost> ost = ost_of_line(line)) osts.push_back(std::move(*ost));
    // By index, on all nodes alike.
    std::sort(osts.begin(), osts.end(), [](const Ost& a, const Ost& b) { return ost_index(a.room.name) < ost_index(b.room.name); });
    const auto same = [](const Ost& a, const Ost& b) { return a.room.name == b.room.name; };
    if (std::adjacent_find(osts.begin(), osts.end(), same) != osts.end()) return unavailable("lfs df names an OST twice");
    if (osts.empty()) return unavailable("lfs df names no OST");
    return osts;
}

std::vector<std::uint32_t> osts_of_getstripe(std::string_view printed) {
    constexpr std::string_view mark = "l_ost_idx:";
    std::vector<std::uint32_t> osts;
    std::set<std::uint32_t> seen;
    for (auto at = printed.find(mark); at != std::string_view::npos; at = printed.find(mark, at)) {
        at = printed.find_first_not_of(' ', at + mark.size());
        if (at == std::string_view::npos) break;
        const std::size_t end = printed.find_first_not_of("0123456789", at);
        if (const auto index = number_of<std::uint32_t>(printed.substr(at, end - at)); index && seen.insert(*index).second) osts.push_back(*index);
    }
    return osts;
}

std::string pool_of_getstripe(std::string_view printed) {
    std::istringstream words{std::string(printed)};
    std::string pool;
    for (std::string word; words >> word;) {
        if (!is_name(word) || (!pool.empty() && word != pool)) return {};
        pool = word;
    }
    return pool;
}

const ParallelFileSystem& lustre() {
    static const Lustre one;
    return one;
}

}  // namespace cairn
