// Place: directories of our own in somebody's file systems. Each is named .cairn-tune-<pid>-<random>@<host>, holds a lock for as long as we live, and
// goes with all that is in it when we end. What a run left that was killed is known by its lock, which nobody holds, and its process, which is
// gone; it is removed by the next one, by name. What another host left is not touched: nothing can be known of it here.
//
// And what must be asked before anything is written: is there room, and is direct I/O what it says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace cairn::tune {

class OwnDirectory {
  public:
    // Makes it in `parent`, which exists. The error names the directory and what to do.
    static Result<OwnDirectory> make(const std::string& parent);
    OwnDirectory(OwnDirectory&& other) noexcept;
    OwnDirectory& operator=(OwnDirectory&& other) = delete;
    ~OwnDirectory();
    const std::string& path() const noexcept { return path_; }
    Status remove();  // now, with what went wrong; the destructor says nothing

  private:
    OwnDirectory() = default;
    std::string path_;
    int lock_ = -1;
};

// Removes what killed runs left in `parent`; gives their names. What can not be removed is an error that names it.
Result<std::vector<std::string>> remove_leftovers(const std::string& parent);

struct Room {
    std::uint64_t free_bytes = 0, total_bytes = 0;  // free: to this user
};
Result<Room> room_at(const std::string& directory);
bool same_file_system(const std::string& a, const std::string& b);
// ok when `bytes` fit `times` over and a tenth of the file system stays free; else out_of_space, with what is missing. `what`: "a run writes".
Status check_room(const std::string& directory, const Room& room, std::uint64_t bytes, std::uint32_t times, const std::string& what);
// The most that check_room would let pass.
std::uint64_t room_for(const Room& room, std::uint32_t times);

// Direct I/O as it is in `directory`, tried with one file of a few blocks: opened, written, compared with what comes back, and looked for in the page
// cache, where it must not be.
enum class Direct : std::uint8_t { works, refused, cached, wrong };
struct DirectProbe {
    Direct direct = Direct::works;
    std::string text;  // why it does not
};
// How a file is reached for that; tests have file systems of their own that lie.
struct DirectCalls {
    virtual ~DirectCalls() = default;
    virtual int open(const std::string& path) const;  // new, past the page cache
    virtual ssize_t write(int file, const void* data, std::size_t bytes) const;
    virtual ssize_t read(int file, void* data, std::size_t bytes) const;
    virtual bool is_cached(int file, std::size_t bytes) const;  // any page of it
};
Result<DirectProbe> probe_direct(const std::string& directory, const DirectCalls& calls = DirectCalls());

}  // namespace cairn::tune
