// CephFS: the layout of a file is attributes of it, which can be set while it is empty. A target is a data pool of the file system. Which there are no client is told, so that the
// person names them (placement.targets): pools that lie on different OSDs, else one pool is as good as all of them. Without, nothing is chosen, and Ceph spreads each file over its OSDs.
//
// It takes the flag p in the client's capabilities (`ceph fs authorize NAME client.X / rwp`). A pool that is full answers ENOSPC to writes, at once; one whose OSDs are dead answers nothing, for
// ever, unless the client gives up by itself (`rados_osd_op_timeout`; `osd_request_timeout` of the kernel's client).
//
// Ceph's documentation: "File layouts" (cephfs/file-layouts), "CephFS client capabilities".
#pragma once

#include <utility>

#include "storage/parallel_file_system.hpp"

namespace cairn {

// Name and value, in the order in which they are set: after each of them an object still holds whole stripe units, whatever the directory's layout was (4 MiB, if nobody changed it).
// A stripe unit is a power of two from 64 KiB to 64 MiB.
std::vector<std::pair<std::string, std::string>> cephfs_attributes(const Placing& placing);

}  // namespace cairn
