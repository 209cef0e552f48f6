// SlotMaps: slot files stay mapped from one version to the next, so that in steady state a capture faults no page and
// zeroes none. A slot's file never shrinks while its name stands; one that was replaced by another of the same name is
// told by its inode.
//
// A slot that was made ahead is mapped ahead, too: a thread beside the application fills the mapping's page table piece by piece, and a capture that comes sooner
// does the rest. All but populate_some is called by one thread at a time.
//
// The mappings are this process's alone: a child that it forks does not get them, else it would keep the memory of slots that were given
// up since, for as long as it lives.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace cairn {

class SlotMaps {
  public:
    struct Map {
        std::string path;
        std::byte* base = nullptr;
        std::uint64_t bytes = 0;
        std::uint64_t populated_bytes = 0;  // whose pages are mapped
        std::uint64_t device = 0, inode = 0;
        std::uint64_t used = 0;  // by age: the oldest goes first
    };

    SlotMaps();
    SlotMaps(const SlotMaps&) = delete;
    ~SlotMaps();

    // A file that is gone keeps its memory as long as it is mapped: drops those. Before asking for a slot, which may need that memory.
    void forget_gone();
    // Whether the name still stands for the file that is mapped.
    bool still_there(const std::string& path) const;
    // The mapping of a slot of at least `bytes`; stays valid until the next call.
    Result<Map*> map(const std::string& path, std::uint64_t bytes);
    // The mapping of a slot that nobody has handed out yet; its pages are left to populate_some.
    Status map_ahead(const std::string& path, std::uint64_t bytes);
    // A millisecond's worth of pages. False when nothing is left to do. From any thread.
    bool populate_some();
    std::size_t count_of(std::uint64_t bytes) const;  // of mappings of at least so many

  private:
    static constexpr std::size_t maps_max = 16;
    enum class Pages : std::uint8_t { now, later };
    Result<Map*> find_or_map(const std::string& path, std::uint64_t bytes, Pages pages);
    static bool populate(Map& map, std::uint64_t bytes);
    void drop(std::size_t at);
    static bool is_gone(const Map& map);
    const int process_;
    std::mutex mutex_;  // which maps there are, and what of them is mapped
    std::vector<Map> maps_;
    std::uint64_t clock_ = 0;
};

}  // namespace cairn
