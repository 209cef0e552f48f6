// Roots: what is there, what is missing, and what is away.
#include "catalog/roots.hpp"

#include <algorithm>

#include "format/names.hpp"

namespace cairn {

namespace {

std::string mark_of(const std::string& root) { return root + "/.cairn"; }

// "part 1", "parts 0, 2 and 5"
std::string parts_text(const Manifest& manifest, std::uint32_t root) {
    std::vector<std::string> numbers;
    for (std::size_t i = 0; i < manifest.parts.size(); ++i)
        if (manifest.parts[i].root == root) numbers.push_back(std::to_string(i));
    std::string text = numbers.size() == 1 ? "part " : "parts ";
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (i == 8 && numbers.size() > 9) return text + " and " + std::to_string(numbers.size() - i) + " more";
        text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + numbers[i];
    }
    return text;
}

// ", on which version 7 of melt depends"
std::string needed_by(const Manifest& manifest, std::uint32_t part) { return manifest.parts[part].origin == 0 ? "" : ", on which " + version_text(manifest.key) + " depends"; }

}  // namespace

std::vector<std::string> roots_with_parts(const Manifest& manifest) {
    if (manifest.abandoned) return manifest.roots;
    std::vector<std::string> roots;
    for (std::uint32_t i = 0; i < manifest.roots.size(); ++i)
        if (std::any_of(manifest.parts.begin(), manifest.parts.end(), [&](const PartInfo& part) { return part.root == i + 1 && part.origin == 0; })) roots.push_back(manifest.roots[i]);
    return roots;
}

Task<Status> make_version_below(World& world, std::string root, VersionKey key, Nanos deadline) {
    Status made = co_await make_directories(world.storage, root, mark_of(root), deadline);
    if (made.ok()) made = co_await make_directories(world.storage, root, Layout::version_below(root, key), deadline);
    co_return made;
}

namespace {

Task<void> try_root(World& world, std::string path, Nanos deadline, Status* tried) {
    OpenOptions options;
    options.mode = OpenMode::create;
    Result<FilePtr> file = co_await world.storage.open(path, options, deadline);
    *tried = file.status();
    if (!file.ok()) co_return;
    file = FilePtr();
    const Status removed = co_await world.storage.remove(std::move(path), deadline);
    (void)removed;  // at worst an empty file stays
}

}  // namespace

Task<std::vector<Status>> try_roots(World& world, std::vector<std::string> roots, Nanos deadline) {
    std::vector<Status> tried(roots.size());
    Gate trying(world.clock);
    for (std::size_t i = 0; i < roots.size(); ++i)
        trying.spawn(try_root(world, roots[i] + "/" + temporary_file_name(world.random.id()), deadline, &tried[i]));
    co_await trying.close();
    co_return tried;
}

Task<Result<bool>> is_mounted(World& world, std::string root, Nanos deadline) {
    Result<std::vector<DirectoryEntry>> mark = co_await world.storage.list(mark_of(root), deadline);
    if (mark.ok()) co_return true;
    if (mark.code() == Code::not_found || mark.code() == Code::corrupt) co_return false;
    co_return std::move(mark).status();
}

Task<Status> check_root(World& world, std::string root, Nanos deadline) {
    Result<bool> mounted = co_await is_mounted(world, root, deadline);
    if (!mounted.ok()) co_return std::move(mounted).status();
    if (*mounted) co_return Status();
    co_return unavailable(root + " is not what it was when parts were written there, it has no .cairn: is its file system mounted?");
}

Task<Status> missing_part(World& world, Layout layout, Manifest manifest, std::uint32_t part, Nanos deadline) {
    const std::uint32_t number = manifest.parts[part].root;
    Status there;
    if (number != 0) there = co_await check_root(world, layout.root(manifest.roots, number), deadline);
    if (there.ok()) co_return corrupt(layout.part(manifest, part) + ": the part is missing" + needed_by(manifest, part));
    std::string what = layout.part(manifest, part) + " is not there, as is nothing below its root, which holds " + parts_text(manifest, number) + " of " + version_text(manifest.key);
    co_return std::move(there).within(std::move(what));
}

Task<Result<std::vector<DirectoryEntry>>> list_below(World& world, std::string root, VersionKey key, Nanos deadline) {
    Result<std::vector<DirectoryEntry>> files = co_await world.storage.list(Layout::version_below(root, key), deadline);
    if (files.code() != Code::not_found) co_return files;
    Status there = co_await check_root(world, std::move(root), deadline);
    if (!there.ok()) co_return there;
    co_return std::vector<DirectoryEntry>();
}

namespace {

bool names(const CatalogEntry& entry, const std::string& root) {
    return entry.manifest && std::find(entry.manifest->roots.begin(), entry.manifest->roots.end(), root) != entry.manifest->roots.end();
}

// The files of one version's directory below a root, to the incarnations whose they are.
void add_files(const std::string& name, Version version, const std::string& root, const std::vector<DirectoryEntry>& files, std::vector<CatalogEntry>& entries) {
    for (const DirectoryEntry& file : files) {
        const std::optional<Id128> attempt_id = parse_attempt_of(file.name);
        if (!attempt_id) continue;
        const auto is_its = [&](const CatalogEntry& entry) { return entry.key.version == version && entry.key.incarnation.high == attempt_id->high; };
        auto entry = std::find_if(entries.begin(), entries.end(), is_its);
        if (entry == entries.end()) {
            entry = entries.emplace(entries.end());
            entry->key = {name, version, {attempt_id->high, 0}};
        }
        if (entry->elsewhere.empty() || entry->elsewhere.back().root != root) entry->elsewhere.push_back({root, {}});
        entry->elsewhere.back().files.push_back(file);
    }
}

Task<Status> look_below(World& world, std::string name, std::string root, std::vector<CatalogEntry>& entries, Nanos io_wait) {
    Status there = co_await check_root(world, root, world.clock.in(io_wait));
    if (!there.ok()) co_return there;
    Result<std::vector<DirectoryEntry>> versions = co_await world.storage.list(root + "/" + name, world.clock.in(io_wait));
    if (versions.code() == Code::not_found) co_return Status();
    if (!versions.ok()) co_return std::move(versions).status();
    for (const DirectoryEntry& each : *versions) {
        const std::optional<Version> version = parse_version_directory_name(each.name);
        if (!version || !each.is_directory) continue;
        Result<std::vector<DirectoryEntry>> files = co_await world.storage.list(root + "/" + name + "/" + each.name, world.clock.in(io_wait));
        if (files.code() == Code::not_found) continue;
        if (!files.ok()) co_return std::move(files).status();
        add_files(name, *version, root, *files, entries);
    }
    co_return Status();
}

}  // namespace

Task<void> look_elsewhere(World& world, Layout layout, std::string name, std::vector<CatalogEntry>& entries, Nanos io_wait) {
    std::vector<std::string> roots = layout.roots;
    for (const CatalogEntry& entry : entries)
        if (entry.manifest) roots.insert(roots.end(), entry.manifest->roots.begin(), entry.manifest->roots.end());
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    std::erase(roots, layout.persistent);
    for (const std::string& root : roots) {
        const Status looked = co_await look_below(world, name, root, entries, io_wait);
        if (looked.ok()) continue;
        for (CatalogEntry& entry : entries)
            if (names(entry, root)) entry.away.push_back(looked);
    }
}

std::vector<std::string> roots_of(const CatalogEntry& entry) {
    if (entry.whole) return roots_with_parts(*entry.whole);
    if (entry.manifest) return entry.manifest->roots;
    std::vector<std::string> roots;
    for (const CatalogEntry::Below& below : entry.elsewhere) roots.push_back(below.root);
    return roots;
}

}  // namespace cairn
