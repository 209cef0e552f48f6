#include "catalog/needed.hpp"

#include <algorithm>

#include "catalog/manifest_lookup.hpp"
#include "format/names.hpp"

namespace cairn {

namespace {

Dependent told_by(VersionKey key, const Result<ManifestHead>& head) {
    if (!head.ok()) return {std::move(key), {}, head.code() == Code::corrupt};
    return {std::move(key), head->manifest.abandoned ? std::vector<BaseVersion>() : head->manifest.bases, true};
}

// Whether one manifest needs `key`. One that is half written needs nothing yet: its writer looks for its bases afterwards.
Status refuse_if_needed(const VersionKey& key, Dependent by) {
    const std::vector<Dependent> one(1, std::move(by));
    const Dependent* needs = needed_by(one, key);
    return needs ? Status(Code::permission, version_text(key) + " stays: " + needed_text(*needs)) : Status();
}

// A manifest may get its name between the list and its read: what is not there any more may be there under another name. So that is an answer only where
// every file that was listed could be read.
Task<Status> check_version(World& world, Layout layout, VersionKey key, Version newer, Nanos deadline) {
    const VersionKey by(key.name, newer);
    constexpr int lists_most = 3;
    for (int i = 0; i < lists_most; ++i) {
        Result<std::vector<DirectoryEntry>> files = co_await world.storage.list(layout.version(key.name, newer), deadline);
        if (files.code() == Code::not_found) co_return Status();
        if (!files.ok()) co_return std::move(files).status();
        bool all_read = true;
        for (const DirectoryEntry& file : *files) {
            const bool is_manifest = parse_manifest_file_name(file.name) || parse_temporary_file_name(file.name);
            if (!is_manifest || file.is_directory) continue;
            Result<ManifestHead> head = co_await read_manifest_head(world, layout.version(key.name, newer) + "/" + file.name, deadline);
            // Whole when it got its name: another read may give what is there, and not what was there before. What is damaged stays so, and needs nothing.
            const bool may_be_old = head.code() == Code::corrupt && parse_manifest_file_name(file.name) && i + 1 < lists_most;
            if (head.code() == Code::not_found || may_be_old) all_read = false;
            else CO_TRY(refuse_if_needed(key, told_by(by, head)));
        }
        if (all_read) co_return Status();
    }
    co_return refuse_if_needed(key, Dependent{by, {}, false});
}

}  // namespace

std::optional<Dependent> dependent_of(const CatalogEntry& entry) {
    if (entry.committed() && !entry.manifest->bases.empty()) return Dependent{entry.key, entry.manifest->bases, true};
    const bool is_unread = entry.damage && entry.damage->code() != Code::corrupt && entry.key.incarnation;
    return is_unread ? std::optional(Dependent{entry.key, {}, false}) : std::nullopt;
}

std::vector<Dependent> dependents_of(const std::vector<CatalogEntry>& entries) {
    std::vector<Dependent> dependents;
    for (const CatalogEntry& entry : entries)
        if (const std::optional<Dependent> dependent = dependent_of(entry)) dependents.push_back(*dependent);
    return dependents;
}

const Dependent* needed_by(const std::vector<Dependent>& dependents, const VersionKey& key, const std::vector<VersionKey>& gone) {
    const auto needs = [&](const Dependent& by) {
        const bool is_gone = std::find(gone.begin(), gone.end(), by.key) != gone.end();
        const auto is_it = [&](const BaseVersion& base) { return base.version == key.version && base.incarnation == key.incarnation; };
        return !is_gone && by.key.version > key.version && (!by.is_told || std::any_of(by.bases.begin(), by.bases.end(), is_it));
    };
    const auto found = std::find_if(dependents.begin(), dependents.end(), needs);
    return found == dependents.end() ? nullptr : &*found;
}

std::string needed_text(const Dependent& by) {
    const std::string version = "version " + std::to_string(by.key.version);
    return by.is_told ? version + " depends on it" : version + " may depend on it, and its manifest can not be read now";
}

Task<Status> check_not_needed(World& world, Layout layout, VersionKey key, Nanos io_wait) {
    Result<std::vector<DirectoryEntry>> versions = co_await world.storage.list(layout.series(key.name), world.clock.in(io_wait));
    if (versions.code() == Code::not_found) co_return Status();
    if (!versions.ok()) co_return std::move(versions).status();
    for (const DirectoryEntry& entry : *versions) {
        const std::optional<Version> version = parse_version_directory_name(entry.name);
        if (!version || !entry.is_directory || *version <= key.version) continue;
        CO_TRY(co_await check_version(world, layout, key, *version, world.clock.in(io_wait)));
    }
    co_return Status();
}

Task<Status> check_bases_stand(World& world, Layout layout, Manifest manifest, Nanos io_wait) {
    for (const BaseVersion& base : manifest.bases) {
        const VersionKey key(manifest.key.name, base.version, base.incarnation);
        // In this order: a tombstone that is not beside it any more is in its place.
        const Result<std::vector<DirectoryEntry>> files = co_await world.storage.list(layout.version(key), world.clock.in(io_wait));
        if (!files.ok()) co_return files.status();
        const auto is_aside = [&](const DirectoryEntry& file) {
            const std::optional<Id128> attempt_id = parse_temporary_file_name(file.name);
            return attempt_id && attempt_id->high == key.incarnation.high;
        };
        if (std::any_of(files->begin(), files->end(), is_aside)) co_return Status(Code::superseded, version_text(key) + ", on which " + version_text(manifest.key) + " depends, is about to be removed");
        Result<ManifestHead> head = co_await read_manifest_head(world, layout.manifest(key), world.clock.in(io_wait));
        if (!head.ok() && head.code() != Code::not_found) co_return std::move(head).status();
        if (!head.ok() || head->manifest.abandoned) co_return Status(Code::superseded, version_text(key) + ", on which " + version_text(manifest.key) + " depends, was removed");
    }
    co_return Status();
}

}  // namespace cairn
