// GlusterFS. A volume's distribute translator (NAME-dht) puts each file whole on one of its children, by a hash of the
// name, or where the name it is made under says: NAME@VOLUME-dht:CHILD. A child is a server's brick (VOLUME-client-2),
// or a set of them that hold the same (VOLUME-replicate-0).
//
// What the children are called is said by the mount itself, to anybody, as an extended attribute of each directory:
//   glusterfs.pathinfo = ((<DISTRIBUTE:gv-dht> ...bricks...) (gv-dht-layout (gv-client-1 0 2147483646) (gv-client-0 ...)))
// A volume of one brick has no distribute, and takes such a name literally: it has no targets. Dispersed volumes do not
// answer. Of a volume with features.shard only the first piece of a file would lie where it was placed: no targets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/mount.hpp"
#include "storage/targets.hpp"

namespace cairn {

// The targets from the text above: children that take files at present (a child with an empty range is being removed),
// by number. The text comes from the file system and is not trusted: unavailable where it is not exactly that.
Result<PlacementTargets> targets_of_pathinfo(std::string_view pathinfo);

// On which bricks a file lies, "server:/brick": several where the volume keeps several copies, or cuts files into pieces. From the attribute of a file; for people.
std::vector<std::string> bricks_of_pathinfo(std::string_view pathinfo);
// Of that file; what the file system does not say is an error. Blocks like detect_glusterfs_targets().
Result<std::vector<std::string>> glusterfs_bricks_of(const std::string& path);

}  // namespace cairn
