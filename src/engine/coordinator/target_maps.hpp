// TargetMaps: which storage target each node of a job writes to, where each rank or node has a file of its own (storage/target_map.hpp): read from the series' file
// when a job takes its first version, else made by count. Once it is known what the nodes store, a map that was made so is made once more by bytes, and kept.
//
//   first plan of a job         the file is read. None, or one of another number of nodes: by count. One that can not be read: by count, and it is left as it is
//   first commit of a new map   by stored bytes, where that is more even; the file is written
//
// Placing is an improvement: what can not be read or written is said once, and fails nothing.
#pragma once

#include "engine/coordinator/side.hpp"

namespace cairn::engine {

class TargetMaps : CoordinatorRole {
  public:
    explicit TargetMaps(Common& common);

    // Before the first plan. Nothing where files of ranks or nodes are not asked for, or no target can be chosen.
    Task<void> learn(JobPtr job);
    // What its leaders reported stands. The file is written beside what comes next.
    void keep(Flight& flight);

  private:
    Task<void> write(std::string series, std::string text) const;
    std::optional<TargetMap> usable(const Job& job, const Result<Bytes>& text, const std::vector<std::string>& targets) const;
};

}  // namespace cairn::engine
