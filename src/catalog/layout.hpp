// Where everything lies: names of files and directories under persistent and in scratch (FORMAT.md fixes them).
#pragma once

#include <string>
#include <vector>

#include "format/names.hpp"
#include "model/types.hpp"

namespace cairn {

// <root>/<name>/<version>/part-0003-of-0016.<attempt>          persistent is a root, and the settings can name more
// <root>/.cairn                                                 in each: where it is missing, the root's file system is not mounted
// <persistent>/<name>/<version>/manifest.<incarnation>, .tmp-<attempt>
// <persistent>/<name>/<version>/model.safetensors.index.json    where the parts are safetensors files
// <persistent>/<name>/targets                                   which storage target each node writes to, where each rank or node has a file of its own
// <persistent>/<name>/lineage/<epoch>.open, <epoch>.from
// <persistent>/.cairn/<incarnation>/roster, node-<i>
// <persistent>/.cairn/io-nodes/<node>
// <persistent>/.cairn/rendezvous/<job>/...
struct Layout {
    std::string persistent;  // absolute, no slash at the end
    std::vector<std::string> roots = {};  // of the settings (storage.directories), but persistent: looked at for what is left behind, also where no manifest names them

    std::string series(const std::string& name) const { return persistent + "/" + name; }
    std::string version(const VersionKey& key) const { return version(key.name, key.version); }
    std::string version(const std::string& name, Version v) const { return series(name) + "/" + std::to_string(v); }
    static std::string version_below(const std::string& root, const VersionKey& key) { return root + "/" + key.name + "/" + std::to_string(key.version); }
    const std::string& root(const std::vector<std::string>& others, std::uint32_t number) const { return number == 0 ? persistent : others[number - 1]; }
    std::string part(const Manifest& manifest, std::size_t part) const;
    static std::string part_below(const std::string& root, const VersionKey& key, const PartFileName& name) { return version_below(root, key) + "/" + part_file_name(name); }
    std::string part(const VersionKey& key, std::uint32_t part, std::uint32_t parts, Id128 attempt_id) const { return part_below(persistent, key, {part, parts, attempt_id}); }
    std::string manifest(const VersionKey& key) const;
    std::string safetensors_index(const VersionKey& key) const;
    std::string temporary(const VersionKey& key, Id128 attempt_id) const;  // a manifest of that attempt before it is published
    std::string target_map(const std::string& name) const { return series(name) + "/targets"; }  // storage/target_map.hpp
    std::string lineage(const std::string& name) const { return series(name) + "/lineage"; }
    std::string lineage_open(const std::string& name, std::uint64_t epoch) const;
    std::string lineage_from(const std::string& name, std::uint64_t epoch) const;
    std::string jobs() const { return persistent + "/.cairn"; }
    std::string reserve() const { return jobs() + "/reserve"; }  // room for small records (reserve.hpp)
    std::string job(Id128 incarnation) const { return jobs() + "/" + incarnation.hex(); }
    std::string job_roster(Id128 incarnation) const { return job(incarnation) + "/roster"; }
    std::string job_node(Id128 incarnation, NodeIndex node) const { return job(incarnation) + "/node-" + std::to_string(node); }
    std::string io_nodes() const { return jobs() + "/io-nodes"; }
    std::string meetings() const { return jobs() + "/rendezvous"; }
    std::string meeting(const std::string& job) const { return meetings() + "/" + job; }  // of ranks without MPI (client/rendezvous.hpp)
    std::string io_node(const std::string& node) const { return io_nodes() + "/" + node; }
};

// Those that are not persistent itself, which a job may name among its roots to use it, too. It stays what it is, number 0 (PartInfo::root): as one more root its
// files would be told twice, and be no room for a tombstone. All are absolute paths in their one spelling.
std::vector<std::string> roots_besides(const std::string& persistent, std::vector<std::string> roots);

// <scratch>/cairn-<uid>-<node>-<hash of persistent>/lock, sock, boot, log, jobs/<incarnation>, images/slot-<n>
struct ScratchLayout {
    std::string root;  // of one daemon: uid, node, scratch, persistent (rule 7)

    static ScratchLayout of(const std::string& scratch, std::uint32_t uid, const std::string& node, const std::string& persistent);
    std::string lock() const { return root + "/lock"; }
    std::string socket() const { return root + "/sock"; }
    std::string keeper() const { return root + "/keeper"; }  // locked by a keeper that waits before it starts a daemon again
    std::string boot() const { return root + "/boot"; }
    std::string log() const { return root + "/log"; }  // where no other is set
    std::string jobs() const { return root + "/jobs"; }
    std::string job(Id128 incarnation) const { return jobs() + "/" + incarnation.hex(); }
    std::string images() const { return root + "/images"; }
    std::string shared() const { return root + "/shared"; }  // what ranks of one node hand each other when they restore
};

}  // namespace cairn
