// ParallelFileSystem: a file system whose files can be laid on chosen targets by a call. Each is one file here, behind this class: it says which targets there are and how full, makes a file
// on one of them, and tells of itself in its own words. What it asks of the machine goes through Outside.
//
// Which file system a directory lies on is what statfs(2) says, where the setting placement.driver does not name one. GlusterFS is not among them: there a file's name says where it lies
// (targets.hpp, glusterfs.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/outside.hpp"
#include "storage/targets.hpp"
#include "world/placing.hpp"

namespace cairn {

class ParallelFileSystem {
  public:
    virtual ~ParallelFileSystem() = default;
    virtual std::string_view name() const = 0;  // as placement.driver has it

    // What can be chosen for a file that is made in that directory, which is there; `wanted` are the targets that the settings name. The directory's file system is taken to be this one.
    //   unavailable, unsupported   nothing can be chosen: no right, no tool
    virtual Result<PlacementTargets> targets(Outside& outside, const std::string& directory, const std::vector<std::string>& wanted) const = 0;
    // Of these, and of others that take nothing at present: these have no room.
    virtual Result<std::vector<TargetRoom>> rooms(Outside& outside, const std::string& directory, Nanos limit) const;
    // Placer::make.
    virtual Status make(Outside& outside, const std::string& path, std::uint32_t permissions, const Placing& placing, Nanos limit) const = 0;

    // The bytes that it likes to have at once.
    virtual Result<std::uint64_t> block_bytes(Outside& outside, const std::string& directory) const;
    // On which targets a file lies, for people. Empty: it does not say.
    virtual std::vector<std::string> lies_on(Outside& outside, const std::string& path) const;
    // How a file is placed, in its words, for people.
    virtual std::string how() const = 0;
    // What a user must know of it. Empty: nothing.
    virtual std::string warning() const { return {}; }
};

const ParallelFileSystem& lustre();
const ParallelFileSystem& cephfs();
const ParallelFileSystem& beegfs();
const ParallelFileSystem& orangefs();
const ParallelFileSystem& plain_file_system();  // of which nothing is known

// By the magic number of statfs(2), and by the mount's type where that number is FUSE's. plain: none of them.
const ParallelFileSystem& file_system_of(std::uint64_t magic, std::string_view mount_type);
const ParallelFileSystem* file_system_named(std::string_view name);  // null: none

constexpr Nanos looking_limit = 10 * second;  // of a program that is asked for targets

}  // namespace cairn
