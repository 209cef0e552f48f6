// The state of a simulated cluster as one number: its files with what of them is durable, scratch, messages under way, and what each daemon would
// answer. Not in it: times and rates, and what daemons keep to themselves. Two runs in the same state give the same number, where
// Model::named_processes is on.
#pragma once

#include <cstdint>
#include <map>

#include "proof/cluster.hpp"

namespace cairn::testing {

class StateHash {
  public:
    explicit StateHash(Cluster& cluster) : cluster_(cluster) {}
    std::uint64_t now();
    // Operations under way, and processes: what else decides what a fault does to it.
    std::uint64_t under_way() const;

  private:
    // Of one file system, as long as nothing in it changes.
    struct Files {
        const sim::FileSystem* of = nullptr;
        std::uint64_t changes = 0, hash = 0;
        std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> contents;  // by inode: its changes then, and the hash
    };
    std::uint64_t files(Files& known, const sim::FileSystem& system);
    std::uint64_t tree(Files& known, const sim::Inode& directory);
    std::uint64_t node(NodeIndex index);
    std::uint64_t messages();

    Cluster& cluster_;
    Files persistent_;
    std::map<NodeIndex, Files> scratch_;
    std::map<std::uint64_t, std::uint64_t> messages_;  // under way, by their numbers
};

}  // namespace cairn::testing
