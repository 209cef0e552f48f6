// OrangeFS (PVFS2), the file system of the orcheck paper: new files lie as the attributes of their directory say. As in the paper striping is switched off there, so that a file lies whole on one server
// (user.pvfs2.num_dfiles = 1, whatever user.pvfs2.dist_name says: the distribution basic_dist, made for that, fails in some releases); which one OrangeFS chooses. Where the person names servers (placement.targets, such as tcp://io1:3334), each file is made while its directory
// has a list of one (user.pvfs2.layout, user.pvfs2.server_list), as the tool ofs_setdirhint writes it. Two nodes that do so in one directory at once may get each other's server, so
// that it is asked afterwards where the file lies (pvfs2-viewdist), if that can be asked.
//
// What fsync(2) promises is not kept there: through FUSE it does nothing, and a server that is full says nothing of it. Nobody can mend that from here; it is said.
//
// Sources: the OrangeFS users' guide ("Setting attributes on directories"), ofs_setdirhint and pvfs2-viewdist as they say themselves.
#pragma once

#include <utility>

#include "storage/parallel_file_system.hpp"

namespace cairn {

// Of the directory, name and value, in order. Values end with a zero byte but for the list, as OrangeFS's own tool has it.
std::vector<std::pair<std::string, std::string>> orangefs_attributes(const Placing& placing);
// What `pvfs2-viewdist -f` prints of a file: the addresses of its servers.
std::vector<std::string> servers_of_viewdist(std::string_view printed);

}  // namespace cairn
