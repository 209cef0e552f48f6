// StorageDriver: how files come to lie on storage targets. It makes a part's file, and lists targets and their fill. One driver a way of storing, one file a
// driver; which one a job has follows from its roots (storage_driver). All stand on World, so each is simulated as it is real.
//
//   persistent    the file system of persistent, with its own targets where it lets one choose, by a file's name or by a call (targets.hpp), below one root
//   directories   several roots, of whatever file systems, each of them a target
//
// Which target, which stripe and which root a file shall have are pure functions (placement.hpp): a driver is told. Placing is an improvement: a target that the driver does
// not know, or a stripe that it can not make, gives a file that lies as the file system has it, and no error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/placement.hpp"
#include "storage/targets.hpp"
#include "world/world.hpp"

namespace cairn {

struct NewFile {
    std::string root;              // below which it shall lie
    std::string path;              // as what, absolute; its directory is there
    std::string target;            // empty: none in particular
    Stripe stripe;
    std::uint64_t bytes_max = 0;   // it will not be larger; 0: nobody knows
    bool direct = false;           // OpenOptions::direct
    std::string directory_made_by; // who made the directory: an error that it is not there says so
};

// Where it came to lie. The path is the one that was told: others find it there without being told.
struct PlacedFile {
    FilePtr file;        // open for reading and writing
    std::string root, path;
    std::string target;  // empty: where the file system put it
};

struct TargetFill {
    std::string name;
    // What it still takes. deadline: it did not answer. unsupported: nobody can say.
    Result<std::uint64_t> free_bytes;
};

// Every operation on storage takes io_wait at most.
class StorageDriver {
  public:
    virtual ~StorageDriver() = default;

    // Those that files can be placed on, in the order in which parts go round them. Asks nobody.
    virtual std::vector<std::string> targets() const = 0;
    // A file must lie on one of them. False: where it has none the file system chooses.
    virtual bool needs_target() const = 0;
    // A file can lie on several of them (NewFile::stripe).
    virtual bool spans_targets() const { return false; }
    // Of some of them, by name, each once. All are asked at once: several that hang take the time of one.
    virtual Task<std::vector<TargetFill>> fill(std::vector<std::string> names, Nanos deadline) = 0;

    // `placed.file` is set as soon as the file was made, also when what follows fails: whoever asked removes it then.
    //   unavailable   its root is not mounted here
    //   io_error      it does not lie under its own name (targets.hpp)
    virtual Task<Status> create(NewFile asked, PlacedFile& placed, Nanos io_wait) = 0;
};

std::unique_ptr<StorageDriver> persistent_driver(World world, std::string persistent, std::shared_ptr<const PlacementTargets> targets);
// Persistent may be one of the roots.
std::unique_ptr<StorageDriver> directories_driver(World world, std::string persistent, std::vector<std::string> roots);

// Of a job with these roots; none: its parts lie below persistent.
std::unique_ptr<StorageDriver> storage_driver(World world, std::string persistent, std::vector<std::string> roots, std::shared_ptr<const PlacementTargets> targets);

// For drivers: makes it under this name, placed as told, and says where; the target is theirs to say.
Task<Status> make_file(World world, NewFile asked, std::string made_as, Placing placing, PlacedFile& placed, Nanos deadline);

}  // namespace cairn
