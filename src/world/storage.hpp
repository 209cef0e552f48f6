// Storage: files, as the engine needs them. One instance per world serves scratch and persistent alike; paths are absolute.
//
// Contract, kept by the conformance suite on both worlds (storage_conformance.hpp):
//  - every operation ends by its deadline; one that the system does not give back is reported as Code::deadline and goes on
//    in the background, holding its file and buffer;
//  - write_some and read_some may do less than asked, never nothing unless at end of file; write_all and read_all loop;
//  - nothing is durable before fsync of the file, and no name before fsync_directory of its directory (fsync_name, where it came by publish() or replace());
//  - after a failed fsync the file's earlier writes are of unknown fate: a new attempt, never a second try (rule 3);
//  - publish() gives a complete file a second name without ever replacing one, atomically against everybody else;
//  - replace() puts a complete file in another's place, in one step.
#pragma once

#include <string>
#include <vector>

#include "model/checksum_units.hpp"
#include "world/buffer.hpp"
#include "world/clock.hpp"
#include "world/placing.hpp"

namespace cairn {

class File {
  public:
    virtual ~File() = default;  // closes
    virtual const std::string& path() const noexcept = 0;
    virtual bool is_placed() const noexcept { return false; }  // it was made here, and lies as OpenOptions::placing said
};
using FilePtr = std::shared_ptr<File>;

enum class OpenMode : std::uint8_t {
    read,     // corrupt where the name leads to no file: to a directory, a FIFO, a socket, a device, or (a link) nowhere, to itself, or where no file can be
    write,    // existing file, for reading and writing; corrupt where the name itself is no file's: also where it is a link, whatever that leads to
    create,   // new file, for reading and writing; already_exists when there is one
};

struct OpenOptions {
    OpenMode mode = OpenMode::read;
    bool direct = false;          // bypass the page cache where the file system can; silently buffered where it can not
    bool sole_name = false;       // OpenMode::write: corrupt where the file has other names (hard links), whose owner would lose what is written over
    std::uint32_t permissions = 0644;  // of a new file, less the umask; the group's hold in a directory that a group shares, whatever the umask says
    Placing placing;              // OpenMode::create
};

struct DirectoryEntry {
    std::string name;
    bool is_directory = false;
    std::uint64_t bytes = 0;  // files only
    auto operator<=>(const DirectoryEntry&) const = default;
};

// Where some bytes of a run go: from `at` on in the run.
struct Destination {
    std::uint64_t at = 0;
    Slice into;
};

class Storage {
  public:
    virtual ~Storage() = default;

    // Page-aligned memory for data. out_of_space when there is none.
    virtual Result<BufferPtr> allocate(std::uint64_t bytes) = 0;

    virtual Task<Result<FilePtr>> open(std::string path, OpenOptions options, Nanos deadline) = 0;
    virtual Task<Result<std::uint64_t>> write_some(FilePtr file, std::uint64_t offset, Slice data, Nanos deadline) = 0;
    virtual Task<Result<std::uint64_t>> read_some(FilePtr file, std::uint64_t offset, Slice into, Nanos deadline) = 0;
    // Reads a run of a file whole, and gives the checksum of each of its units. On their way bytes go where `into` says (by `at`, apart from each other), right or not: when it fails some are there, some not.
    // Nothing of `into` is touched once it has ended, unlike with read_some(): it may be memory of the application. corrupt when the file ends early; unsupported: read and checksum it by yourself.
    virtual Task<Result<std::vector<std::uint64_t>>> read_checksummed(FilePtr file, std::uint64_t offset, std::uint64_t length, Units units, std::vector<Destination> into, Nanos deadline);
    virtual Task<Status> fsync(FilePtr file, Nanos deadline) = 0;
    virtual Task<Result<std::uint64_t>> file_bytes(FilePtr file, Nanos deadline) = 0;
    virtual Task<Status> resize(FilePtr file, std::uint64_t bytes, Nanos deadline) = 0;

    // already_exists when there is one.
    virtual Task<Status> make_directory(std::string path, std::uint32_t permissions, Nanos deadline) = 0;
    virtual Task<Status> fsync_directory(std::string path, Nanos deadline) = 0;
    // The name of a file that is complete and was published, or put in another's place: with its directory's fsync, and with its own, through a descriptor opened anew. The servers of
    // GlusterFS are not told of the former; what they do for the latter keeps the names of the file, too. not_found when its directory is missing.
    virtual Task<Status> fsync_name(std::string path, Nanos deadline);
    // A second name `to` for the file `from` (link(2) or RENAME_NOREPLACE); already_exists when `to` is taken. On success
    // `from` may or may not be there still.
    virtual Task<Status> publish(std::string from, std::string to, Nanos deadline) = 0;
    // The file `from` takes the name `to` whatever stands there (rename(2)): everybody sees the one or the other, and so does a crash.
    // not_found when `from` is absent.
    virtual Task<Status> replace(std::string from, std::string to, Nanos deadline) = 0;
    virtual Task<Status> remove(std::string path, Nanos deadline) = 0;            // a file; not_found when absent
    virtual Task<Status> remove_directory(std::string path, Nanos deadline) = 0;  // empty; already_exists when not
    virtual Task<Result<std::vector<DirectoryEntry>>> list(std::string path, Nanos deadline) = 0;  // by name; directories, and all else: who opens it hears what it is

    // What the file system of a directory still takes of this user, as far as it says: others may take it meanwhile, and a quota may be smaller.
    virtual Task<Result<std::uint64_t>> free_bytes(std::string directory, Nanos deadline) = 0;

    // The same of each of its storage targets, as far as `by` (placing.hpp) is told. unsupported: nobody says.
    virtual Task<Result<std::vector<TargetRoom>>> target_rooms(std::string directory, std::string by, Nanos deadline);

    // Maps a whole existing file of node-local scratch; the mapping is shared with whoever else maps it. The file must not shrink.
    virtual Task<Result<BufferPtr>> map(std::string path, bool writable, Nanos deadline) = 0;
};

// Loops over short transfers. read_all: corrupt when the file ends early (names the file and the offset).
Task<Status> write_all(Storage& storage, FilePtr file, std::uint64_t offset, Slice data, Nanos deadline);
Task<Status> read_all(Storage& storage, FilePtr file, std::uint64_t offset, Slice into, Nanos deadline);
// Whole small files of metadata. bytes_max guards against a hostile size.
Task<Result<Bytes>> read_file(Storage& storage, std::string path, std::uint64_t bytes_max, Nanos deadline);
// Creates, writes and fsyncs `path`; the name is not durable before fsync_directory.
Task<Status> write_file(Storage& storage, std::string path, Bytes bytes, std::uint32_t permissions, Nanos deadline);
// Creates what is missing of `path` below `root` and fsyncs every directory that got a new entry. unavailable when there is no root.
Task<Status> make_directories(Storage& storage, std::string root, std::string path, Nanos deadline);
// For whoever was told not_found of something below `root`, and would conclude from it: unavailable when the root itself is missing, which says
// nothing of what lies below it; its file system is not mounted. Else `status`.
Task<Status> unless_root_missing(Storage& storage, std::string root, Status status, Nanos deadline);

}  // namespace cairn
